//! Links that carry less than the hosts would send, and change how much.

use plait_pair::{
    CUSTOMER, CUSTOMER_IP, PROVIDER, PROVIDER_IP, Pair, Setup, number, packet, packet_with,
    public_key,
};
use plait_proto::config::Prefix;
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Event;
use plait_proto::stats::PathStatus;
use plait_proto::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

fn resized(mut packet: Vec<u8>, bytes: usize) -> Vec<u8> {
    packet.resize(bytes, 0);
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    packet
}

fn paths(pair: &mut Pair, side: usize) -> Vec<PathStatus> {
    let mut status = pair.sides[side].status(pair.now);
    status.peers.swap_remove(0).paths
}

/// Sends packets as large as the host is allowed each way, one every `interval`.
fn exchange(pair: &mut Pair, time: Duration, interval: Duration) {
    let end = pair.now + time;
    for count in 0..1_000_000 {
        if pair.now >= end {
            return;
        }
        for side in [CUSTOMER, PROVIDER] {
            let bytes = usize::from(pair.inner_mtu(side));
            pair.send(side, &[resized(packet(side, 1, count), bytes)]);
        }
        pair.run_for(interval);
    }
}

/// All that is sent from now on arrives.
fn assert_whole(pair: &mut Pair) {
    pair.run_for(Duration::from_secs(1));
    let before = [CUSTOMER, PROVIDER].map(|side| pair.delivered[side].len());
    exchange(pair, Duration::from_secs(1), MILLISECOND);
    pair.run_for(Duration::from_secs(1));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(pair.delivered[side].len() - before[side], 1000, "to side {side}");
    }
}

fn inner_mtus(pair: &Pair) -> [u16; 2] {
    [CUSTOMER, PROVIDER].map(|side| pair.inner_mtu(side))
}

fn one_link(mtu: usize, ipv6: bool) -> Pair {
    let mut pair = Pair::new(Setup { links: 1, ipv6, ..Setup::default() });
    pair.links[0].mtu = mtu;
    pair.run_for(Duration::from_millis(500));
    pair
}

#[test]
fn the_full_size_is_known_as_soon_as_a_path_is_up() {
    for (ipv6, mtu) in [(false, 1500), (true, 1520)] {
        let mut pair = one_link(mtu, ipv6);
        for side in [CUSTOMER, PROVIDER] {
            assert_eq!(paths(&mut pair, side)[0].mtu_bytes, Some(mtu as u32));
            assert!(!pair.events[side].iter().any(|event| matches!(event, Event::InnerMtu(..))));
        }
        assert_whole(&mut pair);
    }
}

/// Spec M-3: a base, then sizes between.
#[test]
fn a_smaller_link_is_found_while_data_flows() {
    let mut pair = one_link(1412, false);
    exchange(&mut pair, Duration::from_secs(3), MILLISECOND * 10);
    for side in [CUSTOMER, PROVIDER] {
        let found = Event::InnerMtu(public_key(1 - side), 1220);
        assert!(pair.events[side].contains(&found), "{:?}", pair.events[side]);
    }
    exchange(&mut pair, Duration::from_secs(10), MILLISECOND * 10);
    assert!(inner_mtus(&pair).iter().all(|mtu| (1336..=1352).contains(mtu)), "found closely");
    assert_whole(&mut pair);
}

/// Spec M-3: lost large datagrams ask for a confirmation; after ten minutes a larger size.
#[test]
fn a_link_that_shrinks_and_grows_is_followed() {
    let mut pair = one_link(1500, false);
    exchange(&mut pair, Duration::from_secs(5), MILLISECOND * 5);
    assert_eq!(inner_mtus(&pair), [1440, 1440]);
    pair.links[0].mtu = 1300;
    exchange(&mut pair, Duration::from_millis(1500), MILLISECOND * 5);
    assert!(inner_mtus(&pair).iter().all(|mtu| *mtu <= 1240), "within 1.5 s: {:?}", pair.events);
    assert_whole(&mut pair);
    pair.links[0].mtu = 1500;
    exchange(&mut pair, Duration::from_secs(620), MILLISECOND * 50);
    assert_eq!(inner_mtus(&pair), [1440, 1440]);
    assert_whole(&mut pair);
}

