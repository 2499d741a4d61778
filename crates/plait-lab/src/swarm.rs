//! `plait-lab swarm`: two gateways under random links, loads and faults, with checkers that are
//! always on. A failing seed is reported with the command that repeats it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use anyhow::Result;
use plait_sim::swarm::{self, FaultKinds, Outcome};
use serde::Serialize;

use crate::cli::SwarmArgs;
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::output::{Meter, Output, Verdict};
use crate::worker::pool;

mod soak;

pub(crate) use soak::{Soak, figures as soak_figures};

/// The provider's peers besides the customer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    Nobody,
    /// A peer with its own key that follows no rule.
    Hostile,
}

impl SwarmArgs {
    fn company(&self) -> Company {
        if self.hostile { Company::Hostile } else { Company::Nobody }
    }
}

/// The result of a seed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SeedResult {
    pub(crate) seed: u64,
    pub(crate) ok: bool,
    /// The violation, or the message of the core's panic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) violation: Option<String>,
    /// Runs it again.
    pub(crate) command: String,
    #[serde(skip)]
    pub(crate) outcome: Option<Outcome>,
}

/// The result of many seeds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Seeds {
    first: u64,
    seeds: u64,
    failed: Vec<u64>,
    sent_packets: u64,
    delivered_packets: u64,
    datagrams: u64,
    faults: u64,
    virtual_s: f64,
    elapsed_s: f64,
    /// The longest time without traffic, and without paths, after everything had healed.
    traffic_after_max_s: f64,
    paths_after_max_s: f64,
}

#[derive(Serialize)]
struct More<'a, T> {
    machine: Machine,
    #[serde(flatten)]
    what: &'a T,
}

pub(crate) fn run(args: &SwarmArgs, output: &Output) -> Result<Verdict> {
    if let Some(hours) = args.soak {
        return soak::run(hours, args, output);
    }
    if let Some(seed) = args.seed {
        return repeat(seed, args.company(), args.trace, output);
    }
    let seeds = run_seeds(args.first, args.seeds, args.company(), args.jobs, |failed| {
        output.record("seed", failed)?;
        output.line(failure_line(failed))
    })?;
    conclude("swarm", &figures(&seeds), &seeds, output)
}

/// Prints figures and summary.
fn conclude<T: Serialize>(
    name: &str,
    figures: &[Figure],
    what: &T,
    output: &Output,
) -> Result<Verdict> {
    for figure in figures {
        let (value, band, verdict) = (figure.value_text(), figure.band_text(), figure.verdict());
        output.line(format!("{}: {value} {band} {verdict}", figure.name).trim_end())?;
    }
    let machine = Machine::detect();
    output.line(machine.sentence())?;
    let summary = Summary::new(name, figures, More { machine, what });
    output.record("summary", &summary)?;
    Ok(Verdict::of(summary.ok))
}

fn failure_line(failed: &SeedResult) -> String {
    let violation = failed.violation.as_deref().unwrap_or_default();
    format!("seed {} failed: {violation}\n  again: {}", failed.seed, failed.command)
}

/// Runs one seed, with a trace on request.
fn repeat(seed: u64, company: Company, with_trace: bool, output: &Output) -> Result<Verdict> {
    #[derive(Serialize)]
    struct Event {
        at_s: f64,
        event: String,
    }
    let mut printed = Ok(());
    let mut print = |at: plait_proto::time::Instant, what: std::fmt::Arguments<'_>| {
        let at_s = at.as_nanos() as f64 / 1e9;
        if with_trace && printed.is_ok() {
            let event = what.to_string();
            printed = output
                .line(format!("{at_s:>12.6}  {event}"))
                .and_then(|()| output.record("event", &Event { at_s, event }));
        }
    };
    let started = Instant::now();
    let result = run_seed(seed, company, Some(&mut print));
    printed?;
    if !result.ok {
        output.line(failure_line(&result))?;
    }
    output.record("seed", &result)?;
    let mut seeds = Seeds { first: seed, ..Seeds::default() };
    seeds.add(&result);
    seeds.elapsed_s = started.elapsed().as_secs_f64();
    conclude("swarm", &figures(&seeds), &seeds, output)
}

/// Runs a seed; a panic of the core counts as a failure.
fn run_seed(seed: u64, company: Company, trace: Option<swarm::Trace<'_>>) -> SeedResult {
    let (run, option): (fn(_, _, _) -> _, _) = match company {
        Company::Nobody => (swarm::run, ""),
        Company::Hostile => (swarm::run_beside_hostile, " --hostile"),
    };
    let run = AssertUnwindSafe(|| run(seed, FaultKinds::STANDARD, trace));
    let command = format!("plait-lab swarm{option} --seed {seed}");
    let (outcome, violation) = guarded(run);
    SeedResult { seed, ok: violation.is_none(), violation, command, outcome }
}

