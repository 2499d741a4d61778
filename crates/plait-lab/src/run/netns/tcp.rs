//! Applications over the kernel's TCP: [`bulk`] transfers and [`pages`]. This module has their
//! common parts: sockets, counters of each connection, and threads. Threads sleep in the kernel
//! until it has room or data, and wake up regularly to check whether the application is over.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::{NetNs, wait_readable};
use plait_net::tcp::TcpInfo;
use plait_proto::time::Instant;
use plait_sim::app::{Observation, Span, Tally, Transfer};
use plait_sim::scenario::app::{TcpSpec, WebSpec};
use socket2::{Domain, Protocol, Socket, Type};

use super::site::Ends;
use super::udp::port_of;
use crate::emulator::Epoch;

mod bulk;
mod pages;
mod subflows;

pub(super) use subflows::Lines;
use subflows::Subflows;

/// Longest sleep in a call: a stop is noticed within this time.
const SLEEP_MAX: Duration = Duration::from_millis(20);
const CHUNK_BYTES: usize = 256 << 10;
/// Connections that wait to be accepted: more than an application may have.
const BACKLOG: i32 = 256;

/// The load of the connections.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Bulk(TcpSpec),
    Pages {
        spec: WebSpec,
        /// Seed of the objects' sizes.
        seed: u64,
    },
}

/// An application's plan, without its addresses.
#[derive(Clone, Debug)]
pub(super) struct TcpPlan {
    pub(super) load: Load,
    /// The kernel's name of the sender's congestion controller.
    pub(super) controller: String,
    pub(super) start: Instant,
    pub(super) stop: Instant,
    /// The time that metrics cover.
    pub(super) span: Span,
    /// The links of the kernel's MPTCP; `None` for plain TCP.
    pub(super) multipath: Option<Lines>,
}

/// A running application. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct TcpApp {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    plan: TcpPlan,
    epoch: Epoch,
    quit: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tally: Tally,
    connections: Vec<Connection>,
    /// Bytes that receivers got over the whole run.
    received_bytes: u64,
    /// The time of the last byte, once each flow's transfer is complete.
    complete_at: Option<Instant>,
    page_loads_s: Vec<f64>,
    sampled_at: Instant,
    subflows: Subflows,
    failure: Option<String>,
}

/// A connection at its sender's end.
#[derive(Debug, Default)]
struct Connection {
    /// While it is open.
    socket: Option<Arc<TcpStream>>,
    last: TcpInfo,
}

impl TcpApp {
    /// Starts application number `at`; it waits for its start time by itself.
    pub(super) fn start(plan: TcpPlan, at: usize, ends: Ends<'_>, epoch: Epoch) -> Result<Self> {
        let state = State {
            tally: Tally::new(plan.span),
            connections: Vec::new(),
            received_bytes: 0,
            complete_at: None,
            page_loads_s: Vec::new(),
            sampled_at: plan.start,
            subflows: Subflows::default(),
            failure: None,
        };
        let (quit, state) = (AtomicBool::new(false), Mutex::new(state));
        let shared = Arc::new(Shared { plan, epoch, quit, state });
        let mut app = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        match &shared.plan.load {
            Load::Bulk(spec) => app.start_bulk(spec, port_of(at), ends)?,
            Load::Pages { spec, seed } => {
                app.start_pages(spec.clone(), *seed, port_of(at), ends)?;
            }
        }
        Ok(app)
    }

    /// A thread in a namespace; threads that it starts are there too.
    fn spawn(
        &mut self,
        netns: &NetNs,
        work: impl FnOnce(&Shared) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("tcp".into());
        let spawned = netns.run_in(move || thread.spawn(move || shared.note(work(&shared))))?;
        self.threads.push(spawned?);
        Ok(())
    }

    /// Reads the senders' counters from the kernel.
    pub(super) fn sample(&self) {
        self.shared.sample(&mut self.shared.lock());
    }

