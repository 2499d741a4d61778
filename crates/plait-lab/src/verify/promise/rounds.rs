//! One download over each of several carriers, again and again.
//!
//! The carriers take turns, each on a fresh network, so that a machine that is busy for some
//! minutes spoils none of them more than the others.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::{Effort, Figure};
use crate::emulator::{Lateness, Way};
use crate::measure::{PingAnswers, Pinging, Span, Stream, mbit, median};
use crate::output::{self, Progress};
use crate::site::{Carrier, Site, on_site};
use crate::topology::LinkSpec;

/// 002's links.
pub(super) const LIKE: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
/// A link with a fifth of the other's rate and three times its delay.
pub(super) const UNLIKE: [LinkSpec; 2] =
    [LinkSpec::new("fast", 50, 20, 20), LinkSpec::new("slow", 10, 60, 60)];

/// Building a network, and taking it down.
const SET_UP: Duration = Duration::from_secs(2);
/// A machine may be too busy for a moment.
const TRIES: usize = 2;
const PING_INTERVAL: Duration = Duration::from_millis(25);

/// A download's time: what counts begins ten seconds after the start, less with `--quick`.
pub(super) fn span(effort: Effort) -> Span {
    if effort.seeds() == 1 {
        Span { seconds: 8, omit_seconds: 6 }
    } else {
        Span { seconds: 20, omit_seconds: 10 }
    }
}

/// `50+10`.
pub(super) fn rates(links: &[LinkSpec]) -> String {
    let rates: Vec<_> = links.iter().map(|link| link.rate_mbit.to_string()).collect();
    rates.join("+")
}

/// Measurements under way.
#[derive(Debug)]
pub(super) struct Rounds {
    progress: Progress,
    runs: u64,
    run_time: Duration,
    lateness: Lateness,
    busy_runs: u64,
}

impl Rounds {
    /// For `cases` cases, each of which takes `time` on a network that stands.
    pub(super) fn new(effort: Effort, cases: u32, time: Duration) -> Result<Self> {
        let (runs, run_time) = (effort.seeds(), SET_UP + time);
        let steps = u32::try_from(runs)? * cases;
        let progress = Progress::new(steps as usize, run_time * steps);
        Ok(Self { progress, runs, run_time, lateness: Lateness::default(), busy_runs: 0 })
    }

