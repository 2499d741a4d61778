//! Another configuration for a running endpoint.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, number, packet, packet_with, public_key};
use plait_proto::config::{Order, PeerConfig, Prefix};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Event;
use plait_proto::scheduler::Algorithm;
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::stats::PeerStatus;
use plait_proto::time::Duration;

fn peer(pair: &mut Pair, side: usize) -> PeerStatus {
    pair.sides[side].status(pair.now).peers.remove(0)
}

fn stranger() -> PeerConfig {
    PeerConfig {
        public_key: PrivateKey::from_bytes([9; 32]).public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: vec![([192, 0, 2, 9], 7788).into()],
        allowed_ips: vec![Prefix { address: [10, 99, 0, 9].into(), length: 32 }],
        keepalive: Duration::from_secs(25),
    }
}

/// Sends packets `first..last` from the customer and waits until they have arrived.
fn send(pair: &mut Pair, first: u32, last: u32) {
    let batch: Vec<_> = (first..last).map(|n| packet(CUSTOMER, 1, n)).collect();
    pair.send(CUSTOMER, &batch);
    pair.run_for(Duration::from_millis(100));
}

fn assert_arrived(pair: &Pair, count: u32) {
    let numbers: Vec<u32> = pair.delivered[PROVIDER].iter().map(|p| number(p)).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
}

#[test]
fn an_unchanged_peers_bond_goes_on() {
    let mut pair = Pair::connected(Setup::default());
    send(&mut pair, 0, 50);
    let before = peer(&mut pair, CUSTOMER);
    let (events, captured) = (pair.events[CUSTOMER].len(), pair.captured.len());
    pair.reconfigure(CUSTOMER, |peers, _| peers.insert(0, stranger()));
    assert_eq!(pair.astray.len(), 2, "one initiation to the new peer over each link");
    assert_eq!(pair.captured.len(), captured, "nothing to the old one");
    let after = pair.sides[CUSTOMER].status(pair.now).peers.remove(1);
    assert_eq!(after.handshakes, before.handshakes);
    assert_eq!(after.inner_sent_packets, 50, "the same bond");
    send(&mut pair, 50, 100);
    pair.reconfigure(CUSTOMER, |_, _| {});
    send(&mut pair, 100, 150);
    assert_arrived(&pair, 150);
    assert_eq!(pair.events[CUSTOMER].len(), events, "no bond came or went");
    // A response comes back over every path that carried the initiation; the first one counts.
    let customer = &pair.sides[CUSTOMER];
    assert_eq!(customer.drop_total(), customer.drop_count(DropReason::RepeatedResponse));
}

#[test]
fn a_removed_peer_is_told_and_a_new_one_is_sought() {
    let mut pair = Pair::connected(Setup::default());
    let (customer, provider) = (public_key(CUSTOMER), public_key(PROVIDER));
    pair.reconfigure(CUSTOMER, |peers, _| *peers = Vec::new());
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.events[CUSTOMER].last(), Some(&Event::BondDown(provider)));
    assert_eq!(pair.events[PROVIDER].last(), Some(&Event::BondDown(customer)));
    send(&mut pair, 0, 1);
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::NoPeer), 1);
    pair.reconfigure(CUSTOMER, |_, _| {});
    pair.run_for(Duration::from_millis(500));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
    send(&mut pair, 0, 10);
    assert_arrived(&pair, 10);
}

#[test]
fn other_prefixes_act_at_once_and_on_the_same_bond() {
    let mut pair = Pair::connected(Setup::default());
    let narrow = |peers: &mut Vec<PeerConfig>| {
        peers[0].allowed_ips = vec![Prefix { address: [10, 98, 0, 0].into(), length: 16 }];
    };
    pair.reconfigure(PROVIDER, |peers, _| narrow(peers));
    send(&mut pair, 0, 10);
    assert_eq!(pair.delivered[PROVIDER].len(), 0);
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::SourceNotAllowed), 10);
    let moved = packet_with([10, 98, 0, 2], [10, 99, 0, 1], 1, 7);
    pair.send(CUSTOMER, &[moved]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.delivered[PROVIDER].len(), 1);
    pair.reconfigure(CUSTOMER, |peers, _| narrow(peers));
    send(&mut pair, 0, 1);
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::NoPeer), 1);
    assert_eq!(peer(&mut pair, CUSTOMER).handshakes, 1);
}

#[test]
fn a_new_preshared_key_renews_the_session_once_both_have_it() {
    let mut pair = Pair::connected(Setup::default());
    let psk = |peers: &mut Vec<PeerConfig>, byte| {
        peers[0].preshared_key = PresharedKey::from_bytes([byte; 32]);
    };
    pair.reconfigure(CUSTOMER, |peers, _| psk(peers, 7));
    pair.run_for(Duration::from_secs(8));
    assert_eq!(peer(&mut pair, CUSTOMER).handshakes, 1, "the other side still has the old key");
    send(&mut pair, 0, 10);
    pair.reconfigure(PROVIDER, |peers, _| psk(peers, 7));
    pair.run_for(Duration::from_secs(8));
    assert_eq!(peer(&mut pair, CUSTOMER).handshakes, 2);
    send(&mut pair, 10, 20);
    assert_arrived(&pair, 20);
    let downs = pair.events.iter().flatten().filter(|e| matches!(e, Event::BondDown(_)));
    assert_eq!(downs.count(), 0, "one bond all along");
}

