//! The sliding replay window of a path and epoch.
//!
//! After RFC 6479: a ring of words of which one is always being cleared, so that moving on never
//! shifts bits. The window starts small and grows with the observed rate, because a gateway has
//! many paths and most are idle: `docs/algorithms/replay-window.md`.

use crate::time::{Duration, Instant};

const WORD_BITS: u64 = 64;
/// Width of the ring at the start, in packet numbers.
const WINDOW_BITS_MIN: u64 = 1024;
/// Largest width of the ring, in packet numbers.
const WINDOW_BITS_MAX: u64 = 65536;
/// The rate is judged over stretches of this length.
const STRETCH: Duration = Duration::from_millis(100);

/// Why a packet number is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// Accepted before.
    Duplicate,
    /// Below the window: whether it was accepted is no longer known.
    TooOld,
}

/// Remembers which packet numbers were accepted.
#[derive(Debug)]
pub struct ReplayWindow {
    words: Vec<u64>,
    /// One more than the highest accepted number.
    next: u64,
    /// Numbers below are refused. Never falls, so growing makes nothing acceptable again.
    floor: u64,
    received: u64,
    stretch_start: Instant,
    stretch_next: u64,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplayWindow {
    /// A window that has accepted nothing; numbers start at 0.
    pub fn new() -> Self {
        Self {
            words: vec![0; (WINDOW_BITS_MIN / WORD_BITS) as usize],
            next: 0,
            floor: 0,
            received: 0,
            stretch_start: Instant::ZERO,
            stretch_next: 0,
        }
    }

    /// Whether `number` may be accepted. Says nothing about its authenticity, and changes nothing.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn check(&self, number: u64) -> Result<(), Replay> {
        if number < self.floor {
            Err(Replay::TooOld)
        } else if number < self.next && self.is_set(number) {
            Err(Replay::Duplicate)
        } else {
            Ok(())
        }
    }

    /// Accepts the number of a packet that proved authentic at `now`.
    ///
    /// # Errors
    ///
    /// As [`Self::check`]; then nothing has changed.
    pub fn accept(&mut self, now: Instant, number: u64) -> Result<(), Replay> {
        self.check(number)?;
        if number >= self.next {
            self.advance(number);
            self.observe_rate(now);
        }
        let (word, bit) = self.position(number);
        self.words[word] |= bit;
        self.received += 1;
        Ok(())
    }

    /// The highest number accepted.
    pub fn highest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// How many numbers were accepted.
    pub fn received_count(&self) -> u64 {
        self.received
    }

    /// Width of the ring now, in packet numbers; one word of it may be unusable.
    pub fn bits(&self) -> u64 {
        self.words.len() as u64 * WORD_BITS
    }

    fn position(&self, number: u64) -> (usize, u64) {
        ((number / WORD_BITS) as usize & (self.words.len() - 1), 1 << (number % WORD_BITS))
    }

    fn is_set(&self, number: u64) -> bool {
        let (word, bit) = self.position(number);
        self.words[word] & bit != 0
    }

    /// Moves the window's end to `number`, clearing the words it enters.
    fn advance(&mut self, number: u64) {
        let word = number / WORD_BITS;
        // The word of the highest number so far is in use already; at the start none is.
        let first = self.next.div_ceil(WORD_BITS);
        let last = word.min(first.saturating_add(self.words.len() as u64 - 1));
        for entered in first..=last {
            let index = entered as usize & (self.words.len() - 1);
            self.words[index] = 0;
        }
        self.next = number.saturating_add(1);
        let oldest_word = (word + 1).saturating_sub(self.words.len() as u64);
        self.floor = self.floor.max(oldest_word * WORD_BITS);
    }

    /// Doubles the ring when the highest number moved by more than a quarter of it within a
    /// stretch: then packets may well be late by more than the ring holds.
    fn observe_rate(&mut self, now: Instant) {
        if now.since(self.stretch_start) > STRETCH {
            self.stretch_start = now;
            self.stretch_next = self.next;
        } else if self.next - self.stretch_next > self.bits() / 4 && self.bits() < WINDOW_BITS_MAX {
            self.double();
        }
    }

