//! `[[measure]]`: a metric that the scenario computes from captured series.

use std::collections::BTreeMap;
use std::ops::Range;

use plait_proto::time::Duration;
use plait_toml::{Bounds, Problem, Section};

use super::metric::{self, METRICS, Owners, SERIES};
use super::span::{self, Span};

/// `[capture]`: what a run records over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// One sample of each series covers this time.
    pub interval: Duration,
    /// Kinds of series to record, for every application or link that has one: names of
    /// [`SERIES`].
    pub series: Vec<String>,
}

/// Reads the section.
pub(super) fn read_capture(mut section: Section<'_>) -> Capture {
    let interval = section.integer("interval_ms", (1, 60_000), "milliseconds").unwrap_or(100);
    let known = SERIES.iter().map(|(name, _)| *name);
    let mut series = Vec::new();
    for (name, place) in section.texts("series") {
        if known.clone().any(|known| known == name) {
            series.push(name);
        } else {
            section.problem_at(&place, "series", Problem::choice(&name, known.clone()));
        }
    }
    section.finish();
    Capture { interval: Duration::from_millis(interval), series }
}

/// A metric made from captured series.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Its name among the metrics.
    pub name: String,
    /// The series, by full name; several are summed, sample by sample.
    pub series: Vec<String>,
    /// How a series becomes a figure.
    pub reduce: Reduce,
    /// Only samples that lie wholly within this span.
    pub within: Span,
    /// Except samples that touch one of these.
    pub except: Vec<Span>,
    /// A series by full name: only samples from its first that is not zero to its last.
    pub during: Option<String>,
}

/// How a series becomes a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reduce {
    /// `mean` of the samples.
    Mean,
    /// `sum` of the samples.
    Sum,
    /// `max` of the samples.
    Max,
    /// `min` of the samples.
    Min,
    /// `per-minute`: sum of the samples over the time that they cover.
    PerMinute,
    /// `time-until`: seconds from the start of the span to the first sample at or below this.
    TimeUntil(f64),
    /// `longest-below`: milliseconds of the longest stretch in which every window has a mean below
    /// a level. A window begins at each sample, so a standstill counts together with most of a
    /// window.
    LongestBelow(Window),
    /// `time-back`: milliseconds from the start of the span to that of the first window whose mean
    /// reaches a level; the length of the span where none does.
    TimeBack(Window),
}

/// A moving mean, and the level it is compared with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Samples of a window.
    pub length: Duration,
    /// The level.
    pub level: Level,
}

/// What the mean of a window is compared with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Level {
    /// In the series' unit.
    Fixed(f64),
    /// A share of the mean of the samples from a time on.
    OfMean {
        /// The share.
        share: f64,
        /// The time.
        from: Duration,
    },
}

impl Level {
    /// The level for these samples; beyond all of them without any from that time on.
    fn of(self, samples: &[(f64, f64)]) -> f64 {
        match self {
            Self::Fixed(level) => level,
            Self::OfMean { share, from } => {
                let later = samples.iter().filter(|(start_s, _)| *start_s >= from.as_secs_f64());
                let (sum, count) = later.fold((0.0, 0), |(sum, n), (_, v)| (sum + v, n + 1));
                if count == 0 { f64::INFINITY } else { share * sum / f64::from(count) }
            }
        }
    }
}

impl Window {
    /// For each window within the samples, whether its mean reaches the level.
    fn reaches(self, samples: &[(f64, f64)], interval: Duration) -> Vec<bool> {
        let length = (self.length.as_secs_f64() / interval.as_secs_f64()).round().max(1.0) as usize;
        let mean = |window: &[(f64, f64)]| {
            window.iter().map(|(_, value)| value).sum::<f64>() / length as f64
        };
        let level = self.level.of(samples);
        samples.windows(length).map(|window| mean(window) >= level).collect()
    }
}

