//! promise.*: the bond is never slower than its best link.

pub(super) mod falling;
pub(super) mod ladder;
pub(super) mod latency;
pub(super) mod lossy;
pub(super) mod measure;
mod rounds;
pub(super) mod sum;
