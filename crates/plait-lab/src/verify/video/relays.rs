//! video.2: what the proxy carries on links without a limit, beside HAProxy and Squid in the same
//! run; ten thousand idle connections; new connections per second.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use plait_net::rights::raise_open_files;
use plait_toml::proxy::{ProxyFile, Upstream, WayIn};

use super::super::{Effort, Figure};
use crate::measure::{Transport, median};
use crate::output::Progress;
use crate::process::{self, Service, wait_until};
use crate::proxy::{ByteServer, ProxyProcess, Route};
use crate::scratch::Scratch;
use crate::topology::{PROVIDER_V4, VethTopology, link_v4};

const SOURCE: &str = "video.2";
const LIMIT: Duration = Duration::from_secs(10);
const NEAR_PORT: u16 = 3200;
const FAR_PORT: u16 = 3300;
const IDLE: usize = 10_000;
/// Threads that open connections at the same time.
const OPENERS: usize = 4;

/// What relays a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relay {
    Plait,
    HaProxy,
    /// One CONNECT proxy.
    Squid,
    PlaitAlone,
}

/// Two relays, or one, in turn by TCP and by MPTCP on the way between the namespaces.
const RUNS: [(Relay, Transport); 6] = [
    (Relay::Plait, Transport::Tcp),
    (Relay::HaProxy, Transport::Tcp),
    (Relay::Plait, Transport::Mptcp),
    (Relay::HaProxy, Transport::Mptcp),
    (Relay::PlaitAlone, Transport::Mptcp),
    (Relay::Squid, Transport::Mptcp),
];

impl Relay {
    fn told(self, by: Transport) -> String {
        let who = match self {
            Self::Plait => "two plait proxies",
            Self::HaProxy => "two HAProxy relays",
            Self::PlaitAlone => "one plait proxy",
            Self::Squid => "one Squid proxy",
        };
        let how = if by == Transport::Mptcp { "MPTCP" } else { "TCP" };
        format!("{who}, {how}")
    }
}

/// Programs that relay, and how a client comes to them.
struct Running {
    plait: Vec<ProxyProcess>,
    others: Vec<Service>,
    route: Route,
    /// Where a client that speaks to its relay as to the server connects to.
    entry: Option<SocketAddr>,
}

impl Running {
    fn cpu_time(&self) -> Result<Duration> {
        let mut sum = Duration::ZERO;
        for proxy in &self.plait {
            sum += proxy.cpu_time()?;
        }
        for service in &self.others {
            sum += cpu_of_all(service.pid())?;
        }
        Ok(sum)
    }
}

/// Processor time of a process and its children: Squid and HAProxy start workers.
fn cpu_of_all(pid: u32) -> Result<Duration> {
    let mut sum = process::cpu_time(&pid.to_string())?;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    for child in children.unwrap_or_default().split_whitespace() {
        sum += cpu_of_all(child.parse()?)?;
    }
    Ok(sum)
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let rounds = 2 * effort.runs() + 1;
    let mut progress = Progress::new(rounds * RUNS.len() + 2, Duration::from_secs(600));
    let mut rates: [(Vec<u64>, Vec<f64>); RUNS.len()] = Default::default();
    for _ in 0..rounds {
        for ((relay, by), (rate, cost)) in RUNS.iter().zip(&mut rates) {
            let _step = progress.step(&relay.told(*by), Duration::from_secs(15));
            let bytes = bytes_by(*by, effort);
            let (bps, cpu) = carry(*relay, *by, bytes).with_context(|| relay.told(*by))?;
            rate.push(bps);
            cost.push(cpu.as_secs_f64() * 1e9 / (bytes as f64 * 8.0));
        }
    }
    let mut figures = carried(&rates);
    figures.extend({
        let _step = progress.step("idle connections", Duration::from_secs(20));
        idle()?
    });
    let _step = progress.step("new connections", Duration::from_secs(10));
    figures.extend(fresh(effort)?);
    Ok(figures)
}

/// A proxy that sends by the system's congestion control, as its peers do.
fn proxy_file(listeners: &[(SocketAddr, WayIn)]) -> ProxyFile {
    let mut file = super::proxy_file(listeners);
    file.proxy.congestion = None;
    file
}

