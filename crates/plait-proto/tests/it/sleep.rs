//! A bond whose links are all metered, and that nobody needs for a long time.

use plait_proto::config::{Order, RekeyLimits};
use plait_proto::scheduler::Algorithm;
use plait_proto::stats::PathState;
use plait_proto::time::Duration;

use crate::harness::{CUSTOMER, PROVIDER, Setup, World, bond_config, number, packet};

const HOUR: Duration = Duration::from_secs(3600);

fn metered() -> World {
    World::connected(Setup { metered: vec![0, 1], ..Setup::default() })
}

fn states(world: &mut World, side: usize) -> Vec<PathState> {
    let status = world.sides[side].status(world.now);
    status.peers[0].paths.iter().map(|path| path.state).collect()
}

fn handshakes(world: &mut World, side: usize) -> u64 {
    world.sides[side].status(world.now).peers[0].handshakes
}

fn numbers(world: &World, side: usize) -> Vec<u32> {
    world.delivered[side].iter().map(|packet| number(packet)).collect()
}

/// Spec K-6a, P-5c: nothing is renewed, nothing is sent.
#[test]
fn regression_an_idle_bond_of_metered_links_renews_nothing() {
    let mut world = metered();
    world.run_for(HOUR);
    for link in 0..2 {
        let sent = world.captured.iter().filter(|datagram| datagram.link == link).count();
        assert!(sent <= 20, "{sent} datagrams over link {link}");
    }
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(states(&mut world, side), [PathState::Asleep; 2]);
        assert_eq!(handshakes(&mut world, side), 1);
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
            let mut world = metered();
            world.run_for(Duration::from_millis(slept_ms));
            for n in 0..100 {
                world.send(from, &[packet(from, 1, n)]);
                world.run_for(Duration::from_millis(3));
            }
            world.run_for(Duration::from_millis(100));
            let all: Vec<u32> = (0..100).collect();
            assert_eq!(numbers(&world, 1 - from), all, "side {from} after {slept_ms} ms");
            for side in [CUSTOMER, PROVIDER] {
                assert_eq!(states(&mut world, side), [PathState::Up; 2]);
                let events = format!("{:?}", world.events[side]);
                assert!(!events.contains("BondDown"), "the bond is the same");
            }
        }
    }
}

/// Spec K-6a: the handshake at once, then the challenge.
#[test]
fn a_single_packet_arrives_within_a_few_round_trips_of_a_long_sleep() {
    for from in [CUSTOMER, PROVIDER] {
        let mut world = metered();
        world.run_for(HOUR);
        world.send(from, &[packet(from, 1, 7)]);
        // The handshake, the challenge, and the packet: the quicker link needs 10 ms for both ways.
        world.run_for(Duration::from_millis(30));
        assert_eq!(numbers(&world, 1 - from), [7], "from side {from}");
        world.send(1 - from, &[packet(1 - from, 1, 8)]);
        world.run_for(Duration::from_millis(6));
        assert_eq!(numbers(&world, from), [8], "an answer finds its path awake");
        world.run_for(HOUR);
        assert_eq!([handshakes(&mut world, CUSTOMER), handshakes(&mut world, PROVIDER)], [2, 2]);
    }
}

#[test]
fn both_sides_may_wake_a_bond_at_the_same_time() {
    let mut world = metered();
    world.run_for(HOUR);
    for n in 0..50 {
        for side in [CUSTOMER, PROVIDER] {
            world.send(side, &[packet(side, 1, n)]);
        }
        world.run_for(Duration::from_millis(5));
    }
    world.run_for(Duration::from_millis(200));
    let all: Vec<u32> = (0..50).collect();
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(numbers(&world, side), all);
    }
}

/// Spec K-6a: 60 s after the first initiation.
#[test]
fn a_sleeping_bond_whose_peer_is_gone_is_given_up_once_somebody_needs_it() {
    for from in [CUSTOMER, PROVIDER] {
        let mut world = metered();
        world.run_for(HOUR);
        world.dead[1 - from] = true;
        world.send(from, &[packet(from, 1, 1)]);
        world.run_for(Duration::from_secs(59));
        assert_eq!(states(&mut world, from), [PathState::Asleep; 2]);
        world.run_for(Duration::from_secs(2));
        assert_eq!(states(&mut world, from), []);
        world.restart(1 - from);
        world.run_for(Duration::from_secs(6));
        world.send(from, &[packet(from, 1, 2)]);
        world.run_for(Duration::from_secs(1));
        assert_eq!(numbers(&world, 1 - from), [2], "from side {from}");
    }
}

#[test]
fn a_sleeping_bond_survives_the_restart_of_the_listening_side() {
    let mut world = metered();
    world.run_for(HOUR);
    world.restart(PROVIDER);
    world.run_for(HOUR);
    world.send(CUSTOMER, &[packet(CUSTOMER, 1, 7)]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&world, PROVIDER), [7]);
}

#[test]
fn a_link_that_comes_to_a_sleeping_bond_is_used() {
    let mut world = metered();
    world.run_for(HOUR);
    world.plug(2);
    world.run_for(Duration::from_secs(1));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(states(&mut world, side), [PathState::Up; 3]);
    }
    world.send(PROVIDER, &[packet(PROVIDER, 1, 7)]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&world, CUSTOMER), [7]);
}

#[test]
fn a_bond_with_a_plain_path_is_renewed_as_before() {
    let mut world = World::connected(Setup { metered: vec![1], ..Setup::default() });
    world.run_for(HOUR);
    assert_eq!(handshakes(&mut world, CUSTOMER), 31);
    assert_eq!(states(&mut world, CUSTOMER), [PathState::Up, PathState::Asleep]);
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
    let mut world = World::connected(Setup { bond, metered: vec![0, 1], ..Setup::default() });
    for link in &mut world.links {
        link.up = false;
    }
    world.run_for(Duration::from_secs(21));
    assert_eq!(states(&mut world, CUSTOMER), []);
    for link in &mut world.links {
        link.up = true;
    }
    world.run_for(Duration::from_secs(6));
    world.send(CUSTOMER, &[packet(CUSTOMER, 1, 7)]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&world, PROVIDER), [7]);
}
