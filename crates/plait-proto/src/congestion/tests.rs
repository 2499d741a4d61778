//! Rules one by one, with numbers worked out by hand; `growth.rs` has the course of a
//! window, `random.rs` what holds always.

mod coupled;
mod edinburgh;
mod gauge;
mod growth;
mod illinois;
mod random;
mod whitehaul;

use std::collections::VecDeque;

use super::slow_start::{Ramp, Ramped};
use super::*;

const S: u64 = 1000;
const START: Start = Start::ten_segments(S);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sent(bytes: u64) -> Sent {
    Sent { now: Instant::ZERO, bytes, in_flight_bytes: 0 }
}

fn acked(now: Instant, bytes: u64, rtt: Duration) -> AckSample<'static> {
    AckSample {
        now,
        acked_bytes: bytes,
        newest: PacketState::default(),
        in_order: None,
        rtt: Some(rtt),
        way_back_excess: None,
        srtt: Some(rtt),
        min_rtt: Some(rtt),
        in_flight_bytes: 0,
        lost_bytes: 0,
        delivery_rate: Rate::ZERO,
        rate_is_app_limited: false,
        app_limited: false,
        phase: Phase::Open,
        siblings: &[],
    }
}

fn loss(segments: u64) -> Loss {
    Loss { now: Instant::ZERO, flight_bytes: segments * S }
}

fn rto(segments: u64, episode: Episode) -> Rto {
    Rto { now: Instant::ZERO, flight_bytes: segments * S, in_flight_bytes: 0, episode }
}

fn new_reno() -> NewReno {
    NewReno::new(Start::ten_segments(S), SlowStart::Standard)
}

fn cubic() -> Cubic {
    Cubic::new(Start::ten_segments(S), SlowStart::Standard)
}

fn cubic_linux() -> CubicLinux {
    CubicLinux::new(Start::ten_segments(S), SlowStart::Standard)
}

/// Those that back off to two segments at least, grow by what is acknowledged at first, and stand
/// still meanwhile.
fn controllers() -> Vec<Box<dyn Controller>> {
    let others = [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia, Algorithm::Illinois];
    let others = others.map(|algorithm| ControllerConfig::from(algorithm).build(START));
    let mut all: Vec<Box<dyn Controller>> =
        vec![Box::new(new_reno()), Box::new(cubic()), Box::new(cubic_linux())];
    all.extend(others);
    all
}

/// A controller whose packets take a round trip: a window leaves, and is acknowledged one by one.
struct Course<C> {
    controller: C,
    now: Instant,
}

impl<C: Controller> Course<C> {
    /// Of a window that nothing limits no more than this is used.
    const PACKETS_MAX: u64 = 2000;

    fn new(controller: C) -> Self {
        Self { controller, now: at(0) }
    }

    /// A round trip of `rtt`; the window after it, in segments.
    fn round(&mut self, rtt: Duration) -> u64 {
        self.round_of(&acked(self.now, S, rtt))
    }

    /// The same with acknowledgements like this one.
    fn round_of(&mut self, like: &AckSample<'_>) -> u64 {
        let packets = (self.controller.window() / S).min(Self::PACKETS_MAX);
        let left: Vec<_> = (0..packets).map(|_| self.controller.on_sent(&sent(S))).collect();
        self.now += like.rtt.unwrap_or_default();
        for newest in left {
            self.controller.on_ack(&AckSample { now: self.now, newest, ..*like });
        }
        self.segments()
    }

    /// So many round trips of `rtt`; the window after each.
    fn rounds(&mut self, count: usize, rtt: Duration) -> Vec<u64> {
        (0..count).map(|_| self.round(rtt)).collect()
    }

    fn segments(&self) -> u64 {
        self.controller.window() / S
    }

    fn lose(&mut self) -> u64 {
        let flight_bytes = self.controller.window();
        self.controller.on_loss(&Loss { now: self.now, flight_bytes });
        self.segments()
    }
}

#[test]
fn slow_start_grows_by_what_is_acknowledged() {
    for mut controller in controllers() {
        controller.on_ack(&acked(at(0), 10 * S, ms(50)));
        assert_eq!(controller.window(), 20 * S);
        assert!(controller.in_slow_start());
    }
}

