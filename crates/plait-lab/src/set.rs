//! `plait-lab run SET`: runs many scenarios together, such as the ladder of link conditions. A set
//! is a file of `scenarios/sets/`, described in `docs/guide/scenarios.md`.
//!
//! - [`manifest`]: the file.
//! - [`score`]: compares the bond with the other carriers in one of the scenarios.
//! - [`mod@check`], [`sum`]: evaluate all of them together.
//! - [`words`], [`page`]: tables for people, and the page.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::cli::{On, RunArgs};
use crate::figure::{Figure, Summary};
use crate::list::{Catalogue, SETS};
use crate::machine::Machine;
use crate::output::{self, Output, Verdict};
use crate::policy::Policy;
use crate::record::{Record, Results, RunRecord, Sink};
use crate::report::{self, PageFile};
use crate::run::{self, Engine, Known, PreparedRun, netns};

mod check;
mod manifest;
mod page;
mod score;
mod sum;
mod words;

pub(crate) use check::{figures_of, of_checks};
use manifest::{Manifest, Member};
use page::Page;
use score::{Rung, Score};
use sum::{Sum, broken};

/// A scenario of the set without figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Missing {
    pub(crate) rung: String,
    pub(crate) why: String,
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

/// The request and the machine: the last of the records.
#[derive(Serialize)]
struct More {
    on: &'static str,
    machine: Machine,
    /// Scenarios with figures.
    rungs: usize,
    /// Scenarios without figures.
    missing: Vec<Missing>,
    seeds: u64,
    elapsed_s: f64,
}

/// A requested set.
#[derive(Debug)]
pub(crate) struct Set {
    catalogue: Catalogue,
    manifest: Manifest,
}

/// A set's runnable scenarios, for each policy.
struct Plans {
    policies: Vec<Policy>,
    /// By policy, then by scenario.
    all: Vec<PreparedRun>,
    rungs: Vec<Rung>,
    refused: Vec<Missing>,
    seeds: u64,
}

/// Runs the set or the scenario of this name.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<Verdict> {
    match Set::find(args)? {
        Some(set) => set.run(args, output),
        None => run::run(args, output),
    }
}

/// Whether the run is possible, checked before namespaces are made; the errors are those of
/// [`run()`].
pub(crate) fn check(args: &RunArgs) -> Result<()> {
    match Set::find(args)? {
        Some(set) => set.check(args),
        None => run::check(args),
    }
}

impl Set {
    /// The set of the given name; `None` when no set has it.
    ///
    /// # Errors
    ///
    /// A set's file that is wrong.
    pub(crate) fn find(args: &RunArgs) -> Result<Option<Self>> {
        if args.experiment.name.ends_with(".toml") {
            return Ok(None);
        }
        let catalogue = Catalogue::find(args.experiment.folder.as_deref())?;
        let manifest = Manifest::find(&catalogue, &args.experiment.name)?;
        Ok(manifest.map(|manifest| Self { catalogue, manifest }))
    }

    /// Whether the run is possible, checked before namespaces are made; the errors are those of
    /// [`run`](Self::run).
    pub(crate) fn check(&self, args: &RunArgs) -> Result<()> {
        netns::check_files([&args.experiment.out, &args.experiment.html].into_iter().flatten())?;
        netns::check_files(&args.resume)?;
        self.plans(args).map(drop)
    }

    /// Runs the set and prints the result; the verdict is that of its checks.
    pub(crate) fn run(&self, args: &RunArgs, output: &Output) -> Result<Verdict> {
        let args = &self.with_number(args);
        let plans = self.plans(args)?;
        if let Some(number) = args.draw_from {
            output::note(format!("drawn from {number}; --draw-from {number} draws the same again"));
        }
        if args.list {
            return self.list(&plans, output);
        }
        let started = Instant::now();
        let mut sink = Sink::open(args.experiment.out.as_deref(), output)?;
        let page = args.experiment.html.as_deref().map(PageFile::create).transpose()?;
        let mut known = Known::open(&args.resume, &plans.all)?;
        let keep = |run: &_| sink.put_to_file(&Record::Run(Clone::clone(run)));
        let runs = self.engine(args, &plans).carry_out(&mut known, keep)?;
        sink.close()?;
        if let Some(shard) = args.shard {
            output::note(shard.told(runs.iter().map(Vec::len).sum()));
            return Ok(Verdict::Good);
        }
        let results = plans.evaluate(runs, started);
        if self.manifest.checks.is_empty() {
            return self.tell_each(&results, page, output);
        }
        let scored = Scored::new(&plans, &results);
        let more = scored.more(args.on, &plans, started);
        scored.tell_all(args.on, &plans.policies, &more, output)?;
        self.keep_broken(args, &plans, &scored)?;
        let figures = check::figures(&self.manifest.checks, &plans.rungs, &results);
        output.lines(words::checks(&figures))?;
        let summary = Summary::new(&self.manifest.name, &figures, more);
        if let Some(page) = page {
            let (title, policies) = (&self.manifest.title, &plans.policies);
            let (scores, command) = (&scored.scores, &args.command());
            let drawn = Page { title, policies, scores, command, summary: &summary };
            page.write_text(&drawn.html())?;
        }
        let verdict = Verdict::of(summary.ok || args.policies.len() > 1);
        output.record("summary", &summary)?;
        Ok(verdict)
    }

