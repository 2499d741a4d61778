//! Inner flows that are kept on one path.

use core::net::IpAddr;

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, bond_config, number, packet};
use plait_proto::config::{BondConfig, Order};
use plait_proto::congestion;
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Event;
use plait_proto::ingress::{PIN_TIME, PinError};
use plait_proto::scheduler::Algorithm;
use plait_proto::seq::PathId;
use plait_proto::stats::{PathState, PathStatus};
use plait_proto::time::Duration;
use plait_proto::wire::ip::Inner;
use plait_proto::wire::sealed::DATA_OVERHEAD_BYTES;
use proptest::prelude::*;

const FLOW: u16 = 7;

/// What [`packet`] makes of a flow's number.
fn flow(from: usize) -> Inner {
    Inner::read(&packet(from, FLOW, 0)).expect("a packet of ours")
}

fn paths(pair: &mut Pair, side: usize) -> Vec<PathStatus> {
    let now = pair.now;
    pair.sides[side].status(now).peers.remove(0).paths
}

fn pin(pair: &mut Pair, side: usize, link: usize) {
    let path = PathId(paths(pair, side)[link].id);
    let now = pair.now;
    pair.sides[side].pin_flow(now, flow(side), path).expect("a path and room");
}

/// How many data packets each path takes of ten packets of the flow.
fn shares(pair: &mut Pair, side: usize) -> [u64; 2] {
    let before = paths(pair, side);
    for count in 0..10 {
        pair.send(side, &[packet(side, FLOW, count)]);
        pair.run_for(Duration::from_millis(10));
    }
    let after = paths(pair, side);
    [0, 1].map(|at| after[at].sent_packets - before[at].sent_packets)
}

#[test]
fn a_pinned_flow_keeps_to_its_path_in_each_direction_and_others_do_not() {
    let mut pair = Pair::connected(Setup::default());
    for side in [CUSTOMER, PROVIDER] {
        assert_eq!(shares(&mut pair, side), [5, 5], "round robin");
        pin(&mut pair, side, 1);
        assert_eq!(shares(&mut pair, side), [0, 10]);
        pair.send(side, &[packet(side, FLOW + 1, 0), packet(side, FLOW + 1, 1)]);
        pair.sides[side].unpin_flow(&flow(side));
        assert_eq!(shares(&mut pair, side), [5, 5], "it is forgotten");
    }
}

#[test]
fn a_pin_ends_by_itself() {
    let mut pair = Pair::connected(Setup::default());
    pin(&mut pair, CUSTOMER, 0);
    pair.run_for(PIN_TIME - Duration::from_secs(1));
    assert_eq!(shares(&mut pair, CUSTOMER), [10, 0]);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(shares(&mut pair, CUSTOMER), [5, 5]);
}

#[test]
fn a_pinned_flow_goes_the_bonds_way_while_its_path_is_dead() {
    let mut pair = Pair::connected(Setup::default());
    pin(&mut pair, CUSTOMER, 1);
    pair.links[1].up = false;
    shares(&mut pair, CUSTOMER);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(paths(&mut pair, CUSTOMER)[1].state, PathState::Silent);
    let before = pair.delivered[PROVIDER].len();
    assert_eq!(shares(&mut pair, CUSTOMER), [10, 0]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.delivered[PROVIDER].len(), before + 10);
    pair.links[1].up = true;
    pair.run_for(Duration::from_secs(10));
    assert_eq!(shares(&mut pair, CUSTOMER), [0, 10]);
}

#[test]
fn a_pinned_flow_waits_for_no_other_path() {
    let mut pair = Pair::connected(Setup::default());
    pin(&mut pair, CUSTOMER, 0);
    pair.links[0].up = false;
    pair.send(CUSTOMER, &[packet(CUSTOMER, FLOW, 1)]);
    pair.links[0].up = true;
    pair.send(CUSTOMER, &[packet(CUSTOMER, FLOW, 2)]);
    let link = pair.links[0].delay;
    pair.run_for(link + Duration::from_millis(1));
    let got: Vec<u32> = pair.delivered[PROVIDER].iter().map(|packet| number(packet)).collect();
    assert_eq!(got, [2], "1 was lost, and 2 does not wait for the slower path to pass it");
}

