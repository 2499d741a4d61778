//! The proxy as a whole: it is made ready, runs, and ends.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::accept;
use crate::config::{Config, Listener, WayIn};
use crate::policy::leads_back;
use crate::registry::Registry;
use crate::shared::{Current, Shared};
use crate::sockets::{bind, listen, try_congestion};
use crate::status::Observer;

/// Why a proxy cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No listener: nobody could come in.
    #[error("there is no [[listen]]: nobody could come in")]
    NoListener,
    /// No network may use it.
    #[error("`allow` names no network: nobody could use the proxy")]
    NobodyAllowed,
    /// A way in cannot ask for names and passwords, and they are wanted.
    #[error("clients that come in by {0} cannot be asked for a name and a password")]
    UsersCannotBeAsked(&'static str),
    /// The next proxy is this one.
    #[error("the next proxy, {0}, is this one: every connection would go in circles")]
    UpstreamIsThis(SocketAddr),
    /// The next proxy speaks a protocol without passwords, and one is given.
    #[error("a next proxy by convert takes no name and password")]
    UpstreamTakesNoUser,
    /// The kernel has no such congestion control, or not for this process.
    #[error("cannot send by the congestion control {name}: {cause}")]
    Congestion {
        /// Its name.
        name: String,
        /// The kernel's reason.
        cause: io::Error,
    },
    /// A listening socket cannot be had.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The kernel's reason.
        cause: io::Error,
    },
}

impl StartError {
    /// The remedy.
    pub fn help(&self) -> String {
        match self {
            Self::NoListener => {
                "add [[listen]] with `address = \"192.168.1.1:3128\"` and `way = \"http\"`".into()
            }
            Self::NobodyAllowed => {
                "set `allow` to the networks of your clients, as in [\"192.168.1.0/24\"]".into()
            }
            Self::UsersCannotBeAsked(_) => {
                "remove `users_file`, or run a proxy of its own for this way".into()
            }
            Self::UpstreamIsThis(_) => "give [upstream] the other proxy's address".into(),
            Self::UpstreamTakesNoUser => {
                "remove `user` and `password_file` under [upstream]; the other proxy's `allow` \
                 says who may use it"
                    .into()
            }
            Self::Congestion { .. } => {
                "take one of those in /proc/sys/net/ipv4/tcp_available_congestion_control; others \
                 than those in tcp_allowed_congestion_control need root"
                    .into()
            }
            Self::Listen { cause, address } => match cause.kind() {
                io::ErrorKind::AddrInUse => {
                    format!("another program has port {}: choose another one", address.port())
                }
                io::ErrorKind::AddrNotAvailable => {
                    "this machine has no such address: look at `ip address`".into()
                }
                io::ErrorKind::PermissionDenied => {
                    "ports below 1024 and `tproxy` need root, or the rights \
                     CAP_NET_BIND_SERVICE and CAP_NET_ADMIN"
                        .into()
                }
                _ => "look at the address and at what else listens there (`ss -ltn`)".into(),
            },
        }
    }
}

/// Tells a running proxy to end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// No more connections are accepted; open ones may go on for the configured time.
    pub fn drain(&self) {
        self.0.send_replace(true);
    }
}

/// Gives a running proxy another configuration.
#[derive(Clone, Debug)]
pub struct Reloader(Current);

impl Reloader {
    /// Follows `config` from now on; connections that are open go on as they began. Returns what
    /// differs and stays as it was until a restart.
    ///
    /// # Errors
    /// The configuration contradicts itself. Then nothing changes.
    pub fn apply(&self, mut config: Config) -> Result<Vec<&'static str>, StartError> {
        let now = self.0.get();
        let before = &now.config;
        let differing = [
            ("[[listen]]", before.listeners != config.listeners),
            ("[proxy] congestion", before.congestion != config.congestion),
            ("[[access]]", before.accesses != config.accesses),
        ];
        config.listeners.clone_from(&before.listeners);
        config.congestion.clone_from(&before.congestion);
        config.accesses.clone_from(&before.accesses);
        check(&config)?;
        now.registry.set_limits(config.limits);
        self.0.follow(config);
        Ok(differing.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect())
    }
}

/// A proxy that has its sockets, and does not run yet.
#[derive(Debug)]
pub struct Proxy {
    current: Current,
    sockets: Vec<std::net::TcpListener>,
    stop: Stop,
}

impl Proxy {
    /// Opens the listening sockets; all that needs rights is done afterwards.
    ///
    /// # Errors
    /// The configuration contradicts itself, or a socket cannot be had.
    pub fn open(config: Config) -> Result<Self, StartError> {
        check(&config)?;
        let mut sockets = Vec::new();
        let mut multipath = Vec::new();
        for listener in &config.listeners {
            let address = listener.address;
            let (socket, is_multipath) = listen(listener, config.congestion.as_deref())
                .map_err(|cause| StartError::Listen { address, cause })?;
            sockets.push(socket);
            multipath.push(is_multipath);
        }
        let registry = Arc::new(Registry::new(config.limits, &config.accesses));
        let pseudonym = format!("plait-{:016x}", RandomState::new().hash_one(0));
        let (pipes, plain_servers) = (Arc::default(), Arc::default());
        let shared = Shared { config, registry, pipes, plain_servers, pseudonym, multipath };
        Ok(Self {
            current: Current::new(shared),
            sockets,
            stop: Stop(Arc::new(watch::Sender::new(false))),
        })
    }

