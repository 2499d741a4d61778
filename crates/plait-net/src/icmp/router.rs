//! The socket of a router: sends advertisements, and receives solicitations. Needs CAP_NET_RAW.

use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsFd as _, AsRawFd, RawFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::advertisement::{
    ADVERTISEMENT, Advertisement, NoSolicitation, SOLICITATION, check_solicitation,
};
use crate::sys::socket::{self, Icmp6};

/// All nodes on a link, and all routers.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Hosts take advertisements only as they were sent, not forwarded.
const HOPS: u32 = 255;
/// A longer solicitation is cut, and then not taken.
const SOLICITATION_BYTES_MAX: usize = 512;
/// The socket is in the group already.
const EADDRINUSE: i32 = 98;

/// The socket, for all links. Nonblocking.
#[derive(Debug)]
pub struct RouterSocket {
    socket: Socket,
}

/// A solicitation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicitation {
    /// The link that it came over.
    pub index: u32,
    /// Whether it may be answered.
    pub checked: Result<(), NoSolicitation>,
}

impl RouterSocket {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's; EPERM without CAP_NET_RAW, EAFNOSUPPORT without IPv6.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        socket::pass_icmp6_only(socket.as_fd(), SOLICITATION)?;
        socket.set_nonblocking(true)?;
        socket.set_multicast_hops_v6(HOPS)?;
        socket.set_unicast_hops_v6(HOPS)?;
        socket.set_multicast_loop_v6(false)?;
        socket.set_recv_hoplimit_v6(true)?;
        socket::tell_interface(socket.as_fd())?;
        Ok(Self { socket })
    }

    /// Hears solicitations over a link.
    ///
    /// # Errors
    /// The kernel's.
    pub fn join(&self, index: u32) -> io::Result<()> {
        match self.socket.join_multicast_v6(&ALL_ROUTERS, index) {
            Err(error) if error.raw_os_error() == Some(EADDRINUSE) => Ok(()),
            result => result,
        }
    }

    /// Tells all hosts on a link. The kernel takes the link's own link-local address as the source;
    /// there must be one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn advertise(&self, index: u32, advertisement: &Advertisement) -> io::Result<()> {
        let message = advertisement.message();
        debug_assert_eq!(message[0], ADVERTISEMENT);
        self.socket.send_to(&message, &SocketAddrV6::new(ALL_NODES, 0, 0, index).into())?;
        Ok(())
    }

    /// The next solicitation, sound or not; `None` when none is waiting.
    ///
    /// # Errors
    /// The kernel's.
    pub fn solicitation(&self) -> io::Result<Option<Solicitation>> {
        let mut buffer = [0; SOLICITATION_BYTES_MAX];
        loop {
            let Icmp6 { length, source, index, hop_limit } =
                match socket::receive_icmp6(self.socket.as_fd(), &mut buffer) {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
            let checked = match buffer.get(..length) {
                Some(message) => check_solicitation(message, source, hop_limit),
                None => Err(NoSolicitation::Option),
            };
            return Ok(Some(Solicitation { index, checked }));
        }
    }
}

impl AsRawFd for RouterSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