impl Measure {
    /// The figure; `None` when a series was not captured or no sample lies in the span.
    pub fn value(&self, series: &BTreeMap<String, Vec<f64>>, interval: Duration) -> Option<f64> {
        let interval_s = interval.as_secs_f64();
        let all: Option<Vec<&Vec<f64>>> = self.series.iter().map(|name| series.get(name)).collect();
        let all = all?;
        let length = all.iter().map(|samples| samples.len()).min()?;
        let during = match &self.during {
            Some(name) => not_zero(series.get(name)?),
            None => 0..length,
        };
        let samples: Vec<(f64, f64)> = (0..length)
            .filter(|i| during.contains(i))
            .map(|i| (i as f64 * interval_s, all.iter().map(|samples| samples[i]).sum()))
            .filter(|(start_s, _)| self.takes(*start_s, interval_s))
            .collect();
        let values = samples.iter().map(|(_, value)| *value);
        let sum: f64 = values.clone().sum();
        let count = samples.len() as f64;
        if samples.is_empty() {
            return None;
        }
        match self.reduce {
            Reduce::Mean => Some(sum / count),
            Reduce::Sum => Some(sum),
            Reduce::Max => values.reduce(f64::max),
            Reduce::Min => values.reduce(f64::min),
            Reduce::PerMinute => Some(sum * 60.0 / (count * interval_s)),
            Reduce::TimeUntil(at_most) => samples
                .iter()
                .find(|(_, value)| *value <= at_most)
                .map(|(start_s, _)| start_s - self.within.start.as_secs_f64()),
            Reduce::LongestBelow(window) => {
                let reaches = window.reaches(&samples, interval);
                let stretches = reaches.split(|reaches| *reaches).map(<[_]>::len);
                stretches.max().map(|samples| samples as f64 * interval_s * 1e3)
            }
            Reduce::TimeBack(window) => {
                let reaches = window.reaches(&samples, interval);
                let back = reaches.iter().position(|reaches| *reaches).unwrap_or(samples.len());
                Some(back as f64 * interval_s * 1e3)
            }
        }
    }

    fn takes(&self, start_s: f64, interval_s: f64) -> bool {
        // A sample's bounds are multiples of the interval, computed in floats.
        let slack_s = interval_s * 1e-6;
        let end_s = start_s + interval_s;
        let (from_s, to_s) = (self.within.start.as_secs_f64(), self.within.end.as_secs_f64());
        let apart = |span: &Span| {
            end_s <= span.start.as_secs_f64() + slack_s
                || start_s >= span.end.as_secs_f64() - slack_s
        };
        start_s >= from_s - slack_s && end_s <= to_s + slack_s && self.except.iter().all(apart)
    }
}

/// From the first sample that is not zero to the last.
fn not_zero(samples: &[f64]) -> Range<usize> {
    let first = samples.iter().position(|sample| *sample != 0.0).unwrap_or_default();
    let last = samples.iter().rposition(|sample| *sample != 0.0);
    first..last.map_or(first, |last| last + 1)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Mean,
    Sum,
    Max,
    Min,
    PerMinute,
    TimeUntil,
    LongestBelow,
    TimeBack,
}

const KINDS: [(&str, Kind); 8] = [
    ("mean", Kind::Mean),
    ("sum", Kind::Sum),
    ("max", Kind::Max),
    ("min", Kind::Min),
    ("per-minute", Kind::PerMinute),
    ("time-until", Kind::TimeUntil),
    ("longest-below", Kind::LongestBelow),
    ("time-back", Kind::TimeBack),
];

/// Reads every measure; those that are wrong are left out. Gives the names of all of them too.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    capture: &Capture,
    owners: Owners<'_>,
    duration: Duration,
) -> (Vec<Measure>, Vec<String>) {
    let (mut measures, mut names) = (Vec::new(), Vec::new());
    for mut section in sections {
        let name = section.text("name").unwrap_or_default();
        let taken = METRICS.iter().any(|(known, _)| *known == name);
        if taken || (!name.is_empty() && names.contains(&name)) {
            let text = format!("another metric is called \"{name}\" too");
            section.problem("name", Problem::new(text, "give the measure its own name"));
        }
        names.push(name);
        measures.extend(read(section, capture, owners, duration));
    }
    (measures, names)
}

fn read(
    mut section: Section<'_>,
    capture: &Capture,
    owners: Owners<'_>,
    duration: Duration,
) -> Option<Measure> {
    let name = section.required_text("name", "name = \"shift_s\"");
    let series = read_series(&mut section, "series", capture, owners);
    let during = if section.holds_any(&["during"]) {
        read_series(&mut section, "during", capture, owners)
    } else {
        section.know(&["during"]);
        None
    };
    let reduce = read_reduce(&mut section);
    let start = section.seconds("from_s").unwrap_or_default();
    let end = section.seconds("to_s").unwrap_or(duration);
    if end <= start || end > duration {
        let text = format!("it spans {} to {} s", start.as_secs_f64(), end.as_secs_f64());
        let duration_s = duration.as_secs_f64();
        let help = format!("let to_s be after from_s, and {duration_s} s (duration_s) at most");
        let key = if section.holds_any(&["to_s"]) { "to_s" } else { "from_s" };
        section.problem(key, Problem::new(text, help));
    }
    let except = span::read_all(&mut section, "except_s").unwrap_or_default();
    section.finish();
    let within = Span { start, end };
    let during = during.and_then(|names| names.into_iter().next());
    Some(Measure { name: name?, series: series?, reduce: reduce?, within, except, during })
}

