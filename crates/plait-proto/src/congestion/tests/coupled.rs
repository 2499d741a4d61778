//! LIA, OLIA and BALIA beside their siblings, with numbers worked out by hand.

use proptest::prelude::*;

use super::random::{World, ops};
use super::*;

/// A flow of so many segments.
fn sibling(segments: u64, rtt: Duration, loss_gap_bytes: u64) -> Sibling {
    Sibling {
        window_bytes: segments * S,
        in_flight_bytes: 0,
        srtt: Some(rtt),
        delivery_rate: Rate::ZERO,
        loss_gap_bytes,
    }
}

/// The same controller in congestion avoidance with so many segments.
fn avoiding<C: Controller>(segments: u64, new: fn(Start, SlowStart) -> C) -> C {
    let initial_window_bytes = 2 * segments * S;
    let start = Start { segment_bytes: S, initial_window_bytes };
    let mut controller = new(start, SlowStart::Standard);
    controller.on_loss(&loss(2 * segments));
    assert_eq!((controller.window(), controller.ssthresh()), (segments * S, segments * S));
    controller
}

/// Segments that a window of acknowledgements adds, in thousandths: by the least number of bytes
/// that changes the window.
fn gain<C: Controller + Clone>(controller: &C, rtt: Duration, siblings: &[Sibling]) -> i64 {
    let before = controller.window();
    let after = |bytes: u64| {
        let mut copy = controller.clone();
        copy.on_ack(&AckSample { siblings, ..acked(at(0), bytes, rtt) });
        copy.window()
    };
    let (mut same, mut changed) = (0, 1_000 * before);
    if after(changed) == before {
        return 0;
    }
    while changed - same > 1 {
        let middle = same.midpoint(changed);
        if after(middle) == before { same = middle } else { changed = middle }
    }
    let sign = if after(changed) > before { 1 } else { -1 };
    sign * (before as f64 / changed as f64 * 1e3).round() as i64
}

#[test]
fn lia_grows_all_flows_as_one_new_reno_on_the_best_path() {
    // w/r²: 10/0.01 = 1000 and 20/0.0025 = 8000; rates 100 and 400 a second:
    // 10 * 8000 / 500² = 0.32, and for the other one 20 * 8000 / 500² = 0.64.
    let [far, near] = [sibling(10, ms(100), 0), sibling(20, ms(50), 0)];
    assert_eq!(gain(&avoiding(10, Lia::new), ms(100), &[near]), 320);
    assert_eq!(gain(&avoiding(20, Lia::new), ms(50), &[far]), 640);
    // Beside one that is alike: 10 * 1000 / 200².
    assert_eq!(gain(&avoiding(10, Lia::new), ms(100), &[far]), 250);
    // Beside two: 10 * 1000 / 300².
    assert_eq!(gain(&avoiding(10, Lia::new), ms(100), &[far, far]), 111);
}

#[test]
fn lia_grows_no_flow_faster_than_new_reno() {
    // 100 * (10/0.0001) / (1000 + 1000)² = 2.5.
    let quick = sibling(10, ms(10), 0);
    assert_eq!(gain(&avoiding(100, Lia::new), ms(100), &[quick]), 1000);
}

#[test]
fn olia_shares_growth_by_rates() {
    // The best path has the largest window: nothing moves. 1/3 and 2/3 squared.
    let own = avoiding(10, Olia::new);
    assert_eq!(gain(&own, ms(100), &[sibling(20, ms(100), u64::MAX)]), 111);
    assert_eq!(gain(&avoiding(20, Olia::new), ms(100), &[sibling(10, ms(100), 0)]), 444);
}

#[test]
fn olia_moves_growth_from_the_largest_window_to_the_best_path() {
    let none = 0;
    // Of two the other is best and its window is smaller: (10/15)² - 1/2.
    let better = sibling(5, ms(100), 1 << 40);
    assert_eq!(gain(&avoiding(10, Olia::new), ms(100), &[better]), -56);
    // This one is best: (5/15)² + 1/2.
    let larger = sibling(10, ms(100), none);
    assert_eq!(gain(&avoiding(5, Olia::new), ms(100), &[larger]), 611);
    // Of three two are denied: (10/20)² - 1/3 for the largest.
    let denied = sibling(5, ms(100), 1 << 40);
    assert_eq!(gain(&avoiding(10, Olia::new), ms(100), &[denied, denied]), -83);
    // Where one of the two largest windows is best nothing moves to it, but to a small one as good.
    let [large, small] = [sibling(10, ms(100), none), sibling(5, ms(100), 1 << 40)];
    // (10/25)² - 1/(3 * 2): both largest pay the same.
    assert_eq!(gain(&avoiding(10, Olia::new), ms(100), &[large, small]), -7);
}

