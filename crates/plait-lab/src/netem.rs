//! A TCP flow over the kernel's netem, and over the lab's emulator on the same links: what a guest
//! runs in one boot, and what is made of it outside.

use std::time::Duration;

use anyhow::{Context, Result};
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
    for run in 1..=args.runs {
        for (name, link) in &links {
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
