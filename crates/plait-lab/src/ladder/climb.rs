//! All runs of a set of rungs: on all cores in virtual time, one after the other in namespaces.
//! What several rungs share, such as one link alone under the same load, is run once.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::rung::{Link, Rung};
use super::score::Score;
use super::trial::{Carrier, Found, Times, Trial};
use crate::cli::On;
use crate::output::{self, Progress};
use crate::policy::Policy;
use crate::run::{Meter, is_too_slow, pool};

/// How thoroughly to climb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Effort {
    /// Seeds, from 1 on.
    pub(crate) seeds: u64,
    /// Of rungs on which nothing happens at a time of its own.
    pub(crate) times: Times,
    /// Of the others.
    pub(crate) times_of_events: Times,
    /// Whether each link is run without plait too, to stand beside the figures.
    pub(crate) with_bare: bool,
}

impl Effort {
    /// For a claim.
    pub(crate) const FULL: Self = Self {
        seeds: 5,
        times: Times { whole_s: 30, warmup_s: 10 },
        times_of_events: Times { whole_s: 45, warmup_s: 10 },
        with_bare: false,
    };
    /// For a claim in namespaces, where a second takes a second.
    pub(crate) const FULL_ON_NETNS: Self = Self { seeds: 3, ..Self::FULL };
    /// For trying things out.
    pub(crate) const QUICK: Self = Self {
        seeds: 1,
        times: Times { whole_s: 16, warmup_s: 6 },
        times_of_events: Times { whole_s: 40, warmup_s: 10 },
        with_bare: false,
    };

    pub(super) fn times_of(&self, rung: &Rung) -> Times {
        if rung.has_events() { self.times_of_events } else { self.times }
    }
}

/// A rung without figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Missing {
    pub(crate) rung: &'static str,
    pub(crate) why: String,
}

/// What all runs came to.
#[derive(Debug, Default)]
pub(super) struct Climbed {
    /// By rung, then by policy.
    pub(super) scores: Vec<Vec<Score>>,
    pub(super) missing: Vec<Missing>,
}

/// Runs every rung under every policy in virtual time: scores by rung, then by policy.
///
/// # Errors
///
/// A run that the simulator refuses.
pub(crate) fn climb(
    rungs: &[Rung],
    policies: &[Policy],
    effort: Effort,
) -> Result<Vec<Vec<Score>>> {
    Ok(climb_on(On::Sim, rungs, policies, effort)?.scores)
}

/// Parts the rungs that the namespaces can run from those that this kernel lacks something for.
pub(super) fn part_for_netns(
    rungs: &[Rung],
    policies: &[Policy],
    effort: Effort,
) -> (Vec<Rung>, Vec<Missing>) {
    let (mut good, mut missing) = (Vec::new(), Vec::new());
    for rung in rungs {
        match bond_of(rung, 0, effort).check_netns(policies) {
            Ok(()) => good.push(*rung),
            Err(error) => missing.push(Missing { rung: rung.name, why: format!("{error:#}") }),
        }
    }
    (good, missing)
}

/// The run of a rung's bond.
pub(super) fn bond_of(rung: &Rung, policy: usize, effort: Effort) -> Trial {
    let (carrier, times) = (Carrier::Bond(policy), effort.times_of(rung));
    Trial { carrier, links: rung.links.to_vec(), load: rung.load, times }
}

/// Runs every rung under every policy on a back-end.
///
/// # Errors
///
/// A run that the back-end refuses.
pub(super) fn climb_on(
    on: On,
    rungs: &[Rung],
    policies: &[Policy],
    effort: Effort,
) -> Result<Climbed> {
    let mut plan = Plan::new(effort.seeds);
    let places: Vec<Vec<Places>> = rungs
        .iter()
        .map(|rung| (0..policies.len()).map(|policy| plan.add(rung, policy, effort)).collect())
        .collect();
    let found = plan.carry_out(on, policies)?;
    let mut climbed = Climbed::default();
    for (rung, places) in rungs.iter().zip(&places) {
        let scores: Option<Vec<Score>> =
            places.iter().map(|own| score(rung, own, &found)).collect();
        match scores {
            Some(scores) => climbed.scores.push(scores),
            None => {
                let why =
                    "the machine kept up with no run of the bond or of a link alone".to_owned();
                climbed.missing.push(Missing { rung: rung.name, why });
            }
        }
    }
    Ok(climbed)
}

