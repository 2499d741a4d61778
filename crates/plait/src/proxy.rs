//! The proxy between MPTCP and TCP, and what it changes on its host.
//!
//! - [`config`]: its file; [`run`]: the body of `plait proxy run`

pub(crate) mod config;
mod run;

pub(crate) use run::{Report, run};
