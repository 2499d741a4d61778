//! How much later than the quickest path the slowest one delivers: the adaptive resequencing timer.
//!
//! `timeout = clamp(max_owd − min_owd + 4·jitter + 5 ms, min, max)`, where `max_owd` and `min_owd`
//! are the largest and smallest one-way delays of any live path within about the last second. The
//! peer's clock is unknown, but its offset is the same on every path of a bond, so it cancels.
//! Peaks are held rather than averaged: a false give-up makes TCP see a loss, while waiting a
//! little longer costs little. `docs/algorithms/resequencing.md`.

use crate::seq::PathId;
use crate::time::{Duration, Instant};

/// The unit of `send_ts`.
pub const SEND_TS_UNIT: Duration = Duration::from_micros(64);

/// Buckets of the sliding extremes.
const BUCKETS: usize = 4;
const BUCKET: Duration = Duration::from_millis(250);
/// A path silent for so long no longer counts. The paths of an idle bond are probed every 25 s, and
/// one lost probe must not take a slow path out, or the first packets over it after the idle time
/// would be given up. A path found dead is removed by the owner.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const MARGIN: Duration = Duration::from_millis(5);
/// The reference moves once a delay is so many units (about 0.5 s) from it; the differences that 16
/// bits can hold are four times as wide.
const REFERENCE_DRIFT_MAX: i32 = 8192;

/// The extremes of one stretch of [`BUCKET`].
#[derive(Clone, Copy, Debug)]
struct Extremes {
    /// Which stretch since the owner's start.
    index: u64,
    low: i32,
    high: i32,
}

#[derive(Debug)]
struct PathDelay {
    path: PathId,
    latest_at: Instant,
    latest: i32,
    /// Mean deviation of successive delays, in 1/16 units (RFC 3550 section 6.4.1).
    jitter_16: i32,
    buckets: [Option<Extremes>; BUCKETS],
    /// The extremes over all buckets as they were in the stretch of the latest sample.
    recent: Extremes,
}

impl PathDelay {
    fn new(path: PathId, now: Instant, delay: i32) -> Self {
        let recent = Extremes { index: bucket_index(now), low: delay, high: delay };
        Self { path, latest_at: now, latest: delay, jitter_16: 0, buckets: [None; BUCKETS], recent }
    }

    fn add(&mut self, now: Instant, delay: i32) {
        let deviation = (delay - self.latest).abs();
        self.jitter_16 += deviation - self.jitter_16 / 16;
        self.latest = delay;
        self.latest_at = now;
        let index = bucket_index(now);
        let bucket = &mut self.buckets[(index % BUCKETS as u64) as usize];
        *bucket = Some(match *bucket {
            Some(old) if old.index == index => {
                Extremes { index, low: old.low.min(delay), high: old.high.max(delay) }
            }
            _ => Extremes { index, low: delay, high: delay },
        });
        if self.recent.index == index {
            self.recent.low = self.recent.low.min(delay);
            self.recent.high = self.recent.high.max(delay);
        } else {
            let (low, high) = self.extremes_at(index);
            self.recent = Extremes { index, low, high };
        }
    }

    /// Lowest and highest delay within the last second, which ends with stretch `index`; the latest
    /// when there was none.
    fn extremes(&self, index: u64) -> (i32, i32) {
        if self.recent.index == index {
            (self.recent.low, self.recent.high)
        } else {
            self.extremes_at(index)
        }
    }

    fn extremes_at(&self, index: u64) -> (i32, i32) {
        let oldest = index.saturating_sub(BUCKETS as u64 - 1);
        let recent = self.buckets.iter().flatten().filter(|bucket| bucket.index >= oldest);
        recent
            .map(|b| (b.low, b.high))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((self.latest, self.latest))
    }

    fn is_silent(&self, now: Instant) -> bool {
        self.latest_at + SILENCE_MAX <= now
    }

    fn shift(&mut self, units: i32) {
        self.latest -= units;
        for bucket in self.buckets.iter_mut().flatten().chain([&mut self.recent]) {
            bucket.low -= units;
            bucket.high -= units;
        }
    }
}

fn bucket_index(now: Instant) -> u64 {
    now.as_nanos() / BUCKET.as_nanos() as u64
}

/// Follows the one-way delays of a bond's paths.
#[derive(Debug)]
pub struct DelaySpread {
    min: Duration,
    max: Duration,
    /// The delay, modulo 2^16 units, that counts as zero.
    reference: u16,
    paths: Vec<PathDelay>,
}

