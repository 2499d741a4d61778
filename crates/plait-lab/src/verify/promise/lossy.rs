//! promise.4: links that lose packets at random.

use anyhow::Result;
use plait_sim::link::{LinkConfig, Loss};
use plait_sim::ratio::Ratio;

use super::super::{Effort, Figure};
use super::rounds::{self, LIKE, Rounds, median_bps, rate_figures, ratio};
use crate::measure::Span;
use crate::site::{Carrier, Site};
use crate::topology::LinkSpec;

const GOOD_SOURCE: &str = "issue 5, promise 4: never slower than the good link";
const OF_GOOD_MIN: f64 = 0.95;
const SUM_SOURCE: &str = "issue 5, promise 4, of the rates after loss and framing";
const OF_SUM_MIN: f64 = 0.85;
/// What plait's framing leaves of a link's rate for TCP's payload.
const AFTER_FRAMING: f64 = 0.959;
const HEAVY_PERCENT: u32 = 20;
const LIGHT_PERCENT: u32 = 1;
/// Links that both lose a little.
const EQUAL: [LinkSpec; 2] =
    [LinkSpec::new("first", 50, 20, 20), LinkSpec::new("second", 50, 20, 20)];
/// The good link bare and through plait, MPTCP, the bond: for either link.
const HEAVY_CASES: u32 = 2 * 4;
/// A bare link, MPTCP, the bond.
const LIGHT_CASES: u32 = 3;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let span = rounds::span(effort);
    let mut rounds = Rounds::new(effort, HEAVY_CASES + LIGHT_CASES, span.total())?;
    let [first, second] = LIKE.map(|link| link.name);
    let mut figures = one_loses(first, second, span, &mut rounds)?;
    figures.extend(one_loses(second, first, span, &mut rounds)?);
    figures.extend(both_lose(span, &mut rounds)?);
    figures.extend(rounds.machine_figures());
    Ok(figures)
}

fn one_loses(
    lossy: &'static str,
    good: &'static str,
    span: Span,
    rounds: &mut Rounds,
) -> Result<Vec<Figure>> {
    let set = format!("{HEAVY_PERCENT} % lost on {lossy}");
    let carriers = [
        (format!("{set}: {good}, bare"), Carrier::Bare(good)),
        (format!("{set}: {good} through plait"), Carrier::plait(&[good])),
        (format!("{set}: MPTCP over both bare links"), Carrier::Mptcp),
        (format!("{set}: bond"), Carrier::plait(&LIKE.map(|link| link.name))),
    ];
    let results = rounds.measure(&LIKE, &carriers, |site| {
        lose(site, &[lossy], HEAVY_PERCENT)?;
        rounds::download(site, span)
    })?;
    let mut figures = Vec::new();
    for ((what, _), downloads) in carriers.iter().zip(&results) {
        figures.extend(rate_figures(what, downloads));
    }
    let (alone, bond) = (median_bps(&results[1]), median_bps(&results[3]));
    let of_good = ratio(format!("{set}: bond, of {good} alone through plait"), bond, alone);
    figures.push(of_good.at_least(OF_GOOD_MIN, GOOD_SOURCE));
    Ok(figures)
}

fn both_lose(span: Span, rounds: &mut Rounds) -> Result<Vec<Figure>> {
    let names = EQUAL.map(|link| link.name);
    let set = format!("{LIGHT_PERCENT} % lost on both of {}", rounds::rates(&EQUAL));
    let carriers = [
        (format!("{set}: a link, bare"), Carrier::Bare(names[0])),
        (format!("{set}: MPTCP over the bare links"), Carrier::Mptcp),
        (format!("{set}: bond"), Carrier::plait(&names)),
    ];
    let results = rounds.measure(&EQUAL, &carriers, |site| {
        lose(site, &names, LIGHT_PERCENT)?;
        rounds::download_with_pings(site, span)
    })?;
    let mut figures = Vec::new();
    let mut bond_bps = 0;
    for ((what, _), runs) in carriers.iter().zip(results) {
        let (downloads, pings): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        figures.extend(rate_figures(what, &downloads));
        let ping_ms = rounds::percentile_over_runs(&pings, 50);
        figures.push(Figure::number(format!("{what}: ping, median"), ping_ms, "ms"));
        bond_bps = median_bps(&downloads);
    }
    let rate_mbit: u64 = EQUAL.iter().map(|link| link.rate_mbit).sum();
    let arriving = 1.0 - f64::from(LIGHT_PERCENT) / 100.0;
    let most_bps = rate_mbit as f64 * 1e6 * arriving * AFTER_FRAMING;
    let name = format!("{set}: bond, of what loss and framing leave");
    let of_sum = Figure::number(name, bond_bps as f64 / most_bps, "ratio");
    figures.push(of_sum.at_least(OF_SUM_MIN, SUM_SOURCE));
    Ok(figures)
}

/// Lets links lose packets, in both directions, from now on.
fn lose(site: &Site<'_>, links: &[&str], percent: u32) -> Result<()> {
    let loss = Loss::Bernoulli(Ratio::from_percent(percent));
    for name in links {
        let emulator = &site.topology.link(name)?.emulator;
        emulator.reconfigure(|config| LinkConfig { loss, ..config });
    }
    Ok(())
}
