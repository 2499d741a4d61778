//! The guard against replayed initiations, and clocks that were set back (spec H-5, H-12).

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, packet};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Event;
use plait_proto::time::Duration;

const REFUSAL_BYTES: usize = 104;

/// Spec H-12: the initiator takes a greater timestamp and begins anew at once.
#[test]
fn a_clock_that_was_set_back_costs_one_round_trip() {
    let mut pair = Pair::new(Setup::default());
    pair.restart_at(CUSTOMER, 1_000_000);
    pair.run_for(Duration::from_millis(500));
    for _ in 0..3 {
        pair.restart_at(CUSTOMER, 0);
        // Two round trips of the quick path for the handshake, one for the check of the slow one.
        pair.run_for(Duration::from_millis(20 + 60));
        assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
        pair.run_for(Duration::from_secs(1));
    }
    assert!(pair.sides[PROVIDER].drop_count(DropReason::StaleTimestamp) >= 3);
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::StaleTimestamp), 1);
}

/// Spec H-12: it takes only greater ones from then on.
#[test]
fn a_session_is_renewed_after_the_clock_was_set_back() {
    let mut pair = Pair::new(Setup::default());
    pair.restart_at(CUSTOMER, 1_000_000);
    pair.run_for(Duration::from_millis(500));
    pair.restart_at(CUSTOMER, 0);
    pair.run_for(Duration::from_secs(400));
    assert!(pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes >= 3);
    let told = pair.sides[CUSTOMER].drop_count(DropReason::StaleTimestamp);
    assert_eq!(told, 1, "the customer does not forget what it was told");
}

/// Spec H-5, H-12: stale, and refused at most once in 250 ms.
#[test]
fn a_replayed_old_initiation_gets_few_answers_and_has_no_effect() {
    let mut pair = Pair::connected(Setup::default());
    let old = pair.captured[0].bytes.clone();
    pair.restart(CUSTOMER);
    pair.run_for(Duration::from_secs(1));
    let before = pair.sides[PROVIDER].status(pair.now);
    pair.events = [Vec::new(), Vec::new()];
    let attacker = ([198, 51, 100, 1], 4000).into();
    // As fast as is worked on without a cookie.
    for n in 0..100 {
        pair.inject_from(PROVIDER, attacker, &old);
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        pair.run_for(Duration::from_millis(10));
    }
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.astray.len(), 4, "one answer every 250 ms");
    assert!(pair.astray.iter().all(|(_, bytes)| bytes.len() == REFUSAL_BYTES));
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::StaleTimestamp), 100);
    assert_eq!(pair.delivered[PROVIDER].len(), 100);
    assert_eq!(pair.events[PROVIDER], Vec::<Event>::new());
    let after = pair.sides[PROVIDER].status(pair.now);
    assert_eq!(before.peers[0].handshakes, after.peers[0].handshakes);
}

/// Spec H-12.
#[test]
fn a_refusal_is_of_use_to_its_initiation_only() {
    let mut pair = Pair::new(Setup { links: 1, ..Setup::default() });
    pair.restart_at(CUSTOMER, 1_000_000);
    pair.run_for(Duration::from_millis(500));
    pair.restart_at(CUSTOMER, 0);
    pair.run_for(Duration::from_millis(5));
    let refusal = pair.captured.last().expect("the provider refused").bytes.clone();
    assert_eq!((refusal[0], refusal.len()), (0x12, REFUSAL_BYTES));
    let sent = pair.captured.len();
    for bit in 0..refusal.len() * 8 {
        let mut flipped = refusal.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        pair.inject(CUSTOMER, 0, &flipped);
        assert_eq!(pair.captured.len(), sent, "bit {bit}");
    }
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.paths_up(CUSTOMER), 1);
    let sent = pair.captured.len();
    pair.inject(CUSTOMER, 0, &refusal);
    assert_eq!(pair.captured.len(), sent, "a repeated one has no effect");
}
