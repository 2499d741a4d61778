//! One run: gateways, links, load and faults in one event loop, under the checkers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use plait_pair::{CUSTOMER, PROVIDER, datagrams, public_key};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::scheduler::Algorithm;
use plait_proto::stats::{PathState, PathStatus, PeerStatus};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::Kind;
use plait_proto::wire::ecn::Ecn;

use super::check::{self, Chatter, Ledger, TimerWatch, Violation, violation};
use super::draw::Draw;
use super::fault::Action;
use super::gateway;
use super::intruder::{self, Intruder};
use super::load::{Flow, FlowPlan};
use super::plan::SwarmPlan;
use super::wire::{Datagram, Wires};

/// Receives a log of events, line by line.
pub type Trace<'a> = &'a mut dyn FnMut(Instant, fmt::Arguments<'_>);

/// How often gateways are asked for their status.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Side {
    /// `None` while it is dead.
    endpoint: Option<Endpoint>,
    due: Option<Instant>,
    wall_offset_s: i64,
    timer: TimerWatch,
    chatter: Chatter,
    paths: usize,
}

/// A run under way.
pub(super) struct SwarmRun<'p, 't> {
    plan: &'p SwarmPlan,
    pub(super) now: Instant,
    sides: [Side; 2],
    pub(super) wires: Wires,
    flows: Vec<Flow>,
    /// Indexed by the sending side.
    pub(super) ledgers: [Ledger; 2],
    next_action: usize,
    /// Links that the customer does not have now.
    unplugged: Vec<usize>,
    tick_at: Instant,
    intruder: Option<Intruder>,
    draw: Draw,
    trace: Option<Trace<'t>>,
    lengths: Vec<u64>,
    /// Datagrams that left both gateways.
    pub(super) datagrams: u64,
    /// A digest of the run: two runs of one seed have the same.
    pub(super) digest: u64,
}

impl<'p, 't> SwarmRun<'p, 't> {
    pub(super) fn new(plan: &'p SwarmPlan, trace: Option<Trace<'t>>) -> Self {
        let mut draw = Draw::new(plan.seed ^ 0x436f_7572_7365_0001);
        let wires = Wires::new(&plan.links, plan.cipher, Draw::new(draw.next()));
        let flows: Vec<Flow> =
            plan.flows.iter().map(|flow| Flow::new(flow.clone(), draw.next())).collect();
        // Two more flows come after the healing.
        let ledgers = [CUSTOMER, PROVIDER]
            .map(|side| Ledger::new(side, flows.len() + 2, &plan.bonds, draw.next()));
        let sides = [CUSTOMER, PROVIDER].map(|side| Side {
            endpoint: Some(gateway::endpoint(plan, side, Instant::ZERO, 0, &mut draw)),
            due: Some(Instant::ZERO),
            wall_offset_s: 0,
            timer: TimerWatch::default(),
            chatter: Chatter::default(),
            paths: plan.links.len(),
        });
        let victim = public_key(PROVIDER);
        let intruder = plan.hostile.then(|| {
            let draw = Draw::new(plan.seed ^ 0x496e_7472_7564_6572);
            Intruder::new(victim, plan.cipher, draw)
        });
        Self {
            plan,
            now: Instant::ZERO,
            sides,
            wires,
            flows,
            ledgers,
            next_action: 0,
            unplugged: Vec::new(),
            tick_at: Instant::ZERO + TICK,
            intruder,
            draw,
            trace,
            lengths: Vec::new(),
            datagrams: 0,
            digest: 0,
        }
    }

