//! The command line of the measuring application.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct QoeArgs {
    #[command(subcommand)]
    pub(crate) command: QoeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QoeCommand {
    /// Serve the page and the clips until ended.
    Serve(ServeArgs),
    /// Make clips with ffmpeg: 66 s, with the sizes of paper 004; what is there already stays.
    Clips(ClipsArgs),
    /// Play a clip in headless Chromium, and print what its viewer saw.
    ///
    /// Without --url a server of its own is started on this machine.
    Play(PlayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; with 0.0.0.0 other machines can play, too.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: SocketAddr,
    /// The folder of clips [default: plait-lab/clips in the user's cache].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Where runs are kept [default: runs/ in the folder of clips].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) runs_folder: Option<PathBuf>,
    /// A file with a key for YouTube's Data API: the page then finds and plays its videos, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) youtube_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ClipsArgs {
    /// Where to [default: plait-lab/clips in the user's cache].
    pub(crate) folder: Option<PathBuf>,
    /// A small clip of 8 s instead: for trying things out, and for tests.
    #[arg(long)]
    pub(crate) short: bool,
    /// Pictures of 3840x2160 and 2560x1440, instead of small ones padded to the same bytes: then
    /// the machine must decode them in time.
    #[arg(long)]
    pub(crate) real_size: bool,
    /// How pictures are coded.
    #[arg(long, value_enum, default_value_t = Coding::H264)]
    pub(crate) codec: Coding,
    /// Length of a segment, in seconds: 2 or 4.
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = segment)]
    pub(crate) segment: u32,
}

/// How pictures are coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Coding {
    H264,
    Vp9,
}

fn segment(text: &str) -> Result<u32, &'static str> {
    match text {
        "2" => Ok(2),
        "4" => Ok(4),
        _ => Err("2 or 4"),
    }
}

/// How manifests are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Protocol {
    Dash,
    Hls,
}

impl Protocol {
    /// As the page's address has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dash => "dash",
            Self::Hls => "hls",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// The page of a running `plait-lab qoe serve`, such as http://192.0.2.7:8090/.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The folder of clips of the server that is started without --url [default: plait-lab/clips in
    /// the user's cache].
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    pub(crate) catalogue: Option<PathBuf>,
    /// The clip, by its id.
    #[arg(long, default_value = "paper-2s")]
    pub(crate) clip: String,
    /// Play this quality, such as 4K, all the time [default: adaptive].
    #[arg(long, value_name = "NAME", conflicts_with = "adaptive")]
    pub(crate) quality: Option<String>,
    /// Let the player choose the quality, and change it.
    #[arg(long)]
    pub(crate) adaptive: bool,
    /// Fetch everything through this proxy.
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Play so many times, one after the other.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Which manifest.
    #[arg(long, value_enum, default_value_t = Protocol::Dash)]
    pub(crate) protocol: Protocol,
    /// Begin, and go on after a stall, with so many seconds of buffer.
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = goal)]
    pub(crate) rebuffering_goal: f64,
    /// Fetch nothing beyond so many seconds of buffer.
    #[arg(long, value_name = "S", default_value_t = 120.0, value_parser = goal)]
    pub(crate) buffering_goal: f64,
    /// End a run after so many seconds: its record is then of a clip that was cut.
    #[arg(long, value_name = "S", default_value_t = 400,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) limit: u64,
}

fn goal(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number from 0 to 600"),
    }
}
