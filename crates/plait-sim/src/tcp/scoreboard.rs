//! Segments that were sent and are not yet cumulatively acknowledged, with the state of each.

use std::collections::{BTreeSet, VecDeque};

use plait_proto::congestion::PacketState;
use plait_proto::time::Instant;

use super::delivery_rate::Snapshot;
use super::ranges::RangeSet;
use super::segment::SeqRange;

/// A segment sent. Retransmissions keep its boundaries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) range: SeqRange,
    /// When it was sent last.
    pub(super) at: Instant,
    /// How often it was sent.
    pub(super) transmissions: u32,
    pub(super) is_sacked: bool,
    pub(super) is_lost: bool,
    /// A retransmission is in flight.
    pub(super) is_resent: bool,
    /// State of the congestion controller.
    pub(super) packet: PacketState,
    /// That when it was sent first.
    pub(super) first_packet: PacketState,
    /// State of the rate estimator.
    pub(super) rate: Snapshot,
}

/// The outstanding segments. In flight are the bytes sent, minus those selectively acknowledged,
/// minus those lost, plus those retransmitted (`pipe` of RFC 6675, as Linux counts).
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Sent>,
    una: u64,
    nxt: u64,
    sacked: RangeSet,
    /// End of the highest byte selectively acknowledged, ever.
    highest_sacked: u64,
    sacked_bytes: u64,
    sacked_segments: u64,
    lost_bytes: u64,
    /// Bytes found lost since the last call, counted per transmission.
    newly_lost_bytes: u64,
    resent_bytes: u64,
    /// Bytes that arrived beyond the first gap, at unknown places (no SACK).
    presumed_bytes: u64,
    resent_segments: u64,
    /// Starts of lost segments whose retransmission is not in flight.
    to_resend: BTreeSet<u64>,
    /// [`Scoreboard::mark_lost_by_sack`] has finally judged everything below.
    judged: u64,
    /// Segments selectively acknowledged at or above `judged`.
    sacked_above_judged: u64,
}

/// What the cumulative acknowledgement passed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    /// Segments, those selectively acknowledged before included.
    pub(super) segments: u64,
    /// The last of them.
    pub(super) last: Option<Sent>,
    /// Whether one of them was sent more than once.
    pub(super) any_resent: bool,
}

impl Scoreboard {
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    pub(super) fn nxt(&self) -> u64 {
        self.nxt
    }

    pub(super) fn highest_sacked(&self) -> u64 {
        self.highest_sacked.max(self.una)
    }