#[test]
fn a_path_that_is_gone_takes_its_pins_along() {
    let mut pair = Pair::connected(Setup::default());
    pin(&mut pair, CUSTOMER, 1);
    pair.unplug(1);
    pair.plug(1);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(shares(&mut pair, CUSTOMER), [5, 5]);
}

#[test]
fn a_sleeping_path_is_woken_for_a_pin() {
    let mut pair = Pair::connected(Setup { metered: vec![1], ..Setup::default() });
    pair.run_for(Duration::from_secs(60));
    assert_eq!(paths(&mut pair, CUSTOMER)[1].state, PathState::Asleep);
    // One packet alone wakes nobody; an idle bond would put the path to sleep again.
    pair.send(CUSTOMER, &[packet(CUSTOMER, FLOW, 0)]);
    pin(&mut pair, CUSTOMER, 1);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(shares(&mut pair, CUSTOMER), [0, 10]);
}

#[test]
fn what_cannot_be_pinned_is_said() {
    let mut pair = Pair::connected(Setup::default());
    let now = pair.now;
    let side = &mut pair.sides[CUSTOMER];
    let nowhere = PathId(99);
    assert_eq!(side.pin_flow(now, flow(CUSTOMER), nowhere), Err(PinError::NoPath(nowhere)));
    let stranger = Inner { destination: IpAddr::from([10, 1, 1, 1]), ..flow(CUSTOMER) };
    assert_eq!(side.pin_flow(now, stranger, PathId(0)), Err(PinError::NoPeer));
    let mut alone = Pair::new(Setup { links: 0, ..Setup::default() });
    let result = alone.sides[CUSTOMER].pin_flow(now, flow(CUSTOMER), PathId(0));
    assert_eq!(result, Err(PinError::NoBond));
}

/// Paths with controllers, whichever they are.
fn closed(algorithm: Algorithm, controller: congestion::Algorithm) -> Pair {
    let bond =
        BondConfig { congestion: Some(controller.into()), ..bond_config(algorithm, Order::Flow) };
    Pair::connected(Setup { bond, ..Setup::default() })
}

/// A flow of the customer whose packets are known by their length wherever they are seen.
#[derive(Clone, Copy, Debug)]
struct Sized {
    flow: u16,
    bytes: usize,
}

impl Sized {
    fn packet(self, number: u32) -> Vec<u8> {
        let mut packet = packet(CUSTOMER, self.flow, number);
        packet.resize(self.bytes, 0);
        packet[2..4].copy_from_slice(&(self.bytes as u16).to_be_bytes());
        packet[24..26].copy_from_slice(&(self.bytes as u16 - 20).to_be_bytes());
        packet
    }

    fn pin(self, pair: &mut Pair, link: usize) {
        let path = PathId(paths(pair, CUSTOMER)[link].id);
        let flow = Inner::read(&self.packet(0)).expect("a packet of ours");
        let now = pair.now;
        pair.sides[CUSTOMER].pin_flow(now, flow, path).expect("a path and room");
    }

    /// How many of its datagrams went over each link, repairs included.
    fn sent_over(self, pair: &Pair) -> [usize; 2] {
        [0, 1].map(|link| {
            let of_flow = |bytes: &[u8]| bytes.len() == self.bytes + DATA_OVERHEAD_BYTES;
            let captured = pair.captured.iter();
            captured.filter(|seen| seen.link == link && of_flow(&seen.bytes)).count()
        })
    }

    /// The numbers that arrived, in the order of their arrival.
    fn arrived(self, pair: &Pair) -> Vec<u32> {
        let packets = pair.delivered[PROVIDER].iter().filter(|packet| packet.len() == self.bytes);
        packets.map(|packet| number(packet)).collect()
    }
}

const OVER_FIRST: Sized = Sized { flow: 11, bytes: 501 };
const OVER_SECOND: Sized = Sized { flow: 12, bytes: 503 };
const FREE: Sized = Sized { flow: 13, bytes: 507 };

