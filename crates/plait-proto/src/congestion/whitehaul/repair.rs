//! What is wrong with WhiteHaul's code, each fault with a switch that repairs it.

use core::fmt;
use core::str::FromStr;

/// A fault of WhiteHaul's code that can be repaired by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// `ssthresh`: the first slow start ends at 20 segments; repaired, it has no such limit.
    Ssthresh,
    /// `adv`: the window that is enough is a constant, [`WhiteHaulConfig::adv`]; repaired, it is
    /// what the path delivers times its base round-trip time.
    ///
    /// [`WhiteHaulConfig::adv`]: super::WhiteHaulConfig::adv
    Adv,
    /// `delay`: a queue counts from 50 ms on; repaired, from [`WhiteHaulConfig::delay`] on.
    ///
    /// [`WhiteHaulConfig::delay`]: super::WhiteHaulConfig::delay
    Delay,
    /// `latch`: one round with a queue holds the window down until a loss; repaired, only the
    /// latest round counts.
    Latch,
    /// `short-samples`: round-trip times up to 100 µs count for the mean and not for the base, so
    /// that the difference wraps around below zero; repaired, they count for both.
    ShortSamples,
    /// `ageing`: the base is the least round-trip time since the beginning; repaired, that of the
    /// last ten seconds.
    Ageing,
    /// `remainder`: what was acknowledged and is not worth a segment is forgotten with each growth;
    /// repaired, it is kept.
    Remainder,
    /// `beta`: the share that a loss takes has equal ends, 6/64; repaired, it lies between 8/64 and
    /// 32/64 by delay, as the code's comments mean it.
    Beta,
    /// `unused-window`: a window that is not used is held down too; repaired, it is left alone.
    UnusedWindow,
    /// `count`: the number of a round's samples wraps around at 65 536; repaired, it does not.
    Count,
    /// `rtt-max`: no sample counts as longer than 671 ms; repaired, than 3.3 s, as the code's
    /// comment has it.
    RttMax,
}

impl Repair {
    /// All repairs.
    pub const ALL: [Self; 11] = [
        Self::Ssthresh,
        Self::Adv,
        Self::Delay,
        Self::Latch,
        Self::ShortSamples,
        Self::Ageing,
        Self::Remainder,
        Self::Beta,
        Self::UnusedWindow,
        Self::Count,
        Self::RttMax,
    ];

    /// The name in configuration and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssthresh => "ssthresh",
            Self::Adv => "adv",
            Self::Delay => "delay",
            Self::Latch => "latch",
            Self::ShortSamples => "short-samples",
            Self::Ageing => "ageing",
            Self::Remainder => "remainder",
            Self::Beta => "beta",
            Self::UnusedWindow => "unused-window",
            Self::Count => "count",
            Self::RttMax => "rtt-max",
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no repair.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "unknown repair `{0}`: use some of ssthresh, adv, delay, latch, short-samples, ageing, \
     remainder, beta, unused-window, count and rtt-max"
)]
pub struct UnknownRepair(pub String);

impl FromStr for Repair {
    type Err = UnknownRepair;

    fn from_str(name: &str) -> Result<Self, UnknownRepair> {
        let known = Self::ALL.into_iter().find(|repair| repair.name() == name);
        known.ok_or_else(|| UnknownRepair(name.to_owned()))
    }
}

/// Some of the repairs, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Repairs(u16);

impl Repairs {
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether one is among them.
    pub const fn contains(self, repair: Repair) -> bool {
        self.0 & (1 << repair as u16) != 0
    }

    /// Those that are among them, in the order of [`Repair::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.into_iter().filter(move |repair| self.contains(*repair))
    }
}

impl FromIterator<Repair> for Repairs {
    fn from_iter<I: IntoIterator<Item = Repair>>(repairs: I) -> Self {
        Self(repairs.into_iter().fold(0, |bits, repair| bits | 1 << repair as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_have_names_and_make_sets() {
        let error = UnknownRepair("x".into()).to_string();
        for repair in Repair::ALL {
            assert_eq!(repair.to_string().parse(), Ok(repair));
            assert!(error.contains(repair.name()), "{error}");
            let alone: Repairs = [repair, repair].into_iter().collect();
            assert!(alone.iter().eq([repair]), "{alone:?}");
            assert!(!Repairs::NONE.contains(repair));
        }
        let all: Repairs = Repair::ALL.into_iter().collect();
        assert!(all.iter().eq(Repair::ALL));
        assert_eq!("latched".parse::<Repair>(), Err(UnknownRepair("latched".into())));
    }
}
