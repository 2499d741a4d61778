use plait_proto::config::{Order, RekeyLimits};
use plait_proto::drop_reason::DropReason;
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Duration;

use crate::harness::{CUSTOMER, PROVIDER, Setup, World, bond_config, number, packet};

fn exchange_under(rekey: RekeyLimits, count: u32, per_millisecond: u32) -> World {
    let mut bond = bond_config(Algorithm::RoundRobin, Order::Bond);
    bond.rekey = rekey;
    let mut world = World::connected(Setup { bond, ..Setup::default() });
    for n in 0..count {
        for side in [CUSTOMER, PROVIDER] {
            let first = n * per_millisecond;
            let batch: Vec<_> =
                (first..first + per_millisecond).map(|n| packet(side, 1, n)).collect();
            world.send(side, &batch);
        }
        world.run_for(Duration::from_millis(1));
    }
    world.run_for(Duration::from_secs(1));
    world
}

fn assert_complete(world: &World, count: u32) {
    for side in [CUSTOMER, PROVIDER] {
        let numbers: Vec<u32> = world.delivered[side].iter().map(|p| number(p)).collect();
        let missing: Vec<u32> = (0..count).filter(|n| numbers.binary_search(n).is_err()).collect();
        assert!(missing.is_empty() && numbers.len() == count as usize, "side {side}: {missing:?}");
        assert!(numbers.is_sorted(), "side {side}");
    }
}

/// A response comes back over every path that carried the initiation; the first one counts.
fn assert_nothing_dropped(world: &World) {
    for side in &world.sides {
        assert_eq!(side.drop_total(), side.drop_count(DropReason::RepeatedResponse));
    }
}

/// Spec K-6, H-4: by datagrams sealed; the bond and its numbers go on.
#[test]
fn renewing_by_packets_loses_nothing() {
    let rekey = RekeyLimits { rekey_after_packets: 500, ..RekeyLimits::default() };
    let mut world = exchange_under(rekey, 2000, 4);
    assert_complete(&world, 8000);
    let handshakes = world.sides[CUSTOMER].status(world.now).peers[0].handshakes;
    assert!(handshakes > 4, "{handshakes} handshakes");
    assert_nothing_dropped(&world);
}

/// Spec K-6, H-4: by age; the bond and its numbers go on.
#[test]
fn renewing_by_age_loses_nothing() {
    let rekey = RekeyLimits {
        rekey_after: Duration::from_secs(2),
        reject_after: Duration::from_secs(3),
        ..RekeyLimits::default()
    };
    let mut world = exchange_under(rekey, 10_000, 1);
    assert_complete(&world, 10_000);
    let handshakes = world.sides[CUSTOMER].status(world.now).peers[0].handshakes;
    assert!((4..=7).contains(&handshakes), "{handshakes} handshakes");
    assert_nothing_dropped(&world);
}

/// Spec K-6: after 120 s.
#[test]
fn an_idle_session_is_renewed_and_stays_usable() {
    let mut world = World::connected(Setup::default());
    world.run_for(Duration::from_secs(400));
    assert!(world.sides[CUSTOMER].status(world.now).peers[0].handshakes >= 3);
    world.send(CUSTOMER, &[packet(CUSTOMER, 1, 5)]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.delivered[PROVIDER].len(), 1);
}

/// Spec K-6: after 180 s the bond ends with its session.
#[test]
fn a_session_that_cannot_be_renewed_is_refused() {
    let mut world = World::connected(Setup::default());
    for link in &mut world.links {
        link.up = false;
    }
    world.run_for(Duration::from_secs(200));
    assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [0, 0]);
    let status = world.sides[CUSTOMER].status(world.now);
    assert_eq!(status.peers[0].state, "connecting");
    for link in &mut world.links {
        link.up = true;
    }
    world.run_for(Duration::from_secs(7));
    assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [2, 2]);
}

/// An outage while the response of a renewal is under way left one side with a renewed bond and the
/// other, a little later, with none; the next handshake then joined an old bond to a new one, and
/// everything below the old one's sequence number was taken for duplicates.
/// Spec H-4: a bond is the same to both sides or new to both.
#[test]
fn regression_renewal_cut_short() {
    let rekey = RekeyLimits {
        rekey_after: Duration::from_secs(4),
        reject_after: Duration::from_secs(6),
        ..RekeyLimits::default()
    };
    for cut_at_ms in 3980..4060 {
        let mut bond = bond_config(Algorithm::RoundRobin, Order::Bond);
        bond.rekey = rekey;
        let mut world = World::connected(Setup { bond, ..Setup::default() });
        for side in [CUSTOMER, PROVIDER] {
            world.send(side, &(0..100).map(|n| packet(side, 1, n)).collect::<Vec<_>>());
        }
        world.run_for(Duration::from_millis(cut_at_ms - 500));
        set_links(&mut world, false);
        world.run_for(Duration::from_millis(2500));
        set_links(&mut world, true);
        world.run_for(Duration::from_secs(7));
        for side in [CUSTOMER, PROVIDER] {
            world.delivered[1 - side].clear();
            world.send(side, &(100..200).map(|n| packet(side, 1, n)).collect::<Vec<_>>());
            world.run_for(Duration::from_millis(500));
            let delivered = world.delivered[1 - side].len();
            assert_eq!(delivered, 100, "from side {side}, cut at {cut_at_ms} ms");
        }
    }
}

fn set_links(world: &mut World, up: bool) {
    for link in &mut world.links {
        link.up = up;
    }
}

fn initiations(world: &World) -> usize {
    world.captured.iter().filter(|datagram| datagram.bytes[0] == 0x11).count()
}

/// Spec H-8: the first initiation that renews an idle bond goes over one path.
#[test]
fn an_idle_bond_is_renewed_over_one_path() {
    let mut world = World::connected(Setup::default());
    world.run_for(Duration::from_secs(119));
    world.captured.clear();
    world.run_for(Duration::from_secs(5));
    for side in &mut world.sides {
        assert_eq!(side.status(world.now).peers[0].handshakes, 2);
    }
    assert_eq!(initiations(&world), 1);
    assert!(world.captured.iter().all(|datagram| datagram.link == 0), "the quickest path");
}

/// Spec H-8: the first alone goes over one path only.
#[test]
fn a_renewal_that_is_not_answered_goes_over_all_paths() {
    let mut world = World::connected(Setup::default());
    world.run_for(Duration::from_secs(119));
    world.captured.clear();
    world.links[0].up = false;
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.sides[CUSTOMER].status(world.now).peers[0].handshakes, 2);
    assert_eq!(initiations(&world), 1 + 2);
}
