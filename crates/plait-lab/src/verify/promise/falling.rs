//! promise.5: a link whose rate falls to a fifteenth for a while, beside a steady one.
//!
//! The bond is "below" while the rate over 200 ms is: several round trips, so that neither a
//! single late packet counts nor a burst that ends a standstill hides it. A standstill of D is
//! seen as about D + 160 ms against nine tenths. A bond that flickers around the mark is never
//! below it for long, so the mean counts too, from the end of the time allowed on. The link "is
//! back" from the start of the first second in which the bond has nine tenths of what it had
//! before the fall.

use std::time::{Duration, Instant};

use anyhow::Result;
use plait_proto::units::Rate;
use plait_sim::link::LinkConfig;

use super::super::{Effort, Figure};
use super::rounds::{self, Rounds, ensure_alive, median_bps, rate_figures, ratio, sleep_until};
use crate::measure::{Deliveries, median};
use crate::site::{Carrier, Site};
use crate::topology::LinkSpec;

const SOURCE: &str = "issue 5, promise 5, of the steady link alone through plait";
const BACK_SOURCE: &str = "issue 5, promise 5, of the rate before";
const BELOW_MAX: Duration = Duration::from_millis(500);
const BACK_MS_MAX: f64 = 3000.0;
const SHARE: f64 = 0.9;

const STEADY: LinkSpec = LinkSpec::new("steady", 20, 30, 30);
/// Its queue stays as many bytes as 50 ms take at the full rate.
const FALLING: LinkSpec = LinkSpec::new("falling", 30, 30, 30);
const LOW_MBIT: u64 = 2;

const BELOW_WINDOW: Duration = Duration::from_millis(200);
const BACK_WINDOW: Duration = Duration::from_secs(1);
/// For the slowest time, which is printed beside.
const SLOWEST_WINDOW: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(10);
/// Before the fall: the time whose rate is to come back.
const BEFORE: Duration = Duration::from_secs(5);

/// When the link falls, for how long, and how long it is watched then.
#[derive(Clone, Copy, Debug)]
struct Spans {
    ramp: Duration,
    low: Duration,
    after: Duration,
}

/// A download over a fall.
#[derive(Debug)]
struct Course {
    deliveries: Deliveries,
    fallen: Instant,
    recovered: Instant,
    until: Instant,
}

/// What one course shows.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Shown {
    before_bps: u64,
    /// Mean while the link is low, from [`BELOW_MAX`] after the fall on.
    low_bps: u64,
    /// Of any half second.
    slowest_bps: u64,
    below: Duration,
    back: Duration,
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let quick = effort.seeds() == 1;
    let seconds = |full, short| Duration::from_secs(if quick { short } else { full });
    let spans = Spans { ramp: seconds(15, 10), low: seconds(20, 10), after: seconds(10, 6) };
    let total = spans.ramp + spans.low + spans.after;
    let alone_span = rounds::span(effort);
    let mut rounds = Rounds::new(effort, 3, total)?;
    let links = [STEADY, FALLING];
    let names = links.map(|link| link.name);
    let alone = (format!("{} alone through plait", names[0]), Carrier::plait(&names[..1]));
    let downloads = rounds
        .measure(&links, std::slice::from_ref(&alone), |site| rounds::download(site, alone_span))?
        .swap_remove(0);
    let mut figures = rate_figures(&alone.0, &downloads);
    let alone_bps = median_bps(&downloads);
    let least_bps = (alone_bps as f64 * SHARE) as u64;
    let carriers =
        [("MPTCP".to_owned(), Carrier::Mptcp), ("bond".to_owned(), Carrier::plait(&names))];
    let results = rounds.measure(&links, &carriers, |site| course(site, spans))?;
    for ((what, carrier), courses) in carriers.iter().zip(&results) {
        let shown: Vec<_> = courses.iter().map(|course| course.show(least_bps)).collect();
        figures.extend(course_figures(what, &shown));
        if matches!(carrier, Carrier::Plait(_)) {
            figures.extend(promised_figures(what, &shown, alone_bps));
        }
    }
    figures.extend(rounds.machine_figures());
    Ok(figures)
}

fn course(site: &mut Site<'_>, spans: Spans) -> Result<Course> {
    let stream = site.download()?;
    let start = Instant::now();
    sleep_until(start + spans.ramp);
    set_rate(site, LOW_MBIT)?;
    let fallen = Instant::now();
    sleep_until(fallen + spans.low);
    set_rate(site, FALLING.rate_mbit)?;
    let recovered = Instant::now();
    let until = recovered + spans.after;
    sleep_until(until);
    ensure_alive(&stream)?;
    Ok(Course { deliveries: stream.deliveries(), fallen, recovered, until })
}

fn set_rate(site: &Site<'_>, rate_mbit: u64) -> Result<()> {
    let emulator = &site.topology.link(FALLING.name)?.emulator;
    let rate = Rate::from_mbit(rate_mbit);
    emulator.reconfigure(|config| LinkConfig { rate, ..config });
    Ok(())
}

