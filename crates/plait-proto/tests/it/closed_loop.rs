//! Bonds whose paths have congestion controllers.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, bond_config, number, packet};
use plait_proto::config::{BondConfig, Order};
use plait_proto::congestion;
use plait_proto::drop_reason::DropReason;
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Duration;
use plait_proto::wire::Kind;

fn setup(algorithm: Algorithm, controller: congestion::Algorithm) -> Setup {
    let bond =
        BondConfig { congestion: Some(controller.into()), ..bond_config(algorithm, Order::Flow) };
    Setup { bond, ..Setup::default() }
}

/// Sends `count` packets of one flow, `per_ms` a millisecond, and gives what arrived.
fn stream(pair: &mut Pair, count: u32, per_ms: u32) -> Vec<u32> {
    for n in 0..count {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        if n % per_ms == per_ms - 1 {
            pair.run_for(Duration::from_millis(1));
        }
    }
    pair.run_for(Duration::from_secs(3));
    pair.delivered[PROVIDER].iter().map(|packet| number(packet)).collect()
}

/// Each lost copy was repaired by as many copies as there are paths, and each of those again.
#[test]
fn regression_copies_that_are_lost_do_not_multiply() {
    let setup = Setup { links: 3, ..setup(Algorithm::Redundant, congestion::Algorithm::Fixed) };
    let mut pair = Pair::connected(setup);
    stream(&mut pair, 50, 1);
    pair.captured.clear();
    pair.links.iter_mut().for_each(|link| link.up = false);
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 50)]);
    pair.run_for(Duration::from_secs(5));
    let is_data = |seen: &&plait_pair::Datagram| Kind::of(seen.bytes[0]) == Some(Kind::Data);
    let sent = pair.captured.iter().filter(is_data).count();
    assert!((4..=12).contains(&sent), "{sent}: four times over three paths");
}

/// With packets out over its only path, which answers no more, a gateway looked every 16 ms for
/// another path to send them over.
#[test]
fn regression_a_gateway_sleeps_while_its_only_link_is_dead() {
    let algorithm = Algorithm::EarliestDelivery;
    let mut pair =
        Pair::connected(Setup { links: 1, ..setup(algorithm, congestion::Algorithm::Gauge) });
    stream(&mut pair, 50, 1);
    pair.links[0].up = false;
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 50)]);
    pair.run_for(Duration::from_secs(10));
    let end = pair.now + Duration::from_secs(60);
    let mut wakes = 0;
    while let Some(due) = pair.sides[CUSTOMER].poll_timeout(pair.now).filter(|due| *due <= end) {
        pair.run_for(due.since(pair.now.min(due)));
        wakes += 1;
    }
    assert!(wakes <= 120, "{wakes} times in a minute");
}

#[test]
fn every_scheduler_and_controller_delivers_everything_in_order() {
    for algorithm in Algorithm::ALL {
        for controller in congestion::Algorithm::ALL {
            let mut pair = Pair::connected(setup(algorithm, controller));
            let arrived = stream(&mut pair, 2000, 1);
            assert!(
                arrived.iter().copied().eq(0..2000),
                "{algorithm} {controller}: {}",
                arrived.len()
            );
        }
    }
}

#[test]
fn a_burst_waits_at_the_ingress() {
    let mut pair = Pair::connected(setup(Algorithm::MinRtt, congestion::Algorithm::NewReno));
    let burst: Vec<Vec<u8>> = (0..1000).map(|n| packet(CUSTOMER, 1, n)).collect();
    pair.send(CUSTOMER, &burst);
    let waiting = |pair: &mut Pair| {
        let status = pair.sides[CUSTOMER].status(pair.now);
        status.peers[0].backlog.expect("the loop is closed").packets
    };
    assert!(waiting(&mut pair) > 500, "two initial windows do not hold the burst");
    pair.run_for(Duration::from_secs(2));
    assert_eq!(waiting(&mut pair), 0);
    let arrived: Vec<u32> = pair.delivered[PROVIDER].iter().map(|p| number(p)).collect();
    assert!(arrived.iter().copied().eq(0..1000), "{} arrived", arrived.len());
}

/// Spec: what is sent again is waited for, and comes in order.
#[test]
fn what_a_link_loses_is_sent_again() {
    let mut pair = Pair::connected(setup(Algorithm::MinRtt, congestion::Algorithm::Fixed));
    for link in &mut pair.links {
        link.loss_percent = 5;
    }
    let arrived = stream(&mut pair, 5000, 2);
    assert!(arrived.is_sorted(), "no disorder");
    // A packet that is lost three times in a row comes too late.
    assert!(arrived.len() >= 4995, "{} arrived", arrived.len());
    let status = pair.sides[CUSTOMER].status(pair.now);
    let repaired = status.peers[0].backlog.expect("the loop is closed").repaired_packets;
    assert!(repaired >= 150, "{repaired} of about 250 lost packets");
}

