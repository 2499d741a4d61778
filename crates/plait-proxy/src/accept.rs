//! Accepts connections and hands each to the way that it came in by.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use plait_net::tcp::reset_on_close;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::Listener;
use crate::session::Session;
use crate::shared::Current;
use crate::sockets::prepare;
use crate::ways;

/// After a failure to accept, which has a reason that passes: too many open files, say.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts until `stop` says true.
pub(crate) async fn serve(
    current: Current,
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
                begin(&current, listener, stream, client);
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

fn begin(current: &Current, listener: Listener, stream: TcpStream, client: SocketAddr) {
    let shared = current.get();
    let client = SocketAddr::new(client.ip().to_canonical(), client.port());
    let refusal = shared.config.clients.admit(client.ip()).err();
    let Some(admission) = shared.registry.admit(client, listener.way, refusal) else {
        let _ = reset_on_close(&stream);
        return;
    };
    prepare(&stream);
    let session = Session { shared, admission, listener };
    tokio::spawn(ways::serve(session, stream));
}