/// What takes some seconds: the kernel's MPTCP is a tenth as fast as its TCP.
fn bytes_by(by: Transport, effort: Effort) -> u64 {
    match by {
        Transport::Tcp if !effort.is_quick() => 6_000_000_000,
        _ => 2_000_000_000,
    }
}

fn carried(rates: &[(Vec<u64>, Vec<f64>)]) -> Vec<Figure> {
    let middle = |at: usize| median(rates[at].0.clone());
    let mut figures = Vec::new();
    for ((relay, by), (rate, cost)) in RUNS.iter().zip(rates) {
        let told = relay.told(*by);
        figures.push(Figure::mbit(format!("{told}: throughput"), median(rate.clone())));
        let mut cost = cost.clone();
        cost.sort_by(f64::total_cmp);
        let cost = cost[cost.len() / 2];
        figures.push(Figure::number(format!("{told}: processor per gigabit"), cost, "s"));
    }
    for (ours, theirs, name) in
        [(0, 1, "two HAProxy relays, TCP"), (2, 3, "two HAProxy relays, MPTCP"), (4, 5, "Squid")]
    {
        let share = middle(ours) as f64 / middle(theirs) as f64;
        let figure =
            Figure::number(format!("plait's throughput to that of {name}"), share, "ratio");
        figures.push(figure.at_least(0.8, SOURCE));
    }
    figures
}

/// Carries bytes once; rate and processor time of the relays.
fn carry(relay: Relay, by: Transport, bytes: u64) -> Result<(u64, Duration)> {
    let topology = VethTopology::build()?;
    for netns in [&topology.customer, &topology.provider] {
        netns.set_sysctl("net.mptcp.enabled", "1")?;
    }
    let scratch = Scratch::in_memory("relays")?;
    let server = ByteServer::start(&topology.provider, PROVIDER_V4.into(), Transport::Tcp)?;
    let running = start(relay, by, &topology, scratch.path(), server.address)?;
    let client = &topology.customer;
    let entry = running.entry.unwrap_or(server.address);
    let own = if running.plait.len() == 1 || relay == Relay::Squid { by } else { Transport::Tcp };
    // A relay's first connection is not measured: plait's learns with it that the server has no
    // MPTCP.
    running.route.fetch_unchecked(client, own, entry, 1)?;
    let before = running.cpu_time()?;
    let came = running.route.fetch_unchecked(client, own, entry, bytes)?;
    Ok((came.rate_bps(), running.cpu_time()? - before))
}

fn start(
    relay: Relay,
    by: Transport,
    topology: &VethTopology,
    folder: &Path,
    server: SocketAddr,
) -> Result<Running> {
    let near = SocketAddr::from((link_v4(1, 1), NEAR_PORT));
    let far = SocketAddr::from((PROVIDER_V4, FAR_PORT));
    let [customer, provider] = [&topology.customer, &topology.provider];
    let running = |plait, others, route, entry| Ok(Running { plait, others, route, entry });
    match relay {
        Relay::Plait => {
            let mptcp = by == Transport::Mptcp;
            let mut file = proxy_file(&[(far, WayIn::Convert)]);
            file.listeners[0].mptcp = Some(mptcp);
            file.proxy.mptcp = mptcp;
            let last = ProxyProcess::start(provider, folder, "far", &file)?;
            let upstream = Some(Upstream { address: far, mptcp, ..Upstream::default() });
            let mut file = ProxyFile { upstream, ..proxy_file(&[(near, WayIn::Http)]) };
            file.listeners[0].mptcp = Some(mptcp);
            let first = ProxyProcess::start(customer, folder, "near", &file)?;
            running(vec![first, last], vec![], Route::Connect(near), None)
        }
        Relay::PlaitAlone => {
            let file = proxy_file(&[(far, WayIn::Http)]);
            let one = ProxyProcess::start(provider, folder, "far", &file)?;
            running(vec![one], vec![], Route::Connect(far), None)
        }
        Relay::HaProxy => {
            let last = haproxy(provider, folder, by, (far, server))?;
            let first = haproxy(customer, folder, by, (near, far))?;
            running(vec![], vec![first, last], Route::Direct, Some(near))
        }
        Relay::Squid => {
            let one = squid(provider, folder, far)?;
            running(vec![], vec![one], Route::Connect(far), None)
        }
    }
}

