//! The gateways and their network, changed by actions.

use core::time::Duration;

use plait_proto::config::SocketId;
use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::faults::Faults;
use plait_proto::path::Route;
use plait_proto::session::PublicKey;
use plait_proto::stats::PathState;
use plait_proto::time::Instant;
use plait_proto::wire::Kind;

use super::action::Action;
use super::gateway::{gateway, number, packet};
use super::network::{Flying, Network, PROVIDER_AT, Side};
use super::setup::Setup;

/// Packets that a bond has carried each way before the search begins: more than are sent while a
/// state heals, so that a number mistaken for an old one is noticed.
const HEAD_START_PACKETS: u32 = 16;
/// Packets that a host sends at once.
const BURST_PACKETS: u32 = 3;
/// Extra delay of a delayed datagram, or of a duplicate.
const LATE: Duration = Duration::from_millis(1500);
/// Longest step: under traffic, attempts are not farther apart.
const STEP: Duration = Duration::from_millis(1_100);
/// A round of watching: a packet each way.
const ROUND: Duration = Duration::from_secs(1);
/// From so many rounds after the end of the last fault on, everything arrives.
const HEALED_AFTER_ROUNDS: u32 = 10;
/// More events than can occur within the longest wait.
const EVENTS_MAX: u32 = 200_000;

/// What must not happen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// Packets do not arrive although no fault is left.
    #[error(
        "packets sent 10 s after the last fault do not arrive: {to_provider} of {rounds} arrived \
         at the provider, {to_customer} at the customer; {status}"
    )]
    Dead {
        /// Packets sent each way.
        rounds: u32,
        /// Packets that arrived at the provider.
        to_provider: u32,
        /// Packets that arrived at the customer.
        to_customer: u32,
        /// The gateways' status.
        status: String,
    },
    /// An end dropped nearly everything that arrived, so that a new bond was made.
    #[error("a bond was up and delivered next to nothing; {status}")]
    Stuck {
        /// The gateways' status.
        status: String,
    },
    /// A packet came out a second time.
    #[error("packet {number} came out twice at the {at}")]
    Twice {
        /// Its number.
        number: u32,
        /// Where.
        at: Side,
    },
}

/// Gateways and network after a sequence of actions.
#[derive(Debug)]
pub struct World {
    pub(super) setup: Setup,
    put_back: Faults,
    pub(super) now: Instant,
    /// Customer, provider, clone.
    pub(super) gateways: [Option<Endpoint>; 3],
    pub(super) network: Network,
    pub(super) faults: u32,
    processes: u8,
    sent: u32,
    /// Packets delivered at customer and provider, and at the clone for the customer.
    delivered: [Vec<u32>; 3],
    twice: Option<Violation>,
    pub(super) was_stuck: bool,
}

/// The state before an action that [can be undone](Action::can_be_undone).
#[derive(Debug)]
pub struct Saved {
    network: Network,
    faults: u32,
    processes: u8,
    /// The process that was replaced, if there was one.
    replaced: Option<(Side, Option<Endpoint>)>,
}

const SIDES: [Side; 3] = [Side::Customer, Side::Provider, Side::Clone];

impl World {
    /// The start of a setup.
    pub(super) fn new(setup: Setup, put_back: Faults) -> Self {
        let mut world = Self {
            setup,
            put_back,
            now: Instant::ZERO,
            gateways: [None, None, None],
            network: Network::default(),
            faults: 0,
            processes: 0,
            sent: 0,
            delivered: [Vec::new(), Vec::new(), Vec::new()],
            twice: None,
            was_stuck: false,
        };
        world.start(Side::Provider);
        world.start(Side::Customer);
        if setup.begins_up {
            world.run_for(Duration::from_millis(300));
            for side in [Side::Customer, Side::Provider] {
                world.send(side, HEAD_START_PACKETS);
            }
            world.run_for(Duration::from_millis(200));
            assert_eq!(world.delivered[0].len(), HEAD_START_PACKETS as usize, "the bond is up");
            world.forget_delivered();
        }
        world
    }

