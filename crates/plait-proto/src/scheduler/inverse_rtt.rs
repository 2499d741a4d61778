//! Inverse round-trip times: paper 000's RTT-dynamic steering. Each path carries packets in inverse
//! proportion to its round-trip time, in rounds whose shares come out exactly while these stay.
//! `docs/algorithms/inverse-rtt.md`.

use super::smooth_wrr::{ONE_PACKET, SmoothWrr};
use super::{Decision, PacketInfo, PathId, PathView, Scheduler, View};

/// A round-trip time counts with so many milliseconds at most: it bounds the length of a round.
const RTT_MS_MAX: u32 = 10_000;

/// Shares packets in inverse proportion to the smoothed round-trip times.
#[derive(Debug, Default)]
pub struct InverseRtt {
    wrr: SmoothWrr,
    /// The round-trip times that the round under way began with, in the order of the view.
    rtts_ms: Vec<(PathId, Option<u32>)>,
    /// Packets that each path of the round under way carries of it, in the order of the view.
    shares: Vec<(PathId, u32)>,
    /// Packets that the round still has to send.
    left: u32,
    /// Room for [`Self::deal`], so that a round needs no allocation.
    rests: Vec<u64>,
}

/// The smoothed round-trip time in milliseconds, rounded up; `None` before the first sample.
fn whole_ms(path: &PathView) -> Option<u32> {
    let ms = path.srtt?.as_micros().div_ceil(1000);
    Some(u32::try_from(ms).unwrap_or(RTT_MS_MAX).clamp(1, RTT_MS_MAX))
}

impl InverseRtt {
    /// Begins a round when the last one is through, or paths or round-trip times are others than it
    /// began with. A round that was begun with a queue of a second would else go on when the queue
    /// is gone.
    fn follow(&mut self, view: &View<'_>) {
        let rtts_ms = || view.paths.iter().map(|path| (path.id, whole_ms(path)));
        if self.left == 0 || !self.rtts_ms.iter().copied().eq(rtts_ms()) {
            self.rtts_ms.clear();
            self.rtts_ms.extend(rtts_ms());
            self.begin_round(view);
        }
    }

    /// With Rₙ the round-trip times in whole milliseconds, the round has ΣRₙ packets, which the
    /// paths share in proportion to 1/Rₙ. For two paths that gives each the other's Rₙ, as the
    /// authors' code has it. A path without a sample gets none, unless none has one: then they take
    /// turns.
    fn begin_round(&mut self, view: &View<'_>) {
        self.shares.clear();
        if view.paths.iter().all(|path| path.srtt.is_none()) {
            self.shares.extend(view.paths.iter().map(|path| (path.id, 1)));
        } else {
            let total: u32 = view.paths.iter().filter_map(whole_ms).sum();
            self.deal(view, total);
        }
        self.left = self.shares.iter().map(|(_, share)| share).sum();
    }

    /// Deals `total` packets out by the method of largest remainders; every measured path gets one
    /// at least, so that none is forgotten.
    fn deal(&mut self, view: &View<'_>, total: u32) {
        // One over the round-trip time, in units of 2^-32 per millisecond: integers, so that a run
        // can be repeated on any machine.
        let inverse =
            |path: &PathView| whole_ms(path).map_or(0, |ms| (1_u64 << 32) / u64::from(ms));
        let sum: u64 = view.paths.iter().map(inverse).sum();
        self.rests.clear();
        let mut dealt = 0;
        for path in view.paths {
            let product = u128::from(inverse(path)) * u128::from(total);
            let (whole, rest) = (product / u128::from(sum), product % u128::from(sum));
            let whole = u32::try_from(whole).unwrap_or(total);
            let rest = u64::try_from(rest).unwrap_or(0);
            self.shares.push((path.id, whole));
            self.rests.push(if path.srtt.is_some() { rest } else { 0 });
            dealt += whole;
        }
        for _ in dealt..total {
            let largest = (0..self.rests.len()).max_by_key(|&at| (self.rests[at], usize::MAX - at));
            let Some(at) = largest else { break };
            self.shares[at].1 += 1;
            self.rests[at] = 0;
        }
        for (path, (_, share)) in view.paths.iter().zip(&mut self.shares) {
            if path.srtt.is_some() {
                *share = (*share).max(1);
            }
        }
    }
}

impl Scheduler for InverseRtt {
    fn pick(&mut self, view: &View<'_>, _packet: &PacketInfo) -> Decision {
        self.follow(view);
        self.left = self.left.saturating_sub(1);
        self.wrr.pick(self.shares.iter().copied(), ONE_PACKET)
    }

    fn on_run(&mut self, view: &View<'_>, path: PathId, _bytes: u64) {
        self.follow(view);
        self.left = self.left.saturating_sub(1);
        self.wrr.charge(self.shares.iter().copied(), path, ONE_PACKET);
    }

