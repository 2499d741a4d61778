mod random;

use super::*;

const MS: Duration = Duration::from_millis(1);
const PATH: PathId = PathId(0);
const OTHER: PathId = PathId(1);

/// A resequencer, the time, and what came out since it was last looked at.
struct Case {
    resequencer: Resequencer,
    now: Instant,
    out: Vec<u64>,
    packet_bytes: usize,
}

impl Case {
    fn new(config: ResequencerConfig) -> Self {
        let resequencer = Resequencer::new(config);
        Self { resequencer, now: Instant::ZERO, out: Vec::new(), packet_bytes: 8 }
    }

    fn paper() -> Self {
        Self::new(ResequencerConfig::PAPER_002)
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Instant::from_millis(ms);
        self
    }

    fn insert(&mut self, seq: u64, prev: u16) -> Inserted {
        self.insert_over(PATH, seq, prev)
    }

    fn insert_over(&mut self, path: PathId, seq: u64, prev: u16) -> Inserted {
        let mut packet = vec![0; self.packet_bytes];
        packet[..8].copy_from_slice(&seq.to_be_bytes());
        let out = &mut self.out;
        self.resequencer.insert(self.now, BondSeq(seq), prev, path, &packet, &mut |packet| {
            out.push(number(packet));
        })
    }

    fn passed(&mut self, all_passed: u64) {
        let out = &mut self.out;
        let sink = &mut |packet: &[u8]| out.push(number(packet));
        self.resequencer.path_passed(self.now, BondSeq(all_passed), sink);
    }

    fn timeout(&mut self) -> &mut Self {
        let out = &mut self.out;
        self.resequencer.handle_timeout(self.now, &mut |packet| out.push(number(packet)));
        self
    }

    fn take_out(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.out)
    }

    /// Packets at or above the floor.
    fn ahead(&self) -> u64 {
        let ring = &self.resequencer.ring;
        let (floor, next) = (self.resequencer.floor, self.resequencer.next);
        (floor..next).filter(|&seq| ring.state(seq) != State::Missing).count() as u64
    }

    fn stats(&self) -> ResequencerStats {
        self.resequencer.stats()
    }
}

fn number(packet: &[u8]) -> u64 {
    u64::from_be_bytes(packet[..8].try_into().expect("a packet holds its number"))
}

#[test]
fn packets_in_order_go_on_at_once() {
    let mut case = Case::paper();
    for seq in 0..5 {
        assert_eq!(case.insert(seq, 1), Inserted::Delivered);
    }
    assert_eq!(case.take_out(), [0, 1, 2, 3, 4]);
    assert_eq!((case.stats().at_once, case.stats().waited), (5, 0));
    assert_eq!(case.resequencer.poll_timeout(), None);
    assert_eq!(case.resequencer.expected_next(), BondSeq(5));
}

