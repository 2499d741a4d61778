//! What is sent again, under its old place in the bond's sequence: what was lost on a path, is
//! overdue there, or was in flight when the path stopped answering.

use super::Ingress;
use super::pick::Pick;
use crate::path::kept::KeptPacket;
use crate::scheduler::FlowClass;
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::{Duration, Instant, earlier};
use crate::wire::sealed::{DataPrefix, SendTimestamp};

/// Bytes of packets kept per bond, in case they have to be sent again.
const KEPT_BYTES_MAX: u64 = 8 << 20;
/// A datagram is overdue after twice the shortest round trip of its path and this, and not before
/// its probe timeout, which counts up to twice that: on a link that fell the queue makes it long.
const OVERDUE_MARGIN: Duration = Duration::from_millis(25);

impl Ingress {
    /// Keeps what was sent just now, in case its path does not answer.
    pub(super) fn keep(
        &mut self,
        path: PathId,
        prefix: DataPrefix,
        taken_at: Instant,
        packet: &[u8],
    ) {
        if self.paths.len() < 2 && !self.paths.is_closed_loop() {
            return;
        }
        let kept = self.paths.kept_bytes() + self.queue.repairs.bytes();
        if kept + packet.len() as u64 <= KEPT_BYTES_MAX
            && let Some(path) = self.paths.get_unseen(path)
        {
            path.sent.keep(prefix, taken_at, packet);
        }
    }

    /// Sends a packet once more.
    fn send_again(&mut self, now: Instant, path: PathId, packet: &KeptPacket) {
        let prefix = self.send_again_unkept(now, path, packet);
        self.keep(path, prefix, packet.taken_at, &packet.bytes);
        if let Some(path) = self.paths.get_unseen(path) {
            path.sent.note_sends(packet.sends.saturating_add(1));
        }
    }

    /// The same, and not again after that.
    pub(super) fn send_again_unkept(
        &mut self,
        now: Instant,
        path: PathId,
        packet: &KeptPacket,
    ) -> DataPrefix {
        let prefix = DataPrefix { sent: SendTimestamp::of(now), ..packet.prefix };
        self.send_over(now, path, prefix, &packet.bytes);
        prefix
    }

    /// Sends again what a closed loop found lost.
    pub(super) fn repair(&mut self, now: Instant, path: PathId, packet: &KeptPacket) {
        self.send_again(now, path, packet);
        if self.paths.is_closed_loop() {
            self.redundancy.repaired_packets += 1;
        }
    }

    /// Packets that stay out much longer than their path needs are sent again over another, before
    /// they are known lost: somebody waits for them.
    pub(super) fn repair_overdue(&mut self, now: Instant) {
        if self.overdue_at.is_some_and(|at| at > now) {
            return;
        }
        self.overdue_at = None;
        // Without another path there is nothing to do and nothing to wake up for. A second one
        // comes up with feedback.
        let up = self.paths.iter().filter(|path| path.state == PathState::Up).count();
        if up < 2 {
            return;
        }
        for path in self.paths.iter_unseen() {
            let Some(min_rtt) = path.rtt.min().filter(|_| path.sent.in_flight_bytes() > 0) else {
                continue;
            };
            // Where round trips vary, as on radios, most late ones are no worse than usual.
            let least = min_rtt * 2 + OVERDUE_MARGIN;
            let patience = path.rtt.probe_timeout().clamp(least, least * 2);
            self.overdue_at = earlier(self.overdue_at, Some(now + patience / 4));
            let limit = now.saturating_sub(patience);
            let packets = path.sent.take_overdue(limit, self.redundancy.spare_bytes());
            for packet in &packets {
                self.redundancy.spend(packet.len());
            }
            path.rescued_packets += packets.len() as u64;
            self.queue.repairs.add(now, packets);
        }
    }

    /// In an open loop, the next portion of what was in flight on paths that stopped answering.
    pub(super) fn send_portion(&mut self, now: Instant) {
        if self.queue.repairs.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        if !self.paths.any_up() {
            self.queue.repairs.postpone(now);
            return;
        }
        self.refresh_view(now);
        self.queue.repairs.begin_portion(now, self.paths.view());
        while let Some(packet) = self.queue.repairs.next(now) {
            if let Ok(Pick::One(path)) = self.pick(now, &packet.bytes, FlowClass::Bulk) {
                self.send_again(now, path, &packet);
            }
        }
    }

    /// What was lost last on a path must not count as in flight for ever.
    pub(super) fn expire_unacknowledged(&mut self, now: Instant) {
        let repairs = &mut self.queue.repairs;
        self.paths.expire(now, |lost| repairs.add(now, lost));
    }

    /// What is in flight on a path is sent again.
    pub(super) fn repair_all_of(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let packets = path.sent.forget_all();
        path.rescued_packets += packets.len() as u64;
        path.settle();
        self.queue.repairs.add(now, packets);
    }
}
