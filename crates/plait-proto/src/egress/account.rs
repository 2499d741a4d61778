//! Stage 3, account: what arrived, when, and what is missing; and what the peer is told of it.

use super::Egress;
use crate::seq::{PacketNumber, PathId};
use crate::time::{Duration, Instant, earlier};
use crate::wire::control::{Ack, LossReport};
use crate::wire::ecn::Ecn;
use crate::wire::handshake::SessionIndex;
use crate::wire::sealed::SendTimestamp;

/// Acknowledgements are sent this often while data arrives, or every srtt/8 if that is longer.
const ACK_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// After a gap an acknowledgement may follow this soon.
const ACK_ON_GAP_INTERVAL: Duration = Duration::from_millis(1);
/// A path that carried data says within 10 ms that it has no more. When it does not, it may be
/// dead, and what was on it on its way over another path.
const STALL_AFTER: Duration = Duration::from_millis(15);
/// By then it is either heard of again or given up by its sender.
const STALL_UNTIL: Duration = Duration::from_millis(300);
/// Marks on a path are worth nothing for this long after a control datagram was marked there.
const MARKS_DOUBTED: Duration = Duration::from_secs(30);

/// A path through all epochs.
#[derive(Debug)]
pub(super) struct ReceivePath {
    received_packets: u64,
    received_bytes: u64,
    pub(super) delivered_bytes: u64,
    /// One more than the highest of all the path's numbers.
    next_number: u64,
    pub(super) ack_due: Option<Instant>,
    last_ack_at: Option<Instant>,
    ack_session: Option<SessionIndex>,
    /// When a control datagram last came marked: whoever marks those, which are sent Not-ECT, marks
    /// whatever passes (spec E-2).
    pub(super) marked_control_at: Option<Instant>,
    /// When something last came while data was flowing; `None` since the path said that it has
    /// fallen idle.
    flowed_at: Option<Instant>,
    /// Acknowledgements come this far apart while nothing is missing.
    ack_interval: Duration,
    pub(super) srtt: Duration,
    pub(super) least_rtt: Duration,
}

impl Default for ReceivePath {
    fn default() -> Self {
        Self {
            received_packets: 0,
            received_bytes: 0,
            delivered_bytes: 0,
            next_number: 0,
            ack_due: None,
            last_ack_at: None,
            ack_session: None,
            marked_control_at: None,
            flowed_at: None,
            ack_interval: ACK_INTERVAL_MIN,
            srtt: Duration::ZERO,
            least_rtt: Duration::ZERO,
        }
    }
}

impl ReceivePath {
    /// Data arrived: an acknowledgement becomes due, and soon if there is a gap below it.
    fn note_data(&mut self, now: Instant, session: SessionIndex, gap: bool) {
        self.received_packets += 1;
        self.flowed_at = Some(now);
        self.ack_session = Some(session);
        let interval = if gap { ACK_ON_GAP_INTERVAL } else { self.ack_interval };
        let due = self.last_ack_at.map_or(now, |last| (last + interval).max(now));
        self.ack_due = earlier(self.ack_due, Some(due));
    }

    /// A control datagram arrived. One without frames says that the path has fallen idle.
    pub(super) fn note_control(&mut self, now: Instant, is_mark: bool) {
        self.flowed_at = if is_mark { None } else { self.flowed_at.map(|_| now) };
    }

    /// What to believe of the outer field of a datagram that arrived on the path (spec E-2).
    pub(super) fn believed(&self, now: Instant, outer: Ecn) -> Ecn {
        let is_told_apart = |at: Instant| now.since(at) >= MARKS_DOUBTED;
        if self.marked_control_at.is_none_or(is_told_apart) { outer } else { Ecn::NotEct }
    }

    /// Whether data stopped without a word, not long ago.
    pub(super) fn has_stalled(&self, now: Instant) -> bool {
        self.flowed_at.is_some_and(|last| now > last + STALL_AFTER && now < last + STALL_UNTIL)
    }
}

/// An authentic datagram.
pub(super) struct Arrival {
    pub(super) now: Instant,
    /// Its session's place among those in use.
    pub(super) session: usize,
    pub(super) path: PathId,
    pub(super) number: PacketNumber,
    pub(super) ip_bytes: u32,
}

/// Per-path counters for status and reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveCounters {
    /// Data packets that arrived.
    pub received_packets: u64,
    /// Bytes that arrived, at the IP layer.
    pub received_bytes: u64,
    /// Inner bytes that came over this path first.
    pub delivered_bytes: u64,
    /// Data packets counted lost.
    pub lost_packets: u64,
    /// Data packets that arrived after they had been counted lost.
    pub late_packets: u64,
}

