//! A simple NAT at a link's provider end: it changes the source port of the customer's datagrams,
//! and can lose its mappings.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::Way;

const IPV4_UDP_BYTES_MIN: usize = 28;
const UDP: u8 = 17;

/// Translates UDP over IPv4 without options; everything else passes unchanged.
#[derive(Debug, Default)]
pub(super) struct Nat {
    /// Mask XORed with the customer's ports; 0 translates nothing.
    mask: AtomicU16,
    /// The customer's ports that have a mapping.
    mapped: Mutex<HashSet<u16>>,
}

impl Nat {
    /// Forgets every mapping; new ones use other ports.
    pub(super) fn rebind(&self, mask: u16) {
        self.mapped().clear();
        self.mask.store(mask, Ordering::Relaxed);
    }

    fn mapped(&self) -> MutexGuard<'_, HashSet<u16>> {
        self.mapped.lock().expect("no thread panics while it holds the mappings' lock")
    }

    /// Translates a packet in place. False when there is no mapping for it: it is dropped.
    pub(super) fn pass(&self, way: Way, packet: &mut [u8]) -> bool {
        let mask = self.mask.load(Ordering::Relaxed);
        if mask == 0 || !is_udp(packet) {
            return true;
        }
        let at = match way {
            Way::Up => 20,
            Way::Down => 22,
        };
        let outer = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let translated = outer ^ mask;
        let known = match way {
            Way::Up => {
                self.mapped().insert(outer);
                true
            }
            Way::Down => self.mapped().contains(&translated),
        };
        packet[at..at + 2].copy_from_slice(&translated.to_be_bytes());
        // Over IPv4 a checksum of zero means that there is none (RFC 768).
        packet[26..28].fill(0);
        known
    }
}

fn is_udp(packet: &[u8]) -> bool {
    packet.len() >= IPV4_UDP_BYTES_MIN && packet[0] == 0x45 && packet[9] == UDP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: u16, destination: u16) -> Vec<u8> {
        let mut packet = vec![0; IPV4_UDP_BYTES_MIN + 4];
        packet[0] = 0x45;
        packet[9] = UDP;
        packet[20..22].copy_from_slice(&source.to_be_bytes());
        packet[22..24].copy_from_slice(&destination.to_be_bytes());
        packet[26..28].fill(0xab);
        packet
    }

    #[test]
    fn ports_change_there_and_back() {
        let nat = Nat::default();
        nat.rebind(0x0101);
        let mut up = udp(0x2000, 7788);
        assert!(nat.pass(Way::Up, &mut up));
        assert_eq!((&up[20..24], &up[26..28]), (&udp(0x2101, 7788)[20..24], &[0, 0][..]));
        let mut down = udp(7788, 0x2101);
        assert!(nat.pass(Way::Down, &mut down));
        assert_eq!(down[20..24], udp(7788, 0x2000)[20..24]);
    }

    #[test]
    fn what_was_mapped_before_is_forgotten() {
        let nat = Nat::default();
        assert!(nat.pass(Way::Down, &mut udp(7788, 0x2000)));
        nat.rebind(0x0101);
        assert!(!nat.pass(Way::Down, &mut udp(7788, 0x2000)));
        assert!(nat.pass(Way::Up, &mut udp(0x2000, 7788)));
        nat.rebind(0x0202);
        assert!(!nat.pass(Way::Down, &mut udp(7788, 0x2101)));
    }

    #[test]
    fn other_packets_pass_unchanged() {
        let nat = Nat::default();
        nat.rebind(1);
        for packet in [vec![0x45; 10], vec![0x60; 60]] {
            let mut passed = packet.clone();
            assert!(nat.pass(Way::Up, &mut passed) && passed == packet);
        }
    }
}
