//! bond.1: one CUBIC flow through a bond with plait's defaults, against the links alone.

use anyhow::{Context, Result};

use super::{Effort, Figure};
use crate::emulator::Lateness;
use crate::measure::{self, Span, TcpFigures, aggregation_benefit, aggregation_ratio, median_tcp};
use crate::output::Progress;
use crate::site::{Carrier, on_site};
use crate::topology::LinkSpec;

const RATIO_MIN: f64 = 0.9;
const SOURCE: &str = "A_r as 003 §4.1, links alone through plait";
const SET_UP_SECONDS: u32 = 2;

/// 002's links.
const LIKE: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
/// A link with a fifth of the other's rate and three times its delay.
const UNLIKE: [LinkSpec; 2] =
    [LinkSpec::new("fast", 50, 20, 20), LinkSpec::new("slow", 10, 60, 60)];

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let runs = 2 * 5 * u32::try_from(effort.runs)?;
    let total = std::time::Duration::from_secs(u64::from(effort.seconds + SET_UP_SECONDS));
    let mut progress = Progress::new(runs as usize, total * runs);
    let mut lateness = Lateness::default();
    let mut figures = Vec::new();
    for (links, has_bar) in [(LIKE, true), (UNLIKE, false)] {
        figures.extend(compare(links, has_bar, effort, &mut progress, &mut lateness)?);
    }
    let late = lateness.summary();
    let value = format!("{} / {} / {} us", late.mean_us, late.p99_us, late.max_us);
    figures.push(Figure::text("links' lateness: mean / 99th percentile / most", value));
    Ok(figures)
}

fn compare(
    links: [LinkSpec; 2],
    has_bar: bool,
    effort: Effort,
    progress: &mut Progress,
    lateness: &mut Lateness,
) -> Result<Vec<Figure>> {
    let names = links.map(|link| link.name);
    let rates = format!("{}+{}", links[0].rate_mbit, links[1].rate_mbit);
    let mut tcp = |what: &str, carrier: &Carrier| {
        median_of_runs(&links, what, carrier, effort, progress, lateness)
    };
    let mut figures = Vec::new();
    let mut alone = Vec::new();
    for name in names {
        let bare = tcp(&format!("{name}, bare"), &Carrier::Bare(name))?;
        let through = tcp(&format!("{name} through plait"), &Carrier::plait(&[name]))?;
        figures.push(Figure::mbit(format!("{rates}: {name}, bare"), bare.throughput_bps));
        figures
            .push(Figure::mbit(format!("{rates}: {name} through plait"), through.throughput_bps));
        alone.push(through.throughput_bps);
    }
    let bond = tcp(&format!("{rates} bonded"), &Carrier::plait(&names))?;
    figures.push(Figure::mbit(format!("{rates}: bond"), bond.throughput_bps));
    let benefit = aggregation_benefit(bond.throughput_bps, &alone);
    figures.push(Figure::number(format!("{rates}: A_b"), benefit as f64 / 1000.0, "ratio"));
    let ratio = aggregation_ratio(bond.throughput_bps, &alone);
    let figure = Figure::number(format!("{rates}: A_r"), ratio as f64 / 1000.0, "ratio");
    figures.push(if has_bar { figure.at_least(RATIO_MIN, SOURCE) } else { figure });
    Ok(figures)
}

/// The median run, each on a fresh network.
fn median_of_runs(
    links: &[LinkSpec],
    what: &str,
    carrier: &Carrier,
    effort: Effort,
    progress: &mut Progress,
    lateness: &mut Lateness,
) -> Result<TcpFigures> {
    let span = Span { seconds: effort.seconds, omit_seconds: 0 };
    median_tcp(effort.runs, || {
        let _step = progress.step(what, span.total());
        on_site(links, carrier, lateness, |site| measure::tcp(site.target(), span, "cubic"))
            .with_context(|| format!("while measuring {what}"))
    })
}
