//! The program `plait`: its commands and its daemon.
//!
//! - [`cli`]: the commands, one file each
//! - [`config`]: reads and checks the configuration file
//! - [`machine`]: what the machine offers and lacks
//! - [`measure`]: shared by `plait measure` and the gateway that serves it
//! - [`daemon`]: the body of `plait up`
//! - [`steer`]: the body of `plait steer`
//! - [`proxy`]: what a proxy for MPTCP changes on its host
//! - [`control`]: how the outside reaches either while it runs
//! - [`output`], [`advice`]: output for people, errors with a remedy

#![forbid(unsafe_code)]

mod advice;
mod cli;
mod config;
mod control;
mod daemon;
mod machine;
mod measure;
mod output;
#[cfg_attr(not(test), expect(dead_code, reason = "its commands come with the proxy itself"))]
mod proxy;
mod steer;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
