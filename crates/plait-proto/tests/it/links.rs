//! Links that come and go, and addresses that change, under a living bond.

use core::net::SocketAddr;

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, link_config, number, packet};
use plait_proto::config::{LinkConfig, SocketId};
use plait_proto::drop_reason::DropReason;
use plait_proto::path::Route;
use plait_proto::stats::PathStatus;
use plait_proto::time::Duration;

const ELSEWHERE: ([u8; 4], u16) = ([203, 0, 113, 66], 4444);

fn paths(pair: &mut Pair, side: usize) -> Vec<PathStatus> {
    let now = pair.now;
    let peers = pair.sides[side].status(now).peers;
    peers.into_iter().flat_map(|peer| peer.paths).collect()
}

fn handshakes(pair: &mut Pair) -> u64 {
    let now = pair.now;
    pair.sides[PROVIDER].status(now).peers[0].handshakes
}

/// Whether a packet gets through in both directions.
fn carries(pair: &mut Pair, mark: u32) -> bool {
    for from in [CUSTOMER, PROVIDER] {
        pair.send(from, &[packet(from, 7, mark)]);
    }
    pair.run_for(Duration::from_millis(200));
    [CUSTOMER, PROVIDER].iter().all(|to| pair.delivered[*to].iter().any(|p| number(p) == mark))
}

/// One packet a millisecond from the provider to the customer.
fn download(pair: &mut Pair, numbers: core::ops::Range<u32>) {
    for mark in numbers {
        pair.send(PROVIDER, &[packet(PROVIDER, 1, mark)]);
        pair.run_for(Duration::from_millis(1));
    }
}

#[test]
fn links_come_and_go_in_any_order_from_none() {
    let mut pair = Pair::new(Setup { links: 0, ..Setup::default() });
    pair.run_for(Duration::from_secs(40));
    let mut there = [false; 3];
    // Every link comes and goes before and after every other, and twice there is none.
    for (step, link) in [1, 0, 1, 2, 0, 2, 0, 1, 2, 0, 2, 1, 1].into_iter().enumerate() {
        if there[link] {
            pair.unplug(link)
        } else {
            pair.plug(link)
        }
        there[link] = !there[link];
        pair.run_for(Duration::from_secs(2));
        let count = there.iter().filter(|there| **there).count();
        if count > 0 {
            assert_eq!(paths(&mut pair, CUSTOMER).len(), count, "step {step}");
            assert_eq!(paths(&mut pair, PROVIDER).len(), count, "step {step}");
            assert_eq!(pair.paths_up(CUSTOMER), count, "step {step}");
            assert!(carries(&mut pair, step as u32), "step {step}");
        } else {
            pair.run_for(Duration::from_secs(40));
        }
    }
}

/// Spec P-8: a bond without paths stays.
#[test]
fn the_bond_outlives_its_last_link() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    pair.unplug(0);
    pair.run_for(Duration::from_secs(60));
    pair.plug(1);
    pair.run_for(Duration::from_millis(100));
    assert!(carries(&mut pair, 1));
    let ups = |side: usize| pair.events[side].iter().filter(|e| is_bond_event(e)).count();
    assert_eq!([ups(CUSTOMER), ups(PROVIDER)], [1, 1], "it is the bond from before");
}

fn is_bond_event(event: &plait_proto::endpoint::Event) -> bool {
    use plait_proto::endpoint::Event;
    matches!(event, Event::BondUp(_) | Event::BondDown(_))
}

#[test]
fn a_new_link_finds_a_peer_that_was_restarted_meanwhile() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    pair.unplug(0);
    pair.run_for(Duration::from_secs(2));
    pair.restart(PROVIDER);
    pair.plug(1);
    pair.run_for(Duration::from_millis(500));
    assert!(carries(&mut pair, 1));
}

