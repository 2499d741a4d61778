//! A connection on its way through the proxy.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpStream;

use crate::config::Listener;
use crate::dial::Dialled;
use crate::refusal::Refusal;
use crate::registry::{Admission, End};
use crate::relay::{Opening, relay};
use crate::shared::Shared;
use crate::target::Target;

/// A connection on its way through the proxy.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) admission: Admission,
    pub(crate) listener: Listener,
}

impl Session {
    /// Connects to what the client asked for, unless it is refused; a refusal is counted.
    pub(crate) async fn connect(&self, target: Option<Target>) -> Result<Dialled, Refusal> {
        let target = self.wanted(target)?;
        self.shared.dial(&target).await.inspect_err(|refusal| self.refused(*refusal))
    }

    /// The same for a client that cannot be told why there is no connection.
    pub(crate) async fn connect_ahead(&self, target: Option<Target>) -> Result<Dialled, Refusal> {
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

    /// Carries bytes between the client and the server until the end; `early` ones, which the
    /// client sent along with its request, go first. Where the next proxy may still say that there
    /// is no server, what the client says goes ahead all the same.
    pub(crate) async fn tunnel(self, client: TcpStream, dialled: Dialled, early: Bytes) {
        let Dialled { stream, first, is_answered } = dialled;
        let (client, server) = (Arc::new(client), Arc::new(stream));
        self.admission.relays(&client, &server);
        let answered = async {
            if is_answered {
                return Ok(());
            }
            self.shared.answer(&server).await.map_err(|refusal| {
                self.refused(refusal);
                io::Error::other(refusal)
            })
        };
        let opening = Opening { up: early, down: first };
        let limit = self.shared.config.limits.idle_timeout;
        let ends = [&*client, &*server];
        let end = relay(&self.admission, ends, opening, &self.shared.pipes, limit, answered).await;
        self.end(end);
    }

    fn end(&self, end: End) {
        self.admission.ended(end);
        log::debug!(
            "{} to {}: {} bytes up, {} down: {end:?}",
            self.admission.client,
            self.admission.target.get().map(ToString::to_string).unwrap_or_default(),
            self.admission.up(),
            self.admission.down(),
        );
    }
}
