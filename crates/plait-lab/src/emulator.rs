//! Links in real time: the link model of `plait-sim` between pairs of TUN devices, one thread per
//! direction.
//!
//! The devices are opened without offload, so the kernel hands over single packets no longer than
//! their MTU. A thread sleeps until the next release or the next packet, whichever is first. Its
//! lateness is recorded, because a machine that is too busy silently spoils a measurement.
//!
//! Links whose packets cross another link, a shared bottleneck, share one emulator, with a
//! [`Strand`] for each. So do links on one medium, which both directions drive.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::{WAIT_MAX, wait_any_readable};
use plait_net::tun::Tun;
use plait_proto::time::Instant;
use plait_sim::link::{Link, LinkConfig, LinkCounters};
use plait_sim::scenario::Action;
use plait_sim::world::Carried;
pub(crate) use plait_sim::world::Way;
use plait_sim::world::air::{Air, AirView};
use plait_sim::world::link_config::LinkSchedule;

use crate::addresses::PROVIDER_V4;
use crate::machine::keep_awake;

mod lateness;
mod nat;

pub(crate) use lateness::{
    LATE_P99_MAX, Lateness, LatenessSummary, VERY_LATE, VERY_LATE_SHARE_MAX,
};
use nat::Nat;

/// Longest packet that a link carries: above any device's MTU.
const PACKET_BYTES_MAX: usize = 9216;
/// Packets taken from a device before due packets are released.
const READ_BURST: usize = 32;
/// Longest sleep: a change from outside is seen within this time.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// The zero of time for the emulators and everything that must agree with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(std::time::Instant);

impl Epoch {
    pub(crate) fn start() -> Self {
        Self::started(Duration::ZERO)
    }

    /// An epoch that began so long ago.
    pub(crate) fn started(ago: Duration) -> Self {
        let now = std::time::Instant::now();
        let began = now.checked_sub(ago);
        Self(began.expect("Linux counts seconds below its own start, too"))
    }

    pub(crate) fn now(self) -> Instant {
        let nanos = self.0.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A packet in the emulator.
#[derive(Debug)]
pub(crate) struct Cargo {
    /// The strand whose devices it travels between.
    strand: usize,
    packet: Box<[u8]>,
}

/// The parts of a link: its devices at both ends and its model in each direction.
#[derive(Debug)]
pub(crate) struct Strand {
    pub(crate) customer: Tun,
    pub(crate) provider: Tun,
    pub(crate) up: Link<Cargo>,
    pub(crate) down: Link<Cargo>,
    /// Another strand that its packets also cross, at the provider's side.
    pub(crate) through: Option<usize>,
    /// Its radio on the emulator's medium, which its packets cross before the link.
    pub(crate) radio: Option<usize>,
}

/// Counters and queue of one direction of a strand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrandView {
    pub(crate) counters: LinkCounters,
    pub(crate) carried: Carried,
    pub(crate) waiting_bytes: u64,
    pub(crate) air: Option<AirView>,
}

/// A running link. It stops, and its devices vanish, when it is dropped.
#[derive(Debug)]
pub(crate) struct Emulator {
    up: Arc<Direction>,
    down: Arc<Direction>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Counters of a link's two directions.
#[derive(Clone, Debug)]
pub(crate) struct EmulatorReport {
    pub(crate) up: LinkCounters,
    pub(crate) down: LinkCounters,
    pub(crate) lateness: Lateness,
    /// Packets that a device refused.
    pub(crate) refused_packets: u64,
}

#[derive(Debug)]
struct Direction {
    way: Way,
    epoch: Epoch,
    /// For each strand, the source and the destination device of its packets.
    devices: Vec<(Arc<Tun>, Arc<Tun>)>,
    /// For each strand, the other strand that its packets also cross.
    through: Vec<Option<usize>>,
    /// For each strand, its radio on the medium.
    radios: Vec<Option<usize>>,
    /// Shared by both directions, which lock their own state first.
    air: Option<Arc<Mutex<Air<Cargo>>>>,
    /// Shared by both directions.
    nat: Arc<Nat>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// For each strand, its link and what came out of it.
    links: Vec<(Link<Cargo>, Carried)>,
    /// The time to which the links may have been brought.
    reached: Instant,
    lateness: Lateness,
    refused_packets: u64,
    capture: Capture,
    /// Why it has stopped.
    failure: Option<String>,
}

#[derive(Debug, Default)]
struct Capture {
    packets: Vec<Box<[u8]>>,
    packets_max: usize,
}

impl Emulator {
    /// Joins two devices by a link that is the same in both directions. `seed` decides its jitter
    /// and losses.
    pub(crate) fn start(
        customer: Tun,
        provider: Tun,
        config: LinkConfig,
        seed: u64,
    ) -> Result<Self> {
        let link = |seed| Link::new(config, seed);
        let (up, down) = (link(seed.wrapping_mul(2)), link(seed.wrapping_mul(2) + 1));
        let strand = Strand { customer, provider, up, down, through: None, radio: None };
        Self::join(vec![strand], None, Epoch::start())
    }

