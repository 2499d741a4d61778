//! The program `plait`: its commands and its daemon.
//!
//! - [`cli`]: the commands, one file each
//! - [`config`]: reads and checks the configuration file
//! - [`machine`]: what the machine offers and lacks
//! - [`measure`]: shared by `plait measure` and the gateway that serves it
//! - [`daemon`]: the body of `plait up`
//! - [`steer`]: the body of `plait steer`
//! - [`setup`]: an end of a bond set up on a machine, and undone
//! - [`proxy`]: the body of `plait proxy`
//! - [`control`]: how the outside reaches these while they run
//! - [`output`], [`advice`]: output for people, errors with a remedy
//! - [`holder`]: who has what is in use; [`randomness`]: random numbers from the kernel

#![forbid(unsafe_code)]

mod advice;
mod cli;
mod config;
mod control;
mod daemon;
mod holder;
mod machine;
mod measure;
mod output;
mod proxy;
mod randomness;
mod setup;
mod steer;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
