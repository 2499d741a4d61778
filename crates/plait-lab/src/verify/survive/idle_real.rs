//! survive.4 with real gateways: the traffic of an idle bond, counted on its links.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_sim::swarm::idle::{IdlePath, measure};

use super::super::{Effort, Figure};
use super::LINKS;
use super::idle::HOUR;
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::output::Progress;
use crate::topology::Topology;

/// Largest difference between real and simulated gateways, as a share or in packets, whichever is
/// more: in a short time a single datagram is a large share.
const APART_SHARE_MAX: f64 = 0.2;
const APART_PACKETS_MAX: f64 = 3.0;
const SOURCE: &str = "survive.4: five real minutes agree";

/// Lets bonds of two paths idle, counts on their links, and compares with virtual time.
pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    // The beginning is not counted: the paths are validated then.
    let (settle, counted) = if effort.is_quick() { (10, 30) } else { (30, 300) };
    let (settle, counted) = (Duration::from_secs(settle), Duration::from_secs(counted));
    let mut progress = Progress::new(2, (settle + counted) * 2);
    let mut figures = Vec::new();
    for (kind, metered) in [("plain", false), ("metered", true)] {
        let _step = progress.step(&format!("an idle {kind} bond"), settle + counted);
        let real = idle(metered, settle, counted);
        let real = real.with_context(|| format!("an idle {kind} bond"))?;
        for ((link, real), simulated) in LINKS.iter().zip(real).zip(measure(metered, HOUR)?) {
            let name = format!("real {kind} path over {} in {} s", link.name, counted.as_secs());
            figures.extend(compare(&name, real, simulated, counted));
        }
    }
    Ok(figures)
}

/// Traffic of each link in the counted time, both directions together.
fn idle(metered: bool, settle: Duration, counted: Duration) -> Result<Vec<IdlePath>> {
    let topology = Topology::build(&LINKS)?;
    let mut setup = BondSetup::over(&LINKS.map(|link| link.name));
    setup.paths.iter_mut().for_each(|path| path.metered = metered);
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    std::thread::sleep(settle);
    let before = given(&topology);
    std::thread::sleep(counted);
    let after = given(&topology);
    bond.stop()?;
    let grown = after.iter().zip(before).map(|(after, before)| IdlePath {
        packets: after.packets - before.packets,
        bytes: after.bytes - before.bytes,
    });
    Ok(grown.collect())
}

/// Traffic sent into each link so far, both directions together.
fn given(topology: &Topology) -> Vec<IdlePath> {
    let links = topology.customer().links.iter();
    let both = links.map(|link| {
        let [up, down] = [Way::Up, Way::Down].map(|way| link.emulator.observe(0, way).counters);
        IdlePath { packets: up.in_packets + down.in_packets, bytes: up.in_bytes + down.in_bytes }
    });
    both.collect()
}

/// `simulated` covers an hour.
fn compare(name: &str, real: IdlePath, simulated: IdlePath, counted: Duration) -> Vec<Figure> {
    let share = counted.as_secs_f64() / HOUR.as_secs_f64();
    let expected = simulated.packets as f64 * share;
    let apart = (real.packets as f64 - expected).abs();
    let most = (expected * APART_SHARE_MAX).max(APART_PACKETS_MAX);
    let number = |what: &str, value: f64, unit: &'static str| {
        Figure::number(format!("{name}: {what}"), value, unit)
    };
    vec![
        number("packets", real.packets as f64, ""),
        number("data", real.bytes as f64, "bytes"),
        number("packets, simulated", expected, "packets"),
        number("data, simulated", simulated.bytes as f64 * share, "bytes"),
        number("packets apart", apart, "packets").at_most(most, SOURCE),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart_holds(real_packets: u64, packets_per_hour: u64) -> bool {
        let [real, simulated] =
            [real_packets, packets_per_hour].map(|packets| IdlePath { packets, bytes: 0 });
        let figures = compare("dsl", real, simulated, Duration::from_secs(300));
        assert_eq!(figures.iter().filter(|figure| figure.is_check()).count(), 1);
        figures.iter().all(|figure| figure.ok)
    }

    #[test]
    fn few_packets_may_differ_by_some_and_many_by_a_share() {
        // 12 an hour is one in five minutes, 1200 are a hundred.
        assert!(apart_holds(4, 12));
        assert!(!apart_holds(5, 12));
        assert!(apart_holds(119, 1200));
        assert!(!apart_holds(79, 1200));
    }
}
