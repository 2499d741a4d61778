//! The controllers there are.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A congestion controller of the kernel's TCP that this crate brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    /// The thesis' controller as its code behaves.
    Whitehaul,
    /// WhiteHaul mended.
    Edinburgh,
    /// RFC 6356.
    Lia,
    /// Opportunistic linked increases.
    Olia,
    /// Balanced linked adaptation.
    Balia,
    /// TCP Illinois.
    Illinois,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Whitehaul, Self::Edinburgh, Self::Lia, Self::Olia, Self::Balia, Self::Illinois];

    /// The name in commands: that of its page in `docs/algorithms/`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whitehaul => "whitehaul",
            Self::Edinburgh => "edinburgh",
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
            Self::Illinois => "illinois",
        }
    }

    /// The name by which the kernel knows it (`TCP_CONGESTION`).
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::Whitehaul => "bpf_whitehaul",
            Self::Edinburgh => "bpf_edinburgh",
            Self::Lia => "bpf_lia",
            Self::Olia => "bpf_olia",
            Self::Balia => "bpf_balia",
            Self::Illinois => "bpf_illinois",
        }
    }

    /// What it does, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Whitehaul => "for radio links of known capacity, faults included; research only",
            Self::Edinburgh => "WhiteHaul mended, with HyStart++; research only",
            Self::Lia => "coupled: subflows together take no more than one TCP would",
            Self::Olia => "coupled: moves growth to good paths with small windows",
            Self::Balia => "coupled: between LIA and OLIA",
            Self::Illinois => "for long fat paths: growth and reduction by queueing delay",
        }
    }

    /// What whoever uses it should know first.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Whitehaul | Self::Edinburgh => Some(
                "WO2021250377A1 / US20230239702 claims its use over several paths: a reproduction \
                 of published research, for research",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no controller of this crate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is none of whitehaul, edinburgh, lia, olia, balia and illinois")]
pub struct UnknownController(String);

impl FromStr for Controller {
    type Err = UnknownController;

    fn from_str(name: &str) -> Result<Self, UnknownController> {
        let is_meant = |each: &Self| each.name() == name || each.kernel_name() == name;
        let known = Self::ALL.into_iter().find(is_meant);
        known.ok_or_else(|| UnknownController(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_are_known() {
        for controller in Controller::ALL {
            assert_eq!(controller.name().parse(), Ok(controller));
            assert_eq!(controller.kernel_name().parse(), Ok(controller));
            assert!(controller.kernel_name().len() < 16, "a name of the kernel's");
        }
        let error = "cubic".parse::<Controller>().expect_err("it is the kernel's").to_string();
        assert!(Controller::ALL.iter().all(|known| error.contains(known.name())), "{error}");
    }
}
