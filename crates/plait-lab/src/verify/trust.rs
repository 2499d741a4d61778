//! trust.*: what customers, strangers and mistakes can do to a gateway.

pub(crate) mod search;
pub(crate) mod set_ups;
