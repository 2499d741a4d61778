//! UDP sockets with segmentation and receive offload.
//!
//! One send carries up to 64 datagrams of equal size, one receive up to 16 buffers of such runs.
//! Callers see plain IPv4 and IPv6 addresses, never IPv4 ones mapped into IPv6.

mod bind;
mod send;

#[cfg(test)]
mod tests;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use quinn_udp::{RecvMeta, UdpSocketState};

pub use self::bind::{BindError, BindTo};
use self::send::Sender;
use crate::sys;

/// Bytes of one receive buffer: the most that receive offload joins.
const BUFFER_BYTES: usize = 64 * 1024;
/// Buffers of one receive: 1 MB when all are full. With more, a TCP flow's whole window is in one
/// gateway at a time, and the other waits.
pub const BUFFERS_PER_RECEIVE: usize = 16;

/// Datagrams to one destination.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Where they go.
    pub destination: SocketAddr,
    /// The local address to send from; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// ECN codepoint, the two low bits (RFC 3168 section 5).
    pub ecn: u8,
    /// The datagrams' payloads back to back.
    pub contents: &'a [u8],
    /// Bytes of each datagram but the last, which may be shorter; `None`: one datagram.
    pub segment_size: Option<usize>,
}

/// Metadata of the datagrams in one receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedMeta {
    /// Who sent them.
    pub source: SocketAddr,
    /// The local address they were sent to.
    pub destination: Option<IpAddr>,
    /// Bytes of each datagram but the last, which may be shorter. At least 1.
    pub stride: usize,
    /// ECN codepoint, the two low bits (RFC 3168 section 5).
    pub ecn: u8,
}

/// A source and sink of datagrams.
pub trait UdpPort {
    /// Sends all datagrams of `transmit`.
    ///
    /// # Errors
    /// The kernel's: [`io::ErrorKind::WouldBlock`] when its queue is full, EMSGSIZE when a
    /// datagram is longer than the interface's MTU, and others. Datagrams after the one that
    /// failed are not sent, but EMSGSIZE costs only those that are too long.
    fn send(&mut self, transmit: &Transmit<'_>) -> io::Result<()>;

    /// Does one receive and hands each buffer to `sink`. Returns the number of buffers: zero when
    /// nothing is waiting.
    ///
    /// # Errors
    /// The kernel's.
    fn recv(&mut self, sink: &mut dyn FnMut(ReceivedMeta, &mut [u8])) -> io::Result<usize>;

    /// What has happened so far; after a failed send, how much was sent nevertheless.
    fn counters(&self) -> UdpCounters;
}

/// What happened on a socket since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UdpCounters {
    /// System calls that sent something.
    pub sends: u64,
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// Payload bytes of the datagrams sent.
    pub sent_bytes: u64,
    /// Buffers received.
    pub received_buffers: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Sends with segmentation offload that the kernel refused; they were sent singly.
    pub refused_segmentation: u64,
    /// Datagrams longer than the interface's MTU: lost.
    pub too_long_datagrams: u64,
}

/// A nonblocking UDP socket with its receive buffers.
#[derive(Debug)]
pub struct UdpSocket {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
    is_v6: bool,
    sender: Sender,
    buffers: Box<[u8]>,
    received: [RecvMeta; BUFFERS_PER_RECEIVE],
    counters: UdpCounters,
}

impl UdpSocket {
    /// Opens a socket as `to` says. It never fragments, and only an interface's own MTU limits what
    /// it sends: what the kernel learned from ICMP does not (RFC 8899 §4.2).
    ///
    /// # Errors
    /// [`BindError`], each with its remedy.
    pub fn bind(to: &BindTo) -> Result<Self, BindError> {
        let socket = bind::open(to)?;
        let failed = |action| move |source| BindError::Io { to: to.clone(), action, source };
        let state = fresh_state(&socket).map_err(failed("setting the options of the socket"))?;
        let local = socket.local_addr().map_err(failed("asking for the local address"))?;
        let sender = Sender::new(state.max_gso_segments());
        Ok(Self {
            socket,
            state,
            is_v6: local.is_ipv6(),
            sender,
            buffers: vec![0; BUFFERS_PER_RECEIVE * BUFFER_BYTES].into_boxed_slice(),
            received: [RecvMeta::default(); BUFFERS_PER_RECEIVE],
            counters: UdpCounters::default(),
        })
    }

    /// The local address and port; `[::]` when bound to every address of both families.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(plain(self.socket.local_addr()?))
    }

    /// Datagrams that one system call carries; 1 when the kernel or device segments nothing.
    pub fn max_segments(&self) -> usize {
        self.sender.max_segments()
    }

    /// Bytes of the kernel's receive and send buffers, as it counts them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn buffer_sizes(&self) -> io::Result<(usize, usize)> {
        let socket = socket2::SockRef::from(&self.socket);
        Ok((socket.recv_buffer_size()?, socket.send_buffer_size()?))
    }
}

impl UdpPort for UdpSocket {
    fn send(&mut self, transmit: &Transmit<'_>) -> io::Result<()> {
        let destination =
            if self.is_v6 { mapped(transmit.destination) } else { transmit.destination };
        let (socket, state) = (&self.socket, &mut self.state);
        let one_call = |contents: &[u8], segment_size: Option<usize>| {
            let call = quinn_udp::Transmit {
                destination,
                ecn: quinn_udp::EcnCodepoint::from_bits(transmit.ecn),
                contents,
                segment_size,
                src_ip: transmit.source,
            };
            let result = state.try_send(socket.into(), &call);
            if result.as_ref().is_err_and(send::is_refusal) {
                // The library gives up ECN and segmentation for good at the first refusal, even if
                // only an address went away; a fresh state has both again.
                *state = fresh_state(socket)?;
            }
            result
        };
        self.sender.send(transmit, one_call, &mut self.counters)
    }

    fn recv(&mut self, sink: &mut dyn FnMut(ReceivedMeta, &mut [u8])) -> io::Result<usize> {
        let mut chunks = self.buffers.chunks_exact_mut(BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; BUFFERS_PER_RECEIVE] = std::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().expect("invariant: one chunk per slot of a batch"))
        });
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut self.received) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        };
        for (meta, buffer) in self.received.iter().zip(&mut slices).take(count) {
            let received = ReceivedMeta {
                source: plain(meta.addr),
                destination: meta.dst_ip.map(|address| address.to_canonical()),
                stride: meta.stride.max(1),
                ecn: meta.ecn.map_or(0, |codepoint| codepoint as u8),
            };
            self.counters.received_datagrams += meta.len.div_ceil(received.stride) as u64;
            sink(received, &mut buffer[..meta.len]);
        }
        self.counters.received_buffers += count as u64;
        Ok(count)
    }

    fn counters(&self) -> UdpCounters {
        self.counters
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Sets the socket's options. Receive timestamps are turned off again: with them the ECN codepoint
/// of joined datagrams no longer fits into the library's control buffer and is silently lost.
fn fresh_state(socket: &std::net::UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    sys::socket::disable_timestamps(socket.as_fd())?;
    Ok(state)
}

/// Unmaps IPv4 from IPv6 and drops the flow label, so that equal peers compare equal.
fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
        SocketAddr::V4(_) => address,
    }
}

/// Maps IPv4 into IPv6, as a socket of both families needs it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => {
            let ip: Ipv6Addr = v4.ip().to_ipv6_mapped();
            SocketAddr::from((ip, v4.port()))
        }
        SocketAddr::V6(_) => address,
    }
}