    pub(super) fn tally(&self) -> Tally {
        self.shared.lock().tally.clone()
    }

    pub(super) fn observe(&self) -> Observation {
        let state = self.shared.lock();
        let infos = || state.connections.iter().map(|connection| connection.last);
        let open = state.connections.iter().filter(|connection| connection.socket.is_some());
        let windows: u64 = open.map(|connection| u64::from(connection.last.snd_cwnd)).sum();
        Observation {
            cwnd_segments: Some(windows as f64),
            segments: infos().map(|info| u64::from(info.data_segs_out)).sum(),
            retransmits: infos().map(|info| u64::from(info.total_retrans)).sum(),
            timeouts: infos().map(|info| u64::from(info.total_rto.unwrap_or(0))).sum(),
            transfer: state.complete_at.map(|at| Transfer {
                bytes: state.received_bytes,
                time: at.since(self.shared.plan.start),
            }),
            page_loads_s: state.page_loads_s.clone(),
            multipath: self.shared.plan.multipath.as_ref().map(|lines| state.subflows.view(lines)),
            ..Observation::default()
        }
    }

    /// Whether the kernel counts retransmission timeouts; false for a transfer without a
    /// connection.
    pub(super) fn tells_timeouts(&self) -> bool {
        let connections = &self.shared.lock().connections;
        let least = match &self.shared.plan.load {
            Load::Bulk(spec) => spec.flows as usize,
            Load::Pages { .. } => 0,
        };
        connections.len() >= least && connections.iter().all(|it| it.last.total_rto.is_some())
    }

    /// What went wrong, if anything did.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }
}

impl Drop for TcpApp {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl TcpPlan {
    /// A socket at one end, with the controller if that end sends.
    fn open(&self, sends: bool) -> Result<Socket> {
        let protocol = self.multipath.is_some().then_some(Protocol::MPTCP);
        let socket = Socket::new(Domain::IPV4, Type::STREAM, protocol)?;
        if sends {
            let controller = &self.controller;
            socket
                .set_tcp_congestion(controller.as_bytes())
                .with_context(|| format!("the kernel refuses the controller {controller}"))?;
        }
        Ok(socket)
    }

