//! Names of the controllers, and what configures them.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    Balia, Controller, Cubic, CubicLinux, Edinburgh, EdinburghConfig, Fixed, Gauge, Illinois, Lia,
    NewReno, Olia, Start, WhiteHaul, WhiteHaulConfig,
};

/// A congestion controller, by its field's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// `new-reno`: grows by one segment per round trip and halves the window at a loss (RFC 5681,
    /// RFC 6582). The yardstick of the others; slow to fill long fat paths.
    NewReno,
    /// `cubic`: grows by a cubic function of the time since the last loss, at first back to where
    /// that loss was, then beyond, and backs off to 0.7 (RFC 9438). Never slower than NewReno would
    /// be. What most TCP senders use. The default.
    #[default]
    Cubic,
    /// `cubic-linux`: CUBIC as Linux computes it up to 6.18, in whole segments and by RFC 8312. For
    /// senders that stand for a kernel's.
    CubicLinux,
    /// `gauge`: plait's own. Sends at the rate at which data arrives, probes for more, keeps the
    /// queue short. Descends from BBR (draft-ietf-ccwg-bbr). Bears random loss and deep buffers.
    Gauge,
    /// `lia`: coupled: the paths of a bond, or subflows of a connection, together take no more from
    /// a shared bottleneck than one NewReno would (RFC 6356). Alone it is NewReno, as are the other
    /// coupled ones.
    Lia,
    /// `olia`: coupled: growth by the paths' rates, moved to good paths with small windows (Khalili
    /// and others, 2012).
    Olia,
    /// `balia`: coupled: between the two (Peng and others, 2016).
    Balia,
    /// `illinois`: grows fast while there is no queue, and slowly near the last one's length, as
    /// Linux has it (Liu and others, 2008). For long fat paths.
    Illinois,
    /// `whitehaul`: Illinois changed for a radio link of known capacity, as its code behaves,
    /// faults included (Li, 2023); each can be repaired by its [`Repair`](super::Repair). Research
    /// only: WO2021250377A1 / US20230239702 claims its use over several paths.
    #[serde(rename = "whitehaul")]
    WhiteHaul,
    /// `edinburgh`: WhiteHaul's growth with HyStart++ and without its faults (Li, 2023). Research
    /// only, for the same reason.
    Edinburgh,
    /// `fixed`: a constant window, whatever happens. For tests, and for links whose capacity is
    /// known and not shared.
    Fixed,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 11] = [
        Self::NewReno,
        Self::Cubic,
        Self::CubicLinux,
        Self::Gauge,
        Self::Lia,
        Self::Olia,
        Self::Balia,
        Self::Illinois,
        Self::WhiteHaul,
        Self::Edinburgh,
        Self::Fixed,
    ];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "new-reno",
            Self::Cubic => "cubic",
            Self::CubicLinux => "cubic-linux",
            Self::Gauge => "gauge",
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
            Self::Illinois => "illinois",
            Self::WhiteHaul => "whitehaul",
            Self::Edinburgh => "edinburgh",
            Self::Fixed => "fixed",
        }
    }

    /// The slow start that it has unless told otherwise, in Linux too where Linux has it; `None`
    /// for those without one.
    pub const fn default_slow_start(self) -> Option<SlowStart> {
        match self {
            Self::Cubic | Self::CubicLinux => Some(SlowStart::HyStart),
            Self::NewReno
            | Self::Lia
            | Self::Olia
            | Self::Balia
            | Self::Illinois
            | Self::WhiteHaul => Some(SlowStart::Standard),
            Self::Edinburgh => Some(SlowStart::HyStartPlusPlus),
            Self::Gauge | Self::Fixed => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no congestion controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "unknown congestion controller `{0}`: use one of new-reno, cubic, cubic-linux, gauge, lia, \
     olia, balia, illinois, whitehaul, edinburgh and fixed"
)]
pub struct UnknownAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known.ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

