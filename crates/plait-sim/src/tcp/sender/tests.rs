//! Tests the sender with hand-made acknowledgements. Segments have 1000 bytes, the round trip takes
//! 100 ms, the window is fixed at ten segments unless a test says otherwise.

use plait_proto::congestion::{Algorithm, ControllerConfig};
use plait_proto::units::Rate;

use super::*;
use crate::tcp::reordering::DupThreshold;
use crate::tcp::segment::{Flags, SackOption, SeqRange};
use crate::tcp::source::Source;

const S: u64 = 1000;
const SACK3: Recovery = Recovery::Sack { dup_threshold: DupThreshold::Fixed(3) };
const ADAPTIVE: Recovery = Recovery::Sack { dup_threshold: DupThreshold::Adaptive };

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn config(algorithm: Algorithm, recovery: Recovery) -> SenderConfig {
    let fixed_window_bytes = 10 * S;
    let controller = ControllerConfig { fixed_window_bytes, ..algorithm.into() };
    SenderConfig { segment_bytes: S, controller, recovery, ..SenderConfig::default() }
}

/// A sender that has seen the answer to its SYN at 100 ms.
fn established(config: SenderConfig) -> TcpSender {
    let mut sender = TcpSender::new(config);
    let syn = sender.poll_transmit(at(0)).unwrap();
    assert_eq!(syn.flags, Flags { syn: true, ack: false });
    assert_eq!(sender.poll_transmit(at(0)), None);
    let flags = Flags { syn: true, ack: true };
    sender.handle_segment(at(100), &Segment { flags, window: 1_000_000, ..Segment::default() });
    sender
}

/// Everything that may leave, as segment numbers.
fn send(sender: &mut TcpSender, millis: u64) -> Vec<u64> {
    let out = core::iter::from_fn(|| sender.poll_transmit(at(millis)));
    out.take(1000).map(|segment| segment.seq / S).collect()
}

/// An acknowledgement of everything below segment `ack`, with blocks given in segments.
fn ack(ack: u64, blocks: &[(u64, u64)], ts_echo_ms: u64) -> Segment {
    dsack(ack, None, blocks, ts_echo_ms)
}

fn dsack(ack: u64, dup: Option<u64>, blocks: &[(u64, u64)], ts_echo_ms: u64) -> Segment {
    let range = |&(start, end): &(u64, u64)| SeqRange { start: start * S, end: end * S };
    let dup = dup.map(|index| range(&(index, index + 1)));
    Segment {
        ack: ack * S,
        sack: SackOption::new(dup, blocks.iter().map(range)),
        window: 1_000_000,
        flags: Flags { syn: false, ack: true },
        ts_echo_ms,
        ..Segment::default()
    }
}

#[test]
fn data_leaves_one_round_trip_after_the_syn() {
    let mut sender = established(config(Algorithm::Cubic, SACK3));
    assert_eq!(send(&mut sender, 100), (0..10).collect::<Vec<_>>(), "the initial window");
    assert_eq!(sender.srtt(), Some(Duration::from_millis(100)));
}

#[test]
fn a_lost_syn_is_sent_again_after_one_second_then_two() {
    let mut sender = TcpSender::new(config(Algorithm::Cubic, SACK3));
    assert!(sender.poll_transmit(at(0)).is_some());
    for due in [1000, 3000] {
        assert_eq!(sender.poll_timeout(), Some(at(due)));
        sender.handle_timeout(at(due));
        assert!(sender.poll_transmit(at(due)).is_some_and(|syn| syn.flags.syn));
        assert!(sender.poll_transmit(at(due)).is_none());
    }
    let flags = Flags { syn: true, ack: true };
    sender.handle_segment(at(3100), &Segment { flags, window: 99_999, ..Segment::default() });
    assert_eq!(sender.srtt(), None, "Karn: which SYN was answered is not known");
}

#[test]
fn selective_acknowledgements_let_new_data_out_before_the_third() {
    // Limited transmit (RFC 3042), as pipe counts it.
    let mut sender = established(config(Algorithm::Fixed, SACK3));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 2)], 0));
    assert_eq!(send(&mut sender, 200), [10]);
    // A lone segment so soon after another waits for a second one.
    sender.handle_segment(at(200), &ack(0, &[(1, 3)], 0));
    assert_eq!(send(&mut sender, 200), []);
    assert_eq!(send(&mut sender, 202), [11]);
    assert_eq!(sender.counters().retransmits, 0);
    assert_eq!(sender.counters().duplicate_acks, 2);
}

