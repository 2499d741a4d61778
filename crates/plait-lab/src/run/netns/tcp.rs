//! Bulk transfers over the kernel's TCP. Each flow has a thread that writes and one that reads;
//! both sleep in the kernel until it has room or data.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::wait_readable;
use plait_net::tcp::TcpInfo;
use plait_proto::time::Instant;
use plait_sim::app::{Observation, Span, Tally, Transfer};
use plait_sim::scenario::app::TcpSpec;
use plait_sim::tcp::ReceiverConfig;
use socket2::{Domain, Protocol, Socket, Type};

use super::site::Ends;
use super::term::{SLEEP_MAX, Term, is_pause};
use super::udp::port_of;
use crate::emulator::Epoch;

const CHUNK_BYTES: usize = 256 << 10;
/// Connections that wait to be taken: as many as one application may have, and some.
const BACKLOG: i32 = 256;

/// What an application does, besides where.
#[derive(Clone, Debug)]
pub(super) struct TcpPlan {
    pub(super) spec: TcpSpec,
    /// The kernel's name of the congestion controller.
    pub(super) controller: String,
    pub(super) start: Instant,
    pub(super) stop: Instant,
    /// The time that metrics cover.
    pub(super) span: Span,
    /// Whether it is the kernel's MPTCP.
    pub(super) is_multipath: bool,
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
    term: Term,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tally: Tally,
    flows: Vec<Flow>,
    /// What the receivers were given, whenever that was.
    received_bytes: u64,
    /// The time of the last byte, once each flow's transfer is complete.
    complete_at: Option<Instant>,
    sampled_at: Instant,
    failure: Option<String>,
}

#[derive(Debug, Default)]
struct Flow {
    /// While it sends.
    socket: Option<Arc<TcpStream>>,
    last: TcpInfo,
}

