//! The cases: which stream, over which links, and what happens to them meanwhile. They are data, in
//! a file of the lab's own or of its user.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::topology::LinkSpec;

/// The lab's own.
pub(super) const OWN: &str = include_str!("cases.toml");
/// The links' devices, the better one first.
pub(super) const LINK_NAMES: [&str; 2] = ["first", "second"];
/// Less, and a picture of this size does not fit in.
const KBIT: std::ops::RangeInclusive<u64> = 300..=100_000;
const SECONDS_MAX: u64 = 3600;

/// A file of cases.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cases {
    /// Of all streams, for each second.
    pub(super) frame_rate: u64,
    pub(super) warm_up_s: u64,
    pub(super) tail_s: u64,
    pub(super) queue_s: u64,
    pub(super) srt_latency_ms: u64,
    #[serde(rename = "case")]
    pub(super) cases: Vec<Case>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    /// For people.
    pub(super) title: String,
    /// Rate of the video.
    pub(super) kbit: u64,
    /// Time of the frames that count, with the warm-up.
    pub(super) seconds: u64,
    pub(super) links: [Link; 2],
    pub(super) events: Vec<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    mbit: u64,
    rtt_ms: u64,
    queue_ms: u64,
}

/// A link that has another rate for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// Counted from 1.
    pub(super) link: usize,
    /// From the encoder's start.
    pub(super) at_s: u64,
    pub(super) for_s: u64,
    /// Nothing is carried at 0.
    pub(super) kbit: u64,
}

impl Case {
    pub(super) fn specs(&self) -> [LinkSpec; 2] {
        let spec = |(name, link): (&'static str, &Link)| LinkSpec {
            queue_time: Duration::from_millis(link.queue_ms),
            ..LinkSpec::new(name, link.mbit, link.rtt_ms, link.rtt_ms)
        };
        [0, 1].map(|at| spec((LINK_NAMES[at], &self.links[at])))
    }

    /// The same in a third of the time.
    fn shortened(&self) -> Self {
        let third = |seconds: u64| seconds.div_ceil(3);
        let shorter =
            |event: &Event| Event { at_s: third(event.at_s), for_s: third(event.for_s), ..*event };
        let events = self.events.iter().map(shorter).collect();
        Self { seconds: third(self.seconds), events, ..self.clone() }
    }
}

impl Cases {
    /// Reads a file's text.
    ///
    /// # Errors
    /// No such form, or values that no stream can have.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let cases: Self = toml::from_str(text)?;
        ensure!((1..=120).contains(&cases.frame_rate), "frame_rate: from 1 to 120");
        ensure!((1..=600).contains(&cases.queue_s), "queue_s: from 1 to 600");
        ensure!((20..=60_000).contains(&cases.srt_latency_ms), "srt_latency_ms: from 20 to 60000");
        ensure!(!cases.cases.is_empty(), "there is no [[case]]");
        for case in &cases.cases {
            let name = &case.name;
            let seconds = cases.warm_up_s + 1..=SECONDS_MAX;
            ensure!(KBIT.contains(&case.kbit), "{name}: kbit: from 300 to 100000");
            ensure!(seconds.contains(&case.seconds), "{name}: seconds: more than the warm-up");
            for Link { mbit, rtt_ms, queue_ms } in &case.links {
                let is_good = (1..=1000).contains(mbit)
                    && (1..=2000).contains(rtt_ms)
                    && (1..=5000).contains(queue_ms);
                ensure!(is_good, "{name}: links: mbit, rtt_ms or queue_ms is out of range");
            }
            for event in &case.events {
                let is_good = (1..=LINK_NAMES.len()).contains(&event.link)
                    && event.at_s.saturating_add(event.for_s) <= case.seconds;
                ensure!(is_good, "{name}: events: link is 1 or 2, and all is over by the end");
            }
        }
        Ok(cases)
    }

    /// The same in a third of the time.
    pub(super) fn shortened(&self) -> Self {
        let cases = self.cases.iter().map(Case::shortened).collect();
        Self { cases, ..self.clone() }
    }

    /// The numbers of the frames that count.
    pub(super) fn counted(&self, case: &Case) -> std::ops::Range<u64> {
        self.warm_up_s * self.frame_rate..case.seconds * self.frame_rate
    }

    /// How long the encoder runs.
    pub(super) fn encoded(&self, case: &Case) -> Duration {
        Duration::from_secs(case.seconds + self.tail_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labs_own_cases_are_sound_and_hold_the_published_load() {
        let cases = Cases::parse(OWN).unwrap();
        let full = cases.cases.iter().find(|case| case.name == "full").unwrap();
        let mbit: Vec<u64> = full.specs().iter().map(|link| link.rate_mbit).collect();
        assert_eq!((full.kbit, mbit), (8000, vec![6, 6]));
        assert_eq!(cases.counted(full), 50..1500);
        let names: Vec<&str> = cases.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["steady", "cut", "sag", "full"]);
    }

    #[test]
    fn a_third_of_the_time_keeps_its_events_inside() {
        let cases = Cases::parse(OWN).unwrap().shortened();
        let cut = &cases.cases[1];
        assert_eq!((cut.seconds, cut.events[0].at_s, cut.events[0].for_s), (10, 3, 3));
    }

    #[test]
    fn what_no_stream_can_have_is_refused() {
        for (from, to, why) in [
            ("frame_rate = 25", "frame_rate = 0", "frame_rate"),
            ("kbit = 5000", "kbit = 5", "kbit"),
            ("seconds = 20", "seconds = 2", "seconds"),
            ("mbit = 12", "mbit = 0", "links"),
            ("link = 1, at_s = 8", "link = 3, at_s = 8", "events"),
            ("at_s = 8, for_s = 8", "at_s = 8, for_s = 800", "events"),
            ("queue_s = 20", "queue = 20", "queue"),
        ] {
            let text = OWN.replacen(from, to, 1);
            assert_ne!(text, OWN);
            let error = format!("{:#}", Cases::parse(&text).unwrap_err());
            assert!(error.contains(why), "{why}: {error}");
        }
    }
}
