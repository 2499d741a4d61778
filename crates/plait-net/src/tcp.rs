//! TCP_INFO of a connection, buffers beyond the system's limits, and socket options that std lacks.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::sys;

/// Part of the kernel's `struct tcp_info` (linux/tcp.h). Counts are since the connection's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Sender's maximum segment size in bytes.
    pub snd_mss: u32,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: u32,
    /// Slow-start threshold in segments; 0x7fffffff before the first reduction.
    pub snd_ssthresh: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Segments of reordering that the sender assumes on the path; 3 at first (tcp_reordering).
    pub reordering: u32,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Payload bytes that the other end acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Segments with data sent, retransmissions included.
    pub data_segs_out: u32,
    /// Payload that arrived lately per second, in bytes, as the sender measures it; Linux 4.9.
    pub delivery_rate: u64,
    /// Payload bytes sent, retransmissions included; Linux 4.19.
    pub bytes_sent: u64,
    /// Duplicate SACKs received: segments that the receiver got twice (RFC 2883); Linux 4.19.
    pub dsack_dups: u32,
    /// Times that the sender saw the path reorder; Linux 4.19.
    pub reord_seen: u32,
    /// Window that the receiver offers, in bytes; Linux 5.4.
    pub snd_wnd: u32,
    /// Retransmission timeouts; Linux 6.7, `None` before it.
    pub total_rto: Option<u16>,
}

impl TcpInfo {
    /// Reads the struct's bytes, as many as the kernel knows.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let u32_at =
            |at: usize| bytes.get(at..at + 4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        let low_high = |at: usize| u32_at(at).zip(u32_at(at + 4));
        let u64_at = |at: usize| {
            let (first, second) = low_high(at)?;
            let [a, b, c, d] = first.to_ne_bytes();
            let [e, f, g, h] = second.to_ne_bytes();
            Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
        };
        Self {
            rto_us: u32_at(8).unwrap_or_default(),
            snd_mss: u32_at(16).unwrap_or_default(),
            srtt_us: u32_at(68).unwrap_or_default(),
            snd_ssthresh: u32_at(76).unwrap_or_default(),
            snd_cwnd: u32_at(80).unwrap_or_default(),
            reordering: u32_at(88).unwrap_or_default(),
            total_retrans: u32_at(100).unwrap_or_default(),
            bytes_acked: u64_at(120).unwrap_or_default(),
            bytes_received: u64_at(128).unwrap_or_default(),
            data_segs_out: u32_at(156).unwrap_or_default(),
            delivery_rate: u64_at(160).unwrap_or_default(),
            bytes_sent: u64_at(200).unwrap_or_default(),
            dsack_dups: u32_at(216).unwrap_or_default(),
            reord_seen: u32_at(220).unwrap_or_default(),
            snd_wnd: u32_at(228).unwrap_or_default(),
            total_rto: bytes.get(240..242).map(|b| u16::from_ne_bytes([b[0], b[1]])),
        }
    }
}

/// Asks for a connection's TCP_INFO.
///
/// # Errors
/// Not a TCP socket.
pub fn info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; sys::socket::TCP_INFO_BYTES_MAX];
    let length = sys::socket::tcp_info(socket.as_fd(), &mut bytes)?;
    Ok(TcpInfo::parse(&bytes[..length]))
}

/// Lets the connections of a listening socket carry data in their first packet (RFC 7413); at most
/// `pending_max` of them at a time before their handshake is done.
///
/// # Errors
/// The kernel cannot.
pub fn accept_fast_open(listener: impl AsFd, pending_max: u16) -> io::Result<()> {
    sys::socket::accept_fast_open(listener.as_fd(), pending_max.into())
}

/// Makes a socket's `connect` wait for the first data, which then travels with the first packet
/// where the server allows it (RFC 7413).
///
/// # Errors
/// The kernel cannot.
pub fn connect_fast_open(socket: impl AsFd) -> io::Result<()> {
    sys::socket::connect_fast_open(socket.as_fd())
}

/// Whether the next byte to be read is the urgent one (RFC 6093).
///
/// # Errors
/// Not a TCP socket.
pub fn at_urgent_mark(socket: impl AsFd) -> io::Result<bool> {
    sys::socket::at_urgent_mark(socket.as_fd())
}

/// How many bytes were written to a connection, TCP or MPTCP, and are not acknowledged.
///
/// # Errors
/// Not a connection.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<usize> {
    sys::socket::unacknowledged(socket.as_fd())
}

/// Sets a socket's receive and send buffers regardless of net.core.rmem_max and wmem_max; needs
/// CAP_NET_ADMIN.
///
/// # Errors
/// EPERM without that right.
pub fn force_buffers(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    sys::socket::force_recv_buffer(socket.as_fd(), bytes)?;
    sys::socket::force_send_buffer(socket.as_fd(), bytes)
}