pub(super) fn read_series(
    section: &mut Section<'_>,
    key: &'static str,
    capture: &Capture,
    owners: Owners<'_>,
) -> Option<Vec<String>> {
    if !section.holds_any(&[key]) {
        section.know(&[key]);
        section.missing("series", "series = \"losses\"");
        return None;
    }
    let mut series = Vec::new();
    for (name, place) in section.texts(key) {
        let head = name.split('.').next().unwrap_or_default();
        if let Err(problem) = metric::check(&name, SERIES, Owners { measures: &[], ..owners }) {
            section.problem_at(&place, key, problem);
        } else if !capture.series.iter().any(|captured| captured == head) {
            let text = format!("\"{head}\" is not captured");
            let help = format!("add \"{head}\" to [capture] series");
            section.problem_at(&place, key, Problem::new(text, help));
        }
        series.push(name);
    }
    Some(series)
}

fn read_reduce(section: &mut Section<'_>) -> Option<Reduce> {
    let given = section.holds_any(&["reduce"]);
    let kind = section.choice("reduce", &KINDS);
    if !given {
        section.missing("reduce", "reduce = \"mean\"");
    }
    if kind.is_some_and(|kind| kind != Kind::TimeUntil) {
        let setting = "this reduce";
        section.no_effect(&["at_most"], setting, "reduce = \"time-until\"");
    }
    let windows = [Kind::LongestBelow, Kind::TimeBack];
    let window = if kind.is_some_and(|kind| windows.contains(&kind)) {
        Some(read_window(section)?)
    } else {
        if kind.is_some() {
            let options = ["window_s", "level", "of_mean_from_s"];
            section.no_effect(&options, "this reduce", "reduce = \"longest-below\"");
        }
        None
    };
    Some(match kind? {
        Kind::LongestBelow => Reduce::LongestBelow(window?),
        Kind::TimeBack => Reduce::TimeBack(window?),
        Kind::Mean => Reduce::Mean,
        Kind::Sum => Reduce::Sum,
        Kind::Max => Reduce::Max,
        Kind::Min => Reduce::Min,
        Kind::PerMinute => Reduce::PerMinute,
        Kind::TimeUntil => {
            let bounds = Bounds::new(0.0, Bounds::SECONDS.high * 1e6, "");
            Reduce::TimeUntil(section.number("at_most", bounds).unwrap_or(0.0))
        }
    })
}

