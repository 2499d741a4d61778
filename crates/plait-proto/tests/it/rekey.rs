use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, bond_config, number, packet};
use plait_proto::config::{Order, RekeyLimits};
use plait_proto::drop_reason::DropReason;
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Duration;

fn exchange_under(rekey: RekeyLimits, count: u32, per_millisecond: u32) -> Pair {
    let mut bond = bond_config(Algorithm::RoundRobin, Order::Bond);
    bond.rekey = rekey;
    let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
    for n in 0..count {
        for side in [CUSTOMER, PROVIDER] {
            let first = n * per_millisecond;
            let batch: Vec<_> =
                (first..first + per_millisecond).map(|n| packet(side, 1, n)).collect();
            pair.send(side, &batch);
        }
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(Duration::from_secs(1));
    pair
}

fn assert_complete(pair: &Pair, count: u32) {
    for side in [CUSTOMER, PROVIDER] {
        let numbers: Vec<u32> = pair.delivered[side].iter().map(|p| number(p)).collect();
        let missing: Vec<u32> = (0..count).filter(|n| numbers.binary_search(n).is_err()).collect();
        assert!(missing.is_empty() && numbers.len() == count as usize, "side {side}: {missing:?}");
        assert!(numbers.is_sorted(), "side {side}");
    }
}

/// A response comes back over every path that carried the initiation; the first one counts.
fn assert_nothing_dropped(pair: &Pair) {
    for side in &pair.sides {
        assert_eq!(side.drop_total(), side.drop_count(DropReason::RepeatedResponse));
    }
}

/// Spec K-6, H-4: by datagrams sealed; the bond and its numbers go on.
#[test]
fn renewing_by_packets_loses_nothing() {
    let rekey = RekeyLimits { rekey_after_packets: 500, ..RekeyLimits::default() };
    let mut pair = exchange_under(rekey, 2000, 4);
    assert_complete(&pair, 8000);
    let handshakes = pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes;
    assert!(handshakes > 4, "{handshakes} handshakes");
    assert_nothing_dropped(&pair);
}

/// Spec K-6, H-4: by age; the bond and its numbers go on.
#[test]
fn renewing_by_age_loses_nothing() {
    let rekey = RekeyLimits {
        rekey_after: Duration::from_secs(2),
        reject_after: Duration::from_secs(3),
        ..RekeyLimits::default()
    };
    let mut pair = exchange_under(rekey, 10_000, 1);
    assert_complete(&pair, 10_000);
    let handshakes = pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes;
    assert!((4..=7).contains(&handshakes), "{handshakes} handshakes");
    assert_nothing_dropped(&pair);
}

/// Spec K-6: after 120 s.
#[test]
fn an_idle_session_is_renewed_and_stays_usable() {
    let mut pair = Pair::connected(Setup::default());
    pair.run_for(Duration::from_secs(400));
    assert!(pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes >= 3);
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 5)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.delivered[PROVIDER].len(), 1);
}

/// Spec K-6: after 180 s the bond ends with its session.
#[test]
fn a_session_that_cannot_be_renewed_is_refused() {
    let mut pair = Pair::connected(Setup::default());
    for link in &mut pair.links {
        link.up = false;
    }
    pair.run_for(Duration::from_secs(200));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [0, 0]);
    let status = pair.sides[CUSTOMER].status(pair.now);
    assert_eq!(status.peers[0].state, "connecting");
    for link in &mut pair.links {
        link.up = true;
    }
    pair.run_for(Duration::from_secs(7));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
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
        let mut pair = Pair::connected(Setup { bond, ..Setup::default() });
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &(0..100).map(|n| packet(side, 1, n)).collect::<Vec<_>>());
        }
        pair.run_for(Duration::from_millis(cut_at_ms - 500));
        set_links(&mut pair, false);
        pair.run_for(Duration::from_millis(2500));
        set_links(&mut pair, true);
        pair.run_for(Duration::from_secs(7));
        for side in [CUSTOMER, PROVIDER] {
            pair.delivered[1 - side].clear();
            pair.send(side, &(100..200).map(|n| packet(side, 1, n)).collect::<Vec<_>>());
            pair.run_for(Duration::from_millis(500));
            let delivered = pair.delivered[1 - side].len();
            assert_eq!(delivered, 100, "from side {side}, cut at {cut_at_ms} ms");
        }
    }
}

fn set_links(pair: &mut Pair, up: bool) {
    for link in &mut pair.links {
        link.up = up;
    }
}

fn initiations(pair: &Pair) -> usize {
    pair.captured.iter().filter(|datagram| datagram.bytes[0] == 0x11).count()
}

/// Spec H-8: the first initiation that renews an idle bond goes over one path.
#[test]
fn an_idle_bond_is_renewed_over_one_path() {
    let mut pair = Pair::connected(Setup::default());
    pair.run_for(Duration::from_secs(119));
    pair.captured.clear();
    pair.run_for(Duration::from_secs(5));
    for side in &mut pair.sides {
        assert_eq!(side.status(pair.now).peers[0].handshakes, 2);
    }
    assert_eq!(initiations(&pair), 1);
    assert!(pair.captured.iter().all(|datagram| datagram.link == 0), "the quickest path");
}

/// Spec H-8: the first alone goes over one path only.
#[test]
fn a_renewal_that_is_not_answered_goes_over_all_paths() {
    let mut pair = Pair::connected(Setup::default());
    pair.run_for(Duration::from_secs(119));
    pair.captured.clear();
    pair.links[0].up = false;
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes, 2);
    assert_eq!(initiations(&pair), 1 + 2);
}
