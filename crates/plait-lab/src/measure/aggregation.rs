//! Aggregation metrics of a bond (paper 003).

/// Aggregation ratio A_r: the bond's throughput over the sum of the links'. Thousandths.
pub(crate) fn aggregation_ratio(bond_bps: u64, links_bps: &[u64]) -> i64 {
    let sum: u64 = links_bps.iter().sum();
    thousandths(i128::from(bond_bps), i128::from(sum))
}

/// Aggregation benefit A_b: 0 when the bond is as fast as its fastest link, 1 when it is as fast as
/// the sum, negative when it is slower than the fastest, -1 when nothing passes. Thousandths.
pub(crate) fn aggregation_benefit(bond_bps: u64, links_bps: &[u64]) -> i64 {
    let sum = i128::from(links_bps.iter().sum::<u64>());
    let fastest = i128::from(links_bps.iter().copied().max().unwrap_or(0));
    let gain = i128::from(bond_bps) - fastest;
    if gain >= 0 { thousandths(gain, sum - fastest) } else { thousandths(gain, fastest) }
}

fn thousandths(part: i128, whole: i128) -> i64 {
    if whole == 0 { 0 } else { i64::try_from(part * 1000 / whole).unwrap_or(i64::MAX) }
}

/// The middle value of an odd number of runs, the upper middle one of an even number.
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    assert!(!values.is_empty(), "a median needs at least one run");
    values.sort_unstable();
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_the_paper() {
        // 003 table 4.1: links 61.9 and 256.0, bond 58.6 + 234.4, with interference 58.1 + 182.1.
        let links = [61_900_000, 256_000_000];
        assert_eq!(aggregation_ratio(293_000_000, &links), 921);
        assert_eq!(aggregation_benefit(293_000_000, &links), 597);
        assert_eq!(aggregation_ratio(240_200_000, &links), 755);
        assert_eq!(aggregation_benefit(240_200_000, &links), -61);
    }

    #[test]
    fn a_single_link_has_no_benefit() {
        assert_eq!(aggregation_benefit(10, &[10]), 0);
        assert_eq!(aggregation_ratio(10, &[]), 0);
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![7]), 7);
    }
}
