use super::super::BulkLoad;
use super::super::delivery::one_way_delay;
use super::super::testing::{
    INTERACTIVE, PACKET, PathBuilder, bulk, check_table, path, plain_paths, words,
};
use super::*;
use crate::units::Rate;

mod air;
mod spread;

const PLENTY: u64 = 1 << 20;
const HALF_SECOND: Duration = Duration::from_millis(500);

/// A scheduler and its clock.
struct Case {
    scheduler: EarliestDelivery,
    now: Instant,
}

impl Case {
    /// A queue has lasted for long.
    fn new() -> Self {
        let mut case = Self::fresh();
        case.scheduler.overflow.lasts_until = Instant::FAR_FUTURE;
        case
    }

    fn fresh() -> Self {
        // The tables are worked with a quarter.
        let scheduler = EarliestDelivery::new(EarliestDeliveryConfig { delay_cost: 0.25 });
        Self { scheduler, now: Instant::ZERO }
    }

    /// Knows the capacities of these paths: they were loaded long enough.
    fn knowing(paths: &[PathView]) -> Self {
        let mut case = Self::new();
        case.load(paths);
        case
    }

    /// Loads the paths for eight long rounds.
    fn load(&mut self, paths: &[PathView]) {
        let loaded: Vec<_> = paths.iter().map(|path| at_quarter(*path)).collect();
        for _ in 0..8 {
            self.after(HALF_SECOND, &loaded, PACKET);
        }
    }

    /// The decision after some time; `ready_at` counts from then on.
    fn after(&mut self, time: Duration, paths: &[PathView], packet: PacketInfo) -> String {
        self.now += time;
        let since = |at: Instant| at.since(Instant::ZERO);
        let paths: Vec<_> = paths
            .iter()
            .map(|path| PathView { ready_at: self.now + since(path.ready_at), ..*path })
            .collect();
        match self.scheduler.pick(&View { now: self.now, paths: &paths }, &packet) {
            Decision::Wait { until } => {
                words(Decision::Wait { until: Instant::ZERO + until.since(self.now) })
            }
            other => words(other),
        }
    }

    fn decide(&mut self, paths: &[PathView], packet: PacketInfo) -> String {
        self.after(Duration::from_millis(10), paths, packet)
    }

    /// The decision once the paths have been like this for so long that a queue stands.
    fn after_standing(&mut self, paths: &[PathView], packet: PacketInfo) -> String {
        (0..20).for_each(|_| drop(self.decide(paths, packet)));
        self.decide(paths, packet)
    }
}

/// A quarter of the window in flight: loaded, and with room.
fn at_quarter(path: PathView) -> PathView {
    PathView { in_flight_bytes: path.window_bytes.unwrap_or(0) / 4, ..path }
}

/// A path whose window holds two round trips.
pub(super) fn link(id: u8, mbit: u64, rtt_ms: u64) -> PathBuilder {
    let window = 2 * Rate::from_mbit(mbit).bytes_in(Duration::from_millis(rtt_ms));
    path(id).rtt_ms(rtt_ms).closed(mbit, window.max(15_000))
}

/// 50 Mbit/s at 20 ms. Unqueued are 25 ms, 156250 bytes; what is beyond takes 160 ns each. A packet
/// takes 240 us itself.
#[test]
fn delivery_is_half_the_base_the_queue_and_the_packet() {
    let table = "
        rtt  latest  srtt  in_flight | one way, delivery in us
         20      20    20          0 | 10000 10240
         20      20    20     156250 | 10000 10240
         20      20    20     256250 | 26000 26240
         20      90    50     100000 | 40000 40240
         20      30    50     100000 | 20000 20240
         20      90    50     256250 | 40000 40240
         20      90    50       6000 | 10000 10240";
    check_table(table, |row| {
        let ms = |index: usize| row[index] as u64;
        let path = link(0, 50, ms(0)).srtt_ms(ms(2)).latest_rtt_ms(ms(1));
        let path = path.in_flight(row[3] as u64).build();
        let times = [one_way_delay(&path), delivery_delay(&path, 1500)];
        times.map(|time| time.as_micros().to_string()).join(" ")
    });
}

