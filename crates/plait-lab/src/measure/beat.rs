//! Small datagrams at a steady pace in both directions through the bond: they show when it carries
//! again, without TCP's own waiting.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use plait_net::netns::NetNs;

use super::Deliveries;
use crate::emulator::Way;
use crate::topology::{SERVER_V4, Topology, inner_v4};

/// Time between two datagrams of a direction.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_millis(10);
const PAYLOAD_BYTES: usize = 64;
/// How soon a receiver sees that it is to stop.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(100);

/// Datagrams under way until dropped.
#[derive(Debug)]
pub(crate) struct Beat {
    stop: Arc<AtomicBool>,
    /// Up and down.
    arrived: [Arc<Mutex<Deliveries>>; 2],
    threads: Vec<JoinHandle<()>>,
}

impl Beat {
    pub(crate) fn start(topology: &Topology) -> Result<Self> {
        let at_customer = bind(&topology.customer().netns, (inner_v4(2), 0).into())?;
        let at_server = bind(&topology.server, (SERVER_V4, 0).into())?;
        let (customer, server) = (at_customer.local_addr()?, at_server.local_addr()?);
        let stop = Arc::new(AtomicBool::new(false));
        let arrived: [Arc<Mutex<Deliveries>>; 2] = Default::default();
        let mut beat = Self { stop, arrived, threads: Vec::new() };
        let [up, down] = beat.arrived.clone();
        beat.run("beat up", at_customer.try_clone()?, move |socket, stop| {
            send(socket, server, stop)
        })?;
        beat.run("beat down", at_server.try_clone()?, move |socket, stop| {
            send(socket, customer, stop);
        })?;
        beat.run("beats up", at_server, move |socket, stop| receive(socket, &up, stop))?;
        beat.run("beats down", at_customer, move |socket, stop| receive(socket, &down, stop))?;
        Ok(beat)
    }

    fn run(
        &mut self,
        name: &str,
        socket: UdpSocket,
        work: impl FnOnce(&UdpSocket, &AtomicBool) + Send + 'static,
    ) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new().name(name.into());
        self.threads.push(thread.spawn(move || work(&socket, &stop))?);
        Ok(())
    }

    /// What arrived so far.
    pub(crate) fn deliveries(&self, way: Way) -> Deliveries {
        let [up, down] = &self.arrived;
        let arrived = if way == Way::Up { up } else { down };
        arrived.lock().expect("no thread panics while it holds the record's lock").clone()
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

fn bind(netns: &NetNs, address: SocketAddr) -> Result<UdpSocket> {
    let socket = netns.run_in(|| UdpSocket::bind(address))??;
    socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
    Ok(socket)
}

fn send(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) {
    let start = Instant::now();
    let mut sent: u32 = 0;
    while !stop.load(Ordering::Relaxed) {
        // Without a gateway there is no route; the datagram is lost as any other.
        let _lost = socket.send_to(&[0; PAYLOAD_BYTES], to);
        sent += 1;
        std::thread::sleep((BEAT_INTERVAL * sent).saturating_sub(start.elapsed()));
    }
}

fn receive(socket: &UdpSocket, arrived: &Mutex<Deliveries>, stop: &AtomicBool) {
    let mut buffer = [0; PAYLOAD_BYTES];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(bytes) => arrived
                .lock()
                .expect("no thread panics while it holds the record's lock")
                .add(Instant::now(), bytes as u64),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // An unreachable peer is told of here; the next receive waits again.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