/// Packets that the queues dropped because their flows waited too long.
fn told_to_slow_down(pair: &Pair) -> usize {
    let reasons = [DropReason::QueueDelay, DropReason::TooOldToRepair];
    reasons.map(|reason| pair.sides[CUSTOMER].drop_count(reason) as usize).iter().sum()
}

/// Sends `count` packets of each flow in turn, a burst of `burst` each millisecond.
fn stream(pair: &mut Pair, flows: &[Sized], count: u32, burst: u32) {
    for n in 0..count {
        for flow in flows {
            pair.send(CUSTOMER, &[flow.packet(n)]);
        }
        if n % burst == burst - 1 {
            pair.run_for(Duration::from_millis(1));
        }
    }
    pair.run_for(Duration::from_secs(3));
}

#[test]
fn pinned_flows_keep_to_their_paths_under_every_controller() {
    for algorithm in [Algorithm::EarliestDelivery, Algorithm::MinRtt, Algorithm::RoundRobin] {
        for controller in congestion::Algorithm::ALL {
            let mut pair = closed(algorithm, controller);
            OVER_FIRST.pin(&mut pair, 0);
            OVER_SECOND.pin(&mut pair, 1);
            let what = format!("{algorithm} {controller}");
            stream(&mut pair, &[OVER_FIRST, OVER_SECOND], 1000, 2);
            assert_eq!(OVER_FIRST.sent_over(&pair), [1000, 0], "{what}");
            assert_eq!(OVER_SECOND.sent_over(&pair), [0, 1000], "{what}");
            for flow in [OVER_FIRST, OVER_SECOND] {
                assert!(flow.arrived(&pair).into_iter().eq(0..1000), "{what}: {flow:?}");
            }
        }
    }
}

#[test]
fn a_pinned_burst_waits_for_its_path_though_the_other_has_room() {
    let mut pair = closed(Algorithm::EarliestDelivery, congestion::Algorithm::NewReno);
    OVER_SECOND.pin(&mut pair, 1);
    let burst: Vec<Vec<u8>> = (0..500).map(|n| OVER_SECOND.packet(n)).collect();
    pair.send(CUSTOMER, &burst);
    let path = &paths(&mut pair, CUSTOMER)[1];
    let window = path.window_bytes.expect("the loop is closed");
    let sent_bytes = OVER_SECOND.sent_over(&pair)[1] * OVER_SECOND.bytes;
    assert!(sent_bytes as u64 <= window, "{sent_bytes} sent, the window is {window}");
    let waiting = |pair: &mut Pair| {
        let status = pair.sides[CUSTOMER].status(pair.now);
        status.peers[0].backlog.expect("the loop is closed").packets
    };
    assert!(waiting(&mut pair) > 300);
    // Others find the queue of the bond empty, and a path with room.
    pair.send(CUSTOMER, &[FREE.packet(0)]);
    assert_eq!(FREE.sent_over(&pair), [1, 0]);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(waiting(&mut pair), 0);
    let sent = OVER_SECOND.sent_over(&pair);
    assert_eq!((sent[0], sent[1] + told_to_slow_down(&pair)), (0, 500));
    let arrived = OVER_SECOND.arrived(&pair);
    assert!(arrived.is_sorted() && arrived.len() == sent[1]);
}

#[test]
fn a_pinned_packet_is_not_sent_again_because_its_path_is_slow() {
    let mut pair = closed(Algorithm::EarliestDelivery, congestion::Algorithm::Gauge);
    OVER_SECOND.pin(&mut pair, 1);
    stream(&mut pair, &[OVER_SECOND, FREE], 300, 1);
    pair.links[1].delay = Duration::from_millis(47);
    stream(&mut pair, &[OVER_SECOND], 60, 1);
    assert_eq!(OVER_SECOND.sent_over(&pair), [0, 360]);
}