/// `None` when there is no run of the bond or of a link alone.
fn score(rung: &Rung, places: &Places, found: &[Vec<Found>]) -> Option<Score> {
    let of = |at: &usize| found[*at].as_slice();
    let alone: Vec<&[Found]> = places.alone.iter().map(of).collect();
    let bare: Vec<&[Found]> = places.bare.iter().map(of).collect();
    let bond = of(&places.bond);
    let is_known = !bond.is_empty() && alone.iter().all(|found| !found.is_empty());
    is_known.then(|| Score::new(rung, bond, &alone, &bare))
}

/// Where a rung's runs stand in a plan.
#[derive(Debug)]
struct Places {
    bond: usize,
    alone: Vec<usize>,
    bare: Vec<usize>,
}

/// Trials, each once.
#[derive(Debug)]
struct Plan {
    seeds: u64,
    places: BTreeMap<Trial, usize>,
    trials: Vec<Trial>,
}

impl Plan {
    fn new(seeds: u64) -> Self {
        Self { seeds, places: BTreeMap::new(), trials: Vec::new() }
    }

    fn add(&mut self, rung: &Rung, policy: usize, effort: Effort) -> Places {
        let times = effort.times_of(rung);
        let mut place = |carrier: Carrier, links: &[Link]| {
            let links = links.to_vec();
            self.place(Trial { carrier, links, load: rung.load, times })
        };
        let bond = place(Carrier::Bond(policy), rung.links);
        let mut each = |carrier| {
            let links = rung.links.iter();
            links.map(|link| place(carrier, std::slice::from_ref(link))).collect()
        };
        let alone = each(Carrier::Bond(policy));
        let bare = if effort.with_bare { each(Carrier::Bare) } else { Vec::new() };
        Places { bond, alone, bare }
    }

    fn place(&mut self, trial: Trial) -> usize {
        *self.places.entry(trial).or_insert_with_key(|trial| {
            self.trials.push(trial.clone());
            self.trials.len() - 1
        })
    }

    /// Bare links stand beside the figures and decide nothing: one seed has to do.
    fn seeds_of(&self, trial: &Trial) -> u64 {
        if trial.carrier == Carrier::Bare { 1 } else { self.seeds }
    }

    /// What each trial found with each seed; without those that the machine did not keep up with.
    fn carry_out(&self, on: On, policies: &[Policy]) -> Result<Vec<Vec<Found>>> {
        let mut jobs = Vec::new();
        for (at, trial) in self.trials.iter().enumerate() {
            jobs.extend((1..=self.seeds_of(trial)).map(|seed| (at, seed)));
        }
        match on {
            On::Sim => self.simulate(&jobs, policies),
            On::Netns => self.measure(&jobs, policies),
        }
    }

    /// Runs on all cores.
    fn simulate(&self, jobs: &[(usize, u64)], policies: &[Policy]) -> Result<Vec<Vec<Found>>> {
        let mut found = vec![Vec::new(); self.trials.len()];
        let mut meter = Meter::new("ladder", jobs.len(), pool::workers(jobs.len()));
        let work = |job: usize| {
            let (at, seed) = jobs[job];
            self.trials[at].run(On::Sim, policies, seed)
        };
        let mut taken = 0;
        pool::in_order(jobs.len(), work, |result: Option<Result<Found>>| -> Result<()> {
            let Some(result) = result else {
                meter.finished_one();
                return Ok(());
            };
            found[jobs[taken].0].push(result?);
            taken += 1;
            Ok(())
        })?;
        meter.close();
        Ok(found)
    }

    /// Runs one after the other: side by side they would measure each other.
    fn measure(&self, jobs: &[(usize, u64)], policies: &[Policy]) -> Result<Vec<Vec<Found>>> {
        let time = |(at, _): &(usize, u64)| self.trials[*at].run_time(policies);
        let total: Duration = jobs.iter().map(time).sum();
        output::note(estimate(jobs.len(), total));
        let mut progress = Progress::new(jobs.len(), total);
        let mut found = vec![Vec::new(); self.trials.len()];
        for job in jobs {
            let (at, seed) = *job;
            let what = format!("ladder, {}, seed {seed}", self.trials[at].describe(policies));
            let step = progress.step(&what, time(job));
            let result = self.trials[at].run(On::Netns, policies, seed);
            drop(step);
            match result {
                Err(error) if is_too_slow(&error) => output::note(format!("{error:#}; left out")),
                result => found[at].push(result?),
            }
        }
        Ok(found)
    }
}

