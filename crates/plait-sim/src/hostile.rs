//! An authenticated hostile peer: a customer with its own key that follows no rule.
//!
//! It does the real handshake and derives the real keys, so everything it seals is authentic: any
//! packet number, any bond sequence number, any frames, any inner packet. It has neither timers nor
//! state beyond what sealing needs; [`content`] chooses what to seal, and the owner carries its
//! datagrams.

pub mod content;
mod inner;

use std::collections::BTreeMap;

use plait_proto::rng::Rng;
use plait_proto::seq::{BondIncarnation, PacketNumber, PathId, TruncatedPacketNumber};
use plait_proto::session::{
    Cipher, Cookie, Established, Finished, Hello, Identity, InitiatorState, PathKey, PresharedKey,
    PublicKey, Timestamp,
};
use plait_proto::time::Duration;
use plait_proto::wire::Kind;
use plait_proto::wire::control::Frame;
use plait_proto::wire::handshake::{
    COOKIE_REPLY_BYTES, INITIATION_BYTES, Initiation, RESPONSE_BYTES, Response, SessionIndex,
};
use plait_proto::wire::sealed::{ControlPrefix, DataPrefix, HEADER_BYTES, Header, TAG_BYTES};

/// The preshared key of every hostile peer: none.
const PSK: [u8; 32] = [0; 32];

/// What a datagram from the victim contained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// The response to the initiation sent last: datagrams can be sealed from now on.
    Session,
    /// A cookie: the handshake message sent last, with the mac2 that proves the cookie.
    Cookie(Vec<u8>),
    /// An initiation, and the response to it.
    Response(Vec<u8>),
    /// An inner packet on this path under this number.
    Data(PathId, PacketNumber),
    /// Frames on this path.
    Control(PathId, Vec<Frame>),
    /// Nothing readable.
    Nothing,
}

/// A session with the victim, and the paths on which something was sealed or opened under it.
struct Session {
    established: Established,
    paths: BTreeMap<PathId, HostilePath>,
}

struct HostilePath {
    seal: PathKey,
    open: PathKey,
    /// The number of the next datagram, by default.
    next: PacketNumber,
    /// The number after the highest one that the victim used.
    heard: PacketNumber,
}

impl Session {
    fn path(&mut self, id: PathId) -> &mut HostilePath {
        let Established { send, receive, cipher, .. } = &self.established;
        self.paths.entry(id).or_insert_with(|| HostilePath {
            seal: send.path_key(*cipher, id),
            open: receive.path_key(*cipher, id),
            next: PacketNumber(0),
            heard: PacketNumber(0),
        })
    }
}

/// The handshake message sent last, which a cookie reply would answer.
enum LastMessage {
    Initiation([u8; INITIATION_BYTES]),
    Response([u8; RESPONSE_BYTES]),
}

/// A peer that holds a key of its own and seals whatever it is told to.
pub struct HostilePeer {
    identity: Identity,
    victim: PublicKey,
    rng: Rng,
    incarnation: BondIncarnation,
    /// The largest inner packet that it announces, in bytes.
    inner_mtu: u16,
    timestamp: Timestamp,
    under_way: Option<InitiatorState>,
    last_message: Option<LastMessage>,
    cookie: Option<Cookie>,
    session: Option<Session>,
}

