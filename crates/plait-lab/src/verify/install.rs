//! install.*: from a package to a bond that runs for years.

pub(super) mod boot;
mod debian;
mod hooks;
mod inventory;
mod machine;
pub(super) mod metrics;
pub(super) mod package;
pub(super) mod runtime;
pub(super) mod when_down;
pub(super) mod wireshark;