impl Egress {
    /// What every authentic datagram tells; data makes acknowledgements and reports due.
    pub(super) fn account(&mut self, arrival: &Arrival, sent: SendTimestamp, is_data: bool) {
        let Arrival { now, number, .. } = *arrival;
        let newest = self.is_current(now, arrival.session, arrival.path);
        let session = &mut self.sessions[arrival.session];
        let path = self.paths.get_or_insert_with(arrival.path, ReceivePath::default);
        let epoch = session.paths.get_mut(arrival.path);
        let epoch = epoch.expect("a path has state in the epoch in which a datagram opened");
        path.received_bytes += u64::from(arrival.ip_bytes);
        let gap = epoch.ranges.insert(number);
        if epoch.ranges.largest() == Some(number) {
            (epoch.largest_at, epoch.largest_transit) = (now, sent.transit(now));
        }
        let overall = *epoch.base.get_or_insert(path.next_number) + number.0;
        if is_data {
            path.note_data(now, session.local, gap);
            self.first_ack_due = earlier(self.first_ack_due, path.ack_due);
            self.report_due.get_or_insert(now + self.report_interval);
        }
        // Stragglers of an epoch that was left count only where their numbers had been seen to be
        // missing.
        if newest || overall < path.next_number {
            path.next_number = path.next_number.max(overall + 1);
            self.gaps.received(arrival.path, PacketNumber(overall));
        }
    }

    /// When an acknowledgement or a loss report is due.
    pub fn poll_feedback_timeout(&self) -> Option<Instant> {
        earlier(self.report_due, self.first_ack_due)
    }

    pub(super) fn find_first_ack_due(&mut self) {
        let due = self.paths.values().filter_map(|path| path.ack_due);
        self.first_ack_due = due.min();
    }

    /// The acknowledgements due now, each with the path it speaks of.
    pub fn take_acks(&mut self, now: Instant) -> Vec<(PathId, Ack)> {
        let mut acks = Vec::new();
        for (id, path) in self.paths.iter_mut() {
            if path.ack_due.is_none_or(|due| due > now) {
                continue;
            }
            path.ack_due = None;
            path.last_ack_at = Some(now);
            let epoch = path.ack_session.and_then(|index| {
                let session = self.sessions.iter().find(|session| session.local == index)?;
                Some((index, session.paths.get(id)?))
            });
            let Some((index, epoch)) = epoch else { continue };
            let Some(largest) = epoch.ranges.largest() else { continue };
            let delay = now.since(epoch.largest_at).as_nanos() as u64 / SendTimestamp::UNIT_NANOS;
            let ack = Ack {
                index: index.wire() | u32::from(id.0),
                largest: largest.truncate(),
                delay: u16::try_from(delay).unwrap_or(u16::MAX),
                transit: epoch.largest_transit,
                ranges: epoch.ranges.to_ack_ranges(),
            };
            acks.push((id, ack));
        }
        self.find_first_ack_due();
        acks
    }

    /// The loss reports, if they are due now.
    pub fn take_loss_reports(&mut self, now: Instant) -> Option<Vec<LossReport>> {
        self.report_due.filter(|due| *due <= now)?;
        self.report_due = None;
        let report = |(id, path): (PathId, &ReceivePath)| {
            let loss = self.gaps.loss(id);
            LossReport {
                path: id,
                received: path.received_packets,
                lost: loss.lost,
                late: loss.late,
            }
        };
        Some(self.paths.iter().map(report).collect())
    }

    /// A path's counters.
    pub fn counters(&self, path: PathId) -> ReceiveCounters {
        let loss = self.gaps.loss(path);
        let received = self.paths.get(path);
        ReceiveCounters {
            received_packets: received.map_or(0, |path| path.received_packets),
            received_bytes: received.map_or(0, |path| path.received_bytes),
            delivered_bytes: received.map_or(0, |path| path.delivered_bytes),
            lost_packets: loss.lost,
            late_packets: loss.late,
        }
    }

    /// The path's acknowledgements follow its round-trip time.
    pub(super) fn follow_rtt(&mut self, path: PathId, srtt: Duration, least: Duration) {
        if let Some(path) = self.paths.get_mut(path) {
            path.ack_interval = (srtt / 8).max(ACK_INTERVAL_MIN);
            (path.srtt, path.least_rtt) = (srtt, least);
        }
    }
}