/// A program, under `mptcpize` when it is to speak MPTCP.
fn peer(netns: &NetNs, by: Transport, program: &str) -> Command {
    match by {
        Transport::Tcp => netns.command(program),
        Transport::Mptcp => {
            let mut command = netns.command("mptcpize");
            command.args(["run", program]);
            command
        }
    }
}

fn haproxy(
    netns: &NetNs,
    folder: &Path,
    by: Transport,
    (listen, to): (SocketAddr, SocketAddr),
) -> Result<Service> {
    let config = folder.join(format!("haproxy-{}.cfg", listen.port()));
    let text = format!(
        "global\n maxconn 4000\n nbthread 2\ndefaults\n mode tcp\n option splice-auto\n timeout \
         connect 5s\n timeout client 1m\n timeout server 1m\nlisten relay\n bind {listen}\n server \
         next {to}\n"
    );
    fs::write(&config, text)?;
    let mut command = peer(netns, by, "haproxy");
    // In the foreground, and without complaints about descriptors.
    command.args(["-db", "-q", "-f"]).arg(&config);
    let service = Service::start(&mut command, &folder.join("haproxy.log"));
    wait_for(netns, service.context(PEERS)?, listen, "HAProxy")
}

/// Squid becomes another user, who must be able to write its log; so it needs root outside of a
/// user namespace.
fn squid(netns: &NetNs, folder: &Path, listen: SocketAddr) -> Result<Service> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777))?;
    let config = folder.join("squid.conf");
    let text = format!(
        "http_port {listen}\nhttp_access allow all\ncache deny all\nmemory_cache_shared off\n\
         access_log none\ncache_log {}/squid.log\npid_filename none\ncoredump_dir none\n\
         shutdown_lifetime 1 seconds\n",
        folder.display()
    );
    fs::write(&config, text)?;
    let mut command = peer(netns, Transport::Mptcp, "squid");
    // Its shared memory bears this name.
    command.args(["-N", "-n", SQUID, "-f"]).arg(&config);
    let service = Service::start(&mut command, &folder.join("squid.out"));
    wait_for(netns, service.context(PEERS)?, listen, "Squid")
}

const SQUID: &str = "plaitlab";