/// How the first slow start may end before a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStart {
    /// `standard`: it does not; only a loss ends it (RFC 5681). Overshoots a queue by up to a whole
    /// window.
    Standard,
    /// `hystart`: ends when the round-trip time rises, or when a train of closely spaced
    /// acknowledgements spans half of it, as in Linux's CUBIC (Ha and Rhee, 2011). Quick, but
    /// jitter may end it far too early.
    HyStart,
    /// `hystart++`: when the round-trip time rises, grows a quarter as fast for five rounds, and
    /// goes back if it was jitter (RFC 9406).
    HyStartPlusPlus,
}

impl SlowStart {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Standard, Self::HyStart, Self::HyStartPlusPlus];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::HyStart => "hystart",
            Self::HyStartPlusPlus => "hystart++",
        }
    }
}

impl fmt::Display for SlowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no form of slow start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown slow start `{0}`: use one of standard, hystart and hystart++")]
pub struct UnknownSlowStart(pub String);

impl FromStr for SlowStart {
    type Err = UnknownSlowStart;

    fn from_str(name: &str) -> Result<Self, UnknownSlowStart> {
        let known = Self::ALL.into_iter().find(|form| form.name() == name);
        known.ok_or_else(|| UnknownSlowStart(name.to_owned()))
    }
}

/// Which controller to use, and its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerConfig {
    /// The controller.
    pub algorithm: Algorithm,
    /// Its slow start; absent: [`Algorithm::default_slow_start`].
    pub slow_start: Option<SlowStart>,
    /// Window of `fixed`; without effect on the others.
    pub fixed_window_bytes: u64,
    /// Parameters of `whitehaul`; without effect on the others.
    pub whitehaul: WhiteHaulConfig,
    /// Parameters of `edinburgh`; without effect on the others.
    pub edinburgh: EdinburghConfig,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            slow_start: None,
            fixed_window_bytes: 256 * 1024,
            whitehaul: WhiteHaulConfig::default(),
            edinburgh: EdinburghConfig::default(),
        }
    }
}

impl ControllerConfig {
    /// A new controller.
    pub fn build(&self, start: Start) -> Box<dyn Controller> {
        let own = || self.algorithm.default_slow_start();
        let slow_start = self.slow_start.or_else(own).unwrap_or(SlowStart::Standard);
        match self.algorithm {
            Algorithm::NewReno => Box::new(NewReno::new(start, slow_start)),
            Algorithm::Cubic => Box::new(Cubic::new(start, slow_start)),
            Algorithm::CubicLinux => Box::new(CubicLinux::new(start, slow_start)),
            Algorithm::Gauge => Box::new(Gauge::new(start)),
            Algorithm::Lia => Box::new(Lia::new(start, slow_start)),
            Algorithm::Olia => Box::new(Olia::new(start, slow_start)),
            Algorithm::Balia => Box::new(Balia::new(start, slow_start)),
            Algorithm::Illinois => Box::new(Illinois::new(start, slow_start)),
            Algorithm::WhiteHaul => Box::new(WhiteHaul::new(start, slow_start, self.whitehaul)),
            Algorithm::Edinburgh => Box::new(Edinburgh::new(start, slow_start, self.edinburgh)),
            Algorithm::Fixed => Box::new(Fixed::new(self.fixed_window_bytes)),
        }
    }
}

impl From<Algorithm> for ControllerConfig {
    fn from(algorithm: Algorithm) -> Self {
        Self { algorithm, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        for form in SlowStart::ALL {
            assert_eq!(form.to_string().parse(), Ok(form));
        }
        assert_eq!("reno".parse::<Algorithm>(), Err(UnknownAlgorithm("reno".into())));
        assert_eq!("hybrid".parse::<SlowStart>(), Err(UnknownSlowStart("hybrid".into())));
    }

    #[test]
    fn errors_name_every_choice() {
        let error = UnknownAlgorithm("x".into()).to_string();
        assert!(Algorithm::ALL.iter().all(|known| error.contains(known.name())), "{error}");
        let error = UnknownSlowStart("x".into()).to_string();
        assert!(SlowStart::ALL.iter().all(|known| error.contains(known.name())), "{error}");
    }
}
