use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, bond_config, number, packet};
use plait_proto::config::Order;
use plait_proto::scheduler::Algorithm;
use plait_proto::stats::{PathState, PathStatus};
use plait_proto::time::Duration;

fn path(pair: &mut Pair, side: usize, link: usize) -> PathStatus {
    let now = pair.now;
    let status = pair.sides[side].status(now);
    let paths = status.peers.into_iter().flat_map(|peer| peer.paths);
    paths.into_iter().find(|path| path.name == format!("link{link}")).expect("the path exists")
}

fn state(pair: &mut Pair, side: usize, link: usize) -> PathState {
    path(pair, side, link).state
}

/// Sends packets both ways each millisecond; gives the longest time without a delivery at either
/// side.
fn load(pair: &mut Pair, first: u32, time_ms: u32, each_ms: u32) -> Duration {
    let mut last = [pair.now; 2];
    let mut longest = Duration::ZERO;
    for ms in 0..time_ms {
        let before = [pair.delivered[0].len(), pair.delivered[1].len()];
        for side in [CUSTOMER, PROVIDER] {
            let numbers = first + ms * each_ms..first + (ms + 1) * each_ms;
            let packets: Vec<_> = numbers.map(|n| packet(side, n as u16 % 4, n)).collect();
            pair.send(side, &packets);
        }
        pair.run_for(Duration::from_millis(1));
        for side in [CUSTOMER, PROVIDER] {
            if pair.delivered[side].len() > before[side] {
                longest = longest.max(pair.now.since(last[side]));
                last[side] = pair.now;
            }
        }
    }
    longest
}

fn missing(pair: &Pair, side: usize, count: u32) -> usize {
    let mut seen = vec![false; count as usize];
    for packet in &pair.delivered[side] {
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
        let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
        load(&mut pair, 0, 1000, 4);
        pair.links[cut].up = false;
        let gap = load(&mut pair, 4000, 1000, 4);
        pair.run_for(Duration::from_secs(1));
        assert!(gap < Duration::from_millis(300), "{gap:?}");
        for side in [CUSTOMER, PROVIDER] {
            assert_eq!(state(&mut pair, side, cut), PathState::Silent);
            assert!(path(&mut pair, side, cut).rescued_packets > 0);
            let missing = missing(&pair, side, 8000);
            assert!(missing <= 20, "{missing} packets were lost for good");
        }
    }
}

#[test]
fn what_is_rescued_is_delivered_in_order() {
    let mut pair = Pair::connected(Setup::default());
    load(&mut pair, 0, 1000, 4);
    pair.links[1].up = false;
    load(&mut pair, 4000, 1000, 4);
    let numbers: Vec<u32> = pair.delivered[PROVIDER].iter().map(|p| number(p)).collect();
    assert!(numbers.is_sorted());
}

#[test]
fn of_pings_on_an_idle_bond_at_most_three_stay_without_an_answer() {
    for cut in [0, 1] {
        let bond = bond_config(Algorithm::MinRtt, Order::Flow);
        let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
        for n in 0..200 {
            if n == 100 {
                pair.links[cut].up = false;
            }
            pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
            pair.run_for(Duration::from_millis(10));
            pair.send(PROVIDER, &[packet(PROVIDER, 1, n)]);
            pair.run_for(Duration::from_millis(10));
        }
        pair.run_for(Duration::from_secs(1));
        for side in [CUSTOMER, PROVIDER] {
            assert!(missing(&pair, side, 200) <= 3);
        }
    }
}

/// Spec P-5: a silent path is probed, and used again when it answers.
#[test]
fn a_healed_path_is_used_again_within_three_seconds() {
    let mut pair = Pair::connected(Setup::default());
    pair.links[1].up = false;
    load(&mut pair, 0, 10_000, 1);
    pair.links[1].up = true;
    load(&mut pair, 10_000, 2000, 1);
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut pair, side, 1), PathState::Up);
    }
}

/// Spec P-5a: who finds it silent says so.
#[test]
fn a_link_dead_in_one_direction_is_left_out_by_both_sides() {
    let mut pair = Pair::connected(Setup::default());
    load(&mut pair, 0, 500, 2);
    pair.links[1].up_to[PROVIDER] = false;
    load(&mut pair, 1000, 500, 2);
    assert_eq!(state(&mut pair, CUSTOMER, 1), PathState::Silent);
    assert_eq!(state(&mut pair, PROVIDER, 1), PathState::Silent);
}

/// Spec P-5: after repeated silence, only when it has answered for longer.
#[test]
fn a_path_that_flaps_is_trusted_less_each_time() {
    let mut pair = Pair::connected(Setup::default());
    let mut number = 0;
    let mut down = Vec::new();
    for _ in 0..6 {
        let mut silent_ms = 0;
        for ms in 0..2000 {
            pair.links[1].up = ms >= 400;
            load(&mut pair, number, 1, 2);
            number += 2;
            silent_ms += u32::from(state(&mut pair, CUSTOMER, 1) == PathState::Silent);
        }
        down.push(silent_ms);
    }
    assert!(down[5] > down[0] + 300, "{down:?}");
}

