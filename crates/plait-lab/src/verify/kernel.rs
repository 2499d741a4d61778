//! kernel.*: what is done on a stock kernel without a patch.

pub(super) mod trace;
