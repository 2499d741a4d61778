//! trust.2: an honest and a hostile customer of one real gateway.
//!
//! The honest one has its own real gateway over two emulated links: a download, pings, and IPv6 in
//! packets of 1280 bytes. The hostile one has an unlimited link and sends 10,000 datagrams a
//! second, in phases; the honest bond's results in each phase are compared with those while the
//! hostile one sends nothing.

mod attacker;
mod network;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use attacker::{PER_SECOND, Phase};
use network::{Network, Sample};

use super::super::{Effort, Figure};
use crate::output::Progress;
use crate::record::Samples;

const SOURCE: &str = "trust.2";
const THROUGHPUT_SHARE_MIN: f64 = 0.9;
/// The pings' 99th percentile over that without hostile datagrams.
const LATENCY_RATIO_MAX: f64 = 2.0;
/// A smaller increase of pings is ignored: a busy machine sometimes adds that much.
const LATENCY_FLOOR_MS: f64 = 2.0;
/// Memory that one peer may make a gateway hold: packets in its resequencer, 16 MiB by default, and
/// the state of its paths and sessions.
const GROWTH_MIB_MAX: f64 = 24.0;
const PACE_SHARE_MIN: f64 = 0.9;

/// Start of a phase that is not counted; longer in the phase in which the gateway must first find
/// the hostile one's path MTU to be tiny.
const RAMP: Duration = Duration::from_secs(1);
const RAMP_MTU: Duration = Duration::from_secs(5);
const PHASE_QUICK: Duration = Duration::from_secs(3);
const PHASE: Duration = Duration::from_secs(10);

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let counted = if effort.is_quick() { PHASE_QUICK } else { PHASE };
    // The quiet phase comes first and last.
    let steps = effort.runs() * (Phase::noisy().count() + 2);
    let mut progress = Progress::new(steps, (RAMP + counted) * steps as u32);
    let mut runs = Vec::new();
    for _ in 0..effort.runs() {
        runs.push(PhaseSamples::run(counted, &mut progress)?);
    }
    Ok(figures(&runs))
}

/// The samples of one run of all phases.
#[derive(Debug)]
struct PhaseSamples {
    quiet: Sample,
    phases: Vec<(Phase, Sample)>,
    /// Memory of the provider before hostile datagrams, in MiB.
    memory_mib: f64,
    attacker_cpu: Duration,
    elapsed: Duration,
}

impl PhaseSamples {
    fn run(counted: Duration, progress: &mut Progress) -> Result<Self> {
        let begun = Instant::now();
        let mut network = Network::build()?;
        let mut session = network.start()?;
        let mut sample = |phase: Phase| {
            let ramp = if phase == Phase::Mtu { RAMP_MTU } else { RAMP };
            let _step = progress.step(phase.name(), ramp + counted);
            session.sample(phase, ramp, counted)
        };
        let before = sample(Phase::Quiet)?;
        let mut phases = Vec::new();
        for phase in Phase::noisy() {
            phases.push((phase, sample(phase)?));
        }
        let after = sample(Phase::Quiet)?;
        let memory_mib = before.memory_mib;
        let quiet = before.mean(&after);
        ensure!(quiet.download_bps > 0, "the undisturbed bond carries nothing");
        let attacker_cpu = session.stop()?;
        Ok(Self { quiet, phases, memory_mib, attacker_cpu, elapsed: begun.elapsed() })
    }

    fn phase(&self, phase: Phase) -> Option<&Sample> {
        self.phases.iter().find(|(known, _)| *known == phase).map(|(_, sample)| sample)
    }
}

/// NaN without any values.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Samples::median(values).unwrap_or(f64::NAN)
}