/// Spec P-5b.
#[test]
fn a_lossy_path_is_left_out_and_taken_back_when_it_has_healed() {
    let mut pair = Pair::connected(Setup::default());
    load(&mut pair, 0, 1000, 2);
    pair.links[1].loss_percent = 20;
    load(&mut pair, 2000, 2500, 2);
    assert_eq!(state(&mut pair, CUSTOMER, 1), PathState::Lossy);
    assert!(path(&mut pair, CUSTOMER, 1).loss_ratio > 0.1);
    load(&mut pair, 7000, 5000, 2);
    assert_eq!(state(&mut pair, CUSTOMER, 1), PathState::Lossy, "it has not healed");
    pair.links[1].loss_percent = 0;
    load(&mut pair, 17_000, 10_000, 2);
    assert_eq!(state(&mut pair, CUSTOMER, 1), PathState::Up);
}

/// Spec P-5b: only while another path is up.
#[test]
fn the_last_path_stays_in_use_however_lossy() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    pair.links[0].loss_percent = 20;
    load(&mut pair, 0, 3000, 2);
    assert_ne!(state(&mut pair, CUSTOMER, 0), PathState::Lossy);
}

/// As a load beyond the link's rate does that minds no loss: answers are lost with the rest.
/// Spec P-5: longer while the path still brings something.
#[test]
fn the_last_path_is_not_silent_while_it_brings_half_of_what_is_sent() {
    let bond = bond_config(Algorithm::MinRtt, Order::Flow);
    let mut pair = Pair::connected(Setup { links: 1, bond, ..Setup::default() });
    pair.links[0].loss_percent = 50;
    let mut silent_ms = 0;
    for ms in 0..20_000 {
        if ms % 100 == 0 {
            pair.send(CUSTOMER, &[packet(CUSTOMER, 1, ms)]);
        }
        pair.send(PROVIDER, &[packet(PROVIDER, 1, ms)]);
        pair.run_for(Duration::from_millis(1));
        for side in [CUSTOMER, PROVIDER] {
            silent_ms += u32::from(state(&mut pair, side, 0) == PathState::Silent);
        }
    }
    assert_eq!(silent_ms, 0);
}

/// Spec P-5d.
#[test]
fn a_standby_path_carries_data_only_when_no_other_does() {
    let mut pair = Pair::connected(Setup { standby: vec![1], ..Setup::default() });
    load(&mut pair, 0, 500, 2);
    assert_eq!(path(&mut pair, CUSTOMER, 1).sent_packets, 0);
    assert_eq!(path(&mut pair, PROVIDER, 1).sent_packets, 0);
    pair.links[0].up = false;
    load(&mut pair, 1000, 1000, 2);
    assert!(path(&mut pair, CUSTOMER, 1).sent_packets > 1000);
    assert!(path(&mut pair, PROVIDER, 1).sent_packets > 1000);
}

/// Spec P-5c: it sleeps, and is woken by more than a trickle.
#[test]
fn a_metered_path_sleeps_while_the_bond_is_idle_and_is_checked_before_use() {
    let mut pair = Pair::connected(Setup { metered: vec![1], ..Setup::default() });
    load(&mut pair, 0, 100, 1);
    pair.run_for(Duration::from_secs(20));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut pair, side, 1), PathState::Asleep);
    }
    let sent = pair.captured.iter().filter(|datagram| datagram.link == 1).count();
    pair.run_for(Duration::from_secs(90));
    let later = pair.captured.iter().filter(|datagram| datagram.link == 1).count();
    assert_eq!(sent, later, "nothing is sent over a sleeping path");
    load(&mut pair, 100, 500, 1);
    pair.run_for(Duration::from_millis(50));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut pair, side, 1), PathState::Up);
        assert_eq!(missing(&pair, side, 600), 0);
    }
}

/// Spec P-5c: PATH_DEAD over another path makes its owner challenge it.
#[test]
fn regression_a_sleeping_path_whose_nat_forgot_it_is_woken_by_its_owner() {
    let mut pair = Pair::connected(Setup { metered: vec![1], ..Setup::default() });
    pair.run_for(Duration::from_secs(20));
    pair.links[1].port = 2000;
    // Only the side that cannot reach the sleeping path has a use for it.
    for n in 0..2000 {
        pair.send(PROVIDER, &[packet(PROVIDER, 1, n)]);
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(Duration::from_millis(50));
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(state(&mut pair, side, 1), PathState::Up);
    }
    assert_eq!(missing(&pair, CUSTOMER, 2000), 0);
}

/// Spec P-5c: when no other path is up.
#[test]
fn a_sleeping_path_is_woken_when_the_other_dies() {
    let mut pair = Pair::connected(Setup { metered: vec![1], ..Setup::default() });
    pair.run_for(Duration::from_secs(20));
    pair.links[0].up = false;
    for n in 0..100 {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        pair.run_for(Duration::from_millis(100));
    }
    assert_eq!(state(&mut pair, CUSTOMER, 1), PathState::Up);
    assert!(missing(&pair, PROVIDER, 100) <= 3);
}

/// Spec P-5: up to the keepalive interval while the bond is idle.
#[test]
fn probes_of_a_dead_path_grow_rare_without_traffic() {
    let mut pair = Pair::connected(Setup::default());
    pair.links[1].up = false;
    load(&mut pair, 0, 1000, 1);
    pair.run_for(Duration::from_secs(100));
    let before = pair.captured.iter().filter(|datagram| datagram.link == 1).count();
    pair.run_for(Duration::from_secs(100));
    let sent = pair.captured.iter().filter(|datagram| datagram.link == 1).count() - before;
    assert!(sent <= 2 * 5 + 4, "{sent} datagrams in 100 s over a dead link");
}
