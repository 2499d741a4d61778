//! The ways in: each learns where a client wants to go, and tells it in its own words when it
//! cannot.

mod convert;
mod http;
mod socks;
mod transparent;

use tokio::net::TcpStream;

use crate::accept::Session;
use crate::config::WayIn;
use crate::dial::Ahead;
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
        let target = self.wanted(target)?;
        self.shared.dial(&target).await.inspect_err(|refusal| self.refused(*refusal))
    }

    /// The same for a client that cannot be told why there is no connection.
    pub(crate) async fn connect_ahead(&self, target: Option<Target>) -> Result<Ahead, Refusal> {
        let target = self.wanted(target)?;
        self.shared.dial_ahead(&target).await.inspect_err(|refusal| self.refused(*refusal))
    }

    /// Notes where the client wants to go.
    fn wanted(&self, target: Option<Target>) -> Result<Target, Refusal> {
        // Counted when the connection was accepted.
        if let Some(refusal) = self.admission.refusal {
            return Err(refusal);
        }
        let target = target.ok_or_else(|| {
            self.refused(Refusal::Malformed);
            Refusal::Malformed
        })?;
        // Plain HTTP may ask for several servers: the first one is shown.
        let _ = self.admission.target.set(target.clone());
        Ok(target)
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.shared.registry.refusals.count(refusal);
        log::debug!("{}: {refusal}", self.admission.client);
    }
}
