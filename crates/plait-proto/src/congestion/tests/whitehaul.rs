//! WhiteHaul's window round by round, and what each repair changes.

use super::*;

const QUIET: Duration = Duration::from_millis(20);
const QUEUED: Duration = Duration::from_millis(80);

fn repaired(repairs: &[Repair]) -> Course<WhiteHaul> {
    let repairs = repairs.iter().copied().collect();
    let config = WhiteHaulConfig { repairs, ..WhiteHaulConfig::default() };
    Course::new(WhiteHaul::new(START, SlowStart::Standard, config))
}

fn as_published() -> Course<WhiteHaul> {
    repaired(&[])
}

/// A window of about 105 segments without a queue.
fn enough(mut course: Course<WhiteHaul>) -> Course<WhiteHaul> {
    course.rounds(9, QUIET);
    assert!((101..=110).contains(&course.segments()), "{}", course.segments());
    course
}

#[test]
fn it_grows_by_fifty_up_to_a_hundred_and_by_one_from_there() {
    // Slow start to 20. Then two segments per acknowledgement up to 26, one up to 50: 17 of them,
    // to 43. Then 8 to 51, and one for every two of the other 35: 68, and one is left. With that
    // 33 times two to 101, and three to 102. Then one per round trip.
    let windows = as_published().rounds(7, QUIET);
    assert_eq!(windows, [20, 43, 68, 102, 103, 104, 105]);
}

#[test]
fn a_loss_takes_six_64ths() {
    let mut course = as_published();
    course.rounds(4, QUIET);
    // 102 * 6 / 64 = 9.6; 93 * 6 / 64 = 8.7.
    assert_eq!(course.lose(), 93);
    assert_eq!(course.lose(), 85);
    assert_eq!(course.controller.ssthresh(), 85 * S);
    (0..100).for_each(|_| assert!(course.lose() >= 10, "6/64 of ten is no whole segment"));
}

#[test]
fn one_round_with_a_queue_holds_the_window_at_a_hundred_until_a_loss() {
    let mut course = enough(as_published());
    course.round(QUEUED);
    course.round(QUIET);
    assert_eq!(course.controller.ssthresh(), 100 * S);
    // One segment more with the last acknowledgement of a round, taken back by the next.
    let held = course.rounds(100, QUIET);
    assert!(held.iter().all(|segments| (100..=101).contains(segments)), "{held:?}");
    let left = course.lose();
    assert!((91..=92).contains(&left), "{left}");
    let freed = course.rounds(20, QUIET);
    assert!(freed.last() > Some(&110), "two quiet rounds below a hundred are enough: {freed:?}");
}

#[test]
fn a_queue_of_fifty_milliseconds_is_none() {
    let mut course = enough(as_published());
    let windows = course.rounds(5, QUIET + ms(50));
    assert!(windows.is_sorted_by(|a, b| a < b), "{windows:?}");
    let windows = course.rounds(3, QUIET + ms(51));
    assert!(windows.last() <= Some(&101), "{windows:?}");
}

