//! The command line of the guests.

use clap::{Args, Subcommand, ValueEnum};

const CHECK_HELP: &str = "\
Examples:
  plait-lab vm check
  plait-lab vm check --guest qemu --json

Exit codes:
  0  every guest boots
  1  one does not; what it needs is said
  2  error";

const RUN_HELP: &str = "\
Examples:
  plait-lab vm run -- uname -r
  plait-lab vm run -- plait-lab run tcp/links --on netns --seeds 1
  plait-lab vm run --guest qemu -- sh -c 'modprobe tcp_illinois && sysctl net.ipv4'

Exit codes:
  0  the command succeeded
  1  it failed; with --json its own exit status is in `code`
  2  error: no guest, or the command did not end in time";

const TRANSFERS_HELP: &str = "\
Examples:
  plait-lab vm transfers illinois
  plait-lab vm transfers illinois cubic --runs 1 --seconds 10
  plait-lab vm transfers illinois bpf_illinois \\
      --before 'plait cc load illinois >&2'

Exit codes:
  0  all were measured
  1  a control bpf_NAME is more than 10 % off the kernel's own NAME, named beside it
  2  error: no guest, or its kernel does not have the control";

#[derive(Debug, Args)]
pub(crate) struct VmArgs {
    #[command(subcommand)]
    pub(crate) command: VmCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VmCommand {
    /// Boot each guest, and print how exact its timers are and what its kernel has.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Run a command in a guest, and print what it printed. It sees this machine's files,
    /// read-only; /run is the guest's own. The lab's folder of programs is first in its PATH.
    #[command(after_help = RUN_HELP)]
    Run(RunInGuestArgs),
    /// Run a transfer under each of these congestion controls of a guest's kernel, over netem, all
    /// in one boot; beside those of the same name in the simulator. The links are those of
    /// scenarios/kernel/illinois.toml.
    #[command(after_help = TRANSFERS_HELP)]
    Transfers(TransfersArgs),
}

impl VmCommand {
    /// The guest that it cannot do without.
    pub(crate) fn guest(&self) -> Option<Guest> {
        match self {
            Self::Check(_) => None,
            Self::Run(args) => Some(args.guest),
            Self::Transfers(args) => Some(args.guest),
        }
    }
}

/// A kernel that runs beside this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Guest {
    /// User-mode Linux 6.1, a kernel that is a program; what is computed takes no time.
    Uml,
    /// The distribution's Linux 6.1 under qemu without KVM, with modules, BTF and BPF struct_ops;
    /// an instruction takes a nanosecond.
    Qemu,
}

impl Guest {
    pub(crate) const ALL: [Self; 2] = [Self::Uml, Self::Qemu];

    /// As the command line names it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Uml => "uml",
            Self::Qemu => "qemu",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Only this one.
    #[arg(long)]
    pub(crate) guest: Option<Guest>,
}

#[derive(Debug, Args)]
pub(crate) struct RunInGuestArgs {
    /// Which guest.
    #[arg(long, default_value = "uml")]
    pub(crate) guest: Guest,
    /// Give up after so many seconds of this machine's time.
    #[arg(long, value_name = "S", default_value_t = 600,
        value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) limit: u64,
    /// A program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TransfersArgs {
    /// Congestion controls of the guest's kernel.
    #[arg(required = true, value_name = "CONTROL")]
    pub(crate) controls: Vec<String>,
    /// Which guest.
    #[arg(long, default_value = "qemu")]
    pub(crate) guest: Guest,
    /// A shell command that is run in the guest before, such as one that loads a control.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) before: Option<String>,
    /// Runs on each link; their means are printed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Seconds of each that count, in the guest's time.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: u32,
}

/// For the lab in a guest: transfers over netem or over the emulator.
#[derive(Debug, Args)]
pub(crate) struct NetemArgs {
    /// The scenario whose links are taken.
    pub(crate) scenario: String,
    /// Congestion controls of the kernel.
    #[arg(long = "control", default_value = "cubic")]
    pub(crate) controls: Vec<String>,
    /// The emulator as well.
    #[arg(long)]
    pub(crate) emulator: bool,
    /// Runs on each link.
    #[arg(long)]
    pub(crate) runs: u32,
    /// Runs on each link that loses at random.
    #[arg(long)]
    pub(crate) runs_lossy: u32,
    /// Seconds of each that count.
    #[arg(long)]
    pub(crate) seconds: u32,
}
