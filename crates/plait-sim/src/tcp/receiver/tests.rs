use plait_proto::time::Duration;

use super::*;
use crate::tcp::Acks;

const S: u64 = 1448;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Segment number `index`, sent at `ts_ms`.
fn data(index: u64, ts_ms: u64) -> Segment {
    let flags = Flags { syn: false, ack: true };
    Segment { seq: index * S, len: S, flags, ts_ms, ..Segment::default() }
}

fn segments(start: u64, end: u64) -> SeqRange {
    SeqRange { start: start * S, end: end * S }
}

/// A receiver past its handshake.
fn receiver() -> TcpReceiver {
    receiver_with(ReceiverConfig::default())
}

fn receiver_with(config: ReceiverConfig) -> TcpReceiver {
    let mut receiver = TcpReceiver::new(config);
    let flags = Flags { syn: true, ack: false };
    receiver.handle_segment(at(0), &Segment { flags, ..Segment::default() });
    let answer = receiver.poll_transmit(at(0)).unwrap();
    assert_eq!(answer.flags, Flags { syn: true, ack: true });
    assert_eq!(answer.window, config.window_bytes_max.min(65_535));
    receiver
}

/// Its window does not grow by itself, and it reports each segment beyond a gap.
const SETTLED: ReceiverConfig = ReceiverConfig {
    segment_bytes: S,
    window_bytes_max: 65_535,
    is_subflow: false,
    sack: true,
    sack_blocks_max: SackOption::BLOCKS_MAX,
    acks: Acks::Linux,
    is_of_today: false,
};

/// A receiver that has stopped acknowledging quickly and expects segment 16.
fn settled_receiver() -> TcpReceiver {
    let mut receiver = receiver_with(SETTLED);
    for index in 0..16 {
        let ack = arrive(&mut receiver, 1, data(index, 1));
        assert_eq!(ack.map(|ack| ack.ack), Some((index + 1) * S), "quick acknowledgement");
    }
    receiver
}

/// The acknowledgement that leaves when the application reads what arrived at `millis`.
fn read(receiver: &mut TcpReceiver, millis: u64) -> Option<Segment> {
    let now = at(millis) + Duration::from_micros(20);
    receiver.handle_timeout(now);
    receiver.poll_transmit(now)
}

fn arrive(receiver: &mut TcpReceiver, millis: u64, segment: Segment) -> Option<Segment> {
    receiver.handle_segment(at(millis), &segment);
    let ack = receiver.poll_transmit(at(millis));
    assert_eq!(receiver.poll_transmit(at(millis)), None, "one acknowledgement at most");
    ack
}

#[test]
fn every_second_segment_is_acknowledged_when_it_is_read() {
    let mut receiver = settled_receiver();
    assert_eq!(arrive(&mut receiver, 2, data(16, 2)), None);
    assert_eq!(arrive(&mut receiver, 3, data(17, 2)), None);
    assert_eq!(receiver.poll_timeout(), Some(at(3) + Duration::from_micros(20)));
    assert_eq!(read(&mut receiver, 3).map(|ack| ack.ack), Some(18 * S));
    assert_eq!(receiver.poll_timeout(), None);
}

#[test]
fn what_arrives_before_it_is_read_is_acknowledged_together() {
    let mut receiver = settled_receiver();
    for index in 16..23 {
        assert_eq!(arrive(&mut receiver, 2, data(index, 2)), None);
    }
    assert_eq!(read(&mut receiver, 2).map(|ack| ack.ack), Some(23 * S));
}

#[test]
fn each_segment_that_raises_the_window_is_acknowledged_at_once() {
    let mut receiver = settled_receiver();
    receiver.let_window_grow(65_535 + 6 * S);
    let windows = [16, 17, 18].map(|index| {
        let ack = arrive(&mut receiver, index, data(index, 2));
        ack.map(|ack| (ack.ack / S, ack.window - 65_535))
    });
    // What was not read takes up a segment.
    assert_eq!(windows, [Some((17, 2 * S)), Some((18, 4 * S)), Some((19, 5 * S))]);
    assert_eq!(arrive(&mut receiver, 19, data(19, 2)), None, "it is as large as it may be");
    assert_eq!(arrive(&mut receiver, 20, data(20, 2)), None);
    assert_eq!(read(&mut receiver, 20).map(|ack| ack.ack), Some(21 * S));
}

