//! `plait-lab search`: every sequence of actions on two or three gateways, up to a depth.

use anyhow::{Result, bail};
use plait_proto::faults::{Fault, Faults};
use plait_sim::search::{Action, Setup};
use serde::Serialize;

use crate::cli::SearchArgs;
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::output::{self, Meter, Output, Verdict};

mod breadth;
#[cfg(test)]
mod tests;

pub(crate) use breadth::{Bounds, Searched, in_minutes, search};

/// Faults that can be put back, by their names on the command line.
pub(crate) const FAULTS: [(&str, Fault); 4] = [
    ("one-name-for-two-bonds", Fault::OneNameForTwoBonds),
    ("unvalidated-is-not-silent", Fault::UnvalidatedIsNotSilent),
    ("silence-told-once", Fault::SilenceToldOnce),
    ("both-crossed-bonds-go", Fault::BothCrossedBondsGo),
];

#[derive(Serialize)]
struct More<'a> {
    machine: Machine,
    setups: &'a [Searched],
}

pub(crate) fn run(args: &SearchArgs, output: &Output) -> Result<Verdict> {
    let setups = select(&args.setups)?;
    let put_back = put_back(args.put_back.as_deref())?;
    if let Some(actions) = &args.replay {
        let [setup] = setups.as_slice() else {
            bail!("--replay needs the --setup in which the sequence was found");
        };
        return replay(*setup, put_back, actions, output);
    }
    let bounds = Bounds {
        depth: args.depth,
        faults: args.faults,
        threads: args.threads,
        until: args.minutes.map(in_minutes),
        violations: args.violations,
    };
    let mut all = Vec::new();
    for setup in setups {
        output::note(format!("search: {}, {}", setup.name, setup.about));
        let searched = search_and_tell(setup, put_back, &bounds);
        output.line(line(&searched))?;
        for found in &searched.found {
            output.line(format!(
                "  {}\n    {}\n    again: {}",
                found.actions, found.violation, found.command
            ))?;
            output.record("violation", found)?;
        }
        output.record("setup", &searched)?;
        all.push(searched);
    }
    let figures = figures(&all);
    for figure in &figures {
        let (value, band, verdict) = (figure.value_text(), figure.band_text(), figure.verdict());
        output.line(format!("{}: {value} {band} {verdict}", figure.name).trim_end())?;
    }
    let machine = Machine::detect();
    output.line(machine.sentence())?;
    let summary = Summary::new("search", &figures, More { machine, setups: &all });
    output.record("summary", &summary)?;
    Ok(Verdict::of(summary.ok))
}

fn select(names: &[String]) -> Result<Vec<Setup>> {
    if names.is_empty() {
        return Ok(Setup::ALL.to_vec());
    }
    let setup = |name: &String| match Setup::named(name) {
        Some(setup) => Ok(setup),
        None => {
            let known: Vec<_> = Setup::ALL.iter().map(|setup| setup.name).collect();
            bail!("there is no setup {name}; there are {}", known.join(", "))
        }
    };
    names.iter().map(setup).collect()
}

fn put_back(name: Option<&str>) -> Result<Faults> {
    let Some(name) = name else { return Ok(Faults::default()) };
    let Some((_, fault)) = FAULTS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = FAULTS.iter().map(|(name, _)| *name).collect();
        bail!("there is no fault {name} to put back; there are {}", known.join(", "))
    };
    Ok(Faults::with(*fault))
}

/// Searches one setup, and shows the progress of each depth: the number of states of the next one
/// is not known in advance.
pub(crate) fn search_and_tell(setup: Setup, put_back: Faults, bounds: &Bounds) -> Searched {
    let mut meter = None;
    search(setup, put_back, bounds, |searched, done, jobs| {
        let depth = searched.depth + 1;
        let of_depth = || {
            let name = format!("search: {}, depth {depth} of {}", setup.name, bounds.depth);
            (depth, Meter::new(name, "parts", jobs))
        };
        let (known, meter) = meter.get_or_insert_with(of_depth);
        if *known != depth {
            (*known, *meter) = of_depth();
        }
        meter.reach(done);
    })
}

fn line(searched: &Searched) -> String {
    let Searched { setup, depth, states, distinct, elapsed_s, found, .. } = searched;
    let rate = *states as f64 / elapsed_s.max(0.001);
    format!(
        "{setup}: depth {depth}, {states} states, {distinct} distinct, {} violations, \
         {elapsed_s:.1} s, {rate:.0} states/s{}",
        found.len(),
        if searched.cut_short { ", out of time" } else { "" }
    )
}

/// The figures of several setups.
pub(crate) fn figures(all: &[Searched]) -> Vec<Figure> {
    let sum = |of: fn(&Searched) -> u64| all.iter().map(of).sum::<u64>();
    let depth = all.iter().map(|searched| searched.depth).min().unwrap_or(0);
    let elapsed_s: f64 = all.iter().map(|searched| searched.elapsed_s).sum();
    vec![
        Figure::count("setups", all.len() as u64),
        Figure::count("depth that was searched whole", depth.into()),
        Figure::count("states", sum(|searched| searched.states)),
        Figure::count("distinct states", sum(|searched| searched.distinct)),
        Figure::count("states watched until they had healed", sum(|searched| searched.healed)),
        Figure::number("time", elapsed_s, "s"),
        Figure::count("violations", sum(|searched| searched.found.len() as u64))
            .exactly(0.0, "what is sent arrives within 10 s of the last fault"),
    ]
}

/// Replays one sequence, with the gateways' status after each action.
fn replay(setup: Setup, put_back: Faults, text: &str, output: &Output) -> Result<Verdict> {
    let actions: Vec<Action> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let mut world = setup.replay(put_back, &[]);
    let tell = |what: &str, world: &mut plait_sim::search::World| {
        let at_s = world.now().as_nanos() as f64 / 1e9;
        let status = world.status();
        output.line(format!("{at_s:>10.3}  {what:<20} {status}"))
    };
    tell("start", &mut world)?;
    for action in &actions {
        world.apply(*action);
        tell(&action.to_string(), &mut world)?;
    }
    let healed = world.heal();
    tell("healed", &mut world)?;
    match &healed {
        Ok(()) => output.line("what was sent after the last fault arrived")?,
        Err(violation) => output.line(violation.to_string())?,
    }
    let figures = [Figure::count("violations", u64::from(healed.is_err()))
        .exactly(0.0, "what is sent arrives within 10 s of the last fault")];
    let summary =
        Summary::new("search", &figures, More { machine: Machine::detect(), setups: &[] });
    output.record("summary", &summary)?;
    Ok(Verdict::of(summary.ok))
}
