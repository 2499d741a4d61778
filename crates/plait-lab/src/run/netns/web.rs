//! Pages over the kernel's TCP. A thread reads them one after another, each over new connections,
//! and every connection has a thread that asks for object after object; at the other end a thread
//! serves it. All sleep in the kernel until there is something to do.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::{NetNs, wait_readable};
use plait_net::tcp::TcpInfo;
use plait_proto::time::Instant;
use plait_sim::app::{Observation, Span, Tally};
use plait_sim::prng::Prng;
use plait_sim::scenario::app::WebSpec;
use socket2::{Domain, Protocol, Socket, Type};

use super::site::Ends;
use super::term::{SLEEP_MAX, Term, is_pause};
use super::udp::port_of;
use crate::emulator::Epoch;

const CHUNK_BYTES: usize = 256 << 10;
/// Connections that wait to be taken: more than a page may have.
const BACKLOG: i32 = 256;
/// The first bytes of a request: how long the object is to be.
const LENGTH_BYTES: usize = size_of::<u64>();

/// What an application does, besides where.
#[derive(Clone, Debug)]
pub(super) struct WebPlan {
    pub(super) spec: WebSpec,
    /// The kernel's name of the server's congestion controller.
    pub(super) controller: String,
    pub(super) start: Instant,
    pub(super) stop: Instant,
    /// The time that metrics cover.
    pub(super) span: Span,
    /// Whether it is the kernel's MPTCP.
    pub(super) is_multipath: bool,
    /// Of the objects' sizes.
    pub(super) seed: u64,
}

/// A running application. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct WebApp {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    plan: WebPlan,
    term: Term,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tally: Tally,
    /// Connections at their server's end, with what is counted of each already.
    open: Vec<(Arc<TcpStream>, TcpInfo)>,
    counted: Observation,
    /// Whether the kernel counts retransmission timeouts.
    tells_timeouts: bool,
    failure: Option<String>,
}

impl WebApp {
    /// Starts application number `at`: it waits for its time by itself.
    pub(super) fn start(plan: WebPlan, at: usize, ends: Ends<'_>, epoch: Epoch) -> Result<Self> {
        let server = SocketAddrV4::new(ends.sender.1, port_of(at));
        let opened = ends.sender.0.run_in(|| listen(&plan, server))?;
        let listener = opened.with_context(|| format!("cannot listen on {server}"))?;
        let tally = Tally::new(plan.span);
        let counted = Observation::default();
        let (open, failure, tells_timeouts) = (Vec::new(), None, true);
        let state = Mutex::new(State { tally, open, counted, tells_timeouts, failure });
        let term = Term::until(plan.stop, epoch);
        let mut app = Self { shared: Arc::new(Shared { plan, term, state }), threads: Vec::new() };
        app.spawn(ends.sender.0, move |shared| shared.serve(&listener))?;
        let reader = ends.receiver.1;
        app.spawn(ends.receiver.0, move |shared| shared.read_pages(reader, server))?;
        Ok(app)
    }

    /// A thread in a namespace; those that it starts are there as well.
    fn spawn(
        &mut self,
        netns: &NetNs,
        work: impl FnOnce(&Shared) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = netns.run_in(move || {
            let thread = std::thread::Builder::new().name("web".into());
            thread.spawn(move || shared.note(work(&shared)))
        })??;
        self.threads.push(thread);
        Ok(())
    }

    /// Asks the kernel where the servers' connections are now.
    pub(super) fn sample(&self) {
        let now = self.shared.term.now();
        self.shared.lock().sample(now);
    }

    pub(super) fn tally(&self) -> Tally {
        self.shared.lock().tally.clone()
    }

    pub(super) fn observe(&self) -> Observation {
        let state = self.shared.lock();
        let windows: u64 = state.open.iter().map(|(_, info)| u64::from(info.snd_cwnd)).sum();
        Observation { cwnd_segments: Some(windows as f64), ..state.counted.clone() }
    }

