//! The measuring application: a page that plays video and measures what its viewer sees, the server
//! of page and clips, and runs in headless Chromium (paper 004).

use std::io;
use std::path::PathBuf;

use thiserror::Error;

mod app;
mod browser;
mod catalogue;
mod clips;
mod command;
mod given;
mod play;
mod record;
mod server;
mod youtube;

pub(crate) mod selftest;

pub(crate) use command::run;
pub(crate) use given::{Prepared, check_player, prepare};
pub(crate) use play::{Opened, POLL, Player};
pub(crate) use record::Run;
pub(crate) use server::{Folders, Limits, Server};

/// Why the measuring application cannot be had.
#[derive(Debug, Error)]
pub(crate) enum QoeError {
    #[error(
        "this lab was built without the page; run scripts/qoe-app, and build it again: \
         scripts/cargo build --locked -p plait-lab (make build does both)"
    )]
    NotBuilt,
    #[error("{} has no catalogue of clips; make one: plait-lab qoe clips", folder.display())]
    NoCatalogue { folder: PathBuf, source: io::Error },
    #[error("{} is no catalogue; remove it, and run plait-lab qoe clips", path.display())]
    BadCatalogue { path: PathBuf, source: serde_json::Error },
    #[error("the clips have no place: neither XDG_CACHE_HOME nor HOME is set; name a folder")]
    NoCache,
    #[error("{} cannot be written; name another folder", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot start ffmpeg; install it (Debian, Ubuntu: apt-get install ffmpeg)")]
    NoFfmpeg { source: io::Error },
    #[error("ffmpeg failed: {said}")]
    Ffmpeg { said: String },
    #[error("{}: no key for YouTube's Data API can be read: {why}", path.display())]
    Key { path: PathBuf, why: String },
    #[error(
        "a key for YouTube is handed to every client, and {0} is not of this machine alone; \
         listen on 127.0.0.1"
    )]
    KeyForAll(std::net::SocketAddr),
    #[error("cannot listen on {address}; choose another with --listen")]
    Listen { address: std::net::SocketAddr, source: io::Error },
}

/// Why a clip was not played.
#[derive(Debug, Error)]
pub(crate) enum PlayError {
    #[error(
        "{} is missing; install it (Debian, Ubuntu: apt-get install chromium)",
        browser::CHROMIUM
    )]
    NoChromium,
    #[error("cannot start Chromium: {0}")]
    Start(#[source] io::Error),
    #[error("Chromium ended: {said}")]
    Gone { said: String },
    #[error("Chromium does not answer to {method}")]
    Deaf { method: String },
    #[error("{url} cannot be opened: {why}; does plait-lab qoe serve run there?")]
    Unreachable { url: String, why: String },
    #[error("the page says: {0}")]
    Page(String),
    #[error("{what} did not come within {limit_s} s")]
    Late { what: String, limit_s: u64 },
    #[error("{0} is no address that a browser can open; use http://HOST:PORT/")]
    Address(String),
    #[error(
        "Chromium asks no proxy for a page of its own machine; serve it at another address, and \
         name that with --url"
    )]
    ProxyForLoopback,
    #[error("the page's record is wrong: {0}")]
    Record(#[from] record::NoRecord),
}
