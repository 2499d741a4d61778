//! What is on its way, in the order in which it arrives.

use std::collections::BTreeMap;

use plait_proto::time::Instant;

/// Things in flight, by arrival time; of two with the same time the one sent first comes first.
#[derive(Debug)]
pub struct Flying<T> {
    by_arrival: BTreeMap<(Instant, u64), T>,
    sent: u64,
}

impl<T> Default for Flying<T> {
    fn default() -> Self {
        Self { by_arrival: BTreeMap::new(), sent: 0 }
    }
}

impl<T> Flying<T> {
    /// Sends something that arrives `at` that time.
    pub fn send(&mut self, at: Instant, what: T) {
        self.sent += 1;
        self.by_arrival.insert((at, self.sent), what);
    }

    /// When the next one arrives; `None` when nothing is on its way.
    pub fn next_at(&self) -> Option<Instant> {
        self.by_arrival.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes out the next one, if it has arrived by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        self.next_at().filter(|at| *at <= now)?;
        self.by_arrival.pop_first().map(|(_, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_ones_come_first_and_equal_ones_in_the_order_they_were_sent() {
        let at = Instant::from_millis;
        let mut flying = Flying::default();
        for (millis, what) in [(2, 'b'), (1, 'a'), (2, 'c'), (3, 'd')] {
            flying.send(at(millis), what);
        }
        assert_eq!(flying.next_at(), Some(at(1)));
        let arrived: Vec<char> = std::iter::from_fn(|| flying.poll(at(2))).collect();
        assert_eq!(arrived, ['a', 'b', 'c']);
        assert_eq!((flying.poll(at(2)), flying.next_at()), (None, Some(at(3))));
    }
}