#[test]
fn nothing_grows_during_fast_recovery_or_when_the_window_is_not_used() {
    for mut controller in controllers() {
        let phase = Phase::FastRecovery;
        controller.on_ack(&AckSample { phase, ..acked(at(0), 10 * S, ms(50)) });
        controller.on_ack(&AckSample { app_limited: true, ..acked(at(0), 10 * S, ms(50)) });
        assert_eq!(controller.window(), 10 * S);
    }
}

#[test]
fn new_reno_halves_the_flight_and_grows_by_a_segment_per_window() {
    let mut controller = new_reno();
    controller.on_ack(&acked(at(0), 10 * S, ms(50)));
    controller.on_loss(&loss(18));
    assert_eq!((controller.window(), controller.ssthresh()), (9 * S, 9 * S));
    controller.on_ack(&acked(at(0), 8 * S, ms(50)));
    assert_eq!(controller.window(), 9 * S);
    controller.on_ack(&acked(at(0), S, ms(50)));
    assert_eq!(controller.window(), 10 * S);
}

#[test]
fn the_window_after_a_loss_is_two_segments_at_least() {
    for mut controller in controllers() {
        (0..10).for_each(|_| controller.on_loss(&loss(1)));
        assert_eq!(controller.window(), 2 * S);
    }
}

#[test]
fn cubic_backs_off_to_seven_tenths_of_the_flight() {
    let mut controller = cubic();
    controller.on_ack(&acked(at(0), 90 * S, ms(50)));
    controller.on_loss(&loss(120));
    assert_eq!(controller.window(), 70 * S, "the flight counts up to the window of 100");
}

#[test]
fn cubic_returns_to_its_maximum_after_k_seconds() {
    // W_max 100, window 70: K = cbrt(30/0.4) = 4.217 s. RTT 400 ms keeps out the Reno region.
    let mut controller = cubic();
    controller.on_ack(&acked(at(0), 90 * S, ms(50)));
    controller.on_loss(&loss(100));
    let mut now = at(0);
    let mut windows = Vec::new();
    for _ in 0..15 {
        let bytes = controller.window();
        controller.on_ack(&acked(now, bytes, ms(400)));
        windows.push(controller.window() / 100);
        now += ms(400);
    }
    // Figure 1 one round trip ahead: 0.4 (t + 0.4 - 4.217)^3 + 100, in tenths of a segment:
    // t = 0 gives 77.7, t = 3.6 gives 99.996, t = 4 gives 100.002.
    assert_eq!(windows[0], 777);
    assert_eq!((windows[9], windows[10]), (999, 1000));
    assert_eq!(windows[14], 1022, "0.4 (6.0 - 4.217)^3 + 100");
}

#[test]
fn fast_convergence_gives_way_to_newcomers() {
    // Two losses, the second below the first maximum: W_max = 70 * 0.85.
    let mut controller = cubic();
    controller.on_ack(&acked(at(0), 90 * S, ms(50)));
    controller.on_loss(&loss(100));
    controller.on_loss(&loss(70));
    assert_eq!(controller.window(), 49 * S);
    let mut now = at(0);
    for _ in 0..9 {
        let bytes = controller.window();
        controller.on_ack(&acked(now, bytes, ms(400)));
        now += ms(400);
    }
    // K = cbrt((59.5 - 49)/0.4) = 2.972 s; at 3.2 + 0.4: 0.4 * 0.628^3 + 59.5 = 59.599.
    assert_eq!(controller.window() / 10, 5959);
}

#[test]
fn cubic_is_not_slower_than_reno_on_short_paths() {
    // RTT 1 ms: in 30 ms W_cubic moves by next to nothing, NewReno's share by 0.529 per round.
    let mut controller = cubic();
    controller.on_ack(&acked(at(0), 90 * S, ms(1)));
    controller.on_loss(&loss(100));
    for round in 0..11 {
        let bytes = controller.window();
        controller.on_ack(&acked(at(round), bytes, ms(1)));
    }
    // 70 + 11 * 9/17 = 75.8; W_cubic is still at 70.2.
    assert_eq!(controller.window() / 100, 758);
}

