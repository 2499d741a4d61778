//! One attachment as the acknowledgements show it: its shortest delay, what it delivers, and what
//! waits in it. `docs/algorithms/capacity.md` has the equations.
//!
//! An attachment keeps the order of what it is given. So when a segment has arrived, everything
//! sent over the same attachment before it has arrived as well, or never will: nothing stays in
//! flight by mistake.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Over so much time of service the rate is an average.
const MEMORY: Duration = Duration::from_millis(20);
/// How long a shortest delay counts, at least.
const SHORTEST_LASTS: Duration = Duration::from_secs(5);
/// A delay above the shortest one by no more than this is jitter, not a queue.
const JITTER_MIN: Duration = Duration::from_millis(5);
/// The delay of an attachment of which nothing is known.
const UNKNOWN_DELAY: Duration = Duration::from_millis(20);
/// An attachment is believed to carry so many bytes a delay, whatever was seen: an initial window
/// (RFC 6928).
const LEAST_BYTES: u64 = 14_600;
/// No acknowledgement for so long is silence, and twice the time between two arrivals besides.
const SILENCE_MIN: Duration = Duration::from_millis(4);
/// What has not arrived after so long is no longer waited for.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// Sent packets are remembered in groups; at most so many.
const GROUPS_MAX: usize = 4096;
/// What is sent within this time is one group.
const GROUP_SPAN: Duration = Duration::from_micros(100);
/// Sightings of the throughput last so long, and are counted over so long.
const PEAK_LASTS: Duration = Duration::from_secs(2);
const PEAK_SPAN: Duration = Duration::from_millis(20);

/// Packets that were sent at about the same time.
#[derive(Clone, Copy, Debug)]
struct Group {
    sent_at: Instant,
    bytes: u64,
    /// Of them, those whose arrival nobody will tell.
    untold_bytes: u64,
}

impl Group {
    const fn is_untold(&self) -> bool {
        self.bytes == self.untold_bytes
    }
}

/// What one acknowledgement says of one attachment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    bytes: u64,
    first_sent_at: Option<Instant>,
    last_sent_at: Instant,
    /// Bytes of the segment that was sent last.
    last_bytes: u64,
}

impl Service {
    /// Adds a segment that has arrived.
    pub(super) fn add(&mut self, sent_at: Instant, bytes: u32) {
        self.bytes += u64::from(bytes);
        self.first_sent_at = Some(self.first_sent_at.map_or(sent_at, |at| at.min(sent_at)));
        if sent_at >= self.last_sent_at {
            (self.last_sent_at, self.last_bytes) = (sent_at, u64::from(bytes));
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.first_sent_at.is_none()
    }
}

/// The largest of a span of time, and of the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Extreme {
    began_at: Instant,
    current: Option<u64>,
    previous: Option<u64>,
}

impl Extreme {
    fn add(&mut self, now: Instant, span: Duration, value: u64, better: fn(u64, u64) -> u64) {
        if self.current.is_none() || now.since(self.began_at) >= span {
            (self.previous, self.current, self.began_at) = (self.current, None, now);
        }
        self.current = Some(self.current.map_or(value, |current| better(current, value)));
    }

    fn get(&self, better: fn(u64, u64) -> u64) -> Option<u64> {
        match (self.current, self.previous) {
            (Some(current), Some(previous)) => Some(better(current, previous)),
            (current, previous) => current.or(previous),
        }
    }
}

/// An attachment.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    groups: VecDeque<Group>,
    in_flight_bytes: u64,
    /// Shortest delay from the node to the client and back, in nanoseconds.
    shortest: Extreme,
    /// Bytes a second; 0 before the first arrival.
    rate: u64,
    last_arrival_at: Instant,
    /// Most bytes that arrived within a [`PEAK_SPAN`], and those of the span under way.
    peak: Extreme,
    span_began_at: Instant,
    span_bytes: u64,
}

impl Delivery {
    /// Takes a packet that goes over it; `is_told`: its arrival will be seen.
    pub(super) fn sent(&mut self, now: Instant, bytes: u64, is_told: bool) {
        self.expire(now);
        let untold_bytes = if is_told { 0 } else { bytes };
        self.in_flight_bytes += bytes;
        let is_full = self.groups.len() >= GROUPS_MAX;
        match self.groups.back_mut() {
            Some(last) if is_full || now.since(last.sent_at) < GROUP_SPAN => {
                last.bytes += bytes;
                last.untold_bytes += untold_bytes;
            }
            _ => self.groups.push_back(Group { sent_at: now, bytes, untold_bytes }),
        }
    }

    fn expire(&mut self, now: Instant) {
        let untold = LOST_AFTER.min(self.shortest().unwrap_or(UNKNOWN_DELAY) * 4);
        while let Some(first) = self.groups.front()
            && let age = now.since(first.sent_at)
            && (age >= LOST_AFTER || first.is_untold() && age >= untold)
        {
            self.in_flight_bytes -= first.bytes;
            self.groups.pop_front();
        }
    }

    /// Takes out the groups before the one that holds `sent_at`. Returns the bytes of them: those
    /// whose arrival somebody tells, and the others.
    fn pass(&mut self, sent_at: Instant) -> (u64, u64) {
        let (mut told, mut untold) = (0, 0);
        while let Some(next) = self.groups.get(1)
            && next.sent_at <= sent_at
            && let Some(first) = self.groups.pop_front()
        {
            self.in_flight_bytes -= first.bytes;
            told += first.bytes - first.untold_bytes;
            untold += first.untold_bytes;
        }
        (told, untold)
    }