#[test]
fn quick_acknowledgements_are_left_for_when_the_window_is_as_large_as_it_may_be() {
    let mut receiver = receiver_with(SETTLED);
    receiver.let_window_grow(65_535 + 200 * S);
    let quick =
        (0..200).take_while(|index| arrive(&mut receiver, *index, data(*index, 2)).is_some());
    // 100 raise the window, 16 were left before that.
    assert_eq!(quick.count(), 116);
}

#[test]
fn without_sack_what_lies_beyond_a_gap_raises_no_window() {
    let mut receiver = receiver_with(ReceiverConfig { sack: false, ..SETTLED });
    receiver.let_window_grow(65_535 + 200 * S);
    let first = arrive(&mut receiver, 2, data(0, 2)).expect("quickly");
    let windows =
        [2, 3, 4].map(|index| arrive(&mut receiver, index, data(index, 2)).unwrap().window);
    assert_eq!(windows, [first.window; 3], "a duplicate must change nothing");
}

#[test]
fn what_lies_beyond_a_gap_takes_up_room() {
    let mut receiver = settled_receiver();
    for index in [18, 19, 20] {
        arrive(&mut receiver, 2, data(index, 2));
    }
    let ack = arrive(&mut receiver, 3, data(16, 2)).expect("part of a gap: at once");
    // One is unread; what was offered before stays offered.
    assert_eq!((ack.ack, ack.window), (17 * S, 65_535 - 2 * S));
    let ack = arrive(&mut receiver, 4, data(17, 2)).expect("all of a gap: at once");
    assert_eq!((ack.ack, ack.window), (21 * S, 65_535 - 4 * S), "not read yet");
}

#[test]
fn the_window_that_reading_opens_is_told_if_it_doubles() {
    let config = ReceiverConfig { window_bytes_max: 20 * S, ..SETTLED };
    let mut receiver = receiver_with(config);
    for index in 1..20 {
        arrive(&mut receiver, 2, data(index, 2));
    }
    let ack = arrive(&mut receiver, 3, data(0, 2)).expect("all of a gap: at once");
    assert_eq!((ack.ack, ack.window), (20 * S, 2 * S), "it never closes");
    let update = read(&mut receiver, 3).expect("there is room again");
    assert_eq!((update.ack, update.window), (20 * S, 20 * S));
    assert_eq!(receiver.poll_timeout(), None);
}

#[test]
fn after_three_duplicates_reports_wait_for_a_millisecond() {
    let mut receiver = receiver_with(ReceiverConfig { is_of_today: true, ..SETTLED });
    for index in 0..16 {
        let segment = Segment { ts_echo_ms: 1, ..data(index, 1) };
        arrive(&mut receiver, 101, segment);
    }
    for index in [17, 18, 19] {
        assert!(arrive(&mut receiver, 102, data(index, 2)).is_some(), "a duplicate");
    }
    assert_eq!(arrive(&mut receiver, 102, data(20, 2)), None);
    assert_eq!(arrive(&mut receiver, 102, data(21, 2)), None);
    assert_eq!(receiver.poll_timeout(), Some(at(103)), "less than a twentieth of a round trip");
    receiver.handle_timeout(at(103));
    let ack = receiver.poll_transmit(at(103)).expect("due");
    assert_eq!((ack.ack, ack.sack.blocks()), (16 * S, &[segments(17, 22)][..]));
    arrive(&mut receiver, 104, data(16, 2)).expect("the gap is filled");
    assert!(arrive(&mut receiver, 105, data(23, 2)).is_some(), "of another gap: at once again");
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let mut receiver = settled_receiver();
    assert_eq!(arrive(&mut receiver, 2, data(16, 2)), None);
    assert_eq!(receiver.poll_timeout(), Some(at(42)));
    receiver.handle_timeout(at(41));
    assert_eq!(receiver.poll_transmit(at(41)), None);
    receiver.handle_timeout(at(42));
    assert_eq!(receiver.poll_transmit(at(42)).map(|ack| ack.ack), Some(17 * S));
}

