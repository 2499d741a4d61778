//! The handshake: Noise IKpsk2 with WireGuard's macs (spec H-clauses).
//!
//! It is given messages and randomness and makes keys. It does not know paths, timers or retries.

use core::fmt;
use core::ops::Range;

use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use blake2::{Blake2s256, Blake2sMac, Digest as _};

use super::keys::{Cipher, DirectionSecret, PresharedKey, PrivateKey, PublicKey};
use super::noise::{Noise, Primitives};
#[cfg(feature = "simulation")]
use super::toy_handshake;
use crate::drop_reason::DropReason;
use crate::rng::Rng;
use crate::seq::BondIncarnation;
use crate::time::Duration;
use crate::wire::handshake::{
    INITIATION_BYTES, INITIATION_PAYLOAD_BYTES, Initiation, MAC_BYTES, RESPONSE_BYTES,
    RESPONSE_PAYLOAD_BYTES, Response, SessionIndex,
};

const PROLOGUE: &[u8] = b"plait 1";
/// Its handshakes fail with every end that has another prologue, which is every gateway's.
#[cfg(feature = "simulation")]
const NULL_CIPHER_PROLOGUE: &[u8] = b"plait simulation without a cipher";
/// Nor do its handshakes succeed with an end that has either of the others.
#[cfg(feature = "simulation")]
const TOY_PROLOGUE: &[u8] = b"plait search with a toy handshake";
const MAC1_LABEL: &[u8] = b"plait 1 mac1";

/// Wall-clock time of an initiation, which guards it against replay (spec H-5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Timestamp(pub [u8; 12]);

impl Timestamp {
    /// The timestamp of a time since the Unix epoch.
    pub fn from_unix(time: Duration) -> Self {
        Self::from_parts(time.as_secs(), time.subsec_nanos())
    }

    fn from_parts(seconds: u64, nanos: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&seconds.to_be_bytes());
        bytes[8..].copy_from_slice(&nanos.to_be_bytes());
        Self(bytes)
    }

    /// The next greater timestamp; the greatest of all stays. A peer's may be any twelve bytes.
    pub fn next(self) -> Self {
        let number = self.0.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        let (seconds, nanos) = ((number >> 32) as u64, number as u32);
        match nanos {
            0..999_999_999 => Self::from_parts(seconds, nanos + 1),
            _ if seconds < u64::MAX => Self::from_parts(seconds + 1, 0),
            _ => Self::from_parts(u64::MAX, u32::MAX),
        }
    }
}

/// What one side tells the other under the handshake's encryption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Names the sender's end of the bond that it has or wants (spec H-4).
    pub incarnation: BondIncarnation,
    /// Whether this side's CPU does AES in hardware.
    pub aes_is_fast: bool,
    /// Largest inner packet this side's TUN carries.
    pub inner_mtu: u16,
    /// Whether this side sends again what its paths lose: the peer's egress waits for it.
    pub repairs: bool,
    /// The newest revision of the protocol that this side speaks (spec V-2), 63 at most.
    pub revision: u8,
}

impl Hello {
    const BYTES: usize = 11;

    fn write(&self, out: &mut [u8]) {
        out[..8].copy_from_slice(&self.incarnation.0.to_be_bytes());
        out[8] = u8::from(self.aes_is_fast) | u8::from(self.repairs) << 1 | self.revision << 2;
        out[9..11].copy_from_slice(&self.inner_mtu.to_be_bytes());
    }

    fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (incarnation, rest) = bytes.split_first_chunk::<8>()?;
        let flags = rest[0];
        Some(Self {
            incarnation: BondIncarnation(u64::from_be_bytes(*incarnation)),
            aes_is_fast: flags & 1 != 0,
            inner_mtu: u16::from_be_bytes([rest[1], rest[2]]),
            repairs: flags & 2 != 0,
            revision: flags >> 2,
        })
    }
}

