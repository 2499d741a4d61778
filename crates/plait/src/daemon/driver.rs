//! The loop of a running gateway: waits for sockets, TUN device, timers and requests, and leaves
//! the rest to the [pump](super::pump). One thread runs it all.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use plait_net::clock::Clock;
use plait_net::netlink::Monitor;
use plait_net::tun::Tun;
use plait_net::udp::{UdpPort as _, UdpSocket};
use plait_proto::config::{LinkConfig, SocketId};
use plait_proto::session::PublicKey;
use plait_proto::stats::EndpointStatus;
use plait_proto::time::Instant;
use plait_toml::hook::HookEvent;

use super::dns::Resolver;
use super::gather::Gathering;
use super::hooks::News;
use super::host::refresh_generator;
use super::links::{Change, Links};
use super::operations::Operations;
use super::ports::SocketStatus;
use super::pump::Pump;
use super::reach::{Reach, ResolvedName};
use super::reload::Reload;
use super::requests::{Request, Requests, Snapshot};
use super::runtime::Wanted;
use super::service::Service;
use crate::advice::Advised;
use crate::config::{Config, Peer};
use crate::control::message::Told;

const WAKER: Token = Token(usize::MAX);
const TUN: Token = Token(usize::MAX - 1);
const MONITOR: Token = Token(usize::MAX - 2);
const LAN: Token = Token(usize::MAX - 3);

/// Number of the socket for peers that call; those of more ports have the next ones.
pub(super) const LISTENING: SocketId = SocketId(0);
/// Interface changes come in bursts; only the state after the last one matters.
const NEWS_PAUSE: Duration = Duration::from_millis(10);
/// A socket that could not be opened is tried again after this.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The parts of its host that a gateway follows and changes.
pub(super) struct Host {
    pub(super) links: Links,
    pub(super) monitor: Monitor,
    pub(super) operations: Operations,
    pub(super) reach: Reach,
    pub(super) service: Service,
}

/// A running gateway.
pub(super) struct Driver {
    pump: Pump<Tun, UdpSocket>,
    host: Host,
    clock: Clock,
    poll: Poll,
    requests: Receiver<Request>,
    gathering: Gathering,
    tun_ready: bool,
    /// Sockets that may have more to read.
    sockets_ready: Vec<bool>,
    /// When to look at the interfaces.
    look_at: Option<Instant>,
    /// Whether LANs' hosts are listened to.
    hears_lan: bool,
}

impl Driver {
    /// Registers everything; the waker is for the senders of requests.
    pub(super) fn new(
        pump: Pump<Tun, UdpSocket>,
        clock: Clock,
        requests: Receiver<Request>,
        host: Host,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let waker = Waker::new(registry, WAKER)?;
        registry.register(&mut SourceFd(&pump.tun.as_raw_fd()), TUN, Interest::READABLE)?;
        registry.register(&mut SourceFd(&host.monitor.as_raw_fd()), MONITOR, Interest::READABLE)?;
        for (id, socket) in pump.sockets.iter() {
            let mut source = SourceFd(&socket.as_raw_fd());
            registry.register(&mut source, Token(usize::from(id.0)), Interest::READABLE)?;
        }
        let sockets_ready = vec![true; pump.sockets.len()];
        let driver = Self {
            pump,
            host,
            clock,
            poll,
            requests,
            gathering: Gathering::default(),
            tun_ready: true,
            sockets_ready,
            look_at: None,
            hears_lan: false,
        };
        Ok((driver, waker))
    }

    /// Starts the threads that look for peers, and the one that tells the host's resolver.
    pub(super) fn start_threads(&mut self, requests: Requests) -> anyhow::Result<()> {
        self.host.operations.beside.start(requests.clone());
        self.host.reach.start(requests)?;
        self.host.operations.start_resolver()
    }

