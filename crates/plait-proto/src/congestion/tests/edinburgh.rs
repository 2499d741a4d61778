//! Edinburgh's window round by round.

use super::*;

const QUIET: Duration = Duration::from_millis(20);
const QUEUED: Duration = Duration::from_millis(80);

fn with(config: EdinburghConfig) -> Course<Edinburgh> {
    Course::new(Edinburgh::new(START, SlowStart::Standard, config))
}

/// 72.5 segments, in congestion avoidance.
fn avoiding(config: EdinburghConfig) -> Course<Edinburgh> {
    let mut course = with(config);
    assert_eq!(course.rounds(3, QUIET), [20, 40, 80]);
    assert_eq!(course.lose(), 72, "80 less 6/64: 72.5");
    course
}

#[test]
fn slow_start_has_no_end_of_its_own() {
    assert_eq!(with(EdinburghConfig::default()).rounds(5, QUIET), [20, 40, 80, 160, 320]);
}

#[test]
fn it_grows_by_fifty_up_to_what_is_enough_and_by_one_from_there() {
    let mut course = avoiding(EdinburghConfig::default());
    // 72 acknowledgements times 50 are 3600, of which 72.5 + 73.5 + … + 110.5 = 3568.5 are used.
    assert_eq!(course.round(QUIET), 111);
    assert_eq!(course.rounds(3, QUIET), [112, 113, 114]);
}

#[test]
fn a_queue_brings_the_window_back_and_it_grows_again_after_it() {
    let mut course = avoiding(EdinburghConfig::default());
    course.rounds(10, QUIET);
    course.round(QUEUED);
    // The round ends with the first acknowledgement of the next.
    course.round(QUIET);
    assert_eq!(course.controller.ssthresh(), 100 * S);
    let windows = course.rounds(20, QUIET);
    assert!(windows.is_sorted(), "{windows:?}");
    assert!(windows.last() >= Some(&118), "{windows:?}");

    let config = WhiteHaulConfig::default();
    let mut other = Course::new(WhiteHaul::new(START, SlowStart::Standard, config));
    other.rounds(14, QUIET);
    other.round(QUEUED);
    let held = other.rounds(21, QUIET);
    assert!(held[1..].iter().all(|window| *window <= 101), "WhiteHaul does not: {held:?}");
}

#[test]
fn growth_stays_slow_for_theta_round_trips_after_a_queue() {
    for theta in [1, 2, 5] {
        let config = EdinburghConfig { theta, ..EdinburghConfig::default() };
        let mut course = avoiding(EdinburghConfig { adv: Adv::Segments(1000), ..config });
        course.rounds(3, QUEUED);
        // The first of these still ends a round with a queue.
        let slow = course.rounds(theta as usize, QUIET);
        let before = slow[slow.len() - 1];
        assert!(before - slow[0] <= u64::from(theta), "{theta}: {slow:?}");
        assert!(course.round(QUIET) > before + 30, "{theta}");
    }
}

#[test]
fn a_small_window_grows_as_new_reno() {
    let mut course = avoiding(EdinburghConfig { win_thresh: 85, ..EdinburghConfig::default() });
    let windows = course.rounds(12, QUIET);
    assert!((83..=84).contains(&windows[11]), "{windows:?}");
    let windows = course.rounds(3, QUIET);
    assert!(windows[2] > 100, "{windows:?}");
}

#[test]
fn a_measured_window_is_what_the_path_delivers() {
    let mut course = avoiding(EdinburghConfig { adv: Adv::Auto, ..EdinburghConfig::default() });
    let delivery_rate = Rate::from_bytes_over(300 * S, QUIET);
    let mut windows = Vec::new();
    for rtt in [QUIET; 10].into_iter().chain([QUEUED; 2]).chain([QUIET; 1]) {
        let sample = AckSample { delivery_rate, ..acked(course.now, S, rtt) };
        windows.push(course.round_of(&sample));
    }
    assert!((300..=350).contains(&windows[9]), "{windows:?}");
    assert_eq!(course.controller.ssthresh(), 300 * S, "{windows:?}");
}

#[test]
fn a_window_that_is_not_used_is_left_alone() {
    let mut course = avoiding(EdinburghConfig::default());
    course.rounds(10, QUIET);
    let before = course.segments();
    for _ in 0..3 {
        let sample = AckSample { app_limited: true, ..acked(course.now, S, QUEUED) };
        assert_eq!(course.round_of(&sample), before);
    }
}

#[test]
fn a_longer_path_is_a_queue_for_ten_seconds() {
    let mut course = avoiding(EdinburghConfig::default());
    course.rounds(10, QUIET);
    course.rounds(120, QUEUED);
    assert!(course.segments() <= 101, "9.6 s");
    let windows = course.rounds(20, QUEUED);
    assert!(windows.last() >= Some(&110), "{windows:?}");
}

#[test]
fn a_loss_may_take_more_the_longer_the_queue() {
    let config = EdinburghConfig { backoff: Backoff::Delay, ..EdinburghConfig::default() };
    let mut course = with(config);
    course.rounds(3, QUIET);
    assert_eq!(course.lose(), 70, "an eighth of 80");
    course.rounds(2, QUEUED);
    let window = course.controller.window();
    course.lose();
    assert_eq!(course.controller.window(), window / 2);
    let other = EdinburghConfig { beta_64ths: 32, ..EdinburghConfig::default() };
    let mut course = with(other);
    course.rounds(3, QUIET);
    assert_eq!(course.lose(), 40);
}

#[test]
fn a_timeout_forgets_the_queue() {
    let mut course = avoiding(EdinburghConfig::default());
    course.rounds(2, QUEUED);
    course.controller.on_rto(&Rto { in_flight_bytes: 49 * S, ..rto(70, Episode::New) });
    assert_eq!(course.segments(), 50);
    let windows = course.rounds(3, QUIET);
    assert!(windows[2] > 100, "{windows:?}");
}
