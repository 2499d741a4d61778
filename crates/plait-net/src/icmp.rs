//! ICMP over raw sockets (RFC 792, RFC 4443): echo, which tells whether an address answers and how
//! soon; [`errors`], which tell why it does not; and what a [`router`] and its hosts tell each
//! other. Needs CAP_NET_RAW.

pub mod advertisement;
pub mod errors;
pub mod router;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd, RawFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::checksum::Sum;
use crate::sys;

/// Type, code, checksum, identifier, sequence number.
const HEADER_BYTES: usize = 8;
const V4_ECHO_REPLY: u8 = 0;
const V4_ECHO_REQUEST: u8 = 8;
const V6_ECHO_REQUEST: u8 = 128;
const V6_ECHO_REPLY: u8 = 129;
/// Room for an answer with its IPv4 header; a longer one is not ours.
const REPLY_BYTES_MAX: usize = 256;

/// The most that a request may carry.
pub const ECHO_PAYLOAD_BYTES_MAX: usize = 64;

/// A socket for echo requests of one address family, nonblocking. It sees the answers to its own
/// identifier only.
#[derive(Debug)]
pub struct EchoSocket {
    /// The standard library has no raw socket; this type sends and receives the same way.
    socket: UdpSocket,
    is_v6: bool,
    identifier: u16,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EchoReply {
    /// Who answered.
    pub source: IpAddr,
    /// The sequence number of its request.
    pub sequence: u16,
    /// The payload of its request, as it came back.
    pub payload: Vec<u8>,
}

impl EchoSocket {
    /// Opens a socket in the calling thread's network namespace; `identifier` tells its requests
    /// from those of other programs.
    ///
    /// # Errors
    /// The kernel's; EPERM without CAP_NET_RAW.
    pub fn open(is_v6: bool, identifier: u16) -> io::Result<Self> {
        Self::open_on(None, is_v6, identifier)
    }

    /// The same, for requests and answers over one interface only.
    ///
    /// # Errors
    /// The kernel's; ENODEV when there is no such interface.
    pub fn open_on(interface: Option<&str>, is_v6: bool, identifier: u16) -> io::Result<Self> {
        let (domain, protocol) = match is_v6 {
            false => (Domain::IPV4, Protocol::ICMPV4),
            true => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        socket.bind_device(interface.map(str::as_bytes))?;
        if is_v6 {
            sys::socket::pass_icmp6_only(socket.as_fd(), V6_ECHO_REPLY)?;
        } else {
            sys::socket::pass_icmp_only(socket.as_fd(), V4_ECHO_REPLY)?;
        }
        Ok(Self { socket: socket.into(), is_v6, identifier })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The kernel's; ENETUNREACH and such when no route leads to the address.
    ///
    /// # Panics
    /// When the address is of the other family or the payload too long.
    pub fn request(&self, to: IpAddr, sequence: u16, payload: &[u8]) -> io::Result<()> {
        assert_eq!(to.is_ipv6(), self.is_v6, "a socket is for one address family");
        assert!(payload.len() <= ECHO_PAYLOAD_BYTES_MAX, "a request carries a short payload");
        let mut message = [0; HEADER_BYTES + ECHO_PAYLOAD_BYTES_MAX];
        let message = &mut message[..HEADER_BYTES + payload.len()];
        message[0] = if self.is_v6 { V6_ECHO_REQUEST } else { V4_ECHO_REQUEST };
        message[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        message[6..8].copy_from_slice(&sequence.to_be_bytes());
        message[HEADER_BYTES..].copy_from_slice(payload);
        if !self.is_v6 {
            // Over IPv6 the checksum covers addresses that only the kernel knows: it sets it.
            let checksum = Sum::new().bytes(message).checksum();
            message[2..4].copy_from_slice(&checksum);
        }
        self.socket.send_to(message, SocketAddr::new(to, 0))?;
        Ok(())
    }

    /// The next answer to this socket's identifier; `None` when none is waiting.
    ///
    /// # Errors
    /// The kernel's.
    pub fn reply(&self) -> io::Result<Option<EchoReply>> {
        loop {
            let mut buffer = [0; REPLY_BYTES_MAX];
            let (length, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let reply = parse(&buffer[..length], self.is_v6, self.identifier);
            if let Some((sequence, payload)) = reply {
                let (source, payload) = (from.ip(), payload.to_vec());
                return Ok(Some(EchoReply { source, sequence, payload }));
            }
        }
    }
}

impl AsRawFd for EchoSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Sequence number and payload of a raw socket's packet, which over IPv4 begins with the IP header.
fn parse(packet: &[u8], is_v6: bool, identifier: u16) -> Option<(u16, &[u8])> {
    let header_bytes = match is_v6 {
        true => 0,
        false => usize::from(packet.first()? & 0x0f) * 4,
    };
    let message = packet.get(header_bytes..)?;
    let (header, payload) = message.split_first_chunk::<HEADER_BYTES>()?;
    let kind = if is_v6 { V6_ECHO_REPLY } else { V4_ECHO_REPLY };
    let ours = header[..2] == [kind, 0] && header[4..6] == identifier.to_be_bytes();
    let sequence = u16::from_be_bytes([header[6], header[7]]);
    ours.then_some((sequence, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_to_the_own_identifier_is_read() {
        let mut packet = vec![0x45; 20];
        packet.extend([0, 0, 9, 9, 0x12, 0x34, 0, 7, 1, 2, 3]);
        let reply = Some((7, &[1, 2, 3][..]));
        assert_eq!(parse(&packet, false, 0x1234), reply);
        assert_eq!(parse(&packet, false, 0x1235), None);
        packet[20] = V4_ECHO_REQUEST;
        assert_eq!(parse(&packet, false, 0x1234), None);
        let v6 = [V6_ECHO_REPLY, 0, 9, 9, 0x12, 0x34, 0, 7, 1, 2, 3];
        assert_eq!(parse(&v6, true, 0x1234), reply);
        for length in 0..HEADER_BYTES {
            assert_eq!(parse(&v6[..length], true, 0x1234), None, "{length}");
        }
        assert_eq!(parse(&[], false, 0), None);
        assert_eq!(parse(&[0x4f; 30], false, 0), None, "a header longer than the packet");
    }
}
