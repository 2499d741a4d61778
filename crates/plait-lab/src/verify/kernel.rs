//! kernel.*: what is done on a stock kernel without a patch.

pub(super) mod controllers;
pub(super) mod emulator;
pub(super) mod leftovers;
mod loaded;
mod site;
pub(super) mod subflows;
pub(super) mod tables;
pub(super) mod trace;
