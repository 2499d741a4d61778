//! Probes of one attachment: when the next is due, which are under way, and what their answers
//! tell.

use std::collections::VecDeque;

use super::config::ProbeConfig;
use super::status::ProbeCounters;
use crate::time::{Duration, Instant, earlier};

/// How long a smallest round-trip time counts.
const MIN_WINDOW: Duration = Duration::from_secs(10);

/// Round-trip times of probes: an average that follows quickly, as 000's authors have it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Option<Duration>,
    /// Smallest of the current window, and when that began; smallest of the window before it.
    current_min: Option<(Duration, Instant)>,
    previous_min: Option<Duration>,
}

/// The average of an old estimate and a new sample: 0.4 old and 0.6 new.
fn average(old: Duration, new: Duration) -> Duration {
    (old * 2 + new * 3) / 5
}

impl ProbeRtt {
    fn sample(&mut self, now: Instant, rtt: Duration) {
        self.latest = Some(rtt);
        self.smoothed = Some(match self.smoothed {
            None => rtt,
            Some(smoothed) => {
                self.variation = average(self.variation, smoothed.abs_diff(rtt));
                average(smoothed, rtt)
            }
        });
        match &mut self.current_min {
            Some((min, since)) if now.since(*since) < MIN_WINDOW / 2 => *min = rtt.min(*min),
            current => {
                self.previous_min = current.map(|(min, _)| min);
                *current = Some((rtt, now));
            }
        }
    }

    /// Smoothed; `None` before the first answer.
    pub(super) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Mean deviation; zero after one sample.
    pub(super) fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation)
    }

    pub(super) const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The smallest of the last five to ten seconds.
    pub(super) fn min(&self) -> Option<Duration> {
        let (current, _) = self.current_min?;
        Some(self.previous_min.map_or(current, |previous| previous.min(current)))
    }
}

/// Probes of one attachment.
#[derive(Clone, Debug)]
pub(super) struct Prober {
    /// Whether it carries packets as far as probes tell.
    answering: bool,
    /// Whether any was answered since the attachment came up.
    proven: bool,
    next_number: u16,
    last_sent_at: Option<Instant>,
    /// Numbers and times of those under way, oldest first: no more than are sent within a timeout.
    under_way: VecDeque<(u16, Instant)>,
    /// When the latest probe left that was answered: what was lost before it is past.
    answered_from: Instant,
    /// The owner has not fetched the latest one yet.
    unfetched: bool,
    unanswered_in_a_row: u32,
    answered_in_a_row: u32,
    pub(super) rtt: ProbeRtt,
    pub(super) counters: ProbeCounters,
}

impl Prober {
    /// The primary counts as answering until it is found not to; another attachment must answer
    /// first. Numbers begin anywhere, so that answers to a former life's probes are not taken.
    pub(super) fn new(is_primary: bool, first_number: u16) -> Self {
        Self {
            answering: is_primary,
            proven: is_primary,
            next_number: first_number,
            last_sent_at: None,
            under_way: VecDeque::new(),
            answered_from: Instant::ZERO,
            unfetched: false,
            unanswered_in_a_row: 0,
            answered_in_a_row: 0,
            rtt: ProbeRtt::default(),
            counters: ProbeCounters::default(),
        }
    }

    /// Begins again, as when the interface is back: probes under way are forgotten, and so is
    /// whether any was answered.
    pub(super) fn restart(&mut self, is_primary: bool) {
        let number = self.next_number;
        let counters = self.counters;
        *self = Self { counters, ..Self::new(is_primary, number) };
    }

    pub(super) const fn is_answering(&self) -> bool {
        self.answering
    }

    pub(super) const fn is_proven(&self) -> bool {
        self.proven
    }

    pub(super) const fn unanswered_in_a_row(&self) -> u32 {
        self.unanswered_in_a_row
    }

    /// When the next probe is due.
    fn due_at(&self, config: &ProbeConfig, busy: bool) -> Instant {
        let hurry = busy || (self.answering && self.unanswered_in_a_row > 0);
        let interval = if hurry { config.interval } else { config.idle_interval };
        self.last_sent_at.map_or(Instant::ZERO, |at| at + interval)
    }

