//! The test vectors of the specification, `docs/spec/vectors.json`: built anew from the inputs
//! below and compared byte by byte, then read by the code that reads what arrives.
//!
//! `PLAIT_WRITE_VECTORS=1 cargo test -p plait-proto vectors` writes the file, after a change of the
//! protocol. A second implementation checks it too: `docs/spec/verify_vectors.py`.

mod json;

use core::fmt::Write as _;
use core::net::SocketAddr;
use std::path::Path;

use chacha20poly1305::XNonce;

use self::json::{Value, list, map};
use crate::rng::Rng;
use crate::seq::{BondIncarnation, BondSeq, PacketNumber, PathId, TruncatedPacketNumber};
use crate::session::noise::tests::with_ephemeral;
use crate::session::{
    Cipher, Cookie, CookieSecrets, DirectionSecret, Established, Finished, Hello, Identity,
    PresharedKey, PrivateKey, Timestamp,
};
use crate::time::{Duration, Instant};
use crate::wire::control::{
    Ack, AckRange, Discards, FRAMES_MAX, Frame, LossReport, PathInfo, Release,
};
use crate::wire::handshake::{
    INITIATION_BYTES, Initiation, MAC_BYTES, RESPONSE_BYTES, Response, SessionIndex,
};
use crate::wire::sealed::{ControlPrefix, DataPrefix, HEADER_BYTES, Header, SendTimestamp};
use crate::wire::{Kind, first_byte};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/spec/vectors.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// 32 bytes that show where they come from: counted up from the first.
fn counted(first: u8) -> [u8; 32] {
    core::array::from_fn(|at| first.wrapping_add(at as u8))
}

fn index(number: u64) -> SessionIndex {
    SessionIndex::from_random(number).unwrap()
}

/// The inputs of a handshake.
struct Handshake {
    name: &'static str,
    /// Initiator's and responder's.
    private: [[u8; 32]; 2],
    ephemeral: [[u8; 32]; 2],
    indices: [SessionIndex; 2],
    hellos: [Hello; 2],
    psk: [u8; 32],
    /// Seconds and nanoseconds.
    time: (u64, u32),
}

fn handshakes() -> [Handshake; 2] {
    let hello = |incarnation, aes_is_fast, repairs, revision, inner_mtu| Hello {
        incarnation: BondIncarnation(incarnation),
        aes_is_fast,
        inner_mtu,
        repairs,
        revision,
    };
    let (private, ephemeral) = ([counted(0x01), counted(0x41)], [counted(0x81), counted(0xc1)]);
    [
        Handshake {
            name: "AES on both sides, a preshared key",
            private,
            ephemeral,
            indices: [index(0x01_0203), index(0xa0_b0c0)],
            hellos: [
                hello(0x1122_3344_5566_7788, true, true, 0, 1440),
                hello(0x99aa_bbcc_ddee_ff00, true, true, 1, 1420),
            ],
            psk: counted(0x21),
            time: (1_700_000_000, 123_456_789),
        },
        Handshake {
            name: "AES on one side, no preshared key",
            private,
            ephemeral: [ephemeral[1], ephemeral[0]],
            indices: [index(0xff_ffff), index(1)],
            hellos: [hello(1, true, false, 63, 1500), hello(u64::MAX, false, true, 2, 65535)],
            psk: [0; 32],
            time: (1_700_000_001, 0),
        },
    ]
}

/// What the inputs make.
struct Made {
    sides: [Identity; 2],
    initiation: [u8; INITIATION_BYTES],
    response: [u8; RESPONSE_BYTES],
    refusal: [u8; RESPONSE_BYTES],
    /// The initiator's view.
    session: Established,
}

const NEWEST: (u64, u32) = (1_800_000_000, 999_999_999);

fn timestamp((seconds, nanos): (u64, u32)) -> Timestamp {
    Timestamp::from_unix(Duration::new(seconds, nanos))
}

