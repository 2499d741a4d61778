//! Configuration of a connection.

use core::fmt;
use core::str::FromStr;

use plait_proto::congestion::ControllerConfig;

use super::reordering::DupThreshold;
use super::segment::SackOption;
use super::source::Source;

/// Data bytes of a full segment: 1500 bytes at the IP layer, with timestamps.
const SEGMENT_BYTES: u64 = 1448;

/// How losses are found and repaired. In every case but `quic`, proportional rate reduction (RFC
/// 6937) meters the repair and the retransmission timer (RFC 6298) backs it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// `sack3`, `sack-adaptive`: a segment is lost when enough later ones have been selectively
    /// acknowledged (RFC 6675). With a fixed threshold of three, deeper reordering is mistaken for
    /// loss; the adaptive threshold is that of Linux 3.18 to 4.x, before RACK.
    Sack {
        /// Their number.
        dup_threshold: DupThreshold,
    },
    /// `new-reno`: the same without SACK, whatever the receiver reports: three duplicate
    /// acknowledgements mean a loss, and each hole takes a round trip (RFC 6582).
    NewReno,
    /// `rack-tlp`: a segment is lost when one sent enough later has arrived, and a probe repairs
    /// losses at the tail (RFC 8985). What Linux does today.
    RackTlp,
    /// `linux-3.2`: an adaptive threshold up to 127, forward acknowledgement until reordering is
    /// seen, and a window that grows per acknowledgement: Linux of 2012.
    Linux32,
    /// `quic`: a packet is lost when one sent three packets or 9/8 of a round trip later has been
    /// acknowledged (RFC 9002). No rate reduction, and nothing is undone.
    Quic,
}

impl Recovery {
    /// The forms that have a name.
    pub const ALL: [Self; 6] = [
        Self::Sack { dup_threshold: DupThreshold::Fixed(3) },
        Self::Sack { dup_threshold: DupThreshold::Adaptive },
        Self::NewReno,
        Self::RackTlp,
        Self::Quic,
        Self::Linux32,
    ];
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sack { dup_threshold: DupThreshold::Fixed(segments) } => {
                f.pad(&format!("sack{segments}"))
            }
            Self::Sack { dup_threshold: DupThreshold::Adaptive } => f.pad("sack-adaptive"),
            Self::NewReno => f.pad("new-reno"),
            Self::RackTlp => f.pad("rack-tlp"),
            Self::Quic => f.pad("quic"),
            Self::Linux32 => f.pad("linux-3.2"),
        }
    }
}

/// An unknown name of a loss recovery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownRecovery(pub String);

impl fmt::Display for UnknownRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown loss recovery `{}`: use one of sack3, sack-adaptive, new-reno, \
             rack-tlp, quic and linux-3.2",
            self.0
        )
    }
}

impl core::error::Error for UnknownRecovery {}

impl FromStr for Recovery {
    type Err = UnknownRecovery;

    fn from_str(name: &str) -> Result<Self, UnknownRecovery> {
        let known = Self::ALL.into_iter().find(|recovery| recovery.to_string() == name);
        known.ok_or_else(|| UnknownRecovery(name.to_owned()))
    }
}

/// Whether segments are paced or leave as the window opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pacing {
    /// At the controller's rate if it has one, else as the window opens: Linux without the `fq`
    /// queueing discipline.
    #[default]
    Controller,
    /// At the controller's rate if it has one, else at twice the window per srtt in slow start and
    /// 1.2 times it later: Linux with `fq`.
    Always,
}

/// Configuration of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Data bytes of a full segment, at least 1.
    pub segment_bytes: u64,
    /// The congestion controller.
    pub controller: ControllerConfig,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// The most segments to which an adaptive threshold rises: Linux's `tcp_max_reordering`.
    pub reordering_max: u32,
    /// Whether a reduction that proves spurious is undone (RFC 3522, RFC 3708); RFC 6675 as written
    /// never does so. The sender adapts to the reordering in either case.
    pub undo: bool,
    /// Whether segments are paced.
    pub pacing: Pacing,
    /// The data to send.
    pub source: Source,
    /// Whether the window over time is recorded.
    pub trace_window: bool,
}

impl SenderConfig {
    /// Linux's default of `tcp_max_reordering`.
    pub const REORDERING_MAX: u32 = 300;
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES,
            controller: ControllerConfig::default(),
            recovery: Recovery::RackTlp,
            reordering_max: Self::REORDERING_MAX,
            undo: true,
            pacing: Pacing::default(),
            source: Source::Endless,
            trace_window: false,
        }
    }
}

/// When a receiver acknowledges in-order data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Acks {
    /// The first segments at once, then every second one, or after 40 ms: Linux.
    #[default]
    Linux,
    /// Every second one, or after 25 ms: RFC 9000 section 13.2.
    Quic,
}

/// Configuration of a receiver. Its application reads at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// Data bytes of a full segment: every second one is acknowledged at once.
    pub segment_bytes: u64,
    /// The largest window offered, at least two segments; the window grows to it as needed. 65 535
    /// bytes are a connection without window scaling (RFC 7323 section 2).
    pub window_bytes_max: u64,
    /// Whether its window is that of an MPTCP connection, which has the largest instead.
    pub is_subflow: bool,
    /// Whether it reports what arrived beyond a gap, and what arrived twice (RFC 2018, RFC 2883).
    pub sack: bool,
    /// Blocks of a SACK option, the report of a duplicate included; other options may leave less
    /// room than for [`SackOption::BLOCKS_MAX`](super::SackOption::BLOCKS_MAX).
    pub sack_blocks_max: usize,
    /// When acknowledgements leave.
    pub acks: Acks,
    /// Whether it is the receiver of Linux 6.18: what arrives beyond a gap may be reported up to a
    /// millisecond late, with others, once three duplicates have left (since 4.18), and its window
    /// becomes twice what is read per round trip, without 16 segments more (since 6.16).
    pub is_of_today: bool,
}

impl ReceiverConfig {
    /// Half of the 6 MiB up to which Linux lets a receive buffer grow, as with its
    /// `tcp_adv_win_scale` 1.
    pub const WINDOW_BYTES_MAX: u64 = 3 * 1024 * 1024;
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES,
            window_bytes_max: Self::WINDOW_BYTES_MAX,
            is_subflow: false,
            sack: true,
            sack_blocks_max: SackOption::BLOCKS_MAX,
            acks: Acks::default(),
            is_of_today: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_name() {
        for recovery in Recovery::ALL {
            assert_eq!(recovery.to_string().parse(), Ok(recovery));
        }
        let error = "sack".parse::<Recovery>().unwrap_err().to_string();
        assert!(Recovery::ALL.iter().all(|known| error.contains(&known.to_string())), "{error}");
    }
}
