//! Accepts connections and hands each to the way that it came in by.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plait_net::tcp::reset_on_close;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::Listener;
use crate::dial::Ahead;
use crate::registry::Admission;
use crate::relay::{End, relay};
use crate::server::Shared;
use crate::sockets::prepare;
use crate::ways;

/// A connection on its way through the proxy.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) admission: Admission,
    pub(crate) listener: Listener,
}

/// After a failure to accept, which has a reason that passes: too many open files, say.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts until `stop` says true.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    socket: TcpListener,
    listener: Listener,
    mut stop: watch::Receiver<bool>,
) {
    let mut has_failed = false;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|is_told| *is_told) => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, client)) => {
                has_failed = false;
                begin(&shared, listener, stream, client);
            }
            // The client is gone already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !has_failed {
                    log::warn!("{}: cannot accept connections: {error}", listener.address);
                }
                has_failed = true;
                sleep(PAUSE).await;
            }
        }
    }
}

fn begin(shared: &Arc<Shared>, listener: Listener, stream: TcpStream, client: SocketAddr) {
    let client = SocketAddr::new(client.ip().to_canonical(), client.port());
    let refusal = shared.config.clients.admit(client.ip()).err();
    let Some(admission) = shared.registry.admit(client, listener.way, refusal) else {
        let _ = reset_on_close(&stream);
        return;
    };
    prepare(&stream);
    let session = Session { shared: Arc::clone(shared), admission, listener };
    tokio::spawn(ways::serve(session, stream));
}

impl Session {
    /// Carries bytes between the client and the server until the end; `early` ones, which the
    /// client sent along with its request, go first.
    pub(crate) async fn tunnel(self, client: TcpStream, server: TcpStream, early: &[u8]) {
        let (client, server) = (Arc::new(client), Arc::new(server));
        self.admission.relays(&client, &server);
        if !early.is_empty() {
            if let Err(error) = write_all(&server, early).await {
                log::debug!("the server is gone: {error}");
                let _ = reset_on_close(&client);
                return;
            }
            self.admission.count_up(early.len());
        }
        let limit = self.shared.config.limits.idle_timeout;
        let ready = std::future::ready(Ok(()));
        let ends = [&*client, &*server];
        let end = relay(&self.admission, ends, &self.shared.pipes, limit, ready).await;
        self.end(end);
    }

    /// The same where the next proxy may still say that there is no server: what the client says
    /// goes ahead, and the answer is read before the server's bytes.
    pub(crate) async fn tunnel_ahead(self, client: TcpStream, ahead: Ahead) {
        if ahead.is_answered {
            return self.tunnel(client, ahead.stream, &[]).await;
        }
        let (client, server) = (Arc::new(client), Arc::new(ahead.stream));
        self.admission.relays(&client, &server);
        let answered = async {
            self.shared.answer(&server).await.map_err(|refusal| {
                self.refused(refusal);
                io::Error::other(refusal)
            })
        };
        let limit = self.shared.config.limits.idle_timeout;
        let ends = [&*client, &*server];
        let end = relay(&self.admission, ends, &self.shared.pipes, limit, answered).await;
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

/// Writes to a stream that is shared.
async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
