//! Every TCP socket of a network namespace with its TCP_INFO, and the MPTCP connection that it is
//! a subflow of (sock_diag(7)). Anybody may ask; only who has CAP_NET_ADMIN there is told of MPTCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as KernelAddress};

use crate::tcp::TcpInfo;

/// SOCK_DIAG_BY_FAMILY of linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// NLM_F_REQUEST and NLM_F_DUMP of linux/netlink.h.
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const HEADER_BYTES: usize = 16;
/// Bytes of `struct inet_diag_req_v2` and `struct inet_diag_msg` of linux/inet_diag.h.
const REQUEST_BYTES: usize = 56;
const ENTRY_BYTES: usize = 72;
/// `struct inet_diag_sockid`, the last part of the one and the fifth field of the other.
const ID_BYTES: usize = 48;
/// A dump comes in datagrams of at most 32 KiB.
const BUFFER_BYTES: usize = 64 * 1024;
/// Attributes of an entry.
const INFO: u16 = 2;
const ULP_INFO: u16 = 19;
/// Inside ULP_INFO, and inside that (linux/mptcp.h).
const ULP_MPTCP: u16 = 3;
const TOKEN_LOCAL: u16 = 2;
const ID_LOCAL: u16 = 10;
/// Bits of an attribute's type that are no part of its number.
const TYPE_MASK: u16 = 0x3fff;
/// Established, and the states of an end after it: fin-wait 1 and 2, close-wait, last-ack, closing.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// What the kernel knows a socket by: its two ends, its device and its cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketId {
    family: u8,
    /// As the kernel gave it.
    bytes: [u8; ID_BYTES],
}

impl SocketId {
    /// Of no socket yet: what is asked of a family as a whole.
    fn any(family: u8) -> Self {
        Self { family, bytes: [0; ID_BYTES] }
    }
}

/// A TCP connection's socket, or an MPTCP subflow's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpSocket {
    /// To ask for it again, by [`TcpSockets::find`].
    pub id: SocketId,
    /// Unlike any other socket's while the machine runs (SO_COOKIE).
    pub cookie: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What it did.
    pub info: TcpInfo,
    /// Of a subflow: this end's token of its connection, and its own number at this end.
    pub mptcp: Option<(u32, u8)>,
}

