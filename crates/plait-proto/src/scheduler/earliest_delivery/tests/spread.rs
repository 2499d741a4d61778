//! Bulk traffic that builds no queue.

use super::*;

const RUNS: Duration = Duration::from_secs(1);

/// 50 Mbit/s at 20 ms and 12 at 45, both with room. The second one's turn comes every 2 ms.
fn pair() -> [PathView; 2] {
    [link(0, 50, 20).build(), link(1, 12, 45).build()]
}

fn case(paths: &[PathView]) -> Case {
    let mut case = Case::fresh();
    case.load(paths);
    case
}

/// What of so many Mbit/s, sent for `time` without a queue, takes path 1; in per cent.
fn second_percent(case: &mut Case, paths: &[PathView], mbit: u64, time: Duration) -> usize {
    let until = case.now + time;
    let spacing = Rate::from_mbit(mbit).time_for(1500);
    let mut last_second = Vec::new();
    while case.now < until {
        let decision = case.after(spacing, paths, bulk(0));
        if case.now + Duration::from_secs(1) >= until {
            last_second.push(decision);
        }
    }
    let over = last_second.iter().filter(|decision| *decision == "1").count();
    (over * 100 + last_second.len() / 2) / last_second.len()
}

/// 85 % of the quick path are 42.5 Mbit/s. At 44 a packet leaves each 273 us; each eighth is the
/// first after two milliseconds.
#[test]
fn a_flow_that_nearly_fills_the_quick_path_gets_the_slow_one_too() {
    let table = "
        mbit | percent over path 1
          20 | 0
          42 | 0
          44 | 12";
    check_table(table, |row| {
        let mbit = row[0] as u64;
        second_percent(&mut case(&pair()), &pair(), mbit, RUNS * 2).to_string()
    });
}

/// (20 + 70) / 40 is 2.25.
#[test]
fn a_path_that_makes_the_round_trip_too_long_gets_no_turns() {
    for (rtt_ms, percent) in [(70, 12), (71, 0)] {
        let paths = [link(0, 50, 20).build(), link(1, 12, rtt_ms).build()];
        assert_eq!(second_percent(&mut case(&paths), &paths, 44, RUNS * 2), percent);
    }
}

/// Below 60 % of the quick path, 30 Mbit/s, for longer than two to four seconds.
#[test]
fn the_slow_path_is_left_when_little_is_offered_for_long() {
    let mut case = case(&pair());
    second_percent(&mut case, &pair(), 44, RUNS * 2);
    assert!(second_percent(&mut case, &pair(), 31, RUNS * 6) > 0, "still above");
    assert!(second_percent(&mut case, &pair(), 28, RUNS) > 0, "not yet for long");
    assert_eq!(second_percent(&mut case, &pair(), 28, RUNS * 5), 0);
    assert_eq!(second_percent(&mut case, &pair(), 48, RUNS * 25), 0, "it may have done harm");
    assert!(second_percent(&mut case, &pair(), 48, RUNS * 6) > 0);
}

/// The quick path's capacity is believed to be what little it carries.
#[test]
fn a_flow_that_shrinks_on_both_paths_gets_the_quick_one_alone() {
    let mut case = case(&pair());
    second_percent(&mut case, &pair(), 44, RUNS * 2);
    let shrunk = [link(0, 18, 20).build(), link(1, 12, 45).build()];
    assert_eq!(second_percent(&mut case, &shrunk, 18, RUNS * 6), 0);
}

#[test]
fn a_flow_that_measures_its_round_trip_sees_the_slow_path_with_each_packet() {
    let mut case = case(&pair());
    second_percent(&mut case, &pair(), 55, RUNS * 2);
    let apart = Duration::from_millis(15);
    assert!((0..20).all(|_| case.after(apart, &pair(), bulk(0)) == "1"));
    assert_eq!(case.decide(&pair(), INTERACTIVE), "0");
}

#[test]
fn a_new_transfer_begins_on_the_quick_path() {
    let mut case = case(&pair());
    second_percent(&mut case, &pair(), 55, RUNS);
    assert_eq!(case.after(HALF_SECOND, &pair(), bulk(0)), "0");
}

#[test]
fn a_slow_path_without_room_or_of_another_price_is_passed_over() {
    for other in [link(1, 10, 60).full(), link(1, 10, 60).price(1)] {
        let paths = [link(0, 50, 20).build(), other.build()];
        assert_eq!(second_percent(&mut case(&pair()), &paths, 48, RUNS), 0);
    }
}
