//! Random arrivals, against a model that does the same slowly and plainly.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What the model knows of a number from the floor on.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Waiting { prev: u64, arrival: (Instant, usize) },
    Delivered,
}

/// The rules of docs/algorithms/resequencing.md, without bounds.
struct Model {
    timeout: Duration,
    floor: u64,
    next: u64,
    known: BTreeMap<u64, Known>,
    seen: BTreeSet<u64>,
    mark: Option<(Instant, u64)>,
    arrivals: usize,
    out: Vec<u64>,
    given_up: u64,
}

impl Model {
    fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            floor: 0,
            next: 0,
            known: BTreeMap::new(),
            seen: BTreeSet::new(),
            mark: None,
            arrivals: 0,
            out: Vec::new(),
            given_up: 0,
        }
    }

    fn resolved(&self, seq: u64) -> bool {
        seq < self.floor || self.known.get(&seq) == Some(&Known::Delivered)
    }

    fn insert(&mut self, now: Instant, seq: u64, prev: u16) {
        if !self.seen.insert(seq) || seq < self.floor {
            return;
        }
        self.arrivals += 1;
        let prev = if prev == 0 { u64::MAX } else { seq.wrapping_sub(u64::from(prev)) };
        self.known.insert(seq, Known::Waiting { prev, arrival: (now, self.arrivals) });
        self.next = self.next.max(seq + 1);
        self.release(now);
    }

    /// Delivers the lowest deliverable packet as long as there is one.
    fn release(&mut self, now: Instant) {
        let deliverable = |model: &Self| {
            let ready = |known: &Known| match *known {
                // Numbers before the start wrap to far above `next`.
                Known::Waiting { prev, .. } => prev > model.next || model.resolved(prev),
                Known::Delivered => false,
            };
            model.known.iter().find(|(_, known)| ready(known)).map(|(&seq, _)| seq)
        };
        while let Some(seq) = deliverable(self) {
            self.known.insert(seq, Known::Delivered);
            self.out.push(seq);
        }
        while self.known.get(&self.floor) == Some(&Known::Delivered) {
            self.known.remove(&self.floor);
            self.floor += 1;
        }
        if self.floor == self.next {
            self.mark = None;
        } else if self.mark.is_none_or(|(_, below)| below <= self.floor) {
            self.mark = Some((now, self.next));
        }
    }

    fn release_below(&mut self, now: Instant, bound: u64) {
        for seq in self.floor..bound {
            match self.known.remove(&seq) {
                None => self.given_up += 1,
                Some(Known::Waiting { .. }) => self.out.push(seq),
                Some(Known::Delivered) => {}
            }
        }
        self.floor = self.floor.max(bound);
        self.release(now);
    }

    fn oldest_waiting(&self) -> Option<(Instant, u64)> {
        let waiting = self.known.iter().filter_map(|(&seq, known)| match *known {
            Known::Waiting { arrival, .. } => Some((arrival, seq)),
            Known::Delivered => None,
        });
        waiting.min().map(|(arrival, seq)| (arrival.0, seq))
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((arrival, seq)) = self.oldest_waiting()
            && arrival + self.timeout <= now
        {
            self.release_below(now, seq);
        }
        if let Some((since, below)) = self.mark
            && since + self.timeout <= now
        {
            self.release_below(now, below);
        }
    }
}

/// A packet's fate: its lane (0 is unordered), the milliseconds until each copy of it arrives.
#[derive(Clone, Debug)]
struct Fate {
    lane: u8,
    copies: Vec<u64>,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let copies = prop_oneof![
        8 => (0_u64..3).prop_map(|delay| vec![delay]),
        4 => (0_u64..30).prop_map(|delay| vec![delay]),
        1 => (0_u64..120).prop_map(|delay| vec![delay]),
        1 => Just(vec![]),
        1 => (0_u64..30, 0_u64..120).prop_map(|(a, b)| vec![a, b]),
    ];
    (1_u8..5).prop_flat_map(move |lanes| {
        let fate = (0..=lanes, copies.clone()).prop_map(|(lane, copies)| Fate { lane, copies });
        proptest::collection::vec(fate, 1..300)
    })
}

/// One arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Arrival {
    at_ms: u64,
    seq: u64,
    prev: u16,
}

/// One packet is sent every `per_ms`-th of a millisecond.
fn arrivals(fates: &[Fate], per_ms: u64) -> Vec<Arrival> {
    let mut last_of_lane = BTreeMap::new();
    let mut arrivals = Vec::new();
    for (seq, fate) in (0_u64..).zip(fates) {
        let last = last_of_lane.insert(fate.lane, seq);
        let prev = if fate.lane == 0 { 0 } else { last.map_or(0, |last| (seq - last) as u16) };
        let at = |delay| Arrival { at_ms: seq / per_ms + delay, seq, prev };
        arrivals.extend(fate.copies.iter().map(at));
    }
    arrivals.sort();
    arrivals
}

