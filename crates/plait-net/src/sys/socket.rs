//! Socket options that socket2 lacks.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

/// Sets the receive buffer beyond net.core.rmem_max; needs CAP_NET_ADMIN.
pub(crate) fn force_recv_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes as c_int)
}

/// Sets the send buffer beyond net.core.wmem_max; needs CAP_NET_ADMIN.
pub(crate) fn force_send_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes as c_int)
}

/// Process and user at the other end of a Unix socket, as they were when the connection was made.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of_val(&who) as libc::socklen_t;
    // SAFETY: `getsockopt` writes at most `length` bytes, the size of `who`, and the length; both
    // live until the call returns.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(who) }
}

/// Turns receive timestamps off.
pub(crate) fn disable_timestamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    match set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0) {
        // What a kernel, or qemu in its place, does not know is not on.
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        result => result,
    }
}

/// Limits the window that a TCP socket offers.
pub(crate) fn set_window_clamp(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes as c_int)
}

/// A filter has one bit for each type of ICMP message (linux/icmp.h, RFC 3542 section 3.2).
const ICMP_FILTER: c_int = 1;
const ICMP6_FILTER: c_int = 1;
const SOL_RAW: c_int = 255;

/// Lets a raw ICMP socket receive messages of one type, below 32.
pub(crate) fn pass_icmp_only(socket: BorrowedFd<'_>, kind: u8) -> io::Result<()> {
    set_int(socket, SOL_RAW, ICMP_FILTER, !(1 << kind))
}

/// Lets a raw ICMPv6 socket receive messages of one type.
pub(crate) fn pass_icmp6_only(socket: BorrowedFd<'_>, kind: u8) -> io::Result<()> {
    let mut blocked = [u32::MAX; 8];
    blocked[usize::from(kind >> 5)] &= !(1 << (kind & 31));
    // SAFETY: `setsockopt` reads a filter of eight words, which live until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_ICMPV6,
            ICMP6_FILTER,
            blocked.as_ptr().cast(),
            size_of_val(&blocked) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has a socket tell over which interface each packet came.
pub(crate) fn tell_interface(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
}

/// A packet of a raw ICMPv6 socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Icmp6 {
    /// Its bytes, even if the buffer was shorter.
    pub(crate) length: usize,
    pub(crate) source: Ipv6Addr,
    /// The interface that it came over; 0 when the kernel did not tell.
    pub(crate) index: u32,
    /// As it arrived; 0 when the kernel did not tell.
    pub(crate) hop_limit: u8,
}

/// Receives a packet from a raw ICMPv6 socket that tells interfaces and hop limits.
pub(crate) fn receive_icmp6(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Icmp6> {
    let mut source = libc::sockaddr_in6 {
        sin6_family: 0,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
        sin6_scope_id: 0,
    };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Room for what was asked for, aligned as headers of control messages must be.
    let mut control = [0_u64; 16];
    // SAFETY: a `msghdr` of zeros is one without any buffers.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = (&raw mut source).cast();
    header.msg_namelen = size_of_val(&source) as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header's pointers lead to buffers of the lengths that it tells, which live until
    // the call returns. With MSG_TRUNC the length returned may exceed the buffer's.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_TRUNC) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let mut received =
        Icmp6 { length, source: source.sin6_addr.s6_addr.into(), index: 0, hop_limit: 0 };
    // SAFETY: the kernel wrote the control messages, and the header tells how many bytes of them.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !message.is_null() {
        // SAFETY: a pointer from CMSG_FIRSTHDR or CMSG_NXTHDR that is not null leads to a header
        // within the buffer, and its data follows; they are read without regard to alignment.
        unsafe {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let told = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    received.index = told.ipi6_ifindex;
                }
                (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    let told = data.cast::<c_int>().read_unaligned();
                    received.hop_limit = u8::try_from(told).unwrap_or(0);
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok(received)
}

/// Longest `tcp_info` that is asked for; kernels write the part that they know.
pub(crate) const TCP_INFO_BYTES_MAX: usize = 256;

/// Reads TCP_INFO and returns its length.
pub(crate) fn tcp_info(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8; TCP_INFO_BYTES_MAX],
) -> io::Result<usize> {
    let mut length = TCP_INFO_BYTES_MAX as libc::socklen_t;
    // SAFETY: `getsockopt` writes at most `length` bytes, the size of `bytes`, and the length; both
    // live until the call returns.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}

/// The level of MPTCP's own options (linux/socket.h).
const SOL_MPTCP: c_int = 284;
/// TCP_INFO of each subflow (linux/mptcp.h).
pub(crate) const MPTCP_TCPINFO: c_int = 2;
/// Addresses of each subflow.
pub(crate) const MPTCP_SUBFLOW_ADDRS: c_int = 3;

/// Reads an option of MPTCP that lists subflows, and returns its length. `bytes` begin with what
/// the kernel wants to know of them (`struct mptcp_subflow_data`).
pub(crate) fn mptcp_list(
    socket: BorrowedFd<'_>,
    option: c_int,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: `getsockopt` reads and writes at most `length` bytes, the size of `bytes`, and the
    // length; both live until the call returns.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            SOL_MPTCP,
            option,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}

/// Lets connections of a listening socket carry data in their first packet (RFC 7413), so many at a
/// time.
pub(crate) fn accept_fast_open(socket: BorrowedFd<'_>, pending_max: c_int) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, pending_max)
}

/// Makes `connect` wait for the first data and send it along (RFC 7413), where the server is known
/// to allow it.
pub(crate) fn connect_fast_open(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)
}

/// Asks whether the next byte to be read is the urgent one (asm-generic/sockios.h).
const SIOCATMARK: libc::Ioctl = 0x8905;

/// Whether the next byte to be read is the urgent one.
pub(crate) fn at_urgent_mark(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut is_there: c_int = 0;
    // SAFETY: this `ioctl` writes one int, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCATMARK, &raw mut is_there) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(is_there != 0) }
}

/// Asks how many bytes were written and are not acknowledged (linux/sockios.h).
const SIOCOUTQ: libc::Ioctl = libc::TIOCOUTQ as libc::Ioctl;

/// How many bytes were written and are not acknowledged.
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: c_int = 0;
    // SAFETY: this `ioctl` writes one int, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes.max(0) as usize) }
}

fn set_int(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: `setsockopt` reads one int of the given size, which lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