impl Handshake {
    /// Runs it between two identities, and once more with a refusal as the answer.
    fn run(&self) -> Made {
        let side = |at: usize| Identity::new(PrivateKey::from_bytes(self.private[at]));
        let sides = [side(0), side(1)];
        // Its numbers reach no message: the ephemeral keys are given.
        let mut rng = Rng::from_seed([0; 32]);
        let psk = PresharedKey::from_bytes(self.psk);
        let [local, remote] = self.indices;
        let at = timestamp(self.time);
        let mut initiate = || {
            let peer = &sides[1].public;
            with_ephemeral(self.ephemeral[0], || {
                sides[0].initiate(&mut rng, peer, &psk, local, at, self.hellos[0])
            })
        };
        let (mut state, mut refused) = (initiate(), initiate());
        let initiation = state.message;
        let mut read = || sides[1].read_initiation(&mut rng, &initiation).unwrap();
        let received = read();
        assert_eq!(received.peer, sides[0].public);
        assert_eq!((received.hello, received.timestamp), (self.hellos[0], at));
        let (other, response) = with_ephemeral(self.ephemeral[1], || {
            sides[1].respond(received, &psk, remote, &self.hellos[1]).unwrap()
        });
        let asked = read();
        let refusal = with_ephemeral(self.ephemeral[1], || {
            sides[1].refuse(asked, &psk, timestamp(NEWEST)).unwrap()
        });
        let told = sides[0].finish(&mut refused, &refusal).unwrap();
        assert!(matches!(told, Finished::Refused(newest) if newest == timestamp(NEWEST)));
        let Finished::Session(session) = sides[0].finish(&mut state, &response).unwrap() else {
            panic!("the response makes a session");
        };
        assert_eq!(session.peer, self.hellos[1]);
        assert_eq!(session.send.as_bytes(), other.receive.as_bytes());
        assert_eq!(session.receive.as_bytes(), other.send.as_bytes());
        sides[1].check_mac1(&initiation, Initiation::MAC1).unwrap();
        sides[0].check_mac1(&response, Response::MAC1).unwrap();
        Made { sides, initiation, response, refusal, session: *session }
    }

    fn document(&self, made: &Made) -> Value {
        let of_side = |at: usize| {
            let hello = self.hellos[at];
            map([
                ("private_key", hex(&self.private[at]).into()),
                ("public_key", hex(made.sides[at].public.as_bytes()).into()),
                ("ephemeral_private_key", hex(&self.ephemeral[at]).into()),
                ("index", (self.indices[at].wire() >> 8).into()),
                ("incarnation", hex(&hello.incarnation.0.to_be_bytes()).into()),
                ("aes_in_hardware", hello.aes_is_fast.into()),
                ("sends_again", hello.repairs.into()),
                ("revision", hello.revision.into()),
                ("inner_mtu", hello.inner_mtu.into()),
            ])
        };
        let Made { session, .. } = made;
        map([
            ("name", self.name.into()),
            ("initiator", of_side(0)),
            ("responder", of_side(1)),
            ("preshared_key", hex(&self.psk).into()),
            ("timestamp", time(self.time)),
            ("initiation", hex(&made.initiation).into()),
            ("response", hex(&made.response).into()),
            ("refusal_newest", time(NEWEST)),
            ("refusal", hex(&made.refusal).into()),
            ("secret_from_initiator", hex(session.send.as_bytes()).into()),
            ("secret_from_responder", hex(session.receive.as_bytes()).into()),
            ("cipher", session.cipher.name().into()),
            ("path_keys", path_keys(session)),
            ("datagrams", datagrams(self, session)),
        ])
    }
}

fn time((seconds, nanos): (u64, u32)) -> Value {
    map([("seconds", seconds.into()), ("nanoseconds", nanos.into())])
}

/// Keys for both ciphers, of which the session uses one.
fn path_keys(session: &Established) -> Value {
    let mut keys = Vec::new();
    for path in [0, 1, 31, 255] {
        for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            let key = |secret: &DirectionSecret| {
                Value::from(hex(&*secret.path_key_bytes(cipher, PathId(path))))
            };
            keys.push(map([
                ("path", path.into()),
                ("cipher", cipher.name().into()),
                ("from_initiator", key(&session.send)),
                ("from_responder", key(&session.receive)),
            ]));
        }
    }
    list(keys)
}

