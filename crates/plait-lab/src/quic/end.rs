//! One end of an application's connections: its socket, and its thread's loop.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use plait_net::netns::wait_readable;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ReadError, ServerConfig, StreamId, WriteError,
};

use super::config::SERVER_NAME;
use super::socket::Socket;
use super::{Sent, Shared};

/// Longest sleep: a stop is noticed within this time.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// How long to wait for a full socket.
const FULL_WAIT: Duration = Duration::from_millis(1);
/// How often the senders' counters are noted.
const NOTE_INTERVAL: Duration = Duration::from_millis(10);
const READ_BURST: usize = 64;
/// Data written to a stream at once.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];

/// The task of an end.
#[derive(Debug)]
pub(super) enum Work {
    Receive,
    /// Opens `flows` connections and sends `bytes` over each, or as much as it can.
    Send {
        client: ClientConfig,
        flows: u32,
        bytes: Option<u64>,
    },
}

/// An end and its connections.
#[derive(Debug)]
pub(super) struct End {
    socket: Socket,
    endpoint: Endpoint,
    flows: BTreeMap<ConnectionHandle, Flow>,
    /// A datagram that the socket has not taken yet, and its ECN mark.
    waiting: Option<(Vec<u8>, Option<EcnCodepoint>)>,
}

/// A connection with its one stream.
#[derive(Debug)]
struct Flow {
    connection: Connection,
    stream: Option<StreamId>,
    is_sender: bool,
    /// Bytes not written yet; `None`: unlimited.
    left: Option<u64>,
}

impl End {
    pub(super) fn new(socket: UdpSocket, server: Option<Arc<ServerConfig>>) -> Result<Self> {
        Ok(Self {
            socket: Socket::new(socket)?,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None),
            flows: BTreeMap::new(),
            waiting: None,
        })
    }

    /// Does its work until the application stops.
    pub(super) fn run(mut self, work: Work, shared: &Shared) -> Result<()> {
        while !shared.before_start().is_zero() && !shared.quits() {
            std::thread::sleep(shared.before_start().min(SLEEP_MAX));
        }
        if let Work::Send { client, flows, bytes } = work {
            for _ in 0..flows {
                self.connect(client.clone(), bytes)?;
            }
        }
        let mut noted_at = Instant::now();
        while shared.goes_on() {
            self.receive()?;
            self.turn(shared)?;
            if self.flows.values().any(|flow| flow.is_sender) && noted_at.elapsed() >= NOTE_INTERVAL
            {
                noted_at = Instant::now();
                shared.note(self.sent());
            }
            let wait = self.wait();
            wait_readable(self.socket.as_fd(), wait)?;
        }
        if self.flows.values().any(|flow| flow.is_sender) {
            shared.note(self.sent());
        }
        Ok(())
    }

    fn connect(&mut self, client: ClientConfig, left: Option<u64>) -> Result<()> {
        let connected =
            self.endpoint.connect(Instant::now(), client, self.socket.peer, SERVER_NAME);
        let (handle, connection) = connected.context("cannot begin a QUIC connection")?;
        self.flows.insert(handle, Flow { connection, stream: None, is_sender: true, left });
        Ok(())
    }

    /// Reads arrived datagrams, at most a burst.
    fn receive(&mut self) -> Result<()> {
        for _ in 0..READ_BURST {
            let Some((datagrams, mark)) = self.socket.receive().context("a QUIC socket")? else {
                break;
            };
            for datagram in datagrams {
                self.take(&datagram, mark)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, datagram: &[u8], mark: Option<EcnCodepoint>) -> Result<()> {
        let (now, peer, mut answer) = (Instant::now(), self.socket.peer, Vec::new());
        match self.endpoint.handle(now, peer, None, mark, datagram.into(), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(flow) = self.flows.get_mut(&handle) {
                    flow.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                let (handle, connection) =
                    accepted.map_err(|refused| refused.cause).context("a QUIC receiver")?;
                let flow = Flow { connection, stream: None, is_sender: false, left: None };
                self.flows.insert(handle, flow);
            }
            Some(DatagramEvent::Response(_)) => self.send(answer, None),
            None => {}
        }
        Ok(())
    }

    /// Handles due work of each connection.
    fn turn(&mut self, shared: &Shared) -> Result<()> {
        if let Some((datagram, mark)) = self.waiting.take() {
            self.send(datagram, mark);
        }
        for (handle, flow) in &mut self.flows {
            let now = Instant::now();
            if flow.connection.poll_timeout().is_some_and(|due| due <= now) {
                flow.connection.handle_timeout(now);
            }
            flow.look(shared)?;
            while let Some(event) = flow.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    flow.connection.handle_event(event);
                }
            }
        }
        self.transmit();
        Ok(())
    }

    fn transmit(&mut self) {
        let mut flows = std::mem::take(&mut self.flows);
        for flow in flows.values_mut() {
            while self.waiting.is_none() {
                let mut datagram = Vec::new();
                let now = Instant::now();
                let Some(sent) = flow.connection.poll_transmit(now, 1, &mut datagram) else {
                    break;
                };
                self.send(datagram, sent.ecn);
            }
        }
        self.flows = flows;
    }

    /// Hands a datagram to the socket, now or as soon as it takes it.
    fn send(&mut self, datagram: Vec<u8>, mark: Option<EcnCodepoint>) {
        if !self.socket.send(&datagram, mark) {
            self.waiting = Some((datagram, mark));
        }
    }

    /// Time until something is due.
    fn wait(&mut self) -> Duration {
        if self.waiting.is_some() {
            return FULL_WAIT;
        }
        let timeouts = self.flows.values_mut().filter_map(|flow| flow.connection.poll_timeout());
        let due = timeouts.min().map(|due| due.saturating_duration_since(Instant::now()));
        due.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    fn sent(&self) -> Sent {
        let mut sent = Sent::default();
        for flow in self.flows.values() {
            let stats = flow.connection.stats();
            sent.window_packets += stats.path.cwnd as f64 / f64::from(stats.path.current_mtu);
            sent.bytes += stats.udp_tx.bytes;
            sent.packets += stats.path.sent_packets;
            sent.lost_packets += stats.path.lost_packets;
        }
        sent
    }
}