#[test]
fn rack_learns_of_reordering_from_a_retransmission_beyond_the_gap_that_was_in_vain() {
    let mut sender = established(config(Algorithm::Fixed, Recovery::RackTlp));
    send(&mut sender, 100);
    let sees_reordering = |sender: &TcpSender| match &sender.detector {
        Detector::Rack(rack) => rack.reordering_seen(),
        _ => unreachable!("the recovery is RACK"),
    };
    sender.handle_segment(at(200), &ack(0, &[(3, 6), (1, 2)], 0));
    assert_eq!(send(&mut sender, 200)[..2], [0, 2]);
    sender.handle_segment(at(290), &ack(0, &[(1, 6)], 0));
    assert!(!sees_reordering(&sender), "which of the two came is not known");
    sender.handle_segment(at(300), &dsack(0, Some(2), &[(1, 6)], 0));
    assert!(sees_reordering(&sender));
}

#[test]
fn the_third_selective_acknowledgement_resends() {
    let mut sender = established(config(Algorithm::NewReno, SACK3));
    send(&mut sender, 100);
    for end in 2..5 {
        sender.handle_segment(at(200), &ack(0, &[(1, end)], 0));
    }
    assert_eq!(sender.phase(), Phase::FastRecovery);
    assert_eq!(sender.controller.window(), 5 * S, "half of the flight of ten");
    assert_eq!(send(&mut sender, 200), [0]);
    assert_eq!(sender.counters().fast_recoveries, 1);
    sender.handle_segment(at(300), &ack(10, &[], 200));
    assert_eq!(sender.phase(), Phase::Open, "everything sent before recovery is acknowledged");
}

#[test]
fn a_lost_retransmission_waits_for_the_timer_without_rack() {
    let mut sender = established(config(Algorithm::Fixed, SACK3));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 5)], 0));
    assert_eq!(send(&mut sender, 200)[0], 0);
    sender.handle_segment(at(300), &ack(0, &[(1, 14)], 0));
    assert!(!send(&mut sender, 300).contains(&0));
}

#[test]
fn rack_finds_a_lost_retransmission() {
    let mut sender = established(config(Algorithm::Fixed, Recovery::RackTlp));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 5)], 0));
    assert_eq!(send(&mut sender, 200)[0], 0, "three above and no reordering seen");
    // A segment sent after the retransmission, in the same instant, arrived before it.
    sender.handle_segment(at(300), &ack(0, &[(1, 12)], 0));
    assert_eq!(send(&mut sender, 300)[0], 0);
}

#[test]
fn rack_resends_a_late_segment_when_its_time_is_up() {
    let mut sender = established(config(Algorithm::Fixed, Recovery::RackTlp));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 2)], 0));
    send(&mut sender, 200);
    // Sent at 100, round trip 100, a quarter of it more.
    assert_eq!(sender.poll_timeout(), Some(at(225)));
    sender.handle_timeout(at(225));
    assert_eq!(send(&mut sender, 225)[0], 0);
    assert_eq!(sender.phase(), Phase::FastRecovery);
}

#[test]
fn a_probe_leaves_after_two_round_trips_of_silence() {
    let source = Source::Bytes(4 * S);
    let mut sender =
        established(SenderConfig { source, ..config(Algorithm::Fixed, Recovery::RackTlp) });
    assert_eq!(send(&mut sender, 100), [0, 1, 2, 3]);
    assert_eq!(sender.poll_timeout(), Some(at(302)), "2 srtt + 2 ms");
    sender.handle_timeout(at(302));
    assert_eq!(send(&mut sender, 302), [3], "no new data: the last segment again");
    assert_eq!(sender.counters().probes, 1);
    // The probe shows that 0 to 2, sent long before it, are lost.
    sender.handle_segment(at(402), &ack(0, &[(3, 4)], 0));
    assert_eq!(send(&mut sender, 402), [0], "as many as were delivered");
    sender.handle_segment(at(502), &ack(1, &[(3, 4)], 402));
    assert_eq!(send(&mut sender, 502), [1, 2], "one more");
    assert_eq!(sender.counters().rtos, 0);
}

