//! promise.3: the round trip of a ping beside a download.

use std::time::Duration;

use anyhow::Result;

use super::super::{Effort, Figure};
use super::rounds::{self, LIKE, Rounds, UNLIKE, percentile_over_runs, rate_figures};
use crate::measure::Span;
use crate::site::Carrier;
use crate::topology::LinkSpec;

const SOURCE: &str = "issue 5, promise 3: the larger empty round trip and 20 ms";
const ADDED_MS_MAX: f64 = 20.0;
/// Two sets of links, each with ordinary queues and with a deep one.
const CASES: u32 = 4;
/// A bare link, MPTCP, the bond.
const CARRIERS: u32 = 3;
/// What a modem may hold.
const DEEP: Duration = Duration::from_secs(1);

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let span = rounds::span(effort);
    let mut rounds = Rounds::new(effort, CASES * CARRIERS, span.total())?;
    let mut figures = Vec::new();
    for links in [UNLIKE, LIKE] {
        let set = rounds::rates(&links);
        figures.extend(under_load(&set, links, links[0].name, span, &mut rounds)?);
        let deep = [links[0], LinkSpec { queue_time: DEEP, ..links[1] }];
        let set = format!("{set}, 1 s of buffer in {}", deep[1].name);
        figures.extend(under_load(&set, deep, deep[1].name, span, &mut rounds)?);
    }
    figures.extend(rounds.machine_figures());
    Ok(figures)
}

/// Pings through the bond, over the link `bare` while it is full, and over the first link while
/// MPTCP fills both.
fn under_load(
    set: &str,
    links: [LinkSpec; 2],
    bare: &'static str,
    span: Span,
    rounds: &mut Rounds,
) -> Result<Vec<Figure>> {
    let names = links.map(|link| link.name);
    let carriers = [
        (format!("{set}: {bare}, bare"), Carrier::Bare(bare)),
        (format!("{set}: {}, with MPTCP over both", names[0]), Carrier::Mptcp),
        (format!("{set}: bond"), Carrier::plait(&names)),
    ];
    let results =
        rounds.measure(&links, &carriers, |site| rounds::download_with_pings(site, span))?;
    let mut figures = Vec::new();
    for ((what, carrier), runs) in carriers.iter().zip(results) {
        let (downloads, pings): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        let median =
            Figure::number(format!("{what}: ping, median"), percentile_over_runs(&pings, 50), "ms");
        figures.push(match carrier {
            Carrier::Plait(_) => median.at_most(longest_ms(&links) + ADDED_MS_MAX, SOURCE),
            _ => median,
        });
        let name = format!("{what}: ping, 95th percentile");
        figures.push(Figure::number(name, percentile_over_runs(&pings, 95), "ms"));
        figures.extend(rate_figures(&format!("{what}: download"), &downloads));
    }
    Ok(figures)
}

/// The longest round trip of the empty links; one that varies counts with its middle.
fn longest_ms(links: &[LinkSpec]) -> f64 {
    let middles = links.iter().map(|link| (link.rtt_min_ms + link.rtt_max_ms) as f64 / 2.0);
    middles.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_round_trip_is_that_of_the_empty_links() {
        assert_eq!((longest_ms(&LIKE), longest_ms(&UNLIKE)), (35.0, 60.0));
    }
}
