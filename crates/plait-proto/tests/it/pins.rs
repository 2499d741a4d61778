//! Inner flows that are kept on one path.

use core::net::IpAddr;

use plait_proto::ingress::{PIN_TIME, PinError};
use plait_proto::seq::PathId;
use plait_proto::stats::{PathState, PathStatus};
use plait_proto::time::Duration;
use plait_proto::wire::ip::Inner;

use super::harness::{CUSTOMER, PROVIDER, Setup, World, number, packet};

const FLOW: u16 = 7;

/// What [`packet`] makes of a flow's number.
fn flow(from: usize) -> Inner {
    Inner::read(&packet(from, FLOW, 0)).expect("a packet of ours")
}

fn paths(world: &mut World, side: usize) -> Vec<PathStatus> {
    let now = world.now;
    world.sides[side].status(now).peers.remove(0).paths
}

fn pin(world: &mut World, side: usize, link: usize) {
    let path = PathId(paths(world, side)[link].id);
    let now = world.now;
    world.sides[side].pin_flow(now, flow(side), path).expect("a path and room");
}

/// How many data packets each path takes of ten packets of the flow.
fn shares(world: &mut World, side: usize) -> [u64; 2] {
    let before = paths(world, side);
    for count in 0..10 {
        world.send(side, &[packet(side, FLOW, count)]);
        world.run_for(Duration::from_millis(10));
    }
    let after = paths(world, side);
    [0, 1].map(|at| after[at].sent_packets - before[at].sent_packets)
}

#[test]
fn a_pinned_flow_keeps_to_its_path_in_each_direction_and_others_do_not() {
    let mut world = World::connected(Setup::default());
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(shares(&mut world, side), [5, 5], "round robin");
        pin(&mut world, side, 1);
        assert_eq!(shares(&mut world, side), [0, 10]);
        world.send(side, &[packet(side, FLOW + 1, 0), packet(side, FLOW + 1, 1)]);
        world.sides[side].unpin_flow(&flow(side));
        assert_eq!(shares(&mut world, side), [5, 5], "it is forgotten");
    }
}

#[test]
fn a_pin_ends_by_itself() {
    let mut world = World::connected(Setup::default());
    pin(&mut world, CUSTOMER, 0);
    world.run_for(PIN_TIME - Duration::from_secs(1));
    assert_eq!(shares(&mut world, CUSTOMER), [10, 0]);
    world.run_for(Duration::from_secs(1));
    assert_eq!(shares(&mut world, CUSTOMER), [5, 5]);
}

#[test]
fn a_pinned_flow_goes_the_bonds_way_while_its_path_is_dead() {
    let mut world = World::connected(Setup::default());
    pin(&mut world, CUSTOMER, 1);
    world.links[1].up = false;
    shares(&mut world, CUSTOMER);
    world.run_for(Duration::from_secs(2));
    assert_eq!(paths(&mut world, CUSTOMER)[1].state, PathState::Silent);
    let before = world.delivered[PROVIDER].len();
    assert_eq!(shares(&mut world, CUSTOMER), [10, 0]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.delivered[PROVIDER].len(), before + 10);
    world.links[1].up = true;
    world.run_for(Duration::from_secs(10));
    assert_eq!(shares(&mut world, CUSTOMER), [0, 10]);
}

#[test]
fn a_pinned_flow_waits_for_no_other_path() {
    let mut world = World::connected(Setup::default());
    pin(&mut world, CUSTOMER, 0);
    world.links[0].up = false;
    world.send(CUSTOMER, &[packet(CUSTOMER, FLOW, 1)]);
    world.links[0].up = true;
    world.send(CUSTOMER, &[packet(CUSTOMER, FLOW, 2)]);
    let link = world.links[0].delay;
    world.run_for(link + Duration::from_millis(1));
    let got: Vec<u32> = world.delivered[PROVIDER].iter().map(|packet| number(packet)).collect();
    assert_eq!(got, [2], "1 was lost, and 2 does not wait for the slower path to pass it");
}

#[test]
fn a_path_that_is_gone_takes_its_pins_along() {
    let mut world = World::connected(Setup::default());
    pin(&mut world, CUSTOMER, 1);
    world.unplug(1);
    world.plug(1);
    world.run_for(Duration::from_secs(1));
    assert_eq!(shares(&mut world, CUSTOMER), [5, 5]);
}

#[test]
fn a_sleeping_path_is_woken_for_a_pin() {
    let mut world = World::connected(Setup { metered: vec![1], ..Setup::default() });
    world.run_for(Duration::from_secs(60));
    assert_eq!(paths(&mut world, CUSTOMER)[1].state, PathState::Asleep);
    // One packet alone wakes nobody; an idle bond would put the path to sleep again.
    world.send(CUSTOMER, &[packet(CUSTOMER, FLOW, 0)]);
    pin(&mut world, CUSTOMER, 1);
    world.run_for(Duration::from_secs(1));
    assert_eq!(shares(&mut world, CUSTOMER), [0, 10]);
}

#[test]
fn what_cannot_be_pinned_is_said() {
    let mut world = World::connected(Setup::default());
    let now = world.now;
    let side = &mut world.sides[CUSTOMER];
    let nowhere = PathId(99);
    assert_eq!(side.pin_flow(now, flow(CUSTOMER), nowhere), Err(PinError::NoPath(nowhere)));
    let stranger = Inner { destination: IpAddr::from([10, 1, 1, 1]), ..flow(CUSTOMER) };
    assert_eq!(side.pin_flow(now, stranger, PathId(0)), Err(PinError::NoPeer));
    let mut alone = World::new(Setup { links: 0, ..Setup::default() });
    let result = alone.sides[CUSTOMER].pin_flow(now, flow(CUSTOMER), PathId(0));
    assert_eq!(result, Err(PinError::NoBond));
}