    /// Runs until asked to stop, beginning with these links.
    pub(super) fn run(&mut self, first_links: Vec<Change>) -> io::Result<()> {
        let clock = self.clock;
        let now = move || Instant::ZERO + clock.elapsed();
        let mut events = Events::with_capacity(64);
        self.host.operations.outage.runs();
        self.pump.endpoint.start(now());
        self.carry_out(now(), first_links)?;
        self.listen_to_lan()?;
        loop {
            self.wait(&mut events, now())?;
            self.look_at_interfaces(now())?;
            if self.answer_requests(now())? {
                break;
            }
            self.gather_status(now());
            for at in 0..self.sockets_ready.len() {
                if self.sockets_ready[at] {
                    self.sockets_ready[at] = self.pump.read_socket(SocketId(at as u16), now);
                }
            }
            if self.tun_ready {
                self.tun_ready = self.pump.read_tun(now)?;
            }
            self.run_due(now())?;
            refresh_generator(&mut self.pump.endpoint);
        }
        self.host.service.end();
        let Pump { endpoint, traffic, .. } = &mut self.pump;
        self.host.operations.finish(now(), endpoint, traffic, &self.host.links);
        self.pump.endpoint.close(now());
        self.pump.flush(now());
        Ok(())
    }

    fn run_due(&mut self, now: Instant) -> io::Result<()> {
        if self.pump.endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
            self.pump.endpoint.handle_timeout(now);
            self.pump.flush(now);
        }
        let Host { links, operations, reach, service, .. } = &mut self.host;
        if service.due_at().is_some_and(|due| due <= now) {
            service.run_due(now, &self.pump.carrying, operations.peers().len());
        }
        if std::mem::take(&mut self.pump.lost_contact) {
            reach.wake(now);
        }
        if std::mem::take(&mut self.pump.has_news) {
            operations.wake(now);
            operations.beside.wake(now);
        }
        if reach.due_at().is_some_and(|due| due <= now) {
            reach.run_due(now, &self.pump.endpoint, &self.pump.errors);
        }
        if operations.due_at() <= now {
            let Pump { endpoint, traffic, .. } = &mut self.pump;
            operations.run_due(now, endpoint, traffic, links);
            let leaves = operations.leave_due(now);
            self.pump.flush(now);
            if leaves {
                self.follow_peers(now, true)?;
            }
        }
        for news in self.host.operations.take_news() {
            self.pump.hooks.tell(&news);
        }
        Ok(())
    }

    /// Sleeps until something is to be read or a timer is due; not at all while a port may have
    /// more.
    fn wait(&mut self, events: &mut Events, now: Instant) -> io::Result<()> {
        let gathers = self.gathering.is_under_way();
        let timeout = if gathers || self.tun_ready || self.sockets_ready.contains(&true) {
            Some(Duration::ZERO)
        } else {
            let operations = Some(self.host.operations.due_at());
            let protocol = self.pump.endpoint.poll_timeout(now);
            let Host { reach, service, .. } = &self.host;
            let host = [operations, reach.due_at(), service.due_at()];
            let timers = [protocol, self.look_at].into_iter().chain(host);
            timers.flatten().min().map(|due| due.since(now))
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                TUN => self.tun_ready = true,
                LAN => self.host.operations.lan.has_heard(),
                MONITOR => {
                    if self.host.monitor.drain()? {
                        let soon = now + NEWS_PAUSE;
                        self.look_at = Some(self.look_at.map_or(soon, |at| at.min(soon)));
                    }
                }
                Token(at) => self.sockets_ready[at] = true,
            }
        }
        Ok(())
    }

    /// Finds which links came and went, if it is time to.
    fn look_at_interfaces(&mut self, now: Instant) -> io::Result<()> {
        if self.look_at.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.look_at = None;
        // The look that follows covers changes until now.
        self.host.monitor.drain()?;
        match self.host.links.refresh() {
            Ok(changes) => self.carry_out(now, changes)?,
            Err(error) => {
                log::warn!("{error:#}: tried again");
                self.look_at = Some(now + RETRY_PAUSE);
            }
        }
        Ok(())
    }

    /// Opens and closes links as the link manager decided.
    fn carry_out(&mut self, now: Instant, changes: Vec<Change>) -> io::Result<()> {
        for change in changes {
            match change {
                Change::Add(socket, link) => self.add_socket(now, *socket, link)?,
                Change::Remove(id) => self.remove_socket(now, id)?,
                Change::Moved(id) => self.pump.endpoint.probe_link(now, id),
                Change::Update(link) => self.pump.endpoint.update_link(now, link),
            }
        }
        let Host { links, operations, .. } = &mut self.host;
        if links.wants_retry() {
            self.look_at.get_or_insert(now + RETRY_PAUSE);
        }
        let Pump { endpoint, traffic, .. } = &mut self.pump;
        operations.follow_links(now, endpoint, traffic, links);
        self.pump.flush(now);
        Ok(())
    }

    fn add_socket(&mut self, now: Instant, socket: UdpSocket, link: LinkConfig) -> io::Result<()> {
        let at = usize::from(link.socket.0);
        let mut source = SourceFd(&socket.as_raw_fd());
        self.poll.registry().register(&mut source, Token(at), Interest::READABLE)?;
        self.pump.sockets.insert(link.socket, socket);
        self.pump.errors.open(link.socket, &link.name);
        self.host.reach.link_came(now);
        if at >= self.sockets_ready.len() {
            self.sockets_ready.resize(at + 1, false);
        }
        self.sockets_ready[at] = true;
        self.pump.endpoint.add_link(now, link);
        Ok(())
    }

    fn remove_socket(&mut self, now: Instant, id: SocketId) -> io::Result<()> {
        let links = self.pump.endpoint.links();
        if let Some(link) = links.iter().find(|link| link.socket == id) {
            let reason = self.host.operations.why_gone(&link.name);
            let (peer, path) = (None, Some(link.name.clone()));
            let news = News { event: HookEvent::PathDown, peer, path, reason: Some(reason) };
            self.pump.hooks.tell(&news);
        }
        self.pump.endpoint.remove_link(now, id);
        // Datagrams for this socket must not leave through the next one with its number.
        self.pump.flush(now);
        self.pump.traffic.close(id);
        if let Some(socket) = self.pump.sockets.remove(id) {
            self.sockets_ready[usize::from(id.0)] = false;
            self.poll.registry().deregister(&mut SourceFd(&socket.as_raw_fd()))?;
        }
        Ok(())
    }

    /// Applies another configuration.
    fn reload(&mut self, now: Instant, config: Config) -> io::Result<()> {
        let Host { links, operations, reach, .. } = &mut self.host;
        let peers = reach.follow(now, &config);
        self.pump.hooks.follow(&config.hooks);
        operations.reload(now, &mut self.pump.endpoint, links, Reload { config, peers });
        self.listen_to_lan()?;
        self.follow_peers(now, true)
    }

    /// Listens to LANs' hosts, once there is a socket for them.
    fn listen_to_lan(&mut self) -> io::Result<()> {
        let socket = self.host.operations.lan.socket().filter(|_| !self.hears_lan);
        if let Some(socket) = socket {
            let registry = self.poll.registry();
            registry.register(&mut SourceFd(&socket), LAN, Interest::READABLE)?;
            self.hears_lan = true;
        }
        Ok(())
    }

    /// Records the addresses of a name.
    fn note_name(&mut self, now: Instant, answer: ResolvedName) -> io::Result<()> {
        let Host { operations, reach, .. } = &mut self.host;
        reach.names.note(answer);
        reach.wake(now);
        operations.follow_names(now, &mut self.pump.endpoint, &reach.names);
        self.follow_peers(now, false)
    }

    /// Links need addresses of the same families as the peers'. `paths_changed` says that the links
    /// may have other quotas.
    fn follow_peers(&mut self, now: Instant, paths_changed: bool) -> io::Result<()> {
        let Host { links, operations, .. } = &mut self.host;
        let endpoints = operations.peers().iter().flat_map(|peer| &peer.endpoints);
        let differs = links.reconfigure(operations.paths(), endpoints);
        self.pump.flush(now);
        if differs {
            self.look_at = Some(now);
            return self.look_at_interfaces(now);
        }
        if paths_changed { self.carry_out(now, Vec::new()) } else { Ok(()) }
    }

    /// Changes what a request asks for.
    fn change(&mut self, now: Instant, wanted: Wanted) -> io::Result<Result<Told, Advised>> {
        let Host { links, operations, .. } = &mut self.host;
        let endpoint = &mut self.pump.endpoint;
        Ok(match wanted {
            Wanted::ListPeers => Ok(Told::Peers(operations.list_peers(endpoint))),
            Wanted::ListPaths => Ok(Told::Paths(operations.list_paths(links))),
            Wanted::File => {
                let (file, fingerprint) = operations.file();
                told_file(file, fingerprint)
            }
            Wanted::FileSaved(fingerprint) => {
                operations.note_saved(fingerprint);
                Ok(Told::Changed { warnings: Vec::new() })
            }
            Wanted::AddPeers(peers) => self.add_peers(now, peers)?,
            Wanted::RemovePeer(key) => self.remove_peer(now, &key)?,
            Wanted::ChangePath(name, change) => {
                match operations.change_path(now, endpoint, links, &name, change) {
                    Ok(warnings) => {
                        self.follow_peers(now, true)?;
                        Ok(Told::Changed { warnings })
                    }
                    Err(refused) => Err(refused.into()),
                }
            }
        })
    }

    fn add_peers(&mut self, now: Instant, peers: Vec<Peer>) -> io::Result<Result<Told, Advised>> {
        let Host { links, operations, reach, .. } = &mut self.host;
        let first = operations.peers().len();
        let added = operations.add_peers(now, &mut self.pump.endpoint, reach, peers);
        let warnings = match added {
            Ok(warnings) => warnings,
            Err(refused) => return Ok(Err(refused.into())),
        };
        let endpoints = operations.peers()[first..].iter().flat_map(|peer| &peer.endpoints);
        let differs = links.widen(endpoints);
        self.pump.flush(now);
        if differs {
            self.look_at = Some(now);
            self.look_at_interfaces(now)?;
        }
        Ok(Ok(Told::Changed { warnings }))
    }

    fn remove_peer(&mut self, now: Instant, key: &PublicKey) -> io::Result<Result<Told, Advised>> {
        let Host { operations, reach, .. } = &mut self.host;
        match operations.remove_peer(now, &mut self.pump.endpoint, key) {
            Ok(peer) => {
                reach.peer_went(key);
                self.pump.flush(now);
                if !peer.endpoints.is_empty() {
                    self.follow_peers(now, false)?;
                }
                Ok(Ok(Told::Changed { warnings: Vec::new() }))
            }
            Err(refused) => Ok(Err(refused.into())),
        }
    }

    /// Goes on with the status that was asked for, if any.
    fn gather_status(&mut self, now: Instant) {
        let gathered = self.gathering.step(now, &self.clock, &mut self.pump.endpoint);
        if let Some(status) = gathered {
            let snapshot = self.snapshot(now, status);
            self.gathering.answer(snapshot);
        }
    }

    fn snapshot(&self, now: Instant, status: EndpointStatus) -> Snapshot {
        let Pump { endpoint, sockets, errors, tun, hooks, .. } = &self.pump;
        let Host { links, operations, reach, .. } = &self.host;
        let socket_of = |id: SocketId| {
            let counters = sockets.get(id)?.counters();
            Some(errors.status(now, id, counters))
        };
        let is_links = |id| links.sockets().any(|(socket, _)| socket == id);
        Snapshot {
            uptime_s: self.clock.elapsed().as_secs(),
            contacts: reach.status(now, endpoint, errors),
            links: links.status(socket_of),
            listening: sockets
                .iter()
                .filter(|(id, _)| !is_links(*id))
                .filter_map(|(id, _)| socket_of(id))
                .reduce(SocketStatus::plus),
            quotas: operations.quotas(),
            outage: operations.outage.status(now),
            lans: operations.lan.status(),
            dns: operations.resolver.as_ref().and_then(Resolver::status),
            beside: operations.beside.status(),
            device: tun.counters().into(),
            hooks: hooks.status(),
            endpoint: status,
        }
    }

    /// Answers requests; says whether the gateway is to stop.
    fn answer_requests(&mut self, now: Instant) -> io::Result<bool> {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Stop => return Ok(true),
                Request::Leave => {
                    self.host.operations.leave_for_successor();
                    return Ok(true);
                }
                Request::Reload(config) => self.reload(now, *config)?,
                Request::Change(wanted, reply) => {
                    let _ = reply.send(self.change(now, *wanted)?);
                }
                Request::Resolved(answer) => self.note_name(now, answer)?,
                Request::Domains(answer) => self.host.operations.beside.note(now, answer),
                Request::Pin(path, flow, reply) => {
                    let _ = reply.send(self.pump.endpoint.pin_flow(now, flow, path));
                    self.pump.flush(now);
                }
                Request::Unpin(flow) => self.pump.endpoint.unpin_flow(&flow),
                Request::Status(reply) => self.gathering.ask(reply),
            }
        }
        Ok(false)
    }
}

fn told_file(file: &Path, fingerprint: &str) -> Result<Told, Advised> {
    // The folder that the gateway was started in may be out of reach by now.
    let path = std::path::absolute(file).map_err(|cause| {
        let help = "start it with its file's whole path, or leave out --save";
        Advised::new(format!("where {} is cannot be told", file.display()), help).caused_by(cause)
    })?;
    let path = path.to_string_lossy().into_owned();
    Ok(Told::File { path, fingerprint: fingerprint.to_owned() })
}
