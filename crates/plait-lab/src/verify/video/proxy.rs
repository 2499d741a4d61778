//! video.1: a download by every way through the proxy beside the kernel's MPTCP from end to end,
//! the time to the first byte, and each access's share beside a capture's.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_toml::proxy::WayIn;

use super::super::{Effort, Figure};
use super::links::{LINKS, Site, Way};
use super::shares;
use crate::output::Progress;
use crate::proxy::sum_of;

const SOURCE: &str = "video.1";
/// Downloads of one byte, by a way and from end to end in turn, that the medians of the first
/// byte's time are taken of.
const SMALL: usize = 41;

/// What one way gave.
#[derive(Debug, Default)]
struct Given {
    rate_bps: Vec<u64>,
    first_byte: Vec<Duration>,
    /// From end to end, in turn with these.
    first_byte_direct: Vec<Duration>,
    wrong: u64,
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let bytes = if effort.is_quick() { 100_000_000 } else { 1_000_000_000 };
    let sum = sum_of(bytes);
    let link_bps: u64 = LINKS.iter().map(|link| link.rate_mbit * 1_000_000).sum();
    let expected = Duration::from_secs(bytes * 8 / link_bps + 4);
    let mut progress = Progress::new(7, expected * 7);
    let mut given: BTreeMap<&str, Given> = BTreeMap::new();
    let mut measure = |site: &Site, way: &Way| -> Result<()> {
        let _step = progress.step(way.name, expected);
        let of_way = given.entry(way.name).or_default();
        let (client, server) = (site.client(way), site.server(way));
        let context = || format!("by {}", way.name);
        let came = way.route.fetch(client, way.by, server, bytes).with_context(context)?;
        of_way.rate_bps.push(came.rate_bps());
        of_way.wrong += u64::from(came.sum != sum);
        for _ in 0..SMALL {
            let came = way.route.fetch(client, way.by, server, 1).with_context(context)?;
            of_way.first_byte.push(came.first_byte);
            of_way.first_byte_direct.push(site.first_byte_direct()?);
        }
        Ok(())
    };
    let site = Site::build()?;
    for way in [Site::DIRECT].iter().chain(&site.ways()) {
        measure(&site, way)?;
    }
    for way in [WayIn::Redirect, WayIn::Tproxy] {
        let _near = site.start_near(way)?;
        measure(&site, &Site::transparent(way))?;
    }
    let memory = Figure::number("the proxy's memory at most", site.far_memory_mib()?, "MiB");
    let direct = given.remove(Site::DIRECT.name).context("it was measured first")?;
    let mut figures = figures(&direct, &given);
    figures.push(memory);
    drop(site);
    figures.extend(shares::figures(bytes / 5)?);
    Ok(figures)
}

fn figures(direct: &Given, given: &BTreeMap<&str, Given>) -> Vec<Figure> {
    let mut figures = vec![
        Figure::mbit("MPTCP from end to end", direct.rate_bps[0]),
        Figure::number("MPTCP from end to end: first byte", median_ms(&direct.first_byte), "ms"),
        Figure::none("MPTCP from end to end: wrong sums", direct.wrong, SOURCE),
    ];
    for (name, way) in given {
        let share = way.rate_bps[0] as f64 / direct.rate_bps[0] as f64;
        let added = median_ms(&way.first_byte) - median_ms(&way.first_byte_direct);
        figures.extend([
            Figure::number(format!("{name}: of MPTCP from end to end"), share, "ratio")
                .at_least(0.95, SOURCE),
            Figure::number(format!("{name}: added to the first byte"), added, "ms")
                .at_most(2.0, SOURCE),
            Figure::none(format!("{name}: wrong sums"), way.wrong, SOURCE),
        ]);
    }
    figures
}

fn median_ms(times: &[Duration]) -> f64 {
    let mut all = times.to_vec();
    all.sort();
    all[all.len() / 2].as_secs_f64() * 1e3
}