/// Spec R-1.
#[test]
fn a_packet_waits_for_its_predecessor() {
    let mut case = Case::paper();
    case.insert(0, 1);
    assert_eq!(case.insert(3, 1), Inserted::Waiting);
    assert_eq!(case.insert(2, 1), Inserted::Waiting);
    assert_eq!(case.stats().waiting_now_packets, 2);
    assert_eq!(case.at(7).insert(1, 1), Inserted::Delivered);
    assert_eq!(case.take_out(), [0, 1, 2, 3]);
    let stats = case.stats();
    assert_eq!(
        (stats.released.in_order, stats.waiting_max_us, stats.waiting_total_us),
        (2, 7000, 14000)
    );
    assert_eq!(stats.waiting_histogram, [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!((stats.waiting_now_packets, stats.waiting_now_bytes), (0, 0));
}

#[test]
fn lanes_do_not_wait_for_each_other() {
    let mut case = Case::paper();
    // Lane a: 0, 2, 4. Lane b: 1, 3, 5; 1 is missing.
    case.insert(0, 0);
    case.insert(2, 2);
    assert_eq!(case.insert(3, 2), Inserted::Waiting);
    assert_eq!(case.insert(4, 2), Inserted::Delivered);
    case.insert(1, 0);
    assert_eq!(case.take_out(), [0, 2, 4, 1, 3]);
}

/// Spec R-1.
#[test]
fn unordered_packets_never_wait() {
    let mut case = Case::paper();
    for seq in [5, 2, 9, 0] {
        assert_eq!(case.insert(seq, 0), Inserted::Delivered);
    }
}

#[test]
fn several_packets_may_name_one_predecessor() {
    let mut case = Case::paper();
    for (seq, prev) in [(3, 3), (1, 1), (2, 2), (4, 1)] {
        assert_eq!(case.insert(seq, prev), Inserted::Waiting);
    }
    case.insert(0, 0);
    assert_eq!(case.take_out(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_predecessor_before_the_start_is_resolved() {
    let mut case = Case::paper();
    assert_eq!(case.insert(2, 9), Inserted::Delivered);
    let mut later = Resequencer::starting_at(ResequencerConfig::PAPER_002, BondSeq(1000));
    let inserted = later.insert(Instant::ZERO, BondSeq(1000), 1, PATH, &[1], &mut |_| {});
    assert_eq!(inserted, Inserted::Delivered);
    let before = later.insert(Instant::ZERO, BondSeq(999), 1, PATH, &[1], &mut |_| {});
    assert_eq!(before, Inserted::Forgotten);
}

/// Spec R-2.
#[test]
fn a_packet_that_waited_the_timeout_gives_up_all_below() {
    let mut case = Case::paper();
    case.insert(0, 1);
    case.at(10).insert(3, 1);
    case.at(20).insert(4, 1);
    case.at(30).insert(7, 1);
    assert_eq!(case.resequencer.poll_timeout(), Some(Instant::from_millis(60)));
    case.at(59).timeout();
    assert_eq!(case.take_out(), [0]);
    case.at(60).timeout();
    assert_eq!(case.take_out(), [3, 4]);
    assert_eq!((case.stats().given_up, case.stats().released.timer), (2, 2));
    assert_eq!(case.resequencer.poll_timeout(), Some(Instant::from_millis(80)));
    case.at(80).timeout();
    assert_eq!(case.take_out(), [7]);
    assert_eq!(case.resequencer.drain_lost().lost, 4);
    assert_eq!(case.resequencer.drain_lost(), NewlyLost::default());
}

#[test]
fn a_packet_below_an_overdue_one_goes_with_it_whatever_its_lane_and_arrival() {
    let mut case = Case::paper();
    case.insert(5, 1);
    case.at(40).insert(3, 2);
    case.at(50).timeout();
    assert_eq!(case.take_out(), [3, 5]);
}

#[test]
fn a_gap_that_nobody_waits_for_is_given_up_too() {
    let mut case = Case::paper();
    case.insert(0, 0);
    case.at(10).insert(2, 0);
    case.at(20).insert(3, 0);
    assert_eq!(case.resequencer.poll_timeout(), Some(Instant::from_millis(60)));
    case.at(60).timeout();
    assert_eq!(case.stats().given_up, 1);
    assert_eq!(case.resequencer.floor(), BondSeq(4));
    assert_eq!(case.resequencer.poll_timeout(), None);
}

/// Spec R-4.
#[test]
fn what_was_given_up_counts_as_late_once() {
    let mut case = Case::paper();
    case.insert(1, 1);
    case.at(50).timeout();
    assert_eq!(case.insert_over(OTHER, 0, 1), Inserted::LateDropped);
    assert_eq!(case.insert_over(OTHER, 0, 1), Inserted::Duplicate);
    assert_eq!(case.take_out(), [1]);
    assert_eq!((case.stats().late_dropped, case.stats().duplicates), (1, 1));
    let lost = case.resequencer.drain_lost();
    assert_eq!(lost, NewlyLost { lost: 1, recovered: vec![(OTHER, 1)] });
}

/// Spec R-4: delivered, as configured.
#[test]
fn late_packets_go_on_once_where_so_configured() {
    let late = LatePolicy::Deliver;
    let mut case = Case::new(ResequencerConfig { late, ..ResequencerConfig::PAPER_002 });
    case.insert(1, 1);
    case.at(50).timeout();
    assert_eq!(case.insert(0, 1), Inserted::LateDelivered);
    assert_eq!(case.insert(0, 1), Inserted::Duplicate);
    assert_eq!(case.insert(1, 1), Inserted::Duplicate);
    assert_eq!(case.take_out(), [1, 0]);
}

/// Spec R-6.
#[test]
fn duplicates_are_dropped_wherever_the_first_copy_is() {
    let mut case = Case::paper();
    case.insert(0, 1);
    case.insert(2, 1);
    case.insert(4, 0);
    for seq in [0, 2, 4] {
        assert_eq!(case.insert(seq, 1), Inserted::Duplicate, "{seq}");
    }
    assert_eq!(case.take_out(), [0, 4]);
}

#[test]
fn older_than_the_history_is_dropped_even_where_late_packets_go_on() {
    let late = LatePolicy::Deliver;
    let mut case = Case::new(ResequencerConfig { late, ..ResequencerConfig::PAPER_002 });
    for seq in 1..=history::HISTORY + 1 {
        case.insert(seq, 0);
    }
    case.at(50).timeout();
    assert_eq!(case.resequencer.floor(), BondSeq(history::HISTORY + 2));
    assert_eq!(case.insert(1, 0), Inserted::Forgotten);
    assert_eq!(case.insert(2, 0), Inserted::Duplicate);
}

/// Spec R-3.
#[test]
fn known_lost_releases_at_once_where_so_configured() {
    let mut case = Case::new(ResequencerConfig::default());
    case.insert(0, 1);
    case.insert(3, 1);
    case.insert(4, 1);
    case.passed(2);
    assert_eq!(case.take_out(), [0], "2 is still on its way");
    case.passed(3);
    assert_eq!(case.take_out(), [3, 4]);
    let stats = case.stats();
    assert_eq!((stats.known_lost, stats.given_up, stats.released.known_lost), (2, 2, 2));
    assert_eq!(case.resequencer.drain_lost().lost, 2, "each is lost once");
}

#[test]
fn known_lost_may_be_counted_without_release() {
    let config = ResequencerConfig { release_known_lost: false, ..ResequencerConfig::default() };
    let mut case = Case::new(config);
    case.insert(0, 1);
    case.insert(3, 1);
    case.passed(3);
    case.passed(3);
    assert_eq!((case.stats().known_lost, case.stats().given_up), (2, 0));
    assert_eq!(case.resequencer.drain_lost().lost, 2);
    // A repair brings 1; 2 waits for the timer.
    assert_eq!(case.insert_over(OTHER, 1, 1), Inserted::Delivered);
    assert_eq!(case.resequencer.drain_lost().recovered, [(OTHER, 1)]);
    case.at(100).timeout();
    assert_eq!(case.take_out(), [0, 1, 3]);
    assert_eq!(case.stats().given_up, 1);
    assert_eq!(case.resequencer.drain_lost().lost, 0, "it was counted when it became known");
}

#[test]
fn a_lost_tail_is_known_lost() {
    let mut case = Case::new(ResequencerConfig::default());
    case.insert(0, 1);
    case.passed(4);
    assert_eq!((case.stats().known_lost, case.resequencer.expected_next()), (3, BondSeq(4)));
    assert_eq!(case.insert(4, 1), Inserted::Delivered);
}

#[test]
fn paper_002_ignores_what_paths_passed() {
    let mut case = Case::paper();
    case.insert(2, 1);
    case.passed(2);
    assert_eq!(case.take_out(), []);
    assert_eq!((case.stats().known_lost, case.resequencer.drain_lost().lost), (0, 0));
}

#[test]
fn the_ring_overflows_from_the_floor_upwards() {
    let mut case = Case::new(ResequencerConfig { packets_max: 64, ..ResequencerConfig::PAPER_002 });
    for seq in 1..64 {
        assert_eq!(case.insert(seq, 1), Inserted::Waiting);
    }
    case.insert(64, 1);
    assert_eq!(case.take_out(), (1..=64).collect::<Vec<_>>());
    assert_eq!((case.stats().given_up, case.stats().released.overflow), (1, 63));
}

#[test]
fn bytes_overflow_from_the_floor_upwards() {
    let mut case = Case::new(ResequencerConfig { bytes_max: 3000, ..ResequencerConfig::PAPER_002 });
    case.packet_bytes = 1000;
    for seq in [2, 4, 6] {
        case.insert(seq, 1);
    }
    assert_eq!(case.insert(8, 1), Inserted::Waiting);
    assert_eq!(case.take_out(), [2]);
    // 5 lies below all that waits but 4: room for it lets 4 go, and then itself.
    assert_eq!(case.insert(5, 1), Inserted::Delivered);
    assert_eq!(case.take_out(), [4, 5, 6]);
    assert_eq!(case.stats().peak_bytes, 3000);
    assert_eq!(case.stats().given_up, 3);
}

#[test]
fn a_packet_below_all_that_waits_goes_on_when_bytes_are_full() {
    let mut case = Case::new(ResequencerConfig { bytes_max: 2000, ..ResequencerConfig::PAPER_002 });
    case.packet_bytes = 1000;
    case.insert(8, 1);
    case.insert(6, 1);
    assert_eq!(case.insert(3, 1), Inserted::Delivered);
    assert_eq!(case.take_out(), [3]);
    assert_eq!((case.stats().given_up, case.stats().waiting_now_packets), (3, 2));
}

#[test]
fn a_jump_far_beyond_the_ring_is_bounded() {
    let mut case = Case::paper();
    case.insert(0, 1);
    case.insert(2, 1);
    let far = u64::MAX / 2;
    assert_eq!(case.insert(far, 0), Inserted::Delivered);
    assert_eq!(case.take_out(), [0, 2, far]);
    assert_eq!(case.stats().given_up, far - 32767 - 2);
    let mut case = Case::new(ResequencerConfig::default());
    case.insert(2, 1);
    case.passed(far);
    assert_eq!(case.take_out(), [2]);
    assert_eq!(case.resequencer.drain_lost().lost, far - 1);
}

#[test]
fn a_jump_leaves_nothing_of_the_history() {
    let mut case = Case::paper();
    for seq in 0..10 {
        case.insert(seq, 1);
    }
    case.insert(200_000, 0);
    // Takes the place of 5 in the history.
    assert_eq!(case.insert(2 * history::HISTORY + 5, 1), Inserted::LateDropped);
    assert_eq!(case.insert(2 * history::HISTORY + 5, 1), Inserted::Duplicate);
}

#[test]
fn the_adaptive_timeout_moves_within_its_bounds_and_holds_for_what_waits() {
    let mut case = Case::new(ResequencerConfig::default());
    case.insert(1, 1);
    assert_eq!(case.resequencer.poll_timeout(), Some(Instant::ZERO + 100 * MS));
    case.resequencer.set_timeout(30 * MS, Duration::ZERO);
    assert_eq!(case.resequencer.poll_timeout(), Some(Instant::ZERO + 30 * MS));
    case.resequencer.set_timeout(Duration::from_secs(9), Duration::ZERO);
    assert_eq!(case.resequencer.timeout(), 500 * MS);
    case.resequencer.set_timeout(Duration::from_secs(9), 900 * MS);
    assert_eq!(case.resequencer.timeout(), 900 * MS, "a repair takes longer than the bound");
    case.resequencer.set_timeout(Duration::ZERO, Duration::ZERO);
    assert_eq!(case.resequencer.timeout(), 5 * MS);
    let mut fixed = Case::paper();
    fixed.resequencer.set_timeout(MS, Duration::ZERO);
    assert_eq!(fixed.resequencer.timeout(), 50 * MS);
}

#[test]
fn the_ring_grows_under_waiting_packets() {
    let mut case = Case::paper();
    for seq in 1..1000 {
        assert_eq!(case.insert(seq, 1), Inserted::Waiting);
    }
    case.insert(0, 1);
    assert_eq!(case.take_out(), (0..1000).collect::<Vec<_>>());
}

/// Each jump of 65,000 once walked the whole ring and the whole history.
#[test]
fn regression_a_jump_costs_no_more_than_a_packet() {
    let packets_max = 65_536;
    let mut case = Case::new(ResequencerConfig { packets_max, ..ResequencerConfig::default() });
    let mut seq = 0;
    for jump in 0..1000 {
        seq += [65_000, 65_536, 40_000, 200_000, 1][jump % 5];
        case.insert(seq, if jump % 3 == 0 { 0 } else { 1 });
        case.passed(seq - 60_000 % seq);
    }
    assert!(case.resequencer.slots_walked() <= 3000, "{}", case.resequencer.slots_walked());
    assert_eq!(case.stats().given_up + 1000, case.resequencer.floor().0 + case.ahead());
}

/// Packets that wait for nothing, above a gap, each looked for again for the next that waits.
#[test]
fn regression_full_bytes_above_a_gap_cost_no_walk_per_packet() {
    let config = ResequencerConfig { bytes_max: 64, ..ResequencerConfig::default() };
    let mut case = Case::new(config);
    for seq in 1..20_000 {
        case.insert(seq, 0);
    }
    for seq in 20_001..25_000 {
        case.insert(seq, 2);
    }
    assert!(case.resequencer.slots_walked() <= 60_000, "{}", case.resequencer.slots_walked());
}