/// No run needs more timeouts than it has packets, and a mark for each.
const FIRES_MAX: u32 = 1000;

/// Feeds the arrivals and fires the timer whenever it is due, to the end.
fn run(case: &mut Case, arrivals: &[Arrival], mut each: impl FnMut(&mut Case, Option<Arrival>)) {
    let mut fires = 0;
    let mut fire_until =
        |case: &mut Case, until, each: &mut dyn FnMut(&mut Case, Option<Arrival>)| {
            while let Some(due) = case.resequencer.poll_timeout()
                && due <= until
            {
                fires += 1;
                assert!(fires <= FIRES_MAX, "a timer that is due must have an effect");
                case.now = due;
                case.timeout();
                each(case, None);
            }
        };
    for arrival in arrivals {
        let now = Instant::from_millis(arrival.at_ms);
        fire_until(case, now, &mut each);
        case.now = now;
        case.insert(arrival.seq, arrival.prev);
        each(case, Some(*arrival));
    }
    fire_until(case, Instant::FAR_FUTURE, &mut each);
}

fn check_conservation(stats: &ResequencerStats, inserted: u64, delivered: u64) {
    let released = stats.released;
    let released = released.in_order + released.known_lost + released.timer + released.overflow;
    let given_in =
        stats.at_once + stats.waited + stats.late_dropped + stats.late_delivered + stats.duplicates;
    assert_eq!(given_in, inserted);
    assert_eq!(stats.waited, released + stats.waiting_now_packets);
    assert_eq!(stats.at_once + released + stats.late_delivered, delivered);
    assert_eq!(stats.waiting_histogram.iter().sum::<u64>(), released);
}

proptest! {
    #[test]
    fn agrees_with_the_model(fates in fates(), per_ms in 1_u64..8) {
        let mut model = Model::new(50 * MS);
        let mut case = Case::paper();
        run(&mut case, &arrivals(&fates, per_ms), |case, arrival| {
            match arrival {
                Some(arrival) => model.insert(case.now, arrival.seq, arrival.prev),
                None => model.handle_timeout(case.now),
            }
            assert_eq!(case.out, model.out);
            assert_eq!(case.resequencer.floor().0, model.floor);
        });
        prop_assert_eq!(case.stats().given_up, model.given_up);
    }

    #[test]
    fn keeps_order_and_loses_nothing_within_small_bounds(
        fates in fates(),
        per_ms in 1_u64..8,
        bytes_max in 1000_u64..20_000,
        late in prop_oneof![Just(LatePolicy::Drop), Just(LatePolicy::Deliver)],
        release_known_lost in any::<bool>(),
        passed_lag in 0_u64..80,
    ) {
        let config = ResequencerConfig {
            packets_max: 64, bytes_max, late, release_known_lost, ..ResequencerConfig::default()
        };
        let mut case = Case::new(config);
        case.packet_bytes = 500;
        let arrivals = arrivals(&fates, per_ms);
        let mut inserted = 0;
        let mut lost = 0;
        let mut recovered = 0;
        run(&mut case, &arrivals, |case, arrival| {
            inserted += u64::from(arrival.is_some());
            if let Some(arrival) = arrival.filter(|arrival| arrival.seq.is_multiple_of(7)) {
                case.passed(arrival.seq.saturating_sub(passed_lag));
            }
            let stats = case.stats();
            check_conservation(&stats, inserted, case.out.len() as u64);
            assert!(stats.waiting_now_packets <= 64 && stats.waiting_now_bytes <= bytes_max);
            let newly = case.resequencer.drain_lost();
            lost += newly.lost;
            recovered += newly.recovered.iter().map(|(_, count)| count).sum::<u64>();
        });

        let delivered: BTreeSet<u64> = case.out.iter().copied().collect();
        prop_assert_eq!(delivered.len(), case.out.len(), "something was delivered twice");
        prop_assert_eq!(case.stats().waiting_now_packets, 0);
        let end = case.resequencer.expected_next().0;
        prop_assert_eq!(case.resequencer.floor().0, end);
        prop_assert!(recovered <= lost);
        if late == LatePolicy::Drop {
            prop_assert_eq!(delivered.len() as u64 + case.stats().given_up, end);
            for lane in 1..5 {
                let of_lane = |seq: &u64| fates[*seq as usize].lane == lane;
                let order: Vec<u64> = case.out.iter().copied().filter(of_lane).collect();
                prop_assert!(order.is_sorted(), "lane {lane}: {order:?}");
            }
        } else {
            let arrived: BTreeSet<u64> = arrivals.iter().map(|arrival| arrival.seq).collect();
            prop_assert_eq!(delivered, arrived, "within the history all is delivered");
        }
    }
}