    /// How many faults there were.
    pub fn faults(&self) -> u32 {
        self.faults
    }

    /// The virtual time since the start.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// [Applies](Self::apply) an action that can be undone; gives what [`World::restore`] needs.
    ///
    /// # Panics
    ///
    /// When the action cannot be undone.
    pub fn apply_for_now(&mut self, action: Action) -> Saved {
        assert!(action.can_be_undone(), "{action} leaves nothing as it was");
        let (network, faults, processes) = (self.network.clone(), self.faults, self.processes);
        let before = self.change(action);
        Saved { network, faults, processes, replaced: action.replaces().map(|side| (side, before)) }
    }

    /// Undoes an action applied with [`World::apply_for_now`].
    pub fn restore(&mut self, saved: Saved) {
        let Saved { network, faults, processes, replaced } = saved;
        (self.network, self.faults, self.processes) = (network, faults, processes);
        if let Some((side, process)) = replaced {
            self.gateways[side as usize] = process;
        }
    }

    /// What can happen next while there may be `faults` more.
    pub fn enabled(&self, faults: u32) -> Vec<Action> {
        Action::all()
            .filter(|action| !action.is_fault() || faults > 0)
            .filter(|action| self.is_enabled(*action))
            .collect()
    }

    fn is_enabled(&self, action: Action) -> bool {
        let flies_to = |side| self.network.first(|flying| flying.to == side).is_some();
        let cut = self.network.cut;
        let clone_runs = self.gateways[Side::Clone as usize].is_some();
        match action {
            Action::Step => !self.network.flying.is_empty() || self.attempts_soon(),
            Action::Overtake => self.network.overtaking().is_some(),
            Action::Wait(_) | Action::Send(_) | Action::Restart(_) => true,
            Action::Drop(side) | Action::Duplicate(side) | Action::Delay(side) => flies_to(side),
            Action::Cut(side) => !cut[side as usize],
            Action::CutBoth => cut == [false; 2],
            Action::Mend => cut != [false; 2],
            Action::Move => self.setup.moves,
            Action::Clone => self.setup.has_clone && !clone_runs,
            Action::CloneGone | Action::CloneLeaves => clone_runs,
        }
    }

    /// Whether a side is about to initiate.
    fn attempts_soon(&self) -> bool {
        let due = |gateway: &Endpoint| gateway.shape(self.now).pop()?.next_attempt_in;
        self.gateways.iter().flatten().filter_map(due).any(|time| time <= STEP)
    }

    /// Performs an enabled action. Others have no effect.
    pub fn apply(&mut self, action: Action) {
        drop(self.change(action));
    }

    /// Performs an action; returns the process that it replaced.
    fn change(&mut self, action: Action) -> Option<Endpoint> {
        self.faults += u32::from(action.is_fault());
        match action {
            Action::Restart(side) => return self.restart(side),
            Action::Clone => return self.start(Side::Clone),
            Action::CloneGone => return self.gateways[Side::Clone as usize].take(),
            Action::Step => self.step(),
            Action::Overtake => {
                if let Some(place) = self.network.overtaking() {
                    self.arrive(place);
                }
            }
            Action::Wait(ms) => self.run_for(Action::wait(ms)),
            Action::Send(side) => self.send(side, BURST_PACKETS),
            Action::Drop(side) => self.with_next_to(side, |network, place| {
                network.flying.swap_remove(place);
            }),
            Action::Duplicate(side) => self.with_next_to(side, |network, place| {
                network.copy(place, LATE);
            }),
            Action::Delay(side) => self.with_next_to(side, |network, place| {
                network.flying[place].at += LATE;
            }),
            Action::Cut(side) => self.cut(|cut| cut[side as usize] = true),
            Action::CutBoth => self.cut(|cut| *cut = [true; 2]),
            Action::Mend => self.cut(|cut| *cut = [false; 2]),
            Action::Move => self.network.moved += 1,
            Action::CloneLeaves => {
                if let Some(clone) = &mut self.gateways[Side::Clone as usize] {
                    clone.close(self.now);
                }
                self.drain(Side::Clone);
                self.gateways[Side::Clone as usize] = None;
            }
        }
        None
    }

