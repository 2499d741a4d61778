//! The plait protocol: sans-IO, deterministic. No clock, no socket, no thread, no unsafe.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod scheduler;
pub mod seq;
pub mod time;
pub mod units;
