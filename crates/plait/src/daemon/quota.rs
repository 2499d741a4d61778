//! Counts bytes per path and month, whatever the wall clock does.
//!
//! Months begin on a configured day, by UTC. Setting the clock (its step shows against the steady
//! clock) may change the month without a month having passed: the bytes of this run are then
//! counted in the other month as well, but only once, so neither a machine that starts in 1970 nor
//! one whose clock goes back loses any.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// How far a path has spent its quota.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct QuotaStatus {
    /// Name of the configured path.
    pub(super) path: String,
    /// Bytes in this month, as last counted.
    pub(super) used_bytes: u64,
    /// Bytes that it may carry in a month.
    pub(super) limit_bytes: u64,
}

/// Bytes by month, as in `2026-11`.
pub(super) type Months = BTreeMap<String, u64>;

/// The clocks diverge by more than this only when one was set.
const STEP_MIN: Duration = Duration::from_secs(60);
/// Months that are kept.
const MONTHS_MAX: usize = 24;

/// The month of a time since the Unix epoch, when months begin on `first_day`.
pub(super) fn month(wall: Duration, first_day: u8) -> String {
    let days = wall.as_secs() / 86_400;
    let (mut year, mut month, day) = civil(days);
    if day < u64::from(first_day) {
        (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
    }
    format!("{year:04}-{month:02}")
}

/// Year, month and day, by the Gregorian calendar, of a day since 1970-01-01. Years are counted
/// from March, so that the leap day is the last day of a year; 400 years have 146097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let since_march_0000 = days + 719_468;
    let (era, day_of_era) = (since_march_0000 / 146_097, since_march_0000 % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

/// What this run has counted for one path since its month last ended.
#[derive(Debug, Default)]
struct Run {
    bytes: u64,
    /// How many of those bytes are in the count of each month.
    counted: BTreeMap<String, u64>,
    month: String,
}

/// Counts.
#[derive(Debug, Default)]
pub(super) struct Meter {
    runs: BTreeMap<String, Run>,
    /// The steady clock and the wall clock, when last read.
    last: Option<(Duration, Duration)>,
}

impl Meter {
    /// Takes both clocks, the steady one first; says whether the wall clock was set since the last
    /// time.
    pub(super) fn was_clock_set(&mut self, steady: Duration, wall: Duration) -> bool {
        let last = self.last.replace((steady, wall));
        last.is_some_and(|(last_steady, last_wall)| {
            let expected = last_wall + steady.saturating_sub(last_steady);
            expected.abs_diff(wall) > STEP_MIN
        })
    }

    /// Adds bytes of a path to this month's count in `months`; gives that count.
    pub(super) fn add(
        &mut self,
        path: &str,
        months: &mut Months,
        month: &str,
        clock_was_set: bool,
        bytes: u64,
    ) -> u64 {
        let run = self.runs.entry(path.to_owned()).or_default();
        if run.month != month {
            if !clock_was_set {
                // A month ended, or the run began.
                *run = Run::default();
            }
            month.clone_into(&mut run.month);
        }
        run.bytes += bytes;
        let counted = run.counted.entry(month.to_owned()).or_default();
        let count = months.entry(month.to_owned()).or_default();
        *count += run.bytes - *counted;
        *counted = run.bytes;
        let count = *count;
        while months.len() > MONTHS_MAX {
            let oldest = months.keys().find(|known| *known != month).cloned();
            oldest.and_then(|oldest| months.remove(&oldest));
        }
        count
    }
}

/// The reason in the status of a path that has spent its quota.
pub(super) fn spent_reason(used: u64, quota: u64) -> String {
    const UNITS: [(u64, &str); 3] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    let (size, unit) = UNITS.into_iter().find(|(size, _)| quota >= *size).unwrap_or(UNITS[2]);
    let tenths = |bytes: u64| {
        let tenths = bytes.saturating_mul(10) / size;
        if tenths.is_multiple_of(10) {
            (tenths / 10).to_string()
        } else {
            format!("{}.{}", tenths / 10, tenths % 10)
        }
    };
    format!("quota spent: {} of {} {unit} this month", tenths(used), tenths(quota))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn months_begin_on_their_day() {
        let at = |days, first_day| month(Duration::from_secs(days * DAY + 3600), first_day);
        assert_eq!(at(0, 1), "1970-01");
        assert_eq!(at(0, 2), "1969-12");
        // 2024-02-29, 2024-03-01 and 2026-11-14, 2026-11-15.
        assert_eq!([at(19_782, 1), at(19_783, 1)], ["2024-02", "2024-03"]);
        assert_eq!([at(20_771, 15), at(20_772, 15)], ["2026-10", "2026-11"]);
        assert_eq!(civil(20_772), (2026, 11, 15));
    }

    /// Adds `bytes` to one path's count for each month of the list, where a mark says that the
    /// clock was set.
    fn count(steps: &[(&str, bool, u64)]) -> (Meter, Months) {
        let (mut meter, mut months) = (Meter::default(), Months::new());
        for (month, set, bytes) in steps {
            meter.add("lte", &mut months, month, *set, *bytes);
        }
        (meter, months)
    }

    #[test]
    fn a_month_that_ends_begins_another_count() {
        let (_, months) =
            count(&[("2026-11", false, 5), ("2026-11", false, 6), ("2026-12", false, 1)]);
        assert_eq!(months, Months::from([("2026-11".into(), 11), ("2026-12".into(), 1)]));
    }

    #[test]
    fn a_clock_that_is_set_loses_nothing_and_doubles_nothing() {
        let steps = [
            ("1970-01", false, 5),
            ("2026-11", true, 6),
            ("2031-01", true, 1),
            ("2026-11", true, 2),
        ];
        let (_, months) = count(&steps);
        assert_eq!(months["2026-11"], 14);
        assert_eq!(months["2031-01"], 12);
    }

    #[test]
    fn a_restart_goes_on_from_the_file() {
        let (_, mut months) = count(&[("2026-11", false, 5)]);
        let total = Meter::default().add("lte", &mut months, "2026-11", false, 3);
        assert_eq!(total, 8);
        assert_eq!(Meter::default().add("dsl", &mut Months::new(), "2026-11", false, 3), 3);
    }

    #[test]
    fn old_months_go_but_not_the_one_that_counts() {
        let mut months: Months = (0..40).map(|n| (format!("2{n:03}-01"), 1)).collect();
        Meter::default().add("lte", &mut months, "1970-01", false, 3);
        assert_eq!(months.len(), MONTHS_MAX);
        assert_eq!(months["1970-01"], 3);
        assert!(months.contains_key("2039-01") && !months.contains_key("2000-01"));
    }

    #[test]
    fn a_set_clock_is_told_from_one_that_drifts() {
        let s = Duration::from_secs;
        let mut meter = Meter::default();
        assert!(!meter.was_clock_set(s(0), s(1000)));
        assert!(!meter.was_clock_set(s(100), s(1130)), "drift");
        assert!(meter.was_clock_set(s(110), s(9000)), "forwards");
        assert!(!meter.was_clock_set(s(120), s(9010)));
        assert!(meter.was_clock_set(s(130), s(100)), "backwards");
    }

    #[test]
    fn the_reason_is_in_the_quotas_unit() {
        assert_eq!(
            spent_reason(20_190_000_000, 20_000_000_000),
            "quota spent: 20.1 of 20 GB this month"
        );
        assert_eq!(spent_reason(1_500_000, 1_500_000), "quota spent: 1.5 of 1.5 MB this month");
    }
}