/// Asks for the sockets of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct TcpSockets {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl TcpSockets {
    /// Begins to ask.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&KernelAddress::new(0, 0))?;
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Looks at every connected socket. The kernel walks its whole table of sockets for it, used or
    /// not, which takes milliseconds where the table is large.
    ///
    /// # Errors
    /// The kernel's.
    pub fn each(&mut self, mut look: impl FnMut(&TcpSocket)) -> io::Result<()> {
        self.ask(SocketId::any(libc::AF_INET as u8), DUMP, &mut look)?;
        match self.ask(SocketId::any(libc::AF_INET6 as u8), DUMP, &mut look) {
            // A kernel without IPv6.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            result => result,
        }
    }

    /// Looks at one socket, which costs some microseconds; `None` where it is no more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn find(&mut self, id: &SocketId) -> io::Result<Option<TcpSocket>> {
        let mut found = None;
        match self.ask(*id, 0, &mut |socket| found = Some(*socket)) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESTALE)) => {
                Ok(None)
            }
            result => result.map(|()| found),
        }
    }

    /// Sends a question and looks at its answers: of a dump, until it is done; else there is one.
    fn ask(
        &mut self,
        id: SocketId,
        dump: u16,
        look: &mut impl FnMut(&TcpSocket),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&request(id, dump, self.sequence), 0)?;
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            };
            let mut rest = &self.buffer[..];
            while let Some((message, after)) = split_message(rest) {
                rest = after;
                let number = |at: usize| u16::from_ne_bytes([message[at], message[at + 1]]);
                if message[8..12] != self.sequence.to_ne_bytes() {
                    continue;
                }
                match number(4) {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return result_of(message),
                    BY_FAMILY => {
                        parse_entry(&message[HEADER_BYTES..]).iter().for_each(&mut *look);
                        if dump == 0 {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

fn request(id: SocketId, dump: u16, sequence: u32) -> Vec<u8> {
    let length = HEADER_BYTES + REQUEST_BYTES;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend((REQUEST | dump).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    // The wanted attributes are a mask; what belongs to a ULP comes unasked.
    bytes.extend([id.family, libc::IPPROTO_TCP as u8, 1 << (INFO - 1), 0]);
    bytes.extend(STATES.to_ne_bytes());
    bytes.extend(id.bytes);
    debug_assert_eq!(bytes.len(), length, "the parts of a request fill it");
    bytes
}

/// The first message of a datagram, with its header, and what follows it.
fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let message = bytes.get(..length).filter(|message| message.len() >= HEADER_BYTES)?;
    Some((message, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn result_of(message: &[u8]) -> io::Result<()> {
    match u32_at(message, HEADER_BYTES).unwrap_or_default() as i32 {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

/// Reads an entry; nothing where it is not what was asked for.
fn parse_entry(bytes: &[u8]) -> Option<TcpSocket> {
    let (head, attributes) = bytes.split_at_checked(ENTRY_BYTES)?;
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| -> Option<IpAddr> {
        match i32::from(head[0]) {
            libc::AF_INET => {
                Some(Ipv4Addr::from(<[u8; 4]>::try_from(&head[at..at + 4]).ok()?).into())
            }
            libc::AF_INET6 => {
                let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(&head[at..at + 16]).ok()?);
                Some(IpAddr::from(v6).to_canonical())
            }
            _ => None,
        }
    };
    // A dump has the wanted states only; a socket that is asked for may have gone on to another.
    if 1_u32.checked_shl(head[1].into()).unwrap_or_default() & STATES == 0 {
        return None;
    }
    let id = SocketId { family: head[0], bytes: head[4..4 + ID_BYTES].try_into().ok()? };
    let info = attribute(attributes, INFO).map(TcpInfo::parse)?;
    let cookie = |at: usize| u32_at(head, at).map(u64::from);
    let subflow = || {
        let mptcp = attribute(attribute(attributes, ULP_INFO)?, ULP_MPTCP)?;
        let id = attribute(mptcp, ID_LOCAL).and_then(|id| id.first().copied());
        Some((u32_at(attribute(mptcp, TOKEN_LOCAL)?, 0)?, id.unwrap_or_default()))
    };
    Some(TcpSocket {
        id,
        cookie: cookie(44)? | cookie(48)? << 32,
        local: SocketAddr::new(address(8)?, port(4)),
        remote: SocketAddr::new(address(24)?, port(6)),
        info,
        // A connection that fell back to plain TCP has no token.
        mptcp: subflow().filter(|(token, _)| *token != 0),
    })
}

/// The content of the first attribute of a kind.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let (head, _) = bytes.split_at_checked(4)?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let content = bytes.get(4..length)?;
        if u16::from_ne_bytes([head[2], head[3]]) & TYPE_MASK == kind {
            return Some(content);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;
    use socket2::Domain;

    use super::*;
    use crate::mptcp::{is_missing, stream_socket};

    /// Both ends of a connection over the loopback device that carried 5000 bytes.
    fn pair(multipath: bool) -> Option<(TcpStream, TcpStream)> {
        let listener = match stream_socket(Domain::IPV4, multipath) {
            Err(error) if is_missing(&error) => {
                eprintln!("skipped: there is no MPTCP here: {error}");
                return None;
            }
            socket => socket.unwrap(),
        };
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(1).unwrap();
        let listener = TcpListener::from(listener);
        let sender = stream_socket(Domain::IPV4, multipath).unwrap();
        sender.connect(&listener.local_addr().unwrap().into()).unwrap();
        let (mut sender, mut receiver) = (TcpStream::from(sender), listener.accept().unwrap().0);
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        Some((sender, receiver))
    }

    fn find(stream: &TcpStream) -> Option<TcpSocket> {
        let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let (local, remote) = (plain(local), plain(remote));
        let mut found = None;
        let mut sockets = TcpSockets::open().unwrap();
        // Twice: the answers to a question are not those to the one before.
        for _ in 0..2 {
            sockets
                .each(|one| {
                    if (one.local, one.remote) == (local, remote) {
                        found = Some(*one);
                    }
                })
                .unwrap();
        }
        found
    }

    #[test]
    fn a_connection_is_found_with_what_it_sent() {
        let (sender, receiver) = pair(false).expect("there is TCP everywhere");
        let found = find(&sender).expect("the sender is listed");
        assert_eq!((found.info.bytes_sent, found.mptcp), (5000, None));
        assert!(found.info.snd_cwnd > 0 && found.info.srtt_us > 0 && found.cookie > 0);
        assert!(found.info.snd_ssthresh >= 0x7fff_ffff, "{found:?}");
        assert_ne!(find(&receiver).expect("the receiver is listed").cookie, found.cookie);
    }

    #[test]
    fn a_socket_is_asked_for_by_its_id_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut receiver, _) = listener.accept().unwrap();
            let listed = find(&sender).expect("the sender is listed");
            sender.write_all(&[7; 700]).unwrap();
            receiver.read_exact(&mut [0; 700]).unwrap();
            let mut sockets = TcpSockets::open().unwrap();
            let found = sockets.find(&listed.id).unwrap().expect("the sender is there");
            assert_eq!((found.id, found.cookie), (listed.id, listed.cookie), "{address}");
            assert_eq!(found.info.bytes_sent, listed.info.bytes_sent + 700, "{address}");
            // Both ends with a reset, so that nothing stays behind.
            socket2::SockRef::from(&sender).set_linger(Some(std::time::Duration::ZERO)).unwrap();
            drop((sender, receiver));
            assert_eq!(sockets.find(&listed.id).unwrap(), None, "{address}");
        }
    }

    #[test]
    fn a_subflow_has_its_connection_s_token() {
        let Some((sender, _receiver)) = pair(true) else { return };
        let found = find(&sender).expect("the subflow is listed");
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
        if u64::from_str_radix(effective, 16).unwrap() & 1 << 12 != 0 {
            assert!(matches!(found.mptcp, Some((1.., 0))), "{found:?}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut rest = &bytes[..];
            while let Some((message, after)) = split_message(rest) {
                prop_assert!(after.len() < rest.len());
                rest = after;
                let _ = parse_entry(&message[HEADER_BYTES..]);
            }
            let mut entry = vec![libc::AF_INET as u8; ENTRY_BYTES];
            // Established.
            entry[1] = 1;
            entry.extend([4_u8, 0, 2, 0]);
            entry.extend(&bytes);
            prop_assert!(parse_entry(&entry).is_some());
            let _ = attribute(&bytes, ULP_INFO);
        }
    }
}
