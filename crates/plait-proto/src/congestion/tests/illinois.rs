//! Growth and reduction by delay, with numbers worked out by hand.

use super::super::illinois::{alpha_at, beta_at};
use super::*;

fn illinois() -> Course<Illinois> {
    Course::new(Illinois::new(START, SlowStart::Standard))
}

/// Twenty segments, in congestion avoidance.
fn avoiding() -> Course<Illinois> {
    let mut course = illinois();
    course.rounds(2, ms(20));
    assert_eq!(course.segments(), 40);
    // 40 less an eighth of it: the last round began with a window above fifteen segments, and there
    // was no queue.
    assert_eq!(course.lose(), 35);
    course
}

#[test]
fn growth_falls_from_ten_to_three_tenths_as_delay_rises() {
    // 100 ms at most; a hundredth of that is 1 ms. At 50.5 ms half of the rest is used:
    // 10 / (1 + 0.5 * 9.7 / 0.3) = 0.5825.
    for (mean_ms, alpha) in [(1.0, 10.0), (100.0, 0.3), (50.5, 0.582_524)] {
        let found = alpha_at(mean_ms / 1e3, 0.1);
        assert!((found - alpha).abs() < 1e-6, "{mean_ms} ms: {found}");
    }
}

#[test]
fn reduction_rises_from_an_eighth_to_a_half_as_delay_rises() {
    // Linear from 10 to 80 ms: at 45 ms half of 3/8 more than 1/8.
    for (mean_ms, beta) in [(0.0, 0.125), (10.0, 0.125), (45.0, 0.3125), (80.0, 0.5), (100.0, 0.5)]
    {
        let found = beta_at(mean_ms / 1e3, 0.1);
        assert!((found - beta).abs() < 1e-9, "{mean_ms} ms: {found}");
    }
}

#[test]
fn without_a_queue_ten_segments_are_added_per_round_trip() {
    let mut course = avoiding();
    // Every fourth acknowledgement, 40 > 35, adds one and the rest of 5 is forgotten, up to 40;
    // then every fifth: 5 * 4 + 3 * 5 = 35.
    assert_eq!(course.round(ms(20)), 43);
    assert_eq!(course.round(ms(20)), 43 + 43 / 5);
}

#[test]
fn a_small_window_is_new_renos() {
    let mut course = illinois();
    course.round(ms(20));
    for _ in 0..8 {
        course.lose();
    }
    let before = course.segments();
    assert_eq!(before, 2);
    assert_eq!(course.rounds(4, ms(20)), [3, 4, 5, 6]);
    assert_eq!(course.lose(), 3);
}

#[test]
fn growth_is_slow_in_a_queue_and_fast_again_after_five_round_trips_without_one() {
    let mut course = avoiding();
    course.rounds(2, ms(120));
    let queued = course.segments();
    course.round(ms(120));
    assert!(course.segments() <= queued + 1, "three tenths per round trip");
    // The first quiet round still ends the last queued one.
    let quiet = course.rounds(8, ms(20));
    let growth: Vec<u64> = quiet.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(growth[..3].iter().all(|more| *more <= 1), "{growth:?}");
    assert!(growth[5..].iter().all(|more| *more >= 7), "{growth:?}");
}

#[test]
fn a_timeout_forgets_the_queue() {
    let mut course = avoiding();
    course.rounds(3, ms(120));
    course.controller.on_rto(&Rto { in_flight_bytes: 30 * S, ..rto(30, Episode::New) });
    assert_eq!(course.segments(), 31);
    assert!(course.controller.ssthresh() >= 15 * S);
    course.rounds(4, ms(20));
    let before = course.segments();
    assert!(course.round(ms(20)) >= before + 6, "ten per round trip at once");
}
