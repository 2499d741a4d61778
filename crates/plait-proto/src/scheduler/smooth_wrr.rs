//! Smooth weighted round robin: every turn each path earns its weight in credit, the richest sends
//! and pays the sum of the weights. Shares are exact over a cycle and packets of one path lie as
//! far apart as the weights allow. A turn of some `amount` counts as that many: with a packet's
//! bytes for it the shares are of bytes, with 1 of packets.

use super::{Decision, PathId};

/// The amount of a packet where the shares are of packets.
pub(super) const ONE_PACKET: i64 = 1;

#[derive(Clone, Copy, Debug)]
struct Credit {
    path: PathId,
    credit: i64,
}

/// The credits of the paths that have a weight.
///
/// When the set of these changes, all credits start from zero: old debts among other paths must not
/// give a newcomer a burst.
#[derive(Debug, Default)]
pub(super) struct SmoothWrr {
    credits: Vec<Credit>,
}

impl SmoothWrr {
    /// Picks a path and charges it `amount`. Paths of weight 0 get none, unless all have 0: then
    /// all count alike.
    pub(super) fn pick(
        &mut self,
        weights: impl Iterator<Item = (PathId, u32)> + Clone,
        amount: i64,
    ) -> Decision {
        let Some(total) = self.earn(weights, amount) else {
            return Decision::Blocked;
        };
        // The first of the richest: earlier in the view means cheaper.
        let richest =
            self.credits.iter_mut().reduce(|a, b| if b.credit > a.credit { b } else { a });
        let richest = richest.expect("earn found a path");
        richest.credit -= total;
        Decision::Send(richest.path)
    }

    /// Charges `path` an `amount` that it sent without being picked.
    pub(super) fn charge(
        &mut self,
        weights: impl Iterator<Item = (PathId, u32)> + Clone,
        path: PathId,
        amount: i64,
    ) {
        let Some(total) = self.earn(weights, amount) else {
            return;
        };
        // A path that lost its weight in the middle of a run owes nothing: nobody else shares with
        // it.
        match self.credits.iter_mut().find(|credit| credit.path == path) {
            Some(credit) => credit.credit -= total,
            None => self.credits.clear(),
        }
    }

    /// Gives every path its weight, `amount` times; returns the sum, or `None` without a path.
    fn earn(
        &mut self,
        weights: impl Iterator<Item = (PathId, u32)> + Clone,
        amount: i64,
    ) -> Option<i64> {
        let none_weighs = weights.clone().all(|(_, weight)| weight == 0);
        let weights = weights.filter_map(|(path, weight)| {
            let weight = if none_weighs { 1 } else { weight };
            (weight > 0).then_some((path, i64::from(weight)))
        });
        if !weights.clone().map(|(path, _)| path).eq(self.credits.iter().map(|credit| credit.path))
        {
            self.credits.clear();
            self.credits.extend(weights.clone().map(|(path, _)| Credit { path, credit: 0 }));
        }
        let mut total = 0;
        for (credit, (_, weight)) in self.credits.iter_mut().zip(weights) {
            credit.credit += weight * amount;
            total += weight * amount;
        }
        (total > 0).then_some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(wrr: &mut SmoothWrr, weights: &[(PathId, u32)], count: usize) -> Vec<u8> {
        let pick = |_| match wrr.pick(weights.iter().copied(), 1) {
            Decision::Send(path) => path.0,
            other => panic!("expected one path, got {other:?}"),
        };
        (0..count).map(pick).collect()
    }

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);
    const C: PathId = PathId(2);

    #[test]
    fn packets_of_a_path_lie_apart() {
        let mut wrr = SmoothWrr::default();
        assert_eq!(picks(&mut wrr, &[(A, 5), (B, 1), (C, 1)], 7), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn a_weight_of_zero_gets_nothing_unless_all_are_zero() {
        let mut wrr = SmoothWrr::default();
        assert_eq!(picks(&mut wrr, &[(A, 0), (B, 3)], 3), [1, 1, 1]);
        assert_eq!(picks(&mut wrr, &[(A, 0), (B, 0)], 4), [0, 1, 0, 1]);
        assert_eq!(wrr.pick([].into_iter(), 1), Decision::Blocked);
    }

    #[test]
    fn runs_are_paid_back() {
        let mut wrr = SmoothWrr::default();
        let weights = [(A, 3), (B, 1)];
        let mut sent = [0; 2];
        for _ in 0..100 {
            let path = picks(&mut wrr, &weights, 1)[0];
            sent[usize::from(path)] += 1;
            for _ in 0..9 {
                wrr.charge(weights.iter().copied(), PathId(path), 1);
                sent[usize::from(path)] += 1;
            }
        }
        assert_eq!(sent, [750, 250]);
    }

    #[test]
    fn shares_of_bytes_hold_for_packets_of_any_size() {
        let mut wrr = SmoothWrr::default();
        let weights = [(A, 3), (B, 1)];
        let mut sent = [0; 2];
        for number in 0..4000_i64 {
            let bytes = if number % 4 == 0 { 1500 } else { 60 };
            let Decision::Send(path) = wrr.pick(weights.into_iter(), bytes) else {
                panic!("both have a weight");
            };
            sent[usize::from(path.0)] += bytes;
        }
        let share = sent[0] as f64 / (sent[0] + sent[1]) as f64;
        assert!((share - 0.75).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_newcomer_gets_no_burst() {
        let mut wrr = SmoothWrr::default();
        for _ in 0..1000 {
            wrr.charge([(A, 1), (B, 1)].into_iter(), A, 1);
        }
        let weights = [(A, 1), (B, 1), (C, 1)];
        let first = picks(&mut wrr, &weights, 9);
        assert_eq!(first.iter().filter(|&&path| path == C.0).count(), 3);
    }
}