    /// When something is due: a probe, or the end of the wait for an answer.
    pub(super) fn poll_timeout(&self, config: &ProbeConfig, busy: bool) -> Instant {
        let overdue = self.under_way.front().map(|(_, sent_at)| *sent_at + config.timeout);
        let due = self.due_at(config, busy);
        earlier(overdue, Some(due)).unwrap_or(due)
    }

    /// Gives up probes that were not answered in time. Returns whether the attachment went silent.
    pub(super) fn expire(&mut self, now: Instant, config: &ProbeConfig) -> bool {
        let answered = self.answering;
        while let Some(&(_, sent_at)) = self.under_way.front() {
            if now.since(sent_at) < config.timeout {
                break;
            }
            self.under_way.pop_front();
            self.counters.unanswered += 1;
            if sent_at < self.answered_from {
                continue;
            }
            self.answered_in_a_row = 0;
            self.unanswered_in_a_row = self.unanswered_in_a_row.saturating_add(1);
            self.answering &= self.unanswered_in_a_row < config.unanswered_max;
        }
        answered && !self.answering
    }

    /// The number of the probe that is to be sent now; `None` when none is due, or the owner has
    /// not fetched the one before.
    pub(super) fn send(&mut self, now: Instant, config: &ProbeConfig, busy: bool) -> Option<u16> {
        if now < self.due_at(config, busy) {
            return None;
        }
        self.last_sent_at = Some(now);
        if core::mem::replace(&mut self.unfetched, true) {
            return None;
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.under_way.push_back((number, now));
        self.counters.sent += 1;
        Some(number)
    }

    /// The round-trip time to reckon with: the average of those measured, or the age of the oldest
    /// probe under way that nothing later has overtaken, if that is more. A queue that grows is
    /// known by it before its first late answer. `None` before the first answer.
    pub(super) fn reckoned_rtt(&self, now: Instant) -> Option<Duration> {
        let smoothed = self.rtt.smoothed()?;
        let mut waiting = self.under_way.iter().filter(|(_, at)| *at > self.answered_from);
        let age = waiting.next().map(|(_, sent_at)| now.since(*sent_at));
        Some(smoothed.max(age.unwrap_or_default()))
    }

    /// The owner has fetched the latest probe.
    pub(super) const fn fetched(&mut self) {
        self.unfetched = false;
    }

    /// Takes an answer. Returns whether the attachment came into use by it.
    pub(super) fn answer(&mut self, now: Instant, number: u16, config: &ProbeConfig) -> bool {
        let Some(at) = self.under_way.iter().position(|(sent, _)| *sent == number) else {
            self.counters.unexpected += 1;
            return false;
        };
        let sent_at = self.under_way.remove(at).map_or(now, |(_, sent_at)| sent_at);
        self.counters.answered += 1;
        self.unanswered_in_a_row = 0;
        self.answered_in_a_row = self.answered_in_a_row.saturating_add(1);
        self.answered_from = self.answered_from.max(sent_at);
        self.rtt.sample(now, now.since(sent_at));
        // The first answer proves it; one that had fallen silent must show more.
        let enough = !self.proven || self.answered_in_a_row >= config.answered_min;
        self.proven = true;
        let comes_into_use = enough && !self.answering;
        self.answering |= enough;
        comes_into_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ProbeConfig = ProbeConfig {
        interval: Duration::from_millis(100),
        idle_interval: Duration::from_secs(5),
        timeout: Duration::from_millis(250),
        unanswered_max: 3,
        answered_min: 2,
    };

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Sends what is due and says its number.
    fn send(prober: &mut Prober, ms: u64) -> Option<u16> {
        let number = prober.send(at(ms), &CONFIG, true);
        prober.fetched();
        number
    }

    #[test]
    fn an_average_is_two_fifths_old_and_three_fifths_new() {
        let mut rtt = ProbeRtt::default();
        rtt.sample(at(0), Duration::from_millis(100));
        assert_eq!(
            (rtt.smoothed(), rtt.variation()),
            (Some(Duration::from_millis(100)), Some(Duration::ZERO))
        );
        rtt.sample(at(1), Duration::from_millis(50));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(70)));
        assert_eq!(rtt.variation(), Some(Duration::from_millis(30)));
        assert_eq!(
            (rtt.latest(), rtt.min()),
            (Some(Duration::from_millis(50)), Some(Duration::from_millis(50)))
        );
    }

