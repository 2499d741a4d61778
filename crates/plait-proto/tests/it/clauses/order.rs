//! Data: layout, order, what is lost and what comes twice.

use plait_proto::config::{BondConfig, LossDetection, Order};
use plait_proto::resequencer::{ResequencerConfig, Timer};
use plait_proto::time::Duration;
use plait_proto::wire::Kind;
use plait_proto::wire::control::{Discards, Frame};
use plait_proto::wire::dscp::Dscps;

use crate::by_hand::{ByHand, Made, Seen, What};

/// What waits is released after two seconds, if nothing else releases it.
fn patient(loss_detection: LossDetection) -> Made {
    let made = Made::listening();
    let timer = Timer::Fixed(Duration::from_secs(2));
    let resequencer = ResequencerConfig { timer, ..made.bond.resequencer };
    Made { bond: BondConfig { resequencer, loss_detection, ..made.bond }, ..made }
}

/// Spec W-4: 32 bytes beside the inner packet, no frames; a lane's packets name their predecessor.
#[test]
fn a_data_datagram_holds_one_packet_and_32_bytes() {
    let mut peer = ByHand::connected(Made::listening());
    for number in 0..5 {
        peer.take(|_| true);
        peer.host_sends(number);
        let data = peer.take(Seen::is_data);
        let [Seen { bytes, what: What::Data { seq, prev, inner }, .. }] = &data[..] else {
            panic!("one datagram, not {data:?}");
        };
        assert_eq!((plait_pair::number(inner), *seq), (number, number));
        assert_eq!(*prev, u16::from(number > 0), "the first packet of a lane waits for nothing");
        assert_eq!(*bytes, inner.len() + 32);
    }
}

/// Packets of a class that is named name no predecessor, whatever the order.
#[test]
fn packets_of_an_unordered_class_name_no_predecessor() {
    for order in [Order::Flow, Order::Bond] {
        for (codepoint, expected) in [(0, [0, 0, 0]), (46, [0, 1, 1])] {
            let made = Made::listening();
            let unordered = Dscps::from_iter([codepoint]);
            let bond = BondConfig { order, unordered, ..made.bond };
            let mut peer = ByHand::connected(Made { bond, ..made });
            peer.take(|_| true);
            let named = [0, 1, 2].map(|number| {
                peer.host_sends(number);
                match peer.take(Seen::is_data).as_slice() {
                    [Seen { what: What::Data { prev, .. }, .. }] => *prev,
                    data => panic!("one datagram, not {data:?}"),
                }
            });
            assert_eq!(named, expected, "{order:?}, codepoint {codepoint}");
        }
    }
}

/// Spec R-1: a packet waits for its predecessor and no other, or for nothing.
#[test]
fn a_packet_waits_for_its_predecessor() {
    let mut peer = ByHand::connected(patient(LossDetection::Timer));
    peer.data(0, 1, 1);
    peer.data(0, 3, 1);
    assert_eq!(peer.take_delivered(), [], "0 and 2 are missing");
    peer.data(0, 4, 0);
    assert_eq!(peer.take_delivered(), [4], "it waits for nothing");
    peer.data(0, 2, 0);
    assert_eq!(peer.take_delivered(), [2, 3]);
    peer.data(0, 0, 0);
    assert_eq!(peer.take_delivered(), [0, 1]);
}

/// Spec R-2: after the timeout.
#[test]
fn a_packet_that_waited_the_timeout_gives_its_predecessor_up() {
    let mut peer = ByHand::connected(patient(LossDetection::Timer));
    peer.data(0, 0, 0);
    peer.data(0, 2, 1);
    peer.take_delivered();
    for _ in 0..19 {
        peer.run_ms(100);
        peer.mark(0, 3);
    }
    assert_eq!(peer.take_delivered(), [], "the receiver counts by the timer alone");
    peer.run_ms(100);
    assert_eq!(peer.take_delivered(), [2]);
}

/// Spec R-3: every live path has shown a higher number, and later datagrams confirm it. Spec W-5: a
/// mark shows it where no data comes.
#[test]
fn a_number_that_every_path_has_passed_is_known_lost() {
    for repairs in [false, true] {
        let mut peer = ByHand::new(patient(LossDetection::Known));
        peer.hello.repairs = repairs;
        peer.shake_hands();
        for path in [0, 2] {
            peer.open_path(path);
        }
        peer.data(0, 0, 0);
        peer.data(0, 2, 1);
        assert_eq!(peer.take_delivered(), [0]);
        for _ in 0..3 {
            peer.mark(0, 3);
        }
        assert_eq!(peer.take_delivered(), [], "the other path may still bring it");
        peer.mark(2, 3);
        for _ in 0..2 {
            peer.mark(2, 3);
            assert_eq!(peer.take_delivered(), [], "not confirmed yet");
        }
        peer.mark(2, 3);
        let lost = if repairs { vec![] } else { vec![2] };
        assert_eq!(peer.take_delivered(), lost, "the peer sends again what was lost: {repairs}");
        peer.run_ms(2000);
        assert_eq!(peer.take_delivered().len(), 1 - lost.len());
    }
}