/// A finished handshake.
#[derive(Debug)]
pub struct Established {
    /// Secret of what this side sends.
    pub send: DirectionSecret,
    /// Secret of what this side receives.
    pub receive: DirectionSecret,
    /// AEAD of the session.
    pub cipher: Cipher,
    /// The index this side chose; the peer sends to it.
    pub local: SessionIndex,
    /// The index the peer chose; this side sends to it.
    pub remote: SessionIndex,
    /// What the peer said.
    pub peer: Hello,
}

/// This gateway's part in every handshake.
pub struct Identity {
    private: PrivateKey,
    /// This gateway's public key.
    pub public: PublicKey,
    mac1_key: [u8; 32],
    sealing: Sealing,
}

/// What an identity's sessions are sealed with.
enum Sealing {
    /// An AEAD, by what both CPUs do fast.
    Aead,
    #[cfg(feature = "simulation")]
    Null,
    /// Nothing, after a handshake that costs nothing.
    #[cfg(feature = "simulation")]
    Toy,
}

impl Sealing {
    fn prologue(&self) -> &'static [u8] {
        match self {
            Self::Aead => PROLOGUE,
            #[cfg(feature = "simulation")]
            Self::Null => NULL_CIPHER_PROLOGUE,
            #[cfg(feature = "simulation")]
            Self::Toy => TOY_PROLOGUE,
        }
    }

    fn primitives(&self) -> Primitives {
        match self {
            #[cfg(feature = "simulation")]
            Self::Toy => Primitives::Toy,
            _ => Primitives::Real,
        }
    }

    fn cipher(&self, a: &Hello, b: &Hello) -> Cipher {
        match self {
            Self::Aead if a.aes_is_fast && b.aes_is_fast => Cipher::Aes256Gcm,
            Self::Aead => Cipher::ChaCha20Poly1305,
            #[cfg(feature = "simulation")]
            Self::Null | Self::Toy => Cipher::Null,
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}

impl Identity {
    /// The identity of a private key.
    pub fn new(private: PrivateKey) -> Self {
        let public = private.public_key();
        Self { private, public, mac1_key: mac1_key(&public), sealing: Sealing::Aead }
    }

    /// The identity of a gateway in the simulator, whose sessions have the null cipher. It makes
    /// sessions with its like only.
    #[cfg(feature = "simulation")]
    pub fn without_cipher(private: PrivateKey) -> Self {
        Self { sealing: Sealing::Null, ..Self::new(private) }
    }

    /// The identity of a gateway in the search, whose handshakes hide nothing and whose sessions
    /// have the null cipher. It makes sessions with its like only.
    #[cfg(feature = "simulation")]
    pub fn with_toy_handshake(private: PrivateKey) -> Self {
        let public = private.toy_public_key();
        Self { private, public, mac1_key: mac1_key(&public), sealing: Sealing::Toy }
    }

    /// The initiator's index is part of the prologue, so that nobody can change it unnoticed.
    fn initiation_prologue(&self, initiator: SessionIndex) -> Vec<u8> {
        [self.sealing.prologue(), &initiator.wire().to_be_bytes()].concat()
    }

    /// Starts a handshake with a peer.
    pub fn initiate(
        &self,
        rng: &mut Rng,
        peer: &PublicKey,
        psk: &PresharedKey,
        local: SessionIndex,
        timestamp: Timestamp,
        hello: Hello,
    ) -> InitiatorState {
        let prologue = self.initiation_prologue(local);
        let mut noise =
            Noise::initiator(self.sealing.primitives(), rng, &self.private, &prologue, peer, psk);
        let mut payload = [0; INITIATION_PAYLOAD_BYTES];
        payload[..12].copy_from_slice(&timestamp.0);
        hello.write(&mut payload[12..]);
        let mut message = Initiation::frame(local);
        noise
            .write_message(&payload, &mut message[Initiation::NOISE])
            .expect("the message has the length of its noise part");
        let mac1 = self.mac1(peer, &message[..Initiation::MAC1.start]);
        message[Initiation::MAC1].copy_from_slice(&mac1);
        InitiatorState { noise, message, local, hello }
    }

    /// The mac1 of a message to the gateway with this key.
    fn mac1(&self, to: &PublicKey, message: &[u8]) -> [u8; MAC_BYTES] {
        #[cfg(feature = "simulation")]
        if matches!(self.sealing, Sealing::Toy) {
            return toy_handshake::mac1(to, message);
        }
        if *to == self.public {
            return mac1(&self.mac1_key, message);
        }
        mac1(&mac1_key(to), message)
    }

    /// Checks what is cheap to check of a handshake message: the mac1 at its place (spec H-6).
    ///
    /// # Errors
    /// [`DropReason::BadMac`] when it does not fit.
    pub fn check_mac1(&self, message: &[u8], place: Range<usize>) -> Result<(), DropReason> {
        let expected = self.mac1(&self.public, &message[..place.start]);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected, &message[place])
            .map_err(|_| DropReason::BadMac)
    }

    /// Reads an initiation whose macs fit, as far as finding out who sent it.
    pub fn read_initiation(
        &self,
        rng: &mut Rng,
        message: &[u8; INITIATION_BYTES],
    ) -> Result<ResponderState, DropReason> {
        let remote = Initiation::sender(message).ok_or(DropReason::BadHandshake)?;
        let prologue = self.initiation_prologue(remote);
        let mut noise = Noise::responder(self.sealing.primitives(), rng, &self.private, &prologue);
        let mut payload = [0; INITIATION_PAYLOAD_BYTES];
        let read = noise
            .read_message(&message[Initiation::NOISE], &mut payload)
            .map_err(|_| DropReason::BadHandshake)?;
        let (timestamp, hello) = payload
            .split_first_chunk::<12>()
            .filter(|_| read == INITIATION_PAYLOAD_BYTES)
            .ok_or(DropReason::BadHandshake)?;
        let hello = hello.try_into().ok().and_then(Hello::read).ok_or(DropReason::BadHandshake)?;
        let peer = noise
            .get_remote_static()
            .and_then(|key| key.try_into().ok())
            .map(PublicKey::from_bytes)
            .ok_or(DropReason::BadHandshake)?;
        Ok(ResponderState { noise, remote, peer, hello, timestamp: Timestamp(*timestamp) })
    }

    /// Answers an initiation.
    pub fn respond(
        &self,
        mut state: ResponderState,
        psk: &PresharedKey,
        local: SessionIndex,
        hello: &Hello,
    ) -> Result<(Established, [u8; RESPONSE_BYTES]), DropReason> {
        state.noise.set_psk(psk);
        let mut payload = [0; RESPONSE_PAYLOAD_BYTES];
        payload[..4].copy_from_slice(&local.wire().to_be_bytes());
        hello.write(&mut payload[4..]);
        let mut message = Response::frame(local, state.remote);
        state
            .noise
            .write_message(&payload, &mut message[Response::NOISE])
            .map_err(|_| DropReason::BadHandshake)?;
        let mac1 = self.mac1(&state.peer, &message[..Response::MAC1.start]);
        message[Response::MAC1].copy_from_slice(&mac1);
        let (from_initiator, from_responder) = state.noise.split();
        let established = Established {
            send: from_responder,
            receive: from_initiator,
            cipher: self.sealing.cipher(hello, &state.hello),
            local,
            remote: state.remote,
            peer: state.hello,
        };
        Ok((established, message))
    }

    /// Answers an initiation whose timestamp is stale: tells its sender, and nobody else, which one
    /// it must exceed (spec H-12). No session comes of it.
    ///
    /// # Errors
    /// [`DropReason::BadHandshake`] when the handshake cannot go on.
    pub fn refuse(
        &self,
        mut state: ResponderState,
        psk: &PresharedKey,
        newest: Timestamp,
    ) -> Result<[u8; RESPONSE_BYTES], DropReason> {
        state.noise.set_psk(psk);
        let mut payload = [0; RESPONSE_PAYLOAD_BYTES];
        payload[..12].copy_from_slice(&newest.0);
        let mut message = Response::refusal(state.remote);
        state
            .noise
            .write_message(&payload, &mut message[Response::NOISE])
            .map_err(|_| DropReason::BadHandshake)?;
        let mac1 = self.mac1(&state.peer, &message[..Response::MAC1.start]);
        message[Response::MAC1].copy_from_slice(&mac1);
        Ok(message)
    }

    /// Finishes a handshake with the peer's response, whose macs fit. The state is untouched unless
    /// the response decrypts.
    ///
    /// # Errors
    /// [`DropReason::BadHandshake`] when it is not the peer's answer to this initiation.
    pub fn finish(
        &self,
        state: &mut InitiatorState,
        message: &[u8; RESPONSE_BYTES],
    ) -> Result<Finished, DropReason> {
        let mut payload = [0; RESPONSE_PAYLOAD_BYTES];
        let read = state
            .noise
            .read_message(&message[Response::NOISE], &mut payload)
            .map_err(|_| DropReason::BadHandshake)?;
        if read != RESPONSE_PAYLOAD_BYTES {
            return Err(DropReason::BadHandshake);
        }
        match read_refusal(&payload) {
            Some(newest) => Ok(Finished::Refused(newest)),
            None => self.establish(state, &payload).map(Box::new).map(Finished::Session),
        }
    }

    /// The responder's index is the sealed one: anyone who reads along can write another into the
    /// clear part, and a response opens only once (spec H-3).
    fn establish(
        &self,
        state: &mut InitiatorState,
        payload: &[u8; RESPONSE_PAYLOAD_BYTES],
    ) -> Result<Established, DropReason> {
        let (index, hello) = payload.split_first_chunk::<4>().ok_or(DropReason::BadHandshake)?;
        let hello = hello.try_into().ok().and_then(Hello::read).ok_or(DropReason::BadHandshake)?;
        let remote = SessionIndex::read(index).ok_or(DropReason::BadHandshake)?;
        let (from_initiator, from_responder) = state.noise.split();
        Ok(Established {
            send: from_initiator,
            receive: from_responder,
            cipher: self.sealing.cipher(&state.hello, &hello),
            local: state.local,
            remote,
            peer: hello,
        })
    }
}

