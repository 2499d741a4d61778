//! survive.*: a bond that survives bad links, restarts and long times.

pub(super) mod idle;
pub(super) mod swarm;