/// One frame of each type, some of them twice, with what each holds. A frame added to the protocol
/// does not compile here until it has a name.
fn frames() -> Vec<Frame> {
    let range = |gap, length| AckRange { gap, length };
    let info = |name: &str, standby, metered| {
        let name = name.to_owned();
        Frame::PathInfo(PathInfo { price: 2, order: 3, weight: 1000, standby, metered, name })
    };
    vec![
        Frame::PathChallenge(0x0102_0304_0506_0708),
        Frame::PathResponse(0x0807_0605_0403_0201),
        info("lte", true, false),
        info("", false, true),
        Frame::Probe(7),
        Frame::ProbeEcho(u32::MAX),
        Frame::Ack(Ack {
            index: 0x0102_0301,
            largest: TruncatedPacketNumber(0x0001_0002),
            delay: 78,
            transit: 0xfff0,
            ranges: vec![range(0, 1), range(2, 70_000), range(u16::MAX, 3)],
        }),
        Frame::LossReport(LossReport { path: PathId(1), received: 1 << 40, lost: 9, late: 2 }),
        Frame::Close,
        Frame::PathDead(PathId(3)),
        Frame::PathClose(PathId(31)),
        Frame::MtuProbe { id: 11, padding: 40 },
        Frame::MtuEcho(11),
        Frame::Discards(Discards { arrived: 415, discarded: 412 }),
        Frame::Release(Release { major: 1, minor: 20, patch: 300 }),
    ]
}

fn document_of(frame: &Frame) -> Value {
    let typed = |kind: &'static str, fields: Vec<(&'static str, Value)>| {
        map([("type", kind.into())].into_iter().chain(fields))
    };
    let token = |token: &u64| vec![("token", hex(&token.to_be_bytes()).into())];
    let id = |id: &u32| vec![("id", (*id).into())];
    let path = |path: &PathId| vec![("path", path.0.into())];
    match frame {
        Frame::PathChallenge(value) => typed("PATH_CHALLENGE", token(value)),
        Frame::PathResponse(value) => typed("PATH_RESPONSE", token(value)),
        Frame::PathInfo(info) => typed("PATH_INFO", document_of_info(info)),
        Frame::Probe(value) => typed("PROBE", id(value)),
        Frame::ProbeEcho(value) => typed("PROBE_ECHO", id(value)),
        Frame::Ack(ack) => typed("ACK", document_of_ack(ack)),
        Frame::LossReport(report) => {
            let counts =
                [("received", report.received), ("lost", report.lost), ("late", report.late)];
            let counts = counts.map(|(name, count)| (name, count.into()));
            typed("LOSS_REPORT", path(&report.path).into_iter().chain(counts).collect())
        }
        Frame::Close => typed("CLOSE", vec![]),
        Frame::PathDead(value) => typed("PATH_DEAD", path(value)),
        Frame::PathClose(value) => typed("PATH_CLOSE", path(value)),
        Frame::MtuProbe { id: value, padding } => {
            typed("MTU_PROBE", [id(value), vec![("padding", (*padding).into())]].concat())
        }
        Frame::MtuEcho(value) => typed("MTU_ECHO", id(value)),
        Frame::Discards(Discards { arrived, discarded }) => typed(
            "DISCARDS",
            vec![("arrived", (*arrived).into()), ("thrown_away", (*discarded).into())],
        ),
        Frame::Release(Release { major, minor, patch }) => typed(
            "RELEASE",
            vec![
                ("major", (*major).into()),
                ("minor", (*minor).into()),
                ("patch", (*patch).into()),
            ],
        ),
    }
}

fn document_of_info(info: &PathInfo) -> Vec<(&'static str, Value)> {
    vec![
        ("price_class", info.price.into()),
        ("place", info.order.into()),
        ("weight", info.weight.into()),
        ("standby", info.standby.into()),
        ("metered", info.metered.into()),
        ("name", info.name.as_str().into()),
    ]
}