/// The quick path waits for its pacer for 240 us, and 1 MB waits. The cost of the second path's
/// delay d beside 2·q is a quarter of 1 − (2q + 20)/(q + d), for one of several flows its part of
/// that; and windows have to grow, the smaller each the sooner.
#[test]
fn a_path_is_used_if_its_rate_outweighs_its_delay() {
    let table = "
        mbit  rtt  mbit  rtt  flows | path
          50   20    10   60      1 | 1
          64   13    60   45      1 | 1
         100   10     5   50      1 | 1
         100   10     5  300      1 | wait 240
         100   10   100  600      1 | wait 240
         100   10   100  600      4 | wait 240
         100   10   100  600     16 | 1
         100   10     5  300     16 | wait 240
         100   10     5  600     16 | wait 240
           5   10   100  600      1 | 1
           5   10   100  600     16 | 1
          16   30     2  100      1 | 1
          50   30    10  300      1 | wait 240
          50   30    10  300     16 | 1
          50   30    50  300      1 | wait 240
          50   30    50  300     16 | 1
          50   20    50  120      1 | 1";
    check_table(table, |row| {
        let number = |index: usize| row[index] as u64;
        let paths = [
            link(0, number(0), number(1)).ready_in_us(240).build(),
            link(1, number(2), number(3)).in_flight(7500).build(),
        ];
        let load = BulkLoad { flows: number(4) as u16, ..BulkLoad::default() };
        Case::knowing(&paths).decide(&paths, PacketInfo { load, ..bulk(PLENTY) })
    });
}

#[test]
fn what_is_made_of_a_path_is_told() {
    let paths = [link(0, 100, 10).build(), link(1, 5, 300).in_flight(7500).build()];
    let parts = |case: &Case| {
        let view = View { now: case.now, paths: &paths };
        paths.map(|path| case.scheduler.part(&view, path.id))
    };
    assert_eq!(parts(&Case::fresh()), [None; 2], "nothing was sent yet");
    let mut case = Case::fresh();
    case.decide(&paths, bulk(PLENTY));
    assert_eq!(parts(&case), [Some(Part::Tried); 2]);
    let mut case = Case::knowing(&paths);
    case.decide(&paths, bulk(PLENTY));
    let words = parts(&case).map(|part| part.map(|part| part.to_string()).unwrap_or_default());
    let far = "carries no bulk traffic, since 5.0 Mbit/s more do not make up for 150 ms one way";
    assert_eq!(words, ["carries bulk traffic", far]);
    assert_eq!(part_of_a_small_one(100, 2), Some(Part::Carries));
    let little = part_of_a_small_one(100, 1).map(|part| part.to_string()).unwrap_or_default();
    let words =
        "carries no bulk traffic, since 1.0 Mbit/s more are next to nothing beside the others";
    assert_eq!(little, words);
}

/// What is made of the quicker of two paths, which carries little.
fn part_of_a_small_one(large_mbit: u64, small_mbit: u64) -> Option<Part> {
    let paths = [link(0, large_mbit, 50).build(), link(1, small_mbit, 26).in_flight(7500).build()];
    let mut case = Case::knowing(&paths);
    case.decide(&paths, bulk(PLENTY));
    case.scheduler.part(&View { now: case.now, paths: &paths }, paths[1].id)
}

/// A fiftieth of the sum, for a member four fifths of that: 290 Mbit/s at 47 ms beside 2.8 at 26
/// behind a policer, whose losses held up what both carried: 139 Mbit/s.
#[test]
fn regression_a_quick_path_that_carries_next_to_nothing_carries_no_bulk_traffic() {
    let paths = |mbit| [link(0, 290, 47).in_flight(7500).build(), link(1, mbit, 26).build()];
    let mut case = Case::knowing(&paths(9));
    let decisions = [9, 5, 4, 5, 6].map(|mbit| case.decide(&paths(mbit), bulk(PLENTY)));
    assert_eq!(decisions, ["1", "1", "0+1", "0+1", "1"]);
    let unresponsive = BulkLoad { is_unresponsive: true, ..BulkLoad::default() };
    let packet = PacketInfo { load: unresponsive, ..bulk(PLENTY) };
    assert_eq!(case.decide(&paths(2), packet), "1", "nobody waits for what it loses");
    let starting = |path| PathView { is_starting: true, ..path };
    let young = [paths(2)[0], starting(paths(2)[1])];
    assert_eq!(case.decide(&young, bulk(PLENTY)), "1", "nobody knows what it carries");
}

