//! The command line of live streaming.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// Stream each case so many times by each carrier; medians count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) runs: u64,
    /// Only streams whose name, such as `cut, RTMP, bond`, holds this; may be given several times.
    #[arg(long, value_name = "SUBSTRING")]
    pub(crate) only: Vec<String>,
    /// The cases, in a file of the form that --print-cases prints [default: those of the lab].
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) cases: Option<PathBuf>,
    /// Print the lab's cases, and stream none.
    #[arg(long, conflicts_with_all = ["runs", "only", "cases"])]
    pub(crate) print_cases: bool,
    /// Once, and for a third of the time: for trying things out, not for a claim.
    #[arg(long, conflicts_with = "runs")]
    pub(crate) quick: bool,
}
