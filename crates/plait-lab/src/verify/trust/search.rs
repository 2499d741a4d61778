//! trust.1: searches every sequence of actions on real endpoints, and must find faults that are put
//! back.

use anyhow::{Context, Result};
use plait_proto::faults::Faults;
use plait_sim::search::Setup;

use super::super::{Effort, Figure};
use crate::output;
use crate::search::{Bounds, FAULTS, Searched, search_and_tell};

const DEPTH: u32 = 12;
const FAULTS_MAX: u32 = 2;
const THREADS: usize = 2;
const STATES_MIN: f64 = 1e6;
const MINUTES_MAX: f64 = 10.0;
/// The setup in which each put-back fault shows, in the order of [`FAULTS`].
const SHOWN_IN: [&str; 4] = ["clone", "beginning", "bond", "mutual"];

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let is_quick = effort.is_quick();
    let depth = if is_quick { 4 } else { DEPTH };
    let bounds = Bounds { depth, faults: FAULTS_MAX, threads: THREADS, until: None, violations: 1 };
    let mut all = Vec::new();
    for setup in Setup::ALL {
        output::note(format!("trust.1: {}, {}", setup.name, setup.about));
        all.push(search_and_tell(setup, Faults::default(), &bounds));
    }
    let mut figures = whole(&all, is_quick);
    figures.extend(put_back(&Bounds { depth: DEPTH, ..bounds })?);
    Ok(figures)
}

/// The search of the unmodified core.
fn whole(all: &[Searched], is_quick: bool) -> Vec<Figure> {
    let sum = |of: fn(&Searched) -> u64| all.iter().map(of).sum::<u64>();
    let depth = all.iter().map(|searched| searched.depth).min().unwrap_or(0);
    let minutes = all.iter().map(|searched| searched.elapsed_s).sum::<f64>() / 60.0;
    let states = Figure::count("states", sum(|searched| searched.states));
    let depth = Figure::count("depth, with at most two faults", depth.into());
    let mut figures = vec![
        if is_quick { depth } else { depth.at_least(DEPTH.into(), "trust.1") },
        if is_quick { states } else { states.at_least(STATES_MIN, "trust.1") },
        Figure::count("distinct states", sum(|searched| searched.distinct)),
        Figure::count("states watched until they had healed", sum(|searched| searched.healed)),
        Figure::number("time", minutes, "min").at_most(MINUTES_MAX, "trust.1"),
        Figure::count("violations", sum(|searched| searched.found.len() as u64))
            .exactly(0.0, "what is sent arrives within 10 s of the last fault"),
    ];
    let found = all.iter().flat_map(|searched| &searched.found);
    figures.extend(found.map(|found| Figure::text(found.command.clone(), &*found.violation)));
    figures
}

/// Puts back each fixed fault alone: the shortest sequence that shows it.
fn put_back(bounds: &Bounds) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut found_count = 0;
    for ((name, fault), setup) in FAULTS.iter().zip(SHOWN_IN) {
        output::note(format!("trust.1: {name} put back"));
        let setup = Setup::named(setup).context("a setup of the search was renamed")?;
        let searched = search_and_tell(setup, Faults::with(*fault), bounds);
        let text = match searched.found.first() {
            Some(found) => format!("found by {}: {}", found.setup, found.actions),
            None => "not found".to_owned(),
        };
        found_count += searched.found.len().min(1) as u64;
        figures.push(Figure::text(format!("put back: {name}"), text));
    }
    let found = Figure::count("faults put back and found", found_count);
    figures.push(found.exactly(FAULTS.len() as f64, "trust.1"));
    Ok(figures)
}