    fn tell(&mut self, what: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace(self.now, what);
        }
    }

    /// Runs all events up to and including `end`.
    pub(super) fn run_until(&mut self, end: Instant) -> Result<(), Violation> {
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step()?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    fn next_event(&self) -> Option<Instant> {
        let action = self.plan.actions.get(self.next_action).map(|(at, _)| *at);
        let sides = self.sides.iter().filter_map(|side| side.due);
        let flows = self.flows.iter().filter_map(Flow::next_at);
        let intruder = self.intruder.as_ref().map(Intruder::next_at);
        let others = action.into_iter().chain(self.wires.next_event()).chain([self.tick_at]);
        let others = others.chain(intruder);
        sides.chain(flows).chain(others).min()
    }

    /// Handles one kind of due event.
    fn step(&mut self) -> Result<(), Violation> {
        let now = self.now;
        if let Some((_, action)) =
            self.plan.actions.get(self.next_action).filter(|(at, _)| *at <= now)
        {
            self.next_action += 1;
            return self.act(action);
        }
        if self.tick_at <= now {
            self.tick_at = now + TICK;
            return self.tick();
        }
        for side in [CUSTOMER, PROVIDER] {
            if self.sides[side].due.is_some_and(|due| due <= now) {
                return self.handle_timeout(side);
            }
        }
        for at in 0..self.flows.len() {
            if self.flows[at].next_at().is_some_and(|due| due <= now) {
                return self.send_burst(at);
            }
        }
        if self.intruder.as_ref().is_some_and(|intruder| intruder.next_at() <= now) {
            return self.intrude();
        }
        let mut touched = [false; 2];
        while let Some(datagram) = self.wires.poll(now) {
            // Up is to the provider.
            let to = 1 - datagram.way;
            self.arrive(to, datagram);
            touched[to] = true;
        }
        for side in [CUSTOMER, PROVIDER] {
            if touched[side] {
                self.drain(side)?;
            }
        }
        Ok(())
    }

    fn arrive(&mut self, to: usize, mut datagram: Datagram) {
        let side = &mut self.sides[to];
        if let Some(endpoint) = &mut side.endpoint {
            side.timer.input();
            let kind = datagram.bytes.first().and_then(|first| Kind::of(*first));
            side.chatter.data_in += u64::from(kind == Some(Kind::Data));
            let route = gateway::route(to, datagram.link, datagram.bindings);
            let stride = datagram.bytes.len();
            endpoint.handle_datagrams(self.now, route, Ecn::NotEct, stride, &mut datagram.bytes);
        }
        self.wires.reuse(datagram.bytes);
    }

    /// The hostile peer's datagrams arrive at the provider.
    fn intrude(&mut self) -> Result<(), Violation> {
        let Some(intruder) = &mut self.intruder else { return Ok(()) };
        let arriving = intruder.poll(self.now);
        let side = &mut self.sides[PROVIDER];
        if let Some(endpoint) = &mut side.endpoint {
            for (route, mut made) in arriving {
                side.timer.input();
                let stride = made.bytes.len();
                let (now, bytes) = (self.now, &mut made.bytes);
                endpoint.handle_datagrams(now, route, made.ecn, stride, bytes);
            }
        }
        self.drain(PROVIDER)
    }

    fn handle_timeout(&mut self, at: usize) -> Result<(), Violation> {
        let now = self.now;
        let side = &mut self.sides[at];
        let Some(endpoint) = &mut side.endpoint else {
            side.due = None;
            return Ok(());
        };
        if endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
            endpoint.handle_timeout(now);
            side.timer.called(now)?;
        }
        self.drain(at)
    }

    fn send_burst(&mut self, at: usize) -> Result<(), Violation> {
        let from = self.flows[at].from();
        let mut lengths = core::mem::take(&mut self.lengths);
        lengths.clear();
        self.flows[at].burst(self.now, &mut lengths);
        for bytes in &lengths {
            let is_load = at < self.plan.flows.len();
            if is_load && self.sent_packets() >= self.plan.packets_max {
                break;
            }
            let packet = self.ledgers[from].send(self.now, at, *bytes);
            let side = &mut self.sides[from];
            if let Some(endpoint) = &mut side.endpoint {
                side.timer.input();
                side.chatter.taken += 1;
                endpoint.handle_packet(self.now, packet);
            }
        }
        self.lengths = lengths;
        self.drain(from)
    }

    pub(super) fn sent_packets(&self) -> u64 {
        self.ledgers.iter().map(|ledger| ledger.sent_packets).sum()
    }

    /// Takes all output of a gateway after input.
    fn drain(&mut self, at: usize) -> Result<(), Violation> {
        let now = self.now;
        let Some(endpoint) = &mut self.sides[at].endpoint else { return Ok(()) };
        while let Some(transmit) = endpoint.poll_transmit() {
            if let Some(intruder) = &mut self.intruder
                && intruder::is_address(transmit.remote)
            {
                datagrams(&transmit).for_each(|bytes| intruder.hear(now, bytes));
                continue;
            }
            let (link, bindings) = match at {
                CUSTOMER => {
                    let link = usize::from(transmit.socket.0);
                    (link, self.wires.bindings(link))
                }
                _ => binding_of(transmit.remote),
            };
            for bytes in datagrams(&transmit) {
                self.sides[at].chatter.out += 1;
                self.datagrams += 1;
                self.wires.send(now, (link, at), bindings, bytes);
            }
        }
        while let Some(packet) = endpoint.poll_deliver() {
            if self.intruder.is_some() && at == PROVIDER && intruder::is_source(packet) {
                continue;
            }
            if self.ledgers[at].is_told_too_big(packet) {
                continue;
            }
            self.ledgers[1 - at].delivered(now, packet)?;
            let mark = now.as_nanos() ^ packet.len() as u64 ^ (at as u64) << 63;
            self.digest = (self.digest ^ mark).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
        }
        while let Some(event) = endpoint.poll_event() {
            if let Some(trace) = &mut self.trace {
                trace(now, format_args!("side {at}: {}", describe(&event)));
            }
        }
        self.sides[at].due = endpoint.poll_timeout(now);
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), Violation> {
        let now = self.now;
        self.tell(format_args!("{action:?}"));
        match *action {
            Action::Cut { link, way } => self.wires.cut(now, link, way),
            Action::Join { link, way } => self.wires.join(now, link, way),
            Action::Change { link, way, config } => self.wires.change(now, (link, way), config),
            Action::Rebind { link } => self.wires.rebind(link),
            Action::WallClock { side, seconds } => self.sides[side].wall_offset_s += seconds,
            Action::Kill { side } => self.sides[side].endpoint = None,
            Action::Start { side } => return self.start(side),
            Action::Unplug { link } => {
                for way in 0..2 {
                    self.wires.cut(now, link, way);
                }
                self.unplugged.push(link);
                if let Some(endpoint) = &mut self.sides[CUSTOMER].endpoint {
                    gateway::unplug(endpoint, now, link);
                }
                return self.drain(CUSTOMER);
            }
            Action::Plug { link } => return self.plug(link),
        }
        Ok(())
    }

    fn plug(&mut self, link: usize) -> Result<(), Violation> {
        self.unplugged.retain(|other| *other != link);
        for way in 0..2 {
            self.wires.join(self.now, link, way);
        }
        if let Some(endpoint) = &mut self.sides[CUSTOMER].endpoint {
            gateway::plug(endpoint, self.now, link, &self.plan.links[link]);
        }
        self.drain(CUSTOMER)
    }

    fn start(&mut self, at: usize) -> Result<(), Violation> {
        let elapsed_s = i64::try_from(self.now.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
        let side = &mut self.sides[at];
        let wall_s = elapsed_s + side.wall_offset_s;
        let endpoint = gateway::endpoint(self.plan, at, self.now, wall_s, &mut self.draw);
        side.endpoint = Some(endpoint);
        side.timer = TimerWatch::default();
        self.drain(at)
    }

    fn tick(&mut self) -> Result<(), Violation> {
        for at in [CUSTOMER, PROVIDER] {
            let Some(status) = self.status(at) else { continue };
            let bond = &self.plan.bonds[at];
            check::check_status(self.now, &status, bond, self.plan.links.len())?;
            let side = &mut self.sides[at];
            // Paths may have come and gone since.
            let paths = side.paths.max(status.paths.len());
            side.paths = status.paths.len().max(self.plan.links.len());
            let is_redundant = bond.scheduler.algorithm == Algorithm::Redundant;
            let copies = match &bond.congestion {
                // Lost packets are sent four times at most, interactive ones twice each time.
                Some(_) => {
                    if is_redundant {
                        paths as u64 * 4
                    } else {
                        8
                    }
                }
                None => {
                    if is_redundant {
                        paths as u64 + 1
                    } else {
                        3
                    }
                }
            };
            let waiting = status.backlog.map_or(0, |backlog| backlog.packets);
            side.chatter.close(self.now, paths, copies, waiting)?;
            if let Some(trace) = &mut self.trace {
                let drops = side.endpoint.as_ref().map_or_else(String::new, drops);
                trace(self.now, format_args!("side {at}: {}{drops}", summarize(&status)));
            }
        }
        Ok(())
    }

    /// A gateway's status of the bond; `None` while it is dead.
    pub(super) fn status(&mut self, at: usize) -> Option<PeerStatus> {
        let endpoint = self.sides[at].endpoint.as_mut()?;
        Some(gateway::status(endpoint, self.now))
    }

    /// Ends every fault: links carry everything, dead gateways start; then a little traffic goes
    /// both ways.
    pub(super) fn heal(&mut self) -> Result<(), Violation> {
        self.tell(format_args!("everything heals"));
        self.next_action = self.plan.actions.len();
        self.wires.heal(self.now);
        for link in core::mem::take(&mut self.unplugged) {
            self.plug(link)?;
        }
        for side in [CUSTOMER, PROVIDER] {
            if self.sides[side].endpoint.is_none() {
                self.start(side)?;
            }
            let plan = FlowPlan {
                from: side,
                bytes: (100, 100),
                burst_max: 1,
                gap: Duration::from_millis(50),
                span: (self.now, Instant::FAR_FUTURE),
                pause_max: Duration::ZERO,
            };
            let seed = self.draw.next();
            self.flows.push(Flow::new(plan, seed));
        }
        Ok(())
    }

    /// Ends the traffic.
    pub(super) fn hush(&mut self) {
        self.flows.clear();
    }

    /// The links over which a gateway has no path that is up; all while it has no bond. A path to
    /// an address that the customer no longer has may still be reported as up although everything
    /// sent over it is lost, whatever the gateways do: it does not count.
    pub(super) fn links_missing(&mut self, at: usize) -> Vec<String> {
        let paths = self.status(at).map(|status| status.paths).unwrap_or_default();
        let is_up = |link: usize| {
            let name = format!("link{link}");
            // A provider that seeks the customer describes its own end of the first link.
            let is_named = |known: &str| known == name || (link == 0 && known == "wan");
            let address = gateway::customer_address(link, self.wires.bindings(link)).to_string();
            let carries = |path: &PathStatus| match path.state {
                PathState::Up => at == CUSTOMER || path.remote == address,
                state => state == PathState::Asleep,
            };
            paths.iter().any(|path| is_named(&path.name) && carries(path))
        };
        let missing = (0..self.plan.links.len()).filter(|link| !is_up(*link));
        missing.map(|link| format!("link{link}")).collect()
    }

    /// Packets that a gateway's resequencer has dropped because they came too late.
    pub(super) fn late_dropped(&mut self, at: usize) -> u64 {
        self.status(at).map_or(0, |status| status.resequencer.late_dropped)
    }

    /// Packets that wait at the gateways for a path with room.
    pub(super) fn backlog_packets(&mut self) -> u64 {
        let backlogs =
            [CUSTOMER, PROVIDER].map(|side| self.status(side).and_then(|status| status.backlog));
        backlogs.into_iter().flatten().map(|backlog| backlog.packets).sum()
    }

    /// Traffic both ways that was sent after `since` has arrived.
    pub(super) fn flows_since(&self, since: Instant) -> bool {
        self.ledgers.iter().all(|ledger| ledger.delivered_sent_at.is_some_and(|at| at >= since))
    }

    pub(super) fn fail<T>(&self, what: String) -> Result<T, Violation> {
        violation(self.now, "recovery", what)
    }
}

