//! `plait-lab run ladder`: the bond on more than a hundred sets of link conditions, each named
//! after the real case it stands for: in the simulator, or some of them in namespaces.
//! `docs/guide/ladder.md` says what is measured.
//!
//! - [`rung`], [`rungs`]: the conditions.
//! - [`course`], [`trial`]: a rung as scenarios, and what a run of one found.
//! - [`mod@climb`], [`score`], [`tally`]: all runs, and what they come to.
//! - [`over_time`]: one run second by second.
//! - [`words`], [`page`]: the tables that people read, and the page.

use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::cli::{LadderArgs, On};
use crate::figure::{Figure, Summary};
use crate::gateway::plait_program;
use crate::machine::Machine;
use crate::output::{self, Output, Verdict};
use crate::report::PageFile;
use crate::run::netns;

mod climb;
mod course;
mod over_time;
mod page;

mod rung;
mod rungs;
mod score;
mod tally;
mod trial;
mod words;

use crate::policy::Policy;
use climb::{Climbed, Missing, climb_on, part_for_netns};
pub(crate) use climb::{Effort, climb};
use page::Page;
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
    on: &'static str,
    policy: &'a str,
    aggregation_ratio: f64,
    aggregation_benefit: f64,
    against_best: f64,
    #[serde(flatten)]
    score: &'a Score,
}

#[derive(Serialize)]
struct PolicyRecord<'a> {
    on: &'static str,
    policy: &'a str,
    #[serde(flatten)]
    sum: Sum,
}

/// What a climb was asked to do and on what: the end of its records.
#[derive(Serialize)]
struct More {
    on: &'static str,
    machine: Machine,
    /// Rungs with figures.
    rungs: usize,
    /// Rungs without.
    missing: Vec<Missing>,
    seeds: u64,
    elapsed_s: f64,
}

/// Whether a climb in namespaces is worth making any; the errors are those of [`run()`].
pub(crate) fn check(args: &LadderArgs) -> Result<()> {
    netns::check_files(&args.html)?;
    plait_program()?;
    select(args).map(drop)
}

pub(crate) fn run(args: &LadderArgs, output: &Output) -> Result<Verdict> {
    let selected = select(args)?;
    if args.list {
        return list(&selected, output);
    }
    let started = Instant::now();
    let policies = args.policies();
    let effort = effort(args, output);
    let (selected, refused) = match args.on {
        On::Sim => (selected, Vec::new()),
        On::Netns => part_for_netns(&selected, &policies, effort),
    };
    for line in words::missing(&refused) {
        output::note(line);
    }
    if let (true, Some(Missing { rung, why })) = (selected.is_empty(), refused.first()) {
        bail!("none of these rungs can run here: {rung}: {why}");
    }
    if args.over_time {
        over_time::tell(args.on, &selected, &policies, effort, output)?;
        let more = serde_json::json!({ "on": args.on.name(), "rungs": selected.len() });
        output.record("summary", &Summary::new("ladder", &[], more))?;
        return Ok(Verdict::Good);
    }
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let Climbed { mut scores, missing } = climb_on(args.on, &selected, &policies, effort)?;
    scores.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
    let more = More {
        on: args.on.name(),
        machine: Machine::detect(),
        rungs: scores.len(),
        missing: [refused, missing].concat(),
        seeds: effort.seeds,
        elapsed_s: started.elapsed().as_secs_f64(),
    };
    tell_all(args, &selected, &scores, &more, output)?;
    if let Some(page) = page {
        let command = args.command();
        let (policies, scores) = (&policies, &scores);
        let drawn = Page { on: args.on, policies, scores, command: &command, more: &more };
        page.write_text(&drawn.html())?;
    }
    let figures: [Figure; 0] = [];
    output.record("summary", &Summary::new("ladder", &figures, more))?;
    Ok(Verdict::Good)
}

fn effort(args: &LadderArgs, output: &Output) -> Effort {
    let effort = match (args.quick, args.on) {
        (true, _) => Effort::QUICK,
        (false, On::Sim) => Effort::FULL,
        (false, On::Netns) => Effort::FULL_ON_NETNS,
    };
    let seeds = args.seeds.unwrap_or(effort.seeds);
    Effort { seeds, with_bare: output.is_json(), ..effort }
}

