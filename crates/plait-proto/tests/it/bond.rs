use plait_pair::{
    CUSTOMER, CUSTOMER_IP, PROVIDER, PROVIDER_IP, Pair, Setup, bond_config, number, packet,
    packet_with,
};
use plait_proto::config::Order;
use plait_proto::drop_reason::DropReason;
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Duration;

fn numbers(pair: &Pair, side: usize) -> Vec<u32> {
    pair.delivered[side].iter().map(|packet| number(packet)).collect()
}

/// Sends `count` packets each way, one a millisecond.
fn exchange(pair: &mut Pair, count: u32, flows: u16) {
    for n in 0..count {
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &[packet(side, n as u16 % flows, n)]);
        }
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(Duration::from_secs(1));
}

#[test]
fn every_scheduler_delivers_in_order_both_ways() {
    for algorithm in Algorithm::ALL {
        let bond = bond_config(algorithm, Order::Bond);
        let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
        exchange(&mut pair, 1000, 1);
        for side in [CUSTOMER, PROVIDER] {
            assert_eq!(numbers(&pair, side), (0..1000).collect::<Vec<_>>(), "{algorithm:?}");
        }
    }
}

#[test]
fn round_robin_uses_both_paths() {
    let mut pair = Pair::connected(Setup::default());
    exchange(&mut pair, 1000, 1);
    let status = pair.sides[CUSTOMER].status(pair.now);
    let sent: Vec<u64> = status.peers[0].paths.iter().map(|path| path.sent_packets).collect();
    assert_eq!(sent, [500, 500]);
}

/// Spec R-1: a packet waits for its predecessor in its lane.
#[test]
fn flows_keep_their_order_without_waiting_for_each_other() {
    let bond = bond_config(Algorithm::RoundRobin, Order::Flow);
    let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
    exchange(&mut pair, 1000, 7);
    for flow in 0..7 {
        let of_flow: Vec<u32> =
            numbers(&pair, PROVIDER).into_iter().filter(|n| n % 7 == flow).collect();
        assert!(of_flow.is_sorted(), "flow {flow}");
    }
    assert_eq!(pair.delivered[PROVIDER].len(), 1000);
    // Odd and even flows run over the paths in turn: packets overtake those of other flows.
    assert!(!numbers(&pair, PROVIDER).is_sorted());
}

/// Spec R-1: packets that wait for nothing are given at once.
#[test]
fn unordered_packets_never_wait() {
    let bond = bond_config(Algorithm::RoundRobin, Order::None);
    let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
    exchange(&mut pair, 100, 1);
    let status = pair.sides[PROVIDER].status(pair.now);
    assert_eq!(status.peers[0].resequencer.waited, 0);
    assert_eq!(pair.delivered[PROVIDER].len(), 100);
}

#[test]
fn a_silent_path_is_left_out_and_taken_back() {
    let mut pair = Pair::connected(Setup::default());
    pair.links[1].up = false;
    exchange(&mut pair, 3000, 1);
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [1, 1]);
    let before = pair.delivered[PROVIDER].len();
    exchange(&mut pair, 500, 1);
    assert_eq!(pair.delivered[PROVIDER].len(), before + 500, "nothing is lost any more");
    pair.links[1].up = true;
    pair.run_for(Duration::from_secs(3));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
}

#[test]
fn losses_are_reported_to_the_path_that_lost() {
    let mut pair = Pair::connected(Setup::default());
    for n in 0..2000 {
        pair.links[1].up = n % 50 != 0;
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 2 * n), packet(CUSTOMER, 1, 2 * n + 1)]);
        pair.run_for(Duration::from_millis(1));
    }
    pair.links[1].up = true;
    pair.run_for(Duration::from_secs(1));
    let lost = 4000 - pair.delivered[PROVIDER].len() as u64;
    assert!(lost > 20, "the link did lose: {lost}");
    let status = pair.sides[CUSTOMER].status(pair.now);
    let reported: Vec<u64> =
        status.peers[0].paths.iter().map(|path| path.reported_lost_packets).collect();
    assert_eq!(reported[0], 0, "the clean path is not blamed");
    assert!(reported[1].abs_diff(lost) <= 2, "{reported:?} of {lost}");
}

/// Spec R-5.
#[test]
fn a_spoofed_inner_source_is_dropped_and_counted() {
    let mut pair = Pair::connected(Setup::default());
    let spoofed = packet_with([10, 99, 0, 77], PROVIDER_IP, 1, 1);
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 0), spoofed, packet(CUSTOMER, 1, 2)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(numbers(&pair, PROVIDER), [0, 2]);
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::SourceNotAllowed), 1);
}

/// Control datagrams share the packet numbers of data. They must not pass for gaps, each of which
/// would ask for an acknowledgement at once.
#[test]
fn regression_control_datagrams_are_no_gaps() {
    let mut pair = Pair::connected(Setup::default());
    let before = pair.captured.len();
    exchange(&mut pair, 1000, 1);
    let sent = &pair.captured[before..];
    let control = sent.iter().filter(|datagram| datagram.bytes[0] == 0x15).count();
    // In a second, each way and path: an acknowledgement every 5 ms, a probe and its echo; each way
    // a loss report every 50 ms.
    assert!(control <= 4 * (200 + 4) + 2 * 25, "{control} control datagrams");
}

#[test]
fn what_has_no_peer_or_is_no_packet_is_counted() {
    let mut pair = Pair::connected(Setup::default());
    pair.send(CUSTOMER, &[packet_with(CUSTOMER_IP, [203, 0, 113, 1], 1, 1), vec![0; 40]]);
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::NoPeer), 1);
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::BadInnerPacket), 1);
}

/// Spec P-4: probes at the keepalive interval.
#[test]
fn an_idle_bond_is_nearly_silent() {
    let mut pair = Pair::connected(Setup::default());
    pair.run_for(Duration::from_secs(10));
    let before = pair.captured.len();
    pair.run_for(Duration::from_secs(100));
    let sent = pair.captured.len() - before;
    // Two paths, a probe and an echo each way every 25 s.
    assert!(sent <= 2 * 2 * 2 * 4 + 8, "{sent} datagrams in 100 s");
}

/// Spec C-8.
#[test]
fn a_farewell_ends_the_bond() {
    let mut pair = Pair::connected(Setup::default());
    let now = pair.now;
    pair.sides[CUSTOMER].close(now);
    pair.send(CUSTOMER, &[]);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.paths_up(PROVIDER), 0);
}
