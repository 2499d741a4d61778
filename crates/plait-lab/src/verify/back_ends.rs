//! sim.3, sim.4 and wifi.1: the simulator compared with real processes, the kernel's TCP and its
//! MPTCP.

use anyhow::Result;

use super::{Effort, Figure};
use crate::cli::{CompareArgs, ExperimentArgs};
use crate::compare::{self, Rule};
use crate::record::{CheckFigure, Middle, Results};
use crate::set::of_checks;

/// The same load on both back-ends: UDP by 002's weights, and TCP by plait's default.
const ALIKE: [(&str, &[&str]); 2] =
    [("002/table-loss", &["k=0.5", "t_dwd_ms=250"]), ("bond/tcp", &[])];
/// What the comparison says nothing of.
const COVERED: &str = "one of 002's nine cells, and one TCP flow; no steering";
/// Six links, each with its own TCP flow.
const LINKS: &str = "tcp/links";
const TCP_SHARE: f64 = 0.1;
const LINKS_MIN: usize = 5;
/// Ten pairs of links to which the model of MPTCP was not fitted.
const PAIRS: &str = "003/mptcp-model";
const PAIRS_METRIC: &str = "goodput_mbit.download";
const PAIR_SHARE: f64 = 0.2;
const NEAR_SHARE: f64 = 0.1;
const NEAR_MIN: usize = 8;

fn scenario(name: &str, settings: &[&str], seeds: u64) -> CompareArgs {
    let settings = settings.iter().map(ToString::to_string).collect();
    CompareArgs { seeds, experiment: ExperimentArgs { settings, ..ExperimentArgs::of(name) } }
}

pub(super) fn check_alike(effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = vec![Figure::text("covers", COVERED)];
    for (name, settings) in ALIKE {
        figures.extend(compared(name, settings, effort, Rule::of_pair)?);
    }
    Ok(figures)
}

/// A scenario on both back-ends: its figures in words, and a check of each that has a rule.
pub(super) fn compared(
    name: &str,
    settings: &[&str],
    effort: Effort,
    rule: impl Fn(&str, &Results) -> Option<Rule>,
) -> Result<Vec<Figure>> {
    let pair = compare::measure(&scenario(name, settings, effort.seeds()))?;
    let compared = compare::results(&pair, Middle::Median, rule);
    Ok([told(&compared.summary.checks), of_checks(&compared)].concat())
}

pub(super) fn check_tcp_model(effort: Effort) -> Result<Vec<Figure>> {
    let pair = compare::measure(&scenario(LINKS, &[], 2 * effort.seeds()))?;
    let rule = |metric: &str, results: &_| {
        let rule = Rule::of_pair(metric, results)?;
        Some(match rule {
            Rule::Share(_) => Rule::Share(TCP_SHARE),
            other => other,
        })
    };
    let mut compared = compare::results(&pair, Middle::Mean, rule);
    let near = compared.summary.checks.iter().filter(|check| check.ok).count();
    let mut figures = vec![
        Figure::count("links on which the model is within 10 % of the kernel", near as u64)
            .at_least(LINKS_MIN as f64, "of six; the sixth is explained"),
    ];
    figures.extend(told(&compared.summary.checks));
    // One of them may be off, so single ones are not checks.
    compared.summary.checks.iter_mut().for_each(|check| check.required = false);
    figures.extend(of_checks(&compared));
    Ok(figures)
}

pub(super) fn check_mptcp_model(effort: Effort) -> Result<Vec<Figure>> {
    let pair = compare::measure(&scenario(PAIRS, &[], effort.seeds()))?;
    let within = |share| {
        let rule =
            |metric: &str, _: &Results| (metric == PAIRS_METRIC).then_some(Rule::Share(share));
        compare::results(&pair, Middle::Median, rule)
    };
    let near = within(NEAR_SHARE).summary.checks.iter().filter(|check| check.ok).count();
    let compared = within(PAIR_SHARE);
    let mut figures = vec![
        Figure::count("pairs on which the model is within 10 % of the kernel's MPTCP", near as u64)
            .at_least(NEAR_MIN as f64, "of ten"),
    ];
    figures.extend(told(&compared.summary.checks));
    figures.extend(of_checks(&compared));
    Ok(figures)
}

/// Both back-ends' figures in words.
pub(super) fn told(checks: &[CheckFigure]) -> Vec<Figure> {
    checks.iter().map(|check| Figure::text(check.name.clone(), check.words.clone())).collect()
}
