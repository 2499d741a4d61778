//! install.*: what a gateway does to the host that it runs on.

pub(super) mod when_down;
