//! When the transmitter may use the medium.

use plait_proto::units::Rate;

use super::aggregation::Aggregation;
use super::grants::Grants;

/// When a transmitter may send. A trace contains this already: with one, this has no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// At any time.
    #[default]
    Always,
    /// In grants, with gaps between them.
    Granted(Grants),
    /// When it has won the medium; then waiting packets go back to back.
    Contended(Aggregation),
}

impl Access {
    /// The long-run rate for full packets on a link of this rate.
    pub fn mean_rate(self, rate: Rate) -> Rate {
        match self {
            Self::Always | Self::Granted(_) => rate,
            Self::Contended(aggregation) => aggregation.mean_rate(rate),
        }
    }
}