fn document_of_ack(ack: &Ack) -> Vec<(&'static str, Value)> {
    let of_range =
        |range: &AckRange| map([("missing", range.gap.into()), ("length", range.length.into())]);
    vec![
        ("index", ack.index.into()),
        ("largest", ack.largest.0.into()),
        ("delay", ack.delay.into()),
        ("transit", ack.transit.into()),
        ("ranges", list(ack.ranges.iter().map(of_range))),
    ]
}

/// Seals datagrams in both directions, numbers at their limits among them, and opens each.
struct Sealer<'a> {
    handshake: &'a Handshake,
    session: &'a Established,
    out: Vec<Value>,
}

/// Where a datagram stands.
#[derive(Clone, Copy)]
struct Place {
    from: usize,
    path: PathId,
    number: PacketNumber,
    seq: BondSeq,
    sent: SendTimestamp,
}

impl Place {
    fn document(&self, rest: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
        let place = [
            ("from", ["initiator", "responder"][self.from].into()),
            ("path", self.path.0.into()),
            ("packet_number", self.number.0.into()),
            ("send_timestamp", self.sent.0.into()),
        ];
        map(place.into_iter().chain(rest))
    }
}

impl Sealer<'_> {
    fn seal(&mut self, place: Place, kind: Kind, prefix: &[u8], body: &[u8]) -> String {
        let secret = [&self.session.send, &self.session.receive][place.from];
        let key = secret.path_key(self.session.cipher, place.path);
        let session = self.handshake.indices[1 - place.from];
        let header = Header { kind, session, path: place.path, number: place.number.truncate() };
        let mut sealed = Vec::new();
        key.seal_datagram(place.number, header, prefix, body, &mut sealed);
        let mut opened = sealed.clone();
        assert_eq!(Header::read(kind, &opened), Some(header));
        let (clear, text) = opened.split_at_mut(HEADER_BYTES);
        assert_eq!(key.open(place.number, clear, text).unwrap(), [prefix, body].concat());
        hex(&sealed)
    }

    fn data(&mut self, place: Place, prev: u16, inner: &[u8]) {
        let prefix = DataPrefix { seq: place.seq.truncate(), prev, sent: place.sent };
        let sealed = self.seal(place, Kind::Data, &prefix.to_bytes(), inner);
        self.out.push(place.document([
            ("kind", "data".into()),
            ("bond_seq", place.seq.0.into()),
            ("predecessor_distance", prev.into()),
            ("inner_packet", hex(inner).into()),
            ("datagram", sealed.into()),
        ]));
    }

    fn control(&mut self, place: Place, frames: &[Frame]) {
        let at = Instant::from_nanos(u64::from(place.sent.0) * SendTimestamp::UNIT_NANOS);
        let prefix = ControlPrefix::new(at, place.seq);
        let mut body = Vec::new();
        for frame in frames {
            frame.write(&mut body);
        }
        assert_eq!(Frame::read_all(&body).as_deref(), Some(frames));
        let sealed = self.seal(place, Kind::Control, &prefix.to_bytes(), &body);
        self.out.push(place.document([
            ("kind", if frames.is_empty() { "mark" } else { "control" }.into()),
            ("next_bond_seq", place.seq.0.into()),
            ("frames", list(frames.iter().map(document_of))),
            ("datagram", sealed.into()),
        ]));
    }
}

/// An inner packet: 8 bytes of UDP in IPv4.
const INNER: [u8; 36] = [
    0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0x64, 0x6f, 10, 99, 0, 2, 10, 99, 0, 1, 0x12, 0x34, 0,
    9, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
];

