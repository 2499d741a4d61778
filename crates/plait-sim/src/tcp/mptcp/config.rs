//! Configuration of a connection over several subflows.

use super::scheduler::SchedulerName;
use crate::tcp::config::{ReceiverConfig, SenderConfig};

/// A subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubflowConfig {
    /// Whether it carries data only while no other can (RFC 8684 section 3.3.8).
    pub is_backup: bool,
}

/// Configuration of a connection's two ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MptcpConfig {
    /// The subflows, one at least.
    pub subflows: Vec<SubflowConfig>,
    /// The one that opens the connection; the others join it.
    pub primary: usize,
    /// Which subflow carries what.
    pub scheduler: SchedulerName,
    /// Whether a full window is answered with opportunistic retransmission and a penalty for the
    /// subflow that fills it (Raiciu et al., NSDI 2012, section 4.2).
    pub penalise: bool,
    /// Each subflow's sender; its source is the connection's.
    pub sender: SenderConfig,
    /// Each subflow's receiver. Its largest window is that of the connection.
    pub receiver: ReceiverConfig,
    /// The most that the sender holds beyond what the receiver has acknowledged, as
    /// `SO_SNDBUF` sets it; `None` for a buffer that grows with the windows, as Linux's does.
    pub send_buffer_bytes: Option<u64>,
}