/// Spec P-8: beginning when a path is up.
#[test]
fn a_removal_is_told_even_if_nobody_could_hear_it_at_first() {
    let mut pair = Pair::connected(Setup::default());
    pair.links[0].up = false;
    pair.unplug(1);
    pair.run_for(Duration::from_millis(100));
    pair.links[0].up = true;
    pair.run_for(Duration::from_secs(3));
    let left = paths(&mut pair, PROVIDER);
    assert_eq!(left.iter().map(|path| path.name.as_str()).collect::<Vec<_>>(), ["link0"]);
}

/// Spec P-10: a new session brings new ids.
#[test]
fn links_that_come_and_go_for_a_year_never_run_out_of_path_ids() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    for round in 0..600 {
        pair.plug(1);
        pair.run_for(Duration::from_millis(80));
        assert_eq!(pair.paths_up(CUSTOMER), 2, "round {round}");
        pair.unplug(1);
        pair.run_for(Duration::from_millis(20));
    }
    assert!(handshakes(&mut pair) >= 5, "every new session brings new ids");
    assert!(carries(&mut pair, 1));
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::Replayed), 0);
}

/// Spec C-3: again when the first notice was lost.
#[test]
fn a_changed_link_is_told() {
    let mut pair = Pair::connected(Setup::default());
    let changed = LinkConfig { price: 9, weight: 3, standby: true, ..link_config(1) };
    let now = pair.now;
    pair.sides[CUSTOMER].update_link(now, changed);
    // The first notice is lost.
    pair.links[1].up = false;
    pair.run_for(Duration::from_millis(1));
    pair.links[1].up = true;
    pair.run_for(Duration::from_secs(1));
    for side in [CUSTOMER, PROVIDER] {
        let told = paths(&mut pair, side);
        assert_eq!((told[1].price, told[1].standby), (9, true));
    }
}

/// Spec P-9.
#[test]
fn a_path_follows_its_nat_within_about_a_round_trip_under_load() {
    for links in [1, 2] {
        let mut pair = Pair::connected(Setup { links, ..Setup::default() });
        download(&mut pair, 0..500);
        for (round, from) in [500_u32, 1000].into_iter().enumerate() {
            pair.links[0].port = 2000 + round as u16;
            download(&mut pair, from..from + 500);
            let remote = pair.customer_address(0).to_string();
            assert!(paths(&mut pair, PROVIDER).iter().any(|path| path.remote == remote));
        }
        pair.run_for(Duration::from_secs(1));
        // Acknowledgements are 5 ms apart, a challenge and its answer take 10 ms.
        let lost = 1500 - pair.delivered[CUSTOMER].len();
        assert!(lost <= 2 * 16, "{lost} packets were lost with {links} links");
        assert!(pair.astray.len() <= 2 * 20, "{} went astray", pair.astray.len());
        assert!(carries(&mut pair, 9999));
    }
}

/// Both sides' handshakes make a session each, and the sides use them in different orders.
fn begun_at_once() -> Pair {
    Pair::connected(Setup { both_seek: true, ..Setup::default() })
}

/// Spec P-9: two sessions made at one time, used in either order.
#[test]
fn regression_a_path_follows_its_nat_after_both_sides_began_at_once() {
    let mut pair = begun_at_once();
    for round in 0..3_u32 {
        pair.links[1].port = 2000 + round as u16;
        download(&mut pair, 2000 * round..2000 * (round + 1));
        let remote = pair.customer_address(1).to_string();
        let remotes: Vec<_> =
            paths(&mut pair, PROVIDER).into_iter().map(|path| path.remote).collect();
        assert!(remotes.contains(&remote), "round {round}: {remote} is not one of {remotes:?}");
    }
}

