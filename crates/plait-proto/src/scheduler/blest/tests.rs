use super::super::testing::{PACKET, check_table, decide, path, plain_paths};
use super::*;

const SEGMENT: u64 = 1500;

/// The quick path's window is full; the slow one has room.
fn decision(fast: (f64, f64), slow: (f64, f64), config: BlestConfig) -> String {
    let window = fast.1 as u64 * SEGMENT;
    let paths = [
        path(0).rtt_ms(fast.0 as u64).closed(10, window).full().build(),
        path(1)
            .rtt_ms(slow.0 as u64)
            .closed(10, 1 << 20)
            .in_flight(slow.1 as u64 * SEGMENT)
            .build(),
    ];
    decide(&mut Blest::new(config), &paths, PACKET)
}

/// Worked out by hand. rtts = 60/20 = 3: X = 1500·(10 + 2/2)·3 = 49500. rtts = 10:
/// X = 1500·(10 + 9/2)·10 = 217500. rtts = 1: X = 1500·10 = 15000. The slow path is used if
/// λ·X ≤ |M| − 1500·(in flight + 1), the last line of each group being the first that holds.
#[test]
fn the_slow_path_is_used_if_the_window_outlasts_it() {
    let table = "
        rtt_f  cwnd_f  rtt_s  in_flight_s  lambda      M  | path
           20      10     60            0     1.0  50999  | wait 5000
           20      10     60            0     1.0  51000  | 1
           20      10     60            4     1.0  56999  | wait 5000
           20      10     60            4     1.0  57000  | 1
           20      10     60            0     1.2  60899  | wait 5000
           20      10     60            0     1.2  60901  | 1
           20      10    200            0     1.0 218999  | wait 5000
           20      10    200            0     1.0 219000  | 1
           20      10     20            0     1.0  16499  | wait 5000
           20      10     20            0     1.0  16500  | 1
            3      10      9            0     1.0  50999  | wait 3000
           80      10    240            0     1.0  50999  | wait 10000";
    check_table(table, |row| {
        let config = BlestConfig { lambda: row[4], send_window_bytes: row[5] as u64 };
        decision((row[0], row[1]), (row[2], row[3]), config)
    });
}

#[test]
fn the_quickest_path_is_taken_while_it_has_room() {
    let paths = [
        path(0).rtt_ms(60).closed(10, 30_000).build(),
        path(1).rtt_ms(20).closed(10, 30_000).in_flight(28_500).build(),
    ];
    let mut blest = Blest::new(BlestConfig::default());
    assert_eq!(decide(&mut blest, &paths, PACKET), "1");
}

#[test]
fn a_pacer_is_waited_for_no_longer_than_it_asks() {
    let paths = [
        path(0).rtt_ms(20).closed(50, 125_000).ready_in_us(240).build(),
        path(1).rtt_ms(300).closed(5, 125_000).build(),
    ];
    let mut blest = Blest::new(BlestConfig { send_window_bytes: 500_000, lambda: 1.0 });
    assert_eq!(decide(&mut blest, &paths, PACKET), "wait 240");
}

#[test]
fn without_room_anywhere_it_is_blocked_and_without_windows_it_never_waits() {
    let full = path(0).rtt_ms(20).closed(10, 15_000).full().build();
    let mut blest = Blest::new(BlestConfig::default());
    assert_eq!(decide(&mut blest, &[full], PACKET), "blocked");
    assert_eq!(decide(&mut blest, &plain_paths(2), PACKET), "0");
}