/// 220 Mbit/s into 100: no window has to grow.
#[test]
fn who_heeds_no_drops_uses_a_far_path() {
    let paths = [shut(link(0, 100, 10)), link(1, 100, 600).in_flight(7500).build()];
    let mut case = Case::knowing(&paths);
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "wait 5000");
    let load = BulkLoad { is_unresponsive: true, ..BulkLoad::default() };
    assert_eq!(case.decide(&paths, PacketInfo { load, ..bulk(PLENTY) }), "1");
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "wait 5000");
}

/// 300 Mbit/s at 5 ms and at 120 ms: by the cube the window takes 18 s, without a loss 1.6.
#[test]
fn a_flow_without_a_loss_yet_grows_sooner() {
    let paths = [shut(link(0, 300, 5)), link(1, 300, 120).in_flight(7500).build()];
    let mut case = Case::knowing(&paths);
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "wait 5000");
    let load = BulkLoad { is_fresh: true, ..BulkLoad::default() };
    let fresh = PacketInfo { load, ..bulk(PLENTY) };
    assert_eq!(case.decide(&paths, fresh), "1");
}

/// The pacer lets nothing go for five milliseconds.
fn shut(path: PathBuilder) -> PathView {
    path.ready_in_us(5000).build()
}

/// 50, 50, 50 and 18 at up to 100 ms: the last adds a tenth, its delay costs a twentieth, and a few
/// hundredths are lost until windows have grown.
#[test]
fn a_small_share_of_many_paths_is_used_too() {
    let quick = |id| shut(link(id, 50, 33));
    let paths = [quick(0), quick(1), quick(2), link(3, 18, 100).in_flight(7500).build()];
    assert_eq!(Case::knowing(&paths).decide(&paths, bulk(PLENTY)), "3");
}

/// 500 Mbit/s at 30 ms and x at 80: the cost is 2.25 %. 500 < 0.9775 · (500 + x) holds above 11.5;
/// for a member four fifths of the cost count, and 500 > 0.982 · (500 + x) holds below 9.2.
#[test]
fn a_path_at_the_border_neither_comes_nor_goes() {
    let paths = |mbit| [shut(link(0, 500, 30)), link(1, mbit, 80).in_flight(7500).build()];
    let mut case = Case::knowing(&paths(11));
    let decisions = [11, 12, 10, 9, 11].map(|mbit| case.decide(&paths(mbit), bulk(PLENTY)));
    assert_eq!(decisions, ["wait 5000", "1", "1", "wait 5000", "wait 5000"]);
}

#[test]
fn a_packet_alone_makes_no_detour() {
    let paths = [link(0, 50, 20).ready_in_us(240).build(), link(1, 10, 60).build()];
    let mut case = Case::knowing(&paths);
    // A millisecond of the quick path: 6250 bytes.
    assert_eq!(case.decide(&paths, bulk(4750)), "wait 240");
    assert_eq!(case.decide(&paths, bulk(4751)), "1");
    // Its window is shut, and opens in five milliseconds at the soonest.
    let paths = [link(0, 50, 20).full().build(), link(1, 10, 60).build()];
    assert_eq!(case.decide(&paths, bulk(0)), "1");
}

/// A millisecond of the quick path is 6250 bytes; more is a queue.
#[test]
fn a_burst_makes_no_detour_and_a_lasting_queue_does() {
    let paths = [link(0, 50, 20).ready_in_us(240).build(), link(1, 10, 60).build()];
    let mut case = Case::fresh();
    case.load(&[link(0, 50, 20).build(), paths[1]]);
    let mut after = |ms, queued| case.after(Duration::from_millis(ms), &paths, bulk(queued));
    let wait = "wait 240";
    assert_eq!([after(0, 15_000), after(19, 15_000), after(1, 15_000)], [wait, wait, "1"]);
    // A gap ends it only after 200 ms.
    assert_eq!([after(100, 0), after(99, 15_000), after(199, 15_000)], [wait, "1", "1"]);
    assert_eq!([after(200, 15_000), after(10, 0), after(10, 15_000)], [wait, wait, wait]);
    assert_eq!([after(19, 15_000), after(1, 15_000)], [wait, "1"]);
}

