//! What a handshake leaves in memory, told by reading the whole of it.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::FileExt as _;

use super::*;
use crate::drop_reason::DropReason;
use crate::seq::BondIncarnation;
use crate::session::{Finished, Hello, Identity, Timestamp};
use crate::time::Duration;
use crate::wire::handshake::SessionIndex;

thread_local! {
    /// All secrets of this thread's handshakes, complemented: the list itself is no trace of them.
    static SEEN: RefCell<Vec<[u8; 32]>> = const { RefCell::new(Vec::new()) };
    /// The ephemeral key of this thread's handshakes, where one is given.
    static EPHEMERAL: RefCell<Option<[u8; 32]>> = const { RefCell::new(None) };
}

/// Runs `work`, whose handshakes have this ephemeral key: for messages known byte by byte.
pub(in crate::session) fn with_ephemeral<T>(key: [u8; 32], work: impl FnOnce() -> T) -> T {
    EPHEMERAL.set(Some(key));
    let result = work();
    EPHEMERAL.set(None);
    result
}

pub(super) fn fix_ephemeral(private: &mut [u8; 32]) {
    EPHEMERAL.with_borrow(|fixed| fixed.iter().for_each(|key| *private = *key));
}

pub(super) fn see(secret: &[u8]) {
    if let Some(secret) = secret.first_chunk::<32>() {
        let complement = core::array::from_fn(|at| !secret[at]);
        SEEN.with_borrow_mut(|seen| seen.push(complement));
    }
}

/// How many of the complemented secrets lie in this process's memory.
fn found_in_memory(complements: &[[u8; 32]]) -> usize {
    let memory = fs::File::open("/proc/self/mem").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut found = vec![false; complements.len()];
    let mut bytes = vec![0; 1 << 20];
    for map in maps.lines().filter(|map| map.contains(" rw")) {
        let (start, end) = map.split(' ').next().unwrap().split_once('-').unwrap();
        let [mut at, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        while at < end {
            let wanted = bytes.len().min((end - at) as usize);
            let Ok(read @ 32..) = memory.read_at(&mut bytes[..wanted], at) else { break };
            for window in bytes[..read].windows(32).filter(|window| window[0] != window[1]) {
                for (complement, found) in complements.iter().zip(&mut found) {
                    // The first bytes tell nearly always.
                    if window[0] == !complement[0] && window[1] == !complement[1] {
                        *found |= window.iter().zip(complement).all(|(a, b)| *a == !*b);
                    }
                }
            }
            at += if at + read as u64 == end { read } else { read - 31 } as u64;
        }
    }
    found.into_iter().filter(|found| *found).count()
}

/// A whole handshake; what is returned is what lives on.
#[inline(never)]
fn shake_hands(rng: &mut Rng) -> Result<[DirectionSecret; 4], DropReason> {
    let sides = [1, 2].map(|byte| Identity::new(PrivateKey::from_bytes([byte; 32])));
    let psk = PresharedKey::default();
    let [initiator, responder] =
        [1, 2].map(|number| SessionIndex::from_random(number).expect("not zero"));
    let (incarnation, aes_is_fast) = (BondIncarnation(5), true);
    let hello = Hello { incarnation, aes_is_fast, inner_mtu: 1440, repairs: true, revision: 0 };
    let time = Timestamp::from_unix(Duration::from_secs(100));
    let mut state = sides[0].initiate(rng, &sides[1].public, &psk, initiator, time, hello);
    let read = sides[1].read_initiation(rng, &state.message)?;
    let (answered, response) = sides[1].respond(read, &psk, responder, &hello)?;
    let Finished::Session(finished) = sides[0].finish(&mut state, &response)? else {
        return Err(DropReason::BadHandshake);
    };
    Ok([answered.send, answered.receive, finished.send, finished.receive])
}

#[test]
fn regression_a_finished_handshake_leaves_no_secret_in_memory() {
    let mut rng = Rng::from_seed([0x5e; 32]);
    let session = shake_hands(&mut rng).expect("two honest sides");
    // What the two sides' generators were made from.
    let mut same = Rng::from_seed([0x5e; 32]);
    for _ in 0..2 {
        let mut seed = Zeroizing::new([0; 32]);
        same.fill(&mut *seed);
        see(&*seed);
    }
    drop(same);
    let mut secrets = SEEN.take();
    secrets.sort_unstable();
    secrets.dedup();
    // Two seeds, two ephemeral keys, four products of keys; two outputs for each product and each
    // public ephemeral key, three for the preshared key; two halves.
    assert_eq!(secrets.iter().filter(|secret| **secret != [0xff; 32]).count(), 25);
    let alive = found_in_memory(&secrets);
    assert_eq!(alive, 2, "the session's two directions, and nothing that they were made from");
    drop(session);
    assert_eq!(found_in_memory(&secrets), 0, "with the session, all is gone");
}

/// RFC 7748, section 6.1: all products of these points are zero, whatever the private key.
#[test]
fn a_public_key_of_small_order_is_refused() {
    let mut dh = Dh25519::default();
    dh.set(&[7; 32]);
    let mut shared = [0; 32];
    for small in [0, 1] {
        let mut public = [0; 32];
        public[0] = small;
        assert!(matches!(dh.dh(&public, &mut shared), Err(snow::Error::Dh)), "order of {small}");
    }
    assert!(dh.dh(&public_key(&[9; 32]), &mut shared).is_ok());
}
