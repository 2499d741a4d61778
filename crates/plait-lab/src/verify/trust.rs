//! trust.*: what customers, strangers and mistakes can do to a gateway.

pub(super) mod faults;
pub(super) mod hostile_work;
pub(super) mod neighbour;
pub(crate) mod search;
pub(crate) mod set_ups;
