//! Configuration of the resequencer.

use crate::time::Duration;

/// How long a packet waits for its predecessors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Always this long (002's T_lto; 50 ms in its experiments).
    Fixed(Duration),
    /// As long as the owner last said in `set_timeout`, within these bounds; 100 ms before the
    /// first word. See [`DelaySpread`](super::delay_spread::DelaySpread).
    Adaptive {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
}

impl Timer {
    /// The adaptive timer with bounds of 5 and 500 ms.
    pub const ADAPTIVE: Self =
        Self::Adaptive { min: Duration::from_millis(5), max: Duration::from_millis(500) };

    pub(super) fn initial(self) -> Duration {
        match self {
            Self::Fixed(timeout) => timeout,
            Self::Adaptive { min, max } => Duration::from_millis(100).clamp(min, max),
        }
    }
}

/// What to do with a packet that arrives after it was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LatePolicy {
    /// Drop it, as 002 does: what is delivered stays in order.
    #[default]
    Drop,
    /// Hand it on out of order, once.
    Deliver,
}

/// Configuration of a [`Resequencer`](super::Resequencer).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResequencerConfig {
    /// How long packets wait.
    pub timer: Timer,
    /// What to do with packets that were given up.
    pub late: LatePolicy,
    /// Count what every live path has passed as lost at once. Off: only giving up counts.
    pub count_known_lost: bool,
    /// Give up what every live path has passed at once. Off: it waits for the timer, so that a
    /// repair may fill the gap.
    pub release_known_lost: bool,
    /// Span of the ring in sequence numbers from the floor: a power of two, 64 to 65536.
    pub packets_max: u32,
    /// Bytes that may wait.
    pub bytes_max: u64,
}

impl ResequencerConfig {
    /// 002's egress: the timer alone, 50 ms, late packets dropped.
    pub const PAPER_002: Self = Self {
        timer: Timer::Fixed(Duration::from_millis(50)),
        late: LatePolicy::Drop,
        count_known_lost: false,
        release_known_lost: false,
        packets_max: 32768,
        bytes_max: 16 << 20,
    };
}

impl Default for ResequencerConfig {
    fn default() -> Self {
        Self {
            timer: Timer::ADAPTIVE,
            count_known_lost: true,
            release_known_lost: true,
            ..Self::PAPER_002
        }
    }
}