#[test]
fn a_burst_costs_no_money() {
    let paths = [link(0, 16, 30).ready_in_us(750).build(), link(1, 50, 30).price(1).build()];
    let mut case = Case::fresh();
    let mut after = |ms| case.after(Duration::from_millis(ms), &paths, bulk(60_000));
    assert_eq!([after(0), after(19), after(1)], ["wait 750", "wait 750", "1"]);
}

#[test]
fn the_earliest_delivery_is_taken_first() {
    let paths = [link(0, 10, 60).build(), link(1, 50, 20).build()];
    let mut case = Case::knowing(&paths);
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "1");
    // Beyond 25 ms of its rate, 30 ms of queue: as late as the other.
    let queued = link(1, 50, 20).closed(50, 1 << 20).in_flight(350_000).build();
    assert_eq!(case.decide(&[link(0, 10, 60).build(), queued], bulk(PLENTY)), "0");
}

#[test]
fn an_unknown_capacity_is_tried_if_a_usual_one_would_pay() {
    let quick = link(0, 100, 10).build();
    let full = link(0, 100, 10).full().build();
    // So near that nobody notices.
    let near = link(1, 1, 12).build();
    assert_eq!(Case::new().decide(&[full, near], bulk(PLENTY)), "1");
    // Further away only once the quick path is known: a short transfer is over before.
    let further = link(1, 1, 50).build();
    assert_eq!(Case::new().decide(&[full, further], bulk(PLENTY)), "wait 5000");
    let mut case = Case::knowing(&[quick]);
    assert_eq!(case.decide(&[full, further], bulk(PLENTY)), "1");
    // A long way is not tried by one flow: a few copies go there, and nobody waits for them.
    let far = |bytes| link(1, 1, 300).in_flight(bytes).build();
    let mut case = Case::knowing(&[quick]);
    assert_eq!(case.decide(&[full, far(0)], bulk(PLENTY)), "wait 5000");
    assert_eq!(case.decide(&[quick, far(4500)], bulk(PLENTY)), "0+1");
    assert_eq!(case.decide(&[quick, far(4501)], bulk(PLENTY)), "0");
}

/// 20 Mbit/s on its way for 12 ms more than empty, beside a path of 45 ms that nobody knows.
#[test]
fn regression_a_known_path_is_not_left_because_an_unknown_one_looks_quicker_for_a_moment() {
    let known = link(0, 20, 25).build();
    let queued = PathView { in_flight_bytes: 110_000, window_bytes: Some(200_000), ..known };
    let unknown = shut(link(1, 20, 45));
    assert!(one_way_delay(&queued) > base_rtt(&unknown) / 2);
    assert_eq!(Case::knowing(&[known]).decide(&[queued, unknown], bulk(PLENTY)), "0");
}

/// What a controller in its first round trips has in flight is much for what it knows to arrive.
#[test]
fn regression_packets_in_flight_over_an_unknown_path_are_no_queue() {
    let starting = link(0, 1, 25).in_flight(15_000).build();
    let starting = PathView { window_bytes: Some(30_000), ..starting };
    let unknown = shut(link(1, 1, 45));
    assert_eq!(Case::new().decide(&[starting, unknown], bulk(PLENTY)), "0");
}

/// 9 Mbit/s beside 500 are not worth 80 ms, half as much again would be.
#[test]
fn a_path_left_aside_is_tried_again_after_half_a_minute() {
    let paths = [shut(link(0, 500, 30)), link(1, 9, 80).in_flight(7500).build()];
    let mut case = Case::knowing(&paths);
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "wait 5000");
    assert_eq!(case.after(Duration::from_secs(30), &paths, bulk(PLENTY)), "1");
    case.load(&paths);
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "wait 5000", "it has not risen");
}

