//! Paths: how they are opened, checked, left out and closed.

use plait_proto::config::SocketId;
use plait_proto::drop_reason::DropReason;
use plait_proto::seq::{PacketNumber, PathId};
use plait_proto::stats::PathState;
use plait_proto::wire::control::{Ack, AckRange, Frame, PathInfo};

use crate::by_hand::{ByHand, LOWER, Made, Seen, What};

/// An endpoint that sought the peer over so many links and was answered, with its paths' ids. The
/// peer answers nothing from now on.
fn sought(links: u16) -> (ByHand, Vec<u8>, Vec<Seen>) {
    let mut peer = ByHand::new(Made::seeking(links));
    peer.is_polite = false;
    let initiations = peer.start();
    peer.answer(&initiations[0]);
    let opened = peer.take(|_| true);
    let ids = opened.iter().map(|seen| seen.path).collect();
    (peer, ids, opened)
}

fn token(seen: &Seen) -> Option<u64> {
    seen.frames().iter().find_map(|frame| match frame {
        Frame::PathChallenge(token) => Some(*token),
        _ => None,
    })
}

fn answer(peer: &mut ByHand, challenge: &Seen) {
    let token = token(challenge).expect("a challenge");
    peer.control(challenge.path, &[Frame::PathResponse(token)]);
}

/// Spec P-1: the opening side's datagram.
#[test]
fn a_path_is_opened_by_a_challenge_and_a_description() {
    let (_, ids, opened) = sought(2);
    assert_eq!(ids, [0, 2]);
    for (at, seen) in opened.iter().enumerate() {
        assert_eq!(seen.route.socket, SocketId(at as u16));
        let [Frame::PathChallenge(_), Frame::PathInfo(info)] = seen.frames() else {
            panic!("{seen:?}");
        };
        assert_eq!(info.name, format!("link{at}"));
    }
}

/// Spec P-1: the other side's answer, and its challenge. Spec P-2: no data before its own challenge
/// was answered.
#[test]
fn a_path_that_the_peer_opens_is_answered_and_checked_before_it_carries_data() {
    let mut peer = ByHand::new(Made::listening());
    peer.is_polite = false;
    peer.shake_hands();
    peer.control(0, &[Frame::PathChallenge(77), Frame::PathInfo(PathInfo::default())]);
    let answers = peer.take(|_| true);
    let [seen] = &answers[..] else { panic!("one datagram, not {answers:?}") };
    assert_eq!(seen.route, ByHand::own_route(0), "over the same path");
    assert!(seen.frames().contains(&Frame::PathResponse(77)));
    let asked = token(seen).expect("a challenge of its own");
    peer.host_sends(1);
    peer.control(0, &[Frame::PathResponse(asked ^ 1)]);
    assert!(peer.take(Seen::is_data).is_empty(), "it was not answered yet");
    peer.control(0, &[Frame::PathResponse(asked)]);
    assert_eq!(peer.take(Seen::is_data).len(), 1);
}

/// Spec P-2: repetition.
#[test]
fn a_challenge_without_an_answer_is_repeated_with_another_token() {
    let (mut peer, _, opened) = sought(1);
    let start = peer.now;
    // With traffic: an idle bond's challenges grow rarer, down to the keepalive interval.
    for number in 0..250 {
        peer.host_sends(number);
        peer.run_ms(100);
    }
    let challenges: Vec<Seen> =
        opened.into_iter().chain(peer.take(|seen| token(seen).is_some())).collect();
    let times: Vec<_> = challenges.iter().map(|seen| seen.at.since(start).as_millis()).collect();
    assert_eq!(times, [0, 250, 750, 1750, 3750, 7750, 12_750, 17_750, 22_750]);
    let tokens: std::collections::BTreeSet<_> = challenges.iter().map(token).collect();
    assert_eq!(tokens.len(), times.len());
    answer(&mut peer, &challenges[7]);
    assert_eq!(peer.path(0).unwrap().state, PathState::Validating, "an old token is no answer");
    answer(&mut peer, &challenges[8]);
    assert_eq!(peer.path(0).unwrap().state, PathState::Up);
}

/// Spec P-3.
#[test]
fn a_bond_has_at_most_32_paths() {
    let mut peer = ByHand::connected(Made::listening());
    for path in 1..33 {
        peer.open_path(2 * path);
    }
    assert_eq!(peer.status().paths.len(), 32);
    assert_eq!(peer.drops(DropReason::TooManyPaths), 1);
    assert!(peer.path(64).is_none());
}

fn probes(peer: &mut ByHand) -> Vec<Seen> {
    peer.take_with(|frame| matches!(frame, Frame::Probe(_)))
}