fn select(args: &LadderArgs) -> Result<Vec<Rung>> {
    let all = match args.on {
        On::Sim if args.list => rungs::all(),
        On::Sim => runnable(),
        On::Netns => rungs::all().into_iter().filter(|rung| rung.on_netns).collect(),
    };
    let only = args.only.as_deref().unwrap_or("");
    let named: Vec<Rung> = all.into_iter().filter(|rung| rung.name.contains(only)).collect();
    let on = args.on.name();
    if named.is_empty() {
        bail!(
            "no rung on {on} is called *{only}*; plait-lab run ladder --list --on {on} prints all"
        );
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
            "on_netns": rung.on_netns,
        });
        output.record("rung", &record)?;
    }
    let more = serde_json::json!({ "rungs": rungs.len() });
    output.record("summary", &Summary::new("ladder", &[], more))?;
    Ok(Verdict::Good)
}

/// Prints what all policies come to, by themselves and side by side.
fn tell_all(
    args: &LadderArgs,
    rungs: &[Rung],
    scores: &[Vec<Score>],
    more: &More,
    output: &Output,
) -> Result<()> {
    let policies = args.policies();
    for (at, policy) in policies.iter().enumerate() {
        let own: Vec<&Score> = scores.iter().map(|scores| &scores[at]).collect();
        tell(args.on, rungs, policy, &own, output)?;
    }
    if policies.len() > 1 {
        output.line(format!("side by side, {}", words::kind(args.on)))?;
        for line in words::side_by_side(&policies, scores) {
            output.line(line)?;
        }
        output.line("")?;
    }
    for line in words::missing(&more.missing) {
        output.line(line)?;
    }
    output.line(format!("{:.0} s; {}", more.elapsed_s, words::machine(args.on, &more.machine)))
}

/// Prints what one policy comes to.
fn tell(on: On, rungs: &[Rung], policy: &Policy, scores: &[&Score], output: &Output) -> Result<()> {
    output.line(format!("policy {policy}, {}", words::kind(on)))?;
    let parts = [words::scores(scores), words::sums(rungs, scores), words::promise(scores)];
    for line in parts.into_iter().flat_map(|part| part.into_iter().chain([String::new()])) {
        output.line(line)?;
    }
    for score in scores {
        output.record("rung", &record(on, policy, score))?;
    }
    let record = PolicyRecord { on: on.name(), policy: policy.name(), sum: Sum::of(scores) };
    output.record("policy", &record)
}

fn record<'a>(on: On, policy: &'a Policy, score: &'a Score) -> RungRecord<'a> {
    RungRecord {
        on: on.name(),
        policy: policy.name(),
        aggregation_ratio: score.ratio(),
        aggregation_benefit: score.benefit(),
        against_best: score.against_best(),
        score,
    }
}

/// A_r of the policy that does worst on a rung.
fn worst(scores: &[Score]) -> f64 {
    scores.iter().map(Score::ratio).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::rung::{Inner, Link, Load, rung};
    use crate::ladder::trial::Found;

    const LINKS: &[Link] = &[Link::new("dsl", 50, 20), Link::new("lte", 10, 60)];

    #[test]
    fn a_record_says_on_what_it_ran_and_what_it_lacks() {
        let rung = rung("udp/x", "a case", LINKS, Load::tcp(Inner::Cubic));
        let found = [Found { mbit: 30.0, ..Found::default() }];
        let score = Score::new(&rung, &found, &[&found, &found], &[&[], &[]]);
        let policy = Policy::default_policy();
        for (on, name) in [(On::Sim, "sim"), (On::Netns, "netns")] {
            let json = serde_json::to_value(record(on, &policy, &score)).unwrap();
            assert_eq!((&json["on"], &json["runs"]), (&name.into(), &1.into()));
            assert_eq!(json["aggregation_ratio"], 0.5);
            for absent in ["ping_ms", "resent_percent", "wait_p95_ms"] {
                assert!(json.get(absent).is_some_and(serde_json::Value::is_null), "{absent}");
            }
        }
    }
}
