//! Which connections are open, what they carried, and over which access.

mod accesses;
mod admission;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::config::{Access, Limits, WayIn};
use crate::refusal::Refusals;
use crate::target::Target;

pub(crate) use accesses::{AccessTotals, Accesses, subflows};
pub(crate) use admission::Admission;

/// All that is known of connections.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) started: Instant,
    pub(crate) refusals: Refusals,
    pub(crate) totals: Totals,
    limits: Mutex<Limits>,
    open: Mutex<Open>,
    accesses: Mutex<Accesses>,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Connections that were accepted.
    pub(crate) accepted: AtomicU64,
    /// Connections closed before anything was known of them: from addresses that may not use the
    /// proxy, or beyond its bounds, when many came.
    pub(crate) dropped: AtomicU64,
    /// How relayed connections ended.
    complete: AtomicU64,
    reset: AtomicU64,
    idle: AtomicU64,
    /// Bytes from clients, and to them.
    up: AtomicU64,
    down: AtomicU64,
}

impl Totals {
    pub(crate) fn ends(&self) -> [(&'static str, u64); 3] {
        let ends = [("complete", &self.complete), ("reset", &self.reset), ("idle", &self.idle)];
        ends.map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    pub(crate) fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Arc<Connection>>,
    per_client: HashMap<IpAddr, usize>,
    /// Connections of clients that will be refused, once they have said what they want.
    refused: usize,
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Both ends had said that they will send no more.
    Complete,
    /// One end was gone: the other was told so by a reset.
    Reset,
    /// Nothing was sent for so long that it was given up.
    Idle,
}

/// A connection from a client, and from its request on to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    registry: Arc<Registry>,
    pub(crate) id: u64,
    pub(crate) client: SocketAddr,
    pub(crate) way: WayIn,
    pub(crate) opened: Instant,
    pub(crate) target: OnceLock<Target>,
    streams: OnceLock<[Arc<TcpStream>; 2]>,
    up: AtomicU64,
    down: AtomicU64,
    /// Whether its last look was taken.
    is_over: AtomicBool,
    /// When a byte was last carried, in milliseconds since the registry's start.
    moved_ms: AtomicU64,
}

impl Connection {
    pub(crate) fn count_up(&self, bytes: usize) {
        self.count(&self.up, &self.registry.totals.up, bytes);
    }

    pub(crate) fn count_down(&self, bytes: usize) {
        self.count(&self.down, &self.registry.totals.down, bytes);
    }

    fn count(&self, own: &AtomicU64, total: &AtomicU64, bytes: usize) {
        own.fetch_add(bytes as u64, Ordering::Relaxed);
        total.fetch_add(bytes as u64, Ordering::Relaxed);
        self.moved_ms.store(self.registry.now_ms(), Ordering::Relaxed);
    }

    pub(crate) fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Waits until no byte was carried for so long.
    pub(crate) async fn idle(&self, timeout: Duration) {
        while let Some(rest) = timeout.checked_sub(self.quiet_for()).filter(|rest| !rest.is_zero())
        {
            sleep(rest).await;
        }
    }

    /// How long no byte was carried.
    fn quiet_for(&self) -> Duration {
        let now_ms = self.registry.now_ms();
        Duration::from_millis(now_ms.saturating_sub(self.moved_ms.load(Ordering::Relaxed)))
    }

    /// From now on bytes are carried between these.
    pub(crate) fn relays(&self, client: &Arc<TcpStream>, server: &Arc<TcpStream>) {
        // A connection is relayed once.
        let _ = self.streams.set([Arc::clone(client), Arc::clone(server)]);
        self.moved_ms.store(self.registry.now_ms(), Ordering::Relaxed);
        self.look();
    }

    /// Looks at what its subflows carried.
    pub(crate) fn look(&self) {
        self.registry.accesses().look(self);
    }

    /// The client's and the server's end, once bytes are carried between them.
    pub(crate) fn streams(&self) -> Option<&[Arc<TcpStream>; 2]> {
        self.streams.get()
    }

    pub(crate) fn ended(&self, end: End) {
        let totals = &self.registry.totals;
        let count = match end {
            End::Complete => &totals.complete,
            End::Reset => &totals.reset,
            End::Idle => &totals.idle,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts what a connection carries, for as long as anything may.
#[derive(Clone, Debug)]
pub(crate) struct Counted(Arc<Connection>);

impl Counted {
    pub(crate) fn up(&self, bytes: usize) {
        self.0.count_up(bytes);
    }

    pub(crate) fn down(&self, bytes: usize) {
        self.0.count_down(bytes);
    }

    /// Waits until nothing was carried for so long.
    pub(crate) async fn idle(&self, timeout: Duration) {
        self.0.idle(timeout).await;
    }
}

impl Registry {
    pub(crate) fn new(limits: Limits, accesses: &[Access]) -> Self {
        Self {
            started: Instant::now(),
            refusals: Refusals::default(),
            totals: Totals::default(),
            limits: Mutex::new(limits),
            open: Mutex::default(),
            accesses: Mutex::new(Accesses::new(accesses)),
        }
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these bounds hold for connections that come in.
    pub(crate) fn set_limits(&self, limits: Limits) {
        *self.limits() = limits;
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open connections, the oldest first.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        self.open().connections.values().cloned().collect()
    }

    /// How many connections are open.
    pub(crate) fn count(&self) -> usize {
        self.open().connections.len()
    }

    /// Looks at what the subflows of all connections carried.
    pub(crate) fn sample(&self) {
        for connection in self.connections() {
            connection.look();
        }
    }

    /// What each access carried so far.
    pub(crate) fn access_totals(&self) -> Vec<AccessTotals> {
        self.sample();
        self.accesses().totals()
    }

    fn accesses(&self) -> MutexGuard<'_, Accesses> {
        self.accesses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