#[test]
fn a_timeout_resends_one_segment_and_backs_off() {
    let mut sender = established(config(Algorithm::NewReno, SACK3));
    send(&mut sender, 100);
    // srtt 100, rttvar 50: 100 + max(200, 4*50).
    assert_eq!(sender.poll_timeout(), Some(at(400)));
    sender.handle_timeout(at(400));
    assert_eq!(send(&mut sender, 400), [0]);
    assert_eq!(sender.poll_timeout(), Some(at(1000)), "twice 300 ms");
    assert_eq!(sender.window_bytes(), S);
    sender.handle_timeout(at(1000));
    assert_eq!(send(&mut sender, 1000), [0]);
    assert_eq!(sender.counters().rtos, 2);
    sender.handle_segment(at(1100), &ack(1, &[], 1000));
    assert_eq!(send(&mut sender, 1100), [1, 2], "slow start over what is lost");
    assert_eq!(sender.phase(), Phase::RtoRecovery);
}

#[test]
fn an_echo_of_the_original_takes_a_recovery_back() {
    let mut sender = established(config(Algorithm::NewReno, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 8)], 0));
    assert_eq!(send(&mut sender, 200)[0], 0);
    assert_eq!(sender.phase(), Phase::FastRecovery);
    // The original of segment 0, sent at 100, was only late.
    sender.handle_segment(at(203), &ack(8, &[], 100));
    assert_eq!(sender.phase(), Phase::Open);
    assert_eq!(sender.counters().spurious_undos, 1);
    assert!(sender.window_bytes() >= 10 * S, "the window is as before");
    assert_eq!(sender.dup_threshold(), Some(8), "segment 0 was overtaken by seven");
}

#[test]
fn what_was_marked_lost_by_mistake_is_not_resent() {
    let mut sender = established(config(Algorithm::NewReno, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(4, 8)], 0));
    assert_eq!(send(&mut sender, 200), [0, 1, 2], "four are lost, one has to wait");
    sender.handle_segment(at(203), &ack(3, &[(4, 8)], 100));
    assert_eq!((sender.phase(), sender.dup_threshold()), (Phase::Open, Some(8)));
    assert!(send(&mut sender, 203)[0] >= 10, "not segment 3");
}

#[test]
fn nothing_is_undone_while_other_retransmissions_are_under_way() {
    let mut sender = established(config(Algorithm::NewReno, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(4, 8)], 0));
    assert_eq!(send(&mut sender, 200), [0, 1, 2]);
    sender.handle_segment(at(203), &ack(1, &[(4, 8)], 100));
    assert_eq!(sender.phase(), Phase::FastRecovery, "1 and 2 are under way");
    assert_eq!(sender.dup_threshold(), Some(8), "it learns nevertheless");
    sender.handle_segment(at(204), &ack(3, &[(4, 8)], 100));
    assert_eq!((sender.phase(), sender.counters().spurious_undos), (Phase::Open, 1));
}

#[test]
fn without_sack_an_undone_recovery_makes_room_for_the_next() {
    let fixed = SenderConfig { reordering_max: 3, ..config(Algorithm::NewReno, Recovery::NewReno) };
    let mut sender = established(fixed);
    send(&mut sender, 100);
    (0..5).for_each(|_| sender.handle_segment(at(200), &ack(0, &[], 0)));
    assert_eq!(send(&mut sender, 200)[0], 0);
    // Late originals, and four of five duplicates lie beyond the next gap.
    sender.handle_segment(at(203), &ack(2, &[], 100));
    assert_eq!(sender.counters().spurious_undos, 1);
    assert_eq!(sender.phase(), Phase::FastRecovery);
    assert_eq!(send(&mut sender, 203)[0], 2);
}

#[test]
fn duplicate_reports_of_all_retransmissions_take_a_recovery_back() {
    let mut sender = established(config(Algorithm::NewReno, SACK3));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 5)], 0));
    assert_eq!(send(&mut sender, 200)[0], 0);
    // The echo reveals nothing; the recovery ends, and then the duplicate is reported.
    sender.handle_segment(at(203), &ack(10, &[], 200));
    assert_eq!((sender.phase(), sender.counters().spurious_undos), (Phase::Open, 0));
    let reduced = sender.window_bytes();
    sender.handle_segment(at(300), &dsack(10, Some(0), &[], 200));
    assert_eq!(sender.counters().spurious_undos, 1);
    assert!(sender.window_bytes() > reduced);
}

