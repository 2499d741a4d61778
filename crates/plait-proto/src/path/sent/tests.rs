//! Acknowledgements, losses and what is kept for them.

use super::*;
use crate::seq::BondSeq;
use crate::wire::sealed::SendTimestamp;

fn run(low: u64, high: u64) -> core::iter::Once<NumberRange> {
    core::iter::once(NumberRange { low, high })
}

fn filled(count: u64) -> SentDatagrams {
    let mut sent = SentDatagrams::default();
    for n in 0..count {
        sent.sent(Instant::from_millis(n), 1000);
    }
    sent
}

/// An acknowledgement that comes at `at_ms` and waited nowhere on its way.
fn acked(
    sent: &mut SentDatagrams,
    at_ms: u64,
    arrived: core::iter::Once<NumberRange>,
) -> AckOutcome {
    sent.acked(Instant::from_millis(at_ms), Duration::ZERO, arrived)
}

#[test]
fn an_acknowledgement_takes_bytes_out_of_flight() {
    let mut sent = filled(10);
    let outcome = acked(&mut sent, 20, run(0, 3));
    assert_eq!(outcome.elapsed, Some(Duration::from_millis(17)));
    assert_eq!(sent.in_flight_bytes(), 6000);
    let again = acked(&mut sent, 21, run(0, 3));
    assert_eq!(again, AckOutcome::default(), "the same again shows nothing new");
    assert!(outcome.is_news && outcome.acked_datagrams == 4);
}

#[test]
fn a_gap_is_lost_after_three_later_ones() {
    let mut sent = filled(10);
    assert_eq!(acked(&mut sent, 20, run(1, 2)).lost_datagrams, 0);
    assert_eq!(acked(&mut sent, 20, run(1, 3)).lost_datagrams, 1);
    assert_eq!(sent.in_flight_bytes(), 6000);
}

#[test]
fn what_was_never_sent_has_no_effect() {
    let mut sent = filled(3);
    assert_eq!(acked(&mut sent, 5, run(0, 3)), AckOutcome::default());
    assert_eq!(sent.in_flight_bytes(), 3000);
}

#[test]
fn the_rate_is_what_arrives() {
    let mut sent = SentDatagrams::default();
    // One datagram of 1000 bytes each millisecond is 8 Mbit/s; each is acknowledged 10 ms on.
    for n in 0..200_u64 {
        sent.sent(Instant::from_millis(n), 1000);
        if n >= 10 {
            acked(&mut sent, n, run(n - 10, n - 10));
        }
    }
    let rate = sent.delivery_rate().bits_per_second();
    assert!((7_000_000..=9_000_000).contains(&rate), "{rate}");
}

#[test]
fn the_rate_is_that_of_arrivals_whatever_held_up_their_acknowledgements() {
    let mut sent = filled(2);
    sent.acked(Instant::from_millis(60), Duration::from_millis(30), run(0, 0));
    for _ in 0..29 {
        sent.sent(Instant::from_millis(60), 1000);
    }
    let outcome = acked(&mut sent, 120, run(1, 30));
    let rate = outcome.newest.map(|newest| newest.delivery_rate().bits_per_second());
    assert_eq!(rate, Some(30 * 8_000_000 / 90), "30 kB between 30 and 120 ms");
}

#[test]
fn what_is_lost_last_does_not_stay_in_flight() {
    let mut sent = filled(10);
    acked(&mut sent, 20, run(0, 7));
    sent.expire(Instant::from_millis(9));
    assert_eq!(sent.in_flight_bytes(), 1000, "the one sent at 9 ms may still come");
    sent.expire(Instant::from_millis(10));
    assert_eq!(sent.in_flight_bytes(), 0);
}

#[test]
fn what_is_kept_is_what_may_have_to_be_sent_again() {
    let mut sent = SentDatagrams::default();
    for n in 0..8_u16 {
        sent.sent(Instant::from_millis(n.into()), 1000);
        let prefix =
            DataPrefix { seq: BondSeq(n.into()).truncate(), prev: 1, sent: SendTimestamp(0) };
        sent.keep(prefix, Instant::ZERO, &[n as u8; 100]);
    }
    acked(&mut sent, 20, run(2, 5));
    assert_eq!(sent.kept_bytes(), 200, "four arrived, and three later ones show two lost");
    let packets = sent.forget_all();
    let first_bytes: Vec<u8> = packets.iter().map(|kept| kept.bytes[0]).collect();
    assert_eq!(first_bytes, [6, 7]);
    assert_eq!((sent.kept_bytes(), sent.in_flight_bytes()), (0, 0));
}

#[test]
fn a_packet_found_lost_that_arrives_is_recovered() {
    let mut sent = filled(10);
    assert_eq!(acked(&mut sent, 20, run(1, 5)).lost_datagrams, 1);
    let outcome = acked(&mut sent, 21, run(0, 6));
    assert_eq!((outcome.recovered_datagrams, outcome.acked_datagrams), (1, 1));
}

#[test]
fn large_losses_count_since_the_last_large_arrival() {
    let mut sent = SentDatagrams::default();
    sent.count_large_above(1280);
    for number in 0..20 {
        sent.sent(Instant::from_millis(number), if number % 2 == 0 { 1500 } else { 100 });
    }
    acked(&mut sent, 30, run(7, 7));
    assert_eq!(sent.large_lost(), 3, "0, 2 and 4");
    acked(&mut sent, 30, run(6, 6));
    assert_eq!(sent.large_lost(), 0, "a later large one arrived");
    acked(&mut sent, 30, run(17, 17));
    assert_eq!(sent.large_lost(), 4, "8, 10, 12 and 14");
    sent.expire(Instant::from_millis(100));
    assert_eq!(sent.large_lost(), 6, "16 and 18");
    sent.count_large_above(1280);
    assert_eq!(sent.large_lost(), 0);
}

/// Sixty acknowledgements fit a datagram; each once walked all that was on its way.
#[test]
fn regression_the_same_acknowledgement_again_walks_nothing() {
    let mut sent = filled(60_000);
    for _ in 0..60 {
        acked(&mut sent, 70_000, run(30_000, 59_999));
    }
    assert_eq!(sent.in_flight_bytes(), 0);
    assert!(sent.slots_walked() <= 60_000 + 60, "{}", sent.slots_walked());
    let mut overtaken = filled(60_000);
    overtaken.collect_lost();
    overtaken.reordering = REORDERING_MAX;
    for _ in 0..60 {
        acked(&mut overtaken, 60_000, run(10, 10));
    }
    assert!(overtaken.slots_walked() <= 100, "{}", overtaken.slots_walked());
}

#[test]
fn memory_is_bounded() {
    assert!(size_of::<Sent>() <= 64, "docs/threat-model.md counts 64 bytes for each");
    let sent = filled(OUTSTANDING_MAX as u64 + 10);
    assert_eq!(sent.outstanding.len(), OUTSTANDING_MAX);
    assert_eq!(sent.in_flight_bytes(), OUTSTANDING_MAX as u64 * 1000);
}
