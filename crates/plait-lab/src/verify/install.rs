//! install.*: from a package to a bond that runs for years.

pub(super) mod arm64;
pub(super) mod boot;
mod debian;
mod hooks;
pub(super) mod image;
mod inventory;
mod machine;
pub(super) mod metrics;
pub(super) mod package;
mod pages;
pub(super) mod runtime;
pub(super) mod upgrade;
pub(super) mod when_down;
pub(super) mod wireshark;