/// On a short path the cubic's own course is too slow to matter for seconds.
#[test]
fn above_its_last_maximum_linux_follows_reno_more_slowly_than_the_rfc() {
    let after_twenty_rounds = |mut controller: Box<dyn Controller>| {
        controller.on_loss(&loss(10));
        for round in 1..=20 {
            for _ in 0..controller.window() / S {
                controller.on_ack(&acked(at(10 * round), S, ms(10)));
            }
        }
        controller.window() / S
    };
    // From 7 segments by 9/17 per round up to the 10 before, then by a whole one; or by 8/15
    // throughout and a round or 28 ms late.
    assert_eq!(after_twenty_rounds(Box::new(cubic())), 23);
    assert_eq!(after_twenty_rounds(Box::new(cubic_linux())), 16);
}

#[test]
fn linux_counts_whole_segments() {
    let mut controller = cubic_linux();
    controller.on_loss(&loss(10));
    // 10 * 717 / 1024 = 7.002; 7 * 717 / 1024 = 4.9.
    assert_eq!(controller.window(), 7 * S);
    controller.on_loss(&loss(7));
    assert_eq!((controller.window(), controller.ssthresh()), (4 * S, 4 * S));
}

#[test]
fn regression_linux_has_its_old_window_again_before_its_time() {
    let mut controller = cubic_linux();
    controller.on_ack(&acked(at(0), 90 * S, ms(100)));
    controller.on_loss(&loss(100));
    assert_eq!(controller.window(), 70 * S);
    let mut course = Course::new(controller);
    // K is 4.2 s; in the last 1.36 s before it the curve is less than a segment below 100.
    let windows: Vec<u64> = (0..39).map(|_| course.round(ms(100))).collect();
    assert_eq!(windows.last(), Some(&100), "{windows:?}");
}