/// 1/p over the square of the round-trip time is what TCP's rate on a path goes by.
#[test]
fn olia_judges_a_path_by_bytes_between_losses_over_the_squared_round_trip_time() {
    // 6.48 GB at 180 ms are worth 2 GB at 100 ms. Two thirds of the rate squared, less a half where
    // the other path is better and its window smaller.
    for (bytes, expected) in [(1_500_000_000, -56), (2_500_000_000, 444)] {
        let mut own = avoiding(10, Olia::new);
        own.on_ack(&AckSample { phase: Phase::FastRecovery, ..acked(at(0), bytes, ms(100)) });
        let other = sibling(9, ms(180), 6_480_000_000);
        assert_eq!(gain(&own, ms(100), &[other]), expected, "{bytes}");
    }
}

#[test]
fn olia_counts_the_longer_of_the_last_two_gaps() {
    let mut own = avoiding(10, Olia::new);
    own.on_ack(&acked(at(0), 7 * S, ms(100)));
    assert_eq!(own.loss_gap_bytes(), 7 * S);
    own.on_loss(&loss(10));
    own.on_ack(&acked(at(0), 3 * S, ms(100)));
    assert_eq!(own.loss_gap_bytes(), 7 * S, "before the loss");
    own.on_ack(&acked(at(0), 5 * S, ms(100)));
    assert_eq!(own.loss_gap_bytes(), 8 * S, "since");
    own.on_rto(&rto(10, Episode::Continued));
    assert_eq!(own.loss_gap_bytes(), 8 * S, "the same loss");
    own.on_rto(&rto(10, Episode::New));
    own.on_rto(&rto(10, Episode::New));
    assert_eq!(own.loss_gap_bytes(), 0);
}

#[test]
fn what_olia_takes_away_leaves_two_segments_and_no_slow_start() {
    let mut own = avoiding(3, Olia::new);
    let better = [sibling(1, ms(100), 1 << 40)];
    for _ in 0..1000 {
        own.on_ack(&AckSample { siblings: &better, ..acked(at(0), S, ms(1000)) });
        assert!(!own.in_slow_start());
    }
    assert_eq!(own.window(), 2 * S);
}

#[test]
fn balia_is_zealous_on_the_slower_path() {
    // Rates 100 and 400: alpha 4, a fifth of all. 1/25 * 5/2 * 8/5 = 0.16.
    let fast = sibling(40, ms(100), 0);
    assert_eq!(gain(&avoiding(10, Balia::new), ms(100), &[fast]), 160);
    // Alpha 1, four fifths: 16/25.
    let slow = sibling(10, ms(100), 0);
    assert_eq!(gain(&avoiding(40, Balia::new), ms(100), &[slow]), 640);
}

#[test]
fn balia_backs_off_further_on_the_slower_path() {
    let left = |siblings: &[Sibling]| {
        let mut own = avoiding(40, Balia::new);
        own.on_ack(&AckSample { siblings, ..acked(at(0), S, ms(100)) });
        own.on_loss(&loss(40));
        own.window() / S
    };
    assert_eq!(left(&[]), 20, "alone: a half");
    assert_eq!(left(&[sibling(10, ms(100), 0)]), 20, "the faster: a half");
    assert_eq!(left(&[sibling(50, ms(100), 0)]), 15, "alpha 1.25: five eighths");
    assert_eq!(left(&[sibling(200, ms(100), 0)]), 10, "alpha 5: three quarters at most");
}

#[test]
fn a_sibling_without_a_round_trip_time_does_not_count() {
    let unknown = Sibling { srtt: None, ..sibling(100, ms(1), 1 << 40) };
    assert_eq!(gain(&avoiding(10, Lia::new), ms(100), &[unknown]), 1000);
    assert_eq!(gain(&avoiding(10, Olia::new), ms(100), &[unknown]), 1000);
    assert_eq!(gain(&avoiding(10, Balia::new), ms(100), &[unknown]), 1000);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// To the byte, whatever happens.
    #[test]
    fn a_lone_flow_is_new_renos(
        ops in ops(),
        algorithm in prop::sample::select(vec![Algorithm::Lia, Algorithm::Olia, Algorithm::Balia]),
    ) {
        let mut reno = ControllerConfig::from(Algorithm::NewReno).build(START);
        let mut lone = ControllerConfig::from(algorithm).build(START);
        let [mut beside, mut world] = [World::default(); 2];
        for op in ops {
            beside.apply(&mut *reno, op, &[]);
            world.apply(&mut *lone, op, &[]);
            let [expected, found] = [&reno, &lone].map(|it| (it.window(), it.ssthresh()));
            prop_assert_eq!(found, expected, "after {:?}", op);
        }
    }
}