/// The newest timestamp, when the payload is a refusal's: the three zero bytes stand where a
/// session's response has the size of an inner packet. What the clear part says of the kind may
/// have been changed on the way.
fn read_refusal(payload: &[u8; RESPONSE_PAYLOAD_BYTES]) -> Option<Timestamp> {
    match payload.split_first_chunk::<12>() {
        Some((newest, [0, 0, 0])) => Some(Timestamp(*newest)),
        _ => None,
    }
}

/// What came of a handshake this side began.
#[derive(Debug)]
pub enum Finished {
    /// A session.
    Session(Box<Established>),
    /// No session: the peer has accepted an initiation of this side with this timestamp, which the
    /// next one must exceed.
    Refused(Timestamp),
}

/// A handshake this side began.
#[derive(Debug)]
pub struct InitiatorState {
    noise: Noise,
    /// The initiation, to be sent, and sent again over other paths.
    pub message: [u8; INITIATION_BYTES],
    /// The index this side chose.
    pub local: SessionIndex,
    /// What this side said of itself.
    pub hello: Hello,
}

/// An initiation of which it is known who sent it.
#[derive(Debug)]
pub struct ResponderState {
    noise: Noise,
    remote: SessionIndex,
    /// Who sent it.
    pub peer: PublicKey,
    /// What the sender says of itself.
    pub hello: Hello,
    /// When it was made, by its sender's clock.
    pub timestamp: Timestamp,
}