#[test]
fn a_pinned_packet_leaves_when_its_pacer_lets_it() {
    let mut pair = closed(Algorithm::MinRtt, congestion::Algorithm::Fixed);
    OVER_FIRST.pin(&mut pair, 0);
    for n in 0..2000 {
        pair.send(CUSTOMER, &[OVER_FIRST.packet(n)]);
    }
    let before = OVER_FIRST.sent_over(&pair)[0];
    assert!(before < 2000, "all left at once");
    // No acknowledgement can be back so soon.
    pair.run_for(Duration::from_millis(8));
    let after = OVER_FIRST.sent_over(&pair)[0];
    assert!(after > before + 10, "{before} left at once, {after} in 8 ms");
}

#[test]
fn pinned_and_other_flows_share_a_path_that_both_fill() {
    let mut pair = closed(Algorithm::MinRtt, congestion::Algorithm::Fixed);
    pair.unplug(1);
    pair.run_for(Duration::from_secs(1));
    OVER_FIRST.pin(&mut pair, 0);
    for n in 0..4000 {
        pair.send(CUSTOMER, &[OVER_FIRST.packet(n), FREE.packet(n)]);
    }
    pair.run_for(Duration::from_millis(100));
    let [pinned, free] = [OVER_FIRST, FREE].map(|flow| flow.sent_over(&pair)[0]);
    assert!(pinned + free < 7000, "both wait: {pinned} {free}");
    assert!(pinned.abs_diff(free) * 5 < pinned + free, "{pinned} pinned, {free} others");
}

#[test]
fn what_waits_for_a_path_that_dies_goes_the_bonds_way() {
    let mut pair = closed(Algorithm::EarliestDelivery, congestion::Algorithm::NewReno);
    OVER_SECOND.pin(&mut pair, 1);
    let burst: Vec<Vec<u8>> = (0..300).map(|n| OVER_SECOND.packet(n)).collect();
    pair.send(CUSTOMER, &burst);
    pair.links[1].up = false;
    pair.run_for(Duration::from_secs(3));
    assert_eq!(paths(&mut pair, CUSTOMER)[1].state, PathState::Silent);
    assert!(OVER_SECOND.sent_over(&pair)[0] > 200);
    let arrived = OVER_SECOND.arrived(&pair);
    assert!(arrived.is_sorted() && arrived.len() >= 290, "{} arrived", arrived.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn loss_neither_moves_a_pinned_flow_nor_keeps_others_from_any_path(
        loss in [0..7_u64, 0..7],
        controller in prop::sample::select(congestion::Algorithm::ALL.to_vec()),
        burst in 1..4_u32,
        pins in prop::sample::subsequence(vec![(OVER_FIRST, 0), (OVER_SECOND, 1)], 1..=2),
    ) {
        let mut pair = closed(Algorithm::RoundRobin, controller);
        for (flow, link) in &pins {
            flow.pin(&mut pair, *link);
            pair.links[*link].loss_percent = loss[*link];
        }
        let flows: Vec<Sized> = pins.iter().map(|(flow, _)| *flow).chain([FREE]).collect();
        stream(&mut pair, &flows, 600, burst);
        for (flow, link) in pins {
            let sent = flow.sent_over(&pair);
            let elsewhere = sent[1 - link];
            // What was in flight on a path that fell silent goes the bond's way.
            let fell_silent =
                pair.events[CUSTOMER].iter().any(|event| matches!(event, Event::PathSilent(..)));
            let why = format!("{elsewhere} of flow {} left link {link}", flow.flow);
            prop_assert!(elsewhere == 0 || fell_silent, "{}", why);
            let arrived = flow.arrived(&pair);
            prop_assert!(arrived.is_sorted(), "disorder");
            let dropped = told_to_slow_down(&pair);
            let came = format!("{} of 600 arrived, {dropped} of all dropped", arrived.len());
            prop_assert!(arrived.len() + dropped >= 590, "{came}");
        }
        // A pinned flow that fills its path leaves little of it to those that can go elsewhere.
        let others = FREE.sent_over(&pair);
        prop_assert!(others.iter().all(|sent| *sent > 0), "others went {:?}", others);
    }
}
