//! Policies: the bond's schedulers that make sense at a steering node, and steering by capacity.

use core::fmt;
use core::str::FromStr;

use crate::scheduler::{Algorithm, Scheduler, SchedulerConfig};

/// Which attachment gets how much: one of the bond's schedulers, by its name, or `capacity`.
///
/// A steering node has no congestion controllers, no queue of its own and nobody behind it who
/// reports losses or removes copies, so only the schedulers that need none of these make sense.
/// `capacity` is the node's own: it reads the clients' acknowledgements instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// `fixed`: in proportion to the attachments' weights; 000's fixed ratios.
    Fixed,
    /// `inverse-rtt`: in proportion to one over the round-trip time, as 000's authors do it. The
    /// default: it needs no number typed in by hand.
    #[default]
    InverseRtt,
    /// `round-robin`: the same number of packets over each.
    RoundRobin,
    /// `min-rtt`: the attachment with the shortest round trip, its queue included.
    MinRtt,
    /// `cheapest-first`: the attachment of the lowest price while it answers.
    CheapestFirst,
    /// `capacity`: the attachment by which a packet arrives first, as far as the acknowledgements
    /// and SACK blocks tell that pass the node. What nobody has taught goes by the weights.
    Capacity,
}

/// Why a name is no policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPolicy {
    /// No scheduler has this name.
    #[error(
        "unknown policy `{0}`: use one of fixed, inverse-rtt, round-robin, min-rtt, \
         cheapest-first and capacity"
    )]
    Unknown(String),
    /// A scheduler of the bond that cannot work at a steering node.
    #[error(
        "the scheduler `{algorithm}` is no policy of a steering node: {why}; use one of fixed, \
         inverse-rtt, round-robin, min-rtt, cheapest-first and capacity"
    )]
    Refused {
        /// The scheduler.
        algorithm: Algorithm,
        /// What it lacks.
        why: &'static str,
    },
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 6] = [
        Self::Fixed,
        Self::InverseRtt,
        Self::RoundRobin,
        Self::MinRtt,
        Self::CheapestFirst,
        Self::Capacity,
    ];

    /// The policy's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            _ => self.algorithm().name(),
        }
    }

    /// The scheduler behind it; for `capacity` the one for what nobody has taught.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Fixed | Self::Capacity => Algorithm::Fixed,
            Self::InverseRtt => Algorithm::InverseRtt,
            Self::RoundRobin => Algorithm::RoundRobin,
            Self::MinRtt => Algorithm::MinRtt,
            Self::CheapestFirst => Algorithm::CheapestFirst,
        }
    }

    /// Whether it decides by round-trip times.
    pub const fn needs_round_trips(self) -> bool {
        matches!(self, Self::InverseRtt | Self::MinRtt)
    }

    /// Whether it looks at the bytes on their way.
    pub(super) const fn minds_load(self) -> bool {
        matches!(self, Self::MinRtt | Self::CheapestFirst)
    }

    pub(super) fn build(self) -> Box<dyn Scheduler> {
        SchedulerConfig::from(self.algorithm()).build()
    }
}

impl TryFrom<Algorithm> for Policy {
    type Error = NoPolicy;

    fn try_from(algorithm: Algorithm) -> Result<Self, NoPolicy> {
        let refused = |why| Err(NoPolicy::Refused { algorithm, why });
        match algorithm {
            Algorithm::Fixed => Ok(Self::Fixed),
            Algorithm::InverseRtt => Ok(Self::InverseRtt),
            Algorithm::RoundRobin => Ok(Self::RoundRobin),
            Algorithm::MinRtt => Ok(Self::MinRtt),
            Algorithm::CheapestFirst => Ok(Self::CheapestFirst),
            Algorithm::AdaptiveWrr => {
                refused("its weights follow loss reports, and clients send none")
            }
            Algorithm::Redundant => refused("a client has nobody that removes the copies"),
            Algorithm::EarliestDelivery => {
                refused("it fills paths by their congestion windows, and attachments have none")
            }
            Algorithm::Blest | Algorithm::Ecf => {
                refused("it lets packets wait for a window, and the node has no queue for them")
            }
        }
    }
}

impl FromStr for Policy {
    type Err = NoPolicy;

    fn from_str(name: &str) -> Result<Self, NoPolicy> {
        if name == Self::Capacity.name() {
            return Ok(Self::Capacity);
        }
        let algorithm: Algorithm = name.parse().map_err(|_| NoPolicy::Unknown(name.to_owned()))?;
        Self::try_from(algorithm)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_name() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("wifi".parse::<Policy>(), Err(NoPolicy::Unknown("wifi".into())));
        let error = NoPolicy::Unknown("wifi".into()).to_string();
        assert!(Policy::ALL.iter().all(|policy| error.contains(policy.name())), "{error}");
    }

    #[test]
    fn every_scheduler_is_a_policy_or_refused_with_its_reason() {
        for algorithm in Algorithm::ALL {
            match Policy::try_from(algorithm) {
                Ok(policy) => assert_eq!(policy.algorithm(), algorithm),
                Err(refused) => {
                    let text = refused.to_string();
                    assert!(text.contains(algorithm.name()), "{text}");
                }
            }
        }
    }
}
