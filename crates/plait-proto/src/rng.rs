//! The owner's randomness: a generator that the owner seeds, from the operating system in the
//! daemon, from a number in the simulator.
//!
//! It forgets (fast key erasure, Bernstein 2017): every draw of ChaCha20 gives its own next key
//! first, and what was given out is wiped. So whoever reads a process's memory does not learn what
//! the generator gave before. What it will give is another matter: new entropy, which the owner
//! mixes in, makes that unknown again.

use core::fmt;

use blake2::Blake2sMac;
use blake2::digest::consts::U32;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _};
use zeroize::{Zeroize as _, ZeroizeOnDrop};

use crate::wipe::on_wiped_stack;

const KEY_BYTES: usize = 32;
/// Four blocks of ChaCha20, which vector units make at once.
const DRAW_BYTES: usize = 4 * 64;
/// More than making a draw uses.
const STACK_BYTES: usize = 4 << 10;
const MIX_LABEL: &[u8] = b"plait 1 entropy";

/// A cryptographically secure generator with an explicit seed. Wiped when dropped.
pub struct Rng {
    /// In a box, so that moving the generator leaves no copy behind.
    state: Box<State>,
    /// Secrets were drawn since entropy was mixed in.
    was_forked: bool,
}

#[derive(ZeroizeOnDrop)]
struct State {
    /// The next draw's key, and then the output that was not given out yet, from `given` on.
    /// Everything before is zero.
    draw: [u8; DRAW_BYTES],
    given: usize,
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

impl Rng {
    /// A generator that produces the same numbers for the same seed: for the simulator and tests.
    pub fn from_seed(seed: [u8; KEY_BYTES]) -> Self {
        Self::seeded_by(|bytes| bytes.copy_from_slice(&seed))
    }

    /// A generator with the seed that `fill` writes, of which there is no other copy. Outside the
    /// simulator and tests it comes from the operating system.
    pub fn seeded_by(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut state = Box::new(State { draw: [0; DRAW_BYTES], given: DRAW_BYTES });
        fill(&mut state.draw[..KEY_BYTES]);
        Self { state, was_forked: false }
    }

    /// An independent generator, seeded from this one.
    pub fn fork(&mut self) -> Self {
        self.was_forked = true;
        Self::seeded_by(|seed| self.fill(seed))
    }

    /// Whether secrets were drawn since entropy was last mixed in.
    pub fn wants_entropy(&self) -> bool {
        self.was_forked
    }

    /// Makes what comes depend on `entropy` too. Whoever knew the state before and does not know
    /// the entropy knows nothing of it afterwards; bad entropy does no harm.
    pub fn mix_in(&mut self, entropy: &[u8; 32]) {
        on_wiped_stack::<STACK_BYTES, _>(|| {
            let mut mac = Blake2sMac::<U32>::new_from_slice(&self.state.draw[..KEY_BYTES])
                .expect("BLAKE2s takes keys of up to 32 bytes");
            mac.update(MIX_LABEL);
            mac.update(entropy);
            self.state.restart(&mac.finalize_fixed());
        });
        self.was_forked = false;
    }

