//! A radio's counters.

use plait_proto::time::Duration;

/// Counts since the medium was made, both directions together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AirCounters {
    /// Time of its exchanges on the air: preamble, data, block acknowledgement.
    pub on_air: Duration,
    /// Frames that it sent.
    pub frames: u64,
    /// Subframes in them, one packet each.
    pub subframes: u64,
    /// Subframes that did not arrive.
    pub lost_subframes: u64,
    /// Numbers of the subframes' schemes, added up.
    pub mcs_total: u64,
    /// Times that it waited for the end of a frame of another radio.
    pub deferrals: u64,
}
