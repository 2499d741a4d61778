//! Frames: what each asks for and is answered with.

use plait_proto::drop_reason::DropReason;
use plait_proto::seq::PathId;
use plait_proto::wire::Kind;
use plait_proto::wire::control::{Ack, AckRange, Frame, LossReport};

use crate::by_hand::{ByHand, Made, Seen};

fn two_paths() -> ByHand {
    let mut peer = ByHand::connected(Made::listening());
    peer.open_path(2);
    peer.take(|_| true);
    peer
}

/// The answers to frames on a path: all control datagrams that come at once.
fn answers(peer: &mut ByHand, path: u8, frames: &[Frame]) -> Vec<(u8, Vec<Frame>)> {
    peer.take(|_| true);
    peer.control(path, frames);
    let seen = peer.take(|seen| !seen.frames().is_empty());
    seen.into_iter().map(|seen| (seen.path, seen.frames().to_vec())).collect()
}

/// Spec C-2, spec C-4, spec C-11: challenges and probes are answered over the path they came by.
#[test]
fn what_asks_is_answered_over_the_same_path() {
    let mut peer = two_paths();
    for path in [0, 2] {
        let asked = [
            (Frame::PathChallenge(1 << 40), Frame::PathResponse(1 << 40)),
            (Frame::Probe(7), Frame::ProbeEcho(7)),
            (Frame::MtuProbe { id: 8, padding: 500 }, Frame::MtuEcho(8)),
        ];
        for (question, answer) in asked {
            assert_eq!(answers(&mut peer, path, &[question]), [(path, vec![answer])]);
        }
    }
}

/// Spec C-1: one frame that does not parse, and none of the others counts.
#[test]
fn a_datagram_with_a_frame_that_does_not_parse_is_dropped_whole() {
    let mut peer = two_paths();
    let mut probe = Vec::new();
    Frame::Probe(7).write(&mut probe);
    let bad: [&[u8]; 5] =
        [&[0], &[99], &[4, 0, 0], &[11, 0, 0, 0, 1, 0, 1, 9], &[3, 0, 0, 0, 0, 4, 0]];
    for (count, bad) in bad.into_iter().enumerate() {
        for body in [[&probe[..], bad].concat(), [bad, &probe[..]].concat()] {
            let text = peer.control_text(0, &body);
            let sealed = peer.sealed(0, 0, Kind::Control, &text);
            peer.put(ByHand::own_route(0), &sealed);
        }
        assert!(peer.take_with(|_| true).is_empty(), "{bad:?} got an answer");
        assert_eq!(peer.drops(DropReason::BadControl), 2 * (count as u64 + 1), "{bad:?}");
    }
    assert_eq!(answers(&mut peer, 0, &[Frame::Probe(7)]), [(0, vec![Frame::ProbeEcho(7)])]);
}

/// Spec C-3: a name is short and printable.
#[test]
fn a_description_with_a_name_that_cannot_be_shown_does_not_parse() {
    let read = |name: &[u8]| {
        let body = [&[3, 0, 0, 0, 1, 0, name.len() as u8], name].concat();
        Frame::read_all(&body).is_some()
    };
    assert!(read(b"") && read(b"lte") && read(&[b'x'; 15]));
    assert!(!read(&[b'x'; 16]) && !read(b"\x1b[31m") && !read("é".as_bytes()));
}

fn is_ack(frame: &Frame) -> bool {
    matches!(frame, Frame::Ack(_))
}

/// Spec C-6: content of an acknowledgement, and that a gap asks for it at once.
#[test]
fn an_acknowledgement_tells_what_arrived_and_when() {
    let mut peer = two_paths();
    peer.run_ms(3000);
    peer.data(2, 0, 0);
    peer.run_ms(20);
    peer.take(|_| true);
    let (start, first) = (peer.now, peer.next_number(2));
    peer.data(2, 1, 0);
    peer.lose(2);
    peer.lose(2);
    peer.data(2, 4, 0);
    peer.run_ms(1);
    let acks = peer.take_with(is_ack);
    let last = acks.last().expect("a gap is acknowledged within a millisecond");
    assert_eq!(last.path, 2, "over the path itself");
    let [Frame::Ack(Ack { index, largest, delay, transit, ranges })] = last.frames() else {
        panic!("{last:?}");
    };
    assert_eq!(*index, peer.own_receiver_index(2));
    assert_eq!(u64::from(largest.0), first + 3);
    assert_eq!(*delay, (last.at.since(start).as_nanos() / 64_000) as u16);
    assert_eq!(*transit, 0, "both have one clock and no way between them");
    let below = AckRange { gap: 2, length: first as u32 + 1 };
    assert_eq!(*ranges, [AckRange { gap: 0, length: 1 }, below]);
}

