//! All runs of a set of rungs on all cores. What several rungs share, such as one link alone under
//! the same load, is run once.

use std::collections::BTreeMap;

use anyhow::Result;

use super::policy::Policy;
use super::rung::{Link, Rung};
use super::score::Score;
use super::trial::{Carrier, Found, Times, Trial};
use crate::run::{Meter, pool};

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

/// Runs every rung under every policy: scores by rung, then by policy.
///
/// # Errors
///
/// A run that the simulator refuses.
pub(crate) fn climb(
    rungs: &[Rung],
    policies: &[Policy],
    effort: Effort,
) -> Result<Vec<Vec<Score>>> {
    let mut plan = Plan::new(effort.seeds);
    let places: Vec<Vec<Places>> = rungs
        .iter()
        .map(|rung| (0..policies.len()).map(|policy| plan.add(rung, policy, effort)).collect())
        .collect();
    let found = plan.carry_out(policies)?;
    let score = |rung: &Rung, places: &Places| {
        let of = |at: usize| found[at].as_slice();
        let alone = places.alone.iter().map(|at| of(*at)).collect::<Vec<_>>();
        let bare = places.bare.iter().map(|at| of(*at)).collect::<Vec<_>>();
        Score::new(rung, of(places.bond), &alone, &bare)
    };
    let scores = rungs.iter().zip(&places);
    Ok(scores.map(|(rung, places)| places.iter().map(|own| score(rung, own)).collect()).collect())
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

    /// What each trial found with each seed.
    fn carry_out(&self, policies: &[Policy]) -> Result<Vec<Vec<Found>>> {
        let mut jobs = Vec::new();
        for (at, trial) in self.trials.iter().enumerate() {
            jobs.extend((1..=self.seeds_of(trial)).map(|seed| (at, seed)));
        }
        let mut found = vec![Vec::new(); self.trials.len()];
        let mut meter = Meter::new("ladder", jobs.len(), pool::workers(jobs.len()));
        let work = |job: usize| {
            let (at, seed) = jobs[job];
            self.trials[at].run(policies, seed)
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
    fn a_rung_is_climbed_from_end_to_end() {
        let rungs = [rung("rates/small", "a small pair", &[DSL, LTE], LOAD)];
        let scores = climb(&rungs, &[Policy::default_policy()], EFFORT).unwrap();
        let score = &scores[0][0];
        assert_eq!((score.alone_mbit.len(), score.bare_mbit.len(), score.shares.len()), (2, 2, 2));
        assert!(score.mbit > 2.0 && score.mbit < 9.0, "{score:?}");
        let sum: f64 = score.alone_mbit.iter().sum();
        assert!((score.ratio() - score.mbit / sum).abs() < 0.002, "{score:?}");
        assert!(score.ping_ms.unwrap() >= 20.0, "{score:?}");
    }
}