fn mac1_key(responder: &PublicKey) -> [u8; 32] {
    Blake2s256::new().chain_update(MAC1_LABEL).chain_update(responder.as_bytes()).finalize().into()
}

fn mac1(key: &[u8; 32], message: &[u8]) -> [u8; MAC_BYTES] {
    let mut mac =
        Blake2sMac::<U16>::new_from_slice(key).expect("BLAKE2s takes keys of up to 32 bytes");
    mac.update(message);
    mac.finalize_fixed().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(seconds: u64, nanos: u32) -> Timestamp {
        Timestamp::from_unix(Duration::new(seconds, nanos))
    }

    /// Spec H-5: timestamps only ever grow.
    #[test]
    fn the_next_timestamp_is_greater() {
        assert_eq!(timestamp(7, 8).next(), timestamp(7, 9));
        assert_eq!(timestamp(7, 999_999_999).next(), timestamp(8, 0));
        let odd = Timestamp::from_parts(7, u32::MAX);
        assert!(odd.next() > odd, "nanoseconds of more than a second");
        let last = Timestamp([0xff; 12]);
        assert_eq!(last.next(), last, "there is no greater one");
    }

    struct Pair {
        rng: Rng,
        sides: [Identity; 2],
    }

    impl Pair {
        fn new() -> Self {
            let sides = [1, 2].map(|byte| Identity::new(PrivateKey::from_bytes([byte; 32])));
            Self { rng: Rng::from_seed([3; 32]), sides }
        }

        fn hello() -> Hello {
            Hello {
                incarnation: BondIncarnation(5),
                aes_is_fast: true,
                inner_mtu: 1440,
                repairs: true,
                revision: 0,
            }
        }

        fn initiate(&mut self) -> (InitiatorState, ResponderState) {
            let psk = PresharedKey::default();
            let local = SessionIndex::from_random(0x0001_0203).unwrap();
            let peer = self.sides[1].public;
            let own = timestamp(100, 0);
            let rng = &mut self.rng;
            let state = self.sides[0].initiate(rng, &peer, &psk, local, own, Self::hello());
            let read = self.sides[1].read_initiation(rng, &state.message).unwrap();
            (state, read)
        }
    }

    /// Spec H-12.
    #[test]
    fn a_refusal_tells_the_initiator_the_newest_timestamp() {
        let mut pair = Pair::new();
        let (mut state, read) = pair.initiate();
        let newest = timestamp(5000, 7);
        let message = pair.sides[1].refuse(read, &PresharedKey::default(), newest).unwrap();
        pair.sides[0].check_mac1(&message, Response::MAC1).unwrap();
        let finished = pair.sides[0].finish(&mut state, &message).unwrap();
        assert!(matches!(finished, Finished::Refused(told) if told == newest), "{finished:?}");
    }

    /// The macs are no secret: anyone who reads along can write another index, or none, into the
    /// clear part, and be there first.
    #[test]
    fn regression_a_changed_clear_index_does_not_end_the_attempt() {
        let mut pair = Pair::new();
        let psk = PresharedKey::default();
        let [index, other] = [9, 10].map(|n| SessionIndex::from_random(n).unwrap());
        for clear in [0, other.wire()] {
            let (mut state, read) = pair.initiate();
            let responded = pair.sides[1].respond(read, &psk, index, &Pair::hello());
            let (_, mut message) = responded.unwrap();
            message[5..9].copy_from_slice(&clear.to_be_bytes());
            let finished = pair.sides[0].finish(&mut state, &message).unwrap();
            let Finished::Session(session) = finished else { panic!("{finished:?}") };
            assert_eq!(session.remote, index, "the sealed one");
        }
        let (mut state, read) = pair.initiate();
        let mut refusal = pair.sides[1].refuse(read, &psk, timestamp(5000, 7)).unwrap();
        refusal[5..9].copy_from_slice(&index.wire().to_be_bytes());
        let finished = pair.sides[0].finish(&mut state, &refusal).unwrap();
        assert!(matches!(finished, Finished::Refused(told) if told == timestamp(5000, 7)));
    }
}
