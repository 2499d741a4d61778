//! install.*: what an operator does to gateways that run.

mod hooks;
pub(super) mod runtime;

/// Where the bands of its checks come from.
const SOURCE: &str = "install.4";