    fn with_next_to(&mut self, side: Side, change: impl FnOnce(&mut Network, usize)) {
        if let Some(place) = self.network.first(|flying| flying.to == side) {
            change(&mut self.network, place);
        }
    }

    fn cut(&mut self, change: impl FnOnce(&mut [bool; 2])) {
        change(&mut self.network.cut);
    }

    fn start(&mut self, side: Side) -> Option<Endpoint> {
        self.run(side, None)
    }

    /// The new process may know what the state file holds: its peers' addresses.
    fn restart(&mut self, side: Side) -> Option<Endpoint> {
        let routes = self.gateways[side as usize].as_ref().map(Endpoint::known_routes);
        self.run(side, routes.filter(|_| self.setup.remembers))
    }

    /// Starts a process; returns the one before.
    fn run(&mut self, side: Side, routes: Option<Vec<(PublicKey, Route)>>) -> Option<Endpoint> {
        self.processes += 1;
        let known = self.network.outside(Side::Customer, 0);
        let mut new = gateway(self.setup, self.put_back, side, self.processes, known);
        for (peer, route) in routes.into_iter().flatten() {
            new.remember(&peer, route);
        }
        new.start(self.now);
        let before = self.gateways[side as usize].replace(new);
        self.drain(side);
        before
    }

    fn send(&mut self, from: Side, count: u32) {
        for _ in 0..count {
            self.sent += 1;
            if let Some(gateway) = &mut self.gateways[from as usize] {
                gateway.handle_packet(self.now, &packet(from, self.sent));
            }
        }
        self.drain(from);
    }

    fn step(&mut self) {
        let end = self.now + STEP;
        while let Some(happened) = self.next_event(end) {
            if happened {
                return;
            }
        }
        self.now = end;
    }