fn datagrams(handshake: &Handshake, session: &Established) -> Value {
    let mut sealer = Sealer { handshake, session, out: Vec::new() };
    let first = Place {
        from: 0,
        path: PathId(0),
        number: PacketNumber(0),
        seq: BondSeq(0),
        sent: SendTimestamp(0),
    };
    // The header holds the low 32 bits of a packet number and the text the low 24 of a bond
    // sequence number; the nonce holds the whole packet number.
    let late = Place {
        from: 1,
        path: PathId(255),
        number: PacketNumber((5 << 32) + 6),
        seq: BondSeq((7 << 24) + 8),
        sent: SendTimestamp(u16::MAX),
    };
    sealer.data(first, 0, &INNER);
    sealer.data(late, u16::MAX, &INNER);
    sealer.control(Place { number: PacketNumber(1), seq: BondSeq(1), ..first }, &[]);
    for (at, frame) in frames().into_iter().enumerate() {
        let number = PacketNumber(2 + at as u64);
        let place = Place { from: at % 2, path: PathId(1), number, ..first };
        sealer.control(place, &[frame]);
    }
    // As many as a datagram may have.
    sealer.control(late, &frames()[..FRAMES_MAX]);
    list(sealer.out)
}

/// Cookies for an IPv4 and an IPv6 address, in answer to an initiation and to a response.
fn cookies(made: &Made) -> Value {
    let secret = counted(0x61);
    let cases: [(&str, &str, usize, &[u8]); 2] = [
        ("initiation", "192.0.2.1:1000", 1, &made.initiation),
        ("response", "[2001:db8::1]:7788", 0, &made.response),
    ];
    let cases = cases.map(|(kind, source, giver, message)| {
        let address: SocketAddr = source.parse().unwrap();
        let mut secrets = CookieSecrets::fixed(secret);
        let cookie = secrets.cookie(Instant::ZERO, &mut Rng::from_seed([0; 32]), address);
        let nonce: [u8; 24] = core::array::from_fn(|at| 0xe0 + at as u8);
        let mac1_at = message.len() - 2 * MAC_BYTES..message.len() - MAC_BYTES;
        let (mac1, to) = (&message[mac1_at], SessionIndex::from_receiver_index(sender(message)));
        let own = &made.sides[giver].public;
        let reply = cookie.seal_with(&XNonce::from(nonce), own, to, mac1);
        let opened = Cookie::open(&reply, own, mac1).unwrap();
        let mut shown = message.to_vec();
        opened.write_mac2(&mut shown);
        let (before, mac2) = shown.split_at(shown.len() - MAC_BYTES);
        assert!(secrets.accept(Instant::ZERO, address, before, mac2));
        map([
            ("in_answer_to", kind.into()),
            ("source", source.into()),
            ("secret", hex(&secret).into()),
            ("nonce", hex(&nonce).into()),
            ("cookie", hex(cookie.as_bytes()).into()),
            ("cookie_reply", hex(&reply).into()),
            ("with_mac2", hex(&shown).into()),
        ])
    });
    list(cases)
}

/// The sender index of a handshake message.
fn sender(message: &[u8]) -> u32 {
    let at = if message[0] == first_byte(Kind::Initiation) { 1 } else { 5 };
    u32::from_be_bytes(message[at..at + 4].try_into().unwrap())
}

fn document() -> Value {
    let handshakes = handshakes();
    let made = handshakes.each_ref().map(Handshake::run);
    let all = handshakes.iter().zip(&made).map(|(handshake, made)| handshake.document(made));
    map([("protocol", "plait 1".into()), ("handshakes", list(all)), ("cookies", cookies(&made[0]))])
}

/// The bytes of every kind of datagram and of every frame, from inputs that are all given.
/// Spec W-1, W-2, W-3, W-4, W-5, W-6: sealed datagrams.
/// Spec H-1, H-2, H-3, H-4, H-6, H-10, H-12: handshake messages and cookie replies.
/// Spec K-1, K-2, K-3, K-4: secrets, path keys and ciphers.
/// Spec C-1, C-2, C-3, C-4, C-6, C-7, C-8, C-9, C-10, C-11, C-12, C-13: layouts of frames.
#[test]
fn the_specifications_vectors_are_what_the_code_makes() {
    let text = document().to_text();
    if std::env::var_os("PLAIT_WRITE_VECTORS").is_some() {
        std::fs::write(Path::new(FILE), &text).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap();
    for (number, (line, expected)) in text.lines().zip(kept.lines()).enumerate() {
        assert_eq!(line, expected, "line {} of docs/spec/vectors.json", number + 1);
    }
    assert_eq!(text, kept, "docs/spec/vectors.json has as many lines");
}