impl TcpApp {
    /// Starts application number `at`: it waits for its time by itself.
    pub(super) fn start(plan: TcpPlan, at: usize, ends: Ends<'_>, epoch: Epoch) -> Result<Self> {
        let port = port_of(at);
        let target = SocketAddrV4::new(ends.receiver.1, port);
        let protocol = plan.is_multipath.then_some(Protocol::MPTCP);
        let listen = || -> std::io::Result<TcpListener> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, protocol)?;
            socket.set_reuse_address(true)?;
            // Further subflows come to the host's other addresses.
            let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
            let own = if plan.is_multipath { any } else { target };
            socket.bind(&SocketAddr::from(own).into())?;
            socket.listen(BACKLOG)?;
            Ok(socket.into())
        };
        let listener = ends.receiver.0.run_in(listen)?;
        let listener = listener.with_context(|| format!("cannot listen on {target}"))?;
        listener.set_nonblocking(true)?;
        let window_bytes_max = plan.spec.tcp.window_bytes_max;
        // The default is as far as the kernel itself lets a window grow.
        if window_bytes_max < ReceiverConfig::WINDOW_BYTES_MAX {
            plait_net::tcp::set_receive_window(&listener, usize::try_from(window_bytes_max)?)?;
        }
        let listener = Arc::new(listener);
        let flows = plan.spec.flows;
        let state = State {
            tally: Tally::new(plan.span),
            flows: (0..flows).map(|_| Flow::default()).collect(),
            received_bytes: 0,
            complete_at: None,
            sampled_at: plan.start,
            failure: None,
        };
        let (term, state) = (Term::until(plan.stop, epoch), Mutex::new(state));
        let shared = Arc::new(Shared { plan, term, state });
        let mut app = Self { shared, threads: Vec::new() };
        for flow in 0..flows as usize {
            let opened = ends.sender.0.run_in(|| -> Result<Socket> {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, protocol)?;
                let controller = &app.shared.plan.controller;
                socket
                    .set_tcp_congestion(controller.as_bytes())
                    .with_context(|| format!("the kernel refuses the controller {controller}"))?;
                socket.bind(&SocketAddr::from((ends.sender.1, 0)).into())?;
                Ok(socket)
            });
            let socket = opened?.context("cannot open a TCP socket")?;
            let listener = Arc::clone(&listener);
            app.spawn(move |shared| shared.receive(&listener))?;
            app.spawn(move |shared| shared.send(flow, socket, target))?;
        }
        Ok(app)
    }

    fn spawn(&mut self, work: impl FnOnce(&Shared) -> Result<()> + Send + 'static) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("tcp".into()).spawn(move || {
            if let Err(error) = work(&shared) {
                shared.lock().failure.get_or_insert(format!("{error:#}"));
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Asks the kernel where the senders are now.
    pub(super) fn sample(&self) {
        self.shared.lock().sample(self.shared.term.now());
    }

    pub(super) fn tally(&self) -> Tally {
        self.shared.lock().tally.clone()
    }

    pub(super) fn observe(&self) -> Observation {
        let state = self.shared.lock();
        let infos = || state.flows.iter().map(|flow| flow.last);
        let open = state.flows.iter().filter(|flow| flow.socket.is_some());
        let windows: u64 = open.map(|flow| u64::from(flow.last.snd_cwnd)).sum();
        Observation {
            cwnd_segments: Some(windows as f64),
            segments: infos().map(|info| u64::from(info.data_segs_out)).sum(),
            retransmits: infos().map(|info| u64::from(info.total_retrans)).sum(),
            timeouts: infos().map(|info| u64::from(info.total_rto.unwrap_or(0))).sum(),
            transfer: state.complete_at.map(|at| Transfer {
                bytes: state.received_bytes,
                time: at.since(self.shared.plan.start),
            }),
            ..Observation::default()
        }
    }

    /// Whether the kernel counts retransmission timeouts.
    pub(super) fn tells_timeouts(&self) -> bool {
        self.shared.lock().flows.iter().all(|flow| flow.last.total_rto.is_some())
    }

    /// What went wrong, if anything did.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }
}

impl Drop for TcpApp {
    fn drop(&mut self) {
        self.shared.term.quit();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl State {
    /// What grew since the last time counts for the span when most of that time lies within.
    fn sample(&mut self, now: Instant) {
        let middle = self.sampled_at + now.since(self.sampled_at) / 2;
        self.sampled_at = now;
        for flow in &mut self.flows {
            let Some(socket) = &flow.socket else { continue };
            let Ok(info) = plait_net::tcp::info(&**socket) else { continue };
            let bytes = info.bytes_sent.saturating_sub(flow.last.bytes_sent);
            let segments = info.data_segs_out.saturating_sub(flow.last.data_segs_out);
            let segments = u64::from(segments);
            flow.last = info;
            self.tally.offered_bytes += bytes;
            self.tally.sent_packets += segments;
            if self.tally.span().holds(middle) {
                self.tally.measured_offered_bytes += bytes;
                self.tally.measured_sent_packets += segments;
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds an application's lock")
    }

    fn send(&self, flow: usize, socket: Socket, to: SocketAddrV4) -> Result<()> {
        // Unsent data must not go on after the stop.
        socket.set_linger(Some(Duration::ZERO))?;
        if !self.term.wait_until(self.plan.start) {
            return Ok(());
        }
        let limit = self.plan.stop.since(self.term.now());
        match socket.connect_timeout(&SocketAddr::from(to).into(), limit) {
            // Nothing passed as long as it ran.
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(()),
            connected => connected.with_context(|| format!("cannot connect to {to}"))?,
        }
        let stream = Arc::new(TcpStream::from(socket));
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(SLEEP_MAX))?;
        self.lock().flows[flow].socket = Some(Arc::clone(&stream));
        let sent = self.write(&stream);
        if sent.is_ok() {
            self.term.wait_until(self.plan.stop);
        }
        let mut state = self.lock();
        state.sample(self.term.now());
        state.flows[flow].socket = None;
        sent
    }

    fn write(&self, mut stream: &TcpStream) -> Result<()> {
        let chunk = vec![0; CHUNK_BYTES];
        let mut left = self.plan.spec.transfer_bytes.unwrap_or(u64::MAX);
        while left > 0 && self.term.goes_on() {
            let length = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            match stream.write(&chunk[..length]) {
                Ok(written) => left -= written as u64,
                Err(error) if is_pause(error.kind()) => {}
                // The receiver stopped first.
                Err(_) if !self.term.goes_on() => break,
                Err(error) => return Err(error).context("a TCP sender"),
            }
        }
        Ok(())
    }

    fn receive(&self, listener: &TcpListener) -> Result<()> {
        let Some(stream) = self.accept(listener)? else { return Ok(()) };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(SLEEP_MAX))?;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.term.goes_on() {
            match (&stream).read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => {
                    let now = self.term.now();
                    if now < self.plan.stop {
                        self.take(now, length as u64);
                    }
                }
                Err(error) if is_pause(error.kind()) => {}
                // The sender stopped first.
                Err(_) if !self.term.goes_on() => break,
                Err(error) => return Err(error).context("a TCP receiver"),
            }
        }
        Ok(())
    }

    /// Notes payload that a receiver was given.
    fn take(&self, now: Instant, bytes: u64) {
        let mut state = self.lock();
        state.tally.on_goodput(now, bytes);
        state.received_bytes += bytes;
        let spec = &self.plan.spec;
        let whole = spec.transfer_bytes.map(|bytes| bytes * u64::from(spec.flows));
        if whole == Some(state.received_bytes) {
            state.complete_at = Some(now);
        }
    }

    fn accept(&self, listener: &TcpListener) -> Result<Option<TcpStream>> {
        while self.term.goes_on() {
            wait_readable(listener.as_fd(), SLEEP_MAX)?;
            match listener.accept() {
                Ok((stream, _)) => return Ok(Some(stream)),
                Err(error) if is_pause(error.kind()) => {}
                Err(error) => return Err(error).context("cannot accept a TCP connection"),
            }
        }
        Ok(None)
    }
}
