//! kernel.*: congestion controllers of plait's in the kernel's TCP.

pub(super) mod leftovers;
mod loaded;
mod site;
pub(super) mod subflows;
