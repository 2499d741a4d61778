//! Probes of a path that are under way.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// Probes remembered at a time: a whole train of a [loss check](super::loss_check).
const UNDER_WAY_MAX: usize = 32;

/// Numbers probes and knows their echoes.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    under_way: VecDeque<(u32, Instant)>,
    next_id: u32,
}

impl Probes {
    /// A new probe's id.
    pub(crate) fn start(&mut self, now: Instant) -> u32 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        if self.under_way.len() == UNDER_WAY_MAX {
            self.under_way.pop_front();
        }
        self.under_way.push_back((id, now));
        id
    }

    /// An echo arrived: the round-trip time, the first time it does.
    pub(crate) fn echo(&mut self, now: Instant, id: u32) -> Option<Duration> {
        let at = self.under_way.iter().position(|(known, _)| *known == id)?;
        let (_, sent_at) = self.under_way.remove(at)?;
        Some(now.since(sent_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_counts_once_and_in_any_order() {
        let mut probes = Probes::default();
        let first = probes.start(Instant::from_millis(0));
        let second = probes.start(Instant::from_millis(5));
        let now = Instant::from_millis(30);
        assert_eq!(probes.echo(now, second), Some(Duration::from_millis(25)));
        assert_eq!(probes.echo(now, first), Some(Duration::from_millis(30)));
        assert_eq!(probes.echo(now, first), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut probes = Probes::default();
        for n in 0..100 {
            probes.start(Instant::from_millis(n));
        }
        assert_eq!(probes.under_way.len(), UNDER_WAY_MAX);
        assert_eq!(probes.echo(Instant::from_millis(100), 0), None);
    }
}
