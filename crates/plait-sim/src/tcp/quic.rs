//! QUIC's loss detection (RFC 9002 section 6): a packet is lost when one sent three packets later,
//! or one and an eighth of a round trip later, has been acknowledged. Both thresholds are fixed,
//! and nothing is ever undone.
//!
//! Each transmission has its own number, so a late original is never mistaken for its
//! retransmission.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};

use super::scoreboard::{Scoreboard, Sent};

/// Section 6.1.1, kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;
/// Section 6.1.2, kGranularity.
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 9000 section 18.2, the default `max_ack_delay`, which is part of the probe timeout.
pub(super) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// One packet that carries a segment.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    number: u64,
    at: Instant,
    seq: u64,
    /// Which transmission of the segment it is.
    of_segment: u32,
}

/// Detects lost packets, and decides when the congestion controller is told.
#[derive(Debug, Default)]
pub(super) struct Quic {
    /// The last number assigned; the first packet has 1.
    sent: u64,
    largest_acked: u64,
    latest_rtt: Duration,
    /// In the order of sending.
    transmissions: VecDeque<Transmission>,
    /// A loss of a packet with a higher number begins a new congestion event (section 7.3.2).
    event_began_at: u64,
    is_event_due: bool,
}

impl Quic {
    /// Numbers a packet that leaves.
    pub(super) fn on_sent(&mut self, sent: &Sent) -> u64 {
        self.sent += 1;
        self.transmissions.push_back(Transmission {
            number: self.sent,
            at: sent.at,
            seq: sent.range.start,
            of_segment: sent.transmissions,
        });
        self.sent
    }

    /// An acknowledgement came; `largest` is the highest number that had arrived. A number that was
    /// never assigned is ignored.
    pub(super) fn on_ack(&mut self, largest: u64) {
        if largest <= self.sent {
            self.largest_acked = self.largest_acked.max(largest);
        }
    }

    /// RTT sample of a packet that carried a segment for the first time (section 5.1).
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        self.latest_rtt = rtt;
    }

    /// Section 6.1.2.
    fn time_threshold(&self, srtt: Option<Duration>) -> Duration {
        let rtt = self.latest_rtt.max(srtt.unwrap_or_default());
        (rtt * 9 / 8).max(GRANULARITY)
    }

    /// Marks lost packets. Returns whether there were any, and when the next one will be lost.
    pub(super) fn detect(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        srtt: Option<Duration>,
    ) -> (bool, Option<Instant>) {
        let wait = self.time_threshold(srtt);
        let mut marked = false;
        while let Some(first) = self.transmissions.front().copied() {
            if is_current(board, &first) {
                if first.number >= self.largest_acked {
                    break;
                }
                let due = first.at + wait;
                if self.largest_acked - first.number < PACKET_THRESHOLD && due > now {
                    return (marked, Some(due));
                }
                board.mark_lost(first.seq);
                marked = true;
                self.is_event_due |= first.number > self.event_began_at;
            }
            self.transmissions.pop_front();
        }
        (marked, None)
    }

    /// Whether a congestion event begins now: a lost packet was sent after the last event began
    /// (section 7.3.2).
    pub(super) fn begin_event(&mut self) -> bool {
        let is_due = core::mem::take(&mut self.is_event_due);
        if is_due {
            self.event_began_at = self.sent;
        }
        is_due
    }

    /// Whether a packet sent after the last congestion event began has arrived.
    pub(super) fn is_recovered(&self) -> bool {
        self.largest_acked > self.event_began_at
    }
}

/// The probe timeout (section 6.2.1), before any doubling.
pub(super) fn probe_timeout(srtt: Duration, variation: Duration) -> Duration {
    srtt + (variation * 4).max(GRANULARITY) + MAX_ACK_DELAY
}

/// Whether a transmission is the latest of a segment that is neither delivered nor lost.
fn is_current(board: &Scoreboard, transmission: &Transmission) -> bool {
    board.get(transmission.seq).is_some_and(|sent| {
        let is_lost = sent.is_lost && !sent.is_resent;
        !sent.is_sacked && !is_lost && sent.transmissions == transmission.of_segment
    })
}

#[cfg(test)]
mod tests;
