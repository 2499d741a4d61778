//! The measurement: phase after phase, each within its time and its bytes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use plait_proto::stats::{PathStatus, PeerStatus};

use super::control::{self, StatusAnswer};
use super::figures::{BondFigures, DirectionFigures, FlowFigures, Latency, PathFigures};
use super::plan::{
    Budget, Direction, IDLE_OMIT, IDLE_TIME, Kind, MeasurementPlan, PHASE_EXTRA, Phase, omit,
    payload_limits, stop_at,
};
use super::service::{Carried, Order, Ready, Service};
use crate::advice::Advised;
use crate::measure::transfer::Limit;
use crate::measure::wire::Purpose;

/// Time for all connections of a phase to be established, or the phase fails.
const READY_TIME: Duration = Duration::from_secs(2);
/// Pause after a phase, until queues are empty.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// Bytes spent are checked this often.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes that an echo carries at most.
const ECHO_BYTES_MAX: u64 = 100_000;
/// At least this share of the payload of a flow pinned to a path shows in the path's bytes.
const OWN_SHARE: f64 = 0.8;

/// A path to be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Subject {
    pub(super) id: u8,
    pub(super) name: String,
}

/// What a measurement needs.
#[derive(Debug)]
pub(super) struct Measurement<'a> {
    pub(super) socket: &'a Path,
    /// The peer's key in base64.
    pub(super) peer: &'a str,
    pub(super) service: &'a Service,
    pub(super) plan: &'a MeasurementPlan,
    pub(super) paths: &'a [Subject],
    /// When it must be over.
    pub(super) deadline: Instant,
}

/// The result of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Outcome {
    /// Each direction, without figures that need a comparison.
    pub(super) directions: Vec<DirectionFigures>,
    /// Bytes over all links, both directions, including framing and the bond's other traffic.
    pub(super) bytes: u64,
    /// Phases that ended because their bytes were used up.
    pub(super) cut_phases: usize,
}

/// One phase's figures: of each flow, with the latency during it.
struct PhaseFigures {
    flows: Vec<FlowFigures>,
    was_cut: bool,
    /// Bytes over all links in the loaded direction for each inner byte.
    overhead: Option<f64>,
}

