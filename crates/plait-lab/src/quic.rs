//! Bulk transfers over QUIC (RFC 9000) with a real stack, quinn: its protocol code has neither
//! socket nor clock, so each end has a thread that carries its datagrams and keeps its timers.

mod config;
mod end;
mod socket;

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use plait_proto::time::Instant;
use plait_sim::app::{Observation, Span, Tally, Transfer};
use plait_sim::scenario::app::TcpSpec;

use crate::emulator::Epoch;
pub(crate) use config::CONTROLLERS;
use config::Configs;
use end::{End, Work};

/// An application's plan, without its addresses.
#[derive(Clone, Debug)]
pub(crate) struct QuicPlan {
    pub(crate) spec: TcpSpec,
    pub(crate) start: Instant,
    pub(crate) stop: Instant,
    /// The time that metrics cover.
    pub(crate) span: Span,
}

/// A running application. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct QuicApp {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by both ends and the scenario's thread.
#[derive(Debug)]
struct Shared {
    plan: QuicPlan,
    epoch: Epoch,
    quit: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tally: Tally,
    sent: Sent,
    /// Bytes that receivers got over the whole run.
    received_bytes: u64,
    complete_at: Option<Instant>,
    sampled_at: Instant,
    failure: Option<String>,
}

/// Counters of the senders' connections, added up.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    window_packets: f64,
    bytes: u64,
    packets: u64,
    lost_packets: u64,
}

impl QuicApp {
    /// Starts it between two connected sockets; it waits for its start time by itself.
    pub(crate) fn start(
        plan: QuicPlan,
        (sender, receiver): (UdpSocket, UdpSocket),
        epoch: Epoch,
    ) -> Result<Self> {
        let configs = Configs::new(&plan.spec.tcp)?;
        let state = State {
            tally: Tally::new(plan.span),
            sent: Sent::default(),
            received_bytes: 0,
            complete_at: None,
            sampled_at: plan.start,
            failure: None,
        };
        let (quit, state) = (AtomicBool::new(false), Mutex::new(state));
        let shared = Arc::new(Shared { plan, epoch, quit, state });
        let mut app = Self { shared, threads: Vec::new() };
        app.spawn(End::new(receiver, configs.server)?, Work::Receive)?;
        let flows = app.shared.plan.spec.flows;
        let bytes = app.shared.plan.spec.transfer_bytes;
        let work = Work::Send { client: configs.client, flows, bytes };
        app.spawn(End::new(sender, None)?, work)?;
        Ok(app)
    }

    fn spawn(&mut self, end: End, work: Work) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("quic".into()).spawn(move || {
            if let Err(error) = end.run(work, &shared) {
                shared.lock().failure.get_or_insert(format!("{error:#}"));
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    pub(crate) fn tally(&self) -> Tally {
        self.shared.lock().tally.clone()
    }

    pub(crate) fn observe(&self) -> Observation {
        let state = self.shared.lock();
        Observation {
            cwnd_segments: Some(state.sent.window_packets),
            segments: state.sent.packets,
            retransmits: state.sent.lost_packets,
            transfer: state.complete_at.map(|at| Transfer {
                bytes: state.received_bytes,
                time: at.since(self.shared.plan.start),
            }),
            ..Observation::default()
        }
    }

    /// What went wrong, if anything did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }
}

impl Drop for QuicApp {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds an application's lock")
    }

    fn quits(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    /// Whether the application still runs.
    fn goes_on(&self) -> bool {
        !self.quits() && self.epoch.now() < self.plan.stop
    }

    /// Time until the application starts.
    fn before_start(&self) -> Duration {
        self.plan.start.since(self.epoch.now())
    }

    /// Notes payload that a receiver got.
    fn take(&self, bytes: u64) {
        let now = self.epoch.now();
        let mut state = self.lock();
        state.tally.on_goodput(now, bytes);
        state.received_bytes += bytes;
        let spec = &self.plan.spec;
        let whole = spec.transfer_bytes.map(|bytes| bytes * u64::from(spec.flows));
        if whole == Some(state.received_bytes) {
            state.complete_at = Some(now);
        }
    }

    /// Growth since the last note counts for the span if most of that time lies within it.
    fn note(&self, sent: Sent) {
        let now = self.epoch.now();
        let mut state = self.lock();
        let middle = state.sampled_at + now.since(state.sampled_at) / 2;
        state.sampled_at = now;
        let bytes = sent.bytes - state.sent.bytes;
        let packets = sent.packets - state.sent.packets;
        state.sent = sent;
        state.tally.offered_bytes += bytes;
        state.tally.sent_packets += packets;
        if state.tally.span().holds(middle) {
            state.tally.measured_offered_bytes += bytes;
            state.tally.measured_sent_packets += packets;
        }
    }
}
