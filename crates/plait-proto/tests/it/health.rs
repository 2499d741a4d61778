use plait_proto::config::Order;
use plait_proto::scheduler::Algorithm;
use plait_proto::stats::{PathState, PathStatus};
use plait_proto::time::Duration;

use crate::harness::{CUSTOMER, PROVIDER, Setup, World, bond_config, number, packet};

fn path(world: &mut World, side: usize, link: usize) -> PathStatus {
    let now = world.now;
    let status = world.sides[side].status(now);
    let paths = status.peers.into_iter().flat_map(|peer| peer.paths);
    paths.into_iter().find(|path| path.name == format!("link{link}")).expect("the path exists")
}

fn state(world: &mut World, side: usize, link: usize) -> PathState {
    path(world, side, link).state
}

/// Sends packets both ways each millisecond; gives the longest time without a delivery at either
/// side.
fn load(world: &mut World, first: u32, time_ms: u32, each_ms: u32) -> Duration {
    let mut last = [world.now; 2];
    let mut longest = Duration::ZERO;
    for ms in 0..time_ms {
        let before = [world.delivered[0].len(), world.delivered[1].len()];
        for side in [CUSTOMER, PROVIDER] {
            let numbers = first + ms * each_ms..first + (ms + 1) * each_ms;
            let packets: Vec<_> = numbers.map(|n| packet(side, n as u16 % 4, n)).collect();
            world.send(side, &packets);
        }
        world.run_for(Duration::from_millis(1));
        for side in [CUSTOMER, PROVIDER] {
            if world.delivered[side].len() > before[side] {
                longest = longest.max(world.now.since(last[side]));
                last[side] = world.now;
            }
        }
    }
    longest
}

fn missing(world: &World, side: usize, count: u32) -> usize {
    let mut seen = vec![false; count as usize];
    for packet in &world.delivered[side] {
        let number = number(packet) as usize;
        assert!(!seen[number], "{number} was delivered twice");
        seen[number] = true;
    }
    seen.iter().filter(|seen| !**seen).count()
}

/// Spec P-5, P-5a: silent at both sides; what was in flight is sent again.
#[test]
fn a_link_cut_silently_under_load_costs_neither_packets_nor_time() {
    for (order, cut) in [(Order::Flow, 0), (Order::Flow, 1), (Order::Bond, 1)] {
        let bond = bond_config(Algorithm::RoundRobin, order);
        let mut world = World::connected(Setup { bond, ..Setup::default() });
        load(&mut world, 0, 1000, 4);
        world.links[cut].up = false;
        let gap = load(&mut world, 4000, 1000, 4);
        world.run_for(Duration::from_secs(1));
        assert!(gap < Duration::from_millis(300), "{gap:?}");
        for side in [CUSTOMER, PROVIDER] {
            assert_eq!(state(&mut world, side, cut), PathState::Silent);
            assert!(path(&mut world, side, cut).rescued_packets > 0);
            let missing = missing(&world, side, 8000);
            assert!(missing <= 20, "{missing} packets were lost for good");
        }
    }
}

#[test]
fn what_is_rescued_is_delivered_in_order() {
    let mut world = World::connected(Setup::default());
    load(&mut world, 0, 1000, 4);
    world.links[1].up = false;
    load(&mut world, 4000, 1000, 4);
    let numbers: Vec<u32> = world.delivered[PROVIDER].iter().map(|p| number(p)).collect();
    assert!(numbers.is_sorted());
}

#[test]
fn of_pings_on_an_idle_bond_at_most_three_stay_without_an_answer() {
    for cut in [0, 1] {
        let bond = bond_config(Algorithm::MinRtt, Order::Flow);
        let mut world = World::connected(Setup { bond, ..Setup::default() });
        for n in 0..200 {
            if n == 100 {
                world.links[cut].up = false;
            }
            world.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
            world.run_for(Duration::from_millis(10));
            world.send(PROVIDER, &[packet(PROVIDER, 1, n)]);
            world.run_for(Duration::from_millis(10));
        }
        world.run_for(Duration::from_secs(1));
        for side in [CUSTOMER, PROVIDER] {
            assert!(missing(&world, side, 200) <= 3);
        }
    }
}

/// Spec P-5: a silent path is probed, and used again when it answers.
#[test]
fn a_healed_path_is_used_again_within_three_seconds() {
    let mut world = World::connected(Setup::default());
    world.links[1].up = false;
    load(&mut world, 0, 10_000, 1);
    world.links[1].up = true;
    load(&mut world, 10_000, 2000, 1);
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut world, side, 1), PathState::Up);
    }
}

/// Spec P-5a: who finds it silent says so.
#[test]
fn a_link_dead_in_one_direction_is_left_out_by_both_sides() {
    let mut world = World::connected(Setup::default());
    load(&mut world, 0, 500, 2);
    world.links[1].up_to[PROVIDER] = false;
    load(&mut world, 1000, 500, 2);
    assert_eq!(state(&mut world, CUSTOMER, 1), PathState::Silent);
    assert_eq!(state(&mut world, PROVIDER, 1), PathState::Silent);
}

/// Spec P-5: after repeated silence, only when it has answered for longer.
#[test]
fn a_path_that_flaps_is_trusted_less_each_time() {
    let mut world = World::connected(Setup::default());
    let mut number = 0;
    let mut down = Vec::new();
    for _ in 0..6 {
        let mut silent_ms = 0;
        for ms in 0..2000 {
            world.links[1].up = ms >= 400;
            load(&mut world, number, 1, 2);
            number += 2;
            silent_ms += u32::from(state(&mut world, CUSTOMER, 1) == PathState::Silent);
        }
        down.push(silent_ms);
    }
    assert!(down[5] > down[0] + 300, "{down:?}");
}