impl Measurement<'_> {
    /// Runs all phases. `tell` is called with each phase before it begins.
    ///
    /// # Errors
    /// The service, this host's gateway or a path went away, or it would take longer than planned.
    pub(super) fn run(&self, tell: &mut dyn FnMut(&str)) -> anyhow::Result<Outcome> {
        let start_bytes = self.bytes()?;
        let mut budget = Budget::new(self.plan);
        tell("idle: latency of each path and of the bond");
        let (idle, bond_idle) = self.idle()?;
        budget.spend_aside(self.bytes()?.saturating_sub(start_bytes));
        let mut directions: Vec<DirectionFigures> = Vec::new();
        let mut cut_phases = 0;
        for phase in &self.plan.phases {
            tell(&self.describe(phase));
            if directions.last().is_none_or(|last| last.direction != phase.direction) {
                directions.push(self.blank(phase.direction, &idle, bond_idle));
            }
            let figures = directions.last_mut().expect("one was pushed if there was none");
            let before = self.bytes()?;
            let measured = self.phase(phase, figures, budget.next_phase(), before)?;
            cut_phases += usize::from(measured.was_cut);
            enter(figures, phase.kind, measured);
            thread::sleep(SETTLE_TIME);
            budget.spend(self.bytes()?.saturating_sub(before));
        }
        let bytes = self.bytes()?.saturating_sub(start_bytes);
        Ok(Outcome { directions, bytes, cut_phases })
    }

    fn describe(&self, phase: &Phase) -> String {
        let direction = phase.direction.name();
        match phase.kind {
            Kind::Individual(at) => format!("{direction}: {} alone", self.paths[at].name),
            Kind::Simultaneous => format!("{direction}: all paths at once"),
            Kind::Bonded => format!("{direction}: the bond"),
        }
    }

    fn blank(
        &self,
        direction: Direction,
        idle: &[Option<Latency>],
        bond_idle: Option<Latency>,
    ) -> DirectionFigures {
        let path = |(path, idle): (&Subject, &Option<Latency>)| PathFigures {
            name: path.name.clone(),
            idle: *idle,
            individual: None,
            simultaneous: None,
        };
        let paths = self.paths.iter().zip(idle).map(path).collect();
        let bonded = FlowFigures { throughput_bps: 0, latency: None, seconds: 0.0 };
        let bond = BondFigures { idle: bond_idle, bonded, overhead: None };
        DirectionFigures::new(direction, paths, bond, false, None)
    }

    /// Latency over each path, and over the bond, while nothing is sent.
    fn idle(&self) -> anyhow::Result<(Vec<Option<Latency>>, Option<Latency>)> {
        let wanted = self.paths.iter().map(|path| Some(path.id)).chain([None]);
        let echoes = self.join_all(wanted.map(|path| self.echo_order(path, IDLE_TIME)))?;
        let (_, samples) = go(Vec::new(), echoes, &|| true)?;
        let mut latencies: Vec<_> =
            samples.iter().map(|samples| latency(samples, IDLE_OMIT, IDLE_TIME)).collect();
        let bond = latencies.pop().flatten();
        Ok((latencies, bond))
    }

    fn echo_order(&self, path: Option<u8>, time: Duration) -> Order {
        Order { purpose: Purpose::Echo, path, limit: Limit { time, bytes: ECHO_BYTES_MAX } }
    }

    fn join_all(&self, orders: impl Iterator<Item = Order>) -> anyhow::Result<Vec<Ready<'_>>> {
        let deadline = Instant::now() + READY_TIME;
        orders.map(|order| self.service.join(self.socket, order, deadline)).collect()
    }

    /// One phase that may cost so many bytes over all links.
    fn phase(
        &self,
        phase: &Phase,
        known: &DirectionFigures,
        bytes: u64,
        bytes_before: u64,
    ) -> anyhow::Result<PhaseFigures> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let time = self.plan.flow_time;
        if left < time + PHASE_EXTRA - SETTLE_TIME {
            bail!("the measurement would take longer than announced");
        }
        let (on, expected): (Vec<Option<&Subject>>, Vec<u64>) = match phase.kind {
            Kind::Individual(at) => (vec![Some(&self.paths[at])], vec![1]),
            Kind::Simultaneous => (self.paths.iter().map(Some).collect(), known.individual_bps()),
            Kind::Bonded => (vec![None], vec![1]),
        };
        let limits = payload_limits(bytes, &expected);
        let purpose = match phase.direction {
            Direction::Down => Purpose::Down,
            Direction::Up => Purpose::Up,
        };
        let ids = || on.iter().map(|path| path.map(|path| path.id));
        let order = |(path, bytes)| Order { purpose, path, limit: Limit { time, bytes } };
        let flows = self.join_all(ids().zip(limits).map(order))?;
        let echoes = self.join_all(ids().map(|path| self.echo_order(path, time)))?;
        let before = self.status()?;
        let enough = bytes_before + stop_at(bytes);
        let within_budget = || self.bytes().is_ok_and(|now| now < enough);
        let (carried, samples) = go(flows, echoes, &within_budget)?;
        let after = self.status()?;
        ensure_own_paths(phase.direction, &on, &carried, &before, &after)?;
        let overhead = overhead(phase.direction, &before, &after);
        Ok(PhaseFigures { overhead, ..figures(&carried, &samples, time)? })
    }

    fn status(&self) -> anyhow::Result<PeerStatus> {
        let text = control::ask(self.socket)
            .map_err(|cause| control::explain(self.socket, cause))
            .context("the own gateway went away")?;
        let answer = StatusAnswer::parse(&text, self.socket)?;
        let peer = answer.endpoint.peers.into_iter().find(|peer| peer.public_key == self.peer);
        peer.context("the own gateway knows the peer no more")
    }

    /// Bytes over all links so far, both directions.
    fn bytes(&self) -> anyhow::Result<u64> {
        let both = |path: &PathStatus| path.sent_bytes + path.received_bytes;
        Ok(self.status()?.paths.iter().map(both).sum())
    }
}