/// Spec R-4: dropped, as configured here, and counted.
#[test]
fn a_packet_after_it_was_given_up_is_late() {
    let mut peer = ByHand::connected(patient(LossDetection::Timer));
    peer.data(0, 0, 0);
    peer.data(0, 2, 1);
    peer.run_ms(2000);
    assert_eq!(peer.take_delivered(), [0, 2]);
    peer.data(0, 1, 0);
    assert_eq!(peer.take_delivered(), []);
    assert_eq!(peer.status().resequencer.late_dropped, 1);
}

/// Spec R-6: the first that arrives is given to the host, over whichever path it came.
#[test]
fn a_packet_that_comes_twice_is_delivered_once() {
    let mut peer = ByHand::connected(patient(LossDetection::Known));
    peer.open_path(2);
    for (path, seq) in [(0, 0), (2, 0), (2, 1), (0, 1), (0, 1), (2, 2)] {
        peer.data(path, seq, u16::from(seq > 0));
    }
    assert_eq!(peer.take_delivered(), [0, 1, 2]);
}

/// Spec R-5: a source that is not the peer's. Its number counts as delivered: nothing waits for it.
#[test]
fn a_packet_from_a_foreign_source_takes_its_place_and_is_dropped() {
    let mut peer = ByHand::connected(patient(LossDetection::Known));
    let mut text = peer.data_text(0, 0, 0);
    text[7 + 12..7 + 16].copy_from_slice(&[10, 99, 0, 77]);
    let sealed = peer.sealed(0, 0, Kind::Data, &text);
    peer.put(ByHand::own_route(0), &sealed);
    peer.data(0, 1, 1);
    assert_eq!(peer.take_delivered(), [1]);
    assert_eq!(peer.drops(plait_proto::drop_reason::DropReason::SourceNotAllowed), 1);
}

/// The initiations that ask for another bond than the one there is.
fn askings(peer: &mut ByHand, seen: &[Seen]) -> Vec<Seen> {
    let own = peer.endpoints_end();
    let initiations = seen.iter().filter(|seen| matches!(seen.what, What::Initiation(_)));
    let initiations: Vec<Seen> = initiations.cloned().collect();
    initiations.into_iter().filter(|seen| peer.read_hello(seen).incarnation != own).collect()
}

/// Spec R-7: who throws away nearly all that arrives for 3 s says so once a second, and asks for
/// another bond. Spec C-12: by DISCARDS over every path that is up, with both counts.
#[test]
fn an_endpoint_that_throws_nearly_all_away_says_so_and_asks_for_another_bond() {
    let mut peer = ByHand::connected(patient(LossDetection::Known));
    peer.open_path(2);
    peer.data(0, 0, 0);
    peer.take(|_| true);
    let start = peer.now;
    for _ in 0..60 {
        peer.data(0, 0, 0);
        peer.run_ms(100);
    }
    let seen = peer.take(|_| true);
    assert!(!askings(&mut peer, &seen).is_empty());
    for path in [0, 2] {
        let told: Vec<(u128, u32, u32)> = seen
            .iter()
            .filter(|seen| seen.path == path)
            .flat_map(|seen| seen.frames().iter().map(|frame| (seen.at, frame.clone())))
            .filter_map(|(at, frame)| match frame {
                Frame::Discards(Discards { arrived, discarded }) => {
                    Some((at.since(start).as_millis(), arrived, discarded))
                }
                _ => None,
            })
            .collect();
        assert_eq!(told, [(3000, 31, 31), (4000, 41, 41), (5000, 51, 51)], "path {path}");
    }
}

/// Spec R-7: so does who is told, at most every 30 s, and the old bond serves until then.
#[test]
fn an_endpoint_that_is_told_asks_for_another_bond() {
    let mut peer = ByHand::connected(patient(LossDetection::Known));
    let mut asked_at = Vec::new();
    let start = peer.now;
    for second in 0..70 {
        peer.control(0, &[Frame::Discards(Discards { arrived: 100, discarded: 95 })]);
        peer.host_sends(second);
        peer.run_ms(1000);
        let seen = peer.take(|_| true);
        assert!(seen.iter().any(Seen::is_data), "second {second}");
        for asking in askings(&mut peer, &seen) {
            asked_at.push(asking.at.since(start).as_millis());
        }
    }
    assert_eq!(asked_at.first(), Some(&0));
    let begun: Vec<u128> = asked_at.iter().copied().filter(|at| at % 30_000 == 0).collect();
    assert_eq!(begun, [0, 30_000, 60_000], "{asked_at:?}");
}