    /// A listener in a namespace. Its connections inherit its options.
    fn listen(&self, netns: &NetNs, address: SocketAddrV4, sends: bool) -> Result<TcpListener> {
        // Further subflows use the host's other addresses.
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, address.port());
        let own = if self.multipath.is_some() { any } else { address };
        let listen = || -> Result<TcpListener> {
            let socket = self.open(sends)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::from(own).into())?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            Ok(socket.into())
        };
        netns.run_in(listen)?.with_context(|| format!("cannot listen on {address}"))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds an application's lock")
    }

    fn note(&self, done: Result<()>) {
        if let Err(error) = done {
            self.lock().failure.get_or_insert(format!("{error:#}"));
        }
    }

    fn now(&self) -> Instant {
        self.epoch.now()
    }

    fn quits(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    /// Whether the application still runs.
    fn goes_on(&self) -> bool {
        !self.quits() && self.now() < self.plan.stop
    }

    /// Sleeps until `at`; says whether it was reached.
    fn wait_until(&self, at: Instant) -> bool {
        loop {
            let left = at.since(self.now());
            if left.is_zero() || self.quits() {
                return left.is_zero();
            }
            std::thread::sleep(left.min(SLEEP_MAX));
        }
    }

    /// Counts growth since the last sample. It counts for the span, for a transfer, if most of that
    /// time lies within it, and for pages, if its end does.
    fn sample(&self, state: &mut State) {
        let now = self.now();
        let counts_at = match self.plan.load {
            Load::Bulk(_) => state.sampled_at + now.since(state.sampled_at) / 2,
            Load::Pages { .. } => now,
        };
        state.sampled_at = now;
        let measures = state.tally.span().holds(counts_at);
        for (at, Connection { socket, last }) in state.connections.iter_mut().enumerate() {
            if let (Some(socket), true) = (&socket, self.plan.multipath.is_some()) {
                state.subflows.sample(at, socket, measures);
            }
            let Some(Ok(info)) = socket.as_ref().map(plait_net::tcp::info) else { continue };
            let bytes = info.bytes_sent.saturating_sub(last.bytes_sent);
            let segments = u64::from(info.data_segs_out.saturating_sub(last.data_segs_out));
            *last = info;
            state.tally.offered_bytes += bytes;
            state.tally.sent_packets += segments;
            if measures {
                state.tally.measured_offered_bytes += bytes;
                state.tally.measured_sent_packets += segments;
            }
        }
    }

    /// Does `work` over a connection at its sender's end, and counts the bytes sent.
    fn send_over(
        &self,
        stream: TcpStream,
        work: impl FnOnce(&TcpStream) -> Result<()>,
    ) -> Result<()> {
        let stream = Arc::new(stream);
        let socket = Some(Arc::clone(&stream));
        let mut state = self.lock();
        let at = state.connections.len();
        state.connections.push(Connection { socket, last: TcpInfo::default() });
        self.sample(&mut state);
        drop(state);
        let done = work(&stream);
        let mut state = self.lock();
        self.sample(&mut state);
        state.connections[at].socket = None;
        done
    }

    /// Notes payload that a receiver got.
    fn take(&self, now: Instant, bytes: u64) {
        let mut state = self.lock();
        state.tally.on_goodput(now, bytes);
        state.received_bytes += bytes;
        if let Load::Bulk(spec) = &self.plan.load {
            let whole = spec.transfer_bytes.map(|bytes| bytes * u64::from(spec.flows));
            if whole == Some(state.received_bytes) {
                state.complete_at = Some(now);
            }
        }
    }

    /// `None` when the application is over before.
    fn accept(&self, listener: &TcpListener) -> Result<Option<TcpStream>> {
        while self.goes_on() {
            wait_readable(listener.as_fd(), SLEEP_MAX)?;
            match listener.accept() {
                Ok((stream, _)) => return prepare(stream).map(Some),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error).context("cannot accept a TCP connection"),
            }
        }
        Ok(None)
    }

    /// `None` when it could not connect while the application ran.
    fn connect(&self, socket: Socket, to: SocketAddrV4) -> Result<Option<TcpStream>> {
        let limit = self.plan.stop.since(self.now()).max(Duration::from_millis(1));
        match socket.connect_timeout(&SocketAddr::from(to).into(), limit) {
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(None),
            connected => connected.with_context(|| format!("cannot connect to {to}"))?,
        }
        prepare(socket.into()).map(Some)
    }

    /// Writes so many bytes, fewer when the application is over before.
    fn write(&self, mut stream: &TcpStream, bytes: u64) -> io::Result<()> {
        let (chunk, mut left) = (vec![0; CHUNK_BYTES], bytes);
        while left > 0 && self.goes_on() {
            let length = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            match stream.write(&chunk[..length]) {
                Ok(written) => left -= written as u64,
                Err(error) if is_pause(&error) => {}
                // The receiver stopped first.
                Err(error) if self.goes_on() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Reads available bytes; zero at the stream's end, or when the application is over.
    fn read(&self, mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        while self.goes_on() {
            match stream.read(buffer) {
                Err(error) if is_pause(&error) => {}
                // The sender stopped first.
                Err(_) if !self.goes_on() => break,
                read => return read,
            }
        }
        Ok(0)
    }
}

/// Sets timeouts, so that every call notices a stop.
fn prepare(stream: TcpStream) -> Result<TcpStream> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SLEEP_MAX))?;
    stream.set_write_timeout(Some(SLEEP_MAX))?;
    Ok(stream)
}

/// Whether a call only timed out.
fn is_pause(error: &io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
