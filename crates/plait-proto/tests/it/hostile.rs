use std::collections::BTreeMap;

use plait_proto::drop_reason::DropReason;
use plait_proto::time::Duration;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness::{CUSTOMER, Captured, PROVIDER, Setup, World, number, packet};

/// A world with traffic, and captured datagrams of every kind and direction that were held back:
/// they are authentic and new to their receiver.
fn world_with_held_datagrams() -> (World, Vec<Captured>) {
    let mut world = World::connected(Setup::default());
    let mut held: BTreeMap<(u8, usize), Captured> = BTreeMap::new();
    for n in 0..20 {
        for side in [CUSTOMER, PROVIDER] {
            let before = world.captured.len();
            world.send(side, &[packet(side, 1, n)]);
            for datagram in world.captured[before..].iter().cloned() {
                held.entry((datagram.bytes[0], datagram.to)).or_insert(datagram);
            }
        }
        world.run_for(Duration::from_millis(10));
    }
    for datagram in &world.captured {
        held.entry((datagram.bytes[0], datagram.to)).or_insert(datagram.clone());
    }
    (world, held.into_values().collect())
}

/// Spec W-2, W-8, H-6: the clear part is authenticated too; macs that do not fit get no answer.
#[test]
fn every_flipped_bit_is_dropped_and_counted() {
    let (mut world, held) = world_with_held_datagrams();
    let kinds: Vec<u8> = held.iter().map(|datagram| datagram.bytes[0]).collect();
    for kind in [0x11, 0x12, 0x14, 0x15] {
        assert!(kinds.contains(&kind), "a datagram of kind {kind:#x} was captured");
    }
    for datagram in held {
        for bit in 0..datagram.bytes.len() * 8 {
            let mut flipped = datagram.bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let side = datagram.to;
            let (drops, delivered) = (world.sides[side].drop_total(), world.delivered[side].len());
            let sent = world.captured.len();
            world.inject(side, datagram.link, &flipped);
            let kind = datagram.bytes[0];
            assert_eq!(world.sides[side].drop_total(), drops + 1, "kind {kind:#x} bit {bit}");
            assert_eq!(world.delivered[side].len(), delivered, "kind {kind:#x} bit {bit}");
            assert_eq!(world.captured.len(), sent, "kind {kind:#x} bit {bit} got an answer");
        }
    }
    world.send(CUSTOMER, &[packet(CUSTOMER, 1, 99)]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.delivered[PROVIDER].last().map(|p| number(p)), Some(99), "the bond works on");
}

/// The handshake survives forged responses: the real one still works after them.
#[test]
fn a_forged_response_does_not_spoil_the_handshake() {
    let mut world = World::new(Setup { links: 1, ..Setup::default() });
    world.run_for(Duration::from_millis(5));
    let response = world.captured.iter().find(|datagram| datagram.bytes[0] == 0x12);
    let response = response.expect("the provider answered").clone();
    for bit in (0..response.bytes.len() * 8).step_by(3) {
        let mut flipped = response.bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        world.inject(CUSTOMER, 0, &flipped);
    }
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.paths_up(CUSTOMER), 1);
}

/// Spec K-8, H-5: a repeated initiation alone gets an answer, the one it got before.
#[test]
fn every_replayed_datagram_is_dropped() {
    let (mut world, _) = world_with_held_datagrams();
    world.run_for(Duration::from_millis(200));
    for datagram in world.captured.clone() {
        let side = datagram.to;
        let (drops, delivered) = (world.sides[side].drop_total(), world.delivered[side].len());
        world.inject(side, datagram.link, &datagram.bytes);
        let is_cached = datagram.bytes[0] == 0x11;
        assert_eq!(world.sides[side].drop_total(), drops + u64::from(!is_cached));
        assert_eq!(world.delivered[side].len(), delivered);
    }
    assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [2, 2]);
}

#[test]
fn cut_datagrams_are_dropped() {
    let (mut world, held) = world_with_held_datagrams();
    for datagram in held {
        for length in 1..datagram.bytes.len() {
            let drops = world.sides[datagram.to].drop_total();
            world.inject(datagram.to, datagram.link, &datagram.bytes[..length]);
            assert_eq!(world.sides[datagram.to].drop_total(), drops + 1);
        }
    }
}

/// Spec W-1: other types and versions.
#[test]
fn oversized_and_unknown_datagrams_are_dropped() {
    let mut world = World::connected(Setup::default());
    let mut oversized = vec![0; 65_508];
    oversized[0] = 0x14;
    world.inject(PROVIDER, 0, &oversized);
    world.inject(PROVIDER, 0, &[0x16; 64]);
    world.inject(PROVIDER, 0, &[0x24; 64]);
    assert_eq!(world.sides[PROVIDER].drop_count(DropReason::Oversized), 1);
    assert_eq!(world.sides[PROVIDER].drop_count(DropReason::UnknownType), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Spec W-8: what cannot be authenticated has no effect.
    #[test]
    fn random_datagrams_have_no_effect(
        datagrams in vec((0_u8..6, vec(any::<u8>(), 0..300)), 1..200)
    ) {
        let mut world = World::connected(Setup::default());
        for (kind, mut bytes) in datagrams {
            if let Some(first) = bytes.first_mut() {
                *first = 0x10 | kind;
            }
            world.inject(PROVIDER, 0, &bytes);
        }
        world.send(CUSTOMER, &[packet(CUSTOMER, 1, 1)]);
        world.run_for(Duration::from_millis(100));
        prop_assert_eq!(world.delivered[PROVIDER].len(), 1);
    }
}