    /// Prints the result of each scenario by its own checks.
    fn tell_each(
        &self,
        results: &[Results],
        page: Option<PageFile>,
        output: &Output,
    ) -> Result<Verdict> {
        for lines in results.iter().map(report::words::experiment) {
            output.lines(lines)?;
            output.line("")?;
        }
        page.map_or(Ok(()), |page| page.write(results))?;
        let figures: Vec<Figure> = results.iter().flat_map(of_checks).collect();
        let summary = Summary::new(&self.manifest.name, &figures, serde_json::json!({}));
        output.record("summary", &summary)?;
        Ok(Verdict::of(summary.ok))
    }

    /// The figures of the set's checks, with the default policy.
    pub(crate) fn figures(name: &str, is_quick: bool, on: On) -> Result<Vec<Figure>> {
        let set = Self::named(name)?;
        let args = set.with_number(&RunArgs { quick: is_quick, ..RunArgs::of(name, on) });
        set.figures_with(&args)
    }

    /// The figures of a set's checks of drawn scenarios, on the simulator, with links drawn from
    /// the day's number plus `beyond`.
    pub(crate) fn figures_of_drawn(name: &str, is_quick: bool, beyond: u64) -> Result<Vec<Figure>> {
        let mut set = Self::named(name)?;
        set.manifest.checks.retain(|check| check.drawn == Some(true));
        let of_day = set.with_number(&RunArgs { quick: is_quick, ..RunArgs::of(name, On::Sim) });
        let draw_from = of_day.draw_from.map(|number| number + beyond);
        let only = Some("/drawn/".to_owned());
        let mut figures = set.figures_with(&RunArgs { draw_from, only, ..of_day })?;
        let number = draw_from.unwrap_or_default();
        for figure in &mut figures {
            figure.name = format!("from {number}: {}", figure.name);
        }
        Ok(figures)
    }

    fn figures_with(&self, args: &RunArgs) -> Result<Vec<Figure>> {
        let plans = self.plans(args)?;
        let started = Instant::now();
        let runs = self.engine(args, &plans).carry_out(&mut Known::default(), |_| Ok(()))?;
        let results = plans.evaluate(runs, started);
        let scored = Scored::new(&plans, &results);
        let mut figures = check::figures(&self.manifest.checks, &plans.rungs, &results);
        figures.extend(args.draw_from.map(|number| Figure::count("drawn from", number)));
        let own: Vec<&Score> = scored.scores.iter().flatten().collect();
        figures.push(Figure::count("scenarios", own.len() as u64));
        for (score, what) in broken(&own) {
            let why = format!("{what}: {}", score.reason());
            figures.push(Figure::text(score.rung.clone(), why));
        }
        Ok(figures)
    }

    /// The figures of the checks of the scenarios for a promise, and those of each cell where the
    /// set says so.
    pub(crate) fn of_promise(name: &str, promise: &str, is_quick: bool) -> Result<Vec<Figure>> {
        let set = Self::named(name)?;
        let mut figures = Vec::new();
        for (scenario, member) in set.manifest.scenarios_of(promise, &set.catalogue)? {
            let seeds = set.manifest.seeds(Some(member), is_quick, member.on);
            let args = RunArgs::of("", member.on);
            let args = member.args(&args, &scenario, seeds, member.settings(is_quick));
            let results = run::results(&args)?;
            figures.extend(if member.cells { figures_of(&results) } else { of_checks(&results) });
        }
        Ok(figures)
    }

    fn named(name: &str) -> Result<Self> {
        let set = Self::find(&RunArgs::of(name, On::Sim))?;
        set.with_context(|| format!("no set is called \"{name}\"; see scenarios/{SETS}"))
    }