/// Fails when a pinned flow did not go over its path.
fn ensure_own_paths(
    direction: Direction,
    on: &[Option<&Subject>],
    carried: &[Carried],
    before: &PeerStatus,
    after: &PeerStatus,
) -> anyhow::Result<()> {
    let bytes = |status: &PeerStatus, id: u8| {
        let path = status.paths.iter().find(|path| path.id == id);
        path.map_or(0, |path| match direction {
            Direction::Down => path.received_bytes,
            Direction::Up => path.sent_bytes,
        })
    };
    for (path, carried) in on.iter().zip(carried) {
        let Some(path) = path else { continue };
        let own = bytes(after, path.id).saturating_sub(bytes(before, path.id));
        if (own as f64) < carried.counts.total() as f64 * OWN_SHARE {
            let message = format!("path {} did not carry its own flow", path.name);
            let help = "it went down meanwhile, or came up again: see `plait status`, then \
                        measure again";
            return Err(Advised::new(message, help).into());
        }
    }
    Ok(())
}

/// Bytes over all links in one direction per inner byte carried, between two statuses of this side.
/// For the receiving direction this side counts arrivals and losses; for the sending direction it
/// counts the inner bytes it was given.
fn overhead(direction: Direction, before: &PeerStatus, after: &PeerStatus) -> Option<f64> {
    let bytes = |status: &PeerStatus| {
        let sum = |of: fn(&PathStatus) -> f64| status.paths.iter().map(of).sum::<f64>();
        match direction {
            Direction::Down => {
                (sum(PathStatus::spent_bytes), sum(|path| path.delivered_bytes as f64))
            }
            Direction::Up => (sum(|path| path.sent_bytes as f64), status.inner_sent_bytes as f64),
        }
    };
    let ((spent_before, inner_before), (spent, inner)) = (bytes(before), bytes(after));
    (inner > inner_before).then(|| (spent - spent_before) / (inner - inner_before))
}

type Samples = Vec<(Duration, Duration)>;

