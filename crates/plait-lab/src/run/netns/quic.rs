//! Bulk transfers over QUIC (RFC 9000) by a real stack, quinn's: its protocol knows neither socket
//! nor clock, and each end has a thread that carries its datagrams and keeps its timers.

mod config;
mod end;

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_proto::time::Instant;
use plait_sim::app::{Observation, Span, Tally, Transfer};
use plait_sim::scenario::app::TcpSpec;

pub(super) use self::config::CONTROLLERS;
use self::config::Configs;
use self::end::{End, Work};
use super::site::Ends;
use super::udp::{port_of, socket};
use crate::emulator::Epoch;

/// What an application does, besides where.
#[derive(Clone, Debug)]
pub(super) struct QuicPlan {
    pub(super) spec: TcpSpec,
    pub(super) start: Instant,
    pub(super) stop: Instant,
    /// The time that metrics cover.
    pub(super) span: Span,
}

/// A running application. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct QuicApp {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What both ends and the scenario's thread know.
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
    /// What the receivers were given, whenever that was.
    received_bytes: u64,
    complete_at: Option<Instant>,
    sampled_at: Instant,
    failure: Option<String>,
}

/// What the senders' connections tell of themselves, added up.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    window_packets: f64,
    bytes: u64,
    packets: u64,
    lost_packets: u64,
}

impl QuicApp {
    /// Starts application number `at`: it waits for its time by itself.
    pub(super) fn start(plan: QuicPlan, at: usize, ends: Ends<'_>, epoch: Epoch) -> Result<Self> {
        let configs = Configs::new(&plan.spec.tcp)?;
        let to = SocketAddrV4::new(ends.receiver.1, port_of(at));
        let from = SocketAddrV4::new(ends.sender.1, port_of(at));
        let receiver = ends.receiver.0.run_in(|| socket(to, from))?;
        let receiver = receiver.with_context(|| format!("cannot open {to}"))?;
        let sender = ends.sender.0.run_in(|| socket(from, to))?;
        let sender = sender.with_context(|| format!("cannot open {from}"))?;
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
        app.spawn(End::new(receiver, from, configs.server), Work::Receive)?;
        let flows = app.shared.plan.spec.flows;
        let bytes = app.shared.plan.spec.transfer_bytes;
        let work = Work::Send { client: configs.client, flows, bytes };
        app.spawn(End::new(sender, to, None), work)?;
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

    pub(super) fn tally(&self) -> Tally {
        self.shared.lock().tally.clone()
    }

    pub(super) fn observe(&self) -> Observation {
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
    pub(super) fn failure(&self) -> Option<String> {
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

    /// Whether the application has not stopped.
    fn goes_on(&self) -> bool {
        !self.quits() && self.epoch.now() < self.plan.stop
    }

    /// How long it is until the application starts.
    fn before_start(&self) -> Duration {
        self.plan.start.since(self.epoch.now())
    }

    /// Notes payload that a receiver was given.
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

    /// What grew since the last time counts for the span when most of that time lies within.
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
