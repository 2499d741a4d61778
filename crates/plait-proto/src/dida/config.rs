//! Configuration of DIDA.

use core::fmt;
use core::str::FromStr;

use crate::time::Duration;

/// How long duplicate ACKs are held. `docs/algorithms/holding-time.md` has the formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HoldPolicy {
    /// `off`: nothing is held and nothing masked; packets are only counted.
    Off,
    /// A number of milliseconds: always this long, as in 000's Figs. 9 and 10. Bounded by
    /// [`DidaConfig::hold_max`] alone, so it may cause the sender's timeout.
    Fixed(Duration),
    /// `optimum`: the corrected optimum of 000's equation 5, never below half the round-trip time
    /// nor below the measured delay difference of the attachments, so that it does not stay at 0
    /// for ever. The default.
    #[default]
    Optimum,
    /// `plain-optimum`: the corrected optimum alone. It is 0 until the last congestion event is
    /// seconds ago, and at 0 the retransmissions go on that keep it there.
    PlainOptimum,
    /// `printed`: equation 5 as it is printed, with the wrong sign, bounded by equation 1 as it is
    /// printed.
    Printed,
    /// `net-growth`: the optimum of a variant that weighs a window's loss against its growth.
    NetGrowth,
    /// `delay-difference`: the measured delay difference of the attachments with its jitter; half
    /// the round-trip time before it was measured.
    DelayDifference,
}

impl HoldPolicy {
    /// Every policy with a name of its own: all but [`Self::Fixed`].
    pub const NAMED: [Self; 6] = [
        Self::Off,
        Self::Optimum,
        Self::PlainOptimum,
        Self::Printed,
        Self::NetGrowth,
        Self::DelayDifference,
    ];

    /// The name in configuration and output; `fixed` stands for a number of milliseconds.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fixed(_) => "fixed",
            Self::Optimum => "optimum",
            Self::PlainOptimum => "plain-optimum",
            Self::Printed => "printed",
            Self::NetGrowth => "net-growth",
            Self::DelayDifference => "delay-difference",
        }
    }
}

/// What happens to the SACK option of acknowledgements that are not held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SackHandling {
    /// `ripen`: as `mask`, and after a hold that ended without its gap filled the sender is told
    /// only of what had been received a holding time ago. What lies between is not lost but late,
    /// and a sender with SACK would retransmit all of it. A report of duplicates is told alone.
    /// The default.
    #[default]
    Ripen,
    /// `mask`: taken out as long as the gap is held back, so that it does not betray what is held;
    /// what was masked follows as it was when the hold ends without the gap filled.
    Mask,
    /// `pass`: left alone, as in 000. A sender with SACK sees the gap then, held or not.
    Pass,
}

impl SackHandling {
    /// All.
    pub const ALL: [Self; 3] = [Self::Ripen, Self::Mask, Self::Pass];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ripen => "ripen",
            Self::Mask => "mask",
            Self::Pass => "pass",
        }
    }
}

/// What happens to held duplicates when their gap fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GapFilled {
    /// `discard`: they say nothing that the advancing ACK does not say. The default.
    #[default]
    Discard,
    /// `forward`: they go first, then the advancing ACK: 000's words to the letter. The sender
    /// counts them.
    Forward,
}

impl GapFilled {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Discard, Self::Forward];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Forward => "forward",
        }
    }
}

/// How long a flow is left alone after a hold ended without its gap filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReleasedUntil {
    /// `recovery-point`: until all is acknowledged that had been sent by then, as a sender's
    /// recovery lasts (RFC 6582 §3.2). The default.
    #[default]
    RecoveryPoint,
    /// `next-ack`: until the acknowledgement number advances: 000's words to the letter. Each
    /// further hole of the same loss is held again.
    NextAck,
}

impl ReleasedUntil {
    /// Both.
    pub const ALL: [Self; 2] = [Self::RecoveryPoint, Self::NextAck];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RecoveryPoint => "recovery-point",
            Self::NextAck => "next-ack",
        }
    }
}

