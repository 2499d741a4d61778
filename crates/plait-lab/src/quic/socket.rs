//! A socket for a QUIC stack: packets are not fragmented, and ECN marks are passed.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_proto::EcnCodepoint;
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

/// The longest that the kernel may join (UDP_GRO).
const BUFFER_BYTES: usize = 65_535;

/// Linux: include/uapi/asm-generic/errno.h.
const EMSGSIZE: i32 = 90;

/// Datagrams with their common ECN mark.
type Received = (Vec<Vec<u8>>, Option<EcnCodepoint>);

/// A socket connected to one peer.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    pub(super) peer: SocketAddr,
    buffer: Vec<u8>,
}

impl Socket {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Self { peer: socket.peer_addr()?, socket, state, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Reads what has arrived; `None` when there is nothing.
    pub(super) fn receive(&mut self) -> io::Result<Option<Received>> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        match self.state.recv(UdpSockRef::from(&self.socket), &mut buffers, &mut meta) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if is_passing(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let [RecvMeta { len, stride, ecn, .. }] = meta;
        let datagrams = self.buffer[..len].chunks(stride.max(1)).map(<[u8]>::to_vec).collect();
        Ok(Some((datagrams, ecn.and_then(|mark| EcnCodepoint::from_bits(mark as u8)))))
    }

    /// Sends a datagram; says whether it was taken. A datagram too long for the path, or whose peer
    /// is gone, is lost as on any other link.
    pub(super) fn send(&self, contents: &[u8], mark: Option<EcnCodepoint>) -> bool {
        let ecn = mark.and_then(|mark| quinn_udp::EcnCodepoint::from_bits(mark as u8));
        let transmit =
            Transmit { destination: self.peer, ecn, contents, segment_size: None, src_ip: None };
        let sent = self.state.try_send(UdpSockRef::from(&self.socket), &transmit);
        !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Whether there is just nothing to read, or an ICMP message came: the peer's socket does not
/// exist, there is no route to it, or a probe of the path's MTU was too long.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, WouldBlock};
    [WouldBlock, ConnectionRefused, HostUnreachable, NetworkUnreachable].contains(&error.kind())
        || error.raw_os_error() == Some(EMSGSIZE)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
