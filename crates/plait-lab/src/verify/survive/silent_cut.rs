//! survive.1: a link that loses everything while its interface stays up.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::super::{Effort, Figure};
use super::repeats::Repeats;
use super::{
    LINKS, Times, USED_AGAIN_MS_MAX, count_alive, ensure_flowing, sleep_until, used_after,
};
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::measure::{Deliveries, Pinging, Stream, Target};
use crate::output::Progress;
use crate::topology::{AttachedLink, SERVER_V4, Topology};

const SOURCE: &str = "issue 4, promise 1";
const GAP_MS_MAX: f64 = 300.0;
const UNANSWERED_MAX: f64 = 3.0;

/// TCP connections at a time.
const STREAMS: usize = 4;
/// Time in which the connections fill both links.
const RAMP: Duration = Duration::from_secs(4);
const CUT: Duration = Duration::from_secs(4);
/// Time after the healing in which a gap counts, and before the next cut.
const HEALED: Duration = Duration::from_secs(4);

const PING_INTERVAL: Duration = Duration::from_millis(20);
const PINGS: u32 = 300;
const PINGS_BEFORE: Duration = Duration::from_secs(2);

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let cuts = if effort.runs == 1 { 1 } else { 5 };
    let loaded = RAMP + (CUT + HEALED) * cuts;
    let pinged = (PING_INTERVAL * PINGS + HEALED) * cuts;
    let mut progress = Progress::new(6, (loaded * 2 + pinged) * 2);
    let mut figures = Vec::new();
    let mut repeats = Repeats::default();
    for cut in LINKS.map(|link| link.name) {
        for (way, what) in [(Way::Down, "download"), (Way::Up, "upload")] {
            let what = format!("{cut} cut under {what}");
            let _step = progress.step(&what, loaded);
            let found = under_load(cut, way, cuts, &mut repeats).with_context(|| what.clone())?;
            figures.extend(found.figures(&what));
        }
        let what = format!("{cut} cut while idle");
        let _step = progress.step(&what, pinged);
        let found = while_idle(cut, &what, cuts, &mut repeats).with_context(|| what.clone())?;
        figures.extend(found);
    }
    figures.extend(repeats.figures());
    Ok(figures)
}

/// What the cuts of one link did to the connections.
#[derive(Debug, Default)]
struct UnderLoad {
    /// Of the connection that stood still longest.
    gaps_each: Times,
    /// Of all connections taken together.
    gaps_together: Times,
    used_again: Times,
    alive: u64,
}

impl UnderLoad {
    fn figures(&self, what: &str) -> Vec<Figure> {
        let mut figures = vec![
            Figure::count(format!("{what}: connections of {STREAMS} that live"), self.alive)
                .exactly(STREAMS as f64, SOURCE),
        ];
        let gap = format!("{what}: longest gap of a connection");
        figures.extend(self.gaps_each.figures(&gap, GAP_MS_MAX, SOURCE));
        let together = format!("{what}: longest gap of all together, worst");
        figures.push(Figure::number(together, self.gaps_together.worst_ms(), "ms"));
        let again = format!("{what}: healed link used again after");
        figures.extend(self.used_again.figures(&again, USED_AGAIN_MS_MAX, SOURCE));
        figures
    }
}

fn under_load(cut: &str, way: Way, cuts: u32, repeats: &mut Repeats) -> Result<UnderLoad> {
    let topology = Topology::build(&LINKS)?;
    let names = LINKS.map(|link| link.name);
    let setup = BondSetup::over(&names);
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    let start = Instant::now();
    let streams = Stream::start_several(&topology, way, STREAMS)?;
    std::thread::sleep(RAMP);
    ensure_flowing(&streams, start)?;
    let link = topology.link(cut)?;
    let mut found = UnderLoad::default();
    for _ in 0..cuts {
        let cut_once = || Ok(cut_once(link, way, &streams));
        let seen = repeats.undisturbed(&format!("{cut} cut"), cut_once)?;
        found.used_again.add(seen.used_again);
        found.gaps_each.add(seen.gap_each);
        found.gaps_together.add(seen.gap_together);
    }
    found.alive = count_alive(&streams);
    bond.ensure_both_run()?;
    drop(streams);
    bond.stop()?;
    Ok(found)
}

/// What one cut did.
struct Cut {
    used_again: Duration,
    gap_each: Duration,
    gap_together: Duration,
}

fn cut_once(link: &AttachedLink, way: Way, streams: &[Stream]) -> Cut {
    link.emulator.set_cut(true);
    let cut_at = Instant::now();
    sleep_until(cut_at + CUT);
    link.emulator.set_cut(false);
    let healed_at = Instant::now();
    let until = healed_at + HEALED;
    let used_again = used_after(link, way, until);
    sleep_until(until);
    let each: Vec<_> = streams.iter().map(Stream::deliveries).collect();
    let gaps = each.iter().map(|one| one.longest_gap(cut_at, until));
    Cut {
        used_again,
        gap_each: gaps.max().unwrap_or_default(),
        gap_together: Deliveries::merged(&each).longest_gap(cut_at, until),
    }
}

fn while_idle(cut: &str, what: &str, cuts: u32, repeats: &mut Repeats) -> Result<Vec<Figure>> {
    let topology = Topology::build(&LINKS)?;
    let customer = &topology.customer().netns;
    let names = LINKS.map(|link| link.name);
    let setup = BondSetup::over(&names);
    let mut bond = Bond::start(customer, &topology.provider, &setup)?;
    let emulator = &topology.link(cut)?.emulator;
    let mut unanswered = Vec::new();
    for _ in 0..cuts {
        unanswered.push(repeats.undisturbed(what, || {
            std::thread::sleep(HEALED);
            let target = Target { client: customer, server: SERVER_V4.into(), bind: None };
            let pings = Pinging::start(target, PING_INTERVAL, PINGS)?;
            std::thread::sleep(PINGS_BEFORE);
            emulator.set_cut(true);
            let answers = pings.answers();
            emulator.set_cut(false);
            Ok(answers?.unanswered())
        })?);
    }
    bond.stop()?;
    unanswered.sort_unstable();
    let worst = unanswered.last().copied().unwrap_or_default();
    let median = unanswered[unanswered.len() / 2];
    let name = format!("{what}: pings of {PINGS} unanswered");
    Ok(vec![
        Figure::count(format!("{name}, worst of {cuts}"), worst.into())
            .at_most(UNANSWERED_MAX, SOURCE),
        Figure::count(format!("{name}, median"), median.into()),
    ])
}
