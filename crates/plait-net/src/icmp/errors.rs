//! Errors of routers and hosts about datagrams that they could not deliver (destination
//! unreachable: RFC 792; RFC 4443 section 3.1).
//!
//! A UDP socket can report such errors itself, but then each makes a send fail, and anybody can
//! forge them. A raw socket receives the same errors and disturbs nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sys;

const V4_UNREACHABLE: u8 = 3;
const V6_UNREACHABLE: u8 = 1;
/// Type, code, checksum, four bytes of no use here.
const HEADER_BYTES: usize = 8;
const V6_HEADER_BYTES: usize = 40;
const UDP: u8 = 17;
/// Enough for both IP headers, the longest, and the ports.
const MESSAGE_BYTES_MAX: usize = 256;

/// Why a datagram was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// Nothing listens on the port.
    Port,
    /// The address does not answer its last router.
    Host,
    /// A router knows no way.
    Network,
    /// A firewall or a router refuses.
    Prohibited,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Port => "refused: nothing listens on the port",
            Self::Host => "host unreachable",
            Self::Network => "network unreachable",
            Self::Prohibited => "prohibited by a firewall or router",
        })
    }
}

/// One such message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// Who sent it. Anybody can forge it.
    pub from: IpAddr,
    /// Where the datagram was going.
    pub destination: SocketAddr,
    /// What it says.
    pub why: Unreachable,
}

/// A socket for the errors of one address family, about datagrams of UDP.
#[derive(Debug)]
pub struct ErrorSocket {
    /// The standard library has no raw socket; this type receives the same way.
    socket: UdpSocket,
    is_v6: bool,
}

impl ErrorSocket {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's; EPERM without CAP_NET_RAW.
    pub fn open(is_v6: bool) -> io::Result<Self> {
        let (domain, protocol) = match is_v6 {
            false => (Domain::IPV4, Protocol::ICMPV4),
            true => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        if is_v6 {
            sys::socket::pass_icmp6_only(socket.as_fd(), V6_UNREACHABLE)?;
        } else {
            sys::socket::pass_icmp_only(socket.as_fd(), V4_UNREACHABLE)?;
        }
        Ok(Self { socket: socket.into(), is_v6 })
    }

    /// Waits for the next message; `None` for one that is about something else.
    ///
    /// # Errors
    /// The kernel's.
    pub fn next(&self) -> io::Result<Option<IcmpError>> {
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        let (length, from) = self.socket.recv_from(&mut buffer)?;
        let read = if self.is_v6 { parse_v6 } else { parse_v4 };
        let parsed = read(&buffer[..length]);
        Ok(parsed.map(|(destination, why)| IcmpError { from: from.ip(), destination, why }))
    }
}

/// Over IPv4 a raw socket's packet begins with the IP header.
fn parse_v4(packet: &[u8]) -> Option<(SocketAddr, Unreachable)> {
    let message = packet.get(v4_header_bytes(packet)?..)?;
    let (header, inner) = message.split_first_chunk::<HEADER_BYTES>()?;
    // RFC 792, RFC 1812 section 5.2.7.1. Code 4 says that the datagram is too long: it is ignored.
    let why = match (header[0], header[1]) {
        (V4_UNREACHABLE, 0 | 5 | 6 | 8 | 11) => Unreachable::Network,
        (V4_UNREACHABLE, 1 | 7 | 12) => Unreachable::Host,
        (V4_UNREACHABLE, 2 | 3) => Unreachable::Port,
        (V4_UNREACHABLE, 9 | 10 | 13) => Unreachable::Prohibited,
        _ => return None,
    };
    let address: [u8; 4] = inner.get(16..20)?.try_into().ok()?;
    let is_udp = *inner.get(9)? == UDP;
    let port = port(inner.get(v4_header_bytes(inner)?..)?)?;
    is_udp.then(|| ((Ipv4Addr::from(address), port).into(), why))
}

fn v4_header_bytes(packet: &[u8]) -> Option<usize> {
    Some(usize::from(packet.first()? & 0x0f) * 4)
}

fn parse_v6(message: &[u8]) -> Option<(SocketAddr, Unreachable)> {
    let (header, inner) = message.split_first_chunk::<HEADER_BYTES>()?;
    // RFC 4443 section 3.1.
    let why = match (header[0], header[1]) {
        (V6_UNREACHABLE, 0 | 2) => Unreachable::Network,
        (V6_UNREACHABLE, 3) => Unreachable::Host,
        (V6_UNREACHABLE, 4) => Unreachable::Port,
        (V6_UNREACHABLE, 1 | 5 | 6) => Unreachable::Prohibited,
        _ => return None,
    };
    let address: [u8; 16] = inner.get(24..40)?.try_into().ok()?;
    let is_udp = *inner.get(6)? == UDP;
    let port = port(inner.get(V6_HEADER_BYTES..)?)?;
    is_udp.then(|| ((Ipv6Addr::from(address), port).into(), why))
}

/// The destination port of a UDP header, which is never 0.
fn port(udp: &[u8]) -> Option<u16> {
    let port = u16::from_be_bytes(udp.get(2..4)?.try_into().ok()?);
    (port != 0).then_some(port)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message about a datagram to 192.0.2.1:7788.
    fn v4(kind: u8, code: u8) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet.extend([kind, code, 0, 0, 0, 0, 0, 0]);
        packet.extend([0x46, 0, 0, 0, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
        packet.extend([0; 4]);
        packet.extend([0x9c, 0x40, 0x1e, 0x6c]);
        packet
    }

    #[test]
    fn what_is_unreachable_and_why_is_read() {
        let to = SocketAddr::from(([192, 0, 2, 1], 7788));
        assert_eq!(parse_v4(&v4(3, 3)), Some((to, Unreachable::Port)));
        assert_eq!(parse_v4(&v4(3, 0)), Some((to, Unreachable::Network)));
        assert_eq!(parse_v4(&v4(3, 13)), Some((to, Unreachable::Prohibited)));
        assert_eq!(parse_v4(&v4(3, 4)), None, "too long is no error");
        assert_eq!(parse_v4(&v4(11, 0)), None);
        let mut tcp = v4(3, 3);
        tcp[20 + 8 + 9] = 6;
        assert_eq!(parse_v4(&tcp), None);
        let mut message = vec![1, 4, 0, 0, 0, 0, 0, 0];
        message.extend([0x60, 0, 0, 0, 0, 0, UDP, 64]);
        message.extend([1; 16]);
        message.extend(Ipv6Addr::LOCALHOST.octets());
        message.extend([0x9c, 0x40, 0x1e, 0x6c]);
        let to = SocketAddr::from((Ipv6Addr::LOCALHOST, 7788));
        assert_eq!(parse_v6(&message), Some((to, Unreachable::Port)));
    }

    proptest! {
        #[test]
        fn no_message_harms(
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            cut in 0..60_usize,
        ) {
            let _ = (parse_v4(&bytes), parse_v6(&bytes));
            let whole = v4(3, 3);
            let cut = &whole[..whole.len().min(cut)];
            prop_assert!(cut.len() == whole.len() || parse_v4(cut).is_none());
        }
    }
}
