//! UDP applications over real sockets: the simulator's own applications, whose packets leave by one
//! socket and arrive by another. One thread handles both ends, so that one clock measures the
//! delay.

use std::io::{self, ErrorKind};
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::{NetNs, wait_readable};
use plait_proto::time::Instant;
use plait_sim::app::{App, Observation, Outbox, Tally};
use plait_sim::packet::{End, Packet, Protocol};

use super::site::Ends;
use crate::emulator::{Epoch, Lateness};
use crate::worker::Worker;

/// The port of the first application; each has one, the same at both ends.
pub(super) const FIRST_PORT: u16 = 20_000;
/// Room for what a resequencer delivers at once after a gap.
const BUFFER_BYTES: usize = 8 << 20;
/// Longest sleep: the end is noticed within this time.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Packets received before checking whether one must be sent.
const READ_BURST: usize = 64;
const PAYLOAD_BYTES_MAX: usize = 9216;
/// Number and time of sending, at the start of each payload; every payload has room for them.
const HEAD_BYTES: usize = 12;
const UDP_HEADERS_BYTES: usize = 28;

/// A running application. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct UdpApp {
    state: Arc<Mutex<State>>,
    _worker: Worker,
}

#[derive(Debug)]
struct State {
    app: Box<dyn App>,
    /// How long after their time packets were sent.
    lag: Lateness,
    /// Packets that the kernel refused.
    refused_packets: u64,
    failure: Option<String>,
}

/// Both ends and their state.
#[derive(Debug)]
struct BothEnds {
    state: Arc<Mutex<State>>,
    epoch: Epoch,
    sender: UdpSocket,
    receiver: UdpSocket,
    to: End,
    at: usize,
    outbox: Outbox,
    buffer: Vec<u8>,
}

impl UdpApp {
    /// Starts application number `at`, which sends to `to`.
    pub(super) fn start(
        app: Box<dyn App>,
        (at, dscp): (usize, u8),
        to: End,
        ends: Ends<'_>,
        epoch: Epoch,
    ) -> Result<Self> {
        let (sender, receiver) = sockets(at, ends)?;
        let type_of_service = u32::from(dscp) << 2;
        socket2::SockRef::from(&sender)
            .set_tos_v4(type_of_service)
            .context("cannot set the DSCP of a UDP socket")?;
        let state = State { app, lag: Lateness::default(), refused_packets: 0, failure: None };
        let state = Arc::new(Mutex::new(state));
        let mut both = BothEnds {
            state: Arc::clone(&state),
            epoch,
            sender,
            receiver,
            to,
            at,
            outbox: Outbox::new(),
            buffer: vec![0; PAYLOAD_BYTES_MAX],
        };
        let worker = Worker::start("udp", move |goes_on| {
            // Without the right to either, the lag shows the cost.
            let _kept_default = plait_net::clock::set_timer_slack(1);
            let _kept_ordinary = plait_net::clock::set_realtime_priority();
            while goes_on() {
                if let Err(error) = both.turn() {
                    lock(&both.state).failure = Some(format!("{error:#}"));
                    return;
                }
            }
        })?;
        Ok(Self { state, _worker: worker })
    }

    pub(super) fn tally(&self) -> Tally {
        self.lock().app.tally().clone()
    }

    pub(super) fn observe(&self) -> Observation {
        self.lock().app.observe()
    }

    /// How long after their time packets were sent.
    pub(super) fn lag(&self) -> Lateness {
        self.lock().lag.clone()
    }

    /// Packets that the kernel refused.
    pub(super) fn refused_packets(&self) -> u64 {
        self.lock().refused_packets
    }

    /// What went wrong, if anything did.
    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no thread panics while it holds an application's lock")
}

/// The port of application number `at`.
pub(super) fn port_of(at: usize) -> u16 {
    let at = u16::try_from(at).expect("a scenario has fewer applications than there are ports");
    FIRST_PORT + at
}

