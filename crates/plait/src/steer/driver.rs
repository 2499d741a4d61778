//! The loop of a running steering node: waits for the TUN device, answers to probes, timers,
//! interface changes and requests. One thread runs it all.

use std::io;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::Context as _;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use plait_net::clock::Clock;
use plait_net::netlink::Monitor;
use plait_net::tun::{Tun, TunPort as _};
use plait_proto::time::Instant;

use super::config::SteerConfig;
use super::host::Host;
use super::probes::Probes;
use super::pump::Pump;
use super::reload;
use super::requests::{KIND, Report, Request};
use super::ways::{RoutingPlan, Way};

const WAKER: Token = Token(0);
const TUN: Token = Token(1);
const MONITOR: Token = Token(2);
const PROBES: Token = Token(3);

/// Interface changes come in bursts; only the state after the last one matters.
const NEWS_PAUSE: Duration = Duration::from_millis(10);
/// A route that could not be set is tried again after this.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How long packets may still come out of the device once the rules that lead to it are gone.
const DRAIN_PAUSE: Duration = Duration::from_millis(5);
/// How often the device is checked for such packets.
const DRAINS: usize = 3;

/// A running node.
pub(super) struct Driver {
    pub(super) config: SteerConfig,
    pub(super) pump: Pump<Tun>,
    pub(super) host: Host,
    pub(super) probes: Probes,
    pub(super) monitor: Monitor,
    pub(super) clock: Clock,
    pub(super) ways: Vec<Way>,
    poll: Poll,
    requests: Receiver<Request>,
    tun_ready: bool,
    probes_ready: bool,
    /// When to look at the interfaces.
    look_at: Option<Instant>,
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) config: SteerConfig,
    pub(super) pump: Pump<Tun>,
    pub(super) host: Host,
    pub(super) probes: Probes,
    pub(super) monitor: Monitor,
    pub(super) clock: Clock,
}

impl Driver {
    /// Registers everything; the waker is for the senders of requests.
    pub(super) fn new(parts: Parts, requests: Receiver<Request>) -> io::Result<(Self, Waker)> {
        use std::os::fd::AsRawFd as _;
        let Parts { config, pump, host, probes, monitor, clock } = parts;
        let poll = Poll::new()?;
        let registry = poll.registry();
        let waker = Waker::new(registry, WAKER)?;
        registry.register(&mut SourceFd(&pump.tun.as_raw_fd()), TUN, Interest::READABLE)?;
        registry.register(&mut SourceFd(&monitor.as_raw_fd()), MONITOR, Interest::READABLE)?;
        for fd in probes.fds() {
            registry.register(&mut SourceFd(&fd), PROBES, Interest::READABLE)?;
        }
        let (ways, tun_ready, probes_ready, look_at) = (Vec::new(), true, false, None);
        let driver = Self {
            config,
            pump,
            host,
            probes,
            monitor,
            clock,
            ways,
            poll,
            requests,
            tun_ready,
            probes_ready,
            look_at,
        };
        Ok((driver, waker))
    }

