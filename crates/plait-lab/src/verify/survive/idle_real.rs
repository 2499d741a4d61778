//! survive.4, the part of real gateways: what an idle bond sends, counted on its links.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_sim::link::LinkCounters;

use super::super::{Effort, Figure};
use super::LINKS;
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::output::Progress;
use crate::topology::Topology;

const HOUR: Duration = Duration::from_secs(3600);
/// How far real gateways may be from simulated ones, as a share and in packets, whichever is more:
/// in a short time a single datagram more or less is a large share.
const APART_SHARE_MAX: f64 = 0.2;
const APART_PACKETS_MAX: f64 = 3.0;
const SOURCE: &str = "issue 4, promise 4: five real minutes agree";

/// What a path carries in an hour of idleness, both directions together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct IdleRate {
    pub(in super::super) packets_per_hour: f64,
    /// At the IP layer.
    pub(in super::super) bytes_per_hour: f64,
}

/// The rate of each path in virtual time, all metered or none; `None` when it is not known.
pub(in super::super) type Simulated = fn(metered: bool) -> Result<Option<Vec<IdleRate>>>;

/// The times of a measurement.
#[derive(Clone, Copy, Debug)]
struct Spans {
    /// After the start, not counted: the paths are checked then.
    settle: Duration,
    counted: Duration,
}

/// Lets bonds of two paths idle and counts on their links, beside `simulated` ones.
pub(in super::super) fn check(effort: Effort, simulated: Simulated) -> Result<Vec<Figure>> {
    let (settle, counted) = if effort.runs == 1 { (10, 30) } else { (30, 300) };
    let (settle, counted) = (Duration::from_secs(settle), Duration::from_secs(counted));
    let spans = Spans { settle, counted };
    let mut progress = Progress::new(2, (settle + counted) * 2);
    let mut figures = Vec::new();
    for (kind, metered) in [("plain", false), ("metered", true)] {
        let _step = progress.step(&format!("an idle {kind} bond"), settle + counted);
        let grown = idle(metered, spans).with_context(|| format!("an idle {kind} bond"))?;
        let simulated = simulated(metered)?;
        for (index, (link, counters)) in LINKS.iter().zip(grown).enumerate() {
            let simulated = simulated.as_ref().and_then(|rates| rates.get(index).copied());
            let name = format!("real {kind} path over {} in {} s", link.name, counted.as_secs());
            figures.extend(compare(&name, counters, simulated, counted));
        }
    }
    Ok(figures)
}

/// What each link was given in the time counted, both directions together.
fn idle(metered: bool, spans: Spans) -> Result<Vec<LinkCounters>> {
    let topology = Topology::build(&LINKS)?;
    let mut setup = BondSetup::over(&LINKS.map(|link| link.name));
    setup.paths.iter_mut().for_each(|path| path.metered = metered);
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    std::thread::sleep(spans.settle);
    let before = counters(&topology);
    std::thread::sleep(spans.counted);
    let after = counters(&topology);
    bond.stop()?;
    let grown = after.iter().zip(before).map(|(after, before)| LinkCounters {
        in_packets: after.in_packets - before.in_packets,
        in_bytes: after.in_bytes - before.in_bytes,
        ..LinkCounters::default()
    });
    Ok(grown.collect())
}

/// For each link what it was given, both directions together.
fn counters(topology: &Topology) -> Vec<LinkCounters> {
    let links = topology.customer().links.iter();
    let both = links.map(|link| {
        let [up, down] = [Way::Up, Way::Down].map(|way| link.emulator.observe(0, way).counters);
        LinkCounters {
            in_packets: up.in_packets + down.in_packets,
            in_bytes: up.in_bytes + down.in_bytes,
            ..LinkCounters::default()
        }
    });
    both.collect()
}

fn compare(
    name: &str,
    real: LinkCounters,
    simulated: Option<IdleRate>,
    counted: Duration,
) -> Vec<Figure> {
    let mut figures = vec![
        Figure::count(format!("{name}: packets"), real.in_packets),
        Figure::number(format!("{name}: data"), real.in_bytes as f64, "bytes"),
    ];
    let Some(simulated) = simulated else { return figures };
    let share = counted.as_secs_f64() / HOUR.as_secs_f64();
    let expected = simulated.packets_per_hour * share;
    let apart = (real.in_packets as f64 - expected).abs();
    let most = (expected * APART_SHARE_MAX).max(APART_PACKETS_MAX);
    let bytes = simulated.bytes_per_hour * share;
    figures.push(Figure::number(format!("{name}: packets, simulated"), expected, "packets"));
    figures.push(Figure::number(format!("{name}: data, simulated"), bytes, "bytes"));
    let apart = Figure::number(format!("{name}: packets apart"), apart, "packets");
    figures.push(apart.at_most(most, SOURCE));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart_holds(real_packets: u64, packets_per_hour: f64) -> bool {
        let real = LinkCounters { in_packets: real_packets, ..LinkCounters::default() };
        let simulated = IdleRate { packets_per_hour, bytes_per_hour: 0.0 };
        let figures = compare("dsl", real, Some(simulated), Duration::from_secs(300));
        assert_eq!(figures.iter().filter(|figure| figure.is_check()).count(), 1);
        figures.iter().all(|figure| figure.ok)
    }

    #[test]
    fn few_packets_may_differ_by_some_and_many_by_a_share() {
        // 12 an hour is one in five minutes, 1200 are a hundred.
        assert!(apart_holds(4, 12.0));
        assert!(!apart_holds(5, 12.0));
        assert!(apart_holds(119, 1200.0));
        assert!(!apart_holds(79, 1200.0));
    }

    #[test]
    fn what_is_not_known_is_not_checked() {
        let figures = compare("dsl", LinkCounters::default(), None, HOUR);
        assert!(figures.iter().all(|figure| !figure.is_check()));
    }
}
