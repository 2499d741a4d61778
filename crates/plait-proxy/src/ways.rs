//! The ways in: each learns where a client wants to go, and tells it in its own words when it cannot.

mod convert;
mod http;
mod socks;
mod transparent;

use tokio::net::TcpStream;

use crate::accept::Session;
use crate::config::WayIn;
use crate::refusal::Refusal;
use crate::target::Target;

/// Serves a connection until its end.
pub(crate) async fn serve(session: Session, stream: TcpStream) {
    match session.listener.way {
        WayIn::Http => http::serve(session, stream).await,
        WayIn::Socks => socks::serve(session, stream).await,
        WayIn::Convert => convert::serve(session, stream).await,
        WayIn::Redirect | WayIn::Tproxy => transparent::serve(session, stream).await,
    }
}

impl Session {
    /// Connects to what the client asked for, unless it is refused; a refusal is counted.
    pub(crate) async fn connect(&self, target: Option<Target>) -> Result<TcpStream, Refusal> {
        // Counted when the connection was accepted.
        if let Some(refusal) = self.admission.refusal {
            return Err(refusal);
        }
        let result = match target {
            Some(target) => {
                let result = self.shared.dial(&target).await;
                // Plain HTTP may ask for several servers: the first one is shown.
                let _ = self.admission.target.set(target);
                result
            }
            None => Err(Refusal::Malformed),
        };
        result.inspect_err(|refusal| self.refused(*refusal))
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.shared.registry.refusals.count(refusal);
        log::debug!("{}: {refusal}", self.admission.client);
    }
}
