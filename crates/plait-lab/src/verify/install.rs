//! install.*: from a package to a bond that runs for years.

pub(super) mod boot;
mod debian;
mod inventory;
mod machine;
pub(super) mod package;
