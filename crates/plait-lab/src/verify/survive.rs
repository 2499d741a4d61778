//! survive.*: the bond when links, gateways and the network around them misbehave.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Effort, Figure};
use crate::emulator::Way;
use crate::measure::Stream;
use crate::topology::{AttachedLink, LinkSpec};

pub(crate) mod hostile;
pub(super) mod idle;
pub(super) mod idle_real;
pub(super) mod lossy;
mod repeats;
pub(super) mod silent_cut;
pub(super) mod standstill;
pub(super) mod swarm;

/// The links of these promises: 64 and 60 Mbit/s, round trips of 13 and 30 ms, queues of 50 ms.
const LINKS: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::new("lte", 60, 30, 30)];

/// Longest time until a healed link carries data again.
const USED_AGAIN_MS_MAX: f64 = 3000.0;
/// A link is used again when it has carried this much: more than probes are.
const USED_BYTES: u64 = 50_000;
const POLL: Duration = Duration::from_millis(5);

/// survive.4: an hour in the simulator, and real gateways beside it.
pub(super) fn check_idle(effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = idle::check(effort)?;
    figures.extend(idle_real::check(effort, simulated_idle)?);
    Ok(figures)
}

/// What the paths of an idle bond carry in an hour of virtual time.
fn simulated_idle(metered: bool) -> Result<Option<Vec<idle_real::IdleRate>>> {
    let rate = |path: plait_sim::swarm::idle::IdlePath| idle_real::IdleRate {
        packets_per_hour: path.packets as f64,
        bytes_per_hour: path.bytes as f64,
    };
    let paths = plait_sim::swarm::idle::measure(metered, idle::HOUR)?;
    Ok(Some(paths.into_iter().map(rate).collect()))
}

/// Greatest and middle of several times.
#[derive(Clone, Debug, Default)]
struct Times {
    all: Vec<Duration>,
}

impl Times {
    fn add(&mut self, time: Duration) {
        self.all.push(time);
    }

    fn worst_ms(&self) -> f64 {
        milliseconds(self.all.iter().max().copied().unwrap_or_default())
    }

    fn median_ms(&self) -> f64 {
        let mut all = self.all.clone();
        all.sort_unstable();
        milliseconds(all.get(all.len() / 2).copied().unwrap_or_default())
    }

    /// The worst with its band, and beside it the median.
    fn figures(&self, name: &str, most_ms: f64, source: &'static str) -> [Figure; 2] {
        let worst = format!("{name}, worst of {}", self.all.len());
        [
            Figure::number(worst, self.worst_ms(), "ms").at_most(most_ms, source),
            Figure::number(format!("{name}, median"), self.median_ms(), "ms"),
        ]
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Sleeps until `at`.
fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}

/// How many connections live; why the others do not is printed.
fn count_alive(streams: &[Stream]) -> u64 {
    let deaths: Vec<_> = streams.iter().filter_map(Stream::death).collect();
    deaths.iter().for_each(|why| crate::output::note(format!("a connection died: {why}")));
    (streams.len() - deaths.len()) as u64
}

/// Time until a link that was just healed carries the bond's data; all the time until `limit` when
/// it does not.
fn used_after(link: &AttachedLink, way: Way, limit: Instant) -> Duration {
    let start = Instant::now();
    let carried = || link.emulator.observe(0, way).carried.bond_bytes;
    let before = carried();
    while carried() - before < USED_BYTES && Instant::now() < limit {
        std::thread::sleep(POLL);
    }
    start.elapsed()
}

/// Every connection has carried something by now.
fn ensure_flowing(streams: &[Stream], start: Instant) -> Result<()> {
    for stream in streams {
        let bytes = stream.deliveries().bytes_between(start, Instant::now());
        ensure!(bytes > 0, "a connection through the healthy bond carries nothing");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_has_the_band() {
        let mut times = Times::default();
        [30, 10, 400].into_iter().for_each(|ms| times.add(Duration::from_millis(ms)));
        let [worst, median] = times.figures("gap", 300.0, "test");
        assert_eq!((worst.value_text().as_str(), worst.ok), ("400.0 ms", false));
        assert_eq!((median.value_text().as_str(), median.is_check()), ("30.0 ms", false));
    }
}
