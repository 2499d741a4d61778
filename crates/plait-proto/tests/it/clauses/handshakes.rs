//! Handshakes, sessions and packet numbers.

use plait_proto::drop_reason::DropReason;
use plait_proto::path::Route;
use plait_proto::time::Duration;
use plait_proto::wire::Kind;
use plait_proto::wire::control::Frame;

use crate::by_hand::{ByHand, HIGHER, LOWER, Made, PEER_AT, Seen, What};

fn is_initiation(seen: &Seen) -> bool {
    matches!(seen.what, What::Initiation(_))
}

fn initiation_bytes(seen: &Seen) -> &[u8] {
    match &seen.what {
        What::Initiation(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

/// Spec H-7: two initiations of one peer within 20 ms.
#[test]
fn initiations_that_follow_each_other_too_soon_are_dropped() {
    let mut peer = ByHand::new(Made::listening());
    peer.shake_hands();
    for (after_ms, answered) in [(19, false), (1, true), (20, true), (10, false)] {
        peer.run_ms(after_ms);
        let dropped = peer.drops(DropReason::TooManyInitiations);
        let initiation = peer.initiation().message;
        peer.put(ByHand::own_route(0), &initiation);
        let responses = peer.take(|seen| matches!(seen.what, What::Response(_))).len();
        assert_eq!(responses, usize::from(answered), "{after_ms} ms after the one before");
        let dropped = peer.drops(DropReason::TooManyInitiations) - dropped;
        assert_eq!(dropped, u64::from(!answered), "{after_ms} ms after the one before");
    }
}

/// Times of the attempts of an endpoint that nobody answers, in milliseconds from the first.
fn attempts(traffic: bool) -> Vec<u64> {
    let mut peer = ByHand::new(Made::seeking(2));
    let start = peer.now;
    let mut seen = peer.start();
    for number in 0..200 {
        if traffic {
            peer.host_sends(number);
        }
        peer.run_ms(100);
    }
    seen.extend(peer.take(is_initiation));
    let mut times = Vec::new();
    for both in seen.chunks(2) {
        let [one, other] = both else { panic!("one for each link") };
        assert_eq!(one.at, other.at);
        assert_ne!(one.route.socket, other.route.socket);
        assert_eq!(initiation_bytes(one), initiation_bytes(other), "the same over every path");
        times.push(one.at.since(start).as_millis() as u64);
    }
    let keys = seen.iter().step_by(2).map(|seen| initiation_bytes(seen)[5..37].to_vec());
    let keys: std::collections::BTreeSet<_> = keys.collect();
    assert_eq!(keys.len(), times.len(), "each attempt has an ephemeral key of its own");
    times
}

/// Spec H-8: what goes where, and the times between attempts.
#[test]
fn an_initiation_goes_over_every_path_and_is_made_anew_after_rising_times() {
    assert_eq!(attempts(false), [0, 250, 750, 1750, 3750, 7750, 12_750, 17_750]);
    let with_traffic = attempts(true);
    assert!(with_traffic.is_sorted_by(|a, b| b - a <= 1000), "{with_traffic:?}");
    assert!(with_traffic.len() >= 20, "{with_traffic:?}");
}

/// Spec H-8: the first response counts.
#[test]
fn a_second_response_is_dropped() {
    let mut peer = ByHand::new(Made::seeking(2));
    let initiations = peer.start();
    peer.answer(&initiations[0]);
    assert_eq!(peer.status().handshakes, 1);
    peer.answer(&initiations[1]);
    assert_eq!(peer.status().handshakes, 1);
    assert_eq!(peer.drops(DropReason::RepeatedResponse), 1);
}

/// Spec H-9: the responder goes on under the session before until it has seen the new one used.
/// Spec H-4: a handshake with the same incarnations renews the bond, its numbers go on.
#[test]
fn the_responder_uses_a_session_once_the_initiator_has() {
    let mut peer = ByHand::connected(Made::listening());
    let sent = |peer: &mut ByHand, number| -> (usize, u32) {
        peer.take(|_| true);
        peer.host_sends(number);
        match &peer.take(Seen::is_data)[..] {
            [Seen { session, what: What::Data { seq, .. }, .. }] => (*session, *seq),
            other => panic!("one data datagram, not {other:?}"),
        }
    };
    assert_eq!(sent(&mut peer, 0), (0, 0));
    peer.run_ms(100);
    peer.shake_hands();
    peer.run_ms(50);
    assert_eq!(sent(&mut peer, 1), (0, 1), "it cannot know that its response arrived");
    peer.mark(0, 0);
    assert_eq!(sent(&mut peer, 2), (1, 2));
    assert_eq!(peer.status().handshakes, 2);
}

/// Spec H-4: another incarnation begins another bond, with number 0 and no paths.
#[test]
fn another_incarnation_is_another_bond() {
    let mut peer = ByHand::connected(Made::listening());
    peer.host_sends(0);
    peer.run_ms(100);
    peer.hello.incarnation.0 += 1;
    peer.shake_hands();
    assert_eq!(peer.status().paths.len(), 1, "the bond before is in use until the new one is");
    peer.control(0, &[Frame::PathChallenge(1)]);
    peer.take(|_| true);
    peer.run_ms(1);
    peer.host_sends(1);
    let data = peer.take(Seen::is_data);
    assert!(matches!(data[..], [Seen { what: What::Data { seq: 0, .. }, .. }]), "{data:?}");
}

/// Spec K-5: packet numbers rise from 0 in each path and epoch; data and control share them.
#[test]
fn packet_numbers_begin_at_zero_in_each_path_and_epoch_and_never_repeat() {
    let mut peer = ByHand::connected(Made::listening());
    peer.open_path(2);
    let mut seen = Vec::new();
    for session in 0..3 {
        if session > 0 {
            peer.shake_hands();
            peer.mark(0, 0);
            peer.mark(2, 0);
        }
        for number in 0..50 {
            peer.host_sends(number);
            peer.run_ms(5);
        }
        seen.extend(peer.take(|seen| seen.is_data() || matches!(seen.what, What::Control { .. })));
    }
    for (session, path) in [(0, 0), (0, 2), (1, 0), (1, 2), (2, 0), (2, 2)] {
        let of_key = seen.iter().filter(|seen| (seen.session, seen.path) == (session, path));
        let numbers: Vec<u64> = of_key.map(|seen| seen.number).collect();
        assert_eq!(numbers.first(), Some(&0), "session {session}, path {path}");
        assert!(numbers.is_sorted_by(|a, b| a < b), "session {session}, path {path}: {numbers:?}");
        assert!(numbers.len() > 20, "session {session}, path {path}");
    }
}

/// Spec K-5: whose path ids are even.
#[test]
fn the_side_with_the_lower_key_gives_out_even_path_ids() {
    for (key, ids) in [(LOWER, [0, 2]), (HIGHER, [1, 3])] {
        let mut peer = ByHand::new(Made { key, ..Made::seeking(2) });
        let initiations = peer.start();
        peer.answer(&initiations[0]);
        let opened = peer.take_with(|frame| matches!(frame, Frame::PathInfo(_)));
        assert_eq!(opened.iter().map(|seen| seen.path).collect::<Vec<_>>(), ids);
        // Spec P-8: an id of the endpoint's own parity opens nothing for the peer.
        peer.control(ids[0] + 8, &[Frame::PathChallenge(1)]);
        assert_eq!(peer.drops(DropReason::ClosedPath), 1);
        assert!(peer.path(ids[0] + 8).is_none());
    }
}

/// Whether the endpoint takes a mark under an earlier session.
fn takes(peer: &mut ByHand, session: usize) -> Result<(), DropReason> {
    let reasons = [DropReason::UnknownIndex, DropReason::ExpiredSession];
    let before = reasons.map(|reason| peer.drops(reason));
    let text = peer.control_text(0, &[]);
    let sealed = peer.sealed(session, 0, Kind::Control, &text);
    let total = peer.endpoint.drop_total();
    peer.put(ByHand::own_route(0), &sealed);
    for (reason, before) in reasons.into_iter().zip(before) {
        if peer.drops(reason) > before {
            return Err(reason);
        }
    }
    assert_eq!(peer.endpoint.drop_total(), total, "dropped for another reason");
    Ok(())
}

/// Spec K-7: six sessions.
#[test]
fn datagrams_under_the_last_six_sessions_are_taken() {
    let mut peer = ByHand::connected(Made::listening());
    for later in 1..=6 {
        peer.run_ms(100);
        peer.shake_hands();
        peer.mark(0, 0);
        assert_eq!(takes(&mut peer, 1), Ok(()), "with {later} later ones");
        if later == 5 {
            assert_eq!(takes(&mut peer, 0), Ok(()), "six sessions are kept");
        }
    }
    assert_eq!(takes(&mut peer, 0), Err(DropReason::UnknownIndex), "the seventh is one too many");
}

/// Spec K-7: 180 s.
#[test]
fn datagrams_under_an_earlier_session_are_taken_for_three_minutes() {
    let mut peer = ByHand::connected(Made::listening());
    let made_at = peer.now.saturating_sub(Duration::from_millis(1));
    peer.run_for(Duration::from_secs(100));
    peer.shake_hands();
    peer.mark(0, 0);
    let until = |peer: &mut ByHand, age_ms: u64| {
        let at = made_at + Duration::from_millis(age_ms);
        let wait = at.since(peer.now);
        peer.run_for(wait);
    };
    until(&mut peer, 179_999);
    assert_eq!(takes(&mut peer, 0), Ok(()));
    until(&mut peer, 180_000);
    assert_eq!(takes(&mut peer, 0), Err(DropReason::UnknownIndex), "its keys are wiped");
    assert_eq!(takes(&mut peer, 1), Ok(()));
}

/// Spec P-11: who has no link of its own opens a path without describing it, where it was answered.
/// Spec H-13: it initiates where the peer was last reached.
#[test]
fn an_endpoint_that_only_remembers_its_peer_calls_it() {
    let mut peer = ByHand::new(Made::listening());
    let route = Route { remote: PEER_AT.into(), ..ByHand::own_route(0) };
    let key = plait_proto::session::PrivateKey::from_bytes(LOWER).public_key();
    peer.endpoint.remember(&key, route);
    let initiations = peer.start();
    assert_eq!(initiations.len(), 1);
    assert_eq!(initiations[0].route.remote, route.remote);
    peer.answer(&initiations[0]);
    let opened = peer.take(|_| true);
    assert!(matches!(opened[0].frames(), [Frame::PathChallenge(_)]), "{opened:?}");
    assert_eq!(opened[0].route.remote, route.remote);
}
