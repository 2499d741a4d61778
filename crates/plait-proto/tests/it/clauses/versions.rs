//! Two versions side by side.

use plait_proto::wire::control::{Frame, Release};
use plait_proto::wire::{REVISION, REVISION_MAX, VERSION};

use crate::by_hand::{ByHand, Made, Seen, What};

fn hello_of(peer: &mut ByHand, initiation: &Seen) -> u8 {
    peer.read_hello(initiation).revision
}

/// What is spoken with a peer of this revision.
fn spoken(revision: u8) -> String {
    format!("{VERSION}.{}", revision.min(REVISION))
}

/// Spec V-2, V-3: whatever revision a peer names, there is a bond, and the lower of the two is
/// spoken.
#[test]
fn the_lower_of_two_revisions_is_spoken() {
    for revision in 0..=REVISION_MAX {
        let expected = spoken(revision);
        let mut listening = ByHand::new(Made::listening());
        listening.hello.revision = revision;
        listening.shake_hands();
        listening.open_path(0);
        let status = listening.status();
        assert_eq!((&*status.state, status.wire), ("up", Some(expected.clone())));

        let mut seeking = ByHand::new(Made::seeking(1));
        seeking.hello.revision = revision;
        let initiations = seeking.start();
        assert_eq!(hello_of(&mut seeking, &initiations[0]), REVISION);
        seeking.answer(&initiations[0]);
        assert_eq!(seeking.status().wire, Some(expected));
    }
}

/// Spec V-2: a session that renews the bond decides anew; the peer was upgraded meanwhile.
#[test]
fn a_renewed_session_may_have_another_revision() {
    let mut peer = ByHand::new(Made::listening());
    for revision in [0, REVISION_MAX, 0] {
        peer.hello.revision = revision;
        peer.shake_hands();
        peer.open_path(0);
        let expected = spoken(revision);
        assert_eq!(peer.status().wire, Some(expected));
        peer.run_ms(1000);
    }
}

/// Spec V-1: a handshake of another version is not answered, and not read.
#[test]
fn a_handshake_of_another_version_has_no_effect() {
    let mut peer = ByHand::new(Made::listening());
    let mut message = peer.initiation().message;
    message[0] = (VERSION + 1) << 4 | message[0] & 0xf;
    peer.put(ByHand::own_route(0), &message);
    assert_eq!(peer.drops(plait_proto::drop_reason::DropReason::OtherVersion), 1);
    assert!(peer.take(|seen| matches!(seen.what, What::Response(_))).is_empty());
}

const OWN: Release = Release { major: 0, minor: 2, patch: 7 };

/// How often an endpoint that runs [`OWN`] says so to a peer with this revision, within 3 s.
fn told(revision: u8, release: Option<Release>) -> usize {
    let mut made = Made::listening();
    made.bond.release = release;
    let mut peer = ByHand::new(made);
    peer.hello.revision = revision;
    peer.shake_hands();
    peer.open_path(0);
    peer.run_ms(3000);
    let is_release = |frame: &Frame| matches!(frame, Frame::Release(told) if *told == OWN);
    peer.take(
        |seen| matches!(&seen.what, What::Control { frames, .. } if frames.iter().any(is_release)),
    )
    .len()
}

/// Spec V-3, C-13: what revision 1 adds goes to nobody who cannot read it.
#[test]
fn a_release_is_told_three_times_to_who_can_read_it() {
    assert_eq!(told(0, Some(OWN)), 0);
    for revision in [Release::SINCE_REVISION, REVISION_MAX] {
        assert_eq!(told(revision, Some(OWN)), 3, "revision {revision}");
        assert_eq!(told(revision, None), 0);
    }
}

/// Spec C-13: a peer that was upgraded is told when the session is renewed, and not again.
#[test]
fn a_release_is_told_when_a_renewed_session_allows_it() {
    let mut made = Made::listening();
    made.bond.release = Some(OWN);
    let mut peer = ByHand::new(made);
    let mut counts = Vec::new();
    for revision in [0, 1, 1] {
        peer.hello.revision = revision;
        peer.shake_hands();
        peer.open_path(0);
        peer.run_ms(3000);
        let releases = peer.take(|seen| {
            matches!(&seen.what, What::Control { frames, .. }
                if frames.iter().any(|frame| matches!(frame, Frame::Release(_))))
        });
        counts.push(releases.len());
    }
    assert_eq!(counts, [0, 3, 0]);
}

/// Spec C-13: what the peer says is shown.
#[test]
fn the_peers_release_stands_in_the_status() {
    let mut peer = ByHand::connected(Made::listening());
    assert_eq!(peer.status().release, None);
    peer.control(0, &[Frame::Release(Release { major: 3, minor: 0, patch: 65_535 })]);
    assert_eq!(peer.status().release.as_deref(), Some("3.0.65535"));
}

#[test]
fn releases_are_read_from_versions() {
    let release = |minor| Some(Release { major: 0, minor, patch: 1 });
    assert_eq!(Release::parse("0.2.1"), release(2));
    assert_eq!(Release::parse("0.3.1-dev"), release(3));
    for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.70000", "-1.2.3"] {
        assert_eq!(Release::parse(text), None, "{text}");
    }
}