#[test]
fn other_endpoints_are_reached_over_new_paths() {
    let mut pair = Pair::connected(Setup::default());
    pair.provider_at = ([192, 0, 2, 77], 7788).into();
    let endpoints = vec![pair.provider_at];
    pair.reconfigure(CUSTOMER, |peers, _| peers[0].endpoints = endpoints);
    pair.run_for(Duration::from_secs(1));
    let after = peer(&mut pair, CUSTOMER);
    let remotes: Vec<_> = after.paths.iter().map(|path| path.remote.as_str()).collect();
    assert_eq!(remotes, ["192.0.2.77:7788", "192.0.2.77:7788"]);
    assert_eq!(peer(&mut pair, PROVIDER).paths.len(), 2, "it was told of those that are left");
    assert_eq!(after.handshakes, 2, "whoever is at the new endpoint is asked at once");
    send(&mut pair, 0, 10);
    assert_arrived(&pair, 10);
}

#[test]
fn an_added_endpoint_disturbs_nothing() {
    let mut pair = Pair::connected(Setup::default());
    let captured = pair.captured.len();
    pair.reconfigure(CUSTOMER, |peers, _| {
        peers[0].endpoints.insert(0, ([192, 0, 2, 77], 7788).into());
    });
    assert_eq!(pair.captured.len(), captured);
    assert_eq!(pair.paths_up(CUSTOMER), 2);
}

#[test]
fn another_scheduler_and_order_act_on_the_running_bond() {
    let mut pair = Pair::connected(Setup::default());
    send(&mut pair, 0, 20);
    for side in [CUSTOMER, PROVIDER] {
        pair.reconfigure(side, |_, bond| {
            bond.scheduler.algorithm = Algorithm::Redundant;
            bond.order = Order::Flow;
            bond.resequencer.timer =
                plait_proto::resequencer::Timer::Fixed(Duration::from_millis(7));
        });
    }
    send(&mut pair, 20, 40);
    assert_arrived(&pair, 40);
    let after = peer(&mut pair, CUSTOMER);
    assert_eq!((after.scheduler.as_str(), after.handshakes), ("redundant", 1));
    // Half of the first twenty over each path, then each packet over both.
    let sent: Vec<_> = after.paths.iter().map(|path| path.sent_packets).collect();
    assert_eq!(sent, [30, 30]);
}

#[test]
fn a_link_that_stands_by_is_told_to_the_peer_even_if_a_datagram_is_lost() {
    let mut pair = Pair::connected(Setup::default());
    let told = |pair: &mut Pair, side| -> Vec<bool> {
        peer(pair, side).paths.iter().map(|path| path.standby).collect()
    };
    pair.links[1].up = false;
    pair.set_standby(CUSTOMER, 1, Some("quota spent: 20.1 of 20 GB this month"));
    pair.run_for(Duration::from_millis(10));
    pair.links[1].up = true;
    let own = peer(&mut pair, CUSTOMER);
    assert_eq!(own.paths[1].reason, "quota spent: 20.1 of 20 GB this month");
    assert_ne!(own.paths[0].reason, own.paths[1].reason);
    assert_eq!(told(&mut pair, CUSTOMER), [false, true]);
    assert_eq!(told(&mut pair, PROVIDER), [false, false], "the datagram was lost");
    pair.run_for(Duration::from_secs(30));
    assert_eq!(told(&mut pair, PROVIDER), [false, true]);
    pair.set_standby(CUSTOMER, 1, None);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(told(&mut pair, PROVIDER), [false, false]);
    assert_eq!(peer(&mut pair, CUSTOMER).paths[1].reason, own.paths[0].reason);
}

/// The customer's bond stands at another place afterwards: nothing of it may be looked for at the
/// old one.
#[test]
fn a_bond_goes_on_while_other_peers_come_and_go() {
    let strangers: Vec<PeerConfig> = (20..40_u8)
        .map(|number| PeerConfig {
            public_key: PrivateKey::from_bytes([number; 32]).public_key(),
            endpoints: Vec::new(),
            allowed_ips: vec![Prefix { address: [10, 98, 0, number].into(), length: 32 }],
            ..stranger()
        })
        .collect();
    let mut pair = Pair::connected(Setup::default());
    pair.reconfigure(PROVIDER, |peers, _| {
        let own = std::mem::replace(peers, strangers[..10].to_vec());
        peers.extend(own);
    });
    send(&mut pair, 0, 50);
    let handshakes = pair.sides[PROVIDER].status(pair.now).peers[10].handshakes;
    for (at, one) in strangers[10..].iter().enumerate() {
        let now = pair.now;
        assert!(pair.sides[PROVIDER].add_peer(now, one.clone()));
        assert!(pair.sides[PROVIDER].remove_peer(now, &one.public_key));
        // The last one, at first the customer, takes the place.
        assert!(pair.sides[PROVIDER].remove_peer(now, &strangers[at].public_key));
        pair.run_for(Duration::from_millis(10));
        let first = 50 + at as u32 * 5;
        send(&mut pair, first, first + 5);
    }
    assert_arrived(&pair, 100);
    // Answers find their way, too.
    let back: Vec<_> = (0..5).map(|n| packet(PROVIDER, 1, n)).collect();
    pair.send(PROVIDER, &back);
    pair.run_for(Duration::from_secs(300));
    assert_eq!(pair.delivered[CUSTOMER].len(), 5);
    let left = pair.sides[PROVIDER].status(pair.now).peers;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].state, "up");
    assert!(left[0].handshakes >= handshakes, "renewed at its new place");
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::UnknownIndex), 0);
    send(&mut pair, 100, 110);
    assert_arrived(&pair, 110);
}
