//! A scenario in real time: its network, its gateways and its applications.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use plait_proto::dida::DidaStats;
use plait_proto::stats::{EndpointStatus, PeerStatus};
use plait_proto::time::Instant;
use plait_sim::app::{self, Observation, Tally};
use plait_sim::packet::End;
use plait_sim::prng::Prng;
use plait_sim::run::Testbed;
use plait_sim::scenario::app::{Direction, TcpKind, Traffic, Via};
use plait_sim::scenario::{Scenario, event};
use plait_sim::world::{LinkView, Way, measured_span};

use super::events::Events;
use super::health::{Health, lost_by_kernel};
use super::plan::kernel_controller;
use super::player::silence;
use super::site::{Site, customer_address};
use super::tcp::{Load, TcpApp, TcpPlan};
use super::udp::{UdpApp, sockets};
use super::video::VideoApp;
use crate::emulator::{Emulator, Lateness};
use crate::gateway::{Bond, Gateway};
use crate::machine::CpuTime;
use crate::qoe::Opened;
use crate::quic::{QuicApp, QuicPlan};
use crate::steering::PlacedNode;

/// Time from the creation of the applications to the start of the scenario.
const LEAD: Duration = Duration::from_millis(100);
/// Longest sleep: how often health is checked.
const SLEEP_MAX: Duration = Duration::from_millis(10);
/// How long a gateway may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Control sockets of the customer's gateway and of the provider's, named after their devices.
const CONTROL_SOCKETS: [&str; 2] = ["/run/plait/plait0.sock", "/run/plait/plait1.sock"];

#[derive(Debug)]
enum RunningApp {
    Udp(UdpApp),
    Tcp(TcpApp),
    Quic(QuicApp),
    Video(VideoApp),
}

/// Real processes between the hosts.
#[derive(Debug)]
pub(super) struct Carriers<'a> {
    pub(super) bond: Option<Bond<'a>>,
    pub(super) node: Option<PlacedNode<'a>>,
    /// Gateways that an event has killed.
    pub(super) killed: Vec<event::Gateway>,
    /// Whether one was started again: until it listens it gives no status.
    pub(super) restarted: bool,
}

impl Carriers<'_> {
    fn ensure_run(&mut self) -> Result<()> {
        if self.killed.is_empty() {
            self.bond.as_mut().map_or(Ok(()), Bond::ensure_both_run)?;
        }
        self.node.as_mut().map_or(Ok(()), PlacedNode::ensure_runs)
    }

    fn gateway(&mut self, gateway: event::Gateway) -> Option<&mut Gateway> {
        let bond = self.bond.as_mut()?;
        Some(match gateway {
            event::Gateway::Customer => &mut bond.customer,
            event::Gateway::Provider => &mut bond.provider,
        })
    }

    /// Ends a gateway's process, so that it cannot clean up.
    pub(super) fn kill(&mut self, gateway: event::Gateway) -> Result<()> {
        if self.killed.contains(&gateway) {
            return Ok(());
        }
        self.killed.push(gateway);
        self.gateway(gateway).map_or(Ok(()), Gateway::kill)
    }

    /// Starts a gateway again; a running one is killed first.
    pub(super) fn restart(&mut self, gateway: event::Gateway, netns: &NetNs) -> Result<()> {
        self.kill(gateway)?;
        self.killed.retain(|killed| *killed != gateway);
        self.restarted = true;
        self.gateway(gateway).map_or(Ok(()), |gateway| gateway.restart(netns))
    }

    /// Makes a gateway read its configuration again.
    pub(super) fn reload(&mut self, gateway: event::Gateway) -> Result<()> {
        if self.killed.contains(&gateway) {
            return Ok(());
        }
        self.gateway(gateway).map_or(Ok(()), |gateway| gateway.reload())
    }

    /// Ends them; they must end by themselves.
    fn stop(&mut self) -> Result<()> {
        if self.killed.is_empty() {
            self.bond.as_mut().map_or(Ok(()), Bond::stop)?;
        }
        self.node.as_mut().map_or(Ok(()), PlacedNode::stop)
    }
}

/// A running scenario.
#[derive(Debug)]
pub(super) struct NetnsTestbed<'a> {
    scenario: &'a Scenario,
    // Drop order: applications end before the gateways, and gateways before the links.
    apps: Vec<RunningApp>,
    carriers: Carriers<'a>,
    site: &'a Site,
    zero: Instant,
    events: Events,
    /// How much this thread overslept.
    oversleeping: Lateness,
    lost_before: u64,
    cpu_before: CpuTime,
    /// Why a gateway or the node gave no status.
    silence: Option<anyhow::Error>,
}

