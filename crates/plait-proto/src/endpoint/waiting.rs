//! Packets for a peer to which no path leads yet: the first ones of a connection are worth keeping
//! for the time of a handshake.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

const PACKETS_MAX: usize = 32;
const BYTES_MAX: usize = 48 << 10;
/// Whoever sent a packet sends it again after a second at the latest.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A bounded waiting room.
#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    packets: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl WaitingRoom {
    /// Keeps a packet, if there is room. Gives the number of those that had waited too long.
    pub(super) fn push(&mut self, now: Instant, packet: &[u8]) -> (bool, usize) {
        let expired = self.expire(now);
        let fits = self.packets.len() < PACKETS_MAX && self.bytes + packet.len() <= BYTES_MAX;
        if fits {
            self.bytes += packet.len();
            self.packets.push_back((now, packet.to_vec()));
        }
        (fits, expired)
    }

    /// Whether anything waits that is still worth sending.
    #[cfg(feature = "simulation")]
    pub(super) fn holds_any(&self, now: Instant) -> bool {
        self.packets.back().is_some_and(|(since, _)| now.since(*since) < WAIT_MAX)
    }

    /// All that wait, and the number of those that had waited too long.
    pub(super) fn take(&mut self, now: Instant) -> (VecDeque<(Instant, Vec<u8>)>, usize) {
        let expired = self.expire(now);
        self.bytes = 0;
        (core::mem::take(&mut self.packets), expired)
    }

    fn expire(&mut self, now: Instant) -> usize {
        let before = self.packets.len();
        while let Some((since, packet)) = self.packets.front()
            && now.since(*since) >= WAIT_MAX
        {
            self.bytes -= packet.len();
            self.packets.pop_front();
        }
        before - self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_in_packets_and_bytes() {
        let now = Instant::from_millis(5);
        let mut room = WaitingRoom::default();
        let kept = (0..100).filter(|_| room.push(now, &[0; 40]).0).count();
        assert_eq!(kept, PACKETS_MAX);
        let mut room = WaitingRoom::default();
        let kept = (0..100).filter(|_| room.push(now, &[0; 9000]).0).count();
        assert_eq!(kept, BYTES_MAX / 9000);
    }

    #[test]
    fn what_waited_too_long_makes_room() {
        let mut room = WaitingRoom::default();
        for at in 0..PACKETS_MAX as u64 {
            room.push(Instant::from_millis(at), &[at as u8]);
        }
        assert_eq!(room.push(Instant::from_millis(1001), &[99]), (true, 2));
        let (packets, expired) = room.take(Instant::from_millis(1003));
        assert_eq!((packets.len(), expired), (PACKETS_MAX - 3, 2));
        assert_eq!(packets[0].1, [4]);
        assert_eq!(packets.back().unwrap().1, [99]);
        assert_eq!(room.take(Instant::from_millis(1003)).0.len(), 0);
    }
}