    pub(super) fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    pub(super) fn resent_segments(&self) -> u64 {
        self.resent_segments
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost_bytes > 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn flight_bytes(&self) -> u64 {
        self.nxt - self.una
    }

    pub(super) fn in_flight_bytes(&self) -> u64 {
        let known = self.flight_bytes() + self.resent_bytes - self.sacked_bytes - self.lost_bytes;
        known.saturating_sub(self.presumed_bytes)
    }

    /// What is sent and not acknowledged.
    pub(super) fn outstanding(&self) -> SeqRange {
        SeqRange { start: self.una(), end: self.nxt() }
    }

    /// So many bytes have arrived beyond the first gap, at unknown places.
    pub(super) fn presume_arrived(&mut self, bytes: u64) {
        self.presumed_bytes = bytes;
    }

    pub(super) fn last(&self) -> Option<&Sent> {
        self.segments.back()
    }

    /// The segment that starts at `seq`.
    pub(super) fn get(&self, seq: u64) -> Option<&Sent> {
        self.segments.get(self.index(seq)?)
    }

    /// Appends a segment sent for the first time.
    pub(super) fn push(&mut self, sent: Sent) {
        assert_eq!(sent.range.start, self.nxt, "segments are sent first in order");
        self.nxt = sent.range.end;
        self.segments.push_back(sent);
    }

    /// Stores the controller's state in the segment pushed last.
    pub(super) fn set_packet_of_last(&mut self, packet: PacketState) {
        let last = self.segments.back_mut().expect("a segment was pushed before");
        (last.packet, last.first_packet) = (packet, packet);
    }

    /// Removes everything below `ack`; newly delivered segments go to `delivered`.
    pub(super) fn acknowledge(&mut self, ack: u64, delivered: &mut Vec<Sent>) -> Passed {
        let mut passed = Passed::default();
        while let Some(first) = self.segments.front().copied().filter(|it| it.range.end <= ack) {
            self.segments.pop_front();
            self.forget(&first);
            if first.is_sacked {
                self.sacked_bytes -= first.range.len();
                self.sacked_segments -= 1;
                if first.range.start >= self.judged {
                    self.sacked_above_judged -= 1;
                }
            } else {
                delivered.push(first);
            }
            self.una = first.range.end;
            passed.segments += 1;
            passed.last = Some(first);
            passed.any_resent |= first.transmissions > 1;
        }
        self.judged = self.judged.max(self.una);
        self.sacked.remove_below(self.una);
        passed
    }

    /// Notes that `block` arrived; newly delivered segments go to `delivered`.
    pub(super) fn sack(&mut self, block: SeqRange, delivered: &mut Vec<Sent>) {
        let start = block.start.max(self.una);
        let block = SeqRange { start, end: block.end.min(self.nxt).max(start) };
        for new in self.sacked.insert(block) {
            let mut index = self.segments.partition_point(|sent| sent.range.start < new.start);
            while let Some(sent) = self.segments.get_mut(index) {
                if sent.range.end > new.end {
                    break;
                }
                delivered.push(*sent);
                sent.is_sacked = true;
                let was = *sent;
                (sent.is_lost, sent.is_resent) = (false, false);
                self.forget(&was);
                self.sacked_bytes += was.range.len();
                self.sacked_segments += 1;
                self.sacked_above_judged += u64::from(was.range.start >= self.judged);
                self.highest_sacked = self.highest_sacked.max(was.range.end);
                index += 1;
            }
        }
    }

    /// Marks segments lost that have `threshold` selectively acknowledged segments above them (RFC
    /// 6675 `IsLost`). Returns whether anything was marked. A retransmission is not judged again.
    pub(super) fn mark_lost_by_sack(&mut self, threshold: u64) -> bool {
        let mut marked = false;
        let mut index = self.segments.partition_point(|sent| sent.range.start < self.judged);
        while self.sacked_above_judged >= threshold {
            marked |= self.judge_lost(index);
            index += 1;
        }
        marked
    }

    /// Marks segments lost that lie more than `threshold` segments below the end of the highest
    /// one selectively acknowledged (forward acknowledgement). Returns whether anything was marked.
    pub(super) fn mark_lost_by_fack(&mut self, threshold: u64) -> bool {
        let forward = self.segments.partition_point(|sent| sent.range.start < self.highest_sacked);
        let lost = forward.saturating_sub(usize::try_from(threshold).unwrap_or(usize::MAX));
        let first = self.segments.partition_point(|sent| sent.range.start < self.judged);
        (first..lost).filter(|&index| self.judge_lost(index)).count() > 0
    }

    /// Judges one segment finally: it is lost unless it arrived. Returns whether it was marked.
    fn judge_lost(&mut self, index: usize) -> bool {
        let sent = self.segments[index];
        self.judged = sent.range.end;
        if sent.is_sacked {
            self.sacked_above_judged -= 1;
            return false;
        }
        if !sent.is_lost {
            self.set_lost(index);
        }
        !sent.is_lost
    }

    /// Marks the latest transmission of the segment at `seq` lost.
    pub(super) fn mark_lost(&mut self, seq: u64) {
        let index = self.index(seq).expect("a segment is outstanding when it is marked lost");
        let sent = &mut self.segments[index];
        if sent.is_resent {
            sent.is_resent = false;
            self.resent_bytes -= sent.range.len();
            self.resent_segments -= 1;
        }
        if self.segments[index].is_lost {
            self.newly_lost_bytes += self.segments[index].range.len();
            self.to_resend.insert(seq);
        } else {
            self.set_lost(index);
        }
    }

    /// Bytes found lost since the last call; each transmission counts.
    pub(super) fn take_newly_lost_bytes(&mut self) -> u64 {
        core::mem::take(&mut self.newly_lost_bytes)
    }

    /// Starts of all outstanding segments that have not arrived.
    pub(super) fn missing(&self) -> Vec<u64> {
        let missing = self.segments.iter().filter(|sent| !sent.is_sacked);
        missing.map(|sent| sent.range.start).collect()
    }

    /// Removes all marks of loss.
    pub(super) fn unmark_lost(&mut self) {
        self.segments.iter_mut().for_each(|sent| sent.is_lost = false);
        self.lost_bytes = 0;
        self.to_resend.clear();
        self.judged = self.una;
        self.sacked_above_judged = self.sacked_segments;
    }

    /// The lowest lost segment whose retransmission is not in flight.
    pub(super) fn next_to_resend(&self) -> Option<&Sent> {
        self.get(*self.to_resend.first()?)
    }

    /// Notes that the segment at `seq` leaves again.
    pub(super) fn resend(&mut self, seq: u64, now: Instant, packet: PacketState, rate: Snapshot) {
        let index = self.index(seq).expect("a segment is outstanding when it is sent again");
        let sent = &mut self.segments[index];
        sent.at = now;
        sent.transmissions += 1;
        (sent.packet, sent.rate) = (packet, rate);
        if !sent.is_resent {
            sent.is_resent = true;
            self.resent_bytes += sent.range.len();
            self.resent_segments += 1;
        }
        self.to_resend.remove(&seq);
    }

    fn index(&self, seq: u64) -> Option<usize> {
        let index = self.segments.partition_point(|sent| sent.range.start < seq);
        self.segments.get(index).filter(|sent| sent.range.start == seq).map(|_| index)
    }

    fn set_lost(&mut self, index: usize) {
        let sent = &mut self.segments[index];
        sent.is_lost = true;
        self.lost_bytes += sent.range.len();
        self.newly_lost_bytes += sent.range.len();
        if !sent.is_resent {
            self.to_resend.insert(sent.range.start);
        }
    }

    /// Removes an arrived segment from the counts of lost and retransmitted ones.
    fn forget(&mut self, sent: &Sent) {
        if sent.is_lost {
            self.lost_bytes -= sent.range.len();
            self.to_resend.remove(&sent.range.start);
        }
        if sent.is_resent {
            self.resent_bytes -= sent.range.len();
            self.resent_segments -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