    fn plans(&self, args: &RunArgs) -> Result<Plans> {
        let seeds = |member: Option<&Member>| {
            args.seeds.unwrap_or_else(|| self.manifest.seeds(member, args.quick, args.on))
        };
        let only = args.only.as_deref().unwrap_or("");
        let mut named = self.manifest.scenarios(&self.catalogue)?;
        named.retain(|(name, _)| name.contains(only));
        // A promise that names both back-ends is run on the requested one.
        let on_both = named.clone();
        let has_twin = |name: &str| on_both.iter().filter(|(known, _)| known == name).count() > 1;
        named.retain(|(name, member)| member.on == args.on || !has_twin(name));
        let step = if args.quick { self.manifest.quick_every } else { 1 };
        let number = args.draw_from.unwrap_or(1);
        let mut drawn = Vec::new();
        for (name, member) in named {
            let all = member.drawn_from(number).into_iter();
            drawn.extend(all.map(|settings| (name.clone(), member, settings)));
        }
        let mut plans = Plans {
            policies: args.policies(),
            all: Vec::new(),
            rungs: Vec::new(),
            refused: Vec::new(),
            seeds: seeds(None),
        };
        for policy in args.policies() {
            for (name, member, drawn) in drawn.iter().step_by(step) {
                let settings =
                    [drawn.clone(), member.settings(args.quick), policy.settings()].concat();
                let own = member.args(args, name, seeds(Some(member)), settings);
                plans.add(PreparedRun::read(&own)?, args.on);
            }
        }
        if plans.all.is_empty() {
            let set = &self.manifest.name;
            match plans.refused.first() {
                Some(Missing { rung, why }) => bail!("none of these can run here: {rung}: {why}"),
                None => bail!(
                    "no scenario of {set} on {} is called *{only}*; plait-lab run {set} --list \
                     --on {} prints all",
                    args.on.name(),
                    args.on.name()
                ),
            }
        }
        words::missing(&plans.refused).iter().for_each(output::note);
        Ok(plans)
    }

    /// The runs of these plans; with checks over all scenarios, those that can be measured count.
    fn engine<'a>(&'a self, args: &RunArgs, plans: &'a Plans) -> Engine<'a> {
        Engine {
            name: &self.manifest.name,
            on: args.on,
            plans: &plans.all,
            shard: args.shard,
            leaves_out: !self.manifest.checks.is_empty(),
        }
    }

    /// Sets the number from which links are drawn: the day's if none is given.
    fn with_number(&self, args: &RunArgs) -> RunArgs {
        let of_the_day = || jiff::Zoned::now().strftime("%Y%m%d00").to_string().parse().ok();
        let draws = self.manifest.draws();
        let draw_from = args.draw_from.or_else(|| if draws { of_the_day() } else { None });
        RunArgs { draw_from, ..args.clone() }
    }

    /// Writes drawn scenarios that break the promise to files, so that they can be run again and
    /// become rungs.
    fn keep_broken(&self, args: &RunArgs, plans: &Plans, scored: &Scored) -> Result<()> {
        let own: Vec<&Score> = scored.scores.iter().filter_map(|scores| scores.first()).collect();
        for (score, what) in broken(&own) {
            let is_its = |plan: &&PreparedRun| Rung::of(plan.scenario()).rung == score.rung;
            let drawn = score.rung.contains('@').then(|| plans.all.iter().find(is_its));
            let Some(plan) = drawn.flatten() else { continue };
            let text = plan.text(&self.catalogue)?;
            let file = args.keep.join(format!("{}.toml", score.rung.replace('/', "-")));
            fs::create_dir_all(&args.keep)
                .and_then(|()| fs::write(&file, format!("# {what}\n{text}")))
                .with_context(|| format!("{}: a drawn rung cannot be kept", file.display()))?;
            output::note(format!("{}: {what}; kept as {}", score.rung, file.display()));
        }
        Ok(())
    }

    fn list(&self, plans: &Plans, output: &Output) -> Result<Verdict> {
        output.lines(words::list(&plans.rungs))?;
        output.records("rung", &plans.rungs)?;
        let more = serde_json::json!({ "rungs": plans.rungs.len() });
        output.record("summary", &Summary::new(&self.manifest.name, &[], more))?;
        Ok(Verdict::Good)
    }
}

impl Plans {
    /// Adds a scenario, unless it is not meant for the back-end.
    fn add(&mut self, plan: PreparedRun, on: On) {
        let rung = Rung::of(plan.scenario());
        let is_first = !self.rungs.iter().any(|known| known.rung == rung.rung);
        if on == On::Netns {
            if !rung.on_netns {
                return;
            }
            if let Err(error) = plan.check_netns() {
                if is_first && !self.refused.iter().any(|known| known.rung == rung.rung) {
                    self.refused.push(Missing { rung: rung.rung, why: format!("{error:#}") });
                }
                return;
            }
        }
        if is_first {
            self.rungs.push(rung);
        }
        self.all.push(plan);
    }