    /// What `work` gives over each of the named carriers, all runs of it.
    pub(super) fn measure<T>(
        &mut self,
        links: &[LinkSpec],
        carriers: &[(String, Carrier)],
        mut work: impl FnMut(&mut Site<'_>) -> Result<T>,
    ) -> Result<Vec<Vec<T>>> {
        let mut all: Vec<Vec<T>> = carriers.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.runs {
            for ((what, carrier), results) in carriers.iter().zip(&mut all) {
                let result = self.measure_once(links, what, carrier, &mut work);
                results.push(result.with_context(|| format!("while measuring {what}"))?);
            }
        }
        Ok(all)
    }

    fn measure_once<T>(
        &mut self,
        links: &[LinkSpec],
        what: &str,
        carrier: &Carrier,
        work: &mut impl FnMut(&mut Site<'_>) -> Result<T>,
    ) -> Result<T> {
        let _step = self.progress.step(what, self.run_time);
        let mut left = TRIES;
        loop {
            let mut lateness = Lateness::default();
            let result = on_site(links, carrier, &mut lateness, &mut *work)?;
            left -= 1;
            if lateness.is_too_late() && left > 0 {
                output::note(format!("{what}: the machine was too busy; once more"));
                continue;
            }
            self.busy_runs += u64::from(lateness.is_too_late());
            self.lateness.add(&lateness);
            return Ok(result);
        }
    }

    /// Whether the machine kept up.
    pub(super) fn machine_figures(&self) -> [Figure; 2] {
        let late = self.lateness.summary();
        let value = format!("{} / {} / {} us", late.mean_us, late.p99_us, late.max_us);
        [
            Figure::text("links' lateness: mean / 99th percentile / most", value),
            Figure::count("runs on a machine that was too busy", self.busy_runs),
        ]
    }
}

/// What was seen of a download.
#[derive(Debug)]
pub(super) struct Download {
    /// Of the time that counts.
    pub(super) rate_bps: u64,
    /// For each link what it delivered to the customer, from the start.
    pub(super) link_bytes: Vec<u64>,
}

/// Downloads with one CUBIC flow over a site's carrier.
pub(super) fn download(site: &mut Site<'_>, span: Span) -> Result<Download> {
    observe_download(site, span, |_| Ok(())).map(|(download, ())| download)
}

/// Downloads, and pings beside it in the time that counts.
pub(super) fn download_with_pings(
    site: &mut Site<'_>,
    span: Span,
) -> Result<(Download, PingAnswers)> {
    let count = span.seconds * 1000 / u32::try_from(PING_INTERVAL.as_millis())?;
    observe_download(site, span, |site| {
        Pinging::start(site.target(), PING_INTERVAL, count)?.answers()
    })
}

/// Downloads and does `work` when the time that counts begins.
fn observe_download<T>(
    site: &mut Site<'_>,
    span: Span,
    work: impl FnOnce(&Site<'_>) -> Result<T>,
) -> Result<(Download, T)> {
    let stream = site.download()?;
    let from = Instant::now() + Duration::from_secs(span.omit_seconds.into());
    let until = from + Duration::from_secs(span.seconds.into());
    sleep_until(from);
    let observed = work(site)?;
    sleep_until(until);
    ensure_alive(&stream)?;
    let links = site.topology.customer().links.iter();
    let download = Download {
        rate_bps: stream.deliveries().rate_bps(from, until),
        link_bytes: links.map(|link| link.emulator.delivered_bytes(Way::Down)).collect(),
    };
    Ok((download, observed))
}

/// Sleeps until `at`.
pub(super) fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}

pub(super) fn ensure_alive(stream: &Stream) -> Result<()> {
    let death = stream.death();
    ensure!(death.is_none(), "the connection died: {}", death.unwrap_or_default());
    Ok(())
}

/// The median of several runs' rates.
pub(super) fn median_bps(downloads: &[Download]) -> u64 {
    median(downloads.iter().map(|download| download.rate_bps).collect())
}

/// The rate of the median run, and beside it every run's when there are several.
pub(super) fn rate_figures(name: &str, downloads: &[Download]) -> Vec<Figure> {
    let mut figures = vec![Figure::mbit(name, median_bps(downloads))];
    if downloads.len() > 1 {
        let each: Vec<_> = downloads.iter().map(|download| mbit(download.rate_bps)).collect();
        figures.push(Figure::text(format!("{name}, each run"), each.join(", ")));
    }
    figures
}

/// The median, over the runs, of a percentile of each.
pub(super) fn percentile_over_runs(runs: &[PingAnswers], percent: u32) -> f64 {
    let mut all: Vec<f64> = runs.iter().map(|run| run.percentile_ms(percent)).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// One number over another.
pub(super) fn ratio(name: impl Into<String>, part: u64, whole: u64) -> Figure {
    Figure::number(name, part as f64 / whole.max(1) as f64, "ratio")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_run_counts_and_all_are_shown() {
        let run = |mbit: u64| Download { rate_bps: mbit * 1_000_000, link_bytes: Vec::new() };
        let figures = rate_figures("bond", &[run(9), run(1), run(5)]);
        let texts: Vec<_> = figures.iter().map(Figure::value_text).collect();
        assert_eq!(texts, ["5.0 Mbit/s", "9.0, 1.0, 5.0"]);
        assert_eq!(rate_figures("bond", &[run(7)]).len(), 1);
    }

    #[test]
    fn links_are_named_by_their_rates() {
        assert_eq!((rates(&LIKE), rates(&UNLIKE)), ("64+60".into(), "50+10".into()));
    }
}
