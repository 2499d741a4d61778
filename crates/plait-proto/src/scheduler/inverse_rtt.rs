//! Inverse round-trip times: paper 000's RTT-dynamic steering. Each path carries packets in inverse
//! proportion to its round-trip time, in rounds whose shares come out exactly.
//! `docs/algorithms/inverse-rtt.md`.

use super::smooth_wrr::SmoothWrr;
use super::{Decision, PacketInfo, PathId, PathView, Scheduler, View};

/// A round-trip time counts with so many milliseconds at most: it bounds the length of a round.
const RTT_MS_MAX: u32 = 10_000;

/// Shares packets in inverse proportion to the smoothed round-trip times.
#[derive(Debug, Default)]
pub struct InverseRtt {
    wrr: SmoothWrr,
    /// Packets that each path of the round under way carries of it, in the order of the view.
    shares: Vec<(PathId, u32)>,
    /// Packets that the round still has to send.
    left: u32,
    /// Room for [`deal`], so that a round needs no allocation.
    rests: Vec<u64>,
}

/// The smoothed round-trip time in milliseconds, rounded up; `None` before the first sample.
fn whole_ms(path: &PathView) -> Option<u32> {
    let ms = path.srtt?.as_micros().div_ceil(1000);
    Some(u32::try_from(ms).unwrap_or(RTT_MS_MAX).clamp(1, RTT_MS_MAX))
}

impl InverseRtt {
    /// Begins a round when the last one is through, or the paths are others than it began with.
    fn follow(&mut self, view: &View<'_>) {
        let same = self.shares.iter().map(|(path, _)| *path).eq(view.paths.iter().map(|p| p.id));
        if self.left == 0 || !same {
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
        self.wrr.pick(self.shares.iter().copied())
    }

    fn on_run(&mut self, view: &View<'_>, path: PathId) {
        self.follow(view);
        self.left = self.left.saturating_sub(1);
        self.wrr.charge(self.shares.iter().copied(), path);
    }

    fn weights(&self, _view: &View<'_>) -> Vec<(PathId, u32)> {
        self.shares.clone()
    }
}
