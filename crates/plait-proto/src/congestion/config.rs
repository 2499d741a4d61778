//! Names of the controllers, and what configures them.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Controller, Cubic, CubicLinux, Fixed, Gauge, NewReno, Start};

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
    /// `fixed`: a constant window, whatever happens. For tests, and for links whose capacity is
    /// known and not shared.
    Fixed,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] =
        [Self::NewReno, Self::Cubic, Self::CubicLinux, Self::Gauge, Self::Fixed];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "new-reno",
            Self::Cubic => "cubic",
            Self::CubicLinux => "cubic-linux",
            Self::Gauge => "gauge",
            Self::Fixed => "fixed",
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
    "unknown congestion controller `{0}`: use one of new-reno, cubic, cubic-linux, gauge and fixed"
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
    /// Its slow start; absent: `hystart` for `cubic` and `cubic-linux`, `standard` for `new-reno`,
    /// as in Linux.
    pub slow_start: Option<SlowStart>,
    /// Window of `fixed`; without effect on the others.
    pub fixed_window_bytes: u64,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self { algorithm: Algorithm::default(), slow_start: None, fixed_window_bytes: 256 * 1024 }
    }
}

impl ControllerConfig {
    /// A new controller.
    pub fn build(&self, start: Start) -> Box<dyn Controller> {
        match self.algorithm {
            Algorithm::NewReno => {
                Box::new(NewReno::new(start, self.slow_start.unwrap_or(SlowStart::Standard)))
            }
            Algorithm::Cubic => {
                Box::new(Cubic::new(start, self.slow_start.unwrap_or(SlowStart::HyStart)))
            }
            Algorithm::CubicLinux => {
                Box::new(CubicLinux::new(start, self.slow_start.unwrap_or(SlowStart::HyStart)))
            }
            Algorithm::Gauge => Box::new(Gauge::new(start)),
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