    /// Joins each strand's devices.
    pub(crate) fn join(
        strands: Vec<Strand>,
        air: Option<Air<Cargo>>,
        epoch: Epoch,
    ) -> Result<Self> {
        anyhow::ensure!(
            strands.len() <= WAIT_MAX,
            "{} links in one emulator; it takes {WAIT_MAX}",
            strands.len()
        );
        keep_awake();
        let through: Vec<_> = strands.iter().map(|strand| strand.through).collect();
        let radios: Vec<_> = strands.iter().map(|strand| strand.radio).collect();
        let air = air.map(|air| Arc::new(Mutex::new(air)));
        let (mut ends, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        for strand in strands {
            ends.push((Arc::new(strand.customer), Arc::new(strand.provider)));
            up.push((strand.up, Carried::default()));
            down.push((strand.down, Carried::default()));
        }
        let back = ends.iter().map(|(customer, provider)| (provider.clone(), customer.clone()));
        let nat = Arc::new(Nat::default());
        let direction = |way, devices, links| {
            let (lateness, capture) = (Lateness::default(), Capture::default());
            let (reached, failure) = (epoch.now(), None);
            let state = State { links, reached, lateness, refused_packets: 0, capture, failure };
            let (through, state) = (through.clone(), Mutex::new(state));
            let (radios, air) = (radios.clone(), air.clone());
            let nat = Arc::clone(&nat);
            Arc::new(Direction { way, epoch, devices, through, radios, air, nat, state })
        };
        let down = direction(Way::Down, back.collect(), down);
        let up = direction(Way::Up, ends, up);
        let stop = Arc::new(AtomicBool::new(false));
        let mut emulator =
            Self { up: Arc::clone(&up), down: Arc::clone(&down), stop, threads: Vec::new() };
        emulator.spawn(up)?;
        emulator.spawn(down)?;
        Ok(emulator)
    }

    fn spawn(&mut self, direction: Arc<Direction>) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || {
            // Without the right to either, the lateness record shows the cost.
            let _kept_default = plait_net::clock::set_timer_slack(1);
            let _kept_ordinary = plait_net::clock::set_realtime_priority();
            while !stop.load(Ordering::Relaxed) {
                if let Err(error) = direction.turn() {
                    let failure = format!("emulated link {}: {error:#}", direction.name());
                    crate::output::note(&failure);
                    direction.lock().failure = Some(failure);
                    return;
                }
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    fn direction(&self, way: Way) -> &Direction {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// Starts the timeline of a strand's direction in a scenario.
    pub(crate) fn begin(&self, strand: usize, way: Way, schedule: LinkSchedule) {
        let direction = self.direction(way);
        let (now, mut state) = direction.lock_now();
        schedule.begin(now, &mut state.links[strand].0);
    }

    /// Why a direction has stopped, if one has.
    pub(crate) fn failure(&self) -> Option<String> {
        [&self.up, &self.down].into_iter().find_map(|direction| direction.lock().failure.clone())
    }

    /// Counters of a strand's direction so far.
    pub(crate) fn observe(&self, strand: usize, way: Way) -> StrandView {
        let direction = self.direction(way);
        let state = direction.lock();
        let (link, carried) = &state.links[strand];
        let of_air = |(air, radio): (MutexGuard<'_, Air<Cargo>>, usize)| air.view(radio, way);
        StrandView {
            counters: link.counters(),
            carried: *carried,
            waiting_bytes: link.waiting_bytes(),
            air: direction.lock_air().zip(direction.radios[strand]).map(of_air),
        }
    }

    /// Lets an event happen to the medium, if there is one.
    pub(crate) fn happen_on_air(&self, action: &Action) {
        if let Some(mut air) = self.up.lock_air() {
            air.happen(self.up.epoch.now(), action);
        }
    }

    /// Changes both directions from now on.
    pub(crate) fn reconfigure(&self, change: impl Fn(LinkConfig) -> LinkConfig) {
        for direction in [&self.up, &self.down] {
            let (now, mut state) = direction.lock_now();
            for (link, _) in &mut state.links {
                let config = change(link.config());
                link.reconfigure(now, config);
            }
        }
    }

    /// Changes the configuration of one direction of a strand.
    pub(crate) fn change(
        &self,
        strand: usize,
        way: Way,
        change: impl FnOnce(LinkConfig) -> LinkConfig,
    ) {
        let direction = self.direction(way);
        let (now, mut state) = direction.lock_now();
        let link = &mut state.links[strand].0;
        let config = change(link.config());
        link.reconfigure(now, config);
    }

    /// Cuts both directions, or restores them.
    pub(crate) fn set_cut(&self, cut: bool) {
        for direction in [&self.up, &self.down] {
            let (now, mut state) = direction.lock_now();
            state.links.iter_mut().for_each(|(link, _)| link.set_cut(now, cut));
        }
    }

    /// Forgets all NAT mappings, like a NAT that restarts: from now on the customer's datagrams
    /// arrive from other ports, which depend on `mask`, above 0.
    pub(crate) fn rebind_ports(&self, mask: u16) {
        self.up.nat.rebind(mask);
    }

    /// Starts keeping copies of the packets sent in each direction, up to `packets_max` of each.
    pub(crate) fn capture(&self, packets_max: usize) {
        for direction in [&self.up, &self.down] {
            direction.lock().capture.packets_max = packets_max;
        }
    }

    /// Takes the packets kept of one direction, and stops keeping them.
    pub(crate) fn captured(&self, way: Way) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.direction(way).lock().capture).packets
    }

    /// Copies of the packets kept so far of one direction; goes on keeping them.
    pub(crate) fn captured_so_far(&self, way: Way) -> Vec<Box<[u8]>> {
        self.direction(way).lock().capture.packets.clone()
    }

    /// Bytes that one direction of the first link has delivered.
    pub(crate) fn delivered_bytes(&self, way: Way) -> u64 {
        self.direction(way).lock().links[0].0.counters().out_bytes
    }

    /// Report so far; the counters are those of the first link.
    pub(crate) fn report(&self) -> EmulatorReport {
        let (up, down) = (self.up.lock(), self.down.lock());
        let mut lateness = up.lateness.clone();
        lateness.add(&down.lateness);
        EmulatorReport {
            up: up.links[0].0.counters(),
            down: down.links[0].0.counters(),
            lateness,
            refused_packets: up.refused_packets + down.refused_packets,
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl Direction {
    fn name(&self) -> &str {
        self.devices[0].0.name()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds a link's lock")
    }

    /// The state, and the time, to which its links are about to be brought.
    fn lock_now(&self) -> (Instant, MutexGuard<'_, State>) {
        let mut state = self.lock();
        let now = self.epoch.now();
        state.reached = now;
        (now, state)
    }

    fn lock_air(&self) -> Option<MutexGuard<'_, Air<Cargo>>> {
        let air = self.air.as_ref()?;
        Some(air.lock().expect("no thread panics while it holds a medium's lock"))
    }

    /// Sleeps until something is due and does it.
    fn turn(&self) -> Result<()> {
        let next = self.lock().links.iter().filter_map(|(link, _)| link.next_event()).min();
        // What has arrived for the other thread is no reason to stay awake: at real-time priority
        // this one could keep it from the processor for ever.
        let on_air = self.lock_air().and_then(|air| air.next_event_of(self.way));
        let next = next.into_iter().chain(on_air).min();
        let until_next = next.map_or(SLEEP_MAX, |next| next.since(self.epoch.now()));
        let mut fds = [self.devices[0].0.as_fd(); WAIT_MAX];
        let fds: &mut [BorrowedFd<'_>] = &mut fds[..self.devices.len()];
        for (fd, (from, _)) in fds.iter_mut().zip(&self.devices) {
            *fd = from.as_fd();
        }
        let readable = wait_any_readable(fds, until_next.min(SLEEP_MAX))?;
        let mut state = self.lock();
        if readable {
            for strand in 0..self.devices.len() {
                self.take_in(&mut state, strand)?;
            }
        }
        while self.release(&mut state) {}
        Ok(())
    }

    fn take_in(&self, state: &mut State, strand: usize) -> Result<()> {
        let mut buffer = [0; PACKET_BYTES_MAX];
        let first = match self.way {
            Way::Up => strand,
            Way::Down => self.through[strand].unwrap_or(strand),
        };
        for _ in 0..READ_BURST {
            let read = self.devices[strand].0.read_packet(&mut buffer);
            let Some(length) = read.context("cannot read a link's device")? else { break };
            if !self.nat.pass(self.way, &mut buffer[..length]) {
                continue;
            }
            let packet: Box<[u8]> = buffer[..length].into();
            if state.capture.packets.len() < state.capture.packets_max {
                state.capture.packets.push(packet.clone());
            }
            let bytes = packet.len() as u64;
            let cargo = Cargo { strand, packet };
            match self.lock_air().zip(self.radios[first]) {
                Some((mut air, radio)) => {
                    air.send(self.epoch.now(), radio, self.way, bytes, cargo);
                }
                None => {
                    state.links[first].0.send(self.epoch.now(), bytes, cargo);
                }
            }
        }
        Ok(())
    }

    /// Hands what has crossed the air to the links behind it.
    fn take_from_air(&self, state: &mut State) {
        let Some(mut air) = self.lock_air() else { return };
        let now = self.epoch.now();
        while let Some(arrival) = air.poll(now, self.way) {
            let at = arrival.due.max(state.reached);
            let link = &mut state.links[arrival.payload.strand].0;
            link.send(at, arrival.bytes, arrival.payload);
            state.reached = at;
        }
    }

    /// Releases due packets; says whether any entered another link.
    fn release(&self, state: &mut State) -> bool {
        let mut went_on = false;
        self.take_from_air(state);
        for at in 0..state.links.len() {
            while let Some((due, cargo)) = state.links[at].0.poll_due(self.epoch.now()) {
                let bytes = cargo.packet.len() as u64;
                let carried = &mut state.links[at].1;
                if is_datagram_of_bond(&cargo.packet) {
                    carried.bond_bytes += bytes;
                } else {
                    carried.plain_bytes += bytes;
                }
                if let Some(next) = self.next_of(at, cargo.strand) {
                    state.links[next].0.send(self.epoch.now(), bytes, cargo);
                    went_on = true;
                } else if self.devices[cargo.strand].1.write_packet(&cargo.packet).is_err() {
                    // A device that is down or full loses packets, as a real one does; they are
                    // counted.
                    state.refused_packets += 1;
                }
                state.lateness.record(self.epoch.now().since(due));
            }
        }
        state.reached = self.epoch.now();
        went_on
    }

    /// The link that a strand's packet crosses after link `at`.
    fn next_of(&self, at: usize, strand: usize) -> Option<usize> {
        match self.way {
            Way::Up if at == strand => self.through[strand],
            Way::Down if at != strand => Some(strand),
            _ => None,
        }
    }
}

/// Whether a packet travels between the gateways: from or to the provider's.
fn is_datagram_of_bond(packet: &[u8]) -> bool {
    let provider = PROVIDER_V4.octets();
    packet.len() >= 20
        && packet[0] >> 4 == 4
        && (packet[12..16] == provider || packet[16..20] == provider)
}