    /// Runs until asked to stop.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        let clock = self.clock;
        let now = move || Instant::ZERO + clock.elapsed();
        let mut events = Events::with_capacity(16);
        let plan = self.look(now())?;
        self.host.lead_in(&plan)?;
        loop {
            self.send_probes();
            self.wait(&mut events, now())?;
            if self.look_at.is_some_and(|at| at <= now()) {
                self.look(now())?;
            }
            if self.answer_requests(now())? {
                break;
            }
            if std::mem::take(&mut self.probes_ready) {
                self.take_answers(now());
            }
            if self.tun_ready {
                self.tun_ready = self.pump.read(now).context("cannot read the TUN device")?;
            }
            let now = now();
            if self.pump.node.poll_timeout().is_some_and(|due| due <= now) {
                self.pump.node.handle_timeout(now);
                self.pump.flush();
            }
        }
        self.finish(now)
    }

    /// Routes the clients' packets past the node, forwards those in flight, and holds none back.
    fn finish(&mut self, now: impl Fn() -> Instant) -> anyhow::Result<()> {
        self.host.lead_past()?;
        for _ in 0..DRAINS {
            while self.pump.read(&now)? {}
            self.pump.node.release_all();
            self.pump.flush();
            std::thread::sleep(DRAIN_PAUSE);
        }
        self.pump.tun.flush()?;
        Ok(())
    }

    fn send_probes(&mut self) {
        while let Some(probe) = self.pump.node.poll_probe() {
            self.probes.send(probe);
        }
    }

    /// Only an answer from the primary address shows that the client has its rule.
    fn take_answers(&mut self, now: Instant) {
        for answer in self.probes.receive() {
            let id = answer.attachment;
            let Some(client) = self.config.clients.get(usize::from(id.client)) else { continue };
            let by_rule = client.address.iter().any(|primary| primary == answer.source);
            let before = usize::from(id.client);
            let before = &self.config.clients[..before];
            let at = before.iter().map(|one| one.attachments.len()).sum::<usize>();
            let Some(way) = self.ways.get_mut(at + usize::from(id.attachment)) else { continue };
            if by_rule {
                self.pump.node.handle_probe_reply(now, id, answer.number);
            } else if !way.rule_missing {
                log::warn!(
                    "{}, attachment {}: the client answers from {}: it lacks its rule (`plait \
                     steer --client-rules`); nothing is sent there",
                    way.client,
                    way.attachment,
                    answer.source
                );
            }
            way.rule_missing = !by_rule;
        }
    }

    /// Sleeps until something is to be read or a timer is due; not at all while the device may have
    /// more.
    fn wait(&mut self, events: &mut Events, now: Instant) -> io::Result<()> {
        let timers = [self.pump.node.poll_timeout(), self.look_at];
        let timeout = match self.tun_ready {
            true => Some(Duration::ZERO),
            false => timers.into_iter().flatten().min().map(|due| due.since(now)),
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in events.iter() {
            match event.token() {
                TUN => self.tun_ready = true,
                PROBES => self.probes_ready = true,
                MONITOR if self.monitor.drain()? => {
                    let soon = now + NEWS_PAUSE;
                    self.look_at = Some(self.look_at.map_or(soon, |at| at.min(soon)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds which attachments can be reached and sets their routes.
    fn look(&mut self, now: Instant) -> anyhow::Result<RoutingPlan> {
        self.look_at = None;
        // The look that follows covers changes until now.
        self.monitor.drain()?;
        let plan = self.host.refresh(&self.config)?;
        let before = std::mem::take(&mut self.ways);
        for one in &plan.leading {
            let old = before.iter().find(|way| is_same(way, &one.way));
            tell(old, &one.way);
            let rule_missing = old.is_some_and(|old| old.rule_missing);
            self.ways.push(Way { rule_missing, ..one.way.clone() });
            self.pump.node.set_attachment_up(now, one.id, one.way.there);
        }
        if self.host.wants_retry() {
            self.look_at = Some(now + RETRY_PAUSE);
        }
        self.pump.flush();
        Ok(plan)
    }

    /// Answers requests; says whether the node is to stop.
    fn answer_requests(&mut self, now: Instant) -> anyhow::Result<bool> {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Stop => return Ok(true),
                Request::Reload(config) => self.reload(now, *config)?,
                Request::Status(reply) => {
                    // The client may have gone away.
                    let _ = reply.send(self.report(now));
                }
            }
        }
        Ok(false)
    }

    fn report(&self, now: Instant) -> Report {
        Report {
            kind: KIND.into(),
            tun: self.config.node.tun.clone(),
            uptime_s: self.clock.elapsed().as_secs(),
            node: self.pump.node.status(now),
            ways: self.ways.clone(),
            ignored_packets: self.pump.ignored_packets,
        }
    }

    /// Applies another configuration: clients and flows that remain in it go on.
    fn reload(&mut self, now: Instant, config: SteerConfig) -> anyhow::Result<()> {
        for change in reload::needs_restart(&self.config, &config) {
            log::warn!("{change} changed: a restart is needed for it to have an effect");
        }
        self.config = reload::keep_what_stays(&self.config, config);
        self.host.reconfigure(&self.config);
        self.probes.renumber();
        self.pump.reconfigure(now, self.config.node_config());
        let plan = self.look(now)?;
        self.host.lead_in(&plan)?;
        log::info!("{}: read again", self.config.file.display());
        Ok(())
    }
}

fn is_same(a: &Way, b: &Way) -> bool {
    (&a.client, &a.attachment) == (&b.client, &b.attachment)
}

fn tell(before: Option<&Way>, way: &Way) {
    let name = format!("{}, attachment {}", way.client, way.attachment);
    match (before.map(|before| before.there), way.there) {
        (None, true) => log::info!("{name}: reached {}", way.through),
        (Some(false), true) => log::info!("{name}: can be reached again"),
        (None | Some(true), false) => log::warn!("{name}: cannot be reached: {}", way.reason),
        _ => {}
    }
}