/// The sender's socket and the receiver's for application number `at`. They are connected to each
/// other, and have room for bursts.
pub(super) fn sockets(at: usize, ends: Ends<'_>) -> Result<(UdpSocket, UdpSocket)> {
    let port = port_of(at);
    let [from, towards] =
        [ends.sender.1, ends.receiver.1].map(|address| SocketAddrV4::new(address, port));
    let open = |netns: &NetNs, here, there| {
        let opened = netns.run_in(|| socket(here, there)).and_then(|opened| opened);
        opened.with_context(|| format!("cannot open a UDP socket on {here}"))
    };
    Ok((open(ends.sender.0, from, towards)?, open(ends.receiver.0, towards, from)?))
}

fn socket(here: SocketAddrV4, there: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(here)?;
    socket.connect(there)?;
    socket.set_nonblocking(true)?;
    if plait_net::tcp::force_buffers(&socket, BUFFER_BYTES).is_err() {
        // Without the right, as much as the system allows.
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(BUFFER_BYTES)?;
        options.set_send_buffer_size(BUFFER_BYTES)?;
    }
    Ok(socket)
}

impl BothEnds {
    /// Sends due packets, reads arrived ones, and sleeps until there is more.
    fn turn(&mut self) -> Result<()> {
        self.send();
        let received = self.receive().context("cannot receive")?;
        let next = lock(&self.state).app.poll_timeout();
        if received == READ_BURST {
            return Ok(());
        }
        let wait = next.map_or(SLEEP_MAX, |next| next.since(self.epoch.now()));
        wait_readable(self.receiver.as_fd(), wait.min(SLEEP_MAX))?;
        Ok(())
    }

    fn send(&mut self) {
        let now = self.epoch.now();
        let mut state = lock(&self.state);
        let Some(due) = state.app.poll_timeout().filter(|due| *due <= now) else { return };
        state.lag.record(now.since(due));
        state.app.handle_timeout(now, &mut self.outbox);
        for packet in self.outbox.drain(..) {
            let length = usize::from(packet.bytes) - UDP_HEADERS_BYTES;
            let payload = &mut self.buffer[..length];
            payload.fill(0);
            write_head(payload, packet.number, packet.sent_at);
            // A link or a queue that refuses a packet loses it, and the receiver misses it.
            if self.sender.send(payload).is_err() {
                state.refused_packets += 1;
            }
        }
    }

    /// Takes up to [`READ_BURST`] packets and says how many.
    fn receive(&mut self) -> io::Result<usize> {
        for count in 0..READ_BURST {
            let length = match self.receiver.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            };
            let Some((number, sent_at)) = read_head(&self.buffer[..length]) else { continue };
            let bytes = u16::try_from(length + UDP_HEADERS_BYTES);
            let packet = Packet {
                app: self.at,
                stream: 0,
                number,
                sent_at,
                bytes: bytes.expect("what a socket received was an IP packet"),
                protocol: Protocol::Udp,
                dscp: 0,
                to: self.to,
            };
            let now = self.epoch.now();
            lock(&self.state).app.handle_packet(now, &packet, &mut self.outbox);
        }
        Ok(READ_BURST)
    }
}

fn write_head(payload: &mut [u8], number: u32, sent_at: Instant) {
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload[4..HEAD_BYTES].copy_from_slice(&sent_at.as_nanos().to_be_bytes());
}

fn read_head(payload: &[u8]) -> Option<(u32, Instant)> {
    let (number, rest) = payload.split_first_chunk()?;
    let (nanos, _) = rest.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), Instant::from_nanos(u64::from_be_bytes(*nanos))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_payload_has_room_for_its_head() {
        let mut payload = [0; 16];
        let sent_at = Instant::from_nanos(u64::MAX / 3);
        write_head(&mut payload, 70_000, sent_at);
        assert_eq!(read_head(&payload), Some((70_000, sent_at)));
        assert_eq!(read_head(&payload[..HEAD_BYTES - 1]), None);
    }
}