impl DelaySpread {
    /// A timer kept between `min` and `max`.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, reference: 0, paths: Vec::new() }
    }

    /// Takes a datagram that arrived at `now` over `path` and was sent at `send_ts` of the peer's
    /// clock, in units of [`SEND_TS_UNIT`] modulo 2^16 (a lap of 4.19 s).
    ///
    /// Delays are told apart as long as they lie within 2 s of each other.
    pub fn sample(&mut self, now: Instant, path: PathId, send_ts: u16) {
        if self.paths.iter().any(|known| known.is_silent(now)) {
            self.paths.retain(|known| !known.is_silent(now));
        }
        let arrival = (now.as_nanos() / SEND_TS_UNIT.as_nanos() as u64) as u16;
        let transit = arrival.wrapping_sub(send_ts);
        if self.paths.is_empty() {
            self.reference = transit;
        }
        let delay = i32::from(transit.wrapping_sub(self.reference) as i16);
        match self.paths.iter_mut().find(|known| known.path == path) {
            Some(known) => known.add(now, delay),
            None => {
                let mut known = PathDelay::new(path, now, delay);
                known.add(now, delay);
                self.paths.push(known);
            }
        }
        if delay.abs() > REFERENCE_DRIFT_MAX {
            self.follow_drift(now);
        }
    }

    /// Moves the reference to the lowest recent delay, so that slow drift of the peer's clock never
    /// reaches the end of the 16 bits.
    fn follow_drift(&mut self, now: Instant) {
        let index = bucket_index(now);
        let Some(low) = self.paths.iter().map(|path| path.extremes(index).0).min() else {
            return;
        };
        self.reference = self.reference.wrapping_add(low as u16);
        for path in &mut self.paths {
            path.shift(low);
        }
    }

    /// Forgets a path.
    pub fn remove(&mut self, path: PathId) {
        self.paths.retain(|known| known.path != path);
    }

    /// How much later a path delivers than the quickest, both without their jitter, within about
    /// the last second; `None` when nothing came over it of late.
    pub fn excess(&self, now: Instant, path: PathId) -> Option<Duration> {
        let index = bucket_index(now);
        let recent = self.paths.iter().filter(|path| !path.is_silent(now));
        let quickest = recent.map(|path| path.extremes(index).0).min()?;
        let own = self.paths.iter().find(|known| known.path == path && !known.is_silent(now))?;
        let units = own.extremes(index).0.abs_diff(quickest);
        Some(SEND_TS_UNIT * units)
    }

    /// The timeout to use now; `None` while every path is silent.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        let index = bucket_index(now);
        let (mut low, mut high, mut jitter_16) = (i32::MAX, i32::MIN, 0);
        for path in self.paths.iter().filter(|path| !path.is_silent(now)) {
            let extremes = path.extremes(index);
            low = low.min(extremes.0);
            high = high.max(extremes.1);
            jitter_16 = jitter_16.max(path.jitter_16.unsigned_abs());
        }
        if low > high {
            return None;
        }
        let units = high.abs_diff(low) + jitter_16 / 4;
        let nanos = u64::from(units) * SEND_TS_UNIT.as_nanos() as u64 + MARGIN.as_nanos() as u64;
        Some(Duration::from_nanos(nanos).clamp(self.min, self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(5);
    const MAX: Duration = Duration::from_millis(500);
    const FAST: PathId = PathId(0);
    const SLOW: PathId = PathId(1);

    /// A sample sent `sent_us` after the owner's start by a clock that is `offset` units ahead.
    fn sample(spread: &mut DelaySpread, sent_us: u64, delay_us: u64, path: PathId, offset: u64) {
        let send_ts = (sent_us / 64 + offset) as u16;
        spread.sample(Instant::from_nanos((sent_us + delay_us) * 1000), path, send_ts);
    }

    fn timeout_ms(spread: &DelaySpread, at_ms: u64) -> u64 {
        let timeout = spread.timeout(Instant::from_millis(at_ms)).expect("paths are live");
        timeout.as_micros().div_ceil(1000) as u64
    }

    /// Spec W-6: only differences mean anything.
    #[test]
    fn the_timeout_is_the_spread_plus_margin_whatever_the_clocks_offset() {
        for offset in [0, 1, 30_000, 65_535, 1 << 40] {
            let mut spread = DelaySpread::new(MIN, MAX);
            for i in 0..200 {
                sample(&mut spread, i * 10_000, 6_400, FAST, offset);
                sample(&mut spread, i * 10_000, 25_600, SLOW, offset);
            }
            // 25.6 − 6.4 + 5 ms, give or take the unit of the stamps.
            assert!((24..=25).contains(&timeout_ms(&spread, 2000)), "offset {offset}");
        }
    }

    /// Spec W-6: modulo 2^16.
    #[test]
    fn laps_of_the_stamp_do_not_show() {
        let mut spread = DelaySpread::new(MIN, MAX);
        for i in 0..2000 {
            sample(&mut spread, i * 10_000, 6_400, FAST, 0);
            sample(&mut spread, i * 10_000, 25_600, SLOW, 0);
            let now_ms = i * 10 + 30;
            assert!(timeout_ms(&spread, now_ms) <= 25, "at {now_ms} ms");
        }
    }

    #[test]
    fn clock_drift_is_followed() {
        let mut spread = DelaySpread::new(MIN, MAX);
        // 1000 ppm for 3 hours: 10.8 s, more than two laps of the stamp.
        for i in 0..108_000_u64 {
            let drift = i * 100 / 64;
            sample(&mut spread, i * 100_000, 6_400, FAST, drift);
            sample(&mut spread, i * 100_000, 25_600, SLOW, drift);
            assert!(timeout_ms(&spread, i * 100 + 30) <= 26, "after {i} samples");
        }
    }

    #[test]
    fn a_queue_that_builds_raises_the_timeout_at_once() {
        let mut spread = DelaySpread::new(MIN, MAX);
        for i in 0..100_u64 {
            let queue = i.saturating_sub(50) * 1000;
            sample(&mut spread, i * 1000, 10_000, FAST, 0);
            sample(&mut spread, i * 1000, 10_000 + queue, SLOW, 0);
            assert!(timeout_ms(&spread, i + 60) >= queue / 1000 + 4);
        }
    }

    #[test]
    fn jitter_widens_the_timeout() {
        let mut spread = DelaySpread::new(MIN, MAX);
        for i in 0..400_u64 {
            sample(&mut spread, i * 5000, 20_000 + (i % 2) * 10_000, FAST, 0);
        }
        // Spread 10 ms, mean deviation 10 ms.
        assert!((53..=56).contains(&timeout_ms(&spread, 2020)), "{}", timeout_ms(&spread, 2020));
    }

    #[test]
    fn a_peak_is_forgotten_after_a_second() {
        let mut spread = DelaySpread::new(MIN, MAX);
        for i in 0..190_u64 {
            let delay = if i == 100 { 100_000 } else { 10_000 };
            sample(&mut spread, i * 10_000, delay, FAST, 0);
        }
        assert!(timeout_ms(&spread, 1900) >= 90);
        for i in 190..400_u64 {
            sample(&mut spread, i * 10_000, 10_000, FAST, 0);
        }
        assert!(timeout_ms(&spread, 4000) <= 6);
    }

    #[test]
    fn silent_and_removed_paths_leave() {
        let mut spread = DelaySpread::new(MIN, MAX);
        sample(&mut spread, 0, 100_000, SLOW, 0);
        for i in 0..602 {
            sample(&mut spread, i * 100_000, 10_000, FAST, 0);
            let now_ms = i * 100 + 10;
            let expected = if now_ms < 60_100 { 95 } else { 5 };
            assert!((expected..expected + 2).contains(&timeout_ms(&spread, now_ms)), "{now_ms}");
        }
        sample(&mut spread, 60_200_000, 100_000, SLOW, 0);
        assert!(timeout_ms(&spread, 60_300) >= 94);
        spread.remove(SLOW);
        assert!(timeout_ms(&spread, 60_300) <= 6);
        assert_eq!(spread.timeout(Instant::from_millis(120_400)), None);
    }

    /// Spec R-2: the adaptive timeout lies between its bounds.
    #[test]
    fn the_bounds_hold() {
        let mut spread = DelaySpread::new(Duration::from_millis(8), Duration::from_millis(40));
        sample(&mut spread, 0, 10_000, FAST, 0);
        assert_eq!(timeout_ms(&spread, 11), 8);
        sample(&mut spread, 0, 900_000, SLOW, 0);
        sample(&mut spread, 890_000, 10_000, FAST, 0);
        assert_eq!(timeout_ms(&spread, 901), 40);
    }
}