/// A burst of losses passes; whose window has grown for a far path would lose it.
#[test]
fn a_far_path_is_left_only_for_a_loss_that_lasts() {
    let full = shut(link(1, 50, 20));
    let lossy = link(0, 50, 120).in_flight(9000).loss_permille(100).build();
    let mut case = Case::knowing(&[link(0, 50, 120).in_flight(9000).build(), full]);
    assert_eq!(case.decide(&[lossy, full], bulk(PLENTY)), "0");
    assert_eq!(case.after(Duration::from_millis(999), &[lossy, full], bulk(PLENTY)), "0");
    assert_eq!(case.after(Duration::from_millis(1), &[lossy, full], bulk(PLENTY)), "wait 5000");
}

/// 30 Mbit/s at 30 ms fall: round trips of more than 30 + 50 ms make the path late.
fn late(rtt_ms: u64) -> PathView {
    link(0, 30, 30).srtt_ms(rtt_ms).latest_rtt_ms(rtt_ms).in_flight(100_000).build()
}

#[test]
fn a_late_path_is_left_and_taken_back_step_by_step() {
    let steady = link(1, 20, 30).build();
    let mut case = Case::knowing(&[link(0, 30, 30).build(), steady]);
    assert_eq!(case.after_standing(&[late(80), shut(link(1, 20, 30))], bulk(PLENTY)), "0");
    assert_eq!(case.after_standing(&[late(81), shut(link(1, 20, 30))], bulk(PLENTY)), "wait 5000");
    assert_eq!(case.decide(&[late(900), steady], bulk(PLENTY)), "1");
    // Drained: it gets copies, four packets at a time.
    let drained = |bytes| PathView { in_flight_bytes: bytes, ..late(900) };
    assert_eq!(case.decide(&[drained(4500), steady], bulk(PLENTY)), "0+1");
    assert_eq!(case.decide(&[drained(4501), steady], bulk(PLENTY)), "1");
    // A round trip without a queue: eight packets, sixteen a round trip later.
    let steady = shut(link(1, 20, 30));
    let back = |bytes| link(0, 30, 30).in_flight(bytes).build();
    assert_eq!(case.decide(&[back(10_500), steady], bulk(PLENTY)), "0");
    assert_eq!(case.decide(&[back(10_501), steady], bulk(PLENTY)), "wait 5000");
    let round_trip = Duration::from_millis(30);
    assert_eq!(case.after(round_trip, &[back(22_500), steady], bulk(PLENTY)), "0");
    assert_eq!(case.decide(&[back(22_501), steady], bulk(PLENTY)), "wait 5000");
    for _ in 0..5 {
        case.after(round_trip, &[back(0), steady], bulk(PLENTY));
    }
    assert_eq!(case.decide(&[back(223_500), steady], bulk(PLENTY)), "0");
}

#[test]
fn a_recovering_path_that_is_late_again_starts_over() {
    let steady = shut(link(1, 20, 30));
    let mut case = Case::knowing(&[link(0, 30, 30).build(), steady]);
    let round_trip = Duration::from_millis(30);
    let fine = link(0, 30, 30).in_flight(1500).build();
    case.after_standing(&[late(200), steady], bulk(PLENTY));
    for _ in 0..4 {
        case.after(round_trip, &[fine, steady], bulk(PLENTY));
    }
    case.after_standing(&[late(200), steady], bulk(PLENTY));
    let paths = [link(0, 30, 30).in_flight(10_501).build(), steady];
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "wait 5000");
}

/// A cell that sends in turns of 70 ms: each turn begins with round trips of 120 ms and ends with
/// one of 30.
#[test]
fn regression_a_delay_that_comes_and_goes_within_a_tenth_of_a_second_is_no_lateness() {
    let full = shut(link(1, 20, 30));
    let mut case = Case::knowing(&[link(0, 30, 30).build(), full]);
    for _ in 0..20 {
        for rtt_ms in [120, 120, 110, 90, 70, 50, 30] {
            assert_eq!(case.decide(&[late(rtt_ms), full], bulk(PLENTY)), "0", "{rtt_ms} ms");
        }
    }
}

