//! A TCP flow over the kernel's netem, and over the lab's emulator on the same links: what a guest
//! runs in one boot, and what is made of it outside.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_sim::ratio::Ratio;
use plait_sim::scenario::{LinkSpec, LossSpec};
use serde::{Deserialize, Serialize};

use crate::cli::vm::NetemArgs;
use crate::figure::Summary;
use crate::list::Catalogue;
use crate::measure::Span;
use crate::output::{Output, Verdict};

pub(crate) mod beside;
mod chain;
mod transfer;

use chain::Chain;

/// Left out at the beginning of each run: slow start.
const OMIT_SECONDS: u32 = 3;
/// A first run that does not count: with it the programs are read, which takes time of its own.
const FIRST: Span = Span { seconds: 1, omit_seconds: 0 };

/// What carries a link's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Carrier {
    /// The kernel's netem, one for rate and queue, one for loss and delay.
    Netem,
    /// The lab's emulator.
    Emulator,
}

/// The congestion window over time, in segments.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) p25: f64,
    pub(crate) p50: f64,
    pub(crate) p75: f64,
}

/// What a run has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) link: String,
    pub(crate) carrier: Carrier,
    pub(crate) control: String,
    pub(crate) run: u32,
    /// Payload that arrived.
    pub(crate) goodput_mbit: f64,
    /// Median round-trip time of pings beside the flow; an unanswered one counts as long.
    pub(crate) rtt_p50_ms: f64,
    pub(crate) window: Window,
    /// Fast recoveries and retransmission timeouts.
    pub(crate) reductions_per_minute: f64,
    /// The 99th percentile of how late the emulator released packets.
    pub(crate) late_p99_us: Option<u64>,
}

/// How often each link is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) each: u32,
    /// On a link that loses at random: no two runs lose the same packets, so more of them are
    /// needed.
    pub(crate) lossy: u32,
}

impl Runs {
    /// As often on each.
    pub(crate) fn alike(runs: u32) -> Self {
        Self { each: runs, lossy: runs }
    }

    /// On this link.
    pub(crate) fn on(self, link: &LinkSpec) -> u32 {
        let none = LossSpec::Bernoulli(Ratio::ZERO);
        if [&link.up, &link.down].iter().all(|way| way.loss == none) {
            self.each
        } else {
            self.lossy
        }
    }
}

/// Measures all links, in one boot, and prints a record of each run.
pub(crate) fn run(args: &NetemArgs, output: &Output) -> Result<Verdict> {
    let links = Catalogue::find(None)?.load(&args.scenario, &[])?.experiment.scenario.links;
    let span = Span { seconds: args.seconds, omit_seconds: OMIT_SECONDS };
    let carriers = [Carrier::Netem, Carrier::Emulator];
    let carriers = &carriers[..if args.emulator { 2 } else { 1 }];
    let (_, first) = links.first_key_value().context("the scenario has no links")?;
    for carrier in carriers {
        transfer::measure(&Chain::build(first, *carrier, 0)?, &args.controls[0], FIRST)?;
    }
    let runs = Runs { each: args.runs, lossy: args.runs_lossy };
    for run in 1..=runs.each.max(runs.lossy) {
        for (name, link) in links.iter().filter(|(_, link)| run <= runs.on(link)) {
            for (control, carrier) in args
                .controls
                .iter()
                .flat_map(|control| carriers.iter().map(move |on| (control, on)))
            {
                let chain = Chain::build(link, *carrier, run.into())
                    .with_context(|| format!("link {name}"))?;
                let found = transfer::measure(&chain, control, span)
                    .with_context(|| format!("link {name}, {control}"))?;
                let measured = Measured {
                    link: name.clone(),
                    carrier: *carrier,
                    control: control.clone(),
                    run,
                    goodput_mbit: found.goodput_bps as f64 / 1e6,
                    rtt_p50_ms: found.rtt_p50_ms,
                    window: found.window,
                    reductions_per_minute: per_minute(found.reductions, span.total()),
                    late_p99_us: chain.late_p99_us(),
                };
                output.record("run", &measured)?;
            }
        }
    }
    output.record("summary", &Summary::new("netem", &[], serde_json::json!({})))?;
    Ok(Verdict::Good)
}

fn per_minute(count: u64, within: Duration) -> f64 {
    count as f64 * 60.0 / within.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lose_at_random_are_measured_more_often() {
        let scenario = Catalogue::find(None).unwrap().load("kernel/links", &[]).unwrap();
        let runs = Runs { each: 2, lossy: 10 };
        let of = |(name, link): (&String, &LinkSpec)| (name.clone(), runs.on(link));
        let found: Vec<_> = scenario.experiment.scenario.links.iter().map(of).collect();
        let lossy = |name: &str| ["bursts", "lossy"].contains(&name);
        assert_eq!(found.len(), 6);
        assert!(
            found.iter().all(|(name, on)| *on == if lossy(name) { 10 } else { 2 }),
            "{found:?}"
        );
    }
}
