//! Either side is killed and starts again; peers that are only remembered; packets that wait.

use plait_pair::{CUSTOMER, Datagram, PROVIDER, Pair, Setup, number, packet};
use plait_proto::drop_reason::DropReason;
use plait_proto::time::Duration;

fn initiations(pair: &Pair, from: usize) -> usize {
    let sent = pair.captured.iter().filter(|datagram| datagram.to == 1 - from);
    sent.filter(|datagram| datagram.bytes[0] == 0x11).count()
}

/// Traffic from one side; the other or the same is dead for a time. Gives how long after its
/// restart the first packet is delivered.
fn standstill(killed: usize, from: usize, dead_ms: u64, remembers: bool) -> Duration {
    let mut pair = Pair::connected(Setup::default());
    let traffic = |pair: &mut Pair| {
        if !pair.dead[from] {
            pair.send(from, &[packet(from, 1, 0)]);
        }
        pair.run_for(Duration::from_millis(10));
    };
    for _ in 0..100 {
        traffic(&mut pair);
    }
    pair.dead[killed] = true;
    for _ in 0..dead_ms / 10 {
        traffic(&mut pair);
    }
    let start = pair.now;
    if remembers {
        pair.restart_and_remember(killed);
    } else {
        pair.restart(killed);
    }
    pair.delivered[1 - from].clear();
    for _ in 0..1000 {
        traffic(&mut pair);
        if !pair.delivered[1 - from].is_empty() {
            let gone = pair.now.since(start);
            pair.run_for(Duration::from_secs(1));
            assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
            let status = pair.sides[PROVIDER].status(pair.now);
            let names: Vec<_> = status.peers[0].paths.iter().map(|path| &path.name).collect();
            assert_eq!(names, ["link0", "link1"], "the customer described its links");
            return gone;
        }
    }
    panic!("killed {killed}, from {from}, dead for {dead_ms} ms: no packet in 10 s");
}

/// Spec H-4, P-11: a new bond, whose links their owner describes.
#[test]
fn the_bond_is_back_within_two_seconds_of_a_restart() {
    for dead_ms in [0, 100, 1000, 3000, 20_000, 200_000] {
        for killed in [CUSTOMER, PROVIDER] {
            for from in [CUSTOMER, PROVIDER] {
                let gone = standstill(killed, from, dead_ms, killed == PROVIDER);
                assert!(
                    gone <= Duration::from_secs(2),
                    "killed {killed}, from {from}, dead for {dead_ms} ms: {gone:?}"
                );
            }
        }
    }
}

#[test]
fn a_provider_without_memory_is_found_by_the_traffic() {
    for dead_ms in [0, 1000, 20_000, 200_000] {
        let gone = standstill(PROVIDER, CUSTOMER, dead_ms, false);
        assert!(gone <= Duration::from_secs(2), "dead for {dead_ms} ms: {gone:?}");
    }
}

/// Neither side has traffic when the listening one starts again: it calls, and what the customer
/// then sends passes at once.
/// Spec H-13, P-11: it initiates where the peer was last reached, and calls.
#[test]
fn a_restarted_listener_calls_its_peers() {
    let mut pair = Pair::connected(Setup::default());
    pair.run_for(Duration::from_secs(10));
    pair.restart_and_remember(PROVIDER);
    pair.run_for(Duration::from_millis(200));
    for side in [CUSTOMER, PROVIDER] {
        pair.send(side, &[packet(side, 1, 5)]);
        pair.run_for(Duration::from_millis(50));
        assert_eq!(pair.delivered[1 - side].len(), 1);
    }
    assert_eq!(pair.sides[PROVIDER].known_routes().len(), 2, "as many as there are paths");
}