impl Course {
    fn show(&self, least_bps: u64) -> Shown {
        let Self { deliveries, fallen, recovered, until } = self;
        let windows = |from: Instant, window| deliveries.sliding_bps(from, *until, window, STEP);
        let before_bps = deliveries.rate_bps(*fallen - BEFORE, *fallen);
        let back_bps = (before_bps as f64 * SHARE) as u64;
        let back = windows(*recovered, BACK_WINDOW);
        let back = back.iter().find(|(_, rate)| *rate >= back_bps);
        let slowest = windows(*fallen, SLOWEST_WINDOW);
        Shown {
            before_bps,
            low_bps: deliveries.rate_bps(*fallen + BELOW_MAX, *recovered),
            slowest_bps: slowest.iter().map(|(_, rate)| *rate).min().unwrap_or_default(),
            below: longest_below(&windows(*fallen, BELOW_WINDOW), least_bps),
            back: back.map_or(*until, |(start, _)| *start).duration_since(*recovered),
        }
    }
}

/// The longest time for which every window, each a [`STEP`] after the one before it, has less than
/// `least_bps`.
fn longest_below(windows: &[(Instant, u64)], least_bps: u64) -> Duration {
    let stretches = windows.split(|(_, rate)| *rate >= least_bps).map(<[_]>::len);
    STEP * u32::try_from(stretches.max().unwrap_or_default()).unwrap_or(u32::MAX)
}

fn course_figures(what: &str, shown: &[Shown]) -> Vec<Figure> {
    let rate = |name: &str, of: fn(&Shown) -> u64| {
        Figure::mbit(format!("{what}: {name}"), median_of(shown, of))
    };
    let time = |name: &str, of: fn(&Shown) -> u64| {
        let texts: Vec<_> = shown.iter().map(|one| of(one).to_string()).collect();
        Figure::text(format!("{what}: {name}, each run"), texts.join(", ") + " ms")
    };
    vec![
        rate("before the fall", |shown| shown.before_bps),
        rate("while the link is low", |shown| shown.low_bps),
        rate("slowest half second from the fall on", |shown| shown.slowest_bps),
        time("longest time below 0.9 of the steady link", |shown| whole_ms(shown.below)),
        time("time until 0.9 of before the fall is back", |shown| whole_ms(shown.back)),
    ]
}

/// The medians that count.
fn promised_figures(what: &str, shown: &[Shown], alone_bps: u64) -> [Figure; 3] {
    let time = |name: &str, of: fn(&Shown) -> u64| {
        Figure::number(format!("{what}: {name}"), median_of(shown, of) as f64, "ms")
    };
    let below = time("longest time below 0.9 of the steady link", |shown| whole_ms(shown.below));
    let back = time("time until 0.9 of before the fall is back", |shown| whole_ms(shown.back));
    let low_bps = median_of(shown, |shown| shown.low_bps);
    let low =
        ratio(format!("{what}: while the link is low, of the steady link"), low_bps, alone_bps);
    [
        below.at_most(whole_ms(BELOW_MAX) as f64, SOURCE),
        low.at_least(SHARE, SOURCE),
        back.at_most(BACK_MS_MAX, BACK_SOURCE),
    ]
}

fn median_of(shown: &[Shown], of: fn(&Shown) -> u64) -> u64 {
    median(shown.iter().map(of).collect())
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILOBYTE: u64 = 1000;

    /// 1000 bytes each 10 ms, 800 kbit/s, from 10 s before the fall on, but for the pauses: from
    /// and until when, in ms after the fall, nothing comes.
    fn course(pauses: &[(u64, u64)]) -> Course {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut deliveries = Deliveries::default();
        for ms in (0..30_000).step_by(10) {
            let is_pause =
                |(from, until): &(u64, u64)| (10_000 + from..10_000 + until).contains(&ms);
            let is_pause = pauses.iter().any(is_pause);
            if !is_pause {
                deliveries.add(at(ms), KILOBYTE);
            }
        }
        Course { deliveries, fallen: at(10_000), recovered: at(20_000), until: at(30_000) }
    }

    #[test]
    fn a_standstill_counts_with_most_of_a_window() {
        let shown = course(&[(1000, 1300)]).show(720_000);
        assert_eq!((shown.before_bps, shown.slowest_bps), (800_000, 320_000));
        // Below are the windows that more than 20 ms of the standstill lie in.
        assert_eq!(shown.below.as_millis(), 300 + 200 - 50);
        assert_eq!(shown.back, Duration::ZERO);
    }

    #[test]
    fn a_burst_does_not_end_a_standstill() {
        // 40 ms of data amid 600 ms of nothing.
        let shown = course(&[(1000, 1300), (1340, 1640)]).show(720_000);
        assert_eq!(shown.below.as_millis(), 640 + 200 - 50);
    }

    #[test]
    fn the_time_back_counts_from_the_recovery() {
        let shown = course(&[(10_000, 12_500)]).show(720_000);
        assert_eq!(shown.back.as_millis(), 2400);
        assert_eq!(course(&[(10_000, 20_000)]).show(720_000).back.as_secs(), 10);
    }

    #[test]
    fn a_bond_that_flickers_fails_by_its_mean() {
        // A quarter of the time nothing, in pauses that are too short for the other band.
        let pauses: Vec<_> = (0..100).map(|at| (at * 100, at * 100 + 25)).collect();
        let shown = [course(&pauses).show(560_000)];
        let [below, low, _] = promised_figures("x", &shown, 800_000);
        assert_eq!((below.ok, low.ok), (true, false), "{below:?} {low:?}");
        assert!(course_figures("x", &shown).iter().all(|figure| !figure.is_check()));
    }
}