    /// Lets time pass; several short calls equal one long one.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..EVENTS_MAX {
            if self.next_event(end).is_none() {
                self.now = end;
                return;
            }
        }
        panic!("time does not pass: a timer is due for ever at {:?}", self.now);
    }

    /// Handles the next event up to `end`; says whether it was the arrival of a milestone.
    fn next_event(&mut self, end: Instant) -> Option<bool> {
        let now = self.now;
        let due = |gateway: &Option<Endpoint>| gateway.as_ref()?.poll_timeout(now);
        let timers = [0, 1, 2].map(|at| due(&self.gateways[at]));
        let flying = self.network.next_at();
        let next = timers.into_iter().flatten().chain(flying).min()?;
        if next > end {
            return None;
        }
        self.now = self.now.max(next);
        if flying.is_some_and(|at| at <= self.now)
            && let Some(place) = self.network.first(|_| true)
        {
            return Some(self.arrive(place));
        }
        for side in SIDES {
            if timers[side as usize].is_some_and(|at| at <= self.now)
                && let Some(gateway) = &mut self.gateways[side as usize]
            {
                gateway.handle_timeout(self.now);
                self.drain(side);
            }
        }
        Some(false)
    }

    fn arrive(&mut self, place: usize) -> bool {
        let (flying, is_milestone) = self.network.take(place);
        let Flying { to, outside, link, ecn, mut bytes, .. } = flying;
        let (socket, remote) = match to {
            Side::Provider => (SocketId(0), outside),
            Side::Customer | Side::Clone => (SocketId(link as u16), PROVIDER_AT),
        };
        if let Some(gateway) = &mut self.gateways[to as usize] {
            let (route, stride) = (Route { socket, remote, local: None }, bytes.len());
            gateway.handle_datagrams(self.now, route, ecn, stride, &mut bytes);
            self.drain(to);
        }
        is_milestone
    }

    fn drain(&mut self, side: Side) {
        let links = self.setup.links;
        let Some(gateway) = &mut self.gateways[side as usize] else { return };
        while let Some(transmit) = gateway.poll_transmit() {
            let stride = transmit.segment_size.unwrap_or(transmit.contents.len());
            let (socket, remote) = (usize::from(transmit.socket.0), transmit.remote);
            for bytes in transmit.contents.chunks(stride.max(1)) {
                self.network.send(self.now, side, socket, remote, transmit.ecn, bytes, links);
            }
        }
        while let Some(packet) = gateway.poll_deliver() {
            let Some(number) = number(packet) else { continue };
            let delivered = &mut self.delivered[side as usize];
            if delivered.contains(&number) {
                self.twice = Some(Violation::Twice { number, at: side });
            }
            delivered.push(number);
        }
        while let Some(event) = gateway.poll_event() {
            self.was_stuck |= matches!(event, Event::BondStuck(_));
        }
    }

    fn forget_delivered(&mut self) {
        for delivered in &mut self.delivered {
            delivered.clear();
        }
    }

    /// Ends all faults, and checks that packets arrive both ways afterwards: those of two rounds in
    /// a row, within ten seconds. The world cannot be used after that.
    ///
    /// # Errors
    /// What must not happen.
    pub fn heal(&mut self) -> Result<(), Violation> {
        self.gateways[Side::Clone as usize] = None;
        self.network.cut = [false; 2];
        let mut good_rounds = 0;
        let mut arrived = [0; 2];
        for round in 0..=HEALED_AFTER_ROUNDS + 1 {
            self.send(Side::Customer, 1);
            let to_provider = self.sent;
            self.send(Side::Provider, 1);
            let to_customer = self.sent;
            self.run_for(ROUND);
            if let Some(twice) = self.twice.take() {
                return Err(twice);
            }
            if self.was_stuck {
                return Err(Violation::Stuck { status: self.status() });
            }
            let came = [
                self.delivered[Side::Customer as usize].contains(&to_customer),
                self.delivered[Side::Provider as usize].contains(&to_provider),
            ];
            for (arrived, came) in arrived.iter_mut().zip(came) {
                *arrived += u32::from(came);
            }
            good_rounds = if came == [true; 2] { good_rounds + 1 } else { 0 };
            if good_rounds == 2 {
                return Ok(());
            }
            debug_assert!(round <= HEALED_AFTER_ROUNDS + 1, "the last round is judged");
        }
        let [to_customer, to_provider] = arrived;
        let (rounds, status) = (HEALED_AFTER_ROUNDS + 2, self.status());
        Err(Violation::Dead { rounds, to_provider, to_customer, status })
    }

    /// Every datagram in flight: when it arrives, from whom, to whom, and what it is.
    pub fn on_the_way(&self) -> String {
        let mut flying: Vec<&Flying> = self.network.flying.iter().collect();
        flying.sort_by_key(|flying| (flying.at, flying.count));
        let words = flying.into_iter().map(|flying| {
            let in_ms = flying.at.since(self.now.min(flying.at)).as_millis();
            let kind = flying.kind().map_or("unknown", kind_name);
            format!("{kind} {:06x} to {} in {in_ms} ms", flying.index(), flying.to)
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The gateways' paths and drops.
    pub fn status(&mut self) -> String {
        let now = self.now;
        let mut words = Vec::new();
        for side in SIDES {
            let Some(gateway) = &mut self.gateways[side as usize] else { continue };
            let status = gateway.status(now);
            let peer = &status.peers[0];
            let up = peer.paths.iter().filter(|path| path.state == PathState::Up).count();
            words.push(format!(
                "{side}: {}, {up} of {} paths up, {} handshakes, late {}, duplicates {}, \
                 drops {:?}",
                peer.state,
                peer.paths.len(),
                peer.handshakes,
                peer.resequencer.late_dropped,
                peer.resequencer.duplicates,
                status.drops,
            ));
        }
        words.join("; ")
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Initiation => "initiation",
        Kind::Response => "response",
        Kind::CookieReply => "cookie",
        Kind::Data => "data",
        Kind::Control => "control",
    }
}
