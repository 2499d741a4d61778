//! promise.2: one CUBIC flow over unlike links, beside the links alone and the kernel's MPTCP.

use anyhow::{Result, ensure};

use super::super::{Effort, Figure};
use super::rounds::{self, Download, LIKE, Rounds, UNLIKE, median_bps, rate_figures, ratio};
use crate::measure::{Span, aggregation_benefit, aggregation_ratio};
use crate::site::Carrier;
use crate::topology::LinkSpec;

const SOURCE: &str = "issue 5, promise 2; A_r as 003 §4.1, links alone through plait";
const OF_MPTCP_MIN: f64 = 0.94;
const MPTCP_SOURCE: &str = "issue 5, promise 2: plait's framing costs 0.04";
/// A subflow that carried no more was not used.
const USED_BYTES: u64 = 1_000_000;
/// Each link alone, bare and through plait; MPTCP; the bond.
const CARRIERS: u32 = 6;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let span = rounds::span(effort);
    let mut rounds = Rounds::new(effort, 2 * CARRIERS, span.total())?;
    let mut figures = compare(UNLIKE, 0.93, span, &mut rounds)?;
    figures.extend(compare(LIKE, 0.95, span, &mut rounds)?);
    figures.extend(rounds.machine_figures());
    Ok(figures)
}

fn compare(
    links: [LinkSpec; 2],
    ratio_min: f64,
    span: Span,
    rounds: &mut Rounds,
) -> Result<Vec<Figure>> {
    let set = rounds::rates(&links);
    let names = links.map(|link| link.name);
    let mut carriers = vec![
        (format!("{set}: MPTCP over the bare links"), Carrier::Mptcp),
        (format!("{set}: bond"), Carrier::plait(&names)),
    ];
    for name in names {
        carriers.push((format!("{set}: {name}, bare"), Carrier::Bare(name)));
        carriers.push((format!("{set}: {name} through plait"), Carrier::plait(&[name])));
    }
    let results = rounds.measure(&links, &carriers, |site| rounds::download(site, span))?;
    let mut figures = Vec::new();
    for ((what, _), downloads) in carriers.iter().zip(&results) {
        figures.extend(rate_figures(what, downloads));
    }
    let rates: Vec<u64> = results.iter().map(|downloads| median_bps(downloads)).collect();
    let [mptcp, bond, _, first, _, second] = rates[..] else {
        unreachable!("there are {CARRIERS} carriers");
    };
    ensure_both_used(&results[0])?;
    let thousandths = |name, value| Figure::number(name, value as f64 / 1000.0, "ratio");
    let alone = [first, second];
    figures.push(thousandths(format!("{set}: A_b"), aggregation_benefit(bond, &alone)));
    let aggregation = thousandths(format!("{set}: A_r"), aggregation_ratio(bond, &alone));
    figures.push(aggregation.at_least(ratio_min, SOURCE));
    let of_mptcp = ratio(format!("{set}: bond, of MPTCP"), bond, mptcp);
    figures.push(of_mptcp.at_least(OF_MPTCP_MIN, MPTCP_SOURCE));
    Ok(figures)
}

/// A connection that fell back to one path is nothing to be measured against.
fn ensure_both_used(downloads: &[Download]) -> Result<()> {
    for Download { link_bytes, .. } in downloads {
        ensure!(
            link_bytes.iter().all(|bytes| *bytes > USED_BYTES),
            "MPTCP used one link only: {link_bytes:?} bytes; is there an `ip mptcp` endpoint?"
        );
    }
    Ok(())
}
