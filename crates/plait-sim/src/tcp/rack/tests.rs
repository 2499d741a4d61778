use plait_proto::congestion::PacketState;

use super::*;
use crate::tcp::delivery_rate::Snapshot;
use crate::tcp::segment::SeqRange;

const S: u64 = 1000;
const RTT: Duration = Duration::from_millis(40);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Segments sent 1 ms apart, from 0 on.
struct Bench {
    rack: Rack,
    board: Scoreboard,
}

impl Bench {
    fn new(count: u64) -> Self {
        let mut bench = Self { rack: Rack::default(), board: Scoreboard::default() };
        for index in 0..count {
            let sent = Sent {
                range: SeqRange::new(index * S, S),
                at: at(index),
                transmissions: 1,
                is_sacked: false,
                is_lost: false,
                is_resent: false,
                packet: PacketState::default(),
                first_packet: PacketState::default(),
                rate: Snapshot::default(),
            };
            bench.board.push(sent);
            bench.rack.on_sent(&sent);
        }
        bench
    }

    fn sack(&mut self, now: u64, index: u64) {
        let mut delivered = Vec::new();
        let fack = self.board.highest_sacked();
        self.board.sack(SeqRange::new(index * S, S), &mut delivered);
        self.rack.on_ack(at(now), &delivered, fack, Some(RTT));
    }

    fn detect(&mut self, now: u64, in_recovery: bool) -> (bool, Option<Instant>) {
        let (min_rtt, srtt) = (Some(RTT), Some(RTT));
        let detection = Detection { now: at(now), min_rtt, srtt, in_recovery };
        self.rack.detect(&mut self.board, &detection)
    }

    fn resend(&mut self, now: u64) -> u64 {
        let seq = self.board.next_to_resend().unwrap().range.start;
        self.board.resend(seq, at(now), PacketState::default(), Snapshot::default());
        self.rack.on_sent(self.board.get(seq).unwrap());
        seq / S
    }
}

#[test]
fn a_gap_is_given_a_quarter_of_the_round_trip() {
    let mut bench = Bench::new(4);
    bench.sack(41, 1);
    // Segment 0, sent at 0, is due at 0 + rtt 40 + 40/4.
    assert_eq!(bench.detect(41, false), (false, Some(at(50))));
    assert_eq!(bench.detect(50, false), (true, None));
    assert_eq!(bench.resend(50), 0);
}

#[test]
fn without_reordering_three_above_close_the_window() {
    let mut bench = Bench::new(4);
    bench.sack(41, 1);
    bench.sack(42, 2);
    bench.sack(43, 3);
    assert_eq!(bench.detect(43, false), (true, None));
}

#[test]
fn once_reordering_was_seen_three_above_do_not() {
    let mut bench = Bench::new(6);
    bench.sack(42, 2);
    bench.sack(43, 1);
    bench.sack(43, 3);
    assert_eq!(bench.detect(43, false), (false, Some(at(50))), "0 + rtt 40 + 10");
}

#[test]
fn one_acknowledgement_tells_nothing_of_the_order_in_which_its_segments_came() {
    let mut bench = Bench::new(6);
    let mut delivered = Vec::new();
    // Segment 0 waits for a second one at the receiver; 2 comes instead and is reported with it.
    bench.board.sack(SeqRange::new(2 * S, S), &mut delivered);
    bench.board.acknowledge(S, &mut delivered);
    assert_eq!(delivered.iter().map(|sent| sent.range.start / S).collect::<Vec<_>>(), [2, 0]);
    bench.rack.on_ack(at(42), &delivered, 0, Some(RTT));
    assert!(!bench.rack.reordering_seen());
    bench.sack(43, 1);
    assert!(bench.rack.reordering_seen());
}

#[test]
fn a_lost_retransmission_is_found_by_later_data() {
    let mut bench = Bench::new(8);
    for index in 1..4 {
        bench.sack(40 + index, index);
    }
    assert!(bench.detect(43, false).0);
    assert_eq!(bench.resend(43), 0);
    // The arrival of a segment sent before the retransmission says nothing about it.
    bench.sack(47, 7);
    assert!(bench.detect(47, true).0, "4 to 6 were sent before 7");
    assert_eq!(bench.resend(47), 4);
    // The retransmission of 4, sent at 47, arrives: that of 0, sent at 43, is lost again.
    bench.sack(90, 4);
    assert!(bench.detect(90, true).0);
    assert_eq!(bench.board.get(0).map(|sent| sent.is_resent), Some(false));
}

#[test]
fn an_ambiguous_acknowledgement_is_ignored() {
    let mut bench = Bench::new(8);
    for index in 1..4 {
        bench.sack(40 + index, index);
    }
    bench.detect(43, false);
    bench.resend(43);
    // The original of 0 arrives after all: 4 ms is too quick for the retransmission.
    bench.sack(47, 0);
    assert_eq!(bench.rack.latest, Some((at(3), 4 * S)));
}

#[test]
fn duplicates_widen_the_window_once_per_round_for_sixteen_recoveries() {
    let mut bench = Bench::new(4);
    bench.rack.reordering_seen = true;
    bench.rack.on_dsack(0, 4 * S);
    bench.rack.on_dsack(S, 5 * S);
    bench.sack(41, 1);
    assert_eq!(bench.detect(41, false).1, Some(at(60)), "two quarters");
    bench.rack.on_dsack(4 * S, 6 * S);
    assert_eq!(bench.detect(41, false).1, Some(at(70)), "three quarters");
    (0..8).for_each(|step| bench.rack.on_dsack((6 + step) * S, (7 + step) * S));
    assert_eq!(bench.detect(41, false).1, Some(at(80)), "never more than srtt");
    (0..16).for_each(|_| bench.rack.on_recovery_end());
    assert_eq!(bench.detect(41, false).1, Some(at(50)), "one quarter again");
}
