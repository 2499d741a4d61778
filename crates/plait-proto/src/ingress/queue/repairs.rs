//! Packets that were on their way over a path that stopped answering, to be sent again over
//! another.

use std::collections::VecDeque;

use crate::path::kept::KeptPacket;
use crate::scheduler::PathView;
use crate::seq::PathId;
use crate::time::{Duration, Instant};

/// After so long nobody waits for a packet any more.
const RESCUE_TIME: Duration = Duration::from_secs(1);
/// What is rescued is sent in portions, this far apart.
const PORTION_INTERVAL: Duration = Duration::from_millis(5);
/// Half of what the living paths deliver meanwhile: the other half is for new packets.
const PORTION_SHARE: u32 = 2;
/// A portion is at least so large.
const PORTION_BYTES_MIN: u64 = 16 * 1500;

/// What waits to be sent again, the oldest first.
#[derive(Debug, Default)]
pub(in super::super) struct Repairs {
    packets: VecDeque<KeptPacket>,
    /// What is pinned to a path, to be sent again over that one.
    pinned: VecDeque<KeptPacket>,
    /// Of both.
    bytes: u64,
    next_at: Option<Instant>,
    portion_bytes: u64,
    /// Packets for which nobody waited any more.
    given_up: u64,
}

impl Repairs {
    /// Takes packets of a path that does not answer.
    pub(in super::super) fn add(&mut self, now: Instant, packets: Vec<KeptPacket>) {
        self.bytes += packets.iter().map(KeptPacket::len).sum::<u64>();
        for packet in packets {
            match packet.pin {
                None => self.packets.push_back(packet),
                Some(_) => self.pinned.push_back(packet),
            }
        }
        if self.bytes > 0 {
            self.next_at.get_or_insert(now);
        }
    }

    /// When the next portion is due.
    pub(in super::super) const fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    /// Begins a portion, if it is time for one.
    pub(in super::super) fn begin_portion(&mut self, now: Instant, paths: &[PathView]) {
        if self.next_at.is_none_or(|at| at > now) {
            return;
        }
        let share = PORTION_INTERVAL / PORTION_SHARE;
        let rate: u64 = paths.iter().map(|path| path.delivery_rate.bytes_in(share)).sum();
        self.portion_bytes = rate.max(PORTION_BYTES_MIN);
        self.next_at = Some(now + PORTION_INTERVAL);
    }

    /// No path can take a portion now.
    pub(in super::super) fn postpone(&mut self, now: Instant) {
        self.drop_old(now);
        self.next_at = (!self.packets.is_empty()).then_some(now + PORTION_INTERVAL);
    }

    fn drop_old(&mut self, now: Instant) {
        while self.packets.front().is_some_and(|packet| now >= packet.taken_at + RESCUE_TIME) {
            self.take_front();
            self.given_up += 1;
        }
    }

    /// Packets that became too old before they could be sent again, since the start.
    pub(in super::super) const fn given_up(&self) -> u64 {
        self.given_up
    }

    fn take_front(&mut self) -> Option<KeptPacket> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.len();
        Some(packet)
    }

    /// Whether something waits.
    pub(in super::super) fn is_waiting(&self) -> bool {
        !self.packets.is_empty()
    }

    /// The oldest packet that somebody may still wait for, out of turn.
    pub(in super::super) fn take(&mut self, now: Instant) -> Option<KeptPacket> {
        self.drop_old(now);
        self.take_front()
    }

    /// Puts back what was taken and could not be sent.
    pub(in super::super) fn put_back(&mut self, packet: KeptPacket) {
        self.bytes += packet.len();
        self.packets.push_front(packet);
    }

    /// Whether pinned packets wait.
    pub(in super::super) fn has_pinned(&self) -> bool {
        !self.pinned.is_empty()
    }

    /// Whether packets wait that are pinned to the path.
    pub(in super::super) fn is_waiting_for(&self, path: PathId) -> bool {
        self.pinned.iter().any(|packet| packet.pin == Some(path))
    }

    /// The oldest packet pinned to the path that somebody may still wait for.
    pub(in super::super) fn take_pinned(
        &mut self,
        now: Instant,
        path: PathId,
    ) -> Option<KeptPacket> {
        while let Some(place) = self.pinned.iter().position(|packet| packet.pin == Some(path)) {
            let packet = self.pinned.remove(place)?;
            self.bytes -= packet.len();
            if now < packet.taken_at + RESCUE_TIME {
                return Some(packet);
            }
            self.given_up += 1;
        }
        None
    }

    /// Puts back what was taken and could not be sent.
    pub(in super::super) fn put_back_pinned(&mut self, packet: KeptPacket) {
        self.bytes += packet.len();
        self.pinned.push_front(packet);
    }

    /// What is pinned to the path may take any.
    pub(in super::super) fn release(&mut self, path: PathId) {
        let (released, pinned): (VecDeque<_>, _) =
            self.pinned.drain(..).partition(|packet| packet.pin == Some(path));
        self.pinned = pinned;
        let released = released.into_iter().map(|packet| KeptPacket { pin: None, ..packet });
        self.packets.extend(released);
    }

    /// Bytes that wait.
    pub(in super::super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next packet of the portion that somebody may still wait for.
    pub(in super::super) fn next(&mut self, now: Instant) -> Option<KeptPacket> {
        self.drop_old(now);
        let Some(packet) = self.packets.front() else {
            self.next_at = None;
            return None;
        };
        self.portion_bytes = self.portion_bytes.checked_sub(packet.len())?;
        self.take_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::BondSeq;
    use crate::wire::sealed::{DataPrefix, SendTimestamp};

    fn packets(count: u32, taken_at: Instant) -> Vec<KeptPacket> {
        let packet = |n: u32| {
            let seq = BondSeq(n.into()).truncate();
            let prefix = DataPrefix { seq, prev: 1, sent: SendTimestamp(0) };
            KeptPacket { prefix, taken_at, bytes: vec![0; 1500], sends: 1, pin: None }
        };
        (0..count).map(packet).collect()
    }

    #[test]
    fn portions_are_spread_over_time() {
        let mut repairs = Repairs::default();
        repairs.add(Instant::ZERO, packets(40, Instant::ZERO));
        let mut sent = Vec::new();
        for ms in 0..15 {
            let now = Instant::from_millis(ms);
            repairs.begin_portion(now, &[]);
            sent.push(core::iter::from_fn(|| repairs.next(now)).count());
        }
        assert_eq!((sent[0], sent[5], sent[10]), (16, 16, 8));
        assert_eq!(sent.iter().sum::<usize>(), 40);
        assert_eq!(repairs.poll_timeout(), None);
    }

    /// Spec P-5a: for up to a second after it was taken from the host.
    #[test]
    fn nobody_waits_for_what_is_too_old() {
        let mut repairs = Repairs::default();
        repairs.add(Instant::ZERO, packets(3, Instant::ZERO));
        let now = Instant::ZERO + RESCUE_TIME;
        repairs.begin_portion(now, &[]);
        assert!(repairs.next(now).is_none());
        assert_eq!((repairs.poll_timeout(), repairs.given_up()), (None, 3));
    }
}
