//! Tests of sessions as a whole.

mod vectors;

use zeroize::{Zeroize as _, ZeroizeOnDrop};

use super::{Cipher, DirectionSecret, Finished, Hello, Identity, PresharedKey, PrivateKey};
use crate::rng::Rng;
use crate::seq::BondIncarnation;
use crate::session::{Established, Timestamp};
use crate::wire::handshake::SessionIndex;

/// A handshake between a side that does AES in hardware, or not, and another.
fn established(aes_is_fast: [bool; 2]) -> [Established; 2] {
    let mut rng = Rng::from_seed([1; 32]);
    let sides = [1, 2].map(|byte| Identity::new(PrivateKey::from_bytes([byte; 32])));
    let [one, other] = aes_is_fast.map(|aes_is_fast| Hello {
        incarnation: BondIncarnation(1),
        aes_is_fast,
        inner_mtu: 1440,
        repairs: false,
        revision: 0,
    });
    let (psk, at) = (PresharedKey::default(), Timestamp::default());
    let [local, remote] = [3, 4].map(|index| SessionIndex::from_random(index).unwrap());
    let mut state = sides[0].initiate(&mut rng, &sides[1].public, &psk, local, at, one);
    let read = sides[1].read_initiation(&mut rng, &state.message).unwrap();
    let (responder, response) = sides[1].respond(read, &psk, remote, &other).unwrap();
    match sides[0].finish(&mut state, &response).unwrap() {
        Finished::Session(initiator) => [*initiator, responder],
        Finished::Refused(_) => panic!("the response makes a session"),
    }
}

/// Spec K-3.
#[test]
fn aes_is_used_when_both_do_it_in_hardware() {
    for (aes_is_fast, cipher) in [
        ([true, true], Cipher::Aes256Gcm),
        ([true, false], Cipher::ChaCha20Poly1305),
        ([false, true], Cipher::ChaCha20Poly1305),
        ([false, false], Cipher::ChaCha20Poly1305),
    ] {
        assert_eq!(established(aes_is_fast).map(|side| side.cipher), [cipher; 2]);
    }
}

/// Spec K-1: a secret for each direction, the same at both ends, that is wiped when dropped.
#[test]
fn each_direction_has_a_secret_that_is_wiped() {
    fn is_wiped_when_dropped(_: &impl ZeroizeOnDrop) {}
    let [initiator, responder] = established([true, true]);
    assert_eq!(initiator.send.as_bytes(), responder.receive.as_bytes());
    assert_eq!(initiator.receive.as_bytes(), responder.send.as_bytes());
    assert_ne!(initiator.send.as_bytes(), initiator.receive.as_bytes());
    let mut secret: DirectionSecret = initiator.send;
    is_wiped_when_dropped(&secret);
    secret.zeroize();
    assert_eq!(secret.as_bytes(), &[0; 32]);
}