    fn double(&mut self) {
        let old = core::mem::take(&mut self.words);
        self.words = vec![0; old.len() * 2];
        let newest = (self.next - 1) / WORD_BITS;
        let oldest = (newest + 1).saturating_sub(old.len() as u64);
        for word in oldest..=newest {
            let index = word as usize & (self.words.len() - 1);
            self.words[index] = old[word as usize & (old.len() - 1)];
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Spec K-8.
    #[test]
    fn each_number_passes_once() {
        let mut window = ReplayWindow::new();
        for number in [0, 5, 3, 4, 1] {
            assert_eq!(window.check(number), Ok(()));
            assert_eq!(window.accept(Instant::ZERO, number), Ok(()));
            assert_eq!(window.check(number), Err(Replay::Duplicate));
            assert_eq!(window.accept(Instant::ZERO, number), Err(Replay::Duplicate));
        }
        assert_eq!((window.highest(), window.received_count()), (Some(5), 5));
    }

    /// Spec K-8.
    #[test]
    fn numbers_below_the_window_are_too_old() {
        let mut window = ReplayWindow::new();
        window.accept(Instant::ZERO, 0).unwrap();
        window.accept(Instant::from_millis(500), 10_000).unwrap();
        assert_eq!(window.bits(), WINDOW_BITS_MIN);
        assert_eq!(window.check(10_000 - WINDOW_BITS_MIN), Err(Replay::TooOld));
        assert_eq!(window.check(10_000 - WINDOW_BITS_MIN + WORD_BITS), Ok(()));
    }

    /// Spec K-8: from 1024 to 65536.
    #[test]
    fn the_window_grows_with_the_rate_and_is_bounded() {
        let mut slow = ReplayWindow::new();
        for number in 0..10_000 {
            slow.accept(Instant::from_millis(number), number).unwrap();
        }
        assert_eq!(slow.bits(), WINDOW_BITS_MIN);
        let mut fast = ReplayWindow::new();
        for number in 0..200_000 {
            fast.accept(Instant::from_nanos(number * 1000), number).unwrap();
        }
        assert_eq!(fast.bits(), WINDOW_BITS_MAX);
    }

    #[test]
    fn growing_does_not_bring_back_what_was_too_old() {
        let mut window = ReplayWindow::new();
        window.accept(Instant::ZERO, 0).unwrap();
        window.accept(Instant::from_millis(500), 2000).unwrap();
        assert_eq!(window.check(0), Err(Replay::TooOld));
        window.accept(Instant::from_millis(501), 2400).unwrap();
        assert!(window.bits() > WINDOW_BITS_MIN);
        assert_eq!(window.check(0), Err(Replay::TooOld));
        assert_eq!(window.check(2000), Err(Replay::Duplicate));
        assert_eq!(window.check(1999), Ok(()));
    }

    #[test]
    fn the_last_number_does_not_overflow() {
        let mut window = ReplayWindow::new();
        window.accept(Instant::ZERO, u64::MAX - 1).unwrap();
        assert_eq!(window.check(u64::MAX - 1), Err(Replay::Duplicate));
        assert_eq!(window.check(3), Err(Replay::TooOld));
    }

    /// Steps forward or back from the highest number, and the time each takes.
    fn steps() -> impl Strategy<Value = Vec<(i64, u64)>> {
        let step = prop_oneof![4 => -80_i64..80, 2 => -1500_i64..400, 1 => -70_000_i64..70_000];
        proptest::collection::vec((step, 0_u64..40), 1..400)
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_all_numbers(steps in steps()) {
            let mut window = ReplayWindow::new();
            let mut accepted = BTreeSet::new();
            let mut too_old_below = 0;
            let mut now = Instant::ZERO;
            for (step, ms) in steps {
                now += Duration::from_millis(ms);
                let number = window.highest().unwrap_or(0).saturating_add_signed(step);
                let fresh = accepted.contains(&number);
                match window.accept(now, number) {
                    Ok(()) => {
                        prop_assert!(accepted.insert(number), "{number} passed twice");
                        prop_assert!(number >= too_old_below, "{number} had been too old");
                    }
                    Err(Replay::Duplicate) => prop_assert!(fresh, "{number} was never accepted"),
                    Err(Replay::TooOld) => {
                        let highest = window.highest().expect("something was accepted");
                        prop_assert!(highest - number >= WINDOW_BITS_MIN - WORD_BITS);
                        too_old_below = too_old_below.max(number + 1);
                    }
                }
                prop_assert_eq!(window.highest(), accepted.last().copied());
                prop_assert_eq!(window.received_count(), accepted.len() as u64);
                prop_assert!(window.bits() <= WINDOW_BITS_MAX);
            }
        }
    }
}
