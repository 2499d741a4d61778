//! promise.6: compares `plait measure` on emulated links with the lab's own figures of the same
//! links.
//!
//! Both measure through plait: the lab measures each link with a bond of only that link, and then
//! the bond of both, with iperf3. For comparison it shows the TCP payload rate computed from the
//! links' rates.

use std::time::Duration;

use anyhow::{Context, Result};

use super::super::{Effort, Figure, LATENESS};
use crate::emulator::Lateness;
use crate::gateway::{BondSetup, MeasuredView};
use crate::measure::{self, Span, aggregation_ratio, median};
use crate::output::Progress;
use crate::site::{Carrier, on_site};
use crate::topology::LinkSpec;

const SOURCE: &str = "promise.6";
/// Largest difference, as a share of the lab's figure.
const DIFFERENCE_MAX: f64 = 0.03;
/// TCP's payload of an outer packet of 1500 bytes: 60 are plait's framing over IPv4, 52 the inner
/// headers with timestamps.
const PAYLOAD: f64 = (1500.0 - 60.0 - 52.0) / 1500.0;
/// Slow start does not count, on either side.
const OMIT_SECONDS: u32 = 3;

/// 002's links.
const LIKE: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
/// A link with a fifth of the other's rate and three times its delay.
const UNLIKE: [LinkSpec; 2] =
    [LinkSpec::new("fast", 50, 20, 20), LinkSpec::new("slow", 10, 60, 60)];

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let seconds = effort.seconds().min(20);
    let run = Duration::from_secs(u64::from(seconds + 3));
    let rounds = u32::try_from(2 * effort.runs())?;
    let mut progress = Progress::new(4 * rounds as usize, run * 7 * rounds);
    let mut figures = Vec::new();
    let mut lateness = Lateness::default();
    for links in [UNLIKE, LIKE] {
        let rates = links.map(|link| link.rate_mbit.to_string()).join("+");
        let mut rows = Vec::new();
        for _ in 0..effort.runs() {
            rows.push(round(&links, seconds, &mut progress, &mut lateness)?);
        }
        figures.extend(compare(&rates, &links, &rows)?);
    }
    figures.push(Figure::text(LATENESS, lateness.summary().describe()));
    Ok(figures)
}

/// One round's figures in bits per second.
struct Round {
    measured: MeasuredView,
    /// The lab's: each link by itself, then the bond.
    alone_bps: Vec<u64>,
    bond_bps: u64,
}

fn round(
    links: &[LinkSpec; 2],
    seconds: u32,
    progress: &mut Progress,
    lateness: &mut Lateness,
) -> Result<Round> {
    let names = links.map(|link| link.name);
    let length = seconds.to_string();
    let limit = Duration::from_secs(u64::from(seconds + 4) * 5);
    let measured = {
        let _step = progress.step("plait measure", limit);
        let setup = BondSetup { measures: true, ..BondSetup::over(&names) };
        let carrier = Carrier::Plait(Box::new(setup));
        on_site(links, &carrier, lateness, |site| {
            let bond = site.bond.as_ref().context("plait carries")?;
            let arguments = ["--yes", "--seconds", &length, "--max-bytes", "4 GB"];
            bond.customer.measure(bond.customer_netns(), &arguments, limit)?.view()
        })?
    };
    let span = Span { seconds: seconds - OMIT_SECONDS, omit_seconds: OMIT_SECONDS };
    let mut tcp = |what: &str, over: &[&str]| -> Result<u64> {
        let _step = progress.step(what, span.total());
        let carrier = Carrier::plait(over);
        let site =
            on_site(links, &carrier, lateness, |site| measure::tcp(site.target(), span, "cubic"));
        Ok(site.with_context(|| what.to_owned())?.throughput_bps)
    };
    let alone_bps = names.iter().map(|name| tcp(name, &[name])).collect::<Result<Vec<_>>>()?;
    Ok(Round { measured, alone_bps, bond_bps: tcp("bond", &names)? })
}

/// The medians of `plait measure` and of the lab's figures, side by side.
fn compare(rates: &str, links: &[LinkSpec; 2], rows: &[Round]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut add = |what: &str, measured: u64, lab: u64| {
        let name = format!("{rates}: {what}");
        figures.push(Figure::mbit(format!("{name}, plait measure"), measured));
        figures.push(Figure::mbit(format!("{name}, lab"), lab));
        let ratio = measured as f64 / lab.max(1) as f64;
        let (low, high) = (Some(1.0 - DIFFERENCE_MAX), Some(1.0 + DIFFERENCE_MAX));
        let figure = Figure::number(format!("{name}, measured of lab's"), ratio, "ratio");
        figures.push(figure.within(low, high, SOURCE));
    };
    let over_rounds = |get: &dyn Fn(&Round) -> Option<u64>| -> Result<u64> {
        let all: Option<Vec<u64>> = rows.iter().map(get).collect();
        Ok(median(all.context("plait measure left a figure out")?))
    };
    for (at, link) in links.iter().enumerate() {
        let measured = over_rounds(&|row| {
            Some(row.measured.directions.first()?.paths.get(at)?.individual?.throughput_bps)
        })?;
        add(link.name, measured, over_rounds(&|row| row.alone_bps.get(at).copied())?);
        let ideal = link.rate_mbit as f64 * 1e6 * PAYLOAD;
        add(&format!("{} by its rate", link.name), measured, ideal as u64);
    }
    let simultaneous =
        over_rounds(&|row| row.measured.directions.first()?.sum_bps(|path| path.simultaneous))?;
    let sum = over_rounds(&|row| Some(row.alone_bps.iter().sum()))?;
    add("both at once", simultaneous, sum);
    let thousandths = |ratio: f64| (ratio * 1000.0).round() as u64;
    let measured =
        over_rounds(&|row| row.measured.directions.first()?.aggregation_ratio.map(thousandths))?;
    let benefits = rows.iter().filter_map(|row| {
        Some(format!("{:.3}", row.measured.directions.first()?.aggregation_benefit?))
    });
    let benefits: Vec<String> = benefits.collect();
    figures.push(Figure::text(format!("{rates}: A_b, plait measure"), benefits.join(", ")));
    let lab =
        over_rounds(&|row| u64::try_from(aggregation_ratio(row.bond_bps, &row.alone_bps)).ok())?;
    let ratio = |what: &str, value: u64| {
        Figure::number(format!("{rates}: A_r, {what}"), value as f64 / 1000.0, "ratio")
    };
    let (low, high) = (lab as f64 / 1000.0 - DIFFERENCE_MAX, lab as f64 / 1000.0 + DIFFERENCE_MAX);
    let (of_lab, of_plait) = (ratio("lab", lab), ratio("plait measure", measured));
    figures.extend([of_lab, of_plait.within(Some(low), Some(high), SOURCE)]);
    Ok(figures)
}
