//! A bond whose links are all metered, and that nobody needs for a long time.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, bond_config, number, packet};
use plait_proto::config::{Order, RekeyLimits};
use plait_proto::scheduler::Algorithm;
use plait_proto::stats::PathState;
use plait_proto::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn metered() -> Pair {
    Pair::connected(Setup { metered: vec![0, 1], ..Setup::default() })
}

fn states(pair: &mut Pair, side: usize) -> Vec<PathState> {
    let status = pair.sides[side].status(pair.now);
    status.peers[0].paths.iter().map(|path| path.state).collect()
}

fn handshakes(pair: &mut Pair, side: usize) -> u64 {
    pair.sides[side].status(pair.now).peers[0].handshakes
}

fn numbers(pair: &Pair, side: usize) -> Vec<u32> {
    pair.delivered[side].iter().map(|packet| number(packet)).collect()
}

/// Spec K-6a, P-5c: nothing is renewed, nothing is sent.
#[test]
fn regression_an_idle_bond_of_metered_links_renews_nothing() {
    let mut pair = metered();
    pair.run_for(HOUR);
    for link in 0..2 {
        let sent = pair.captured.iter().filter(|datagram| datagram.link == link).count();
        assert!(sent <= 20, "{sent} datagrams over link {link}");
    }
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(states(&mut pair, side), [PathState::Asleep; 2]);
        assert_eq!(handshakes(&mut pair, side), 1);
    }
}

/// Spec K-6a: either side initiates, whichever made the session, and keeps the packet.
#[test]
fn a_packet_of_either_side_wakes_a_bond_however_long_it_slept() {
    for from in [CUSTOMER, PROVIDER] {
        // Round the times at which a session is to be renewed and is too old.
        for slept_ms in [
            60_000, 119_490, 119_510, 150_000, 170_000, 179_470, 179_510, 185_000, 400_000,
            3_600_000,
        ] {
            let mut pair = metered();
            pair.run_for(Duration::from_millis(slept_ms));
            for n in 0..100 {
                pair.send(from, &[packet(from, 1, n)]);
                pair.run_for(Duration::from_millis(3));
            }
            pair.run_for(Duration::from_millis(100));
            let all: Vec<u32> = (0..100).collect();
            assert_eq!(numbers(&pair, 1 - from), all, "side {from} after {slept_ms} ms");
            for side in [CUSTOMER, PROVIDER] {
                assert_eq!(states(&mut pair, side), [PathState::Up; 2]);
                let events = format!("{:?}", pair.events[side]);
                assert!(!events.contains("BondDown"), "the bond is the same");
            }
        }
    }
}

/// Spec K-6a: the handshake at once, then the challenge.
#[test]
fn a_single_packet_arrives_within_a_few_round_trips_of_a_long_sleep() {
    for from in [CUSTOMER, PROVIDER] {
        let mut pair = metered();
        pair.run_for(HOUR);
        pair.send(from, &[packet(from, 1, 7)]);
        // The handshake, the challenge, and the packet: the quicker link needs 10 ms for both ways.
        pair.run_for(Duration::from_millis(30));
        assert_eq!(numbers(&pair, 1 - from), [7], "from side {from}");
        pair.send(1 - from, &[packet(1 - from, 1, 8)]);
        pair.run_for(Duration::from_millis(6));
        assert_eq!(numbers(&pair, from), [8], "an answer finds its path awake");
        pair.run_for(HOUR);
        assert_eq!([handshakes(&mut pair, CUSTOMER), handshakes(&mut pair, PROVIDER)], [2, 2]);
    }
}

#[test]
fn both_sides_may_wake_a_bond_at_the_same_time() {
    let mut pair = metered();
    pair.run_for(HOUR);
    for n in 0..50 {
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &[packet(side, 1, n)]);
        }
        pair.run_for(Duration::from_millis(5));
    }
    pair.run_for(Duration::from_millis(200));
    let all: Vec<u32> = (0..50).collect();
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(numbers(&pair, side), all);
    }
}

/// Spec K-6a: 60 s after the first initiation.
#[test]
fn a_sleeping_bond_whose_peer_is_gone_is_given_up_once_somebody_needs_it() {
    for from in [CUSTOMER, PROVIDER] {
        let mut pair = metered();
        pair.run_for(HOUR);
        pair.dead[1 - from] = true;
        pair.send(from, &[packet(from, 1, 1)]);
        pair.run_for(Duration::from_secs(59));
        assert_eq!(states(&mut pair, from), [PathState::Asleep; 2]);
        pair.run_for(Duration::from_secs(2));
        assert_eq!(states(&mut pair, from), []);
        pair.restart(1 - from);
        pair.run_for(Duration::from_secs(6));
        pair.send(from, &[packet(from, 1, 2)]);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(numbers(&pair, 1 - from), [2], "from side {from}");
    }
}

#[test]
fn a_sleeping_bond_survives_the_restart_of_the_listening_side() {
    let mut pair = metered();
    pair.run_for(HOUR);
    pair.restart(PROVIDER);
    pair.run_for(HOUR);
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 7)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&pair, PROVIDER), [7]);
}

#[test]
fn a_link_that_comes_to_a_sleeping_bond_is_used() {
    let mut pair = metered();
    pair.run_for(HOUR);
    pair.plug(2);
    pair.run_for(Duration::from_secs(1));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(states(&mut pair, side), [PathState::Up; 3]);
    }
    pair.send(PROVIDER, &[packet(PROVIDER, 1, 7)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&pair, CUSTOMER), [7]);
}

#[test]
fn a_bond_with_a_plain_path_is_renewed_as_before() {
    let mut pair = Pair::connected(Setup { metered: vec![1], ..Setup::default() });
    pair.run_for(HOUR);
    assert_eq!(handshakes(&mut pair, CUSTOMER), 31);
    assert_eq!(states(&mut pair, CUSTOMER), [PathState::Up, PathState::Asleep]);
}

#[test]
fn a_bond_that_falls_asleep_while_it_is_renewed_is_given_up_as_before() {
    let rekey = RekeyLimits {
        rekey_after: Duration::from_secs(8),
        reject_after: Duration::from_secs(20),
        ..RekeyLimits::default()
    };
    let mut bond = bond_config(Algorithm::RoundRobin, Order::Bond);
    bond.rekey = rekey;
    let mut pair = Pair::connected(Setup { bond, metered: vec![0, 1], ..Setup::default() });
    for link in &mut pair.links {
        link.up = false;
    }
    pair.run_for(Duration::from_secs(21));
    assert_eq!(states(&mut pair, CUSTOMER), []);
    for link in &mut pair.links {
        link.up = true;
    }
    pair.run_for(Duration::from_secs(6));
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 7)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&pair, PROVIDER), [7]);
}
