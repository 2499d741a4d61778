//! What a scheduler makes of a path, in words for a person.

use core::fmt;

use crate::time::Duration;
use crate::units::Rate;

/// A path's part in the traffic that fills the bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// It carries its share.
    Carries,
    /// What it carries is being found out.
    Tried,
    /// Flows over several paths have the delay of the slowest, and what the path adds does not make
    /// up for it.
    TooFar {
        /// What the path would add.
        rate: Rate,
        /// How long it takes one way.
        delay: Duration,
    },
    /// What it adds is next to nothing beside the others.
    TooLittle {
        /// What the path would add.
        rate: Rate,
    },
    /// The others carry more while it is silent.
    TakesAir,
    /// It is late, or loses much, beside the others.
    Bad,
    /// It was bad, and carries more with each round trip.
    Recovering,
    /// An acknowledgement is overdue.
    Stalled,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Carries => f.write_str("carries bulk traffic"),
            Self::Tried => f.write_str("is tried, since what it carries is not known"),
            Self::TooFar { rate, delay } => write!(
                f,
                "carries no bulk traffic, since {rate} more do not make up for {} ms one way",
                delay.as_millis()
            ),
            Self::TooLittle { rate } => write!(
                f,
                "carries no bulk traffic, since {rate} more are next to nothing beside the others"
            ),
            Self::TakesAir => f.write_str(
                "carries no bulk traffic, since the others carry more while it is silent",
            ),
            Self::Bad => {
                f.write_str("carries copies only, since it is late or loses much beside the others")
            }
            Self::Recovering => f.write_str("was late or lost much, and carries more by and by"),
            Self::Stalled => f.write_str("is not used while an acknowledgement is overdue"),
        }
    }
}