#[test]
fn one_way_data_into_a_black_hole_is_noticed() {
    let mut pair = one_link(1500, false);
    pair.links[0].mtu = 1400;
    // A sender that hears nothing repeats itself ever more slowly, as TCP does.
    for (count, wait) in [0, 0, 0, 0, 200, 400, 800, 1600].into_iter().enumerate() {
        let bytes = usize::from(pair.inner_mtu(CUSTOMER));
        pair.send(CUSTOMER, &[resized(packet(CUSTOMER, 1, count as u32), bytes)]);
        pair.run_for(MILLISECOND * wait);
    }
    let arrived: Vec<u32> = pair.delivered[PROVIDER].iter().map(|packet| number(packet)).collect();
    assert!(arrived.contains(&7), "{arrived:?}");
}

/// Spec M-4: an inner packet goes only over paths that carry it.
#[test]
fn a_link_below_1280_carries_small_packets_only() {
    let mut pair = Pair::new(Setup::default());
    pair.links[1].mtu = 1000;
    pair.run_for(Duration::from_secs(15));
    assert_eq!(inner_mtus(&pair), [1440, 1440], "the small link does not count");
    let small = paths(&mut pair, CUSTOMER).swap_remove(1);
    assert!(small.mtu_bytes.is_some_and(|mtu| (985..=1000).contains(&mtu)), "{small:?}");
    assert!(small.reason.contains("small packets only"), "{}", small.reason);
    assert_whole(&mut pair);
    let before = paths(&mut pair, CUSTOMER).swap_remove(1).sent_packets;
    for count in 0..100 {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, count)]);
    }
    let after = paths(&mut pair, CUSTOMER).swap_remove(1).sent_packets;
    assert_eq!(after - before, 50, "small packets use both links");
}

/// Spec M-4: what fits no path is dropped and counted.
#[test]
fn the_only_link_counts_however_small() {
    let mut pair = one_link(700, false);
    exchange(&mut pair, Duration::from_secs(15), MILLISECOND * 20);
    assert!(inner_mtus(&pair).iter().all(|mtu| (620..=640).contains(mtu)));
    assert_whole(&mut pair);
    let too_big = pair.sides[CUSTOMER].drop_count(DropReason::TooBigForPath);
    pair.send(CUSTOMER, &[resized(packet(CUSTOMER, 1, 0), 800)]);
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::TooBigForPath), too_big + 1);
}

#[test]
fn the_smallest_path_in_use_decides_and_leaves_late() {
    let mut pair = Pair::new(Setup::default());
    pair.links[1].mtu = 1400;
    exchange(&mut pair, Duration::from_secs(10), MILLISECOND * 10);
    assert_eq!(inner_mtus(&pair), [1340, 1340]);
    pair.links[1].up = false;
    exchange(&mut pair, Duration::from_secs(4), MILLISECOND * 10);
    assert_eq!(inner_mtus(&pair), [1340, 1340], "it may come back");
    exchange(&mut pair, Duration::from_secs(6), MILLISECOND * 10);
    assert_eq!(inner_mtus(&pair), [1440, 1440]);
    pair.links[1].up = true;
    exchange(&mut pair, Duration::from_secs(3), MILLISECOND * 10);
    assert_eq!(inner_mtus(&pair), [1340, 1340]);
}

#[test]
fn an_idle_bond_sends_no_large_datagram() {
    let mut pair = one_link(1500, false);
    let before = pair.captured.len();
    pair.run_for(Duration::from_secs(3600));
    let large = pair.captured[before..].iter().filter(|datagram| datagram.bytes.len() > 600);
    assert_eq!(large.count(), 0);
}

/// A SYN that announces an MSS of 1460 bytes, without checksums.
fn syn(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut syn = packet_with(source, destination, 1, 0);
    syn[9] = 6;
    syn.truncate(20);
    syn.extend_from_slice(&[0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 2, 0, 0, 0, 0, 0, 0]);
    syn.extend_from_slice(&[2, 4, 5, 0xb4]);
    resized(syn, 44)
}