#[test]
fn a_mistake_gives_linux_the_larger_of_both_windows() {
    let mut controller = cubic_linux();
    controller.on_loss(&loss(10));
    controller.on_spurious(&Spurious { now: at(1), window_bytes: 0 });
    assert_eq!((controller.window(), controller.ssthresh()), (10 * S, u64::MAX));
    controller.on_loss(&loss(10));
    controller.on_spurious(&Spurious { now: at(2), window_bytes: 12 * S });
    assert_eq!(controller.window(), 12 * S, "what recovery had come to");
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count() {
    let mut windows = Vec::new();
    for idle in [false, true] {
        let mut controller = cubic();
        controller.on_ack(&acked(at(0), 90 * S, ms(50)));
        controller.on_loss(&loss(100));
        let pause = if idle { 100 } else { 0 };
        controller.on_ack(&acked(at(0), 70 * S, ms(400)));
        for step in 1..=pause {
            let sample = acked(at(step * 400), S, ms(400));
            controller.on_ack(&AckSample { app_limited: true, ..sample });
        }
        controller.on_ack(&acked(at(pause * 400 + 400), 70 * S, ms(400)));
        windows.push(controller.window());
    }
    assert_eq!(windows[0], windows[1]);
}

#[test]
fn a_timeout_leaves_one_segment_and_answers_an_episode_once() {
    for mut controller in controllers() {
        controller.on_ack(&acked(at(0), 90 * S, ms(50)));
        controller.on_loss(&loss(100));
        let ssthresh = controller.ssthresh();
        controller.on_rto(&rto(60, Episode::Continued));
        assert_eq!((controller.window(), controller.ssthresh()), (S, ssthresh));
        controller.on_rto(&Rto { in_flight_bytes: 5 * S, ..rto(1, Episode::New) });
        assert_eq!((controller.window(), controller.ssthresh()), (6 * S, 2 * S));
    }
}

#[test]
fn after_a_timeout_cubic_starts_on_the_plateau() {
    let mut controller = cubic();
    controller.on_ack(&acked(at(0), 90 * S, ms(50)));
    controller.on_rto(&rto(100, Episode::New));
    controller.on_ack(&acked(at(0), 69 * S, ms(400)));
    assert_eq!(controller.window(), 70 * S, "ssthresh");
    for step in 0..6 {
        let bytes = controller.window();
        controller.on_ack(&acked(at(step * 400), bytes, ms(400)));
    }
    // K = 0 and W_max = 70: 0.4 * 2.4^3 + 70; towards the former maximum it would be 97.6.
    assert_eq!(controller.window() / 100, 755);
}

#[test]
fn regression_credit_of_a_large_window_does_not_outlive_a_timeout() {
    let mut controller = new_reno();
    controller.on_ack(&acked(at(0), 90 * S, ms(50)));
    controller.on_loss(&loss(100));
    controller.on_ack(&acked(at(0), 49 * S, ms(50)));
    controller.on_loss(&loss(4));
    controller.on_ack(&acked(at(0), S, ms(50)));
    controller.on_rto(&rto(2, Episode::Continued));
    controller.on_ack(&acked(at(0), 2 * S, ms(50)));
    assert_eq!(controller.window(), 2 * S, "ssthresh, and one segment short of growth");
}

#[test]
fn a_mistake_is_taken_back() {
    for mut controller in controllers() {
        controller.on_ack(&acked(at(0), 90 * S, ms(50)));
        controller.on_loss(&loss(100));
        controller.on_rto(&rto(60, Episode::Continued));
        controller.on_spurious(&Spurious { now: at(0), window_bytes: 0 });
        assert_eq!((controller.window(), controller.ssthresh()), (100 * S, u64::MAX));
        controller.on_loss(&loss(50));
        let window = controller.window();
        controller.on_spurious(&Spurious { now: at(0), window_bytes: 0 });
        controller.on_spurious(&Spurious { now: at(0), window_bytes: 0 });
        assert!(controller.window() > window, "the second episode was taken back");
    }
}

/// A ramp with packets in flight: each acknowledgement lets one out.
struct Bench {
    ramp: Ramp,
    now: u64,
    flight: VecDeque<PacketState>,
}

impl Bench {
    fn new(form: SlowStart) -> Self {
        Self { ramp: Ramp::new(form, S), now: 0, flight: VecDeque::new() }
    }

    /// Acknowledges one packet per entry of `rtts`, `gap` ms apart, at a window of `window`
    /// segments.
    fn acknowledge(&mut self, gap: u64, rtts: &[u64], window: u64) -> Vec<Ramped> {
        while self.flight.len() < rtts.len() {
            self.flight.push_back(self.ramp.on_sent(&sent(S)));
        }
        let mut steps = Vec::new();
        for rtt in rtts {
            self.now += gap;
            let newest = self.flight.pop_front().unwrap();
            let sample = AckSample { newest, ..acked(at(self.now), S, ms(*rtt)) };
            steps.push(self.ramp.on_ack(&sample, window * S, u64::MAX));
            self.flight.push_back(self.ramp.on_sent(&sent(S)));
        }
        steps
    }
}

fn is_full(step: &Ramped) -> bool {
    *step == Ramped::Full
}

#[test]
fn hystart_ends_slow_start_when_delay_rises_by_an_eighth() {
    let mut bench = Bench::new(SlowStart::HyStart);
    let quiet = bench.acknowledge(5, &[80; 16], 16);
    assert!(!quiet.iter().any(is_full));
    let limit = bench.acknowledge(5, &[90; 16], 32);
    assert!(!limit.iter().any(is_full), "80 + 80/8 is not above the limit");
    let risen = bench.acknowledge(5, &[91; 16], 64);
    assert_eq!(risen.iter().position(is_full), Some(8), "after eight samples");
}

#[test]
fn hystart_ends_slow_start_when_a_train_spans_half_the_round_trip() {
    // The train begins with its first packet; 40.5 ms are exceeded with the 22nd, and 42, to which
    // the millisecond for aggregates brings 41.5, with the 23rd.
    for (gap, rtt, ends) in [(2, 80, Some(21)), (2, 83, Some(22)), (3, 80, None)] {
        let mut bench = Bench::new(SlowStart::HyStart);
        bench.acknowledge(50, &[rtt; 16], 16);
        let train = bench.acknowledge(gap, &[rtt; 30], 30);
        assert_eq!(train.iter().position(is_full), ends, "gap {gap} ms, {rtt} ms");
    }
}

#[test]
fn regression_a_packet_that_overtakes_others_ends_no_round_of_hystart() {
    for is_told in [true, false] {
        let mut bench = Bench::new(SlowStart::HyStart);
        bench.acknowledge(50, &[80; 16], 16);
        bench.flight.resize_with(30, || bench.ramp.on_sent(&sent(S)));
        let step = |k: u64| {
            bench.now += 2;
            let in_order = bench.flight.pop_front();
            let next = bench.ramp.on_sent(&sent(S));
            bench.flight.push_back(next);
            // The sixteenth acknowledgement is of what was sent in this round.
            let newest = if k == 15 { next } else { in_order.unwrap() };
            let in_order = in_order.filter(|_| is_told);
            let sample = AckSample { newest, in_order, ..acked(at(bench.now), S, ms(80)) };
            is_full(&bench.ramp.on_ack(&sample, 30 * S, u64::MAX))
        };
        let ends = (0..30).map(step).position(|is_full| is_full);
        // Else the train of 40 ms begins anew.
        assert_eq!(ends, is_told.then_some(21));
    }
}

#[test]
fn hystart_judges_nothing_below_sixteen_segments() {
    let mut bench = Bench::new(SlowStart::HyStart);
    bench.acknowledge(5, &[80; 15], 15);
    assert!(!bench.acknowledge(5, &[200; 15], 15).iter().any(is_full));
}

#[test]
fn regression_rounds_of_hystart_are_counted_below_sixteen_segments_too() {
    let mut bench = Bench::new(SlowStart::HyStart);
    bench.flight.resize_with(16, || bench.ramp.on_sent(&sent(S)));
    // The window reaches sixteen in the middle of a burst.
    bench.acknowledge(5, &[80; 8], 8);
    bench.acknowledge(5, &[80; 8], 16);
    // The next round begins with the next burst nevertheless, and so has its quick first packet.
    let burst: Vec<u64> = [80].into_iter().chain([120; 19]).collect();
    bench.flight.resize_with(20, || bench.ramp.on_sent(&sent(S)));
    assert!(!bench.acknowledge(5, &burst, 32).iter().any(is_full));
}

#[test]
fn hystart_plus_plus_slows_growth_and_ends_after_five_rounds() {
    let mut bench = Bench::new(SlowStart::HyStartPlusPlus);
    bench.acknowledge(5, &[80; 12], 20);
    let risen = bench.acknowledge(5, &[90; 12], 20);
    let quarter = Ramped::Grown { window_bytes: 20 * S + S / 4, left_bytes: 0 };
    assert_eq!(risen.iter().position(|step| *step == quarter), Some(7), "with the eighth sample");
    for _ in 0..3 {
        assert!(!bench.acknowledge(5, &[90; 12], 20).iter().any(is_full));
        assert!(bench.ramp.is_conservative());
    }
    let fifth = bench.acknowledge(5, &[90; 12], 20);
    assert!(fifth.iter().any(is_full));
}

#[test]
fn hystart_plus_plus_resumes_when_it_was_jitter() {
    let mut bench = Bench::new(SlowStart::HyStartPlusPlus);
    bench.acknowledge(5, &[80; 12], 20);
    bench.acknowledge(5, &[90; 12], 20);
    assert!(bench.ramp.is_conservative());
    bench.acknowledge(5, &[80; 12], 20);
    assert!(!bench.ramp.is_conservative());
}

#[test]
fn hystart_plus_plus_limits_a_stretched_acknowledgement() {
    let mut ramp = Ramp::new(SlowStart::HyStartPlusPlus, S);
    let step = ramp.on_ack(&acked(at(0), 100 * S, ms(50)), 100 * S, u64::MAX);
    assert_eq!(step, Ramped::Grown { window_bytes: 108 * S, left_bytes: 0 }, "L = 8");
}

/// Acknowledgements of a packet each, which let out what the window allows.
fn acknowledge(
    controller: &mut dyn Controller,
    flight: &mut VecDeque<PacketState>,
    count: usize,
    rtt: Duration,
) {
    for _ in 0..count {
        while (flight.len() as u64) < controller.window() / S {
            flight.push_back(controller.on_sent(&sent(S)));
        }
        let newest = flight.pop_front().unwrap();
        controller.on_ack(&AckSample { newest, ..acked(at(0), S, rtt) });
    }
}

#[test]
fn hystart_plus_plus_serves_every_controller_with_a_slow_start() {
    for algorithm in Algorithm::ALL {
        let slow_start = Some(SlowStart::HyStartPlusPlus);
        let mut config = ControllerConfig { slow_start, ..algorithm.into() };
        config.whitehaul.repairs = [Repair::Ssthresh].into_iter().collect();
        if algorithm.default_slow_start().is_none() {
            continue;
        }
        let mut controller = config.build(START);
        let mut flight = VecDeque::new();
        let mut windows = Vec::new();
        for (count, rtt) in [(70, ms(80)), (100, ms(100)), (40, ms(100)), (3000, ms(100))] {
            acknowledge(&mut *controller, &mut flight, count, rtt);
            windows.push((controller.window() / S, controller.in_slow_start()));
        }
        assert_eq!(windows[0], (80, true), "{algorithm}");
        let growth = windows[2].0 - windows[1].0;
        assert!((9..=11).contains(&growth) && windows[2].1, "{algorithm}: a quarter of 40");
        assert!(!windows[3].1, "{algorithm}: five rounds are over");
    }
}

#[test]
fn the_slow_start_is_the_controllers_own_unless_told_otherwise() {
    for algorithm in Algorithm::ALL {
        let mut own = ControllerConfig::from(algorithm).build(START);
        let told =
            ControllerConfig { slow_start: algorithm.default_slow_start(), ..algorithm.into() };
        let mut told = told.build(START);
        for controller in [&mut own, &mut told] {
            acknowledge(&mut **controller, &mut VecDeque::new(), 70, ms(80));
            acknowledge(&mut **controller, &mut VecDeque::new(), 500, ms(100));
        }
        assert_eq!((own.window(), own.ssthresh()), (told.window(), told.ssthresh()), "{algorithm}");
    }
    assert_eq!(Algorithm::Edinburgh.default_slow_start(), Some(SlowStart::HyStartPlusPlus));
}

#[test]
fn a_loss_ends_the_watch_on_delay() {
    let mut bench = Bench::new(SlowStart::HyStart);
    bench.acknowledge(5, &[80; 16], 16);
    bench.ramp.on_loss();
    assert!(!bench.acknowledge(5, &[200; 16], 16).iter().any(is_full));
}

#[test]
fn a_loss_that_was_none_leaves_the_watch_on_delay() {
    let mut bench = Bench::new(SlowStart::HyStart);
    bench.acknowledge(5, &[80; 16], 16);
    bench.ramp.on_loss();
    bench.ramp.on_spurious();
    assert!(bench.acknowledge(5, &[200; 32], 16).iter().any(is_full));
}

#[test]
fn linux_watches_every_slow_start_after_a_timeout() {
    let mut bench = Bench::new(SlowStart::HyStart);
    bench.acknowledge(5, &[80; 16], 16);
    bench.ramp.on_loss();
    bench.ramp.restart();
    bench.acknowledge(5, &[80; 16], 16);
    assert!(bench.acknowledge(5, &[200; 32], 16).iter().any(is_full));
}

#[test]
fn fixed_stays() {
    let mut controller = Fixed::new(5000);
    controller.on_ack(&acked(at(0), 10 * S, ms(50)));
    controller.on_loss(&loss(5));
    controller.on_rto(&rto(5, Episode::New));
    controller.on_spurious(&Spurious { now: at(0), window_bytes: 0 });
    assert_eq!(controller.window(), 5000);
    assert!(!controller.in_slow_start());
}

#[test]
fn a_penalty_halves_the_window_and_after_slow_start_the_threshold() {
    for mut controller in controllers() {
        controller.on_ack(&acked(at(0), 10 * S, ms(50)));
        controller.on_penalty(at(1));
        assert_eq!((controller.window(), controller.ssthresh()), (10 * S, u64::MAX));
        controller.on_loss(&loss(10));
        let before = controller.window();
        assert_eq!(controller.ssthresh(), before);
        controller.on_penalty(at(2));
        // Linux counts whole segments.
        let half = before / 2 - S / 2..=before / 2;
        assert!(half.contains(&controller.window()), "{controller:?}");
        assert!(half.contains(&controller.ssthresh()), "{controller:?}");
        (0..9).for_each(|_| controller.on_penalty(at(3)));
        assert_eq!((controller.window(), controller.ssthresh()), (S, 2 * S), "{controller:?}");
    }
}
