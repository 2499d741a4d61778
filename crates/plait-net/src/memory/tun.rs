//! A pair of TUN ports back to back.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::batch::PacketBatch;
use crate::tun::TunPort;

/// Packets that wait in one direction at most: twice a TUN device's default queue.
const QUEUE_PACKETS_MAX: usize = 1000;
/// Bytes that one read brings at most, as with offload.
const READ_BYTES_MAX: usize = 65_535;

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Vec<u8>>,
    dropped: u64,
}

/// One end: what is sent here is received at the other. The daemon gets one end, the test plays
/// the host's kernel at the other.
#[derive(Debug)]
pub struct MemoryTun {
    incoming: Arc<Mutex<Queue>>,
    outgoing: Arc<Mutex<Queue>>,
}

impl MemoryTun {
    /// Two ends that are connected.
    pub fn pair() -> (Self, Self) {
        let (one, other) = (Arc::default(), Arc::default());
        let first = Self { incoming: Arc::clone(&one), outgoing: Arc::clone(&other) };
        (first, Self { incoming: other, outgoing: one })
    }

    /// Packets sent here that found the queue full.
    pub fn dropped(&self) -> u64 {
        lock(&self.outgoing).dropped
    }

    /// Packets that wait to be received here.
    pub fn waiting(&self) -> usize {
        lock(&self.incoming).packets.len()
    }
}

impl TunPort for MemoryTun {
    fn recv(&mut self, batch: &mut PacketBatch) -> io::Result<bool> {
        let mut queue = lock(&self.incoming);
        let Some(first) = queue.packets.pop_front() else { return Ok(false) };
        let mut bytes = first.len();
        batch.push(&first);
        while let Some(next) = queue.packets.front() {
            bytes += next.len();
            if bytes > READ_BYTES_MAX {
                break;
            }
            batch.push(next);
            queue.packets.pop_front();
        }
        Ok(true)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let mut queue = lock(&self.outgoing);
        if queue.packets.len() < QUEUE_PACKETS_MAX {
            queue.packets.push_back(packet.to_vec());
        } else {
            queue.dropped += 1;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A test that panicked while it held the queue has failed already; the queue is still whole.
fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_sends_the_other_receives_in_order() {
        let (mut host, mut daemon) = MemoryTun::pair();
        let mut batch = PacketBatch::new();
        assert!(!daemon.recv(&mut batch).unwrap());
        for packet in [&b"one"[..], b"two", &[3; 65_530]] {
            host.send(packet).unwrap();
        }
        host.flush().unwrap();
        assert_eq!(daemon.waiting(), 3);
        assert!(daemon.recv(&mut batch).unwrap());
        assert_eq!(batch.iter().collect::<Vec<_>>(), [b"one", b"two"]);
        assert!(daemon.recv(&mut batch).unwrap());
        assert_eq!(batch.len(), 3);
        assert!(!daemon.recv(&mut batch).unwrap());
        assert!(!host.recv(&mut batch).unwrap());
        daemon.send(b"back").unwrap();
        assert!(host.recv(&mut batch).unwrap());
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (mut host, daemon) = MemoryTun::pair();
        for _ in 0..QUEUE_PACKETS_MAX + 2 {
            host.send(b"x").unwrap();
        }
        assert_eq!((daemon.waiting(), host.dropped(), daemon.dropped()), (QUEUE_PACKETS_MAX, 2, 0));
    }
}