impl Drop for Running {
    fn drop(&mut self) {
        for service in &mut self.others {
            // Dropping it ends it in any case.
            let _ = service.stop(LIMIT);
        }
        let left = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        for file in left.filter(|file| file.file_name().to_string_lossy().starts_with(SQUID)) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// How to get what is measured beside.
const PEERS: &str = "what it is measured beside comes with scripts/setup --peers";

fn wait_for(netns: &NetNs, mut service: Service, at: SocketAddr, name: &str) -> Result<Service> {
    wait_until(name, LIMIT, || {
        if !service.runs() {
            bail!("{name} ended at once; {PEERS}");
        }
        Ok(netns.run_in(|| TcpStream::connect(at))?.ok().map(|_| ()))
    })?;
    Ok(service)
}

/// Memory with many connections of which nothing is heard.
fn idle() -> Result<Vec<Figure>> {
    // Each connection has an end here, and its server's end is here as well.
    let files = raise_open_files(3 * IDLE as u64)?;
    let count = IDLE.min(usize::try_from(files / 2)? - 200);
    let topology = VethTopology::build()?;
    let scratch = Scratch::in_memory("idle")?;
    let server = Silent::start(&topology.provider)?;
    let proxy = one_proxy(&topology, scratch.path())?;
    let far = SocketAddr::from((PROVIDER_V4, FAR_PORT));
    let mut open = Vec::with_capacity(count);
    let question = Route::Connect(far).question(server.address);
    for index in 0..count {
        // A client address has only so many ports.
        let stream = connect_from(&topology.customer, index, far)?;
        let mut stream = stream;
        std::io::Write::write_all(&mut stream, &question)?;
        Route::Connect(far).read_answer(&mut stream)?;
        open.push(stream);
    }
    let memory = proxy.peak_memory_mib()? * 1.048_576;
    drop(open);
    let limit = format!("{count}; a process may open {files} files here, and needs 2 for each");
    // Where the limit is below what 10,000 need, memory is that of as many as fit, scaled up.
    let scaled = memory * IDLE as f64 / count as f64;
    Ok(vec![
        Figure::text("idle connections", if count < IDLE { limit } else { count.to_string() }),
        Figure::number("memory with them", memory, "MB"),
        Figure::number("memory with 10,000", scaled, "MB").at_most(200.0, SOURCE),
    ])
}

fn one_proxy(topology: &VethTopology, folder: &Path) -> Result<ProxyProcess> {
    let far = SocketAddr::from((PROVIDER_V4, FAR_PORT));
    let mut file = proxy_file(&[(far, WayIn::Http)]);
    file.proxy.connections_max = 40_000;
    file.proxy.connections_per_client_max = 40_000;
    ProxyProcess::start(&topology.provider, folder, "far", &file)
}

fn connect_from(netns: &NetNs, index: usize, to: SocketAddr) -> Result<TcpStream> {
    let socket = Transport::Tcp.open(netns)?;
    let link = if index.is_multiple_of(2) { 1 } else { 2 };
    socket.bind(&SocketAddr::from((link_v4(link, 1), 0)).into())?;
    socket.connect_timeout(&to.into(), LIMIT)?;
    socket.set_read_timeout(Some(LIMIT))?;
    Ok(socket.into())
}

/// A server that accepts, keeps what it accepts, and says nothing.
struct Silent {
    address: SocketAddr,
    _kept: std::sync::mpsc::Receiver<TcpStream>,
}

impl Silent {
    fn start(netns: &NetNs) -> Result<Self> {
        let socket = Transport::Tcp.open(netns)?;
        socket.bind(&SocketAddr::new(IpAddr::V4(PROVIDER_V4), 0).into())?;
        socket.listen(4096)?;
        let address = socket.local_addr()?.as_socket().context("an address of IP")?;
        let (keep, kept) = std::sync::mpsc::channel();
        let listener = std::net::TcpListener::from(socket);
        std::thread::Builder::new().name("silent".into()).spawn(move || {
            // Ends with the receiver, at the next connection or with the program.
            for stream in listener.incoming().flatten() {
                if keep.send(stream).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { address, _kept: kept })
    }
}

/// How many connections, each with a request and a short answer, are made in a second.
fn fresh(effort: Effort) -> Result<Vec<Figure>> {
    let topology = VethTopology::build()?;
    for netns in [&topology.customer, &topology.provider] {
        // Between two addresses there are 28,000 ports, each of which rests for a minute.
        netns.set_sysctl("net.ipv4.ip_local_port_range", "1024 65535")?;
        netns.set_sysctl("net.ipv4.tcp_tw_reuse", "1")?;
    }
    let scratch = Scratch::in_memory("fresh")?;
    let server = ByteServer::start(&topology.provider, PROVIDER_V4.into(), Transport::Tcp)?;
    let proxy = one_proxy(&topology, scratch.path())?;
    let far = SocketAddr::from((PROVIDER_V4, FAR_PORT));
    let time = Duration::from_secs(u64::from(effort.seconds()) / 2);
    let count = |route: Route| -> Result<f64> {
        let begun = Instant::now();
        let counts = std::thread::scope(|scope| {
            let opener = || -> Result<u64> {
                let mut count = 0;
                while begun.elapsed() < time {
                    route.fetch_unchecked(&topology.customer, Transport::Tcp, server.address, 1)?;
                    count += 1;
                }
                Ok(count)
            };
            let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(opener)).collect();
            let join = |opener: std::thread::ScopedJoinHandle<'_, Result<u64>>| {
                opener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            openers.into_iter().map(join).collect::<Result<Vec<u64>>>()
        })?;
        Ok(counts.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
    };
    let direct = count(Route::Direct)?;
    let by_proxy = count(Route::Connect(far))?;
    drop(proxy);
    Ok(vec![
        Figure::number("new connections without a proxy", direct, "/s"),
        Figure::number("new connections through the proxy", by_proxy, "/s")
            .at_least(2000.0, SOURCE),
    ])
}