impl Flow {
    /// Handles the connection's events, and writes or reads as much as possible.
    fn look(&mut self, shared: &Shared) -> Result<()> {
        while let Some(event) = self.connection.poll() {
            if let Event::ConnectionLost { reason } = event
                && shared.goes_on()
            {
                bail!("a QUIC connection ended: {reason}");
            }
        }
        if self.stream.is_none() {
            let mut streams = self.connection.streams();
            self.stream =
                if self.is_sender { streams.open(Dir::Uni) } else { streams.accept(Dir::Uni) };
        }
        match self.stream {
            Some(stream) if self.is_sender => self.write(stream),
            Some(stream) => self.read(stream, shared),
            None => Ok(()),
        }
    }

    fn write(&mut self, stream: StreamId) -> Result<()> {
        while self.left != Some(0) {
            let left = self.left.map_or(CHUNK.len(), |left| left.min(CHUNK.len() as u64) as usize);
            match self.connection.send_stream(stream).write(&CHUNK[..left]) {
                Ok(written) => self.left = self.left.map(|left| left - written as u64),
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(error).context("a QUIC sender"),
            }
            if self.left == Some(0) {
                self.connection.send_stream(stream).finish().context("a QUIC sender")?;
            }
        }
        Ok(())
    }

    fn read(&mut self, stream: StreamId, shared: &Shared) -> Result<()> {
        let mut receiver = self.connection.recv_stream(stream);
        // A stream read to its end is closed.
        let Ok(mut chunks) = receiver.read(true) else { return Ok(()) };
        let mut bytes = 0;
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
                Ok(None) | Err(ReadError::Blocked) => break Ok(()),
                Err(error) => break Err(error).context("a QUIC receiver"),
            }
        };
        // Frames for it are sent with the next turn's datagrams.
        let _transmits = chunks.finalize();
        if bytes > 0 {
            shared.take(bytes);
        }
        ended
    }
}