    /// Fills `bytes` with random data.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(rest.len().min(self.state.ready().len()));
            self.state.give(now);
            rest = later;
        }
    }

    /// A random number.
    pub fn u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl State {
    /// The output that is ready; there always is some.
    fn ready(&mut self) -> &mut [u8] {
        if self.given == DRAW_BYTES {
            on_wiped_stack::<STACK_BYTES, _>(|| {
                let mut cipher = ChaCha20::new((&self.draw[..KEY_BYTES]).into(), &[0; 12].into());
                self.draw.zeroize();
                cipher.apply_keystream(&mut self.draw);
            });
            self.given = KEY_BYTES;
        }
        &mut self.draw[self.given..]
    }

    /// Gives out as much as `bytes` takes, which is ready, and forgets it.
    fn give(&mut self, bytes: &mut [u8]) {
        let taken = &mut self.ready()[..bytes.len()];
        bytes.copy_from_slice(taken);
        taken.zeroize();
        self.given += bytes.len();
    }

    /// Starts again with `key`.
    fn restart(&mut self, key: &[u8]) {
        self.draw.zeroize();
        self.draw[..KEY_BYTES].copy_from_slice(key);
        self.given = DRAW_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(rng: &Rng) -> Rng {
        let state = Box::new(State { draw: rng.state.draw, given: rng.state.given });
        Rng { state, was_forked: rng.was_forked }
    }

    fn draw<const N: usize>(rng: &mut Rng) -> [u8; N] {
        let mut bytes = [0; N];
        rng.fill(&mut bytes);
        bytes
    }

    fn holds(haystack: &[u8], needle: &[u8]) -> bool {
        haystack.windows(needle.len()).any(|window| window == needle)
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_however_they_are_asked_for() {
        let whole: [u8; 1000] = draw(&mut Rng::from_seed([3; 32]));
        for piece in [1, 7, 8, 223, 224, 225, 256, 999] {
            let mut rng = Rng::from_seed([3; 32]);
            let mut bytes = [0; 1000];
            bytes.chunks_mut(piece).for_each(|chunk| rng.fill(chunk));
            assert_eq!(bytes, whole, "in pieces of {piece}");
        }
        assert_ne!(whole, draw(&mut Rng::from_seed([4; 32])));
        let mut words: Vec<_> = whole.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 125);
    }

    /// The generator kept its seed: whoever read a process's memory had every ephemeral key that
    /// the process ever made, and with them all that was ever sent.
    #[test]
    fn regression_a_later_state_does_not_give_earlier_bytes() {
        let mut rng = Rng::from_seed([5; 32]);
        let earlier: [u8; 32] = draw(&mut rng);
        for drawn in 0..40 {
            let state = copy(&rng);
            assert!(!holds(&state.state.draw, &[5; 32]), "the seed, {drawn} draws later");
            assert!(!holds(&state.state.draw, &earlier), "given out, {drawn} draws later");
            let mut later = copy(&state);
            let replayed: [u8; 4096] = draw(&mut later);
            assert!(!holds(&replayed, &earlier), "replayed, {drawn} draws later");
            // Nor does a fresh generator of anything that lies in the state.
            for key in state.state.draw.windows(32) {
                let bytes: [u8; 512] = draw(&mut Rng::from_seed(key.try_into().unwrap()));
                assert!(!holds(&bytes, &earlier), "from a key in the state, {drawn} draws later");
            }
            draw::<24>(&mut rng);
        }
    }

    #[test]
    fn what_was_given_out_is_zero() {
        let mut rng = Rng::from_seed([5; 32]);
        draw::<100>(&mut rng);
        assert_eq!(rng.state.draw[KEY_BYTES..KEY_BYTES + 100], [0; 100]);
        assert_ne!(rng.state.draw[KEY_BYTES + 100..KEY_BYTES + 108], [0; 8]);
    }

    #[test]
    fn entropy_hides_what_comes_from_who_knew_the_state() {
        let mut rng = Rng::from_seed([5; 32]);
        draw::<40>(&mut rng);
        assert!(!rng.wants_entropy());
        rng.fork();
        assert!(rng.wants_entropy());
        let (mut known, mut other) = (copy(&rng), copy(&rng));
        rng.mix_in(&[7; 32]);
        assert!(!rng.wants_entropy());
        other.mix_in(&[8; 32]);
        let ahead: [u8; 4096] = draw(&mut known);
        let real: [u8; 32] = draw(&mut rng);
        assert!(!holds(&ahead, &real), "told from the state before");
        assert_ne!(real, draw(&mut other), "other entropy, other numbers");
        let mut again = Rng::from_seed([5; 32]);
        draw::<40>(&mut again);
        again.fork();
        again.mix_in(&[7; 32]);
        assert_eq!(real, draw(&mut again), "the simulator repeats its runs");
    }

    #[test]
    fn a_fork_is_another_stream() {
        let mut rng = Rng::from_seed([5; 32]);
        let mut fork = rng.fork();
        let bytes: [u8; 64] = draw(&mut fork);
        assert!(!holds(&draw::<4096>(&mut rng), &bytes[..16]));
    }
}
