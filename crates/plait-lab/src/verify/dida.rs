//! dida.*: paper 000's steering node and the holding of duplicate ACKs.

pub(super) mod download;
