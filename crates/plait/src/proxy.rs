//! The proxy between MPTCP and TCP, and what it changes on its host. None of the changes is needed
//! to run one: they make the kernel use all links, and bring clients that know of no proxy.
//!
//! - [`config`]: its file, and what that says of the host
//! - [`mod@run`]: the body of `plait proxy run`
//! - [`endpoints`]: the kernel's MPTCP endpoints, limits and routes for this host's links
//! - [`rules`]: leads clients' TCP connections into a transparent proxy
//! - [`ip`]: runs the program `ip`
//! - [`kept`]: what is to be undone after a crash

pub(crate) mod config;
pub(crate) mod endpoints;
mod ip;
mod kept;
pub(crate) mod rules;
mod run;
#[cfg(test)]
mod testing;

pub(crate) use run::{Report, files_for, run};