#[test]
fn a_late_original_never_resent_raises_the_threshold() {
    let mut sender = established(config(Algorithm::Fixed, ADAPTIVE));
    send(&mut sender, 100);
    // Two segments arrive before 0: not enough for a recovery.
    sender.handle_segment(at(200), &ack(0, &[(4, 6)], 0));
    sender.handle_segment(at(200), &ack(6, &[], 0));
    assert_eq!(sender.dup_threshold(), Some(6), "0 was overtaken up to segment 5");
}

#[test]
fn a_needless_retransmission_above_the_first_gap_raises_the_threshold() {
    let mut sender = established(config(Algorithm::Fixed, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(2, 6)], 0));
    assert_eq!(send(&mut sender, 200)[..2], [0, 1]);
    sender.handle_segment(at(210), &ack(0, &[(1, 6)], 0));
    assert_eq!(sender.dup_threshold(), Some(3), "original or retransmission: not known");
    sender.handle_segment(at(300), &dsack(0, Some(1), &[(1, 6)], 0));
    assert_eq!(sender.dup_threshold(), Some(5), "1 was overtaken by 2 to 5");
}

#[test]
fn a_timeout_in_disorder_resets_the_threshold() {
    let mut sender = established(config(Algorithm::Fixed, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(9, 10)], 0));
    sender.handle_segment(at(200), &ack(10, &[], 0));
    assert_eq!(sender.dup_threshold(), Some(10));
    send(&mut sender, 200);
    sender.handle_segment(at(300), &ack(10, &[(11, 15)], 0));
    assert_eq!(sender.phase(), Phase::Open);
    let timeout = sender.poll_timeout().unwrap();
    sender.handle_timeout(timeout);
    assert_eq!(sender.dup_threshold(), Some(3));
}

#[test]
fn a_steady_stream_wakes_the_sender_for_each_segment() {
    let source = Source::Steady(Rate::from_mbit(1));
    let mut sender = established(SenderConfig { source, ..config(Algorithm::Fixed, SACK3) });
    assert_eq!(send(&mut sender, 100), [] as [u64; 0]);
    // 1000 bytes at 1 Mbit/s take 8 ms.
    assert_eq!(sender.poll_timeout(), Some(at(108) + Duration::from_nanos(1)));
    assert_eq!(send(&mut sender, 109), [0]);
    assert_eq!(send(&mut sender, 125), [1, 2]);
}

#[test]
fn an_idle_application_does_not_grow_the_window() {
    let source = Source::Written;
    let mut sender = established(SenderConfig { source, ..config(Algorithm::NewReno, SACK3) });
    let mut now = 100;
    for index in 0..50 {
        sender.write(S);
        assert_eq!(send(&mut sender, now), [index]);
        now += 100;
        sender.handle_segment(at(now), &ack(index + 1, &[], 0));
    }
    assert_eq!(sender.window_bytes(), 10 * S);
}

#[test]
fn the_receivers_window_is_obeyed() {
    let mut sender = established(config(Algorithm::Fixed, SACK3));
    send(&mut sender, 100);
    sender.right_edge = 12 * S + 500;
    let full = Segment { window: 0, ..ack(8, &[], 0) };
    sender.handle_segment(at(200), &full);
    assert_eq!(send(&mut sender, 200), [10, 11], "two whole segments fit");
}

#[test]
fn paced_segments_leave_one_by_one() {
    let pacing = crate::tcp::Pacing::Always;
    let mut sender = established(SenderConfig { pacing, ..config(Algorithm::NewReno, SACK3) });
    assert_eq!(send(&mut sender, 100), [0]);
    // Slow start: twice ten segments per 100 ms; 1052 bytes take 5.26 ms.
    assert_eq!(sender.poll_timeout(), Some(Instant::from_nanos(105_260_000)));
}

#[test]
fn the_trace_holds_the_changes_of_the_window() {
    let mut sender =
        established(SenderConfig { trace_window: true, ..config(Algorithm::NewReno, SACK3) });
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(1, &[], 100));
    sender.handle_segment(at(200), &ack(1, &[], 100));
    let points: Vec<_> = sender.window_trace().iter().map(|point| point.window_bytes).collect();
    assert_eq!(points, [10 * S, 11 * S]);
}

