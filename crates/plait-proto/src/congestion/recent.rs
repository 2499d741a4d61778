//! The least and the most of the last ten seconds.

use crate::time::Instant;

const SLOTS: usize = 10;
const SLOT_NANOS: u64 = 1_000_000_000;

/// Keeps the least and the most of each second, of the last ten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent<T> {
    slots: [Option<Slot<T>>; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    second: u64,
    least: T,
    most: T,
}

impl<T: Copy> Default for Recent<T> {
    fn default() -> Self {
        Self { slots: [None; SLOTS] }
    }
}

impl<T: Copy + Ord> Recent<T> {
    /// Takes a value.
    pub(super) fn add(&mut self, now: Instant, value: T) {
        let second = now.as_nanos() / SLOT_NANOS;
        let slot = &mut self.slots[(second % SLOTS as u64) as usize];
        match slot {
            Some(slot) if slot.second == second => {
                slot.least = slot.least.min(value);
                slot.most = slot.most.max(value);
            }
            _ => *slot = Some(Slot { second, least: value, most: value }),
        }
    }

    /// The least since nine to ten seconds before `now`; `None` without a value since then.
    pub(super) fn least(&self, now: Instant) -> Option<T> {
        self.living(now).map(|slot| slot.least).min()
    }

    /// The most, likewise.
    pub(super) fn most(&self, now: Instant) -> Option<T> {
        self.living(now).map(|slot| slot.most).max()
    }

    fn living(&self, now: Instant) -> impl Iterator<Item = &Slot<T>> {
        let second = now.as_nanos() / SLOT_NANOS;
        self.slots.iter().flatten().filter(move |slot| slot.second + SLOTS as u64 > second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ten_seconds_old_no_longer_counts() {
        let at = Instant::from_millis;
        let mut recent = Recent::default();
        recent.add(at(500), 3);
        recent.add(at(1_500), 5);
        recent.add(at(1_600), 9);
        assert_eq!((recent.least(at(9_999)), recent.most(at(9_999))), (Some(3), Some(9)));
        assert_eq!(recent.least(at(10_000)), Some(5));
        recent.add(at(10_500), 7);
        assert_eq!((recent.least(at(11_000)), recent.most(at(11_000))), (Some(7), Some(7)));
        assert_eq!(recent.least(at(20_000)), None);
    }
}