    #[test]
    fn probes_keep_their_interval() {
        let mut prober = Prober::new(false, 65_535);
        let sent: Vec<_> = (0..10).filter_map(|tick| send(&mut prober, tick * 50)).collect();
        assert_eq!(sent, [65_535, 0, 1, 2, 3]);
        assert_eq!(prober.send(at(5000), &CONFIG, false), None, "idle probes are rarer");
        assert!(prober.send(at(5400), &CONFIG, false).is_some());
    }

    #[test]
    fn an_attachment_must_answer_once_and_is_silent_after_three_misses() {
        let mut prober = Prober::new(false, 0);
        assert!(!prober.is_answering());
        send(&mut prober, 0);
        assert!(prober.answer(at(20), 0, &CONFIG), "the first answer brings it into use");
        for tick in 1..=3 {
            send(&mut prober, tick * 100);
        }
        assert!(!prober.expire(at(549), &CONFIG), "two are overdue");
        assert!(prober.expire(at(550), &CONFIG), "three are");
        assert!(!prober.is_answering() && prober.is_proven());
        send(&mut prober, 600);
        assert!(!prober.answer(at(620), 4, &CONFIG), "one answer does not bring it back");
        send(&mut prober, 700);
        assert!(prober.answer(at(720), 5, &CONFIG), "two do");
        assert_eq!((prober.counters.answered, prober.counters.unanswered), (3, 3));
    }

    #[test]
    fn an_answer_counts_once_and_in_time() {
        let mut prober = Prober::new(true, 7);
        send(&mut prober, 0);
        prober.expire(at(250), &CONFIG);
        prober.answer(at(260), 7, &CONFIG);
        assert_eq!(prober.rtt.smoothed(), None, "too late");
        send(&mut prober, 300);
        prober.answer(at(310), 8, &CONFIG);
        prober.answer(at(320), 8, &CONFIG);
        assert_eq!(prober.rtt.smoothed(), Some(Duration::from_millis(10)));
        assert_eq!((prober.counters.answered, prober.counters.unexpected), (1, 2));
    }

    #[test]
    fn a_probe_that_waits_longer_than_the_average_counts_with_its_age() {
        let mut prober = Prober::new(true, 0);
        let reckoned = |prober: &Prober, ms| prober.reckoned_rtt(at(ms)).map(|rtt| rtt.as_millis());
        send(&mut prober, 0);
        assert_eq!(reckoned(&prober, 90), None, "nothing was ever answered");
        prober.answer(at(30), 0, &CONFIG);
        send(&mut prober, 100);
        assert_eq!(reckoned(&prober, 130), Some(30), "no later than the average");
        send(&mut prober, 200);
        assert_eq!(reckoned(&prober, 240), Some(140), "the oldest one's");
        prober.answer(at(250), 2, &CONFIG);
        let average = (30 * 2 + 50 * 3) / 5;
        assert_eq!(reckoned(&prober, 250), Some(average), "the first was lost: a later one came");
        send(&mut prober, 300);
        prober.expire(at(550), &CONFIG);
        send(&mut prober, 560);
        assert_eq!(reckoned(&prober, 640), Some(80), "what was given up counts no more");
    }

    #[test]
    fn probes_lost_before_an_answered_one_are_past() {
        let mut prober = Prober::new(true, 0);
        for tick in 0..3 {
            send(&mut prober, tick * 100);
        }
        prober.answer(at(220), 2, &CONFIG);
        assert!(!prober.expire(at(1000), &CONFIG));
        assert_eq!((prober.counters.unanswered, prober.unanswered_in_a_row()), (2, 0));
    }

    #[test]
    fn probes_that_nobody_fetches_do_not_pile_up() {
        let mut prober = Prober::new(true, 0);
        let sent = (0..100).filter_map(|tick| prober.send(at(tick * 100), &CONFIG, true));
        assert_eq!(sent.count(), 1);
        prober.fetched();
        assert_eq!(prober.send(at(10_000), &CONFIG, true), Some(1));
    }
}