/// Spec M-5: the receiver's own inner MTU less 40.
#[test]
fn a_syn_tells_the_host_what_its_gateway_may_send() {
    let mut pair = one_link(1400, false);
    exchange(&mut pair, Duration::from_secs(10), MILLISECOND * 10);
    assert_eq!(inner_mtus(&pair), [1340, 1340]);
    pair.send(CUSTOMER, &[syn(CUSTOMER_IP, PROVIDER_IP)]);
    pair.send(PROVIDER, &[syn(PROVIDER_IP, CUSTOMER_IP)]);
    pair.run_for(Duration::from_secs(1));
    for side in [CUSTOMER, PROVIDER] {
        let got = pair.delivered[side].last().expect("the SYN arrived");
        assert_eq!(got[42..44], 1300_u16.to_be_bytes());
    }
}

fn udp_v6(bytes: usize) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&((bytes - 40) as u16).to_be_bytes());
    packet.extend_from_slice(&[17, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.resize(bytes, 0);
    packet
}

fn ipv6_too(pair: &mut Pair) {
    let all = Prefix { address: [0_u16; 8].into(), length: 0 };
    for side in [CUSTOMER, PROVIDER] {
        pair.reconfigure(side, |peers, _| peers[0].allowed_ips.push(all));
    }
}

/// Spec M-4: the sender is told what fits, by an ICMP message; what may be cut is.
#[test]
fn a_packet_too_large_for_the_bond_is_cut_or_its_sender_is_told() {
    let mut pair = one_link(1400, false);
    exchange(&mut pair, Duration::from_secs(10), MILLISECOND * 10);
    assert_eq!(inner_mtus(&pair), [1340, 1340]);
    let large = resized(packet(CUSTOMER, 1, 7), 1440);
    let mut may_be_cut = large.clone();
    may_be_cut[6] = 0;
    let arrived = pair.delivered[PROVIDER].len();
    pair.delivered[CUSTOMER].clear();
    pair.send(CUSTOMER, &[large, may_be_cut]);
    pair.run_for(Duration::from_secs(1));
    let sizes: Vec<usize> = pair.delivered[PROVIDER][arrived..].iter().map(Vec::len).collect();
    assert_eq!(sizes, [1340, 120]);
    let told = &pair.delivered[CUSTOMER];
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (&told[0][12..20], &told[0][20..22]),
        (&[10, 99, 0, 1, 10, 99, 0, 2][..], &[3, 4][..])
    );
    assert_eq!(told[0][26..28], 1340_u16.to_be_bytes());
}

#[test]
fn senders_are_told_of_sizes_at_a_bounded_rate() {
    let mut pair = one_link(1400, false);
    exchange(&mut pair, Duration::from_secs(10), MILLISECOND * 10);
    pair.delivered[CUSTOMER].clear();
    for _ in 0..1000 {
        pair.send(CUSTOMER, &[resized(packet(CUSTOMER, 1, 7), 1440)]);
        pair.run_for(MILLISECOND);
    }
    assert!((60..=80).contains(&pair.delivered[CUSTOMER].len()), "20 at once and 50 a second");
}

/// Spec M-4: a path below 1280 bytes carries no IPv6.
#[test]
fn ipv6_goes_only_over_paths_that_carry_1280_bytes() {
    let mut pair = Pair::new(Setup::default());
    ipv6_too(&mut pair);
    pair.links[1].mtu = 1000;
    pair.run_for(Duration::from_secs(15));
    let before = paths(&mut pair, CUSTOMER).swap_remove(1).sent_packets;
    for _ in 0..50 {
        pair.send(CUSTOMER, &[udp_v6(100)]);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.delivered[PROVIDER].len(), 50);
    assert_eq!(paths(&mut pair, CUSTOMER).swap_remove(1).sent_packets, before);
    pair.links[0].up = false;
    pair.delivered[CUSTOMER].clear();
    exchange(&mut pair, Duration::from_secs(10), MILLISECOND * 20);
    pair.delivered[CUSTOMER].clear();
    pair.send(CUSTOMER, &[udp_v6(100)]);
    let told = pair.delivered[CUSTOMER].last().expect("the sender is told");
    assert_eq!((told[6], &told[40..42]), (58, &[1, 0][..]), "no route to destination");
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::NoIpv6), 1);
}
