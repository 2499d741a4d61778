//! survive.4, the part of real gateways: what an idle bond sends, counted on its links.

use std::time::Duration;

use anyhow::Result;
use plait_sim::link::LinkCounters;

use super::super::{Effort, Figure};
use super::LINKS;
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::output::Progress;
use crate::topology::Topology;

/// Time after the start that does not count: the paths are checked then.
const SETTLE: Duration = Duration::from_secs(10);
/// How far real gateways may be from the simulated ones, and both from a whole number of packets in
/// the time measured.
const APART_MAX: f64 = 0.2;
const SOURCE: &str = "issue 4, promise 4: five real minutes agree";

/// What a path carries in an hour of idleness, both directions together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct IdleRate {
    pub(in super::super) packets_per_hour: f64,
    /// At the IP layer.
    pub(in super::super) bytes_per_hour: f64,
}

impl IdleRate {
    fn of(before: [LinkCounters; 2], after: [LinkCounters; 2], span: Duration) -> Self {
        let hours = span.as_secs_f64() / 3600.0;
        let sum = |counters: [LinkCounters; 2], of: fn(LinkCounters) -> u64| {
            counters.into_iter().map(of).sum::<u64>()
        };
        let grown = |of| (sum(after, of) - sum(before, of)) as f64 / hours;
        Self {
            packets_per_hour: grown(|counters| counters.in_packets),
            bytes_per_hour: grown(|counters| counters.in_bytes),
        }
    }

    /// Figures of one path; `simulated` is its rate in virtual time.
    fn figures(self, path: &str, simulated: Option<Self>) -> Vec<Figure> {
        let packets =
            Figure::number(format!("{path}: packets, real"), self.packets_per_hour, "per hour");
        let bytes = Figure::number(format!("{path}: bytes, real"), self.bytes_per_hour, "per hour");
        let Some(simulated) = simulated else { return vec![packets, bytes] };
        let ratio = self.packets_per_hour / simulated.packets_per_hour;
        let alike = Figure::number(format!("{path}: packets, real to simulated"), ratio, "ratio");
        let alike = alike.within(Some(1.0 - APART_MAX), Some(1.0 + APART_MAX), SOURCE);
        vec![packets, bytes, alike]
    }
}

/// Lets a bond of two paths idle and counts on its links. `simulated` holds the rate of each path
/// in virtual time where it is known; with the default keepalive of 25 s.
pub(in super::super) fn check(
    effort: Effort,
    simulated: [Option<IdleRate>; 2],
) -> Result<Vec<Figure>> {
    let span = Duration::from_secs(if effort.runs == 1 { 30 } else { 300 });
    let mut progress = Progress::new(1, SETTLE + span);
    let _step = progress.step("an idle bond", SETTLE + span);
    let topology = Topology::build(&LINKS)?;
    let setup = BondSetup::over(&LINKS.map(|link| link.name));
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    std::thread::sleep(SETTLE);
    let before = counters(&topology);
    std::thread::sleep(span);
    let after = counters(&topology);
    bond.stop()?;
    let mut figures = Vec::new();
    for (index, link) in LINKS.iter().enumerate() {
        let rate = IdleRate::of(before[index], after[index], span);
        figures.extend(rate.figures(link.name, simulated[index]));
    }
    Ok(figures)
}

/// For each link its two directions.
fn counters(topology: &Topology) -> Vec<[LinkCounters; 2]> {
    let of = |emulator: &crate::emulator::Emulator| {
        [Way::Up, Way::Down].map(|way| emulator.observe(0, way).counters)
    };
    topology.customer().links.iter().map(|link| of(&link.emulator)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_hour_over_both_directions() {
        let at = |packets, bytes| LinkCounters {
            in_packets: packets,
            in_bytes: bytes,
            ..LinkCounters::default()
        };
        let (before, after) = ([at(5, 500), at(0, 0)], [at(8, 800), at(2, 100)]);
        let rate = IdleRate::of(before, after, Duration::from_secs(300));
        assert_eq!(rate, IdleRate { packets_per_hour: 60.0, bytes_per_hour: 4800.0 });
        let simulated = IdleRate { packets_per_hour: 90.0, bytes_per_hour: 1.0 };
        assert!(rate.figures("dsl", Some(rate)).iter().all(|figure| figure.ok));
        assert!(rate.figures("dsl", Some(simulated)).iter().any(|figure| !figure.ok));
        assert!(rate.figures("dsl", None).iter().all(|figure| !figure.is_check()));
    }
}
