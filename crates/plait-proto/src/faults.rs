//! Faults that were mended, and which the search puts back to see that it would find them. Without
//! the feature `simulation` none can be: every question below is then answered `false` at compile
//! time.

/// A fault that was mended: `docs/faults-found.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A side gives its end of two bonds, one after the other, the same name: its peer takes the
    /// second for the first, and drops as late what comes over it. That it does so makes no other
    /// bond either.
    OneNameForTwoBonds,
    /// A bond no path of which was ever validated counts as no silence.
    UnvalidatedIsNotSilent,
    /// That all paths are silent is told once, until one of them is up again.
    SilenceToldOnce,
    /// Of two bonds that both sides began at once, each side takes the other's.
    BothCrossedBondsGo,
}

/// Which faults are put back: none outside of the search.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    #[cfg(feature = "simulation")]
    put_back: Option<Fault>,
}

impl Faults {
    /// One fault put back.
    #[cfg(feature = "simulation")]
    pub const fn with(fault: Fault) -> Self {
        Self { put_back: Some(fault) }
    }

    /// Whether a fault is put back.
    #[cfg(feature = "simulation")]
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.put_back == Some(fault)
    }

    /// Whether a fault is put back: never.
    #[cfg(not(feature = "simulation"))]
    pub(crate) const fn has(self, _fault: Fault) -> bool {
        false
    }
}