impl<'a> NetnsTestbed<'a> {
    /// Starts the scenario on a network, over a bond or a steering node that is up; a player has
    /// its page.
    pub(super) fn start(
        scenario: &'a Scenario,
        site: &'a Site,
        carriers: Carriers<'a>,
        page: Option<Opened>,
        prng: &mut Prng,
    ) -> Result<Self> {
        let zero = site.epoch.now() + LEAD;
        let zero = Instant::ZERO + zero.since(Instant::ZERO + silence(scenario));
        let lost_before = lost_by_kernel(site)?;
        site.begin(scenario, zero)?;
        let mut testbed = Self {
            scenario,
            apps: Vec::new(),
            carriers,
            site,
            zero,
            events: Events::new(scenario, zero),
            oversleeping: Lateness::default(),
            lost_before,
            cpu_before: CpuTime::now(),
            silence: None,
        };
        let mut page = page;
        for at in 0..scenario.apps.len() {
            let app = testbed.start_app(at, prng.next_u64(), &mut page)?;
            testbed.apps.push(app);
        }
        Ok(testbed)
    }

    fn start_app(&self, at: usize, seed: u64, page: &mut Option<Opened>) -> Result<RunningApp> {
        let spec = &self.scenario.apps[at];
        let span = measured_span(self.scenario, self.zero);
        let (ends, epoch) = (self.site.ends(self.scenario, spec), self.site.epoch);
        let (start, stop) = (self.zero + spec.start, self.zero + spec.stop);
        let kernel_tcp = |load, tcp: &TcpKind| -> Result<RunningApp> {
            let controller = kernel_controller(spec, tcp)?;
            let lines = |name: &String| (customer_address(self.scenario, name), name.clone());
            let multipath = (spec.via == Via::Mptcp)
                .then(|| self.scenario.links.keys().map(lines).collect::<Vec<_>>());
            let plan = TcpPlan { load, controller, start, stop, span, multipath };
            Ok(RunningApp::Tcp(TcpApp::start(plan, at, ends, epoch)?))
        };
        match &spec.traffic {
            Traffic::Tcp(tcp) if tcp.tcp.is_quic() => {
                let plan = QuicPlan { spec: tcp.clone(), start, stop, span };
                Ok(RunningApp::Quic(QuicApp::start(plan, sockets(at, ends)?, epoch)?))
            }
            Traffic::Tcp(tcp) => kernel_tcp(Load::Bulk(tcp.clone()), &tcp.tcp),
            Traffic::Web(web) => kernel_tcp(Load::Pages { spec: web.clone(), seed }, &web.tcp),
            Traffic::Video(_) => {
                let page = page.take().context("a player has a page")?;
                Ok(RunningApp::Video(VideoApp::start(page, (start, span), epoch)))
            }
            Traffic::Udp(_) | Traffic::OnOff(_) | Traffic::Voip(_) => {
                let app = app::build(self.scenario, at, self.zero, span, seed)?;
                let to = match spec.direction {
                    Direction::Down => End::Customer,
                    Direction::Up => End::Server,
                };
                Ok(RunningApp::Udp(UdpApp::start(app, (at, spec.dscp), to, ends, epoch)?))
            }
        }
    }

    /// Observations of the machine.
    pub(super) fn health(&self) -> Result<Health> {
        let mut health = Health {
            ordinary: self.oversleeping.clone(),
            lost_packets: lost_by_kernel(self.site)?.saturating_sub(self.lost_before),
            cpu_stolen: self.cpu_before.stolen_until(CpuTime::now()),
            ..Health::default()
        };
        for emulator in self.site.emulators() {
            let report = emulator.report();
            health.links.add(&report.lateness);
            health.lost_packets += report.refused_packets;
        }
        let any = |is: fn(&event::Action) -> bool| {
            self.scenario.events.iter().any(|event| is(&event.action))
        };
        let kills = any(|action| matches!(action, event::Action::Kill(_)));
        if kills || any(|action| matches!(action, event::Action::Unplug(_))) {
            // A device that vanishes loses its queue.
            health.lost_packets = 0;
        }
        for app in &self.apps {
            if let RunningApp::Udp(udp) = app {
                health.senders.add(&udp.lag());
                // Without a gateway there is no device to take them.
                health.lost_packets += if kills { 0 } else { udp.refused_packets() };
            }
        }
        Ok(health)
    }

    /// The applications whose timeouts are not counted: TCP on old kernels, and QUIC.
    pub(super) fn apps_without_timeouts(&self) -> impl Iterator<Item = &str> {
        let apps = self.scenario.apps.iter().zip(&self.apps);
        apps.filter_map(|(spec, app)| match app {
            RunningApp::Tcp(tcp) if tcp.tells_timeouts() => None,
            RunningApp::Tcp(_) | RunningApp::Quic(_) | RunningApp::Video(_) => {
                Some(spec.name.as_str())
            }
            RunningApp::Udp(_) => None,
        })
    }

