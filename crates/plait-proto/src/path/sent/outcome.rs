//! What an acknowledgement says, and what it shows.

use crate::congestion::PacketState;
use crate::time::Duration;
use crate::units::Rate;

/// A run of datagram numbers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumberRange {
    /// Lowest number.
    pub low: u64,
    /// Highest number.
    pub high: u64,
}

/// What an acknowledgement showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckOutcome {
    /// Time since the highest number was sent, when it was acknowledged for the first time.
    pub elapsed: Option<Duration>,
    /// Datagrams that arrived, acknowledged for the first time.
    pub acked_datagrams: u64,
    /// Datagrams found lost.
    pub lost_datagrams: u64,
    /// Datagrams that had been found lost and arrived after all.
    pub recovered_datagrams: u64,
    /// It tells of a datagram that was sent later than all that were acknowledged before.
    pub is_news: bool,
    /// Bytes of the datagrams that arrived.
    pub acked_bytes: u64,
    /// Bytes of those found lost.
    pub lost_bytes: u64,
    /// The last-sent of those that arrived.
    pub newest: Option<Newest>,
}

/// The last-sent datagram of those that an acknowledgement showed to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest {
    /// Its number.
    pub number: u64,
    /// What the congestion controller gave with it.
    pub packet: PacketState,
    /// Bytes delivered while it was on its way.
    pub(super) delivered_bytes: u64,
    /// In what time they were.
    pub(super) interval: Duration,
    /// There was too little to send when it left: the rate may be less than the path can carry.
    pub app_limited: bool,
}

impl Newest {
    /// The rate of delivery while it was on its way.
    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered_bytes, self.interval)
    }
}
