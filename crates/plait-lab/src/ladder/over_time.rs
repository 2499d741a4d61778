//! A rung second by second: to see why it comes to what it does.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::climb::{Effort, bond_of};
use super::rung::Rung;
use super::trial::Trial;
use super::words;
use crate::cli::On;
use crate::output::{Align, Output, Table};
use crate::policy::Policy;

const OF_RUN: [(&str, &str); 3] =
    [("goodput.down", "Mbit/s"), ("cwnd.down", "cwnd"), ("waiting", "waiting")];
const OF_LINK: [(&str, &str); 4] =
    [("link_throughput", "Mbit/s"), ("drops", "drops"), ("queue_ms", "queue"), ("rtt_ms", "srtt")];

/// Prints the bond's first seed on each rung, under each policy.
pub(super) fn tell(
    on: On,
    rungs: &[Rung],
    policies: &[Policy],
    effort: Effort,
    output: &Output,
) -> Result<()> {
    for rung in rungs {
        for (at, policy) in policies.iter().enumerate() {
            let trial = bond_of(rung, at, effort);
            let series = trial.run_over_time(on, policies, 1)?;
            let kind = words::kind(on);
            output.line(format!("{}: {}, {policy}, {kind}", rung.name, rung.load))?;
            for line in table(&trial, &series) {
                output.line(line)?;
            }
            let (rung, policy) = (rung.name, policy.name());
            let course = Course { on: on.name(), rung, policy, interval_s: 1, series: &series };
            output.record("course", &course)?;
            output.line("")?;
        }
    }
    Ok(())
}

type Series = BTreeMap<String, Vec<f64>>;

#[derive(Serialize)]
struct Course<'a> {
    on: &'static str,
    rung: &'a str,
    policy: &'a str,
    interval_s: u32,
    series: &'a Series,
}

fn table(trial: &Trial, found: &Series) -> Vec<String> {
    let mut series = Vec::new();
    for (name, head) in OF_RUN {
        series.push((name.to_owned(), head.to_owned()));
    }
    for link in 0..trial.links.len() {
        let link = trial.link_name(link);
        let of_link =
            OF_LINK.map(|(name, head)| (format!("{name}.{link}"), format!("{head} {link}")));
        series.extend(of_link);
    }
    let known: Vec<_> =
        series.iter().filter_map(|(name, head)| Some((head.as_str(), found.get(name)?))).collect();
    let columns = known.iter().map(|(head, _)| (*head, Align::Right));
    let columns: Vec<_> = [("s", Align::Right)].into_iter().chain(columns).collect();
    let mut table = Table::new(&columns);
    for second in 0..trial.times.whole_s as usize {
        let values = known.iter().map(|(_, series)| series.get(second).copied().unwrap_or(0.0));
        let cells = values.map(|value| format!("{value:.1}"));
        table.row([(second + 1).to_string()].into_iter().chain(cells));
    }
    table.lines()
}
