//! install.*: what an operator lives with.

pub(super) mod metrics;
pub(super) mod wireshark;