    /// Takes out what has arrived, and what was sent before it. Returns the bytes of which nobody
    /// told.
    fn take(&mut self, service: &Service) -> u64 {
        let (told, untold) = self.pass(service.last_sent_at);
        let left = service.bytes.saturating_sub(told).max(service.last_bytes);
        if let Some(group) = self.groups.front_mut()
            && group.sent_at <= service.last_sent_at
        {
            let arrived = left.min(group.bytes - group.untold_bytes);
            group.bytes -= arrived;
            self.in_flight_bytes -= arrived;
            if group.bytes == 0 {
                self.groups.pop_front();
            }
        }
        untold
    }

    fn shortest(&self) -> Option<Duration> {
        self.shortest.get(u64::min).map(Duration::from_nanos)
    }

    /// A delay above the shortest one by no more than this is no sign of a queue.
    fn jitter(shortest: Duration) -> Duration {
        JITTER_MIN.max(shortest / 2)
    }

    /// Takes what an acknowledgement that comes now says of it.
    pub(super) fn arrived(&mut self, now: Instant, service: &Service) {
        let Some(first_sent_at) = service.first_sent_at else { return };
        let delay = now.since(service.last_sent_at);
        self.shortest.add(now, SHORTEST_LASTS, nanos(delay), u64::min);
        let shortest = self.shortest().unwrap_or(delay);
        let bytes = service.bytes + self.take(service);
        let begun = self.last_arrival_at.max(first_sent_at + shortest);
        let took = now.since(begun);
        let measured = average(self.rate, bytes, took);
        let has_queue = delay > shortest + Self::jitter(shortest);
        if has_queue || measured > self.rate {
            self.rate = measured;
        }
        self.count(now, bytes);
        let seen = self.peak.get(u64::max).unwrap_or(0);
        let most = rate_of(seen, PEAK_SPAN).saturating_mul(2);
        self.rate = self.rate.min(most).max(rate_of(LEAST_BYTES, shortest));
        self.last_arrival_at = now;
    }

    fn count(&mut self, now: Instant, bytes: u64) {
        if now.since(self.span_began_at) >= PEAK_SPAN {
            (self.span_began_at, self.span_bytes) = (now, 0);
        }
        self.span_bytes += bytes;
        self.peak.add(now, PEAK_LASTS, self.span_bytes, u64::max);
    }

    /// Takes the answer to a probe that took `rtt`.
    pub(super) fn passed(&mut self, now: Instant, rtt: Duration) {
        while let Some(first) = self.groups.front()
            && now.since(first.sent_at) > rtt
        {
            self.in_flight_bytes -= first.bytes;
            self.groups.pop_front();
        }
    }

    /// How long a packet of so many bytes, sent now, takes to be acknowledged; `probed` is the
    /// shortest round trip of probes, where there are any.
    pub(super) fn expected(&self, now: Instant, bytes: u64, probed: Option<Duration>) -> Duration {
        let shortest = self.shortest().or(probed).unwrap_or(UNKNOWN_DELAY);
        let rate = self.rate.max(rate_of(LEAST_BYTES, shortest)).max(1);
        let served = time_for(self.in_flight_bytes + bytes, rate);
        let silence = self.silence(now, shortest);
        let bearable = SILENCE_MIN + time_for(2 * 1500, rate);
        if silence <= bearable {
            return shortest.max(served);
        }
        let (silence, bearable) = (nanos(silence), nanos(bearable).max(1));
        let slowed = u128::from(nanos(served)) * u128::from(silence) / u128::from(bearable);
        shortest.max(Duration::from_nanos(u64::try_from(slowed).unwrap_or(u64::MAX)))
    }

    /// For how long an arrival has been due.
    fn silence(&self, now: Instant, shortest: Duration) -> Duration {
        let Some(first) = self.groups.front().filter(|first| !first.is_untold()) else {
            return Duration::ZERO;
        };
        now.since(self.last_arrival_at.max(first.sent_at + shortest))
    }

    /// What it delivers, once anything has arrived.
    pub(super) fn rate(&self) -> Option<Rate> {
        (self.rate > 0).then(|| Rate::from_bits_per_second(self.rate.saturating_mul(8)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn rate_of(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn time_for(bytes: u64, rate: u64) -> Duration {
    let time = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
}

/// The average of a rate over the last [`MEMORY`] of service, after so many bytes more.
fn average(rate: u64, bytes: u64, took: Duration) -> u64 {
    let memory = MEMORY.as_nanos();
    let remembered = u128::from(rate) * memory / 1_000_000_000;
    let all = (remembered + u128::from(bytes)) * 1_000_000_000 / (memory + took.as_nanos());
    u64::try_from(all).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Delivery {
    pub(super) fn assert_sound(&self) {
        let bytes: u64 = self.groups.iter().map(|group| group.bytes).sum();
        assert_eq!(self.in_flight_bytes, bytes);
        assert!(self.groups.iter().is_sorted_by_key(|group| group.sent_at));
        assert!(self.groups.iter().all(|group| group.untold_bytes <= group.bytes));
    }
}