#[test]
fn a_gap_is_acknowledged_at_once_and_so_is_its_filling() {
    let mut receiver = settled_receiver();
    let ack = arrive(&mut receiver, 2, data(18, 2)).expect("beyond a gap: at once");
    assert_eq!((ack.ack, ack.sack.blocks()), (16 * S, &[segments(18, 19)][..]));
    let ack = arrive(&mut receiver, 2, data(16, 2)).expect("part of a gap: at once");
    assert_eq!((ack.ack, ack.sack.blocks()), (17 * S, &[segments(18, 19)][..]));
    let ack = arrive(&mut receiver, 2, data(17, 2)).expect("all of a gap: at once");
    assert_eq!((ack.ack, ack.sack.blocks()), (19 * S, &[][..]));
}

#[test]
fn the_latest_block_comes_first_and_the_oldest_falls_off() {
    let mut receiver = settled_receiver();
    for index in [18, 20, 22, 24] {
        arrive(&mut receiver, 2, data(index, 2));
    }
    let ack = arrive(&mut receiver, 2, data(21, 2)).unwrap();
    // 20, 21 and 22 are one range now.
    let expected = [segments(20, 23), segments(24, 25), segments(18, 19)];
    assert_eq!(ack.sack.blocks(), expected);
}

#[test]
fn a_duplicate_is_reported_once_below_and_beyond_the_gap() {
    let mut receiver = settled_receiver();
    let ack = arrive(&mut receiver, 2, data(3, 2)).expect("a duplicate: at once");
    assert_eq!(ack.sack.dsack(), Some(segments(3, 4)));
    let ack = arrive(&mut receiver, 2, data(18, 2)).unwrap();
    assert_eq!(ack.sack.dsack(), None);
    let ack = arrive(&mut receiver, 2, data(18, 2)).unwrap();
    assert_eq!(ack.sack.dsack(), Some(segments(18, 19)));
    assert_eq!(ack.sack.blocks(), [segments(18, 19)]);
    assert_eq!(receiver.counters().duplicate_segments, 2);
}

#[test]
fn the_echo_is_of_the_segment_that_moves_the_edge() {
    // RFC 7323 section 4.3: data beyond a gap does not change the echo; data that fills it does,
    // even if older.
    let mut receiver = settled_receiver();
    assert_eq!(arrive(&mut receiver, 9, data(17, 8)).unwrap().ts_echo_ms, 1);
    assert_eq!(arrive(&mut receiver, 9, data(18, 9)).unwrap().ts_echo_ms, 1);
    assert_eq!(arrive(&mut receiver, 9, data(16, 7)).unwrap().ts_echo_ms, 7);
    // Delayed acknowledgement: the first of the two is echoed.
    assert_eq!(arrive(&mut receiver, 20, data(19, 18)), None);
    assert_eq!(arrive(&mut receiver, 21, data(20, 19)), None);
    assert_eq!(read(&mut receiver, 21).unwrap().ts_echo_ms, 18);
}

#[test]
fn regression_a_retransmission_that_overtakes_originals_makes_them_outdated() {
    let mut receiver = settled_receiver();
    arrive(&mut receiver, 9, data(17, 3));
    assert_eq!(arrive(&mut receiver, 9, data(16, 90)).unwrap().ts_echo_ms, 90);
    // Sent before the retransmission: dropped, and what is expected is told at once.
    let ack = arrive(&mut receiver, 10, data(18, 88)).expect("at once");
    assert_eq!((ack.ack, ack.sack.dsack()), (18 * S, None));
    let ack = arrive(&mut receiver, 10, data(16, 2)).expect("at once");
    assert_eq!((ack.ack, ack.sack.dsack()), (18 * S, Some(segments(16, 17))));
    assert_eq!(receiver.counters().outdated_segments, 2);
    // A millisecond is no order.
    receiver.handle_segment(at(11), &data(18, 89));
    assert_eq!(receiver.counters().goodput_bytes, 19 * S);
}

#[test]
fn regression_what_was_acknowledged_moves_no_timestamp() {
    let mut receiver = settled_receiver();
    assert_eq!(arrive(&mut receiver, 9, data(3, 90)).expect("at once").ts_echo_ms, 1);
    assert_eq!(arrive(&mut receiver, 10, data(16, 7)).expect("quickly").ts_echo_ms, 7);
}