fn figures(runs: &[PhaseSamples]) -> Vec<Figure> {
    let of_runs = |value: &dyn Fn(&PhaseSamples) -> f64| median(runs.iter().map(value));
    let quiet_p99 = of_runs(&|run| run.quiet.p99_ms);
    let mut figures = vec![
        Figure::mbit(
            "download beside nothing hostile",
            of_runs(&|run| run.quiet.download_bps as f64) as u64,
        ),
        Figure::number("pings beside nothing hostile, 99th percentile", quiet_p99, "ms"),
        Figure::number(
            "inner MTU beside nothing hostile",
            of_runs(&|run| f64::from(run.quiet.inner_mtu)),
            "bytes",
        ),
        Figure::number("provider's memory at first", of_runs(&|run| run.memory_mib), "MiB"),
    ];
    for phase in Phase::noisy() {
        let of_phase = |value: &dyn Fn(&PhaseSamples, &Sample) -> f64| {
            let one = |run: &PhaseSamples| run.phase(phase).map(|sample| value(run, sample));
            median(runs.iter().filter_map(one))
        };
        figures.extend(phase_figures(phase.name(), quiet_p99, &of_phase));
    }
    let peak = of_runs(&|run| {
        run.phases.iter().map(|(_, sample)| sample.peak_mib).fold(0.0, f64::max) - run.memory_mib
    });
    let spoofed: u64 =
        runs.iter().flat_map(|run| &run.phases).map(|(_, sample)| sample.spoofed_packets).sum();
    figures.extend([
        Figure::number("growth of the provider's memory, at its peak", peak, "MiB")
            .at_most(GROWTH_MIB_MAX, "16 MiB in the resequencer, and 8 for the rest"),
        Figure::none("packets with the neighbour's address that came out", spoofed, SOURCE),
        Figure::percent(
            "attacker's CPU, of a core",
            of_runs(&|run| run.attacker_cpu.as_secs_f64() / run.elapsed.as_secs_f64() * 1e6) as u64,
        ),
    ]);
    figures
}

type OfPhase<'a> = &'a dyn Fn(&dyn Fn(&PhaseSamples, &Sample) -> f64) -> f64;

/// Processor time of the provider per hostile datagram, beyond its time in the quiet phase.
fn cost_us(run: &PhaseSamples, sample: &Sample) -> f64 {
    let more = sample.provider_cpu.saturating_sub(run.quiet.provider_cpu);
    more.as_secs_f64() * 1e6 / sample.hostile_datagrams.max(1) as f64
}

fn phase_figures(name: &str, quiet_p99: f64, of_phase: OfPhase<'_>) -> Vec<Figure> {
    let share = of_phase(&|run, sample| sample.download_bps as f64 / run.quiet.download_bps as f64);
    let mtu = of_phase(&|run, sample| f64::from(u8::from(sample.inner_mtu == run.quiet.inner_mtu)));
    let cost = of_phase(&cost_us);
    let of_ordinary = of_phase(&|run, sample| {
        let ordinary = run.phase(Phase::Ordinary).map(|ordinary| cost_us(run, ordinary));
        cost_us(run, sample) / ordinary.unwrap_or(f64::NAN)
    });
    let p99_max = (quiet_p99 * LATENCY_RATIO_MAX).max(quiet_p99 + LATENCY_FLOOR_MS);
    let named = |what: &str| format!("{name}: {what}");
    vec![
        Figure::number(named("download, of the undisturbed"), share, "ratio")
            .at_least(THROUGHPUT_SHARE_MIN, SOURCE),
        Figure::number(named("pings, 99th percentile"), of_phase(&|_, s| s.p99_ms), "ms")
            .at_most(p99_max, SOURCE),
        Figure::number(named("inner MTU unchanged"), mtu, "").exactly(1.0, SOURCE),
        Figure::number(
            named("IPv6 packets of 1280 bytes answered"),
            of_phase(&|_, s| s.v6_answered),
            "ratio",
        )
        .at_least(0.9, SOURCE),
        Figure::number(
            named("hostile datagrams per second"),
            of_phase(&|_, s| s.hostile_datagrams as f64 / s.seconds),
            "per second",
        )
        .at_least(PER_SECOND as f64 * PACE_SHARE_MIN, "the attacker keeps its pace"),
        Figure::number(named("provider's time for each"), cost, "us"),
        Figure::number(named("provider's time, of ordinary ones"), of_ordinary, "ratio"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_median() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
