//! `plait-lab run ladder`: the bond on more than a hundred sets of link conditions, each named
//! after the real case it stands for, in the simulator. `docs/guide/ladder.md` says what is
//! measured.
//!
//! - [`rung`], [`rungs`]: the conditions.
//! - [`policy`]: how the bond spreads its packets.
//! - [`course`], [`trial`]: a rung as scenarios, and what a run of one found.
//! - [`mod@climb`], [`score`], [`tally`]: all runs, and what they come to.
//! - [`over_time`]: one run second by second.
//! - [`words`]: the tables that people read.

use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::cli::LadderArgs;
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::output::{self, Output, Verdict};

mod climb;
mod course;
mod over_time;
mod policy;
mod rung;
mod rungs;
mod score;
mod tally;
mod trial;
mod words;

pub(crate) use climb::{Effort, climb};
pub(crate) use policy::Policy;
pub(crate) use rung::Rung;
pub(crate) use score::Score;
pub(crate) use tally::{AGAINST_BEST_MIN, KEPT_MIN, STEADY_RATIO_MIN, Sum, broken};

/// Of the ladder, a quick climb takes every so many rungs.
const QUICK_STEP: usize = 4;

/// The rungs that this build can run; those left out are named.
pub(crate) fn runnable() -> Vec<Rung> {
    let (known, unknown): (Vec<Rung>, Vec<Rung>) =
        rungs::all().into_iter().partition(|rung| rung.load.is_known());
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().map(|rung| rung.name).collect();
        output::note(format!("the TCP model has no sender for: {}", names.join(", ")));
    }
    known
}

/// Every fourth rung and so on: another slice of each kind.
pub(crate) fn thinned(rungs: &[Rung]) -> Vec<Rung> {
    rungs.iter().step_by(QUICK_STEP).copied().collect()
}

#[derive(Serialize)]
struct RungRecord<'a> {
    policy: &'a str,
    aggregation_ratio: f64,
    aggregation_benefit: f64,
    against_best: f64,
    #[serde(flatten)]
    score: &'a Score,
}

#[derive(Serialize)]
struct PolicyRecord<'a> {
    policy: &'a str,
    #[serde(flatten)]
    sum: Sum,
}

#[derive(Serialize)]
struct More {
    machine: Machine,
    rungs: usize,
    seeds: u64,
    elapsed_s: f64,
}

pub(crate) fn run(args: &LadderArgs, output: &Output) -> Result<Verdict> {
    let selected = select(args)?;
    if args.list {
        return list(&selected, output);
    }
    let started = Instant::now();
    let policies = args.policies();
    let mut effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    effort.seeds = args.seeds.unwrap_or(effort.seeds);
    effort.with_bare = output.is_json();
    if args.over_time {
        over_time::tell(&selected, &policies, effort, output)?;
        let more = serde_json::json!({ "rungs": selected.len() });
        output.record("summary", &Summary::new("ladder", &[], more))?;
        return Ok(Verdict::Good);
    }
    let mut scores = climb(&selected, &policies, effort)?;
    scores.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
    for (at, policy) in policies.iter().enumerate() {
        let own: Vec<&Score> = scores.iter().map(|scores| &scores[at]).collect();
        tell(&selected, policy, &own, output)?;
    }
    if policies.len() > 1 {
        output.line("")?;
        for line in words::side_by_side(&policies, &scores) {
            output.line(line)?;
        }
    }
    let more = More {
        machine: Machine::detect(),
        rungs: selected.len(),
        seeds: effort.seeds,
        elapsed_s: started.elapsed().as_secs_f64(),
    };
    output.line("")?;
    output.line(format!("{:.0} s; {}", more.elapsed_s, more.machine.sentence()))?;
    let figures: [Figure; 0] = [];
    output.record("summary", &Summary::new("ladder", &figures, more))?;
    Ok(Verdict::Good)
}

fn select(args: &LadderArgs) -> Result<Vec<Rung>> {
    let all = if args.list { rungs::all() } else { runnable() };
    let only = args.only.as_deref().unwrap_or("");
    let named: Vec<Rung> = all.into_iter().filter(|rung| rung.name.contains(only)).collect();
    if named.is_empty() {
        bail!("no rung is called *{only}*; plait-lab run ladder --list prints all");
    }
    Ok(if args.quick { thinned(&named) } else { named })
}

fn list(rungs: &[Rung], output: &Output) -> Result<Verdict> {
    for line in words::list(rungs) {
        output.line(line)?;
    }
    for rung in rungs {
        let links: Vec<String> = rung.links.iter().map(ToString::to_string).collect();
        let record = serde_json::json!({
            "rung": rung.name,
            "stands_for": rung.stands_for,
            "links": links,
            "load": rung.load.to_string(),
            "steady": rung.is_steady(),
        });
        output.record("rung", &record)?;
    }
    let more = serde_json::json!({ "rungs": rungs.len() });
    output.record("summary", &Summary::new("ladder", &[], more))?;
    Ok(Verdict::Good)
}

/// Prints what one policy comes to.
fn tell(rungs: &[Rung], policy: &Policy, scores: &[&Score], output: &Output) -> Result<()> {
    output.line(format!("policy {policy}"))?;
    let parts = [words::scores(scores), words::sums(rungs, scores), words::promise(scores)];
    for line in parts.into_iter().flat_map(|part| part.into_iter().chain([String::new()])) {
        output.line(line)?;
    }
    for score in scores {
        let record = RungRecord {
            policy: policy.name(),
            aggregation_ratio: score.ratio(),
            aggregation_benefit: score.benefit(),
            against_best: score.against_best(),
            score,
        };
        output.record("rung", &record)?;
    }
    let record = PolicyRecord { policy: policy.name(), sum: Sum::of(scores) };
    output.record("policy", &record)
}

/// A_r of the policy that does worst on a rung.
fn worst(scores: &[Score]) -> f64 {
    scores.iter().map(Score::ratio).fold(f64::INFINITY, f64::min)
}
