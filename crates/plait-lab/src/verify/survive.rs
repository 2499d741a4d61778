//! survive.*: the bond when links, gateways and the network around them misbehave.

use anyhow::Result;

use super::{Effort, Figure};
use crate::measure::Stream;
use crate::topology::LinkSpec;

pub(super) mod hostile;
pub(super) mod idle;
pub(super) mod idle_real;
pub(super) mod swarm;

/// The links of these promises: 64 and 60 Mbit/s, round trips of 13 and 30 ms, queues of 50 ms.
const LINKS: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::new("lte", 60, 30, 30)];

/// survive.4: an hour in the simulator, and real gateways beside it.
pub(super) fn check_idle(effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = idle::check(effort)?;
    figures.extend(idle_real::check(effort)?);
    Ok(figures)
}

/// How many connections are alive; prints why the others are not.
fn count_alive(streams: &[Stream]) -> u64 {
    let deaths: Vec<_> = streams.iter().filter_map(Stream::death).collect();
    deaths.iter().for_each(|why| crate::output::note(format!("a connection died: {why}")));
    (streams.len() - deaths.len()) as u64
}