/// Spec C-6: every 5 ms while data arrives; control is not acknowledged.
#[test]
fn acknowledgements_come_every_5_ms_and_for_data_only() {
    let mut peer = two_paths();
    peer.run_ms(3000);
    peer.take(|_| true);
    for _ in 0..100 {
        peer.control(0, &[Frame::Probe(1)]);
        peer.run_ms(1);
    }
    assert!(peer.take_with(is_ack).is_empty());
    for seq in 0..1000 {
        peer.data(0, seq, 0);
        peer.run_ms(1);
    }
    let acks = peer.take_with(is_ack).len();
    assert!((195..=205).contains(&acks), "{acks} in a second");
}

fn reports(peer: &mut ByHand) -> Vec<Seen> {
    peer.take_with(|frame| matches!(frame, Frame::LossReport(_)))
}

/// Spec C-7: cumulative, one frame for each path, every 50 ms while data arrives.
#[test]
fn losses_are_reported_for_each_path_through_all_epochs() {
    let mut peer = two_paths();
    peer.run_ms(3000);
    peer.take(|_| true);
    for seq in 0..100 {
        if seq == 50 {
            peer.lose(2);
        } else {
            peer.data(if seq % 2 == 0 { 2 } else { 0 }, seq, u16::from(seq > 0));
        }
        peer.run_ms(10);
    }
    let seen = reports(&mut peer);
    assert!((19..=20).contains(&seen.len()), "{} in a second", seen.len());
    let report = |path, received, lost, late| {
        Frame::LossReport(LossReport { path: PathId(path), received, lost, late })
    };
    peer.run_ms(200);
    peer.data(0, 100, 0);
    peer.run_ms(100);
    let last = reports(&mut peer).pop().expect("data came");
    assert_eq!(last.frames(), [report(0, 51, 0, 0), report(2, 49, 1, 0)]);
    peer.shake_hands();
    peer.data(2, 50, 0);
    peer.run_ms(100);
    let last = reports(&mut peer).pop().expect("data came");
    assert_eq!(last.frames(), [report(0, 51, 0, 0), report(2, 50, 1, 1)], "in another epoch");
    peer.run_ms(3000);
    assert!(reports(&mut peer).is_empty(), "no data, no report");
}

/// Spec M-2: a size is asked for by a datagram of that size; three without an answer refuse it, and
/// with one that is repeated goes a PROBE. Spec M-3: the largest useful size first, then 1280.
#[test]
fn a_size_is_probed_by_a_datagram_of_that_size() {
    const IP_AND_UDP: usize = 20 + 8;
    let mut peer = ByHand::new(Made::listening());
    peer.link_bytes = 1300 - IP_AND_UDP;
    peer.shake_hands();
    peer.open_path(0);
    peer.run_ms(8000);
    let all = peer.take(|_| true);
    let is_of_size = |seen: &&Seen| matches!(seen.frames(), [Frame::MtuProbe { .. }]);
    let probes: Vec<&Seen> = all.iter().filter(is_of_size).collect();
    let sizes: Vec<usize> = probes.iter().map(|seen| seen.bytes + IP_AND_UDP).collect();
    let full = 1440 + 32 + IP_AND_UDP;
    // Nothing else came while the first was out: it does not count.
    assert_eq!(sizes[..5], [full, full, full, full, 1280], "{sizes:?}");
    for pair in probes[..5].windows(2) {
        assert!(pair[1].at.since(pair[0].at).as_millis() >= 250);
    }
    for repeated in &probes[1..4] {
        let small = all.iter().find(|seen| seen.at == repeated.at && seen.bytes < 100);
        assert!(matches!(small.map(Seen::frames), Some([Frame::Probe(_)])), "{small:?}");
    }
    let found = peer.path(0).unwrap().mtu_bytes.expect("a size passed");
    assert!((1285..=1300).contains(&found), "{found}");
}