/// Said before anything is measured.
fn estimate(runs: usize, total: Duration) -> String {
    let minutes = total.as_secs().div_ceil(60);
    format!("ladder on netns: {runs} runs, one after the other, about {minutes} min in all")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::rung::{Inner, Load, rung};

    const DSL: Link = Link::new("dsl", 6, 20);
    const LTE: Link = Link::new("lte", 3, 40);
    const LOAD: Load = Load::tcp(Inner::Cubic);
    const EFFORT: Effort = Effort {
        seeds: 2,
        times: Times { whole_s: 6, warmup_s: 2 },
        times_of_events: Times { whole_s: 6, warmup_s: 2 },
        with_bare: true,
    };

    #[test]
    fn what_rungs_share_is_run_once() {
        let mut plan = Plan::new(5);
        let first = plan.add(&rung("a/one", "", &[DSL, LTE], LOAD), 0, EFFORT);
        let second = plan.add(&rung("a/two", "", &[LTE, DSL], LOAD), 0, EFFORT);
        assert_eq!(first.alone, [second.alone[1], second.alone[0]]);
        assert_eq!(plan.trials.len(), 2 + 2 + 2);
        let other = plan.add(&rung("a/one", "", &[DSL, LTE], LOAD), 1, EFFORT);
        assert!(other.alone != first.alone && other.bare == first.bare);
        let twice = plan.add(&rung("a/same", "", &[DSL, DSL], LOAD), 0, EFFORT);
        assert_eq!(twice.alone, [first.alone[0]; 2]);
    }

    #[test]
    fn a_rung_without_a_run_of_a_link_alone_has_no_score() {
        let mut plan = Plan::new(2);
        let own = rung("a/one", "", &[DSL, LTE], LOAD);
        let places = plan.add(&own, 0, EFFORT);
        let mut found = vec![vec![Found::default()]; plan.trials.len()];
        found[places.bare[0]].clear();
        assert!(score(&own, &places, &found).is_some(), "bare links decide nothing");
        found[places.alone[1]].clear();
        assert_eq!(score(&own, &places, &found), None);
    }

    #[test]
    fn rungs_that_the_namespaces_refuse_are_told_with_the_reason() {
        let quic = rung("quic/one", "", &[DSL, LTE], Load::quic(Inner::Cubic));
        let reno = rung("reno/one", "", &[DSL, LTE], Load::tcp(Inner::Reno));
        let policies = [Policy::default_policy()];
        let (good, missing) = part_for_netns(&[quic, reno], &policies, EFFORT);
        assert_eq!(good, [reno]);
        let told: Vec<(&str, bool)> =
            missing.iter().map(|one| (one.rung, one.why.contains("do not pace"))).collect();
        assert_eq!(told, [("quic/one", true)]);
    }

    #[test]
    fn the_estimate_counts_every_run_in_real_time() {
        assert_eq!(
            estimate(9, Duration::from_secs(301)),
            "ladder on netns: 9 runs, one after the other, about 6 min in all"
        );
        let trial = bond_of(&rung("a/one", "", &[DSL, LTE], LOAD), 0, EFFORT);
        let time = trial.run_time(&[Policy::default_policy()]);
        assert!((6.0..14.0).contains(&time.as_secs_f64()), "{time:?}");
    }

    #[test]
    fn a_rung_is_climbed_from_end_to_end() {
        let rungs = [rung("rates/small", "a small pair", &[DSL, LTE], LOAD)];
        let scores = climb(&rungs, &[Policy::default_policy()], EFFORT).unwrap();
        let score = &scores[0][0];
        assert!(score.runs == 2 && score.bare_mbit.iter().all(Option::is_some), "{score:?}");
        assert_eq!((score.alone_mbit.len(), score.bare_mbit.len(), score.shares.len()), (2, 2, 2));
        assert!(score.mbit > 2.0 && score.mbit < 9.0, "{score:?}");
        let sum: f64 = score.alone_mbit.iter().sum();
        assert!((score.ratio() - score.mbit / sum).abs() < 0.002, "{score:?}");
        assert!(score.ping_ms.unwrap() >= 20.0, "{score:?}");
    }
}