/// A delay that has come back after a quarter of a second each time is waited for as long.
#[test]
fn regression_a_path_whose_delay_comes_back_by_itself_is_not_left() {
    let full = shut(link(1, 20, 30));
    let mut case = Case::knowing(&[link(0, 30, 30).build(), full]);
    for turn in 0..10 {
        for step in 0..25 {
            let rtt_ms = if step == 0 { 30 } else { 60 };
            assert_eq!(case.decide(&[late(rtt_ms), full], bulk(PLENTY)), "0", "{turn}: {step}");
        }
    }
    for step in 0..24 {
        assert_eq!(case.decide(&[late(120), full], bulk(PLENTY)), "0", "{step}");
    }
    for _ in 0..30 {
        case.decide(&[late(120), full], bulk(PLENTY));
    }
    assert_eq!(case.decide(&[late(120), full], bulk(PLENTY)), "wait 5000", "it stays late");
}

/// A path that is seldom looked at is not one whose delay takes long to come back.
#[test]
fn regression_time_between_two_short_round_trips_is_no_return() {
    let full = shut(link(1, 20, 30));
    let mut case = Case::knowing(&[link(0, 30, 30).build(), full]);
    for _ in 0..20 {
        let seldom = Duration::from_millis(290);
        assert_eq!(case.after(seldom, &[late(30), full], bulk(PLENTY)), "0");
    }
    assert_eq!(case.after_standing(&[late(120), full], bulk(PLENTY)), "wait 5000");
}

#[test]
fn a_queue_on_all_paths_is_no_reason_to_leave_one() {
    let other = link(1, 20, 30)
        .srtt_ms(150)
        .latest_rtt_ms(150)
        .in_flight(140_000)
        .ready_in_us(5000)
        .build();
    let mut case = Case::knowing(&[link(0, 30, 30).build(), link(1, 20, 30).build()]);
    assert_eq!(case.after_standing(&[late(200), other], bulk(PLENTY)), "0");
    assert_eq!(Case::new().after_standing(&[late(900)], bulk(PLENTY)), "0", "it is the only one");
}

#[test]
fn when_only_bad_paths_are_left_they_are_used() {
    let steady = link(1, 20, 30).build();
    let mut case = Case::knowing(&[link(0, 30, 30).build(), steady]);
    assert_eq!(case.after_standing(&[late(900), steady], bulk(PLENTY)), "1");
    assert_eq!(case.decide(&[late(900)], bulk(PLENTY)), "0");
}

#[test]
fn a_lossy_path_is_left_beside_a_sound_one() {
    let full = shut(link(1, 50, 30));
    let lossy = |permille| link(0, 50, 30).in_flight(9000).loss_permille(permille).build();
    let mut case = Case::knowing(&[lossy(0), full]);
    assert_eq!(case.decide(&[lossy(99), full], bulk(PLENTY)), "0");
    assert_eq!(case.decide(&[lossy(100), full], bulk(PLENTY)), "wait 5000");
    assert_eq!(case.decide(&[lossy(60), full], bulk(PLENTY)), "wait 5000");
    assert_eq!(case.decide(&[lossy(49), full], bulk(PLENTY)), "0");
    // Both are alike.
    let other = shut(link(1, 50, 30).loss_permille(200));
    assert_eq!(Case::new().decide(&[lossy(200), other], bulk(PLENTY)), "0");
}

/// Of 100 Mbit/s 80 arrive: 40 beside them are half of that.
#[test]
fn a_lossy_path_is_kept_while_it_delivers_more_than_twice_what_sound_ones_do() {
    let lossy = |permille| link(0, 100, 30).in_flight(9000).loss_permille(permille).build();
    let sound = |mbit| shut(link(1, mbit, 30));
    let mut case = Case::knowing(&[lossy(0), sound(39)]);
    assert_eq!(case.decide(&[lossy(200), sound(39)], bulk(PLENTY)), "0");
    let mut case = Case::knowing(&[lossy(0), sound(40)]);
    assert_eq!(case.decide(&[lossy(200), sound(40)], bulk(PLENTY)), "wait 5000");
    let both = [lossy(200), sound(20), shut(link(2, 20, 30))];
    let mut case = Case::knowing(&[lossy(0), both[1], both[2]]);
    assert_eq!(case.decide(&both, bulk(PLENTY)), "wait 5000", "both together");
}