/// Spec P-4: every second while the bond carries data; then its owner, at the keepalive interval.
#[test]
fn a_path_is_probed_every_second_under_load_and_rarely_by_its_owner_otherwise() {
    let (mut peer, _, opened) = sought(1);
    peer.is_polite = true;
    answer(&mut peer, &opened[0]);
    peer.control(0, &[Frame::PathChallenge(1)]);
    for owner in [true, false] {
        for seq in 0..200 {
            peer.data(0, seq, 0);
            peer.run_ms(50);
        }
        peer.run_ms(25_000);
        peer.take(|_| true);
        peer.run_ms(100_000);
        assert_eq!(probes(&mut peer).len(), if owner { 4 } else { 0 }, "idle, owner: {owner}");
        for seq in 200..400 {
            peer.data(0, seq, 0);
            peer.run_ms(50);
        }
        let probed = probes(&mut peer).len();
        assert!((9..=11).contains(&probed), "{probed} probes in 10 s of data, owner: {owner}");
        peer = ByHand::connected(Made::listening());
    }
}

/// Spec P-4: early, when something sent stays without an answer.
#[test]
fn a_path_that_owes_an_answer_is_probed_early() {
    let mut peer = ByHand::connected(Made::listening());
    peer.host_sends(0);
    let data = peer.take(Seen::is_data);
    peer.control(0, &[ack(&peer, &data[0])]);
    peer.run_ms(300);
    assert!(probes(&mut peer).is_empty());
    let start = peer.now;
    peer.host_sends(1);
    peer.run_ms(200);
    let probes = probes(&mut peer);
    let waited = probes[0].at.since(start).as_millis();
    assert!((30..=60).contains(&waited), "{waited} ms");
}

/// Spec P-6: one mark, 10 ms after the data. Spec W-5: it has no frames and says what comes next.
/// Spec W-6: its send timestamp is the clock in units of 64 us, modulo 2^16.
#[test]
fn a_path_that_fell_idle_says_so_once() {
    let mut peer = ByHand::connected(Made::listening());
    for batch in 1..=3_u32 {
        peer.run_ms(3000);
        peer.take(|_| true);
        let start = peer.now;
        peer.host_sends(0);
        peer.host_sends(1);
        let data = peer.take(Seen::is_data);
        assert_eq!(data.len(), 2);
        assert!(data.iter().all(|seen| !seen.frames().iter().any(|_| true)));
        peer.control(0, &[ack(&peer, &data[1])]);
        peer.run_ms(2000);
        let marks = peer.take(Seen::is_mark);
        let [mark] = &marks[..] else { panic!("one mark, not {marks:?}") };
        assert_eq!(mark.at.since(start).as_millis(), 10);
        assert!(matches!(mark.what, What::Control { next_seq, .. } if next_seq == 2 * batch));
        assert_eq!(u64::from(mark.sent), mark.at.as_nanos() / 64_000 % 65_536);
    }
}

/// The acknowledgement of one datagram of the endpoint.
fn ack(peer: &ByHand, seen: &Seen) -> Frame {
    Frame::Ack(Ack {
        index: peer.endpoints_receiver_index(seen.path),
        largest: PacketNumber(seen.number).truncate(),
        delay: 0,
        transit: 0,
        ranges: vec![AckRange { gap: 0, length: seen.number as u32 + 1 }],
    })
}

/// Spec P-7: the path with the even id stays.
#[test]
fn of_two_paths_between_the_same_addresses_the_even_one_stays() {
    let (mut peer, ids, opened) = sought(1);
    assert_eq!(ids, [0]);
    let route = opened[0].route;
    peer.control_over(route, 1, &[Frame::PathChallenge(1)]);
    assert_eq!(peer.drops(DropReason::RepeatedPath), 1);
    let ids =
        |peer: &mut ByHand| peer.status().paths.iter().map(|path| path.id).collect::<Vec<_>>();
    assert_eq!(ids(&mut peer), [0], "the endpoint's own");

    let mut peer = ByHand::new(Made { key: crate::by_hand::HIGHER, ..Made::seeking(1) });
    let initiations = peer.start();
    peer.answer(&initiations[0]);
    assert_eq!(ids(&mut peer), [1]);
    peer.control_over(route, 0, &[Frame::PathChallenge(1)]);
    assert_eq!(ids(&mut peer), [0], "the peer's");
}

fn two_paths() -> ByHand {
    let mut peer = ByHand::connected(Made::listening());
    peer.open_path(2);
    peer.take(|_| true);
    peer
}

