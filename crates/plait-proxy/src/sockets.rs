//! Sockets as the proxy needs them.

use std::io;
use std::net::SocketAddr;

use plait_net::mptcp;
use plait_net::tcp::{accept_fast_open, connect_fast_open, set_congestion};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};

use crate::config::{Listener, WayIn};

/// Connections that wait to be accepted; the kernel bounds it by net.core.somaxconn.
const BACKLOG: i32 = 4096;
/// Connections with data in their first packet that have not finished their handshake.
const FAST_OPEN_PENDING_MAX: u16 = 256;

/// A listening socket, and whether it accepts MPTCP: a kernel without it gives plain TCP.
pub(crate) fn listen(
    listener: &Listener,
    congestion: Option<&str>,
) -> io::Result<(std::net::TcpListener, bool)> {
    let (socket, multipath) = bind(listener, congestion)?;
    if listener.way == WayIn::Convert
        && let Err(error) = accept_fast_open(&socket, FAST_OPEN_PENDING_MAX)
    {
        log::debug!("{}: no data in first packets: {error}", listener.address);
    }
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), multipath))
}

/// A socket that has a listener's address and does not listen yet, and whether it is of MPTCP.
pub(crate) fn bind(listener: &Listener, congestion: Option<&str>) -> io::Result<(Socket, bool)> {
    let domain = Domain::for_address(listener.address);
    let (socket, multipath) = match mptcp::stream_socket(domain, listener.multipath) {
        Err(error) if listener.multipath && mptcp::is_missing(&error) => {
            log::warn!("{}: only plain TCP is accepted: no MPTCP here ({error})", listener.address);
            (mptcp::stream_socket(domain, false)?, false)
        }
        socket => (socket?, listener.multipath),
    };
    socket.set_reuse_address(true)?;
    if listener.way == WayIn::Tproxy {
        be_transparent(&socket, domain)?;
    }
    if let Some(name) = congestion {
        // Connections take it from their listener.
        set_congestion(&socket, name)?;
    }
    socket.bind(&listener.address.into())?;
    Ok((socket, multipath))
}

/// Lets a socket accept connections to any address; needs CAP_NET_ADMIN.
fn be_transparent(socket: &Socket, domain: Domain) -> io::Result<()> {
    if domain == Domain::IPV6 {
        // A socket of both families takes this option of each.
        let _ = socket.set_ip_transparent_v4(true);
        return socket.set_ip_transparent_v6(true);
    }
    socket.set_ip_transparent_v4(true)
}

/// How to connect.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// By MPTCP, where there is any.
    pub(crate) multipath: bool,
    /// The first data may travel with the first packet, and only writing it tells whether there is
    /// a connection.
    pub(crate) fast_open: bool,
    /// Congestion control, if not the system's.
    pub(crate) congestion: Option<String>,
}

/// Connects to `address`.
pub(crate) async fn connect(
    address: SocketAddr,
    Manner { multipath, fast_open, congestion }: Manner,
) -> io::Result<TcpStream> {
    let domain = Domain::for_address(address);
    let socket = match mptcp::stream_socket(domain, multipath) {
        Err(error) if multipath && mptcp::is_missing(&error) => {
            mptcp::stream_socket(domain, false)?
        }
        socket => socket?,
    };
    if let Some(name) = congestion {
        set_congestion(&socket, &name)?;
    }
    if fast_open && let Err(error) = connect_fast_open(&socket) {
        log::debug!("no data in the first packet: {error}");
    }
    socket.set_nonblocking(true)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    prepare(&stream);
    Ok(stream)
}

/// Makes a connection pass on what it gets as it gets it: small writes at once, and urgent data in
/// its place among the rest.
pub(crate) fn prepare(stream: &TcpStream) {
    // A connection that is already gone has no options; reading it will tell.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_out_of_band_inline(true);
}

/// Whether the kernel has a congestion control of this name for this process.
pub(crate) fn try_congestion(name: &str) -> io::Result<()> {
    set_congestion(&Socket::new(Domain::IPV4, Type::STREAM, None)?, name)
}
