//! A model of MPTCP: one connection with data in one direction over several TCP subflows (RFC
//! 8684), without I/O and without a clock. Each subflow is the TCP model; here is what lies above:
//! data sequence numbers, a window that all subflows share, and who sends what.
//! `docs/algorithms/mptcp.md` has the rules, their sources and the limits.
//!
//! [`MptcpConnection`] models both ends, and has the core's contract: `handle_segment` and
//! `handle_timeout` are the input; after each of them call `poll_transmit` until it returns `None`,
//! then `poll_deliver`, and `poll_timeout` for the time of the next call. Times given must not
//! decrease.

mod config;
mod connection;
mod data_sequence;
mod mapping;
mod penalty;
mod receiver;
mod reinjection;
mod scheduler;
mod segment;
mod send_buffer;
mod subflow;

#[cfg(test)]
mod tests;

pub use config::{MptcpConfig, SubflowConfig};
pub use connection::{MptcpConnection, MptcpCounters};
pub use scheduler::{LocalQueue, SchedulerName, UnknownScheduler};
pub use segment::{MptcpSegment, Toward};
pub use subflow::SubflowStatus;
