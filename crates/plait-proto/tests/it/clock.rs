//! The guard against replayed initiations, and clocks that were set back (spec H-5, H-12).

use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Event;
use plait_proto::time::Duration;

use crate::harness::{CUSTOMER, PROVIDER, Setup, World, packet};

const REFUSAL_BYTES: usize = 104;

/// Spec H-12: the initiator takes a greater timestamp and begins anew at once.
#[test]
fn a_clock_that_was_set_back_costs_one_round_trip() {
    let mut world = World::new(Setup::default());
    world.restart_at(CUSTOMER, 1_000_000);
    world.run_for(Duration::from_millis(500));
    for _ in 0..3 {
        world.restart_at(CUSTOMER, 0);
        // Two round trips of the quick path for the handshake, one for the check of the slow one.
        world.run_for(Duration::from_millis(20 + 60));
        assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [2, 2]);
        world.run_for(Duration::from_secs(1));
    }
    assert!(world.sides[PROVIDER].drop_count(DropReason::StaleTimestamp) >= 3);
    assert_eq!(world.sides[CUSTOMER].drop_count(DropReason::StaleTimestamp), 1);
}

/// Spec H-12: it takes only greater ones from then on.
#[test]
fn a_session_is_renewed_after_the_clock_was_set_back() {
    let mut world = World::new(Setup::default());
    world.restart_at(CUSTOMER, 1_000_000);
    world.run_for(Duration::from_millis(500));
    world.restart_at(CUSTOMER, 0);
    world.run_for(Duration::from_secs(400));
    assert!(world.sides[CUSTOMER].status(world.now).peers[0].handshakes >= 3);
    let told = world.sides[CUSTOMER].drop_count(DropReason::StaleTimestamp);
    assert_eq!(told, 1, "the customer does not forget what it was told");
}

/// Spec H-5, H-12: stale, and refused at most once in 250 ms.
#[test]
fn a_replayed_old_initiation_gets_few_answers_and_has_no_effect() {
    let mut world = World::connected(Setup::default());
    let old = world.captured[0].bytes.clone();
    world.restart(CUSTOMER);
    world.run_for(Duration::from_secs(1));
    let before = world.sides[PROVIDER].status(world.now);
    world.events = [Vec::new(), Vec::new()];
    let attacker = ([198, 51, 100, 1], 4000).into();
    // As fast as is worked on without a cookie.
    for n in 0..100 {
        world.inject_from(PROVIDER, attacker, &old);
        world.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        world.run_for(Duration::from_millis(10));
    }
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.astray.len(), 4, "one answer every 250 ms");
    assert!(world.astray.iter().all(|(_, bytes)| bytes.len() == REFUSAL_BYTES));
    assert_eq!(world.sides[PROVIDER].drop_count(DropReason::StaleTimestamp), 100);
    assert_eq!(world.delivered[PROVIDER].len(), 100);
    assert_eq!(world.events[PROVIDER], Vec::<Event>::new());
    let after = world.sides[PROVIDER].status(world.now);
    assert_eq!(before.peers[0].handshakes, after.peers[0].handshakes);
}

/// Spec H-12.
#[test]
fn a_refusal_is_of_use_to_its_initiation_only() {
    let mut world = World::new(Setup { links: 1, ..Setup::default() });
    world.restart_at(CUSTOMER, 1_000_000);
    world.run_for(Duration::from_millis(500));
    world.restart_at(CUSTOMER, 0);
    world.run_for(Duration::from_millis(5));
    let refusal = world.captured.last().expect("the provider refused").bytes.clone();
    assert_eq!((refusal[0], refusal.len()), (0x12, REFUSAL_BYTES));
    let sent = world.captured.len();
    for bit in 0..refusal.len() * 8 {
        let mut flipped = refusal.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        world.inject(CUSTOMER, 0, &flipped);
        assert_eq!(world.captured.len(), sent, "bit {bit}");
    }
    world.run_for(Duration::from_millis(300));
    assert_eq!(world.paths_up(CUSTOMER), 1);
    let sent = world.captured.len();
    world.inject(CUSTOMER, 0, &refusal);
    assert_eq!(world.captured.len(), sent, "a repeated one has no effect");
}