/// Spec P-5a: PATH_DEAD leaves a path out at once, and what was on it goes over another under its
/// own number. Spec R-6: each time as a datagram of its own. Spec C-9: the frame.
#[test]
fn what_was_on_a_path_that_the_peer_calls_dead_is_sealed_anew() {
    let mut peer = two_paths();
    for number in 0..6 {
        peer.host_sends(number);
    }
    let over = |seen: &[Seen], path: u8| -> Vec<(u32, Vec<u8>)> {
        let of_path = seen.iter().filter(|seen| seen.path == path);
        of_path
            .filter_map(|seen| match &seen.what {
                What::Data { seq, inner, .. } => Some((*seq, inner.clone())),
                _ => None,
            })
            .collect()
    };
    let sent = peer.take(Seen::is_data);
    let (kept, lost) = (over(&sent, 0), over(&sent, 2));
    assert_eq!([kept.len(), lost.len()], [3, 3]);
    peer.control(0, &[Frame::PathDead(PathId(2))]);
    assert_eq!(peer.path(2).unwrap().state, PathState::Silent);
    peer.run_ms(50);
    let again = peer.take(Seen::is_data);
    assert_eq!(over(&again, 0), lost, "the same numbers and packets");
    let highest = sent.iter().filter(|seen| seen.path == 0).map(|seen| seen.number).max();
    assert!(again.iter().all(|seen| Some(seen.number) > highest), "as datagrams of their own");
    peer.host_sends(9);
    assert!(over(&peer.take(Seen::is_data), 2).is_empty(), "it carries no data");
}

/// Spec P-5: a path that answers nothing is silent. Spec P-5a: the peer is told over another path.
/// Spec C-9: by PATH_DEAD.
#[test]
fn a_path_that_answers_nothing_is_reported_over_another() {
    let mut peer = two_paths();
    peer.is_polite = false;
    let mut dead = Vec::new();
    for number in 0..40 {
        peer.host_sends(number);
        peer.run_ms(10);
        for seen in peer.take(|seen| seen.path == 0) {
            if seen.is_data() {
                let ack = ack(&peer, &seen);
                peer.control(0, &[ack]);
            }
            for frame in seen.frames() {
                match frame {
                    Frame::Probe(id) => peer.control(0, &[Frame::ProbeEcho(*id)]),
                    Frame::PathDead(id) => dead.push(id.0),
                    _ => {}
                }
            }
        }
    }
    assert_eq!(dead, [2], "told over path 0");
    assert_eq!(peer.path(2).unwrap().state, PathState::Silent);
    assert_eq!(peer.path(0).unwrap().state, PathState::Up);
}

/// Spec P-8, spec C-10: the peer removes a path; its id opens nothing any more.
#[test]
fn a_path_that_the_peer_closes_is_gone_and_its_id_used_up() {
    let mut peer = two_paths();
    peer.control(0, &[Frame::PathClose(PathId(2))]);
    assert!(peer.path(2).is_none());
    assert!(peer.path(0).is_some());
    peer.control(2, &[Frame::PathChallenge(5)]);
    assert!(peer.path(2).is_none());
    peer.run_ms(10);
    let answered = peer.take(|seen| !seen.frames().is_empty());
    let [told] = &answered[..] else { panic!("one answer, not {answered:?}") };
    assert_eq!(told.frames(), [Frame::PathClose(PathId(2))]);
    assert_eq!(told.path, 0);
}

/// Spec P-8, spec C-10: a removal is told at once, after 250 ms and after another second. Spec C-3:
/// so is another description of a link.
#[test]
fn removals_and_changes_are_told_three_times() {
    let (mut peer, _, opened) = sought(2);
    peer.is_polite = true;
    for seen in &opened {
        answer(&mut peer, seen);
    }
    peer.run_ms(5000);
    peer.take(|_| true);
    let times = |seen: &[Seen], start| -> Vec<_> {
        seen.iter().map(|seen| seen.at.since(start).as_millis()).collect()
    };
    let start = peer.now;
    let link = plait_pair::link_config(0);
    peer.endpoint.update_link(start, plait_proto::config::LinkConfig { weight: 7, ..link });
    peer.run_ms(5000);
    let told = peer.take_with(|frame| matches!(frame, Frame::PathInfo(info) if info.weight == 7));
    assert_eq!(times(&told, start), [0, 250, 1250]);
    assert!(told.iter().all(|seen| seen.path == 0));
    let start = peer.now;
    peer.endpoint.remove_link(start, SocketId(0));
    peer.run_ms(5000);
    let told = peer.take_with(|frame| matches!(frame, Frame::PathClose(id) if id.0 == 0));
    assert_eq!(times(&told, start), [0, 250, 1250]);
    assert!(told.iter().all(|seen| seen.path == 2), "over another path");
}

/// Spec C-3: only the side that opened a path describes it.
#[test]
fn the_peer_does_not_describe_the_endpoints_link() {
    let (mut peer, _, opened) = sought(1);
    answer(&mut peer, &opened[0]);
    let info = PathInfo { price: 9, standby: true, name: "mine".to_owned(), ..PathInfo::default() };
    peer.control(0, &[Frame::PathInfo(info.clone())]);
    let path = peer.path(0).unwrap();
    assert_eq!((path.price, path.standby, path.name.as_str()), (0, false, "link0"));

    let mut peer = ByHand::connected(Made { key: LOWER, ..Made::listening() });
    assert!(peer.status().paths.is_empty(), "the peer's ids are odd here");
    peer.open_path(1);
    peer.control(1, &[Frame::PathInfo(info)]);
    let path = peer.path(1).unwrap();
    assert_eq!((path.price, path.standby, path.name.as_str()), (9, true, "mine"));
}
