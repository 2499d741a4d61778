//! Packets of the applications: plain values on bare links, IPv4 packets inside the bond.

use plait_proto::time::Instant;

/// Address of the customer's host inside the bond.
pub(crate) const CUSTOMER_IP: [u8; 4] = [10, 99, 0, 2];
/// Address of the server inside the bond.
pub(crate) const SERVER_IP: [u8; 4] = [10, 99, 0, 1];

const IP_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;
const TCP_HEADER_BYTES: usize = 20;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// The TCP flag that is set in every packet of the simulator.
const ACK: u8 = 0x10;
/// Application, stream and number, then the time of sending.
const NAME_BYTES: usize = 16;
const HEAD_BYTES_MAX: usize = IP_HEADER_BYTES + TCP_HEADER_BYTES + NAME_BYTES;
const STREAM_BITS: u32 = 20;

/// A direction of travel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Provider to customer.
    Down,
    /// Customer to provider.
    Up,
}

impl Way {
    /// Both, in the order in which they are numbered.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];
}

/// Which end of an application a packet comes from or goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// The host behind the customer's gateway.
    Customer,
    /// The server behind the provider's gateway.
    Server,
}

impl End {
    /// The end opposite.
    pub const fn other(self) -> Self {
        match self {
            Self::Customer => Self::Server,
            Self::Server => Self::Customer,
        }
    }
}

/// The transport protocol of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// UDP.
    Udp,
    /// TCP with data; its segments carry no option that the core would read.
    Tcp,
    /// TCP that only acknowledges.
    TcpAck,
}

/// A packet of an application. Only `bytes`, addresses and ports are real; the rest is the
/// simulator's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The application, below [`Packet::APPS_MAX`].
    pub app: usize,
    /// One direction of one of its flows, below [`Packet::STREAMS_MAX`].
    pub stream: u32,
    /// Counts the stream's packets.
    pub number: u32,
    /// When it was sent. A TCP packet shorter than [`Packet::TIMED_TCP_BYTES_MIN`] comes out of the
    /// bond with zero.
    pub sent_at: Instant,
    /// Length at the IP layer.
    pub bytes: u16,
    /// Its transport protocol.
    pub protocol: Protocol,
    /// Its DSCP (RFC 2474), below 64.
    pub dscp: u8,
    /// Where it goes.
    pub to: End,
}

impl Packet {
    /// Applications that a world may have.
    pub const APPS_MAX: usize = 1 << 12;
    /// Streams that an application may have.
    pub const STREAMS_MAX: u32 = 1 << STREAM_BITS;
    /// The shortest TCP packet that carries the time at which it was sent.
    pub const TIMED_TCP_BYTES_MIN: u16 = HEAD_BYTES_MAX as u16;

