use std::collections::BTreeMap;

use plait_pair::{CUSTOMER, Datagram, PROVIDER, Pair, Setup, number, packet};
use plait_proto::drop_reason::DropReason;
use plait_proto::time::Duration;
use proptest::collection::vec;
use proptest::prelude::*;

/// A pair with traffic, and captured datagrams of every kind and direction that were held back:
/// they are authentic and new to their receiver.
fn pair_with_held_datagrams() -> (Pair, Vec<Datagram>) {
    let mut pair = Pair::connected(Setup::default());
    let mut held: BTreeMap<(u8, usize), Datagram> = BTreeMap::new();
    for n in 0..20 {
        for side in [CUSTOMER, PROVIDER] {
            let before = pair.captured.len();
            pair.send(side, &[packet(side, 1, n)]);
            for datagram in pair.captured[before..].iter().cloned() {
                held.entry((datagram.bytes[0], datagram.to)).or_insert(datagram);
            }
        }
        pair.run_for(Duration::from_millis(10));
    }
    for datagram in &pair.captured {
        held.entry((datagram.bytes[0], datagram.to)).or_insert(datagram.clone());
    }
    (pair, held.into_values().collect())
}

/// Spec W-2, W-8, H-6: the clear part is authenticated too; macs that do not fit get no answer.
#[test]
fn every_flipped_bit_is_dropped_and_counted() {
    let (mut pair, held) = pair_with_held_datagrams();
    let kinds: Vec<u8> = held.iter().map(|datagram| datagram.bytes[0]).collect();
    for kind in [0x11, 0x12, 0x14, 0x15] {
        assert!(kinds.contains(&kind), "a datagram of kind {kind:#x} was captured");
    }
    for datagram in held {
        for bit in 0..datagram.bytes.len() * 8 {
            let mut flipped = datagram.bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let side = datagram.to;
            let (drops, delivered) = (pair.sides[side].drop_total(), pair.delivered[side].len());
            let sent = pair.captured.len();
            pair.inject(side, datagram.link, &flipped);
            let kind = datagram.bytes[0];
            assert_eq!(pair.sides[side].drop_total(), drops + 1, "kind {kind:#x} bit {bit}");
            assert_eq!(pair.delivered[side].len(), delivered, "kind {kind:#x} bit {bit}");
            assert_eq!(pair.captured.len(), sent, "kind {kind:#x} bit {bit} got an answer");
        }
    }
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 99)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.delivered[PROVIDER].last().map(|p| number(p)), Some(99), "the bond works on");
}

/// The handshake survives forged responses: the real one still works after them.
#[test]
fn a_forged_response_does_not_spoil_the_handshake() {
    let mut pair = Pair::new(Setup { links: 1, ..Setup::default() });
    pair.run_for(Duration::from_millis(5));
    let response = pair.captured.iter().find(|datagram| datagram.bytes[0] == 0x12);
    let response = response.expect("the provider answered").clone();
    for bit in (0..response.bytes.len() * 8).step_by(3) {
        let mut flipped = response.bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        pair.inject(CUSTOMER, 0, &flipped);
    }
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.paths_up(CUSTOMER), 1);
}

/// Spec K-8, H-5: a repeated initiation alone gets an answer, the one it got before.
#[test]
fn every_replayed_datagram_is_dropped() {
    let (mut pair, _) = pair_with_held_datagrams();
    pair.run_for(Duration::from_millis(200));
    for datagram in pair.captured.clone() {
        let side = datagram.to;
        let (drops, delivered) = (pair.sides[side].drop_total(), pair.delivered[side].len());
        pair.inject(side, datagram.link, &datagram.bytes);
        let is_cached = datagram.bytes[0] == 0x11;
        assert_eq!(pair.sides[side].drop_total(), drops + u64::from(!is_cached));
        assert_eq!(pair.delivered[side].len(), delivered);
    }
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
}

#[test]
fn cut_datagrams_are_dropped() {
    let (mut pair, held) = pair_with_held_datagrams();
    for datagram in held {
        for length in 1..datagram.bytes.len() {
            let drops = pair.sides[datagram.to].drop_total();
            pair.inject(datagram.to, datagram.link, &datagram.bytes[..length]);
            assert_eq!(pair.sides[datagram.to].drop_total(), drops + 1);
        }
    }
}

/// Spec W-1, V-1: other types and versions.
#[test]
fn oversized_and_unknown_datagrams_are_dropped() {
    let mut pair = Pair::connected(Setup::default());
    let mut oversized = vec![0; 65_508];
    oversized[0] = 0x14;
    pair.inject(PROVIDER, 0, &oversized);
    pair.inject(PROVIDER, 0, &[0x16; 64]);
    for first in [0x24, 0x05, 0xf5] {
        pair.inject(PROVIDER, 0, &[first; 64]);
    }
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::Oversized), 1);
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::UnknownType), 1);
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::OtherVersion), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Spec W-8: what cannot be authenticated has no effect.
    #[test]
    fn random_datagrams_have_no_effect(
        datagrams in vec((0_u8..6, vec(any::<u8>(), 0..300)), 1..200)
    ) {
        let mut pair = Pair::connected(Setup::default());
        for (kind, mut bytes) in datagrams {
            if let Some(first) = bytes.first_mut() {
                *first = 0x10 | kind;
            }
            pair.inject(PROVIDER, 0, &bytes);
        }
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 1)]);
        pair.run_for(Duration::from_millis(100));
        prop_assert_eq!(pair.delivered[PROVIDER].len(), 1);
    }
}