    /// Ends the applications, and the gateways or the node, which must end by themselves.
    pub(super) fn stop(mut self) -> Result<()> {
        self.apps.clear();
        self.carriers.stop()
    }

    /// Whether nothing is left to wait for: every application plays a clip, and has played it.
    fn is_over(&self) -> bool {
        let is_done = |app: &RunningApp| matches!(app, RunningApp::Video(it) if it.is_done());
        !self.apps.is_empty() && self.apps.iter().all(is_done)
    }

    fn look(&mut self) -> Result<()> {
        if let Some(silence) = self.silence.take() {
            return Err(silence);
        }
        for (spec, app) in self.scenario.apps.iter().zip(&self.apps) {
            let failure = match app {
                RunningApp::Udp(udp) => udp.failure(),
                RunningApp::Tcp(tcp) => tcp.failure(),
                RunningApp::Quic(quic) => quic.failure(),
                RunningApp::Video(video) => video.failure(),
            };
            if let Some(failure) = failure {
                bail!("app.{}: {failure}", spec.name);
            }
        }
        if let Some(failure) = self.site.emulators().find_map(Emulator::failure) {
            bail!(failure);
        }
        self.carriers.ensure_run()
    }
}

impl Testbed for NetnsTestbed<'_> {
    type Error = anyhow::Error;

    fn zero(&self) -> Instant {
        self.zero
    }

    fn run_until(&mut self, end: Instant) -> Result<()> {
        loop {
            let now = self.site.epoch.now();
            if now >= end || self.is_over() {
                break;
            }
            if self.events.next().is_some_and(|due| due <= now) {
                self.events.happen(now, self.scenario, self.site, &mut self.carriers)?;
                // This thread started and stopped programs meanwhile: it did not sleep.
                continue;
            }
            let due = self.events.next().map_or(end, |due| due.min(end));
            let wait = due.since(now).min(SLEEP_MAX);
            std::thread::sleep(wait);
            self.oversleeping.record(self.site.epoch.now().since(now + wait));
        }
        let is_last = end > self.zero + self.scenario.duration;
        for app in &self.apps {
            match app {
                RunningApp::Tcp(tcp) => tcp.sample(),
                RunningApp::Video(video) if is_last => video.wait(),
                _ => {}
            }
        }
        self.look()
    }

    fn tally(&self, app: usize) -> Cow<'_, Tally> {
        Cow::Owned(match &self.apps[app] {
            RunningApp::Udp(udp) => udp.tally(),
            RunningApp::Tcp(tcp) => tcp.tally(),
            RunningApp::Quic(quic) => quic.tally(),
            RunningApp::Video(video) => video.tally(),
        })
    }

    fn observe(&self, app: usize) -> Observation {
        match &self.apps[app] {
            RunningApp::Udp(udp) => udp.observe(),
            RunningApp::Tcp(tcp) => tcp.observe(),
            RunningApp::Quic(quic) => quic.observe(),
            RunningApp::Video(video) => video.observe(),
        }
    }

    fn tells_arrivals(&self, app: usize) -> bool {
        matches!(self.apps[app], RunningApp::Udp(_))
    }

    fn link(&self, link: usize, way: Way) -> LinkView {
        let spec = self.scenario.links.values().nth(link);
        let spec = spec.expect("links are counted in the scenario's order");
        let spec = if way == Way::Down { &spec.down } else { &spec.up };
        let view = self.site.observe(link, way);
        LinkView {
            carried: view.carried,
            counters: view.counters,
            queue_bytes: view.waiting_bytes,
            mean_rate: spec.mean_rate(),
            air: None,
        }
        .behind(view.air)
    }

    fn dida(&mut self) -> Option<DidaStats> {
        let node = self.carriers.node.as_mut()?;
        match node.status() {
            Ok(status) => status.node.dida,
            Err(error) => {
                self.silence = Some(error.context("the steering node does not tell its state"));
                None
            }
        }
    }

    fn bond_sender(&mut self, way: Way) -> Option<PeerStatus> {
        self.carriers.bond.as_ref()?;
        if !self.carriers.killed.is_empty() {
            return None;
        }
        let socket = CONTROL_SOCKETS[usize::from(way == Way::Down)];
        match ask(socket) {
            Ok(status) => Some(status),
            Err(_) if self.carriers.restarted => None,
            Err(error) => {
                self.silence = Some(error.context("a gateway does not tell its state"));
                None
            }
        }
    }
}

/// Asks a gateway over its control socket, as `plait status` does.
fn ask(socket: &str) -> Result<PeerStatus> {
    let mut stream = UnixStream::connect(socket).with_context(|| socket.to_owned())?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.write_all(b"status\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status: EndpointStatus = serde_json::from_str(&answer)
        .with_context(|| format!("unknown form of status: {answer}"))?;
    status.peers.into_iter().next().context("the gateway has no peer")
}