    /// Writes the packet's head over the start of `scratch`, which only ever held heads there, and
    /// returns the packet. Two streams of one flow, 2n and 2n + 1, have the same ports, swapped.
    pub(crate) fn write<'a>(&self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let length = usize::from(self.bytes);
        if scratch.len() < length.max(HEAD_BYTES_MAX) {
            scratch.resize(length.max(HEAD_BYTES_MAX), 0);
        }
        let head: &mut [u8; HEAD_BYTES_MAX] =
            scratch.first_chunk_mut().expect("the buffer has room for a head");
        *head = [0; HEAD_BYTES_MAX];
        let (from, to) = match self.to {
            End::Customer => (SERVER_IP, CUSTOMER_IP),
            End::Server => (CUSTOMER_IP, SERVER_IP),
        };
        head[0] = 0x45;
        head[1] = self.dscp << 2;
        head[2..4].copy_from_slice(&self.bytes.to_be_bytes());
        head[6] = 0x40;
        head[8] = 64;
        head[12..16].copy_from_slice(&from);
        head[16..20].copy_from_slice(&to);
        let name_at = match self.protocol {
            Protocol::Udp => {
                head[9] = UDP;
                head[24..26].copy_from_slice(&(self.bytes - 20).to_be_bytes());
                IP_HEADER_BYTES + UDP_HEADER_BYTES
            }
            Protocol::Tcp => {
                head[9] = TCP;
                // Data offset: five words, so there are no options; flag ACK.
                head[32..34].copy_from_slice(&[0x50, ACK]);
                IP_HEADER_BYTES + TCP_HEADER_BYTES
            }
            Protocol::TcpAck => {
                head[9] = TCP;
                // The data offset covers everything, so there is no data; the window is open.
                let words = ((length - IP_HEADER_BYTES) / 4) as u8;
                head[32..36].copy_from_slice(&[words << 4, ACK, 0xff, 0xff]);
                IP_HEADER_BYTES + TCP_HEADER_BYTES
            }
        };
        self.write_ports(head);
        let app = u32::try_from(self.app).expect("an application's number is below APPS_MAX");
        let name = [(app << STREAM_BITS) | self.stream, self.number];
        head[name_at..name_at + 4].copy_from_slice(&name[0].to_be_bytes());
        head[name_at + 4..name_at + 8].copy_from_slice(&name[1].to_be_bytes());
        head[name_at + 8..name_at + 16].copy_from_slice(&self.sent_at.as_nanos().to_be_bytes());
        &scratch[..length]
    }

    fn write_ports(&self, head: &mut [u8; HEAD_BYTES_MAX]) {
        // One well-known port per application, and one ephemeral port per flow.
        let flow = self.stream / 2;
        let low = |number: u32| (number & 0x7fff) as u16;
        let app = u32::try_from(self.app).expect("an application's number is below APPS_MAX");
        let (service, ephemeral) = (5000 + low(app), 0x8000 | low(flow));
        let (source, destination) = match self.to {
            End::Customer => (service, ephemeral),
            End::Server => (ephemeral, service),
        };
        head[20..22].copy_from_slice(&source.to_be_bytes());
        head[22..24].copy_from_slice(&destination.to_be_bytes());
    }

    /// Reads one of the simulator's packets; the core forwards packets unchanged.
    ///
    /// `None` for a gateway's own packets (ICMP): hosts here ignore them.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let protocol = match packet[9] {
            UDP => Protocol::Udp,
            TCP if packet.len() == IP_HEADER_BYTES + usize::from(packet[32] >> 4) * 4 => {
                Protocol::TcpAck
            }
            TCP => Protocol::Tcp,
            _ => return None,
        };
        let name_at = match protocol {
            Protocol::Udp => IP_HEADER_BYTES + UDP_HEADER_BYTES,
            Protocol::Tcp | Protocol::TcpAck => IP_HEADER_BYTES + TCP_HEADER_BYTES,
        };
        let word = |at: usize| {
            let bytes = packet[at..at + 4].try_into().expect("four bytes are four bytes");
            u32::from_be_bytes(bytes)
        };
        // A pure acknowledgement has 12 bytes beyond its header, which is no room for the time.
        let sent_at = if packet.len() < name_at + NAME_BYTES {
            0
        } else {
            u64::from(word(name_at + 8)) << 32 | u64::from(word(name_at + 12))
        };
        let to = if packet[16..20] == CUSTOMER_IP { End::Customer } else { End::Server };
        Some(Self {
            app: (word(name_at) >> STREAM_BITS) as usize,
            stream: word(name_at) & (Self::STREAMS_MAX - 1),
            number: word(name_at + 4),
            sent_at: Instant::from_nanos(sent_at),
            bytes: u16::from_be_bytes([packet[2], packet[3]]),
            protocol,
            dscp: packet[1] >> 2,
            to,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let mut scratch = Vec::new();
        let udp = Packet {
            app: 4095,
            stream: 70_001,
            number: u32::MAX,
            sent_at: Instant::from_nanos(u64::MAX / 3),
            bytes: 1488,
            protocol: Protocol::Udp,
            dscp: 46,
            to: End::Customer,
        };
        assert_eq!(Packet::read(udp.write(&mut scratch)), Some(udp));
        let ack = Packet {
            bytes: 52,
            protocol: Protocol::TcpAck,
            dscp: 0,
            to: End::Server,
            sent_at: Instant::ZERO,
            ..udp
        };
        let written = ack.write(&mut scratch);
        assert_eq!(written.len(), 52);
        assert!(plait_proto::wire::tcp::is_plain_ack(written), "as the core sees it");
        assert_eq!(Packet::read(written), Some(ack));
        let mut icmp = udp.write(&mut scratch).to_vec();
        icmp[9] = 1;
        assert_eq!(Packet::read(&icmp), None, "what a gateway says");
    }
}
