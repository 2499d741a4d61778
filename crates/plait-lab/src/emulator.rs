//! A link in real time: the link model of `plait-sim` between two TUN devices, one thread for each
//! direction.
//!
//! The devices are opened without offload, so the kernel hands over single packets no longer than
//! their MTU. A thread sleeps until the next release or the next packet, whichever is first. How
//! late it released is recorded, because a machine that is too busy spoils a measurement in
//! silence.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::wait_readable;
use plait_net::tun::Tun;
use plait_proto::time::Instant;
use plait_sim::link::{Link, LinkConfig, LinkCounters};

mod lateness;

pub(crate) use lateness::{Lateness, LatenessSummary};

/// Longest packet that a link carries: above any device's MTU.
const PACKET_BYTES_MAX: usize = 9216;
/// Packets taken from the device before what is due is released.
const READ_BURST: usize = 32;
/// Longest sleep: how soon a change from outside is seen.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// One of a link's directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// From the customer to the provider.
    Up,
    /// From the provider to the customer.
    Down,
}

/// A running link. It stops, and its devices vanish, when it is dropped.
#[derive(Debug)]
pub(crate) struct Emulator {
    up: Arc<Direction>,
    down: Arc<Direction>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What the two directions of a link did.
#[derive(Clone, Debug)]
pub(crate) struct EmulatorReport {
    pub(crate) up: LinkCounters,
    pub(crate) down: LinkCounters,
    pub(crate) lateness: Lateness,
    /// Packets that a device did not take.
    pub(crate) refused_packets: u64,
}

#[derive(Debug)]
struct Direction {
    state: Mutex<State>,
    start: std::time::Instant,
}

#[derive(Debug)]
struct State {
    link: Link<Box<[u8]>>,
    lateness: Lateness,
    refused_packets: u64,
    capture: Capture,
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
        let start = std::time::Instant::now();
        let direction = |seed| {
            let link = Link::new(config, seed);
            let (lateness, capture) = (Lateness::default(), Capture::default());
            let state = State { link, lateness, refused_packets: 0, capture };
            Arc::new(Direction { state: Mutex::new(state), start })
        };
        let (up, down) = (direction(seed.wrapping_mul(2)), direction(seed.wrapping_mul(2) + 1));
        let stop = Arc::new(AtomicBool::new(false));
        let (customer, provider) = (Arc::new(customer), Arc::new(provider));
        let mut emulator =
            Self { up: Arc::clone(&up), down: Arc::clone(&down), stop, threads: Vec::new() };
        emulator.spawn(up, Arc::clone(&customer), Arc::clone(&provider))?;
        emulator.spawn(down, provider, customer)?;
        Ok(emulator)
    }

    fn spawn(&mut self, direction: Arc<Direction>, from: Arc<Tun>, to: Arc<Tun>) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || {
            // Without the right to either the lateness record shows what that costs.
            let _kept_default = plait_net::clock::set_timer_slack(1);
            let _kept_ordinary = plait_net::clock::set_realtime_priority();
            while !stop.load(Ordering::Relaxed) {
                if let Err(error) = direction.turn(&from, &to) {
                    crate::output::note(format!("emulated link {}: {error:#}", from.name()));
                    return;
                }
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Changes both directions from now on.
    pub(crate) fn reconfigure(&self, change: impl Fn(LinkConfig) -> LinkConfig) {
        for direction in [&self.up, &self.down] {
            let (now, mut state) = (direction.now(), direction.lock());
            let config = change(state.link.config());
            state.link.reconfigure(now, config);
        }
    }

    /// Cuts both directions, or joins them again.
    pub(crate) fn set_cut(&self, cut: bool) {
        for direction in [&self.up, &self.down] {
            let now = direction.now();
            direction.lock().link.set_cut(now, cut);
        }
    }

    /// Begins to keep copies of the packets put into each direction, up to `packets_max` of each.
    pub(crate) fn capture(&self, packets_max: usize) {
        for direction in [&self.up, &self.down] {
            direction.lock().capture.packets_max = packets_max;
        }
    }

    /// Takes the packets kept of one direction, and keeps no more.
    pub(crate) fn captured(&self, way: Way) -> Vec<Box<[u8]>> {
        let direction = match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        };
        std::mem::take(&mut direction.lock().capture).packets
    }

    /// What happened so far.
    pub(crate) fn report(&self) -> EmulatorReport {
        let (up, down) = (self.up.lock(), self.down.lock());
        let mut lateness = up.lateness.clone();
        lateness.add(&down.lateness);
        EmulatorReport {
            up: up.link.counters(),
            down: down.link.counters(),
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
    fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds a link's lock")
    }

    /// Sleeps until something is to be done and does it.
    fn turn(&self, from: &Tun, to: &Tun) -> Result<()> {
        let next = self.lock().link.next_event();
        let until_next = next.map_or(SLEEP_MAX, |next| next.since(self.now()));
        let readable = wait_readable(from.as_fd(), until_next.min(SLEEP_MAX))?;
        let mut state = self.lock();
        if readable {
            self.take_in(&mut state, from)?;
        }
        self.release(&mut state, to);
        Ok(())
    }

    fn take_in(&self, state: &mut State, from: &Tun) -> Result<()> {
        let mut buffer = [0; PACKET_BYTES_MAX];
        for _ in 0..READ_BURST {
            let read = from.read_packet(&mut buffer).context("cannot read a link's device")?;
            let Some(length) = read else { break };
            let packet: Box<[u8]> = buffer[..length].into();
            if state.capture.packets.len() < state.capture.packets_max {
                state.capture.packets.push(packet.clone());
            }
            state.link.send(self.now(), packet.len() as u64, packet);
        }
        Ok(())
    }

    fn release(&self, state: &mut State, to: &Tun) {
        while let Some((due, packet)) = state.link.poll_due(self.now()) {
            // A device that is down or full loses packets, as a real one does; they are counted.
            if to.write_packet(&packet).is_err() {
                state.refused_packets += 1;
            }
            state.lateness.record(self.now().since(due));
        }
    }
}
