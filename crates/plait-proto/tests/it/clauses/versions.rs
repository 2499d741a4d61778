//! Two versions side by side.

use plait_proto::wire::{REVISION, REVISION_MAX, VERSION};

use crate::by_hand::{ByHand, Made, Seen, What};

fn hello_of(peer: &mut ByHand, initiation: &Seen) -> u8 {
    peer.read_hello(initiation).revision
}

/// What is spoken with a peer of this revision.
fn spoken(revision: u8) -> String {
    let lower = if revision > REVISION { REVISION } else { revision };
    format!("{VERSION}.{lower}")
}

/// Spec V-2, V-3: whatever revision a peer names, there is a bond, and the lower of the two is
/// spoken.
#[test]
fn the_lower_of_two_revisions_is_spoken() {
    for revision in [0, REVISION, REVISION + 1, REVISION_MAX] {
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
