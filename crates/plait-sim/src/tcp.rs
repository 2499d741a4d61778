//! A model of TCP: one connection with data in one direction, segment by segment, without I/O and
//! without a clock. It exists because a kernel has only one loss recovery, while a comparison over
//! a reordering path needs several; `docs/algorithms/tcp-model.md` lists its limits.
//!
//! [`TcpSender`] and [`TcpReceiver`] have the core's contract: `handle_segment` and
//! `handle_timeout` are the input; after each of them call `poll_transmit` until it returns `None`
//! (otherwise the receiver's duplicate acknowledgements are lost), and `poll_timeout` for the time
//! of the next call. Times given must not decrease.

mod config;
mod delivery_rate;
mod linux_3_2;
pub mod mptcp;
mod new_reno;
mod offload;
mod pacing;
mod prr;
mod quic;
mod rack;
mod ranges;
mod receiver;
mod reordering;
mod rto;
mod scoreboard;
mod segment;
mod sender;
mod source;
mod tail_loss;
mod undo;
mod window_use;

#[cfg(test)]
mod tests;

pub use config::{Acks, Pacing, ReceiverConfig, Recovery, SenderConfig, UnknownRecovery};
pub use receiver::{ReceiverCounters, TcpReceiver};
pub use reordering::DupThreshold;
pub use segment::{Flags, SackOption, Segment, SeqRange};
pub use sender::{SenderCounters, TcpSender, WindowPoint};
pub use source::Source;

use plait_proto::time::Instant;

/// The clock of the timestamps option.
const fn timestamp_ms(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}