/// The name of no choice of an option of DIDA.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown {option} `{name}`: use one of {known}")]
pub struct UnknownName {
    /// What was to be chosen.
    pub option: &'static str,
    /// What was written.
    pub name: String,
    /// What could have been.
    pub known: &'static str,
}

/// `Display` by name; `FromStr` by name among these choices.
macro_rules! named {
    ($type:ty, $all:expr, $option:literal, $known:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                let found = $all.into_iter().find(|choice| choice.name() == name);
                found.ok_or_else(|| UnknownName {
                    option: $option,
                    name: name.to_owned(),
                    known: $known,
                })
            }
        }
    };
}

named!(
    HoldPolicy,
    Self::NAMED,
    "hold",
    "off, optimum, plain-optimum, printed, net-growth and delay-difference, or a number of ms"
);
named!(SackHandling, Self::ALL, "SACK handling", "ripen, mask and pass");
named!(GapFilled, Self::ALL, "handling of filled gaps", "discard and forward");
named!(ReleasedUntil, Self::ALL, "end of a release", "recovery-point and next-ack");

/// Configuration of [`Dida`](super::Dida).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DidaConfig {
    /// How long duplicate ACKs are held.
    pub hold: HoldPolicy,
    /// What happens to SACK options while a gap is held back.
    pub sack: SackHandling,
    /// What happens to held duplicates when their gap fills.
    pub on_gap_filled: GapFilled,
    /// How long a flow is left alone after a hold ended without its gap filled.
    pub released_until: ReleasedUntil,
    /// Longest hold of any policy.
    pub hold_max: Duration,
    /// Flows that are known at a time; the one longest without a packet makes room for another.
    pub flows_max: usize,
    /// Bytes that are kept at a time, of all flows together.
    pub held_bytes_max: usize,
    /// Duplicate ACKs that are held of one flow at a time.
    pub held_packets_per_flow_max: usize,
    /// A flow without a packet for so long is forgotten.
    pub idle: Duration,
    /// Least that the sender's retransmission timeout exceeds its smoothed round-trip time by:
    /// 200 ms in Linux.
    pub rto_floor: Duration,
}

impl Default for DidaConfig {
    fn default() -> Self {
        Self {
            hold: HoldPolicy::default(),
            sack: SackHandling::default(),
            on_gap_filled: GapFilled::default(),
            released_until: ReleasedUntil::default(),
            hold_max: Duration::from_secs(1),
            flows_max: 4096,
            held_bytes_max: 8 << 20,
            held_packets_per_flow_max: 4096,
            idle: Duration::from_secs(300),
            rto_floor: Duration::from_millis(200),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_name() {
        for policy in HoldPolicy::NAMED {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for handling in SackHandling::ALL {
            assert_eq!(handling.to_string().parse(), Ok(handling));
        }
        for handling in GapFilled::ALL {
            assert_eq!(handling.to_string().parse(), Ok(handling));
        }
        for until in ReleasedUntil::ALL {
            assert_eq!(until.to_string().parse(), Ok(until));
        }
    }

    #[test]
    fn errors_name_every_choice() {
        let error = "fixed".parse::<HoldPolicy>().expect_err("a number is written").to_string();
        assert!(HoldPolicy::NAMED.iter().all(|known| error.contains(known.name())), "{error}");
        let error = "x".parse::<SackHandling>().expect_err("no name").to_string();
        assert_eq!(error, "unknown SACK handling `x`: use one of ripen, mask and pass");
        let error = "x".parse::<GapFilled>().expect_err("no name").to_string();
        assert!(GapFilled::ALL.iter().all(|known| error.contains(known.name())), "{error}");
        let error = "x".parse::<ReleasedUntil>().expect_err("no name").to_string();
        assert!(ReleasedUntil::ALL.iter().all(|known| error.contains(known.name())), "{error}");
    }
}