    /// Evaluates the runs, which are by plan.
    fn evaluate(&self, runs: Vec<Vec<RunRecord>>, started: Instant) -> Vec<Results> {
        self.all.iter().zip(runs).map(|(plan, runs)| plan.evaluate(runs, started)).collect()
    }
}

/// The scores of all runs.
struct Scored {
    /// By scenario, then by policy; the worst first.
    scores: Vec<Vec<Score>>,
    missing: Vec<Missing>,
}

impl Scored {
    fn new(plans: &Plans, results: &[Results]) -> Self {
        let mut scored = Self { scores: Vec::new(), missing: plans.refused.clone() };
        for (at, rung) in plans.rungs.iter().enumerate() {
            let own = results.iter().skip(at).step_by(plans.rungs.len());
            match own.map(|results| Score::new(rung, &results.runs)).collect::<Option<Vec<_>>>() {
                Some(scores) => scored.scores.push(scores),
                None => scored.missing.push(Missing {
                    rung: rung.rung.clone(),
                    why: "there is no run of the bond and of each link alone".to_owned(),
                }),
            }
        }
        let worst =
            |scores: &[Score]| scores.iter().map(Score::ratio).fold(f64::INFINITY, f64::min);
        scored.scores.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        scored
    }

    fn more(&self, on: On, plans: &Plans, started: Instant) -> More {
        More {
            on: on.name(),
            machine: Machine::detect(),
            rungs: self.scores.len(),
            missing: self.missing.clone(),
            seeds: plans.seeds,
            elapsed_s: started.elapsed().as_secs_f64(),
        }
    }

    /// Prints the results of all policies, one by one and side by side.
    fn tell_all(&self, on: On, policies: &[Policy], more: &More, output: &Output) -> Result<()> {
        for (at, policy) in policies.iter().enumerate() {
            let own: Vec<&Score> = self.scores.iter().map(|scores| &scores[at]).collect();
            tell(on, policy, &own, output)?;
        }
        if policies.len() > 1 {
            output.line(format!("side by side, {}", words::kind(on)))?;
            output.lines(words::side_by_side(policies, &self.scores))?;
            output.line("")?;
        }
        output.lines(words::missing(&more.missing))?;
        output.line(format!("{:.0} s; {}", more.elapsed_s, words::machine(on, &more.machine)))
    }
}

/// Prints the result of one policy.
fn tell(on: On, policy: &Policy, scores: &[&Score], output: &Output) -> Result<()> {
    output.line(format!("policy {policy}, {}", words::kind(on)))?;
    for part in [words::scores(scores), words::sums(scores), words::promise(scores)] {
        output.lines(part)?;
        output.line("")?;
    }
    for score in scores {
        let record = RungRecord {
            on: on.name(),
            policy: policy.name(),
            aggregation_ratio: score.ratio(),
            aggregation_benefit: score.benefit(),
            against_best: score.against_best(),
            score,
        };
        output.record("rung", &record)?;
    }
    let record = PolicyRecord { on: on.name(), policy: policy.name(), sum: Sum::of(scores) };
    output.record("policy", &record)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_ladder_has_more_than_a_hundred_rungs_and_each_its_case() {
        let args = RunArgs::of("ladder", On::Sim);
        let set = Set::find(&args).unwrap().unwrap();
        let plans = set.plans(&args).unwrap();
        let names: BTreeSet<&str> = plans.rungs.iter().map(|rung| rung.rung.as_str()).collect();
        let cases: BTreeSet<(&[String], &str)> =
            plans.rungs.iter().map(|rung| (rung.links.as_slice(), rung.load.as_str())).collect();
        assert!(names.len() >= 132 && names.len() == plans.rungs.len(), "{}", names.len());
        for rung in &plans.rungs {
            assert!(rung.rung.matches('/').count() == 1 && !rung.stands_for.is_empty());
            assert!((2..=4).contains(&rung.links.len()), "{}", rung.rung);
        }
        // Events of a link are not part of its description, so a few descriptions are equal.
        assert!(cases.len() >= 110, "{} of {}", cases.len(), names.len());
        let count = |is: fn(&Rung) -> bool| plans.rungs.iter().filter(|rung| is(rung)).count();
        assert_eq!((count(|rung| rung.on_netns), count(|rung| rung.steady)), (14, 44));
    }

    #[test]
    fn a_set_without_a_scenario_of_the_name_says_so() {
        let mut args = RunArgs::of("ladder", On::Sim);
        args.only = Some("nothing-like-it".into());
        let set = Set::find(&args).unwrap().unwrap();
        let told = set.plans(&args).err().unwrap().to_string();
        assert!(told.contains("*nothing-like-it*") && told.contains("--list"), "{told}");
        assert!(Set::find(&RunArgs::of("002/tcp-k", On::Sim)).unwrap().is_none());
    }
}
