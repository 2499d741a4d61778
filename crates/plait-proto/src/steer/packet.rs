//! What a steering node reads of a packet, and the rewriting of its destination.

use core::net::IpAddr;

use crate::wire::ip::Inner;
use crate::wire::tcp::TcpFlow;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// Control bits of a TCP header that belong to the beginning or the end of a connection.
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;

/// Where the checksum of an IPv4 header stands.
const V4_CHECKSUM_AT: usize = 10;
const V4_DESTINATION_AT: usize = 16;
const V6_DESTINATION_AT: usize = 24;
/// IPv4 options that hold further destinations: with them the transport's checksum does not cover
/// the destination in the header (RFC 1122 §3.2.1.8, RFC 9293 §3.1).
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// What a packet carries, as far as steering goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Payload {
    /// A TCP segment with these control bits.
    Tcp {
        /// The byte of control bits.
        flags: u8,
    },
    /// Something else that may be rewritten: UDP, ICMP.
    Other,
    /// A fragment. The parts of a packet must go the same way to the same address, and only the
    /// first one shows whose they are.
    Fragment,
    /// Something whose checksum is not known, or cannot be found: it can only go as it is.
    Opaque,
}

/// A packet with an IP header that holds together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Steerable {
    /// Addresses, protocol, ports.
    pub(super) inner: Inner,
    /// What it carries.
    pub(super) payload: Payload,
    /// Where the transport's checksum stands that covers the addresses; `None` when none does.
    checksum_at: Option<usize>,
}

impl Steerable {
    /// Reads a packet; `None` when it is neither IPv4 nor IPv6 or its length field does not fit.
    #[inline]
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let inner = Inner::read(packet)?;
        let (transport_at, barred) = match inner.destination {
            IpAddr::V4(_) => {
                let header_bytes = usize::from(packet[0] & 15) * 4;
                let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
                let mut options = packet[20..header_bytes].iter();
                let barred = if fragment {
                    Some(Payload::Fragment)
                } else {
                    options.any(|kind| SOURCE_ROUTES.contains(kind)).then_some(Payload::Opaque)
                };
                (header_bytes, barred)
            }
            IpAddr::V6(_) => (40, (inner.protocol == V6_FRAGMENT).then_some(Payload::Fragment)),
        };
        let (payload, checksum_at) = match barred {
            Some(barred) => (barred, None),
            None => transport(&inner, &packet[transport_at..]),
        };
        let checksum_at = checksum_at.map(|at| transport_at + at);
        Some(Self { inner, payload, checksum_at })
    }

    /// The TCP connection it belongs to, if it is TCP.
    pub(super) fn flow(&self) -> Option<TcpFlow> {
        let Payload::Tcp { .. } = self.payload else { return None };
        let Inner { source, destination, ports, .. } = self.inner;
        let (source_port, destination_port) = ((ports >> 16) as u16, ports as u16);
        Some(TcpFlow { source, destination, source_port, destination_port })
    }
}

/// IPv6's fragment header (RFC 8200 §4.5).
const V6_FRAGMENT: u8 = 44;

/// What a transport's header says, and where in it the checksum stands that covers the addresses.
fn transport(inner: &Inner, segment: &[u8]) -> (Payload, Option<usize>) {
    let is_v4 = inner.destination.is_ipv4();
    match inner.protocol {
        TCP if segment.len() >= 20 => (Payload::Tcp { flags: segment[13] }, Some(16)),
        UDP if segment.len() >= 8 => (Payload::Other, Some(6)),
        ICMP if is_v4 => (Payload::Other, None),
        ICMPV6 if !is_v4 && segment.len() >= 4 => (Payload::Other, Some(2)),
        _ => (Payload::Opaque, None),
    }
}

/// The rewriting of one destination address to another one of the same family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rewrite {
    to: IpAddr,
    /// What the change adds to a one's complement sum over the addresses: always the same, so it is
    /// worked out once (RFC 1624 §3, equation 3, summed over the words of the address).
    difference: u16,
}

impl Rewrite {
    /// From one address to another; `None` when they are of two families.
    pub(super) fn new(from: IpAddr, to: IpAddr) -> Option<Self> {
        let difference = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => difference(&from.octets(), &to.octets()),
            (IpAddr::V6(from), IpAddr::V6(to)) => difference(&from.octets(), &to.octets()),
            _ => return None,
        };
        Some(Self { to, difference })
    }

    /// Writes the new destination into a packet that was read as `steerable`, whose destination is
    /// the old one, and brings its checksums along.
    #[inline]
    pub(super) fn apply(&self, steerable: &Steerable, packet: &mut [u8]) {
        match self.to {
            IpAddr::V4(to) => {
                let at = V4_DESTINATION_AT;
                packet[at..at + 4].copy_from_slice(&to.octets());
                self.update(packet, V4_CHECKSUM_AT);
            }
            IpAddr::V6(to) => {
                let at = V6_DESTINATION_AT;
                packet[at..at + 16].copy_from_slice(&to.octets());
            }
        }
        let Some(at) = steerable.checksum_at else { return };
        if steerable.inner.protocol != UDP {
            self.update(packet, at);
        } else if packet[at..at + 2] != [0, 0] {
            self.update(packet, at);
            // Zero means that there is no checksum; a sum that comes out zero is sent as all ones
            // (RFC 768).
            if packet[at..at + 2] == [0, 0] {
                packet[at..at + 2].copy_from_slice(&[0xff, 0xff]);
            }
        }
    }

    fn update(&self, packet: &mut [u8], at: usize) {
        let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let sum = folded(u32::from(!checksum) + u32::from(self.difference));
        packet[at..at + 2].copy_from_slice(&(!sum).to_be_bytes());
    }
}

/// ~m + m' over all words of two addresses, in one's complement.
fn difference(from: &[u8], to: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], pair[1]]));
    let pairs = from.chunks_exact(2).zip(to.chunks_exact(2));
    folded(pairs.map(|(from, to)| (word(from) ^ 0xffff) + word(to)).sum())
}

/// A sum of words with its carries added in again.
const fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
