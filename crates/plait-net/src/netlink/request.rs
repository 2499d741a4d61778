//! One request and its answers.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Bytes of a netlink header, and so of the shortest message.
const HEADER_BYTES: usize = 16;
/// The first message type that is not netlink's own (linux/netlink.h).
const NLMSG_MIN_TYPE: u16 = 0x10;
/// How often a dump is restarted because a table changed meanwhile.
const DUMP_ATTEMPTS: usize = 5;
/// NLM_F_DUMP_INTR of linux/netlink.h: the table changed during the dump.
const DUMP_INTERRUPTED: u16 = 0x10;

#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    sequence: u32,
}

/// What the answers to one request amounted to.
enum Reply {
    Done(Vec<RouteNetlinkMessage>),
    Interrupted,
}

impl Connection {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks for a whole table.
    pub(super) fn dump(
        &mut self,
        request: RouteNetlinkMessage,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        for _ in 0..DUMP_ATTEMPTS {
            self.send(request.clone(), NLM_F_REQUEST | NLM_F_DUMP)?;
            if let Reply::Done(messages) = self.receive()? {
                return Ok(messages);
            }
        }
        Err(io::Error::other("the table kept changing while it was read: try again"))
    }

    /// Asks for something that is not a table.
    pub(super) fn ask(
        &mut self,
        request: RouteNetlinkMessage,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(request, NLM_F_REQUEST | NLM_F_ACK)?;
        match self.receive()? {
            Reply::Done(messages) => Ok(messages),
            Reply::Interrupted => unreachable!("invariant: only a dump can be interrupted"),
        }
    }

    /// Asks for a change and waits until it is made.
    pub(super) fn change(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(request, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        self.receive().map(|_| ())
    }

    fn send(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// Reads until the answers to the last request end.
    fn receive(&mut self) -> io::Result<Reply> {
        let mut messages = Vec::new();
        let mut interrupted = false;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while rest.len() >= HEADER_BYTES {
                let len = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
                if len < HEADER_BYTES || len > rest.len() {
                    return Err(malformed("a message length is wrong"));
                }
                let (bytes, _) = rest.split_at(len);
                rest = &rest[len.next_multiple_of(4).min(rest.len())..];
                let message = match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
                    Ok(message) => message,
                    // An entry that the library cannot read must not hide all others.
                    Err(_) if is_entry(bytes) => continue,
                    Err(error) => return Err(malformed(&error.to_string())),
                };
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                interrupted |= message.header.flags & DUMP_INTERRUPTED != 0;
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => messages.push(inner),
                    NetlinkPayload::Done(done) if done.code < 0 => {
                        return Err(io::Error::from_raw_os_error(-done.code));
                    }
                    NetlinkPayload::Done(_) if interrupted => return Ok(Reply::Interrupted),
                    NetlinkPayload::Done(_) => return Ok(Reply::Done(messages)),
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(Reply::Done(messages)),
                            Some(_) => Err(error.to_io()),
                        };
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Whether a message is neither the end of the answers nor an error.
fn is_entry(message: &[u8]) -> bool {
    u16::from_ne_bytes([message[4], message[5]]) >= NLMSG_MIN_TYPE
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the kernel's answer is malformed: {what}"))
}