#[test]
fn regression_losses_are_reported_after_both_sides_began_at_once() {
    let mut pair = begun_at_once();
    pair.run_for(Duration::from_secs(2));
    pair.links[1].loss_percent = 2;
    download(&mut pair, 0..2000);
    for (side, reported) in [(CUSTOMER, false), (PROVIDER, true)] {
        for (at, path) in paths(&mut pair, side).into_iter().enumerate() {
            let lost = if reported { path.reported_lost_packets } else { path.lost_packets };
            let right = if at == 1 { 10..=35 } else { 0..=0 };
            assert!(right.contains(&lost), "side {side}: {lost} packets lost on path {at}");
        }
    }
}

#[test]
fn an_idle_path_follows_with_its_next_datagram() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    pair.run_for(Duration::from_secs(60));
    pair.links[0].port = 2000;
    let now = pair.now;
    pair.sides[CUSTOMER].probe_link(now, SocketId(0));
    pair.send(CUSTOMER, &[]);
    pair.run_for(Duration::from_millis(30));
    assert_eq!(paths(&mut pair, PROVIDER)[0].remote, pair.customer_address(0).to_string());
}

/// Datagrams that the customer sent and the provider never got.
fn withheld(pair: &mut Pair) -> Vec<Vec<u8>> {
    pair.links[0].up = false;
    pair.captured.clear();
    for mark in 0..5 {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 3, mark)]);
    }
    pair.links[0].up = true;
    pair.captured.iter().filter(|seen| seen.to == PROVIDER).map(|seen| seen.bytes.clone()).collect()
}

/// Spec P-9: the route before stays in use until the new address has answered.
#[test]
fn a_withheld_datagram_from_a_spoofed_source_does_not_move_the_path() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    let remote = paths(&mut pair, PROVIDER)[0].remote.clone();
    let withheld = withheld(&mut pair);
    assert_eq!(withheld.len(), 5);
    let spoofed = Route { socket: SocketId(0), remote: SocketAddr::from(ELSEWHERE), local: None };
    let mut brought = 0;
    for _ in 0..3 {
        for datagram in &withheld {
            pair.inject_over(PROVIDER, spoofed, datagram);
            brought += datagram.len();
            pair.run_for(Duration::from_millis(300));
        }
    }
    let asked: usize = pair.astray.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(asked > 0, "the new address is asked");
    assert!(asked <= brought / 3, "replays and old datagrams ask nothing");
    assert_eq!(paths(&mut pair, PROVIDER)[0].remote, remote);
    assert!(carries(&mut pair, 77));
    assert_eq!(paths(&mut pair, PROVIDER)[0].remote, remote);
}

/// Spec P-9: the answer comes from where it was asked.
#[test]
fn an_answer_from_elsewhere_than_asked_does_not_move_the_path() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    let withheld = withheld(&mut pair);
    let spoofed = Route { socket: SocketId(0), remote: SocketAddr::from(ELSEWHERE), local: None };
    pair.inject_over(PROVIDER, spoofed, &withheld[4]);
    let (_, challenge) = pair.astray.pop().expect("the new address was asked");
    // The attacker hands the challenge on to the customer, who answers from its own address.
    pair.inject(CUSTOMER, 0, &challenge);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(paths(&mut pair, PROVIDER)[0].remote, pair.customer_address(0).to_string());
    assert!(carries(&mut pair, 77));
}

/// Spec P-8: an id that was closed opens nothing.
#[test]
fn a_straggler_does_not_open_its_closed_path_again() {
    let mut pair = Pair::connected(Setup::default());
    pair.links[1].up = false;
    pair.captured.clear();
    pair.run_for(Duration::from_secs(30));
    let late: Vec<_> = pair.captured.iter().filter(|seen| seen.link == 1).cloned().collect();
    pair.unplug(1);
    pair.run_for(Duration::from_secs(3));
    for seen in late.iter().filter(|seen| seen.to == PROVIDER) {
        pair.inject(PROVIDER, 1, &seen.bytes);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(paths(&mut pair, PROVIDER).len(), 1);
    assert!(pair.sides[PROVIDER].drop_count(DropReason::ClosedPath) > 0);
}