fn joined<T>(thread: thread::ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Starts connections at one moment and runs each to its end on its own thread; meanwhile checks
/// whether they may go on.
fn go<'a>(
    mut flows: Vec<Ready<'a>>,
    mut echoes: Vec<Ready<'a>>,
    may_go_on: &dyn Fn() -> bool,
) -> anyhow::Result<(Vec<Carried>, Vec<Samples>)> {
    let stop = AtomicBool::new(false);
    let goes_on = || !stop.load(Ordering::Relaxed);
    echoes.iter_mut().chain(&mut flows).try_for_each(Ready::go)?;
    let start = Instant::now();
    thread::scope(|scope| {
        let flows: Vec<_> =
            flows.into_iter().map(|flow| scope.spawn(move || flow.carry(start, goes_on))).collect();
        let echoes: Vec<_> =
            echoes.into_iter().map(|echo| scope.spawn(move || echo.echo(start, goes_on))).collect();
        while !flows.iter().all(|flow| flow.is_finished())
            || !echoes.iter().all(|echo| echo.is_finished())
        {
            thread::sleep(LOOK_INTERVAL);
            let are_over = !flows.is_empty() && flows.iter().all(|flow| flow.is_finished());
            if are_over || !may_go_on() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        let carried = flows.into_iter().map(joined).collect::<anyhow::Result<_>>()?;
        let samples = echoes.into_iter().map(joined).collect::<anyhow::Result<_>>()?;
        Ok((carried, samples))
    })
}

/// Stores a phase's figures.
fn enter(figures: &mut DirectionFigures, kind: Kind, measured: PhaseFigures) {
    let mut flows = measured.flows.into_iter();
    match kind {
        Kind::Individual(at) => figures.paths[at].individual = flows.next(),
        Kind::Simultaneous => {
            for (path, flow) in figures.paths.iter_mut().zip(flows) {
                path.simultaneous = Some(flow);
            }
        }
        Kind::Bonded => {
            figures.bond.bonded = flows.next().expect("a phase has a flow");
            figures.bond.overhead = measured.overhead;
        }
    }
}

/// Rates and latencies over the time in which all flows ran.
fn figures(
    carried: &[Carried],
    samples: &[Samples],
    flow_time: Duration,
) -> anyhow::Result<PhaseFigures> {
    let cut = carried.iter().filter(|one| one.was_cut);
    let until = cut.clone().map(|one| one.counts.lasted()).min().unwrap_or(flow_time);
    let until = until.min(flow_time);
    let from = omit(until);
    let flow = |(carried, samples): (&Carried, &Samples)| {
        let throughput_bps = carried.counts.rate_bps(from, until).ok_or_else(|| {
            let help = "allow more bytes (--max-bytes), or measure fewer paths (--path)";
            Advised::new("the bytes were over before anything could be measured", help)
        })?;
        let seconds = until.saturating_sub(from).as_secs_f64();
        Ok(FlowFigures { throughput_bps, latency: latency(samples, from, until), seconds })
    };
    let flows = carried.iter().zip(samples).map(flow).collect::<anyhow::Result<_>>()?;
    Ok(PhaseFigures { flows, was_cut: cut.count() > 0, overhead: None })
}

/// Latency of the messages that were sent between two times.
fn latency(samples: &[(Duration, Duration)], from: Duration, until: Duration) -> Option<Latency> {
    let within = samples.iter().filter(|(sent_at, _)| (from..until).contains(sent_at));
    Latency::of(within.map(|(_, rtt)| rtt.as_micros() as u64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::watch::testing::{path, peer};
    use crate::measure::transfer::Counts;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn carried(slots: u32, bytes: u32, was_cut: bool) -> Carried {
        Carried { counts: Counts::from_slots((0..slots).map(|_| bytes)), was_cut }
    }

    #[test]
    fn figures_are_of_the_time_in_which_all_flows_ran() {
        // 10 kB and 5 kB each tenth of a second; the second flow's bytes are used up after 2 s.
        let flows = [carried(100, 10_000, false), carried(20, 5_000, true)];
        let sample = |ms| (MS(ms), MS(ms / 10));
        let samples = vec![sample(500), sample(600), sample(1990), sample(2000)];
        let measured = figures(&flows, &[samples, Vec::new()], MS(10_000)).unwrap();
        assert!(measured.was_cut);
        assert_eq!(measured.flows[0].throughput_bps, 800_000);
        assert_eq!(measured.flows[1].throughput_bps, 400_000);
        assert!((measured.flows[0].seconds - 1.4).abs() < 1e-9);
        let latency = measured.flows[0].latency.unwrap();
        assert_eq!((latency.samples, latency.median_us), (2, 199_000));
        assert_eq!(measured.flows[1].latency, None);
    }

    #[test]
    fn overhead_is_of_the_loaded_direction_between_two_statuses() {
        let at = |sent, inner_sent, received| PeerStatus {
            inner_sent_bytes: inner_sent,
            ..peer(vec![path("dsl", 1, sent, received), path("lte", 2, 0, received)])
        };
        // Of 17 bytes that arrive 16 are inner; a lost packet counts like one that arrived.
        let (before, mut after) = (at(500, 100, 17_000), at(2700, 2100, 170_000));
        let down = |after: &PeerStatus| overhead(Direction::Down, &before, after).unwrap();
        assert!((down(&after) - 17.0 / 16.0).abs() < 1e-9);
        assert_eq!(overhead(Direction::Up, &before, &after), Some(1.1));
        after.paths[0].received_packets = 100;
        after.paths[0].lost_packets = 10;
        assert!((down(&after) - 17.0 / 16.0 * (306.0 + 17.0) / 306.0).abs() < 1e-9);
        assert_eq!(overhead(Direction::Down, &after, &after), None);
    }

    #[test]
    fn a_flow_that_falls_silent_has_the_rate_of_the_whole_time() {
        let measured = figures(&[carried(50, 10_000, false)], &[Vec::new()], MS(10_000)).unwrap();
        // From 3 s to 10 s, of which 2 s carried anything.
        assert_eq!(measured.flows[0].throughput_bps, 800_000 * 2 / 7);
        assert!(!measured.was_cut);
    }

    #[test]
    fn too_few_bytes_are_an_error_with_a_remedy() {
        let error = figures(&[carried(0, 0, true)], &[Vec::new()], MS(10_000)).err().unwrap();
        let advised = error.downcast_ref::<Advised>().unwrap();
        assert!(advised.help().contains("--max-bytes"));
    }
}
