//! trust.*: what peers, strangers and faults of one's own may not do.

pub(super) mod hostile_work;
pub(super) mod neighbour;