impl core::fmt::Debug for HostilePeer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostilePeer").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl HostilePeer {
    /// A peer of `victim` that has no session yet. The same seed gives the same run.
    pub fn new(identity: Identity, victim: PublicKey, seed: [u8; 32]) -> Self {
        let mut rng = Rng::from_seed(seed);
        let incarnation = BondIncarnation(rng.u64());
        Self {
            identity,
            victim,
            rng,
            incarnation,
            inner_mtu: 1440,
            timestamp: Timestamp::default(),
            under_way: None,
            last_message: None,
            cookie: None,
            session: None,
        }
    }

    /// Its public key.
    pub fn public_key(&self) -> PublicKey {
        self.identity.public
    }

    /// Whether it can seal.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Announces another largest inner packet in later handshakes.
    pub fn set_inner_mtu(&mut self, bytes: u16) {
        self.inner_mtu = bytes;
    }

    /// Makes the next handshake ask for another bond.
    pub fn forget_bond(&mut self) {
        self.incarnation = BondIncarnation(self.rng.u64());
    }

    /// One of the path ids that this side may give out (spec K-5).
    pub fn own_path(&self, number: u8) -> PathId {
        PathId((number & 127) * 2 + u8::from(self.identity.public > self.victim))
    }

    fn hello(&self) -> Hello {
        Hello {
            incarnation: self.incarnation,
            aes_is_fast: Cipher::aes_is_fast(),
            inner_mtu: self.inner_mtu,
            repairs: true,
            revision: plait_proto::wire::REVISION,
        }
    }

    fn random_index(&mut self) -> SessionIndex {
        loop {
            if let Some(index) = SessionIndex::from_random(self.rng.u64()) {
                return index;
            }
        }
    }

    /// An initiation with this time since 1970 as timestamp, but above all earlier ones. It uses
    /// the cookie, if there is one.
    pub fn initiate(&mut self, wall_clock: Duration) -> Vec<u8> {
        self.timestamp = self.timestamp.next().max(Timestamp::from_unix(wall_clock));
        self.initiate_at(self.timestamp)
    }

    /// An initiation with any timestamp.
    pub fn initiate_at(&mut self, timestamp: Timestamp) -> Vec<u8> {
        let (local, hello) = (self.random_index(), self.hello());
        let psk = PresharedKey::from_bytes(PSK);
        let state =
            self.identity.initiate(&mut self.rng, &self.victim, &psk, local, timestamp, hello);
        let mut message = state.message;
        if let Some(cookie) = &self.cookie {
            cookie.write_mac2(&mut message);
        }
        self.last_message = Some(LastMessage::Initiation(state.message));
        self.under_way = Some(state);
        message.to_vec()
    }

    /// Forgets the cookie, so that the next message comes without one.
    pub fn forget_cookie(&mut self) {
        self.cookie = None;
    }

    /// Reads a datagram from the victim.
    pub fn hear(&mut self, datagram: &[u8]) -> Heard {
        let kind = datagram.first().and_then(|first| Kind::of(*first));
        let heard = match kind {
            Some(Kind::Initiation) => self.hear_initiation(datagram),
            Some(Kind::Response) => self.hear_response(datagram),
            Some(Kind::CookieReply) => self.hear_cookie(datagram),
            Some(kind) => self.hear_sealed(kind, datagram),
            None => None,
        };
        heard.unwrap_or(Heard::Nothing)
    }

    fn hear_initiation(&mut self, datagram: &[u8]) -> Option<Heard> {
        let message: &[u8; INITIATION_BYTES] = datagram.try_into().ok()?;
        let state = self.identity.read_initiation(&mut self.rng, message).ok()?;
        let (local, hello) = (self.random_index(), self.hello());
        let psk = PresharedKey::from_bytes(PSK);
        let (established, response) = self.identity.respond(state, &psk, local, &hello).ok()?;
        self.last_message = Some(LastMessage::Response(response));
        self.session = Some(Session { established, paths: BTreeMap::new() });
        Some(Heard::Response(response.to_vec()))
    }

    fn hear_response(&mut self, datagram: &[u8]) -> Option<Heard> {
        let message: &[u8; RESPONSE_BYTES] = datagram.try_into().ok()?;
        let state = self.under_way.as_mut()?;
        match self.identity.finish(state, message).ok()? {
            Finished::Session(established) => {
                self.session = Some(Session { established: *established, paths: BTreeMap::new() });
                Some(Heard::Session)
            }
            Finished::Refused(newest) => {
                self.timestamp = self.timestamp.max(newest);
                None
            }
        }
    }

    fn hear_cookie(&mut self, datagram: &[u8]) -> Option<Heard> {
        let reply: &[u8; COOKIE_REPLY_BYTES] = datagram.try_into().ok()?;
        let (message, mac1) = match self.last_message.as_ref()? {
            LastMessage::Initiation(message) => (&message[..], Initiation::MAC1),
            LastMessage::Response(message) => (&message[..], Response::MAC1),
        };
        let cookie = Cookie::open(reply, &self.victim, &message[mac1]).ok()?;
        let mut message = message.to_vec();
        cookie.write_mac2(&mut message);
        self.cookie = Some(cookie);
        Some(Heard::Cookie(message))
    }

    fn hear_sealed(&mut self, kind: Kind, datagram: &[u8]) -> Option<Heard> {
        let header = Header::read(kind, datagram)?;
        let session = self.session.as_mut()?;
        if header.session != session.established.local {
            return None;
        }
        let path = session.path(header.path);
        let number = header.number.expand(path.heard);
        let mut sealed = datagram[HEADER_BYTES..].to_vec();
        let text = path.open.open(number, &datagram[..HEADER_BYTES], &mut sealed).ok()?;
        path.heard = path.heard.max(number.next());
        if kind == Kind::Data {
            return Some(Heard::Data(header.path, number));
        }
        let (_, frames) = ControlPrefix::read(text)?;
        Some(Heard::Control(header.path, Frame::read_all(frames)?))
    }

    /// The index and the low byte in acknowledgements of the victim's datagrams on a path;
    /// meaningless without a session.
    pub fn ack_index(&self, path: PathId) -> u32 {
        let local = self.session.as_ref().map(|session| session.established.local);
        local.map_or(0, SessionIndex::wire) | u32::from(path.0)
    }

    /// The number of the next datagram on a path.
    pub fn next_number(&mut self, path: PathId) -> PacketNumber {
        self.session.as_mut().map_or(PacketNumber(0), |session| session.path(path).next)
    }

    /// Skips so many packet numbers on a path.
    pub fn skip(&mut self, path: PathId, numbers: u64) {
        if let Some(session) = &mut self.session {
            session.path(path).next.0 += numbers;
        }
    }

    /// Seals a text of this kind under the path's next number; `None` without a session.
    pub fn seal(&mut self, kind: Kind, path: PathId, text: &[u8]) -> Option<Vec<u8>> {
        let state = self.session.as_mut()?.path(path);
        let number = state.next;
        state.next = number.next();
        self.seal_as(kind, path, number, text)
    }

    /// Seals a text of this kind under any number; `None` without a session.
    pub fn seal_as(
        &mut self,
        kind: Kind,
        path: PathId,
        number: PacketNumber,
        text: &[u8],
    ) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        let truncated: TruncatedPacketNumber = number.truncate();
        let header = Header { kind, session: session.established.remote, path, number: truncated }
            .to_bytes();
        let mut datagram = Vec::with_capacity(HEADER_BYTES + text.len() + TAG_BYTES);
        datagram.extend_from_slice(&header);
        datagram.extend_from_slice(text);
        let tag = session.path(path).seal.seal(number, &header, &mut datagram[HEADER_BYTES..]);
        datagram.extend_from_slice(&tag);
        Some(datagram)
    }

    /// A data datagram.
    pub fn data(&mut self, path: PathId, prefix: DataPrefix, inner: &[u8]) -> Option<Vec<u8>> {
        self.seal(Kind::Data, path, &[&prefix.to_bytes()[..], inner].concat())
    }

    /// A control datagram whose frames are these bytes, whether they parse or not.
    pub fn control(
        &mut self,
        path: PathId,
        prefix: ControlPrefix,
        frames: &[u8],
    ) -> Option<Vec<u8>> {
        self.seal(Kind::Control, path, &[&prefix.to_bytes()[..], frames].concat())
    }
}

/// A well-behaved peer's answers to these frames, which keep a hostile peer's paths up. MTU probes
/// are answered up to this padding.
pub fn replies_to(frames: &[Frame], padding_max: u16) -> Vec<Frame> {
    let reply = |frame: &Frame| match frame {
        Frame::PathChallenge(token) => Some(Frame::PathResponse(*token)),
        Frame::Probe(id) => Some(Frame::ProbeEcho(*id)),
        Frame::MtuProbe { id, padding } if *padding <= padding_max => Some(Frame::MtuEcho(*id)),
        _ => None,
    };
    frames.iter().filter_map(reply).collect()
}

#[cfg(test)]
mod tests;