/// Limits the windows that the connections of a listening socket offer. With 65535 bytes they use
/// no window scaling (RFC 7323 section 2). Their receive buffers no longer grow.
///
/// # Errors
/// Not a TCP socket.
pub fn set_receive_window(listener: impl AsFd, bytes: usize) -> io::Result<()> {
    // Room for the window whatever the kernel's own data takes beside it (tcp_adv_win_scale).
    let buffer_bytes = bytes.saturating_mul(4).min(1 << 30);
    if sys::socket::force_recv_buffer(listener.as_fd(), buffer_bytes).is_err() {
        SockRef::from(&listener).set_recv_buffer_size(buffer_bytes)?;
    }
    sys::socket::set_window_clamp(listener.as_fd(), bytes)
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens on every address of both families, for what arrives on one interface only.
///
/// # Errors
/// The port is taken, the interface does not exist or may not be chosen.
pub fn listen_on(interface: &str, port: u16) -> io::Result<TcpListener> {
    let families = [
        (Domain::IPV6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))),
        // The kernel may be without IPv6.
        (Domain::IPV4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
    ];
    let mut result = Err(io::ErrorKind::Unsupported.into());
    for (domain, address) in families {
        result = listen(domain, address, interface);
        let taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        if result.as_ref().map_or_else(taken, |_| true) {
            break;
        }
    }
    result
}

fn listen(domain: Domain, address: SocketAddr, interface: &str) -> io::Result<TcpListener> {
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Chooses the congestion control of a socket's sending side.
///
/// # Errors
/// The kernel has none of that name, or the caller may not choose it.
pub fn set_congestion(socket: impl AsFd, name: &str) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_congestion(name.as_bytes())
}

/// Name of the congestion control of a socket's sending side.
///
/// # Errors
/// Not a TCP socket.
pub fn congestion(socket: impl AsFd) -> io::Result<String> {
    let name = SockRef::from(&socket).tcp_congestion()?;
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Makes closing the socket end the connection at once: unsent data is discarded.
///
/// # Errors
/// Not a socket.
pub fn reset_on_close(socket: impl AsFd) -> io::Result<()> {
    SockRef::from(&socket).set_linger(Some(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_tells_what_it_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        let info = info(&sender).unwrap();
        assert_eq!((info.bytes_sent, info.total_retrans), (5000, 0));
        assert_eq!(super::info(&receiver).unwrap().bytes_received, 5000);
        assert!(info.snd_cwnd >= 2 && info.data_segs_out >= 1, "{info:?}");
        // The least timeout of Linux is 200 ms, the greatest 120 s.
        assert!((200_000..=120_000_000).contains(&info.rto_us), "{info:?}");
        // The threshold begins where earlier connections to the same address left it.
        assert!((1..1_000_000).contains(&info.srtt_us) && info.reordering >= 3, "{info:?}");
        assert_eq!((info.dsack_dups, info.reord_seen), (0, 0));
        assert!(super::info(&listener).is_ok() && super::info(std::io::stdin()).is_err());
    }

    #[test]
    fn a_window_can_be_bounded() {
        let window = |bounded| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            if bounded {
                set_receive_window(&listener, 65_535).unwrap();
            }
            let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut receiver, _) = listener.accept().unwrap();
            let reader = std::thread::spawn(move || {
                receiver.read_exact(&mut vec![0; 8 << 20]).unwrap();
                receiver
            });
            sender.write_all(&vec![7; 8 << 20]).unwrap();
            let _open = reader.join().unwrap();
            info(&sender).unwrap().snd_wnd
        };
        assert!(window(true) <= 65_535);
        assert!(window(false) > 65_535);
    }

    #[test]
    fn a_listener_serves_both_families_and_has_a_congestion_control() {
        let Ok(listener) = listen_on("lo", 0) else {
            eprintln!("skipped: a socket may not be bound to an interface here");
            return;
        };
        let port = listener.local_addr().unwrap().port();
        let sender = TcpStream::connect(("127.0.0.1", port)).unwrap();
        set_congestion(&sender, "reno").unwrap();
        assert_eq!(congestion(&sender).unwrap(), "reno");
        assert!(set_congestion(&sender, "no such thing").is_err());
        assert_eq!(listen_on("lo", port).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_reset_forgets_what_was_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 100]).unwrap();
        reset_on_close(&sender).unwrap();
        drop(sender);
        let error = receiver.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn an_older_kernel_tells_less() {
        let mut bytes = vec![0; 208];
        bytes[80] = 10;
        bytes[200..208].copy_from_slice(&u64::MAX.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert_eq!((info.snd_cwnd, info.bytes_sent, info.total_rto), (10, u64::MAX, None));
        assert_eq!(TcpInfo::parse(&bytes[..100]).total_retrans, 0);
    }
}
