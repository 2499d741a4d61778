//! A capture at a host's own interfaces, by a packet socket as tcpdump has it: what TCP carried
//! from and to each of its addresses, counted rather than kept.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use socket2::{Domain, Protocol, Socket, Type};

use crate::worker::Worker;

/// `ETH_P_ALL` of packet(7).
const ALL_PROTOCOLS: u16 = 3;
/// Heads of IPv4 and TCP at their longest.
const HEADS_BYTES: usize = 120;
/// The kernel gives less where it may not give so much.
const BUFFER_BYTES: usize = 16 << 20;
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// What TCP carried from and to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wire {
    /// Packets with IP's and TCP's heads.
    pub(crate) bytes: u64,
    /// What was in them.
    pub(crate) payload_bytes: u64,
    /// When the first packet was seen.
    pub(crate) opened: Option<Instant>,
    /// When the first with payload was seen.
    pub(crate) carried: Option<Instant>,
}

/// A running capture of a namespace.
#[derive(Debug)]
pub(crate) struct WireCapture(Worker<BTreeMap<Ipv4Addr, Wire>>);

impl WireCapture {
    /// Counts for each of these addresses of the namespace.
    pub(crate) fn start(netns: &NetNs, addresses: &[Ipv4Addr]) -> Result<Self> {
        let protocol = Protocol::from(i32::from(ALL_PROTOCOLS.to_be()));
        let socket = netns.run_in(|| Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol)))?;
        let socket = socket.context("no packet socket, which needs CAP_NET_RAW")?;
        socket.set_recv_buffer_size(BUFFER_BYTES)?;
        socket.set_read_timeout(Some(SLEEP_MAX))?;
        let mut wires: BTreeMap<_, _> =
            addresses.iter().map(|address| (*address, Wire::default())).collect();
        let worker = Worker::start("capture", move |goes_on| {
            // Where it has no right to that, packets that it misses show in its sums.
            let _kept_ordinary = plait_net::clock::set_realtime_priority();
            let mut packet = [0; HEADS_BYTES];
            loop {
                match (&socket).read(&mut packet) {
                    Ok(length) => count(&mut wires, Instant::now(), &packet[..length]),
                    Err(error) if is_nothing(error.kind()) => {
                        // What has come is read before it ends.
                        if !goes_on() {
                            return wires;
                        }
                    }
                    Err(_) => return wires,
                }
            }
        });
        Ok(Self(worker?))
    }

    /// What was counted.
    pub(crate) fn stop(self) -> BTreeMap<Ipv4Addr, Wire> {
        self.0.stop()
    }
}

fn is_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Adds a packet that begins so, if it is TCP over IPv4 from or to one of the addresses.
fn count(wires: &mut BTreeMap<Ipv4Addr, Wire>, now: Instant, packet: &[u8]) {
    let Some((ends, [bytes, payload_bytes])) = read(packet) else { return };
    for end in ends {
        if let Some(wire) = wires.get_mut(&end) {
            wire.bytes += bytes;
            wire.payload_bytes += payload_bytes;
            wire.opened = wire.opened.or(Some(now));
            wire.carried = wire.carried.or((payload_bytes > 0).then_some(now));
            return;
        }
    }
}

/// Both ends of a packet of TCP over IPv4, and its bytes with heads and without.
fn read(packet: &[u8]) -> Option<([Ipv4Addr; 2], [u64; 2])> {
    const TCP: u8 = 6;
    let first = *packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let total = u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?);
    let ip_bytes = usize::from(first & 15) * 4;
    let tcp_bytes = usize::from(*packet.get(ip_bytes + 12)? >> 4) * 4;
    let heads = u64::try_from(ip_bytes + tcp_bytes).ok()?;
    let bytes = u64::from(total);
    let payload_bytes = bytes.checked_sub(heads)?;
    Some(([address(12)?, address(16)?], [bytes, payload_bytes]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes from 192.0.2.1 to 10.1.0.1, with 12 bytes of TCP's options.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0; 52];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&1052_u16.to_be_bytes());
        packet[9] = 6;
        packet[12..16].copy_from_slice(&[192, 0, 2, 1]);
        packet[16..20].copy_from_slice(&[10, 1, 0, 1]);
        packet[32] = 8 << 4;
        packet
    }

    #[test]
    fn packets_count_for_their_address_without_heads() {
        let [own, other] = [[10, 1, 0, 1], [10, 2, 0, 1]].map(Ipv4Addr::from);
        let mut wires = BTreeMap::from([(own, Wire::default()), (other, Wire::default())]);
        let times = [0, 1, 2].map(|ms| Instant::now() + Duration::from_millis(ms));
        let mut bare = packet();
        bare[2..4].copy_from_slice(&52_u16.to_be_bytes());
        count(&mut wires, times[0], &bare);
        count(&mut wires, times[1], &packet());
        let mut back = packet();
        back[12..20].rotate_left(4);
        count(&mut wires, times[2], &back);
        let [opened, carried] = [times[0], times[1]].map(Some);
        assert_eq!(wires[&own], Wire { bytes: 2156, payload_bytes: 2000, opened, carried });
        assert_eq!(wires[&other], Wire::default());
    }

    #[test]
    fn what_is_not_tcp_or_is_cut_short_does_not_count() {
        let whole = packet();
        for (at, value) in [(0, 0x65), (9, 17), (2, 0)] {
            let mut changed = whole.clone();
            changed[at] = value;
            assert_eq!(read(&changed), None, "{at}");
        }
        for length in 0..33 {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        assert!(read(&whole).is_some());
    }
}
