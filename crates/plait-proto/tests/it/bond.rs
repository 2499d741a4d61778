use plait_proto::config::Order;
use plait_proto::drop_reason::DropReason;
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Duration;

use crate::harness::{
    CUSTOMER, CUSTOMER_IP, PROVIDER, PROVIDER_IP, Setup, World, bond_config, number, packet,
    packet_with,
};

fn numbers(world: &World, side: usize) -> Vec<u32> {
    world.delivered[side].iter().map(|packet| number(packet)).collect()
}

/// Sends `count` packets each way, one a millisecond.
fn exchange(world: &mut World, count: u32, flows: u16) {
    for n in 0..count {
        for side in [CUSTOMER, PROVIDER] {
            world.send(side, &[packet(side, n as u16 % flows, n)]);
        }
        world.run_for(Duration::from_millis(1));
    }
    world.run_for(Duration::from_secs(1));
}

#[test]
fn every_scheduler_delivers_in_order_both_ways() {
    for algorithm in Algorithm::ALL {
        let bond = bond_config(algorithm, Order::Bond);
        let mut world = World::connected(Setup { bond, ..Setup::default() });
        exchange(&mut world, 1000, 1);
        for side in [CUSTOMER, PROVIDER] {
            assert_eq!(numbers(&world, side), (0..1000).collect::<Vec<_>>(), "{algorithm:?}");
        }
    }
}

#[test]
fn round_robin_uses_both_paths() {
    let mut world = World::connected(Setup::default());
    exchange(&mut world, 1000, 1);
    let status = world.sides[CUSTOMER].status(world.now);
    let sent: Vec<u64> = status.peers[0].paths.iter().map(|path| path.sent_packets).collect();
    assert_eq!(sent, [500, 500]);
}

/// Spec R-1: a packet waits for its predecessor in its lane.
#[test]
fn flows_keep_their_order_without_waiting_for_each_other() {
    let bond = bond_config(Algorithm::RoundRobin, Order::Flow);
    let mut world = World::connected(Setup { bond, ..Setup::default() });
    exchange(&mut world, 1000, 7);
    for flow in 0..7 {
        let of_flow: Vec<u32> =
            numbers(&world, PROVIDER).into_iter().filter(|n| n % 7 == flow).collect();
        assert!(of_flow.is_sorted(), "flow {flow}");
    }
    assert_eq!(world.delivered[PROVIDER].len(), 1000);
    // Odd and even flows run over the paths in turn: packets overtake those of other flows.
    assert!(!numbers(&world, PROVIDER).is_sorted());
}

/// Spec R-1: packets that wait for nothing are given at once.
#[test]
fn unordered_packets_never_wait() {
    let bond = bond_config(Algorithm::RoundRobin, Order::None);
    let mut world = World::connected(Setup { bond, ..Setup::default() });
    exchange(&mut world, 100, 1);
    let status = world.sides[PROVIDER].status(world.now);
    assert_eq!(status.peers[0].resequencer.waited, 0);
    assert_eq!(world.delivered[PROVIDER].len(), 100);
}

#[test]
fn a_silent_path_is_left_out_and_taken_back() {
    let mut world = World::connected(Setup::default());
    world.links[1].up = false;
    exchange(&mut world, 3000, 1);
    assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [1, 1]);
    let before = world.delivered[PROVIDER].len();
    exchange(&mut world, 500, 1);
    assert_eq!(world.delivered[PROVIDER].len(), before + 500, "nothing is lost any more");
    world.links[1].up = true;
    world.run_for(Duration::from_secs(3));
    assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [2, 2]);
}

#[test]
fn losses_are_reported_to_the_path_that_lost() {
    let mut world = World::connected(Setup::default());
    for n in 0..2000 {
        world.links[1].up = n % 50 != 0;
        world.send(CUSTOMER, &[packet(CUSTOMER, 1, 2 * n), packet(CUSTOMER, 1, 2 * n + 1)]);
        world.run_for(Duration::from_millis(1));
    }
    world.links[1].up = true;
    world.run_for(Duration::from_secs(1));
    let lost = 4000 - world.delivered[PROVIDER].len() as u64;
    assert!(lost > 20, "the link did lose: {lost}");
    let status = world.sides[CUSTOMER].status(world.now);
    let reported: Vec<u64> =
        status.peers[0].paths.iter().map(|path| path.reported_lost_packets).collect();
    assert_eq!(reported[0], 0, "the clean path is not blamed");
    assert!(reported[1].abs_diff(lost) <= 2, "{reported:?} of {lost}");
}

/// Spec R-5.
#[test]
fn a_spoofed_inner_source_is_dropped_and_counted() {
    let mut world = World::connected(Setup::default());
    let spoofed = packet_with([10, 99, 0, 77], PROVIDER_IP, 1, 1);
    world.send(CUSTOMER, &[packet(CUSTOMER, 1, 0), spoofed, packet(CUSTOMER, 1, 2)]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&world, PROVIDER), [0, 2]);
    assert_eq!(world.sides[PROVIDER].drop_count(DropReason::SourceNotAllowed), 1);
}

/// Control datagrams share the packet numbers of data. They must not pass for gaps, each of which
/// would ask for an acknowledgement at once.
#[test]
fn regression_control_datagrams_are_no_gaps() {
    let mut world = World::connected(Setup::default());
    let before = world.captured.len();
    exchange(&mut world, 1000, 1);
    let sent = &world.captured[before..];
    let control = sent.iter().filter(|datagram| datagram.bytes[0] == 0x15).count();
    // In a second, each way and path: an acknowledgement every 5 ms, a probe and its echo; each way
    // a loss report every 50 ms.
    assert!(control <= 4 * (200 + 4) + 2 * 25, "{control} control datagrams");
}

#[test]
fn what_has_no_peer_or_is_no_packet_is_counted() {
    let mut world = World::connected(Setup::default());
    world.send(CUSTOMER, &[packet_with(CUSTOMER_IP, [203, 0, 113, 1], 1, 1), vec![0; 40]]);
    assert_eq!(world.sides[CUSTOMER].drop_count(DropReason::NoPeer), 1);
    assert_eq!(world.sides[CUSTOMER].drop_count(DropReason::BadInnerPacket), 1);
}

/// Spec P-4: probes at the keepalive interval.
#[test]
fn an_idle_bond_is_nearly_silent() {
    let mut world = World::connected(Setup::default());
    world.run_for(Duration::from_secs(10));
    let before = world.captured.len();
    world.run_for(Duration::from_secs(100));
    let sent = world.captured.len() - before;
    // Two paths, a probe and an echo each way every 25 s.
    assert!(sent <= 2 * 2 * 2 * 4 + 8, "{sent} datagrams in 100 s");
}

/// Spec C-8.
#[test]
fn a_farewell_ends_the_bond() {
    let mut world = World::connected(Setup::default());
    let now = world.now;
    world.sides[CUSTOMER].close(now);
    world.send(CUSTOMER, &[]);
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.paths_up(PROVIDER), 0);
}
