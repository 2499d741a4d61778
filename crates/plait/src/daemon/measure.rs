//! The measuring service: a peer's `plait measure` finds its other end here, if the configuration
//! allows it.
//!
//! It listens on the TUN device alone, so whoever connects is a peer whose source address was
//! checked. Threads of its own serve the connections with plain blocking sockets; the packet loop
//! is asked for nothing but pins. At most one measurement runs with each peer, and all that one may
//! ask for is bounded.

mod connection;
mod registry;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use plait_net::tcp;

pub(super) use registry::Registry;
pub(crate) use registry::{MeasurementStatus, Role};

use super::requests::Requests;
use crate::advice::Advised;
use crate::config::Config;

/// Connections that are served at a time, of all peers.
const CONNECTIONS_MAX: usize = 200;
/// After an accept that failed, as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Opens the service's socket, when any peer may measure.
pub(super) fn open(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    if !config.serves_measurements() {
        return Ok(None);
    }
    let port = config.gateway.measure_port;
    let listener = tcp::listen_on(&config.gateway.tun, port).map_err(|cause| {
        let message = format!("cannot listen on port {port} of {}", config.gateway.tun);
        let help = match cause.kind() {
            io::ErrorKind::AddrInUse => "set another `measure_port` under [gateway]",
            _ => "give the program CAP_NET_RAW, or remove `measure`",
        };
        Advised::new(message, help).caused_by(cause)
    })?;
    Ok(Some(listener))
}

/// Serves connections on threads of their own, until the program ends.
pub(super) fn serve(
    listener: TcpListener,
    registry: Registry,
    requests: Requests,
) -> anyhow::Result<()> {
    thread::Builder::new()
        .name("measure".into())
        .spawn(move || accept(&listener, &registry, &requests))
        .context("cannot start a thread")?;
    Ok(())
}

fn accept(listener: &TcpListener, registry: &Registry, requests: &Requests) {
    let live = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, source) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                log::debug!("the measuring service cannot accept: {error}");
                thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        if live.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            log::debug!("too many measuring connections: {source} is not served");
            continue;
        }
        live.fetch_add(1, Ordering::Relaxed);
        let (registry, requests, count) = (registry.clone(), requests.clone(), live.clone());
        let serve = move || {
            if let Err(error) = connection::serve(stream, source, &registry, &requests) {
                log::debug!("a measuring connection from {source}: {error}");
            }
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if let Err(error) = thread::Builder::new().name("measured".into()).spawn(serve) {
            log::debug!("a measuring connection is not served: {error}");
            live.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
