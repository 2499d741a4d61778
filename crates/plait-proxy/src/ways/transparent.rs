//! Connections that the kernel led here: the client knows nothing of the proxy, so that a refusal
//! is a reset.

use std::net::SocketAddr;

use bytes::Bytes;
use plait_net::tcp::reset_on_close;
use socket2::SockRef;
use tokio::net::TcpStream;

use crate::config::WayIn;
use crate::session::Session;
use crate::target::Target;

pub(super) async fn serve(session: Session, stream: TcpStream) {
    let target = destination(&stream, session.listener.way).map(Target::from);
    match session.connect_ahead(target).await {
        Ok(dialled) => session.tunnel(stream, dialled, Bytes::new()).await,
        Err(_) => {
            let _ = reset_on_close(&stream);
        }
    }
}

/// Where the client wanted to go. A connection that was made to the proxy itself is seen by that.
fn destination(stream: &TcpStream, way: WayIn) -> Option<SocketAddr> {
    let local = stream.local_addr().ok()?;
    if way == WayIn::Tproxy {
        return Some(local);
    }
    let socket = SockRef::from(stream);
    let is_v4 = local.ip().to_canonical().is_ipv4();
    let original = if is_v4 { socket.original_dst_v4() } else { socket.original_dst_v6() };
    // One that nothing redirected has no other destination.
    original.ok().and_then(|address| address.as_socket()).or(Some(local))
}
