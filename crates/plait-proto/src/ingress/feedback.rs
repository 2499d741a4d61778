//! What the peer says about this side's packets.

use super::Ingress;
use crate::drop_reason::DropReason;
use crate::feedback::Feedback;
use crate::path::Reported;
use crate::path::sent::{AckOutcome, NumberRange};
use crate::scheduler::PathReport;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::wire::control::{Ack, LossReport};
use crate::wire::handshake::SessionIndex;
use crate::wire::sealed::SendTimestamp;

impl Ingress {
    /// Takes what the peer said about this side's packets. Gives what an acknowledgement showed
    /// of its path. After the last of a datagram comes [`Self::after_feedback`].
    pub fn handle_feedback(&mut self, now: Instant, feedback: Feedback) -> AckOutcome {
        match feedback {
            Feedback::Ack(ack) => self.handle_ack(now, &ack).unwrap_or_default(),
            Feedback::LossReports(reports) => {
                self.handle_reports(now, &reports);
                AckOutcome::default()
            }
        }
    }

    /// Sends what acknowledgements made room for, and again what they showed to be overdue: once
    /// for all of a datagram.
    pub fn after_feedback(&mut self, now: Instant) {
        if self.paths.is_closed_loop() {
            self.repair_overdue(now);
            self.drain(now);
        }
    }

    fn handle_ack(&mut self, now: Instant, ack: &Ack) -> Option<AckOutcome> {
        let id = PathId((ack.index & 0xff) as u8);
        let session = SessionIndex::from_receiver_index(ack.index);
        let path = self.paths.get(id)?;
        let (base, next) = path.epoch_of(session)?;
        let largest = ack.largest.expand(next);
        if largest >= next {
            self.drops.count(DropReason::ForgedAck);
            return None;
        }
        let mut above = largest.0 + 1;
        let ranges = ack.ranges.iter().map_while(move |range| {
            let high = above.checked_sub(u64::from(range.gap) + 1)?;
            let low = (high + 1).checked_sub(u64::from(range.length))?;
            above = low;
            Some(NumberRange { low: base + low, high: base + high })
        });
        if path.sent.names_left_out(ranges.clone()) {
            self.drops.count(DropReason::ForgedAck);
            return None;
        }
        let (path, siblings) = self.paths.get_mut_with_siblings(id)?;
        let mut late_by = Duration::ZERO;
        if let Some(elapsed) = path.sent.elapsed_of(now, base + largest.0) {
            late_by = Duration::from_nanos(u64::from(ack.delay) * SendTimestamp::UNIT_NANOS);
            path.rtt.sample(now, elapsed.saturating_sub(late_by));
            path.rtt.note_transit(now, ack.transit);
        }
        late_by += path.rtt.way_back_excess();
        let outcome = path.sent.acked(now, late_by, ranges);
        path.mtu.on_large_loss(now, path.sent.large_lost());
        if let Some(congestion) = &mut path.congestion {
            congestion.on_ack(now, &outcome, &path.sent, &path.rtt, siblings);
            self.queue.repairs.add(now, path.sent.take_lost());
        }
        Some(outcome)
    }

    fn handle_reports(&mut self, now: Instant, reports: &[LossReport]) {
        let mut news = Vec::with_capacity(reports.len());
        for report in reports {
            let Some(path) = self.paths.get_unseen(report.path) else { continue };
            let last = path.reported;
            if report.received < last.received {
                continue; // An older report that was overtaken.
            }
            let net_lost = report.lost.saturating_sub(report.late);
            news.push(PathReport {
                path: report.path,
                lost_packets: net_lost.saturating_sub(last.net_lost),
                sent_packets: path.sent_packets - last.sent_packets,
            });
            path.reported = Reported {
                received: report.received,
                net_lost: net_lost.max(last.net_lost),
                sent_packets: path.sent_packets,
            };
            path.reported_lost_packets = net_lost;
        }
        self.refresh_view(now);
        if !news.is_empty() && !self.paths.view().is_empty() {
            self.picker.on_report(now, &self.paths, &news);
        }
    }
}