/// Spec P-5b.
#[test]
fn a_lossy_path_is_left_out_and_taken_back_when_it_has_healed() {
    let mut world = World::connected(Setup::default());
    load(&mut world, 0, 1000, 2);
    world.links[1].loss_percent = 20;
    load(&mut world, 2000, 2500, 2);
    assert_eq!(state(&mut world, CUSTOMER, 1), PathState::Lossy);
    assert!(path(&mut world, CUSTOMER, 1).loss_ratio > 0.1);
    load(&mut world, 7000, 5000, 2);
    assert_eq!(state(&mut world, CUSTOMER, 1), PathState::Lossy, "it has not healed");
    world.links[1].loss_percent = 0;
    load(&mut world, 17_000, 10_000, 2);
    assert_eq!(state(&mut world, CUSTOMER, 1), PathState::Up);
}

/// Spec P-5b: only while another path is up.
#[test]
fn the_last_path_stays_in_use_however_lossy() {
    let mut world = World::connected(Setup { links: 1, ..Setup::default() });
    world.links[0].loss_percent = 20;
    load(&mut world, 0, 3000, 2);
    assert_ne!(state(&mut world, CUSTOMER, 0), PathState::Lossy);
}

/// As a load beyond the link's rate does that minds no loss: answers are lost with the rest.
/// Spec P-5: longer while the path still brings something.
#[test]
fn the_last_path_is_not_silent_while_it_brings_half_of_what_is_sent() {
    let bond = bond_config(Algorithm::MinRtt, Order::Flow);
    let mut world = World::connected(Setup { links: 1, bond, ..Setup::default() });
    world.links[0].loss_percent = 50;
    let mut silent_ms = 0;
    for ms in 0..20_000 {
        if ms % 100 == 0 {
            world.send(CUSTOMER, &[packet(CUSTOMER, 1, ms)]);
        }
        world.send(PROVIDER, &[packet(PROVIDER, 1, ms)]);
        world.run_for(Duration::from_millis(1));
        for side in [CUSTOMER, PROVIDER] {
            silent_ms += u32::from(state(&mut world, side, 0) == PathState::Silent);
        }
    }
    assert_eq!(silent_ms, 0);
}

/// Spec P-5d.
#[test]
fn a_standby_path_carries_data_only_when_no_other_does() {
    let mut world = World::connected(Setup { standby: vec![1], ..Setup::default() });
    load(&mut world, 0, 500, 2);
    assert_eq!(path(&mut world, CUSTOMER, 1).sent_packets, 0);
    assert_eq!(path(&mut world, PROVIDER, 1).sent_packets, 0);
    world.links[0].up = false;
    load(&mut world, 1000, 1000, 2);
    assert!(path(&mut world, CUSTOMER, 1).sent_packets > 1000);
    assert!(path(&mut world, PROVIDER, 1).sent_packets > 1000);
}

/// Spec P-5c: it sleeps, and is woken by more than a trickle.
#[test]
fn a_metered_path_sleeps_while_the_bond_is_idle_and_is_checked_before_use() {
    let mut world = World::connected(Setup { metered: vec![1], ..Setup::default() });
    load(&mut world, 0, 100, 1);
    world.run_for(Duration::from_secs(20));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut world, side, 1), PathState::Asleep);
    }
    let sent = world.captured.iter().filter(|datagram| datagram.link == 1).count();
    world.run_for(Duration::from_secs(90));
    let later = world.captured.iter().filter(|datagram| datagram.link == 1).count();
    assert_eq!(sent, later, "nothing is sent over a sleeping path");
    load(&mut world, 100, 500, 1);
    world.run_for(Duration::from_millis(50));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut world, side, 1), PathState::Up);
        assert_eq!(missing(&world, side, 600), 0);
    }
}

/// Spec P-5c: PATH_DEAD over another path makes its owner challenge it.
#[test]
fn regression_a_sleeping_path_whose_nat_forgot_it_is_woken_by_its_owner() {
    let mut world = World::connected(Setup { metered: vec![1], ..Setup::default() });
    world.run_for(Duration::from_secs(20));
    world.links[1].port = 2000;
    // Only the side that cannot reach the sleeping path has a use for it.
    for n in 0..2000 {
        world.send(PROVIDER, &[packet(PROVIDER, 1, n)]);
        world.run_for(Duration::from_millis(1));
    }
    world.run_for(Duration::from_millis(50));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut world, side, 1), PathState::Up);
    }
    assert_eq!(missing(&world, CUSTOMER, 2000), 0);
}

/// Spec P-5c: when no other path is up.
#[test]
fn a_sleeping_path_is_woken_when_the_other_dies() {
    let mut world = World::connected(Setup { metered: vec![1], ..Setup::default() });
    world.run_for(Duration::from_secs(20));
    world.links[0].up = false;
    for n in 0..100 {
        world.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        world.run_for(Duration::from_millis(100));
    }
    assert_eq!(state(&mut world, CUSTOMER, 1), PathState::Up);
    assert!(missing(&world, PROVIDER, 100) <= 3);
}

/// Spec P-5: up to the keepalive interval while the bond is idle.
#[test]
fn probes_of_a_dead_path_grow_rare_without_traffic() {
    let mut world = World::connected(Setup::default());
    world.links[1].up = false;
    load(&mut world, 0, 1000, 1);
    world.run_for(Duration::from_secs(100));
    let before = world.captured.iter().filter(|datagram| datagram.link == 1).count();
    world.run_for(Duration::from_secs(100));
    let sent = world.captured.iter().filter(|datagram| datagram.link == 1).count() - before;
    assert!(sent <= 2 * 5 + 4, "{sent} datagrams in 100 s over a dead link");
}
