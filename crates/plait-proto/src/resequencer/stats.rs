//! Counters of the resequencer.

use serde::{Deserialize, Serialize};

use super::Reason;
use crate::time::Duration;

/// Upper bounds of the waiting-time buckets in milliseconds, inclusive; one more bucket holds the
/// rest.
pub const WAITING_BUCKETS_MS: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/// Packets that waited, by what ended the wait. What follows a released packet counts with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Released {
    /// The missing packet arrived.
    pub in_order: u64,
    /// Every live path had passed the missing packet.
    pub known_lost: u64,
    /// The timer ran out.
    pub timer: u64,
    /// The ring or the bytes were full.
    pub overflow: u64,
}

/// Counters since the start, in packets unless the name says otherwise.
///
/// `at_once + waited + late_dropped + late_delivered + duplicates` is the number of packets given
/// in; `waited` is the sum of `released` and `waiting_now_packets`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ResequencerStats {
    /// Handed on at their arrival.
    pub at_once: u64,
    /// Had to wait.
    pub waited: u64,
    /// Waiting time of all released packets together.
    pub waiting_total_us: u64,
    /// Longest waiting time of a released packet.
    pub waiting_max_us: u64,
    /// Longest timeout that was ever in force: no released packet waited longer.
    pub timeout_max_us: u64,
    /// Released packets by waiting time: up to each of [`WAITING_BUCKETS_MS`], then longer.
    pub waiting_histogram: [u64; 10],
    /// Waiting now.
    pub waiting_now_packets: u64,
    /// Bytes waiting now.
    pub waiting_now_bytes: u64,
    /// Most packets that ever waited at a time.
    pub peak_packets: u64,
    /// Most bytes that ever waited at a time.
    pub peak_bytes: u64,
    /// Packets that waited, by what ended it.
    pub released: Released,
    /// Sequence numbers given up.
    pub given_up: u64,
    /// Sequence numbers that every live path had passed; most are given up then or later.
    pub known_lost: u64,
    /// Arrived after they were given up, and dropped.
    pub late_dropped: u64,
    /// Arrived after they were given up, and handed on.
    pub late_delivered: u64,
    /// Second copies, dropped.
    pub duplicates: u64,
}

impl ResequencerStats {
    pub(super) fn note_timeout(&mut self, timeout: Duration) {
        let us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        self.timeout_max_us = self.timeout_max_us.max(us);
    }

    pub(super) fn count_released(&mut self, reason: Reason, waited: Duration) {
        let count = match reason {
            Reason::InOrder => &mut self.released.in_order,
            Reason::KnownLost => &mut self.released.known_lost,
            Reason::Timer => &mut self.released.timer,
            Reason::Overflow => &mut self.released.overflow,
        };
        *count += 1;
        let us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.waiting_total_us = self.waiting_total_us.saturating_add(us);
        self.waiting_max_us = self.waiting_max_us.max(us);
        let bucket = WAITING_BUCKETS_MS.partition_point(|&bound| bound * 1000 < us);
        self.waiting_histogram[bucket] += 1;
    }
}
