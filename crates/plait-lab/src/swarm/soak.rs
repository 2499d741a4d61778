//! Many hours of virtual time with faults every minute.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use anyhow::Result;
use plait_proto::units::Rate;
use plait_sim::swarm::{self, FaultKinds, Outcome};
use serde::Serialize;

use super::{conclude, guarded};
use crate::cli::SwarmArgs;
use crate::figure::Figure;
use crate::output::{Meter, Output, Verdict};

/// Both directions together.
const LOAD: Rate = Rate::from_mbit(10);
/// Real time for [`FULL_HOURS`].
const TIME_MAX_S: f64 = 600.0;
const FULL_HOURS: u32 = 24;
const SECONDS_PER_HOUR: u32 = 3600;
const MINUTE_NS: u64 = 60_000_000_000;

/// The result of a soak.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Soak {
    seed: u64,
    hours: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<String>,
    command: String,
    elapsed_s: f64,
    #[serde(skip)]
    outcome: Option<Outcome>,
}

impl Soak {
    /// Runs so many hours.
    pub(crate) fn run(seed: u64, hours: u32) -> Self {
        let started = Instant::now();
        let length = Duration::from_secs((hours * SECONDS_PER_HOUR).into());
        let mut meter = Meter::new("soak", "virtual minutes", hours as usize * 60);
        let mut trace = |at: plait_proto::time::Instant, _: std::fmt::Arguments<'_>| {
            meter.reach((at.as_nanos() / MINUTE_NS) as usize);
        };
        let (outcome, violation) = guarded(AssertUnwindSafe(|| {
            swarm::soak(seed, length, LOAD, FaultKinds::STANDARD, Some(&mut trace))
        }));
        let command = format!("plait-lab swarm --soak {hours} --seed {seed}");
        let elapsed_s = started.elapsed().as_secs_f64();
        Self { seed, hours, violation, command, elapsed_s, outcome }
    }
}

pub(super) fn run(hours: u32, args: &SwarmArgs, output: &Output) -> Result<Verdict> {
    let soak = Soak::run(args.seed.unwrap_or(1), hours);
    conclude("swarm", &figures(&soak), &soak, output)
}

pub(crate) fn figures(soak: &Soak) -> Vec<Figure> {
    let failures = u64::from(soak.violation.is_some());
    let hours = soak.hours;
    let mut figures = vec![
        Figure::count(format!("{hours} virtual hours: violations"), failures)
            .exactly(0.0, "every checker holds, and traffic flows after the last fault"),
    ];
    if let Some(violation) = &soak.violation {
        figures.push(Figure::text("violation", format!("{violation}; again: {}", soak.command)));
    }
    let share = f64::from(hours) / f64::from(FULL_HOURS);
    let time = Figure::number("time for the soak", soak.elapsed_s, "s");
    // The time is promised for a release build.
    let is_promised = !cfg!(debug_assertions);
    figures.push(if is_promised {
        time.at_most(TIME_MAX_S * share.max(0.1), "24 hours in at most 10 minutes")
    } else {
        time
    });
    if let Some(outcome) = &soak.outcome {
        let load_bps = outcome.sent_bytes as f64 * 8.0 / outcome.time.as_secs_f64();
        let lost = outcome.sent_packets - outcome.delivered_packets;
        let factor = outcome.time.as_secs_f64() / soak.elapsed_s;
        figures.push(Figure::mbit("mean load, both ways", load_bps as u64));
        figures.push(Figure::count("packets sent", outcome.sent_packets));
        let ppm = lost * 1_000_000 / outcome.sent_packets.max(1);
        figures.push(Figure::percent("packets lost to faults and full queues", ppm));
        figures.push(Figure::count("faults and their ends", outcome.actions));
        figures.push(Figure::number("speed", factor, "times real time"));
        let after = outcome.traffic_after.as_secs_f64();
        figures.push(Figure::number("until traffic flows after the last fault", after, "s"));
    }
    figures
}