#[test]
fn linux_3_2_takes_what_lies_three_below_the_highest_block_for_lost() {
    // RFC 6675 wants three segments that arrived; here one is enough, four above the second.
    let mut sender = established(config(Algorithm::Fixed, Recovery::Linux32));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(4, 5)], 0));
    assert_eq!(sender.phase(), Phase::FastRecovery);
    assert_eq!(sender.board.next_to_resend().map(|sent| sent.range.start), Some(0));
    assert!(sender.board.get(S).is_some_and(|second| second.is_lost));
    assert!(sender.board.get(2 * S).is_some_and(|third| !third.is_lost));
}

#[test]
fn linux_3_2_counts_arrivals_once_it_has_seen_reordering() {
    let mut sender = established(config(Algorithm::Fixed, Recovery::Linux32));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(5, 6)], 100));
    // The first five were late, by up to six segments.
    sender.handle_segment(at(201), &ack(10, &[], 100));
    assert_eq!((sender.phase(), sender.dup_threshold()), (Phase::Open, Some(6)));
    send(&mut sender, 201);
    sender.handle_segment(at(210), &ack(10, &[(17, 18)], 100));
    assert_eq!(sender.phase(), Phase::Open, "one block eight above, but six must have arrived");
}

#[test]
fn linux_3_2_grows_by_one_per_acknowledgement_that_advances() {
    let mut sender = established(config(Algorithm::CubicLinux, Recovery::Linux32));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 3)], 100));
    assert_eq!(sender.controller.window(), 10 * S, "what arrived beyond the gap grows nothing");
    sender.handle_segment(at(201), &ack(8, &[], 100));
    assert_eq!(sender.controller.window(), 11 * S, "one acknowledgement, one segment");
    let mut sender = established(config(Algorithm::CubicLinux, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 3)], 100));
    sender.handle_segment(at(201), &ack(8, &[], 100));
    // Segments 1 and 2 came before any reordering was seen.
    assert_eq!(sender.controller.window(), 16 * S, "the other forms count what arrived");
}

#[test]
fn linux_3_2_keeps_seven_tenths_after_a_spurious_timeout() {
    let window_after = |recovery| {
        let mut sender = established(config(Algorithm::CubicLinux, recovery));
        send(&mut sender, 100);
        let due = sender.poll_timeout().unwrap();
        sender.handle_timeout(due);
        assert_eq!(send(&mut sender, 500), [0]);
        // The acknowledgement echoes the original's time.
        sender.handle_segment(at(501), &ack(1, &[], 100));
        assert_eq!((sender.phase(), sender.counters().spurious_undos), (Phase::Open, 1));
        sender.controller.window() / S
    };
    assert_eq!(window_after(Recovery::Linux32), 7);
    assert!(window_after(ADAPTIVE) >= 10);
}

#[test]
fn linux_3_2_repairs_a_flight_too_small_for_its_threshold() {
    let mut sender = established(config(Algorithm::Fixed, Recovery::Linux32));
    let Detector::Linux32(linux) = &mut sender.detector else { unreachable!("configured so") };
    linux.on_reordered(SeqRange { start: 0, end: 50 * S });
    sender.supply = Supply::new(Source::Bytes(10 * S));
    sender.supply.open(at(100));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 5)], 100));
    assert_eq!(sender.phase(), Phase::Open, "four of ten arrived");
    sender.handle_segment(at(200), &ack(0, &[(1, 6)], 100));
    assert_eq!(send(&mut sender, 200), [0], "half of them, and there is nothing else to send");
}

#[test]
fn what_arrives_beyond_a_gap_grows_the_window_only_after_reordering_was_seen() {
    let mut sender = established(config(Algorithm::CubicLinux, ADAPTIVE));
    send(&mut sender, 100);
    sender.handle_segment(at(200), &ack(0, &[(1, 2)], 0));
    assert_eq!(sender.window_bytes(), 10 * S, "three duplicates are borne as it is");
    // The late segment 1 shows an extent of five.
    sender.handle_segment(at(200), &ack(0, &[(6, 7)], 0));
    sender.handle_segment(at(201), &ack(0, &[(1, 3)], 0));
    let before = sender.window_bytes();
    sender.handle_segment(at(202), &ack(0, &[(1, 4)], 0));
    assert!(sender.window_bytes() > before);
}
