//! The ways in: each learns where a client wants to go, and tells it in its own words when it
//! cannot.

mod convert;
mod http;
mod socks;
mod transparent;

use tokio::net::TcpStream;

use crate::config::WayIn;
use crate::session::Session;

/// Serves a connection until its end.
pub(crate) async fn serve(session: Session, stream: TcpStream) {
    match session.listener.way {
        WayIn::Http => http::serve(session, stream).await,
        WayIn::Socks => socks::serve(session, stream).await,
        WayIn::Convert => convert::serve(session, stream).await,
        WayIn::Redirect | WayIn::Tproxy => transparent::serve(session, stream).await,
    }
}
