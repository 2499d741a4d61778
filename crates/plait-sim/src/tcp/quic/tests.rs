use plait_proto::congestion::PacketState;

use super::*;
use crate::tcp::delivery_rate::Snapshot;
use crate::tcp::segment::SeqRange;

const S: u64 = 1000;
const RTT: Duration = Duration::from_millis(40);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Segments sent 1 ms apart, from 0 on; segment n goes in packet n + 1.
struct Bench {
    quic: Quic,
    board: Scoreboard,
}

impl Bench {
    fn new(count: u64) -> Self {
        let mut bench = Self { quic: Quic::default(), board: Scoreboard::default() };
        bench.quic.on_rtt(RTT);
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
            assert_eq!(bench.quic.on_sent(&sent), index + 1);
        }
        bench
    }

    /// The packet `number`, which carried segment `index`, is acknowledged.
    fn ack(&mut self, number: u64, index: u64) {
        self.board.sack(SeqRange::new(index * S, S), &mut Vec::new());
        self.quic.on_ack(number);
    }

    fn detect(&mut self, millis: u64) -> (bool, Option<Instant>) {
        self.quic.detect(&mut self.board, at(millis), Some(RTT))
    }

    /// The lost segments that are not retransmitted yet.
    fn lost(&self, count: u64) -> Vec<u64> {
        let is_lost = |index: &u64| {
            self.board.get(index * S).is_some_and(|sent| sent.is_lost && !sent.is_resent)
        };
        (0..count).filter(is_lost).collect()
    }

    fn resend(&mut self, millis: u64) -> u64 {
        let seq = self.board.next_to_resend().unwrap().range.start;
        self.board.resend(seq, at(millis), PacketState::default(), Snapshot::default());
        self.quic.on_sent(self.board.get(seq).unwrap())
    }
}

/// RFC 9002 section 6.1.1.
#[test]
fn a_packet_is_lost_when_one_sent_three_later_was_acknowledged() {
    let mut bench = Bench::new(10);
    bench.ack(3, 2);
    assert!(!bench.detect(10).0, "two later");
    bench.ack(4, 3);
    assert!(bench.detect(10).0, "three later");
    assert_eq!(bench.lost(10), [0], "packet 2 has one two later");
}

/// RFC 9002 section 6.1.2.
#[test]
fn a_packet_is_lost_nine_eighths_of_a_round_trip_after_it_left() {
    let mut bench = Bench::new(3);
    bench.ack(2, 1);
    assert_eq!(bench.detect(44), (false, Some(at(45))), "45 ms after it left at 0");
    assert_eq!(bench.detect(45), (true, None));
    assert_eq!(bench.lost(3), [0], "nothing sent later than packet 3 has arrived");
}

#[test]
fn the_longer_of_smoothed_and_latest_round_trip_counts_and_a_millisecond_at_least() {
    let mut quic = Quic::default();
    quic.on_rtt(Duration::from_millis(80));
    assert_eq!(quic.time_threshold(Some(RTT)), Duration::from_millis(90));
    quic.on_rtt(Duration::from_millis(8));
    assert_eq!(quic.time_threshold(Some(RTT)), Duration::from_millis(45));
    quic.on_rtt(Duration::from_micros(100));
    assert_eq!(quic.time_threshold(None), GRANULARITY);
}

/// An original that arrives after its retransmission was sent has the original's number: it says
/// nothing about packets sent in between.
#[test]
fn a_late_original_is_not_taken_for_its_retransmission() {
    let mut bench = Bench::new(5);
    bench.ack(4, 3);
    assert!(bench.detect(10).0);
    assert_eq!(bench.resend(11), 6);
    bench.ack(1, 0);
    assert!(!bench.detect(12).0, "the highest number that arrived is still 4");
    assert_eq!(bench.lost(5), [] as [u64; 0]);
}

/// RFC 9002 section 7.3.2: one answer per round trip.
#[test]
fn losses_of_what_left_before_the_event_began_belong_to_it() {
    let mut bench = Bench::new(10);
    bench.ack(4, 3);
    assert!(bench.detect(10).0 && bench.quic.begin_event());
    assert!(!bench.quic.is_recovered());
    bench.ack(8, 7);
    assert!(bench.detect(11).0, "packets 2, 3 and 5");
    assert!(!bench.quic.begin_event(), "they left before");
    assert_eq!(bench.lost(10), [0, 1, 2, 4]);
}

#[test]
fn an_event_ends_when_something_sent_after_it_began_arrives() {
    let mut bench = Bench::new(5);
    bench.ack(4, 3);
    assert!(bench.detect(10).0 && bench.quic.begin_event());
    assert_eq!(bench.resend(11), 6);
    bench.ack(5, 4);
    assert!(!bench.quic.is_recovered());
    bench.ack(6, 0);
    assert!(bench.quic.is_recovered());
    // Its own loss would be a new one.
    bench.quic.on_ack(99);
    assert_eq!(bench.quic.largest_acked, 6, "a number never given");
}

/// RFC 9002 section 6.2.1.
#[test]
fn a_probe_waits_for_the_delayed_acknowledgement_too() {
    let ms = Duration::from_millis;
    assert_eq!(probe_timeout(ms(40), ms(5)), ms(40 + 20 + 25));
    assert_eq!(probe_timeout(ms(40), Duration::ZERO), ms(40 + 1 + 25));
}
