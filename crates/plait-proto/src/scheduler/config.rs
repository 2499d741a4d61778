//! Names of the algorithms, and what configures them.

use core::fmt;
use core::str::FromStr;

use super::{
    AdaptiveWrr, AdaptiveWrrConfig, Blest, BlestConfig, CheapestFirst, EarliestDelivery,
    EarliestDeliveryConfig, Ecf, EcfConfig, Fixed, InverseRtt, MinRtt, Redundant, RoundRobin,
    Scheduler,
};
use crate::congestion::{self, ControllerConfig};

/// A scheduler, by its field's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// `adaptive-wrr`: paper 002's weighted round robin. The cheapest path has a constant weight;
    /// loss reports raise the weight of the next dearer one (AWI, IWI), and loss-free time lowers
    /// it again (DWD). It fills a cheap line first and overflows to a dear one, at the price of
    /// some loss by which it finds the cheap line's capacity.
    AdaptiveWrr,
    /// `fixed`: weighted round robin over the paths' configured weights. Right when the ratio of
    /// the links' rates is known and steady; too much on one link wastes the others.
    Fixed,
    /// `round-robin`: the same number of packets on every path. Right for equal links, and a
    /// baseline.
    RoundRobin,
    /// `min-rtt`: without congestion controllers, the path on which the next packet would come back
    /// first, judged by base round-trip time, bytes in flight and delivery rate; with them, the
    /// lowest smoothed round-trip time among the paths that have room, as Linux's MPTCP does it.
    /// Needs no hand-set rate; it fills the quickest path and spills over.
    MinRtt,
    /// `redundant`: a copy of every packet on every path. The rate is that of the slowest link,
    /// delay and loss are those of the best; for little traffic that must not be lost.
    Redundant,
    /// `earliest-delivery`: plait's own. Bulk traffic fills every path whose rate outweighs the
    /// delay it adds, the earliest delivery first; interactive packets take the path on which they
    /// arrive first, and a copy goes over another while that path is bad. A path that has become
    /// late or lossy is left at once, measured with copies and taken back step by step. Price
    /// classes are filled in their order. The default.
    #[default]
    EarliestDelivery,
    /// `cheapest-first`: the cheapest price class as long as it keeps up, dearer ones for what it
    /// cannot carry; within a class the earliest delivery. For a metered link beside a flat one.
    CheapestFirst,
    /// `blest`: the quickest path, and a slower one only if the bond's send window would last until
    /// the slower one has delivered. Keeps unequal paths from blocking each other; may leave a
    /// slow path unused.
    Blest,
    /// `ecf`: the quickest path, and a slower one only if what waits would not be through earlier
    /// by waiting for the quickest. For transfers with an end: pages, chunks of video.
    Ecf,
    /// `inverse-rtt`: paper 000's RTT-dynamic steering: packets in inverse proportion to the paths'
    /// round-trip times. Needs no hand-set rate; right as far as the slower link is the one with
    /// less capacity.
    InverseRtt,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 10] = [
        Self::AdaptiveWrr,
        Self::Fixed,
        Self::RoundRobin,
        Self::MinRtt,
        Self::Redundant,
        Self::EarliestDelivery,
        Self::CheapestFirst,
        Self::Blest,
        Self::Ecf,
        Self::InverseRtt,
    ];

    /// The controller of each path unless the configuration says otherwise: none for those that
    /// share packets out by weights or reports (002, 000), and for `min-rtt`, which knows both.
    pub fn default_congestion(self) -> Option<ControllerConfig> {
        match self {
            Self::AdaptiveWrr
            | Self::Fixed
            | Self::RoundRobin
            | Self::Redundant
            | Self::MinRtt
            | Self::InverseRtt => None,
            Self::EarliestDelivery | Self::CheapestFirst | Self::Blest | Self::Ecf => {
                Some(congestion::Algorithm::Gauge.into())
            }
        }
    }

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdaptiveWrr => "adaptive-wrr",
            Self::Fixed => "fixed",
            Self::RoundRobin => "round-robin",
            Self::MinRtt => "min-rtt",
            Self::Redundant => "redundant",
            Self::EarliestDelivery => "earliest-delivery",
            Self::CheapestFirst => "cheapest-first",
            Self::Blest => "blest",
            Self::Ecf => "ecf",
            Self::InverseRtt => "inverse-rtt",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no scheduler.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "unknown scheduler `{0}`: use one of adaptive-wrr, fixed, round-robin, min-rtt, redundant, \
     earliest-delivery, cheapest-first, blest, ecf and inverse-rtt"
)]
pub struct UnknownAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known.ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

/// Which scheduler to use, and the parameters of those that have any.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SchedulerConfig {
    /// The scheduler.
    pub algorithm: Algorithm,
    /// Parameters of `adaptive-wrr`; without effect on the others.
    pub adaptive_wrr: AdaptiveWrrConfig,
    /// Parameters of `earliest-delivery`; without effect on the others.
    pub earliest_delivery: EarliestDeliveryConfig,
    /// Parameters of `blest`; without effect on the others.
    pub blest: BlestConfig,
    /// Parameters of `ecf`; without effect on the others.
    pub ecf: EcfConfig,
}

impl SchedulerConfig {
    /// A new scheduler.
    pub fn build(&self) -> Box<dyn Scheduler> {
        match self.algorithm {
            Algorithm::AdaptiveWrr => Box::new(AdaptiveWrr::new(self.adaptive_wrr)),
            Algorithm::Fixed => Box::new(Fixed::default()),
            Algorithm::RoundRobin => Box::new(RoundRobin::default()),
            Algorithm::MinRtt => Box::new(MinRtt::default()),
            Algorithm::Redundant => Box::new(Redundant),
            Algorithm::EarliestDelivery => Box::new(EarliestDelivery::new(self.earliest_delivery)),
            Algorithm::CheapestFirst => Box::new(CheapestFirst::default()),
            Algorithm::Blest => Box::new(Blest::new(self.blest)),
            Algorithm::Ecf => Box::new(Ecf::new(self.ecf)),
            Algorithm::InverseRtt => Box::new(InverseRtt::default()),
        }
    }
}

impl From<Algorithm> for SchedulerConfig {
    fn from(algorithm: Algorithm) -> Self {
        Self { algorithm, ..Self::default() }
    }
}

impl FromStr for SchedulerConfig {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        name.parse::<Algorithm>().map(Self::from)
    }
}

impl fmt::Display for SchedulerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.algorithm.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
            assert_eq!(algorithm.name().parse(), Ok(SchedulerConfig::from(algorithm)));
        }
        assert_eq!("minrtt".parse::<Algorithm>(), Err(UnknownAlgorithm("minrtt".into())));
        assert_eq!(SchedulerConfig::default().algorithm, Algorithm::EarliestDelivery);
    }

    #[test]
    fn the_error_names_every_algorithm() {
        let error = UnknownAlgorithm("x".into()).to_string();
        for algorithm in Algorithm::ALL {
            assert!(error.contains(algorithm.name()), "{algorithm}");
        }
    }
}