fn read_window(section: &mut Section<'_>) -> Option<Window> {
    for (key, example) in [("window_s", "window_s = 0.2"), ("level", "level = 16.5")] {
        if !section.holds_any(&[key]) {
            section.missing(key, example);
        }
    }
    let length = section.seconds("window_s");
    let level = section.number("level", Bounds::new(0.0, 1e9, ""));
    let of_mean = section.seconds("of_mean_from_s");
    let level = level.map(|level| match of_mean {
        Some(from) => Level::OfMean { share: level, from },
        None => Level::Fixed(level),
    });
    Some(Window { length: length?, level: level? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(reduce: Reduce, within_s: (f64, f64), except_s: &[(f64, f64)]) -> Option<f64> {
        let span = |(start, end)| Span {
            start: Duration::from_secs_f64(start),
            end: Duration::from_secs_f64(end),
        };
        let measure = Measure {
            name: "x".into(),
            series: vec!["a".into(), "b".into()],
            reduce,
            within: span(within_s),
            except: except_s.iter().copied().map(span).collect(),
            during: None,
        };
        let series = BTreeMap::from([
            ("a".to_owned(), vec![1.0, 2.0, 3.0, 4.0, 5.0]),
            ("b".to_owned(), vec![9.0, 7.0, 5.0, 3.0, -5.0, 1.0]),
        ]);
        measure.value(&series, Duration::from_millis(100))
    }

    #[test]
    fn series_are_added_and_reduced() {
        // The sum of both: 10, 9, 8, 7, 0.
        let all = (0.0, 0.5);
        for (reduce, expected) in [
            (Reduce::Sum, 34.0),
            (Reduce::Mean, 6.8),
            (Reduce::Max, 10.0),
            (Reduce::Min, 0.0),
            (Reduce::PerMinute, 34.0 * 120.0),
            (Reduce::TimeUntil(7.5), 0.3),
        ] {
            let value = measure(reduce, all, &[]).unwrap();
            assert!((value - expected).abs() < 1e-9, "{reduce:?} {value}");
        }
    }

    /// The figure for a goodput of 0.8 Mbit/s with pauses, from and until in milliseconds.
    fn paused(reduce: Reduce, pauses: &[(usize, usize)]) -> f64 {
        let is_pause = |ms: usize| pauses.iter().any(|(from, to)| (*from..*to).contains(&ms));
        let sample = |at: usize| if is_pause(at * 10) { 0.0 } else { 0.8 };
        let series = BTreeMap::from([("a".to_owned(), (0..1000).map(sample).collect())]);
        let within = Span { start: Duration::ZERO, end: Duration::from_secs(10) };
        let series_names = vec!["a".to_owned()];
        let measure = Measure {
            name: "x_ms".into(),
            series: series_names,
            reduce,
            within,
            except: Vec::new(),
            during: None,
        };
        measure.value(&series, Duration::from_millis(10)).unwrap()
    }

    #[test]
    fn a_mean_during_a_transfer_leaves_out_what_follows_its_end() {
        // The window stays as it was when the transfer ends, for as long as the run lasts.
        let series = BTreeMap::from([
            ("cwnd".to_owned(), vec![10.0, 10.0, 40.0, 60.0, 100.0, 100.0, 100.0, 100.0]),
            ("goodput".to_owned(), vec![0.0, 8.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]),
        ]);
        let mean = |during: Option<&str>| {
            let measure = Measure {
                name: "window_mean_packets".into(),
                series: vec!["cwnd".into()],
                reduce: Reduce::Mean,
                within: Span { start: Duration::ZERO, end: Duration::from_secs(1) },
                except: Vec::new(),
                during: during.map(Into::into),
            };
            measure.value(&series, Duration::from_millis(100))
        };
        assert_eq!(mean(Some("goodput")), Some((10.0 + 40.0 + 60.0) / 3.0));
        assert_eq!(mean(None), Some(65.0));
        assert_eq!(mean(Some("offered")), None, "it is not captured");
    }

    #[test]
    fn a_standstill_counts_with_most_of_a_window_and_a_burst_does_not_end_it() {
        let level = Level::Fixed(0.72);
        let below = Reduce::LongestBelow(Window { length: Duration::from_millis(200), level });
        // Windows with more than 20 ms of the standstill are below the level.
        assert_eq!(paused(below, &[(1000, 1300)]).round(), 300.0 + 200.0 - 50.0);
        // 40 ms of data amid 600 ms of nothing.
        assert_eq!(paused(below, &[(1000, 1300), (1340, 1640)]).round(), 640.0 + 200.0 - 50.0);
    }

    #[test]
    fn the_time_back_counts_from_the_start_of_the_span() {
        let back = |level| Reduce::TimeBack(Window { length: Duration::from_secs(1), level });
        let share = Level::OfMean { share: 0.499, from: Duration::from_secs(5) };
        assert_eq!(paused(back(share), &[(0, 2500)]).round(), 2000.0, "nearly half of 0.8 Mbit/s");
        let back = back(Level::Fixed(0.719));
        assert_eq!(paused(back, &[]), 0.0);
        assert_eq!(paused(back, &[(0, 2500)]).round(), 2400.0);
        assert_eq!(paused(back, &[(0, 10_000)]).round(), 10_000.0);
    }

    #[test]
    fn only_whole_samples_within_the_span_count() {
        assert_eq!(measure(Reduce::Sum, (0.1, 0.4), &[]), Some(24.0));
        assert_eq!(measure(Reduce::Sum, (0.05, 0.35), &[]), Some(17.0));
        assert_eq!(measure(Reduce::Sum, (0.0, 0.5), &[(0.1, 0.35)]), Some(10.0));
        assert_eq!(measure(Reduce::Sum, (0.42, 0.45), &[]), None);
        assert_eq!(measure(Reduce::TimeUntil(-1.0), (0.0, 0.5), &[]), None);
    }
}