#[test]
fn below_ten_segments_it_grows_as_new_reno() {
    let mut course = as_published();
    for _ in 0..2 {
        course.controller.on_rto(&rto(10, Episode::New));
    }
    assert_eq!((course.segments(), course.controller.ssthresh()), (1, 2 * S));
    let windows = course.rounds(11, QUIET);
    assert_eq!(windows[..9], [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert!(windows[10] > 30, "{windows:?}");
}

#[test]
fn a_timeout_clears_the_latch() {
    let mut course = enough(as_published());
    course.rounds(2, QUEUED);
    course.controller.on_rto(&rto(100, Episode::New));
    assert_eq!(course.segments(), 1);
    let windows = course.rounds(20, QUIET);
    assert!(windows.last() > Some(&105), "{windows:?}");
}

#[test]
fn a_lost_recovery_is_taken_back_as_new_reno_does() {
    let mut course = enough(as_published());
    let before = course.segments();
    course.lose();
    course.controller.on_spurious(&Spurious { now: at(0), window_bytes: 0 });
    assert_eq!(course.segments(), before);
}

// What happens on the way to each fault. Every trace gives the windows of its rounds.

fn steady(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let mut windows = course.rounds(6, QUIET);
    windows.push(course.lose());
    windows.extend(course.rounds(3, QUIET));
    windows
}

/// A queue for a round, and none from then on.
fn spike(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let mut windows = course.rounds(7, QUIET);
    windows.push(course.round(QUEUED));
    windows.extend(course.rounds(20, QUIET));
    windows
}

/// Samples of at most 100 µs.
fn next_door(mut course: Course<WhiteHaul>) -> Vec<u64> {
    course.rounds(6, Duration::from_micros(80))
}

/// For good the path is longer, from a window of far less than a hundred on.
fn moved_away(mut course: Course<WhiteHaul>) -> Vec<u64> {
    course.rounds(3, QUIET);
    for _ in 0..10 {
        course.lose();
    }
    course.rounds(40, ms(600))
}

/// A path of 700 ms, with a queue of 300 ms at last.
fn round_the_world(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let mut windows = course.rounds(6, ms(700));
    windows.extend(course.rounds(3, ms(1000)));
    windows
}

/// A queue, while the application sends too little to use the window.
fn idle(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let mut windows = course.rounds(9, QUIET);
    for _ in 0..3 {
        let sample = AckSample { app_limited: true, ..acked(course.now, S, QUEUED) };
        windows.push(course.round_of(&sample));
    }
    windows
}

/// A round of 65 537 samples: the number wraps around to one.
fn crowded(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let mut windows = course.rounds(7, QUIET);
    let newest = PacketState::default();
    // Of the round so far all but the first acknowledgement count, and the first of the next.
    for _ in 0..65_537 - windows[5] {
        let now = course.now;
        let sample = AckSample { app_limited: true, newest, ..acked(now, 0, QUIET) };
        course.controller.on_ack(&sample);
    }
    windows.extend(course.rounds(2, QUIET));
    windows
}

/// A path that delivers 300 segments in its base round-trip time.
fn wide(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let delivery_rate = Rate::from_bytes_over(300 * S, QUIET);
    let round = |_| {
        let sample = AckSample { delivery_rate, ..acked(course.now, S, QUIET) };
        course.round_of(&sample)
    };
    (0..20).map(round).collect()
}

/// The middle of a queue, and a loss.
fn half_full(mut course: Course<WhiteHaul>) -> Vec<u64> {
    let mut windows = course.rounds(3, QUIET);
    windows.push(course.lose());
    windows.push(course.round(ms(60)));
    windows.push(course.lose());
    windows
}

type Trace = fn(Course<WhiteHaul>) -> Vec<u64>;

#[test]
fn each_repair_changes_what_it_names() {
    use Repair::*;
    let traces: [(&str, Trace, &[Repair]); 9] = [
        ("steady", steady, &[Ssthresh, Remainder, Beta]),
        ("spike", spike, &[Ssthresh, Latch, Remainder]),
        ("next door", next_door, &[Ssthresh, ShortSamples]),
        ("moved away", moved_away, &[Ssthresh, Ageing, Remainder, Beta]),
        ("round the world", round_the_world, &[Ssthresh, Remainder, RttMax]),
        ("idle", idle, &[Ssthresh, Remainder, UnusedWindow]),
        ("crowded", crowded, &[Ssthresh, Latch, Remainder, Count]),
        ("wide", wide, &[Ssthresh, Adv, Remainder]),
        ("half full", half_full, &[Ssthresh, Remainder, Beta]),
    ];
    for (name, trace, expected) in traces {
        let published = trace(as_published());
        let changes = |repair: &Repair| trace(repaired(&[*repair])) != published;
        let found: Vec<Repair> = Repair::ALL.into_iter().filter(changes).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn without_ssthresh_the_first_slow_start_goes_on() {
    assert_eq!(repaired(&[Repair::Ssthresh]).rounds(4, QUIET), [20, 40, 80, 160]);
}

#[test]
fn the_delay_can_be_set_where_it_is_repaired() {
    let after_a_queue_of_30_ms = |repairs: &[Repair], delay| {
        let repairs = repairs.iter().copied().collect();
        let config = WhiteHaulConfig { delay, repairs, ..WhiteHaulConfig::default() };
        let course = Course::new(WhiteHaul::new(START, SlowStart::Standard, config));
        let mut course = enough(course);
        course.rounds(3, QUIET + ms(30)).pop()
    };
    let kept = after_a_queue_of_30_ms(&[], ms(50));
    assert_eq!(after_a_queue_of_30_ms(&[], ms(10)), kept, "a constant");
    assert_eq!(after_a_queue_of_30_ms(&[Repair::Delay], ms(50)), kept);
    assert!(after_a_queue_of_30_ms(&[Repair::Delay], ms(29)) <= Some(101));
    assert!(kept > Some(103));
}

#[test]
fn a_measured_window_is_what_the_path_delivers() {
    let windows = wide(repaired(&[Repair::Adv]));
    let last = windows[windows.len() - 1];
    assert!((300..=360).contains(&last), "{windows:?}");
    let auto = WhiteHaulConfig { adv: Adv::Auto, ..WhiteHaulConfig::default() };
    let auto = Course::new(WhiteHaul::new(START, SlowStart::Standard, auto));
    assert_eq!(wide(auto), windows);
    let known = Some((Rate::from_bytes_over(5 * S, QUIET), QUIET));
    assert_eq!(Adv::Auto.segments(known, S), 10, "at least");
    assert_eq!(Adv::Auto.segments(None, S), 100, "nothing is known");
}

#[test]
fn with_remainders_fifty_per_round_trip_are_fifty() {
    // Worked out step by step: 20 acknowledgements times 50, less the windows grown from.
    assert_eq!(repaired(&[Repair::Remainder]).rounds(2, QUIET), [20, 49]);
}

#[test]
fn with_beta_repaired_a_loss_takes_an_eighth_to_a_half() {
    let mut course = repaired(&[Repair::Beta]);
    course.rounds(4, QUIET);
    assert_eq!(course.lose(), 102 - 12);
    // The longest queue there was: 32/64.
    course.rounds(2, QUEUED);
    let window = course.segments();
    assert_eq!(course.lose(), window - window / 2);
}

#[test]
fn with_the_latch_repaired_the_window_grows_again_after_a_spike() {
    let windows = spike(repaired(&[Repair::Latch]));
    assert!(windows[8..=9].contains(&100) || windows[8..=9].contains(&101), "{windows:?}");
    assert!(windows.last() > Some(&110), "{windows:?}");
}

#[test]
fn with_ageing_a_longer_path_is_no_queue_for_ever() {
    let [published, aged] =
        [as_published(), repaired(&[Repair::Ageing])].map(|course| moved_away(course).pop());
    assert!(published <= Some(101), "{published:?}");
    assert!(aged > Some(110), "{aged:?}");
}

#[test]
fn samples_too_short_for_the_base_look_like_a_queue() {
    // The base is 2^31 - 1 µs: 80 less it is far above 50 ms.
    assert_eq!(next_door(as_published())[..3], [20, 21, 22]);
    assert_eq!(next_door(repaired(&[Repair::ShortSamples]))[..3], [20, 43, 68]);
}

#[test]
fn samples_above_671_ms_look_alike() {
    let queued = |course| round_the_world(course)[6..].to_vec();
    assert!(queued(as_published()).is_sorted_by(|a, b| a < b), "no queue is seen");
    assert!(queued(repaired(&[Repair::RttMax])).iter().skip(1).all(|window| *window <= 101));
}