/// The link and binding of a customer's address.
fn binding_of(remote: SocketAddr) -> (usize, u16) {
    match remote.ip() {
        IpAddr::V4(ip) => (usize::from(ip.octets()[1]), remote.port() - 1000),
        IpAddr::V6(_) => unreachable!("the customer's addresses are IPv4"),
    }
}

fn describe(event: &Event) -> String {
    match event {
        Event::BondUp(_) => "bond up".to_owned(),
        Event::BondDown(_) => "bond down".to_owned(),
        Event::BondStuck(_) => "bond stuck".to_owned(),
        Event::PathUp(_, id) => format!("path {} up", id.0),
        Event::PathSilent(_, id) => format!("path {} silent", id.0),
        Event::PathLossy(_, id) => format!("path {} lossy", id.0),
        Event::PathClosed(_, id) => format!("path {} closed by the peer", id.0),
        Event::PathMoved(_, id, remote) => format!("path {} follows to {remote}", id.0),
        Event::InnerMtu(_, bytes) => format!("inner MTU {bytes}"),
    }
}

/// A gateway in a line.
/// What a gateway dropped since it started, by reason.
fn drops(endpoint: &Endpoint) -> String {
    let counts = DropReason::ALL.iter().map(|reason| (reason, endpoint.drop_count(*reason)));
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(reason, count)| format!(", {count} {}", reason.name())).collect()
}

fn summarize(status: &PeerStatus) -> String {
    let paths: Vec<String> = status
        .paths
        .iter()
        .map(|path| {
            let rtt_ms = path.srtt_us.unwrap_or(0) / 1000;
            format!("{} {} ({}) {rtt_ms} ms", path.id, path.name, path.state.name())
        })
        .collect();
    let (sent, out) = (status.inner_sent_packets, status.inner_delivered_packets);
    format!("{}, {sent} in, {out} out: {}", status.state, paths.join(", "))
}
