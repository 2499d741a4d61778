//! Reports that interfaces or addresses have changed; callers then read them again
//! ([`Netlink::interfaces`](super::Netlink::interfaces)).
//!
//! Notifications may be missing: the kernel drops what does not fit the socket's buffer and says so
//! once (ENOBUFS). So the monitor says only that something changed, and an overflow counts as a
//! change.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::NetlinkError;

/// Multicast groups of linux/rtnetlink.h.
const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_IPV4_IFADDR: u32 = 5;
const RTNLGRP_IPV6_IFADDR: u32 = 9;
/// No buffer space available: notifications were lost.
const ENOBUFS: i32 = 105;
/// Notifications are only counted: a short buffer cuts them, which does no harm.
const BUFFER_BYTES: usize = 32;
/// Reads in one go. What is left makes the file readable again.
const READS_MAX: usize = 1024;

/// A watch on the interfaces and addresses of a network namespace. Readable when something has
/// changed.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
}

impl Monitor {
    /// Watches the calling thread's network namespace from now on; read the interfaces afterwards.
    ///
    /// # Errors
    /// [`NetlinkError`]
    pub fn open() -> Result<Self, NetlinkError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            for group in [RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR] {
                socket.add_membership(group)?;
            }
            socket.set_non_blocking(true)?;
            Ok(Self { socket })
        };
        let action = "watch the interfaces and addresses".to_owned();
        open().map_err(|source| NetlinkError { action, source })
    }

    /// Reads all notifications, and says whether there were any.
    ///
    /// # Errors
    /// The watch does not work any more.
    pub fn drain(&mut self) -> io::Result<bool> {
        let mut news = false;
        for _ in 0..READS_MAX {
            let mut buffer = Vec::with_capacity(BUFFER_BYTES);
            match self.socket.recv(&mut buffer, 0) {
                Ok(_) => news = true,
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => news = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(news)
    }
}

impl AsRawFd for Monitor {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
