//! The measuring service: the other end of a peer's `plait measure`, if the configuration allows
//! it.
//!
//! It listens on the TUN device alone, so every client is a peer whose source address was checked.
//! Its own threads serve the connections with plain blocking sockets; the packet loop only handles
//! pins. At most one measurement runs with each peer, and everything it may ask for is bounded.

mod connection;
mod registry;
mod slots;

use std::io;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use plait_net::tcp;

pub(super) use registry::Registry;
pub(crate) use registry::{MeasurementStatus, Role};

use self::slots::Slots;
use super::requests::Requests;
use crate::advice::Advised;
use crate::config::Config;
use crate::measure::canonical;

/// Pause after a failed accept, such as without free file descriptors.
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
    let slots = Slots::default();
    loop {
        let (stream, source) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                log::debug!("the measuring service cannot accept: {error}");
                thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        let Some(slot) = slots.take(registry.peer_of(canonical(source.ip()))) else {
            log::debug!("too many measuring connections: {source} is not served");
            continue;
        };
        let (registry, requests) = (registry.clone(), requests.clone());
        let serve = move || {
            let _slot = slot;
            if let Err(error) = connection::serve(stream, source, &registry, &requests) {
                log::debug!("a measuring connection from {source}: {error}");
            }
        };
        if let Err(error) = thread::Builder::new().name("measured".into()).spawn(serve) {
            log::debug!("a measuring connection is not served: {error}");
        }
    }
}