    /// Whether the kernel counts retransmission timeouts.
    pub(super) fn tells_timeouts(&self) -> bool {
        self.shared.lock().tells_timeouts
    }

    /// What went wrong, if anything did.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }
}

impl Drop for WebApp {
    fn drop(&mut self) {
        self.shared.term.quit();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl State {
    fn sample(&mut self, now: Instant) {
        for at in 0..self.open.len() {
            self.count(at, now);
        }
    }

    /// Counts what a connection has sent since it was last asked.
    fn count(&mut self, at: usize, now: Instant) {
        let (socket, last) = &mut self.open[at];
        let Ok(info) = plait_net::tcp::info(&**socket) else { return };
        let bytes = info.bytes_sent.saturating_sub(last.bytes_sent);
        let segments = u64::from(info.data_segs_out.saturating_sub(last.data_segs_out));
        let again = u64::from(info.total_retrans.saturating_sub(last.total_retrans));
        self.tells_timeouts &= info.total_rto.is_some();
        let timeouts = |info: &TcpInfo| u64::from(info.total_rto.unwrap_or_default());
        self.counted.timeouts += timeouts(&info).saturating_sub(timeouts(last));
        *last = info;
        self.counted.segments += segments;
        self.counted.retransmits += again;
        self.tally.offered_bytes += bytes;
        self.tally.sent_packets += segments;
        if self.tally.span().holds(now) {
            self.tally.measured_offered_bytes += bytes;
            self.tally.measured_sent_packets += segments;
        }
    }

    fn close(&mut self, stream: &Arc<TcpStream>, now: Instant) {
        let place = self.open.iter().position(|(other, _)| Arc::ptr_eq(other, stream));
        if let Some(place) = place {
            self.count(place, now);
            self.open.swap_remove(place);
        }
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

    /// Takes connections, each with a thread of its own.
    fn serve(&self, listener: &TcpListener) -> Result<()> {
        std::thread::scope(|scope| {
            while self.term.goes_on() {
                wait_readable(listener.as_fd(), SLEEP_MAX)?;
                match listener.accept() {
                    Ok((stream, _)) => {
                        scope.spawn(|| self.note(self.serve_one(stream)));
                    }
                    Err(error) if is_pause(error.kind()) => {}
                    Err(error) => return Err(error).context("cannot accept a TCP connection"),
                }
            }
            Ok(())
        })
    }

    fn serve_one(&self, stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        prepare(&stream)?;
        let stream = Arc::new(stream);
        self.lock().open.push((Arc::clone(&stream), TcpInfo::default()));
        let served = self.answer(&stream);
        let now = self.term.now();
        self.lock().close(&stream, now);
        served
    }

    /// Sends objects as they are asked for, until the reader closes.
    fn answer(&self, mut stream: &TcpStream) -> Result<()> {
        let chunk = vec![0; CHUNK_BYTES];
        let mut request = [0; WebSpec::REQUEST_BYTES];
        while self.read_exact(stream, &mut request, |_, _| ())? {
            let length = request.first_chunk::<LENGTH_BYTES>();
            let mut left = u64::from_be_bytes(*length.expect("a request begins with a length"));
            while left > 0 && self.term.goes_on() {
                let length = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
                match stream.write(&chunk[..length]) {
                    Ok(written) => left -= written as u64,
                    Err(error) if is_pause(error.kind()) => {}
                    Err(_) if !self.term.goes_on() => {}
                    Err(error) => return Err(error).context("a server of pages"),
                }
            }
        }
        Ok(())
    }

    fn read_pages(&self, reader: Ipv4Addr, server: SocketAddrV4) -> Result<()> {
        let WebPlan { spec, seed, start, span, .. } = &self.plan;
        let mut prng = Prng::new(*seed);
        let mut next_page_at = *start;
        while self.term.wait_until(next_page_at) && self.term.goes_on() {
            let started_at = self.term.now();
            let objects = (0..spec.objects).map(|_| spec.draw_object(&mut prng)).collect();
            if !self.read_page(reader, server, &Mutex::new(objects))? {
                break;
            }
            let now = self.term.now();
            if span.holds(now) {
                let load = now.since(started_at).as_secs_f64();
                self.lock().counted.page_loads_s.push(load);
            }
            next_page_at = now + spec.think;
        }
        Ok(())
    }

    /// Fetches a page's objects; false when the application was stopped meanwhile.
    fn read_page(
        &self,
        reader: Ipv4Addr,
        server: SocketAddrV4,
        objects: &Mutex<VecDeque<u64>>,
    ) -> Result<bool> {
        let count = self.plan.spec.connections.min(self.plan.spec.objects);
        std::thread::scope(|scope| {
            let fetch = || self.fetch(reader, server, objects);
            let fetchers: Vec<_> = (0..count).map(|_| scope.spawn(fetch)).collect();
            let mut is_whole = true;
            for fetcher in fetchers {
                let done = fetcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                is_whole &= done?;
            }
            Ok(is_whole)
        })
    }

    /// One connection of a page. It closes when it is dropped.
    fn fetch(
        &self,
        reader: Ipv4Addr,
        server: SocketAddrV4,
        objects: &Mutex<VecDeque<u64>>,
    ) -> Result<bool> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, protocol(&self.plan))?;
        socket.bind(&SocketAddr::from((reader, 0)).into())?;
        let limit = self.term.stop().since(self.term.now()).max(Duration::from_millis(1));
        match socket.connect_timeout(&SocketAddr::from(server).into(), limit) {
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(false),
            connected => connected.with_context(|| format!("cannot connect to {server}"))?,
        }
        let stream = TcpStream::from(socket);
        prepare(&stream)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let next = objects.lock().expect("no thread panics with the list").pop_front();
            let Some(object_bytes) = next else { return Ok(true) };
            let mut request = [0; WebSpec::REQUEST_BYTES];
            request[..LENGTH_BYTES].copy_from_slice(&object_bytes.to_be_bytes());
            (&stream).write_all(&request).context("a reader of pages")?;
            let mut left = usize::try_from(object_bytes)?;
            while left > 0 {
                let length = left.min(CHUNK_BYTES);
                let take = |now, bytes| self.lock().tally.on_goodput(now, bytes);
                if !self.read_exact(&stream, &mut chunk[..length], take)? {
                    return Ok(false);
                }
                left -= length;
            }
        }
    }