/// On a radio link a round trip is often three times the shortest one. What is late there is no
/// worse off than usual, and a tenth of all was sent twice.
#[test]
fn regression_where_round_trips_vary_late_packets_are_not_sent_again() {
    let mut pair = Pair::connected(setup(Algorithm::RoundRobin, congestion::Algorithm::Fixed));
    let rescued = |pair: &mut Pair| -> u64 {
        let status = pair.sides[CUSTOMER].status(pair.now);
        status.peers[0].paths.iter().map(|path| path.rescued_packets).sum()
    };
    for n in 0..3000 {
        // 5 to 35 ms each way, up and down within an eighth of a second.
        let step = u64::from(n % 120);
        pair.links[0].delay = Duration::from_millis(5 + step.min(120 - step) * 30 / 60);
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        pair.run_for(Duration::from_millis(1));
    }
    assert_eq!(rescued(&mut pair), 0);
    // A path that answers no more is another matter.
    pair.links[0].up = false;
    for n in 3000..3600 {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        pair.run_for(Duration::from_millis(1));
    }
    assert!(rescued(&mut pair) > 0);
}

/// A repair takes longer over such links than a gap is kept open for the spread of delays; it came
/// late and was dropped.
#[test]
fn regression_over_far_links_the_first_repair_is_waited_for() {
    let mut pair =
        Pair::connected(setup(Algorithm::EarliestDelivery, congestion::Algorithm::Fixed));
    for link in &mut pair.links {
        link.delay = Duration::from_millis(300);
    }
    // Until the round trips of before are forgotten.
    for _ in 0..5 {
        stream(&mut pair, 100, 1);
    }
    pair.links.iter_mut().for_each(|link| link.loss_percent = 2);
    let before = pair.delivered[PROVIDER].len();
    let arrived = stream(&mut pair, 2000, 1);
    assert!(arrived[before..].is_sorted(), "no disorder");
    assert!(arrived.len() - before >= 1998, "{} arrived", arrived.len() - before);
    let status = pair.sides[PROVIDER].status(pair.now);
    let stats = status.peers[0].resequencer;
    assert!(stats.late_dropped <= 2 && stats.given_up <= 2, "{stats:?}");
    assert!((600_000..=stats.timeout_max_us).contains(&stats.waiting_max_us), "{stats:?}");
    assert!((900_000..=2_000_000).contains(&stats.timeout_max_us), "{stats:?}");
}

#[test]
fn the_last_packet_of_all_is_sent_again() {
    let mut pair = Pair::connected(setup(Algorithm::MinRtt, congestion::Algorithm::Fixed));
    stream(&mut pair, 100, 1);
    for link in &mut pair.links {
        link.loss_percent = 100;
    }
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 100)]);
    pair.run_for(Duration::from_millis(20));
    for link in &mut pair.links {
        link.loss_percent = 0;
    }
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.delivered[PROVIDER].len(), 101);
}

#[test]
fn a_full_queue_drops_and_says_so() {
    let mut pair = Pair::connected(setup(Algorithm::MinRtt, congestion::Algorithm::NewReno));
    for link in &mut pair.links {
        link.up = false;
    }
    for n in 0..20_000 {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
    }
    pair.run_for(Duration::from_millis(100));
    let dropped = pair.sides[CUSTOMER].drop_count(DropReason::QueueFull);
    assert!(dropped > 0, "{dropped}");
}

/// Sum of both paths' windows after a loss on each, and a while of growth.
fn windows_after_growth(controller: congestion::Algorithm) -> u64 {
    let mut pair = Pair::connected(setup(Algorithm::RoundRobin, controller));
    for millis in 0..1000 {
        for n in 0..60 {
            pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 60 * millis + n)]);
        }
        let loss_percent = if (300..310).contains(&millis) { 30 } else { 0 };
        pair.links.iter_mut().for_each(|link| link.loss_percent = loss_percent);
        pair.run_for(Duration::from_millis(1));
    }
    let status = pair.sides[CUSTOMER].status(pair.now);
    status.peers[0].paths.iter().filter_map(|path| path.window_bytes).sum()
}

#[test]
fn coupled_controllers_see_the_bonds_other_paths() {
    let apart = windows_after_growth(congestion::Algorithm::NewReno);
    for controller in
        [congestion::Algorithm::Lia, congestion::Algorithm::Olia, congestion::Algorithm::Balia]
    {
        let coupled = windows_after_growth(controller);
        assert!(coupled < apart, "{controller}: {coupled} beside {apart}");
    }
}
