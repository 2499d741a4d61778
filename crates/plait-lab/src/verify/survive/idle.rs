//! survive.4 in virtual time: the traffic of an idle bond in an hour.

use std::time::Duration;

use anyhow::Result;
use plait_sim::swarm::idle;

use super::super::{Effort, Figure};

pub(super) const HOUR: Duration = Duration::from_secs(3600);
const PLAIN_PACKETS_MAX: f64 = 400.0;
const METERED_PACKETS_MAX: f64 = 20.0;
const SOURCE: &str = "an hour, a path, both directions together";

pub(crate) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (kind, metered, max) in
        [("plain", false, PLAIN_PACKETS_MAX), ("metered", true, METERED_PACKETS_MAX)]
    {
        for (at, path) in idle::measure(metered, HOUR)?.into_iter().enumerate() {
            let name = format!("{kind} path {}", at + 1);
            let packets = Figure::count(format!("{name}: packets"), path.packets);
            figures.push(packets.at_most(max, SOURCE));
            figures.push(Figure::number(format!("{name}: data"), path.bytes as f64, "bytes"));
        }
    }
    Ok(figures)
}
