use super::super::testing::{PACKET, bulk, check_table, decide, path, plain_paths};
use super::*;

const SEGMENT: u64 = 1500;

struct Case {
    fast_rtt_ms: u64,
    fast_window: u64,
    slow_rtt_ms: u64,
    slow_window: u64,
    variation_ms: u64,
}

impl Case {
    /// The quick path's window is full. `waiting` packets wait, this one included.
    fn decide(&self, ecf: &mut Ecf, waiting: u64) -> String {
        let paths = [
            path(0)
                .rtt_ms(self.fast_rtt_ms)
                .closed(10, self.fast_window * SEGMENT)
                .full()
                .variation_ms(self.variation_ms)
                .build(),
            path(1).rtt_ms(self.slow_rtt_ms).closed(10, self.slow_window * SEGMENT).build(),
        ];
        decide(ecf, &paths, bulk((waiting - 1) * SEGMENT))
    }
}

fn ecf() -> Ecf {
    Ecf::new(EcfConfig::default())
}

/// 10 ms beside 100 ms, windows of ten packets.
const TEN_TIMES: Case =
    Case { fast_rtt_ms: 10, fast_window: 10, slow_rtt_ms: 100, slow_window: 10, variation_ms: 0 };

/// Worked out by hand from Algorithm 1, with nothing waited for before.
///
/// 10 and 100 ms, windows of 10: (1 + k/10)·10 < 100 + δ holds below k = 90 + δ in ms;
/// k/10·100 ≥ 20 + δ from k = 2 + δ/10 on. 20 and 40 ms: below k = 10; k/10·40 ≥ 40 from 10 on, so
/// never both. 20 and 60 ms, window of the slow path 5: below k = 20; k/5·60 ≥ 40 from 4 on.
#[test]
fn waiting_starts_between_the_two_inequalities() {
    let table = "
        rtt_f  cwnd_f  rtt_s  cwnd_s  delta   k | path
           10      10    100      10      0   1 | 1
           10      10    100      10      0   2 | wait 5000
           10      10    100      10      0  89 | wait 5000
           10      10    100      10      0  90 | 1
           10      10    100      10     10   2 | 1
           10      10    100      10     10   3 | wait 5000
           10      10    100      10     10  99 | wait 5000
           10      10    100      10     10 100 | 1
           20      10     40      10      0   9 | 1
           20      10     40      10      0  10 | 1
           20      10     60       5      0   3 | 1
           20      10     60       5      0   4 | wait 5000
           20      10     60       5      0  19 | wait 5000
           20      10     60       5      0  20 | 1";
    check_table(table, |row| {
        let number = |index: usize| row[index] as u64;
        let case = Case {
            fast_rtt_ms: number(0),
            fast_window: number(1),
            slow_rtt_ms: number(2),
            slow_window: number(3),
            variation_ms: number(4),
        };
        case.decide(&mut ecf(), number(5))
    });
}

/// With β = 0.25 the first inequality is (1 + k/10)·10 < 125 while waiting: below k = 115.
#[test]
fn waiting_goes_on_a_quarter_longer_than_it_starts() {
    let mut ecf = ecf();
    let decisions = [100, 50, 100, 114, 115, 114, 100, 89].map(|k| TEN_TIMES.decide(&mut ecf, k));
    let wait = "wait 5000";
    assert_eq!(decisions, ["1", wait, wait, wait, "1", "1", "1", wait]);
}

/// The second inequality alone, at k = 1, sends without ending the wait (Algorithm 1 line 14).
#[test]
fn too_little_to_wait_for_does_not_end_the_wait() {
    let mut ecf = ecf();
    let decisions = [50, 1, 100].map(|k| TEN_TIMES.decide(&mut ecf, k));
    assert_eq!(decisions, ["wait 5000", "1", "wait 5000"]);
}

/// 100 ms · 54 kB = 5.4e9 us·bytes < 300 ms · 45 kB = 13.5e9: wait. Cut to 32 bits they are
/// 1.11e9 and 0.62e9, and the slow path would be taken.
#[test]
fn products_beyond_32_bits_compare_right() {
    let case = Case {
        fast_rtt_ms: 100,
        fast_window: 30,
        slow_rtt_ms: 300,
        slow_window: 6,
        variation_ms: 0,
    };
    assert_eq!(case.decide(&mut ecf(), 6), "wait 12500");
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let mut fast = path(0).rtt_ms(1).closed(10, u64::MAX).ready_in_us(1).build();
    fast.srtt = Some(Duration::from_secs(u64::MAX));
    fast.min_rtt = fast.srtt;
    let mut slow = path(1).closed(10, u64::MAX).build();
    slow.srtt = Some(Duration::MAX);
    slow.rtt_variation = Some(Duration::MAX);
    let mut ecf = Ecf::new(EcfConfig { beta: 100.0 });
    ecf.waiting = true;
    decide(&mut ecf, &[fast, slow], bulk(u64::MAX));
}

#[test]
fn the_quickest_path_is_taken_while_it_has_room() {
    let paths = [
        path(0).rtt_ms(60).closed(10, 30_000).build(),
        path(1).rtt_ms(20).closed(10, 30_000).in_flight(28_500).build(),
    ];
    assert_eq!(decide(&mut ecf(), &paths, bulk(60_000)), "1");
}

#[test]
fn without_room_anywhere_it_is_blocked_and_without_windows_it_never_waits() {
    let full = path(0).rtt_ms(20).closed(10, 15_000).full().build();
    assert_eq!(decide(&mut ecf(), &[full], PACKET), "blocked");
    assert_eq!(decide(&mut ecf(), &plain_paths(2), bulk(90_000)), "0");
}
