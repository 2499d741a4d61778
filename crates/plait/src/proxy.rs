//! What a proxy between MPTCP and TCP changes on its host. None of it is needed to run one: they
//! make the kernel use all links, and bring clients that know of no proxy.
//!
//! - [`endpoints`]: the kernel's MPTCP endpoints, limits and routes for this host's links
//! - [`rules`]: leads clients' TCP connections into a transparent proxy
//! - [`ip`]: runs the program `ip`
//! - [`kept`]: what is to be undone after a crash

pub(crate) mod endpoints;
mod ip;
mod kept;
pub(crate) mod rules;
#[cfg(test)]
mod testing;