    /// Looks whether a configuration can be followed here, without its listeners.
    ///
    /// # Errors
    /// It contradicts itself, or the kernel has not its congestion control.
    pub fn check(config: &Config) -> Result<(), StartError> {
        check(config)
    }

    /// Looks whether a listener's address can be had, and gives whether MPTCP would be accepted
    /// there. Nothing listens, now or later.
    ///
    /// # Errors
    /// The socket cannot be had.
    pub fn try_listener(listener: &Listener, congestion: Option<&str>) -> Result<bool, StartError> {
        let address = listener.address;
        match bind(listener, congestion) {
            Ok((_closed, is_multipath)) => Ok(is_multipath),
            Err(cause) => Err(StartError::Listen { address, cause }),
        }
    }

    /// Where each listener listens; a port that the kernel chose is known here.
    pub fn addresses(&self) -> Vec<(Listener, SocketAddr)> {
        let shared = self.current.get();
        let sockets = self.sockets.iter().zip(&shared.config.listeners);
        let address = |socket: &std::net::TcpListener, listener: &Listener| {
            socket.local_addr().unwrap_or(listener.address)
        };
        sockets.map(|(socket, listener)| (*listener, address(socket, listener))).collect()
    }

    /// Ends it, from any thread.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Looks at it, from any thread.
    pub fn observer(&self) -> Observer {
        Observer::new(self.current.clone())
    }

    /// Gives it another configuration, from any thread.
    pub fn reloader(&self) -> Reloader {
        Reloader(self.current.clone())
    }

    /// Runs until it is told to end and its connections have ended, or have had their time.
    ///
    /// # Errors
    /// Threads or the sockets' registration cannot be had.
    pub fn run(self) -> io::Result<()> {
        let runtime = runtime::Builder::new_multi_thread()
            .thread_name("proxy")
            .max_blocking_threads(NAMES_AT_A_TIME)
            .enable_all()
            .build()?;
        let result = runtime.block_on(self.serve());
        // Names that are still looked up belong to connections that are gone.
        runtime.shutdown_timeout(Duration::from_millis(100));
        result
    }

    async fn serve(self) -> io::Result<()> {
        let Self { current, sockets, stop } = self;
        let shared = current.get();
        let mut tasks = tokio::task::JoinSet::new();
        for (socket, listener) in sockets.into_iter().zip(shared.config.listeners.clone()) {
            let socket = TcpListener::from_std(socket)?;
            let told = stop.0.subscribe();
            tasks.spawn(accept::serve(current.clone(), socket, listener, told));
        }
        let sampling = tokio::spawn(sample(Arc::clone(&shared.registry)));
        while tasks.join_next().await.is_some() {}
        sampling.abort();
        drain(&current.get()).await;
        Ok(())
    }
}

/// Names that are looked up at the same time; the C library's resolver takes a thread for each.
const NAMES_AT_A_TIME: usize = 64;
/// How often the accesses' shares are brought up to date.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

async fn sample(registry: Arc<Registry>) {
    let mut ticks = interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let registry = Arc::clone(&registry);
        // With thousands of connections it takes milliseconds, which packets need not wait for.
        let _ = tokio::task::spawn_blocking(move || registry.sample()).await;
    }
}

/// Waits for open connections to end, for as long as they may.
async fn drain(shared: &Shared) {
    const LOOK_EVERY: Duration = Duration::from_millis(20);
    let open = shared.registry.count();
    if open == 0 {
        return;
    }
    let limit = shared.config.limits.drain;
    log::info!("{open} connections may go on for {} s", limit.as_secs_f64());
    let end = Instant::now() + limit;
    while shared.registry.count() > 0 && Instant::now() < end {
        sleep_until((Instant::now() + LOOK_EVERY).min(end)).await;
    }
    match shared.registry.count() {
        0 => log::info!("all connections have ended"),
        rest => log::warn!("{rest} connections are cut off"),
    }
}

fn check(config: &Config) -> Result<(), StartError> {
    if config.listeners.is_empty() {
        return Err(StartError::NoListener);
    }
    if config.clients.allow.is_empty() {
        return Err(StartError::NobodyAllowed);
    }
    let cannot_ask = |way: WayIn| way.is_transparent() || way == WayIn::Convert;
    let mut ways = config.listeners.iter().map(|listener| listener.way);
    if config.clients.users.is_some()
        && let Some(way) = ways.find(|way| cannot_ask(*way))
    {
        return Err(StartError::UsersCannotBeAsked(way.name()));
    }
    if let Some(name) = &config.congestion {
        try_congestion(name)
            .map_err(|cause| StartError::Congestion { name: name.clone(), cause })?;
    }
    if let Some(upstream) = &config.upstream {
        if leads_back(&config.listeners, upstream.address) {
            return Err(StartError::UpstreamIsThis(upstream.address));
        }
        if upstream.user.is_some() && upstream.way == crate::config::WayOut::Convert {
            return Err(StartError::UpstreamTakesNoUser);
        }
    }
    Ok(())
}
