//! What a rung came to under a policy: medians over the seeds.

use serde::Serialize;

use super::rung::Rung;
use super::trial::Found;
use crate::measure::{aggregation_benefit, aggregation_ratio};
use crate::run::{Middle, Samples};

/// What a rung came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Score {
    pub(crate) rung: &'static str,
    pub(crate) stands_for: &'static str,
    pub(crate) steady: bool,
    /// Runs of the bond that count.
    pub(crate) runs: usize,
    /// Of the bond.
    pub(crate) mbit: f64,
    /// Slowest and fastest seed of the bond.
    pub(crate) mbit_range: (f64, f64),
    /// Each link alone through plait.
    pub(crate) alone_mbit: Vec<f64>,
    /// Each link alone, bare.
    pub(crate) bare_mbit: Vec<Option<f64>>,
    /// Median round trip of small packets beside the load.
    pub(crate) ping_ms: Option<f64>,
    /// The largest round trip without a queue.
    pub(crate) base_rtt_ms: u32,
    /// Longest time without a delivery.
    pub(crate) standstill_ms: f64,
    /// Of the load's own TCP, if it has any.
    pub(crate) resent_percent: Option<f64>,
    /// At the egress, 95th percentile.
    pub(crate) wait_p95_ms: Option<f64>,
    /// Per cent of the bond's bytes, by link.
    pub(crate) shares: Vec<f64>,
    /// Per cent of the packets given to it that a link lost or dropped.
    pub(crate) lost: Vec<f64>,
    /// Mean queue of each link.
    pub(crate) queue_ms: Vec<f64>,
}

impl Score {
    pub(super) fn new(rung: &Rung, bond: &[Found], alone: &[&[Found]], bare: &[&[Found]]) -> Self {
        let mbit = |found: &[Found]| median(found, |found| Some(found.mbit));
        let links = 0..rung.links.len();
        let of_links = |value: fn(&super::trial::LinkFound) -> f64| {
            let of_link = |at| median(bond, |found| found.links.get(at).map(value));
            links.clone().map(of_link).collect()
        };
        let all = Samples::new(bond.iter().map(|found| found.mbit).collect());
        Self {
            rung: rung.name,
            stands_for: rung.stands_for,
            steady: rung.is_steady(),
            runs: bond.len(),
            mbit: mbit(bond),
            mbit_range: all.map_or((0.0, 0.0), |all| (all.low(), all.high())),
            alone_mbit: alone.iter().map(|found| mbit(found)).collect(),
            bare_mbit: bare.iter().map(|found| if_known(found, |found| Some(found.mbit))).collect(),
            ping_ms: if_known(bond, |found| found.ping_ms),
            base_rtt_ms: rung.base_rtt_ms(),
            standstill_ms: median(bond, |found| Some(found.standstill_ms)),
            resent_percent: if_known(bond, |found| found.resent_percent),
            wait_p95_ms: if_known(bond, |found| found.wait_p95_ms),
            shares: of_links(|link| link.share_percent),
            lost: of_links(|link| link.lost_percent),
            queue_ms: of_links(|link| link.queue_ms),
        }
    }

    /// A_r as 003 has it, the links alone through plait.
    pub(crate) fn ratio(&self) -> f64 {
        aggregation_ratio(bps(self.mbit), &self.alone_bps()) as f64 / 1000.0
    }

    /// A_b as 003 has it.
    pub(crate) fn benefit(&self) -> f64 {
        aggregation_benefit(bps(self.mbit), &self.alone_bps()) as f64 / 1000.0
    }

    /// The bond over its best link alone.
    pub(crate) fn against_best(&self) -> f64 {
        let best = self.alone_mbit.iter().copied().fold(0.0, f64::max);
        if best > 0.0 { self.mbit / best } else { 0.0 }
    }

    /// What was measured on the way, to tell why a rung fails.
    pub(crate) fn reason(&self) -> String {
        let sum: f64 = self.alone_mbit.iter().sum();
        let due = self.alone_mbit.iter().map(|mbit| mbit * 100.0 / sum).collect::<Vec<_>>();
        format!(
            "shares {} % (due {}), links lost {} %, queues {} ms, re-sent {} %, \
             egress waits {} ms, standstill {:.0} ms",
            joined(&self.shares, 0),
            joined(&due, 0),
            joined(&self.lost, 1),
            joined(&self.queue_ms, 0),
            known(self.resent_percent, 1),
            known(self.wait_p95_ms, 0),
            self.standstill_ms,
        )
    }

    fn alone_bps(&self) -> Vec<u64> {
        self.alone_mbit.iter().map(|mbit| bps(*mbit)).collect()
    }
}

/// Numbers with a slash between them.
pub(crate) fn joined(values: &[f64], digits: usize) -> String {
    let texts: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
    texts.join("/")
}

/// A number, or what stands for none.
pub(crate) fn known(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn bps(mbit: f64) -> u64 {
    (mbit * 1e6).round() as u64
}

/// The median of what is known.
fn if_known(found: &[Found], value: impl Fn(&Found) -> Option<f64>) -> Option<f64> {
    let all = Samples::new(found.iter().filter_map(value).collect());
    all.map(|all| all.middle(Middle::Median))
}

fn median(found: &[Found], value: impl Fn(&Found) -> Option<f64>) -> f64 {
    if_known(found, value).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::rung::{Inner, Link, Load, rung};

    const LINKS: &[Link] = &[Link::new("dsl", 50, 20), Link::new("lte", 10, 60)];

    fn found(mbit: f64) -> Found {
        Found { mbit, ..Found::default() }
    }

    #[test]
    fn medians_are_compared_with_the_links_alone() {
        let rung = rung("rates/x", "", LINKS, Load::tcp(Inner::Cubic));
        let bond = [found(10.0), found(54.0), found(55.0)];
        let (fast, slow) = ([found(48.0)], [found(9.6)]);
        let score = Score::new(&rung, &bond, &[&fast, &slow], &[&[found(50.0)], &[found(10.0)]]);
        assert_eq!((score.mbit, score.mbit_range), (54.0, (10.0, 55.0)));
        assert_eq!((score.ratio(), score.benefit()), (0.937, 0.625));
        assert_eq!(score.against_best(), 54.0 / 48.0);
        assert!(score.reason().contains("due 83/17"), "{}", score.reason());
    }

    #[test]
    fn what_is_not_known_is_absent_and_not_zero() {
        let rung = rung("udp/x", "", LINKS, Load::udp(70));
        let alone = [found(48.0)];
        let mut bond = [found(10.0), Found { wait_p95_ms: Some(20.0), ..found(12.0) }];
        bond[1].ping_ms = Some(40.0);
        let score = Score::new(&rung, &bond, &[&alone, &alone], &[&[], &[]]);
        assert_eq!((score.ping_ms, score.wait_p95_ms), (Some(40.0), Some(20.0)));
        assert_eq!((score.runs, score.resent_percent), (2, None));
        assert_eq!(score.bare_mbit, [None, None]);
        assert!(score.reason().contains("re-sent - %, egress waits 20 ms"), "{}", score.reason());
    }
}