/// A handshake answers the silence of all paths, but none comes back, and then the peer dies.
#[test]
fn regression_a_peer_that_dies_after_a_handshake_that_brought_no_path_is_called_again() {
    let mut pair = Pair::connected(Setup::default());
    for link in &mut pair.links {
        link.up_to[CUSTOMER] = false;
    }
    pair.captured.clear();
    let traffic = |pair: &mut Pair, count| {
        for n in 0..count {
            pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
            pair.run_for(Duration::from_millis(10));
        }
    };
    traffic(&mut pair, 100);
    let response = |seen: &&Datagram| seen.to == CUSTOMER && seen.bytes[0] == 0x12;
    let response = pair.captured.iter().rfind(response).expect("the provider answered").clone();
    pair.inject(CUSTOMER, 0, &response.bytes);
    traffic(&mut pair, 100);
    assert_eq!(pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes, 2);
    pair.dead[PROVIDER] = true;
    traffic(&mut pair, 100);
    pair.restart(PROVIDER);
    for link in &mut pair.links {
        link.up_to[CUSTOMER] = true;
    }
    traffic(&mut pair, 300);
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
}

/// Spec H-13: six times in a row, and again when there is traffic.
#[test]
fn a_peer_that_is_gone_is_not_called_for_ever() {
    let mut pair = Pair::connected(Setup::default());
    pair.dead[CUSTOMER] = true;
    pair.restart_and_remember(PROVIDER);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(initiations(&pair, PROVIDER), 6 * 2, "six attempts over two routes");
    assert_eq!(pair.sides[PROVIDER].poll_timeout(pair.now), None, "all is quiet");
    pair.captured.clear();
    for n in 0..600 {
        pair.send(PROVIDER, &[packet(PROVIDER, 1, n)]);
        pair.run_for(Duration::from_millis(100));
    }
    let called = initiations(&pair, PROVIDER);
    assert!((2 * 30..=2 * 60).contains(&called), "{called} initiations under traffic in a minute");
    let lost = pair.sides[PROVIDER].drop_count(DropReason::NoSession);
    assert!((585..600).contains(&lost), "{lost} packets counted");
}

#[test]
fn a_call_without_memory_is_not_made() {
    let mut pair = Pair::new(Setup::default());
    pair.dead[CUSTOMER] = true;
    for n in 0..100 {
        pair.send(PROVIDER, &[packet(PROVIDER, 1, n)]);
        pair.run_for(Duration::from_millis(100));
    }
    assert_eq!(initiations(&pair, PROVIDER), 0);
}

#[test]
fn a_bond_that_expired_comes_back_with_the_listeners_traffic() {
    let mut pair = Pair::connected(Setup::default());
    for link in &mut pair.links {
        link.up = false;
    }
    pair.dead[CUSTOMER] = true;
    pair.run_for(Duration::from_secs(400));
    assert_eq!(pair.sides[PROVIDER].status(pair.now).peers[0].state, "down");
    assert_eq!(pair.sides[PROVIDER].known_routes().len(), 2);
    pair.captured.clear();
    pair.send(PROVIDER, &[packet(PROVIDER, 1, 0)]);
    assert_eq!(initiations(&pair, PROVIDER), 2);
}

#[test]
fn packets_wait_for_the_first_path() {
    let mut pair = Pair::new(Setup::default());
    for side in [CUSTOMER, PROVIDER] {
        pair.send(side, &(0..40).map(|n| packet(side, 1, n)).collect::<Vec<_>>());
    }
    pair.run_for(Duration::from_millis(200));
    for side in [CUSTOMER, PROVIDER] {
        let numbers: Vec<u32> = pair.delivered[1 - side].iter().map(|p| number(p)).collect();
        assert_eq!(numbers, (0..32).collect::<Vec<_>>(), "from side {side}");
        assert_eq!(pair.sides[side].drop_count(DropReason::NoSession), 8);
    }
}

#[test]
fn packets_that_waited_too_long_are_dropped() {
    let mut pair = Pair::new(Setup::default());
    for link in &mut pair.links {
        link.up = false;
    }
    pair.send(PROVIDER, &[packet(PROVIDER, 1, 1)]);
    pair.run_for(Duration::from_secs(1));
    for link in &mut pair.links {
        link.up = true;
    }
    pair.run_for(Duration::from_secs(6));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
    assert!(pair.delivered[CUSTOMER].is_empty());
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::NoSession), 1);
}