/// The result of a run: an outcome, or what went wrong in words.
fn guarded(
    run: AssertUnwindSafe<impl FnOnce() -> Result<Outcome, swarm::Violation>>,
) -> (Option<Outcome>, Option<String>) {
    match catch_unwind(run) {
        Ok(Ok(outcome)) => (Some(outcome), None),
        Ok(Err(violation)) => (None, Some(violation.to_string())),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            (None, Some(format!("panic: {}", text.unwrap_or("without a word"))))
        }
    }
}

/// Runs `count` seeds from `first` on; `tell` gets those that fail, in order.
pub(crate) fn run_seeds(
    first: u64,
    count: u64,
    company: Company,
    jobs: usize,
    mut tell: impl FnMut(&SeedResult) -> Result<()>,
) -> Result<Seeds> {
    let mut seeds = Seeds { first, ..Seeds::default() };
    let started = Instant::now();
    let count = usize::try_from(count)?;
    let mut meter = Meter::new("swarm", "seeds", count);
    let work = |at: usize| run_seed(first.wrapping_add(at as u64), company, None);
    pool::in_order_on(jobs, count, work, |result| -> Result<()> {
        let Some(result) = result else { return Ok(()) };
        meter.finished_one();
        if !result.ok {
            tell(&result)?;
        }
        seeds.add(&result);
        Ok(())
    })?;
    seeds.elapsed_s = started.elapsed().as_secs_f64();
    Ok(seeds)
}

impl Seeds {
    fn add(&mut self, result: &SeedResult) {
        self.seeds += 1;
        if !result.ok {
            self.failed.push(result.seed);
        }
        if let Some(outcome) = &result.outcome {
            self.sent_packets += outcome.sent_packets;
            self.delivered_packets += outcome.delivered_packets;
            self.datagrams += outcome.datagrams;
            self.faults += outcome.actions;
            self.virtual_s += outcome.time.as_secs_f64();
            let longest = |known: f64, now: Duration| known.max(now.as_secs_f64());
            self.traffic_after_max_s = longest(self.traffic_after_max_s, outcome.traffic_after);
            self.paths_after_max_s = longest(self.paths_after_max_s, outcome.paths_after);
        }
    }
}

pub(crate) fn figures(seeds: &Seeds) -> Vec<Figure> {
    let seconds = |name: &str, value: f64| Figure::number(name.to_owned(), value, "s");
    vec![
        Figure::count("seeds", seeds.seeds),
        Figure::count("seeds that failed", seeds.failed.len() as u64)
            .exactly(0.0, "every checker holds on every seed"),
        Figure::count("packets sent", seeds.sent_packets),
        Figure::count("packets delivered", seeds.delivered_packets),
        Figure::count("faults and their ends", seeds.faults),
        seconds("virtual time", seeds.virtual_s),
        seconds("time", seeds.elapsed_s),
        seconds("longest until traffic flows after the healing", seeds.traffic_after_max_s)
            .at_most(swarm::TRAFFIC_WITHIN.as_secs_f64(), "the swarm's bound"),
        seconds("longest until all paths are up after the healing", seeds.paths_after_max_s)
            .at_most(swarm::PATHS_WITHIN.as_secs_f64(), "the swarm's bound"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_run_and_counted() {
        for company in [Company::Nobody, Company::Hostile] {
            let seeds = run_seeds(1, 4, company, 2, |_| Ok(())).unwrap();
            assert_eq!((seeds.seeds, seeds.failed.len()), (4, 0));
            assert!(seeds.sent_packets > 0 && seeds.delivered_packets <= seeds.sent_packets);
            let summary = figures(&seeds);
            assert!(Summary::new("swarm", &summary, ()).ok);
        }
    }

    #[test]
    fn a_failed_seed_says_how_to_run_it_again() {
        let (outcome, violation) = guarded(AssertUnwindSafe(|| panic!("an invariant")));
        assert!(outcome.is_none());
        let command = "plait-lab swarm --seed 7".to_owned();
        let failed = SeedResult { seed: 7, ok: false, violation, command, outcome };
        let line = failure_line(&failed);
        assert!(line.contains("panic: an invariant") && line.ends_with("--seed 7"), "{line}");
        let mut seeds = Seeds::default();
        seeds.add(&failed);
        assert!(!Summary::new("swarm", &figures(&seeds), ()).ok);
    }
}
