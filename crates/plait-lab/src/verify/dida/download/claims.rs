//! The paper's claims about download times, each with whether it holds.

use super::cases::{
    CONDITIONS, FLUCTUATING, HALF_DIDA, HALF_NATIVE, LTE, MPTCP, NO_SACK_DIDA, NO_SACK_NATIVE,
    RTT_DIDA, RTT_NATIVE, WIFI,
};
use super::{CLAIMED_MB, Measured, SIZES_MB};
use crate::figure::Figure;

/// Times that differ by no more are alike.
const ALIKE: f64 = 1.02;

/// What is claimed of one way's times against another's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Claim {
    /// As quick, or quicker.
    NoSlower,
    /// Quicker.
    Ahead,
    /// Slower.
    Behind,
}

impl Claim {
    fn holds(self, ours_s: f64, theirs_s: f64) -> bool {
        match self {
            Self::NoSlower => ours_s <= theirs_s * ALIKE,
            Self::Ahead => ours_s * ALIKE < theirs_s,
            Self::Behind => ours_s > theirs_s * ALIKE,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::NoSlower => "no slower than",
            Self::Ahead => "ahead of",
            Self::Behind => "behind",
        }
    }
}

/// Line 4 of the issue under each condition, and what DIDA and the kernel's MPTCP give beside.
pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = Vec::new();
    for condition in &CONDITIONS {
        let against_links = if *condition == FLUCTUATING { Claim::Ahead } else { Claim::NoSlower };
        let of = condition.name;
        for (ours, claim, theirs) in [
            (RTT_DIDA, against_links, LTE),
            (RTT_DIDA, against_links, WIFI),
            (RTT_NATIVE, Claim::Behind, RTT_DIDA),
            (HALF_NATIVE, Claim::Behind, HALF_DIDA),
            (NO_SACK_NATIVE, Claim::Behind, NO_SACK_DIDA),
            (RTT_DIDA, Claim::NoSlower, MPTCP),
        ] {
            let name = format!("{of}: {ours} {} {theirs}", claim.words());
            let pairs = pairs(measured, of, ours, theirs);
            if !pairs.is_empty() {
                figures.push(Figure::text(name, verdict(claim, &pairs)));
            }
        }
        for (native, dida) in
            [(HALF_NATIVE, HALF_DIDA), (RTT_NATIVE, RTT_DIDA), (NO_SACK_NATIVE, NO_SACK_DIDA)]
        {
            if let Some((size, native_s, dida_s)) = pairs(measured, of, native, dida).last() {
                let name = format!("{of}: {dida}, throughput of {native}'s at {size} MB");
                figures.push(Figure::number(name, native_s / dida_s, "ratio"));
            }
        }
    }
    figures
}

/// The size and both median times, of sizes that claims are about.
fn pairs(measured: &Measured, condition: &str, ours: &str, theirs: &str) -> Vec<(u64, f64, f64)> {
    let median = |case, size| measured.median_s(condition, case, size);
    let pair = |size: &u64| Some((*size, median(ours, *size)?, median(theirs, *size)?));
    SIZES_MB.iter().filter(|size| **size >= CLAIMED_MB).filter_map(pair).collect()
}

/// `holds` or `does not hold at 4, 16 MB`, with the times.
fn verdict(claim: Claim, pairs: &[(u64, f64, f64)]) -> String {
    let broken = pairs.iter().filter(|(_, ours, theirs)| !claim.holds(*ours, *theirs));
    let broken: Vec<String> = broken.map(|(size, ..)| size.to_string()).collect();
    let times = pairs
        .iter()
        .map(|(size, ours, theirs)| format!("{ours:.2} against {theirs:.2} s at {size} MB"));
    let times = times.collect::<Vec<_>>().join(", ");
    if broken.is_empty() {
        format!("holds: {times}")
    } else if broken.len() == pairs.len() {
        format!("does not hold: {times}")
    } else {
        format!("does not hold at {} MB: {times}", broken.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_within_two_per_cent_are_alike() {
        for (claim, ours, theirs, holds) in [
            (Claim::NoSlower, 1.0, 1.0, true),
            (Claim::NoSlower, 1.019, 1.0, true),
            (Claim::NoSlower, 1.03, 1.0, false),
            (Claim::Ahead, 1.0, 1.01, false),
            (Claim::Ahead, 1.0, 1.03, true),
            (Claim::Behind, 1.01, 1.0, false),
            (Claim::Behind, 1.03, 1.0, true),
        ] {
            assert_eq!(claim.holds(ours, theirs), holds, "{claim:?} {ours} {theirs}");
        }
    }

    #[test]
    fn a_claim_tells_where_it_does_not_hold() {
        let pairs = [(4, 1.0, 2.0), (16, 5.0, 4.0)];
        let times = "1.00 against 2.00 s at 4 MB, 5.00 against 4.00 s at 16 MB";
        let told = verdict(Claim::NoSlower, &pairs);
        assert_eq!(told, format!("does not hold at 16 MB: {times}"));
        assert_eq!(verdict(Claim::NoSlower, &pairs[..1]), "holds: 1.00 against 2.00 s at 4 MB");
        assert!(verdict(Claim::Behind, &pairs[..1]).starts_with("does not hold: 1.00"));
    }
}