#[test]
fn data_comes_out_once_and_in_order() {
    let mut receiver = settled_receiver();
    assert_eq!(receiver.poll_deliver(), Some(segments(0, 16)));
    arrive(&mut receiver, 2, data(17, 2));
    assert_eq!(receiver.poll_deliver(), None);
    arrive(&mut receiver, 2, data(16, 2));
    assert_eq!(receiver.poll_deliver(), Some(segments(16, 18)));
    assert_eq!(receiver.poll_deliver(), None);
}

#[test]
fn what_lies_beyond_the_window_is_dropped() {
    let mut receiver = receiver();
    let ack = arrive(&mut receiver, 2, data(65_535 / S, 2)).expect("the sender must learn of it");
    assert_eq!((ack.ack, ack.sack.blocks()), (0, &[][..]));
    assert_eq!(receiver.counters().beyond_window_segments, 1);
}

/// What the window may become after a round trip of 20 ms in which 30 segments arrive, and one with
/// 60; each is read by itself.
fn clamp_after_two_rounds(config: ReceiverConfig) -> u64 {
    let mut receiver = receiver_with(config);
    let mut next = 0;
    for (round, count) in [(1, 30), (2, 60), (3, 2)] {
        for _ in 0..count {
            let segment = Segment { ts_echo_ms: round * 20 - 20, ..data(next, round * 20) };
            let now = at(round * 20) + Duration::from_micros(25 * (next % 100));
            receiver.handle_segment(now, &segment);
            receiver.poll_transmit(now);
            next += 1;
        }
    }
    assert_eq!(receiver.window.rtt().map(|rtt| rtt.as_millis()), Some(20));
    receiver.window.clamp_bytes()
}

#[test]
fn the_window_grows_with_what_is_read_per_round_trip() {
    let today = ReceiverConfig::default();
    let before = ReceiverConfig { is_of_today: false, ..today };
    // In the second round twice the 30 of the first: three times the base of 2*60 segments; until
    // Linux 6.16 that had 16 more.
    assert_eq!(clamp_after_two_rounds(today), 3 * 2 * 60 * S);
    assert_eq!(clamp_after_two_rounds(before), 3 * (2 * 60 + 16) * S);
}

#[test]
fn the_first_acknowledgements_are_those_of_linux_6_18() {
    // As captured over 20 Mbit/s: 22 at once (six raise the window from 65535 to 80896), then every
    // second segment.
    let mut receiver = receiver();
    let at_once = |index: &u64| {
        let now = at(2) + Duration::from_micros(600 * index);
        receiver.handle_segment(now, &data(*index, 2));
        receiver.poll_transmit(now).is_some()
    };
    assert_eq!((0..40).take_while(at_once).count(), 22);
}

#[test]
fn what_lies_beyond_a_gap_lets_the_window_of_today_grow() {
    let mut receiver = receiver();
    for index in 1..45 {
        arrive(&mut receiver, 2, data(index, 2));
    }
    // Twice the ten segments that count for read, and what the gap spans.
    assert_eq!(receiver.window.clamp_bytes(), (2 * 10 + 45) * S);
}

#[test]
fn quic_acknowledges_every_second_segment_from_the_start_or_after_25_ms() {
    let config =
        ReceiverConfig { segment_bytes: 1000, acks: Acks::Quic, ..ReceiverConfig::default() };
    let mut receiver = TcpReceiver::new(config);
    let data =
        |index: u64, number| Segment { seq: index * 1000, len: 1000, number, ..Segment::default() };
    let now = Instant::from_millis(100);
    receiver.handle_segment(now, &data(0, 1));
    assert_eq!(receiver.poll_transmit(now), None);
    assert_eq!(receiver.poll_timeout(), Some(Instant::from_millis(125)));
    receiver.handle_segment(now, &data(1, 2));
    assert_eq!(receiver.poll_transmit(now).map(|ack| ack.number), Some(2));
    // A retransmission has its own number; packets that came before keep theirs.
    receiver.handle_segment(now, &data(3, 9));
    receiver.handle_segment(now, &data(2, 4));
    assert_eq!(receiver.poll_transmit(now).map(|ack| ack.number), Some(9), "the highest");
}
