use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, number, packet, public_key};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Event;
use plait_proto::session::PresharedKey;
use plait_proto::time::Duration;

#[test]
fn both_paths_come_up() {
    let pair = Pair::connected(Setup::default());
    for side in [CUSTOMER, PROVIDER] {
        let peer = public_key(1 - side);
        assert_eq!(pair.events[side].first(), Some(&Event::BondUp(peer)));
    }
}

#[test]
fn ipv6_outside() {
    Pair::connected(Setup { ipv6: true, ..Setup::default() });
}

/// Spec H-8: the initiation goes over every path that may work.
#[test]
fn each_path_alone_starts_the_bond() {
    for alone in 0..3 {
        let mut pair = Pair::new(Setup { links: 3, ..Setup::default() });
        for (at, link) in pair.links.iter_mut().enumerate() {
            link.up = at == alone;
        }
        pair.run_for(Duration::from_secs(2));
        assert_eq!(pair.paths_up(CUSTOMER), 1, "link {alone}");
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 7)]);
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.delivered[PROVIDER].iter().map(|p| number(p)).collect::<Vec<_>>(), [7]);
    }
}

#[test]
fn a_link_that_comes_later_joins() {
    let mut pair = Pair::new(Setup::default());
    pair.links[1].up = false;
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.paths_up(CUSTOMER), 1);
    pair.links[1].up = true;
    pair.run_for(Duration::from_secs(6));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
}

/// Spec H-5, H-8: the same initiation over two paths, the same response over both.
#[test]
fn a_copy_of_the_initiation_gets_the_same_response() {
    let mut pair = Pair::new(Setup::default());
    pair.run_for(Duration::from_millis(100));
    let of_kind = |kind: u8| {
        let all = pair.captured.iter().filter(|datagram| datagram.bytes[0] == kind);
        all.map(|datagram| datagram.bytes.clone()).collect::<Vec<_>>()
    };
    let (initiations, responses) = (of_kind(0x11), of_kind(0x12));
    assert_eq!(initiations.len(), 2);
    assert_eq!(initiations[0], initiations[1]);
    assert_eq!(responses.len(), 2);
    assert_eq!(responses[0], responses[1]);
}

/// Spec H-1: the preshared key is part of the handshake.
#[test]
fn another_preshared_key_is_refused() {
    let psk = [PresharedKey::from_bytes([1; 32]), PresharedKey::from_bytes([2; 32])];
    let mut pair = Pair::new(Setup { psk, ..Setup::default() });
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.paths_up(CUSTOMER), 0);
    assert!(pair.sides[CUSTOMER].drop_count(DropReason::BadHandshake) > 0);
}

/// Spec H-5.
#[test]
fn a_replayed_initiation_is_stale() {
    let mut pair = Pair::connected(Setup::default());
    let first = pair.captured[0].clone();
    assert_eq!(first.bytes[0], 0x11);
    pair.restart(CUSTOMER);
    pair.run_for(Duration::from_secs(1));
    let before = pair.sides[PROVIDER].drop_count(DropReason::StaleTimestamp);
    pair.inject(PROVIDER, 0, &first.bytes);
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::StaleTimestamp), before + 1);
}

#[test]
fn the_bond_returns_after_either_side_restarts() {
    for side in [CUSTOMER, PROVIDER] {
        let mut pair = Pair::connected(Setup::default());
        pair.run_for(Duration::from_secs(1));
        pair.restart(side);
        for n in 0..40 {
            pair.run_for(Duration::from_millis(100));
            pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        }
        assert_eq!(pair.paths_up(CUSTOMER), 2, "side {side}");
        assert_eq!(pair.delivered[PROVIDER].last().map(|p| number(p)), Some(38), "side {side}");
    }
}

#[test]
fn both_sides_may_start_at_once() {
    for lag_ms in [0, 1, 4, 6, 20] {
        let setup = Setup { both_seek: true, ..Setup::default() };
        let mut pair = Pair::new_with_lag(setup, Duration::from_millis(lag_ms));
        pair.run_for(Duration::from_secs(1));
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &(0..50).map(|n| packet(side, 1, n)).collect::<Vec<_>>());
            pair.run_for(Duration::from_millis(200));
            assert_eq!(pair.delivered[1 - side].len(), 50, "from side {side}, lag {lag_ms} ms");
            let made = pair.events[side].iter().filter(|e| matches!(e, Event::BondUp(_))).count();
            assert_eq!(made, 1, "one bond at side {side}, lag {lag_ms} ms");
        }
    }
}

#[test]
fn secrets_are_given_out_only_to_who_asked_before() {
    let mut pair = Pair::new(Setup::default());
    pair.sides[CUSTOMER].log_secrets();
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.paths_up(CUSTOMER), 2);
    let side = &mut pair.sides[CUSTOMER];
    let lines = std::iter::from_fn(|| side.poll_secret()).map(|secret| secret.line().to_string());
    let lines: Vec<String> = lines.collect();
    assert_eq!(lines.len(), 2, "one for each direction");
    assert!(lines.iter().all(|line| line.starts_with("PLAIT1_DIRECTION ")), "{lines:?}");
    assert_ne!(lines[0], lines[1]);
    assert!(pair.sides[PROVIDER].poll_secret().is_none());
}