    /// Fills `buffer`, and tells of what comes; false when the other end closed or the application
    /// is over.
    fn read_exact(
        &self,
        mut stream: &TcpStream,
        buffer: &mut [u8],
        mut take: impl FnMut(Instant, u64),
    ) -> Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            if !self.term.goes_on() {
                return Ok(false);
            }
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    filled += length;
                    take(self.term.now(), length as u64);
                }
                Err(error) if is_pause(error.kind()) => {}
                // The other end stopped first.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(error).context("a connection of pages"),
            }
        }
        Ok(true)
    }
}

fn protocol(plan: &WebPlan) -> Option<Protocol> {
    plan.is_multipath.then_some(Protocol::MPTCP)
}

fn listen(plan: &WebPlan, server: SocketAddrV4) -> Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, protocol(plan))?;
    socket.set_reuse_address(true)?;
    // The connections have what the listener has.
    let controller = &plan.controller;
    socket
        .set_tcp_congestion(controller.as_bytes())
        .with_context(|| format!("the kernel refuses the controller {controller}"))?;
    // Further subflows come to the host's other addresses.
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, server.port());
    let own = if plan.is_multipath { any } else { server };
    socket.bind(&SocketAddr::from(own).into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// As browsers and servers have their sockets, and so that a stop is noticed.
fn prepare(stream: &TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SLEEP_MAX))?;
    stream.set_write_timeout(Some(SLEEP_MAX))?;
    Ok(())
}