#[test]
fn a_path_whose_window_stays_shut_is_not_waited_for() {
    let paths = [link(0, 100, 10).full().build(), link(1, 5, 300).in_flight(7500).build()];
    let mut case = Case::knowing(&[link(0, 100, 10).build(), link(1, 5, 300).build()]);
    // Its patience: 10 + 4·2.5 + 2·5 = 30 ms.
    let ten = Duration::from_millis(10);
    let mut decisions = [(); 5].map(|()| case.after(ten, &paths, bulk(PLENTY)));
    assert_eq!(decisions[..4], ["wait 5000", "wait 5000", "wait 5000", "wait 5000"]);
    assert_eq!(decisions[4], "1");
    decisions[0] = case.decide(&[link(0, 100, 10).build(), paths[1]], bulk(PLENTY));
    assert_eq!(decisions[0], "0");
}

/// 16 Mbit/s carry 8000 bytes in four milliseconds.
#[test]
fn a_dearer_class_gets_what_the_cheaper_one_cannot_carry() {
    let cheap = |us| link(0, 16, 30).ready_in_us(us).build();
    let dear = link(1, 50, 10).price(1).build();
    let mut case = Case::knowing(&[cheap(0), dear]);
    assert_eq!(case.decide(&[cheap(0), dear], bulk(PLENTY)), "0");
    assert_eq!(case.decide(&[cheap(750), dear], bulk(6500)), "wait 750");
    assert_eq!(case.decide(&[cheap(750), dear], bulk(6501)), "1");
    assert_eq!(case.decide(&[cheap(0), dear], INTERACTIVE), "0");
    let late = link(0, 16, 30).srtt_ms(500).latest_rtt_ms(500).in_flight(50_000).build();
    assert_eq!(case.after_standing(&[late, dear], bulk(0)), "1", "a bad path is not cheap");
    assert_eq!(case.decide(&[late, dear], INTERACTIVE), "1");
}

#[test]
fn interactive_packets_take_the_earliest_delivery() {
    let far = link(1, 50, 60).build();
    // 125 us and 30 ms; a wait counts like delay, up to five milliseconds.
    let near = |us| link(0, 10, 20).ready_in_us(us).build();
    let mut case = Case::knowing(&[near(0), far]);
    assert_eq!(case.decide(&[near(0), far], INTERACTIVE), "0");
    assert_eq!(case.decide(&[near(5000), far], INTERACTIVE), "wait 5000");
    assert_eq!(case.decide(&[near(5001), far], INTERACTIVE), "1");
    // 5 ms wait for 5 ms.
    let less_far = link(1, 50, 30).build();
    assert_eq!(case.decide(&[near(5000), less_far], INTERACTIVE), "1");
    assert_eq!(case.decide(&[near(2000), less_far], INTERACTIVE), "wait 2000");
}

#[test]
fn interactive_packets_wait_for_a_window_only_at_first() {
    let near = link(0, 50, 20).closed(50, 125_000).full().build();
    let paths = [near, link(1, 50, 60).build()];
    let mut case = Case::new();
    let five = Duration::from_millis(5);
    let decisions = [(); 4].map(|()| case.after(five, &paths, INTERACTIVE));
    assert_eq!(decisions, ["wait 5000", "wait 5000", "wait 5000", "1"]);
}

#[test]
fn interactive_packets_are_doubled_while_their_path_is_bad() {
    let other = link(1, 50, 60).build();
    let lossy = |permille| link(0, 50, 20).loss_permille(permille).build();
    let mut case = Case::new();
    assert_eq!(case.decide(&[lossy(9), other], INTERACTIVE), "0");
    assert_eq!(case.decide(&[lossy(10), other], INTERACTIVE), "0+1");
    assert_eq!(case.decide(&[lossy(10)], INTERACTIVE), "0");
    let no_room = link(1, 50, 60).full().build();
    assert_eq!(case.decide(&[lossy(10), no_room], INTERACTIVE), "0");
}

#[test]
fn without_room_anywhere_it_is_blocked_and_without_windows_it_never_waits() {
    let full = [link(0, 50, 20).full().build(), link(1, 50, 60).full().build()];
    for packet in [bulk(PLENTY), INTERACTIVE] {
        assert_eq!(Case::new().decide(&full, packet), "blocked");
        assert_eq!(Case::new().decide(&plain_paths(2), packet), "0");
    }
}
