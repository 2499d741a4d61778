//! A scenario and a seed in, metrics and series out.
//!
//! Metrics and series have the names of [`crate::scenario::metric`]. Series and the metrics of
//! links and bond belong to the *main way*: down, unless every application sends up.
//!
//! Their meaning is in `docs/guide/scenarios.md`; what it leaves open:
//!
//! - A packet is lost when it was sent in the measured time and never reached its application,
//!   whatever the cause. Without any UDP, `loss_percent` counts TCP's packets with data.
//! - TCP offers what it sends, retransmissions included.
//! - `aggregation_ratio` and `aggregation_benefit` take as C_i what link i can carry beside the
//!   framing of the applications' packets: computed, not measured.
//! - `wait_p95_ms` is the upper bound of a bucket of the resequencer's histogram.

use std::collections::BTreeMap;

use plait_proto::time::{Duration, Instant};

use crate::app::Span;
use crate::scenario::app::Direction;
use crate::scenario::link::QueueSpec;
use crate::scenario::sweep::Cell;
use crate::scenario::{CellResult, Scenario};
use crate::world::{Trace, Way, World, WorldError};

mod capture;
mod metrics;

/// What a run found.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Metrics by full name.
    pub metrics: BTreeMap<String, f64>,
    /// Captured series by full name, one sample per interval.
    pub series: BTreeMap<String, Vec<f64>>,
    /// The time that a sample covers.
    pub interval: Duration,
    /// Counts beside the metrics, for people and for checks of the run itself.
    pub counters: BTreeMap<String, u64>,
    /// The digest of the run's course.
    pub trace: Trace,
}

impl RunResult {
    /// A series as points: seconds at the end of each sample, and its value.
    pub fn points(&self, series: &str) -> Option<Vec<(f64, f64)>> {
        let interval_s = self.interval.as_secs_f64();
        let samples = self.series.get(series)?.iter().enumerate();
        Some(samples.map(|(at, value)| ((at + 1) as f64 * interval_s, *value)).collect())
    }
}

/// Runs a scenario once.
///
/// # Errors
///
/// What the simulator does not have, or gateways that do not reach each other.
pub fn run(scenario: &Scenario, seed: u64) -> Result<RunResult, WorldError> {
    let mut world = World::new(scenario, seed)?;
    let zero = world.zero();
    let way = main_way(scenario);
    let warm = zero + scenario.warmup;
    let end = zero + scenario.duration;
    let interval = scenario.capture.interval;
    let mut captures = capture::Captures::new(scenario, way, &mut world);
    let mut before = None;
    let mut next = zero + interval;
    while next <= end {
        if warm <= next {
            before.get_or_insert_with(|| warm_up(scenario, way, warm, &mut world));
        }
        world.run_until(next);
        captures.sample(scenario, &mut world);
        next += interval;
    }
    // Only a run that ends between two samples gets here without one.
    let before = before.unwrap_or_else(|| warm_up(scenario, way, warm, &mut world));
    world.run_until(end);
    let after = metrics::Snapshot::take(scenario, way, &mut world);
    world.run_until(end + drain_time(scenario));
    let metrics = metrics::compute(scenario, way, &world, &before, &after);
    let counters = metrics::counters(scenario, &mut world);
    Ok(RunResult { metrics, series: captures.finish(), interval, counters, trace: world.trace() })
}

/// Runs up to the measured time, and counts there.
fn warm_up(scenario: &Scenario, way: Way, warm: Instant, world: &mut World) -> metrics::Snapshot {
    world.run_until(warm);
    metrics::Snapshot::take(scenario, way, world)
}

/// Runs a cell of a sweep once, and adds the scenario's own measures.
///
/// # Errors
///
/// As [`run`].
pub fn run_cell(cell: &Cell, seed: u64) -> Result<CellResult, WorldError> {
    let RunResult { metrics, series, .. } = run(&cell.scenario, seed)?;
    let (name, settings) = (cell.name.clone(), cell.settings.clone());
    let mut result = CellResult { cell: name, settings, seed, metrics, series };
    cell.scenario.measure(&mut result);
    Ok(result)
}

/// The way whose links and bond are observed.
fn main_way(scenario: &Scenario) -> Way {
    let all_up = scenario.apps.iter().all(|app| app.direction == Direction::Up);
    if all_up && !scenario.apps.is_empty() { Way::Up } else { Way::Down }
}

/// Long enough for everything on its way to arrive.
fn drain_time(scenario: &Scenario) -> Duration {
    let directions = scenario.links.values().flat_map(|link| [&link.up, &link.down]);
    let longest = directions.map(|spec| {
        let (QueueSpec::DropTail { bytes } | QueueSpec::CoDel { bytes }) = spec.queue;
        let queueing = spec.capacity.mean_rate().time_for(bytes);
        queueing.min(Duration::from_secs(60)) + spec.delay + spec.jitter
    });
    Duration::from_secs(2) + 2 * longest.max().unwrap_or_default() + scenario.server_rtt
}

/// Megabits per second.
fn mbit(bytes: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8.0 / 1e6 / seconds } else { 0.0 }
}

/// An application's own time within the measured one.
fn own_time(scenario: &Scenario, app: usize, zero: Instant) -> Duration {
    let spec = &scenario.apps[app];
    let own = Span { start: zero + spec.start, end: zero + spec.stop };
    crate::world::measured_span(scenario, zero).overlap(own).length()
}