    fn weights(&self, _view: &View<'_>) -> Vec<(PathId, u32)> {
        self.shares.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{path, pick, picks, plain_paths, tally, view};
    use super::*;
    use crate::time::Duration;

    /// Paths with these smoothed round-trip times in microseconds.
    fn paths(srtts_us: &[u64]) -> Vec<PathView> {
        let build = |(id, &us): (u8, &u64)| {
            let mut built = path(id).build();
            built.srtt = Some(Duration::from_micros(us));
            built
        };
        (0..).zip(srtts_us).map(build).collect()
    }

    #[test]
    fn each_of_two_paths_carries_the_others_round_trip_in_packets() {
        for (a_us, b_us, a, b) in
            [(100_000, 20_000, 20, 100), (30_000, 30_000, 30, 30), (10_001, 3_700, 4, 11)]
        {
            let paths = paths(&[a_us, b_us]);
            let mut scheduler = InverseRtt::default();
            for round in 0..3 {
                let sent: [usize; 2] = tally(&picks(&mut scheduler, &paths, a + b));
                assert_eq!(sent, [a, b], "round {round} of {a_us} and {b_us} us");
            }
        }
    }

    #[test]
    fn other_round_trip_times_begin_a_round() {
        let mut scheduler = InverseRtt::default();
        let queued: [usize; 2] = tally(&picks(&mut scheduler, &paths(&[1_000_000, 10_000]), 101));
        assert_eq!(queued, [1, 100], "a tenth of the round");
        let gone: [usize; 2] = tally(&picks(&mut scheduler, &paths(&[10_000, 10_000]), 20));
        assert!(gone[0].abs_diff(gone[1]) <= 2, "{gone:?} with the queue gone");
    }

    #[test]
    fn round_trip_times_that_differ_by_less_than_a_millisecond_are_the_same() {
        let mut scheduler = InverseRtt::default();
        let first = picks(&mut scheduler, &paths(&[4_000, 2_000]), 3);
        let rest = picks(&mut scheduler, &paths(&[3_999, 1_001]), 3);
        assert_eq!(tally(&[first, rest].concat()), [2, 4], "one round");
    }

    #[test]
    fn packets_of_a_round_are_spread_evenly() {
        let order = picks(&mut InverseRtt::default(), &paths(&[4_000, 2_000]), 6);
        assert_eq!(order, [1, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn another_set_of_paths_begins_a_round() {
        let mut scheduler = InverseRtt::default();
        let three = paths(&[10_000, 10_000, 10_000]);
        picks(&mut scheduler, &three, 7);
        assert_eq!(tally(&picks(&mut scheduler, &three[1..], 20)), [0, 10, 10]);
    }

    #[test]
    fn unmeasured_paths_are_left_alone_while_there_is_a_measured_one() {
        let mut some = plain_paths(3);
        some[1].srtt = Some(Duration::from_millis(7));
        assert_eq!(picks(&mut InverseRtt::default(), &some, 3), [1, 1, 1]);
        assert_eq!(picks(&mut InverseRtt::default(), &plain_paths(2), 4), [0, 1, 0, 1]);
        assert_eq!(
            InverseRtt::default().pick(&view(&[]), &super::super::testing::PACKET),
            Decision::Blocked
        );
    }

    #[test]
    fn runs_count_in_their_round() {
        let paths = paths(&[4_000, 2_000]);
        let mut scheduler = InverseRtt::default();
        let mut sent = [0_u32; 2];
        for _ in 0..100 {
            let path = pick(&mut scheduler, &paths);
            for _ in 0..2 {
                scheduler.on_run(&view(&paths), PathId(path), 1500);
            }
            sent[usize::from(path)] += 3;
        }
        assert!(sent[0].abs_diff(100) <= 3, "{sent:?}");
    }

    proptest! {
        /// A round has as many packets as the round-trip times have milliseconds, and each path's
        /// share is within one packet of its exact part, or one where that is less.
        #[test]
        fn shares_of_a_round_are_exact(
            ms in prop::collection::vec(1_u64..12_000, 1..6),
        ) {
            let counted: Vec<f64> = ms.iter().map(|&ms| ms.min(RTT_MS_MAX.into()) as f64).collect();
            let total: f64 = counted.iter().sum();
            let inverse: f64 = counted.iter().map(|ms| 1.0 / ms).sum();
            let us: Vec<u64> = ms.iter().map(|ms| ms * 1000).collect();
            let mut scheduler = InverseRtt::default();
            scheduler.begin_round(&view(&paths(&us)));
            let least = scheduler.shares.iter().all(|(_, share)| *share > 1);
            for ((_, share), ms) in scheduler.shares.iter().zip(&counted) {
                let exact = total / ms / inverse;
                prop_assert!((f64::from(*share) - exact).abs() < 1.001, "{share} {exact}");
                prop_assert!(*share >= 1);
            }
            if least {
                prop_assert_eq!(f64::from(scheduler.left), total);
            }
        }
    }
}
