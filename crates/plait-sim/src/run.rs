//! Turns a scenario and a seed into metrics and series.
//!
//! Metrics and series have the names of [`crate::scenario::metric`]. Series and the metrics of
//! links and bond cover the *main way*: down, unless every application sends up.
//!
//! `docs/guide/scenarios.md` defines them; further details:
//!
//! - A packet is lost when it was sent in the measured time and never reached its application,
//!   whatever the cause. Without any UDP, `loss_percent` counts TCP's packets with data.
//! - TCP offers what it sends, retransmissions included.
//! - `aggregation_ratio` and `aggregation_benefit` use as C_i the capacity of link i without the
//!   framing of the applications' packets: computed, not measured.
//! - `wait_p95_ms` is the upper bound of a bucket of the resequencer's histogram.

use std::collections::BTreeMap;

use plait_proto::time::{Duration, Instant};

use crate::app::Span;
use crate::error::WorldError;
use crate::scenario::app::Direction;
use crate::scenario::sweep::Cell;
use crate::scenario::{CellResult, Scenario};
use crate::world::{CipherChoice, Trace, Way, World};

mod capture;
mod metrics;
mod testbed;

pub use testbed::Testbed;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Metrics by full name.
    pub metrics: BTreeMap<String, f64>,
    /// Captured series by full name, one sample per interval.
    pub series: BTreeMap<String, Vec<f64>>,
    /// The time that a sample covers.
    pub interval: Duration,
    /// Counts besides the metrics, for people and for checks of the run itself.
    pub counters: BTreeMap<String, u64>,
    /// The digest of the run.
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

/// Metrics and series by full name.
pub type Found = (BTreeMap<String, f64>, BTreeMap<String, Vec<f64>>);

/// Runs a scenario once, with the null cipher.
///
/// # Errors
///
/// The scenario needs something the simulator lacks, or the gateways do not reach each other.
pub fn run(scenario: &Scenario, seed: u64) -> Result<RunResult, WorldError> {
    run_with(scenario, seed, CipherChoice::Null)
}

/// Runs a scenario once, with either cipher: the result is the same, which [`run`] relies on.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    scenario: &Scenario,
    seed: u64,
    cipher: CipherChoice,
) -> Result<RunResult, WorldError> {
    let scenario = &*scenario.drawn(seed);
    let mut world = World::new(scenario, seed, cipher)?;
    let (metrics, series) = drive(scenario, &mut world)?;
    let counters = metrics::counters(scenario, &world);
    let (interval, trace) = (scenario.capture.interval, world.trace());
    Ok(RunResult { metrics, series, interval, counters, trace })
}

/// Runs a testbed through the scenario and past its end, until everything in flight has arrived;
/// returns metrics and series.
///
/// # Errors
///
/// The testbed's.
pub fn drive<T: Testbed>(scenario: &Scenario, testbed: &mut T) -> Result<Found, T::Error> {
    let zero = testbed.zero();
    let way = main_way(scenario);
    let warm = zero + scenario.warmup;
    let end = zero + scenario.duration;
    let interval = scenario.capture.interval;
    let mut captures = capture::Captures::new(scenario, way, testbed);
    let mut before = None;
    let mut next = zero + interval;
    while next <= end {
        if warm <= next && before.is_none() {
            before = Some(warm_up(scenario, way, warm, testbed)?);
        }
        testbed.run_until(next)?;
        captures.sample(scenario, testbed);
        next += interval;
    }
    // Only a run that ends between two samples has none here.
    let before = match before {
        Some(before) => before,
        None => warm_up(scenario, way, warm, testbed)?,
    };
    testbed.run_until(end)?;
    let after = metrics::Snapshot::take(scenario, way, testbed);
    testbed.run_until(end + drain_time(scenario))?;
    let mut metrics = metrics::compute(scenario, way, testbed, &before, &after);
    let series = captures.finish();
    metrics::of_queues(&mut metrics, scenario, &series);
    Ok((metrics, series))
}

/// Runs up to the measured time, and takes the counts there.
fn warm_up<T: Testbed>(
    scenario: &Scenario,
    way: Way,
    warm: Instant,
    testbed: &mut T,
) -> Result<metrics::Snapshot, T::Error> {
    testbed.run_until(warm)?;
    Ok(metrics::Snapshot::take(scenario, way, testbed))
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

/// The direction whose links and bond are observed.
fn main_way(scenario: &Scenario) -> Way {
    let all_up = scenario.apps.iter().all(|app| app.direction == Direction::Up);
    if all_up && !scenario.apps.is_empty() { Way::Up } else { Way::Down }
}

/// How long a run goes on after the scenario's end, so that everything in flight arrives.
pub fn drain_time(scenario: &Scenario) -> Duration {
    let directions = scenario.links.values().flat_map(|link| [&link.up, &link.down]);
    let longest = directions
        .map(|spec| spec.longest_wait().min(Duration::from_secs(60)) + spec.delay + spec.jitter);
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
