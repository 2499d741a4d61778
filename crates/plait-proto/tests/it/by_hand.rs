//! One endpoint, and a peer made by hand in front of it: it holds keys, sends whatever a test wants
//! and reads all that comes, so that clauses of the specification can be seen datagram by datagram.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use plait_pair::{CUSTOMER_IP, PROVIDER_IP, bond_config, link_config, packet_with};
use plait_proto::config::{BondConfig, EndpointConfig, Order, PeerConfig, Prefix, SocketId};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::scheduler::Algorithm;
use plait_proto::seq::{BondIncarnation, PacketNumber, PathId, TruncatedBondSeq};
use plait_proto::session::{
    Established, Finished, Hello, Identity, InitiatorState, PresharedKey, PrivateKey, Timestamp,
};
use plait_proto::stats::{PathStatus, PeerStatus};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::Kind;
use plait_proto::wire::control::Frame;
use plait_proto::wire::ecn::Ecn;
use plait_proto::wire::handshake::SessionIndex;
use plait_proto::wire::sealed::{ControlPrefix, DataPrefix, HEADER_BYTES, Header, SendTimestamp};

/// Where the hand-made peer of an endpoint that seeks one is.
pub(crate) const PEER_AT: ([u8; 4], u16) = ([192, 0, 2, 1], 7788);
/// The public key of the first is lower than that of the second.
pub(crate) const LOWER: [u8; 32] = [1; 32];
pub(crate) const HIGHER: [u8; 32] = [2; 32];

/// What the endpoint sent.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Initiation(Vec<u8>),
    Response(Vec<u8>),
    Data { seq: u32, prev: u16, inner: Vec<u8> },
    Control { next_seq: u32, frames: Vec<Frame> },
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) route: Route,
    /// Of a sealed datagram: the session's place among [`ByHand::sessions`], path, packet number,
    /// send timestamp, and length.
    pub(crate) session: usize,
    pub(crate) path: u8,
    pub(crate) number: u64,
    pub(crate) sent: u16,
    pub(crate) bytes: usize,
    pub(crate) what: What,
}

impl Seen {
    pub(crate) fn frames(&self) -> &[Frame] {
        match &self.what {
            What::Control { frames, .. } => frames,
            _ => &[],
        }
    }

    pub(crate) fn is_data(&self) -> bool {
        matches!(self.what, What::Data { .. })
    }

    pub(crate) fn is_mark(&self) -> bool {
        matches!(&self.what, What::Control { frames, .. } if frames.is_empty())
    }
}

struct Session {
    established: Established,
    /// The next packet number of each path that the hand-made peer sends on.
    next: BTreeMap<u8, u64>,
    /// The highest that came.
    highest: BTreeMap<u8, u64>,
}

pub(crate) struct ByHand {
    pub(crate) now: Instant,
    pub(crate) endpoint: Endpoint,
    /// Whether challenges and probes are answered at once.
    pub(crate) is_polite: bool,
    /// Longer datagrams are seen by the test and not by the peer.
    pub(crate) link_bytes: usize,
    pub(crate) hello: Hello,
    identity: Identity,
    endpoint_key: plait_proto::session::PublicKey,
    rng: Rng,
    sessions: Vec<Session>,
    timestamp: u64,
    index: u64,
    /// The way to the endpoint on each path.
    routes: BTreeMap<u8, Route>,
    seen: Vec<Seen>,
    delivered: Vec<Vec<u8>>,
}

/// What an endpoint of these tests is made from.
pub(crate) struct Made {
    pub(crate) key: [u8; 32],
    /// Links to the peer; the endpoint waits for it when there are none.
    pub(crate) links: u16,
    pub(crate) bond: BondConfig,
}

impl Made {
    /// It waits to be found.
    pub(crate) fn listening() -> Self {
        let bond = bond_config(Algorithm::RoundRobin, Order::Bond);
        Self { key: HIGHER, links: 0, bond }
    }

    /// It seeks the peer over so many links.
    pub(crate) fn seeking(links: u16) -> Self {
        Self { key: LOWER, links, ..Self::listening() }
    }
}

impl ByHand {
    pub(crate) fn new(made: Made) -> Self {
        let other = if made.key == LOWER { HIGHER } else { LOWER };
        let identity = Identity::new(PrivateKey::from_bytes(other));
        let private_key = PrivateKey::from_bytes(made.key);
        let endpoint_key = private_key.public_key();
        let peer = PeerConfig {
            public_key: identity.public,
            preshared_key: PresharedKey::default(),
            endpoints: if made.links > 0 { vec![PEER_AT.into()] } else { vec![] },
            allowed_ips: vec![Prefix { address: CUSTOMER_IP.into(), length: 32 }],
            keepalive: Duration::from_secs(25),
        };
        let config = EndpointConfig {
            private_key,
            wall_clock_at_zero: Duration::from_secs(1_700_000_000),
            links: (0..made.links.max(1)).map(link_config).collect(),
            bond: made.bond,
        };
        let endpoint = Endpoint::new(config, vec![peer], Rng::from_seed([5; 32]));
        let hello = Hello {
            incarnation: BondIncarnation(9),
            aes_is_fast: false,
            inner_mtu: 1440,
            repairs: false,
            revision: 0,
        };
        Self {
            now: Instant::from_millis(1000),
            endpoint,
            is_polite: true,
            link_bytes: usize::MAX,
            hello,
            identity,
            endpoint_key,
            rng: Rng::from_seed([6; 32]),
            sessions: Vec::new(),
            timestamp: 1000,
            index: 0x0a_0000,
            routes: BTreeMap::new(),
            seen: Vec::new(),
            delivered: Vec::new(),
        }
    }

    /// An endpoint that waits, with a session and a path 0 that is up at both ends.
    pub(crate) fn connected(made: Made) -> Self {
        let mut peer = Self::new(made);
        peer.shake_hands();
        peer.open_path(0);
        peer
    }

    /// A route of its own for each path that the hand-made peer opens.
    pub(crate) fn own_route(path: u8) -> Route {
        let remote = SocketAddr::from(([10, 1, path, 1], 1000));
        Route { socket: SocketId(0), remote, local: None }
    }

    fn psk() -> PresharedKey {
        PresharedKey::default()
    }

    /// A new initiation; the newest of all.
    pub(crate) fn initiation(&mut self) -> InitiatorState {
        self.timestamp += 1;
        self.index += 1;
        let local = SessionIndex::from_random(self.index).expect("not zero");
        let timestamp = Timestamp::from_unix(Duration::from_secs(self.timestamp));
        let (rng, key) = (&mut self.rng, &self.endpoint_key);
        self.identity.initiate(rng, key, &Self::psk(), local, timestamp, self.hello)
    }

    /// Begins a session and takes the answer. The endpoint cannot know yet that it was read.
    pub(crate) fn shake_hands(&mut self) {
        let mut state = self.initiation();
        self.put(Self::own_route(0), &state.message.clone());
        let responses = self.take(|seen| matches!(seen.what, What::Response(_)));
        let [Seen { what: What::Response(response), .. }] = &responses[..] else {
            panic!("one response, not {responses:?}");
        };
        let response = response.as_slice().try_into().expect("a response has one length");
        let Finished::Session(established) =
            self.identity.finish(&mut state, response).expect("it answers the initiation")
        else {
            panic!("the endpoint made a session");
        };
        self.add_session(*established);
    }

    /// Answers the endpoint's initiation.
    pub(crate) fn answer(&mut self, initiation: &Seen) {
        let What::Initiation(message) = &initiation.what else { panic!("{initiation:?}") };
        let message = message.as_slice().try_into().expect("an initiation has one length");
        let state =
            self.identity.read_initiation(&mut self.rng, message).expect("it is for this key");
        self.index += 1;
        let local = SessionIndex::from_random(self.index).expect("not zero");
        let (established, response) =
            self.identity.respond(state, &Self::psk(), local, &self.hello).expect("keys fit");
        self.add_session(established);
        self.put(initiation.route, &response);
    }

    /// What the endpoint says of itself in an initiation.
    pub(crate) fn read_hello(&mut self, initiation: &Seen) -> Hello {
        let What::Initiation(message) = &initiation.what else { panic!("{initiation:?}") };
        let message = message.as_slice().try_into().expect("an initiation has one length");
        self.identity.read_initiation(&mut self.rng, message).expect("it is for this key").hello
    }

    /// The name of the endpoint's end of the bond, as the newest session has it.
    pub(crate) fn endpoints_end(&self) -> BondIncarnation {
        self.sessions[self.newest()].established.peer.incarnation
    }

    fn add_session(&mut self, established: Established) {
        let (next, highest) = (BTreeMap::new(), BTreeMap::new());
        self.sessions.push(Session { established, next, highest });
    }

    /// Opens a path over [`Self::own_route`] and answers its check.
    pub(crate) fn open_path(&mut self, path: u8) {
        self.control(path, &[Frame::PathChallenge(u64::from(path))]);
        self.run_for(Duration::from_millis(1));
    }

    /// Puts a datagram before the endpoint.
    pub(crate) fn put(&mut self, route: Route, datagram: &[u8]) {
        let (mut bytes, stride) = (datagram.to_vec(), datagram.len());
        self.endpoint.handle_datagrams(self.now, route, Ecn::NotEct, stride, &mut bytes);
        self.drain();
    }

    /// Puts an inner packet before the endpoint.
    pub(crate) fn host_sends(&mut self, number: u32) {
        let packet = packet_with(PROVIDER_IP, CUSTOMER_IP, 1, number);
        self.endpoint.handle_packet(self.now, &packet);
        self.drain();
    }

    fn route(&self, path: u8) -> Route {
        self.routes.get(&path).copied().unwrap_or(Self::own_route(path))
    }

    /// A sealed datagram under some session; takes the path's next packet number.
    pub(crate) fn sealed(&mut self, session: usize, path: u8, kind: Kind, text: &[u8]) -> Vec<u8> {
        let session = &mut self.sessions[session];
        let next = session.next.entry(path).or_default();
        let number = PacketNumber(*next);
        *next += 1;
        let Established { send, cipher, remote, .. } = &session.established;
        let (id, number_sent) = (PathId(path), number.truncate());
        let header = Header { kind, session: *remote, path: id, number: number_sent };
        let mut out = Vec::new();
        send.path_key(*cipher, id).seal_datagram(number, header, text, &[], &mut out);
        out
    }

    fn newest(&self) -> usize {
        self.sessions.len() - 1
    }

    /// Skips a packet number, as if the datagram that had it was lost.
    pub(crate) fn lose(&mut self, path: u8) {
        let at = self.newest();
        *self.sessions[at].next.entry(path).or_default() += 1;
    }

    /// The packet number that the next datagram on a path will have.
    pub(crate) fn next_number(&self, path: u8) -> u64 {
        self.sessions[self.newest()].next.get(&path).copied().unwrap_or(0)
    }

    /// A control datagram with a body of any bytes, and what it says of sequence numbers.
    pub(crate) fn control_text(&self, next_seq: u32, body: &[u8]) -> Vec<u8> {
        let (sent, next_seq) = (SendTimestamp::of(self.now), TruncatedBondSeq(next_seq));
        [&ControlPrefix { sent, next_seq }.to_bytes()[..], body].concat()
    }

    pub(crate) fn control(&mut self, path: u8, frames: &[Frame]) {
        let mut body = Vec::new();
        for frame in frames {
            frame.write(&mut body);
        }
        let text = self.control_text(0, &body);
        let sealed = self.sealed(self.newest(), path, Kind::Control, &text);
        self.put(self.route(path), &sealed);
    }

    /// The same over a route of the test's choice.
    pub(crate) fn control_over(&mut self, route: Route, path: u8, frames: &[Frame]) {
        self.routes.insert(path, route);
        self.control(path, frames);
    }

    /// A mark that says which bond sequence number comes next.
    pub(crate) fn mark(&mut self, path: u8, next_seq: u32) {
        let text = self.control_text(next_seq, &[]);
        let sealed = self.sealed(self.newest(), path, Kind::Control, &text);
        self.put(self.route(path), &sealed);
    }

    /// A data datagram with an inner packet that has this number.
    pub(crate) fn data_text(&self, seq: u32, prev: u16, number: u32) -> Vec<u8> {
        let (seq, sent) = (TruncatedBondSeq(seq), SendTimestamp::of(self.now));
        let inner = packet_with(CUSTOMER_IP, PROVIDER_IP, 1, number);
        [&DataPrefix { seq, prev, sent }.to_bytes()[..], &inner].concat()
    }

    pub(crate) fn data(&mut self, path: u8, seq: u32, prev: u16) {
        let text = self.data_text(seq, prev, seq);
        let sealed = self.sealed(self.newest(), path, Kind::Data, &text);
        self.put(self.route(path), &sealed);
    }

    /// Reads all that the endpoint sends and delivers, and answers if it is polite.
    fn drain(&mut self) {
        let mut sent = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit() {
            let route = Route { socket: transmit.socket, remote: transmit.remote, local: None };
            let size = transmit.segment_size.unwrap_or(transmit.contents.len());
            sent.extend(transmit.contents.chunks(size).map(|bytes| (route, bytes.to_vec())));
        }
        while let Some(packet) = self.endpoint.poll_deliver() {
            self.delivered.push(packet.to_vec());
        }
        while self.endpoint.poll_event().is_some() {}
        for (route, bytes) in sent {
            let seen = self.read(route, bytes);
            let answers: Vec<Frame> = seen.frames().iter().filter_map(answer_to).collect();
            let (path, arrived) = (seen.path, seen.bytes <= self.link_bytes);
            self.seen.push(seen);
            if self.is_polite && arrived && !answers.is_empty() {
                self.control(path, &answers);
            }
        }
    }

    fn read(&mut self, route: Route, mut bytes: Vec<u8>) -> Seen {
        let kind = Kind::of(bytes[0]).expect("the endpoint speaks this version");
        let mut seen = Seen {
            at: self.now,
            route,
            session: 0,
            path: 0,
            number: 0,
            sent: 0,
            bytes: bytes.len(),
            what: What::Initiation(Vec::new()),
        };
        let header = match kind {
            Kind::Initiation => {
                seen.what = What::Initiation(bytes);
                return seen;
            }
            Kind::Response => {
                seen.what = What::Response(bytes);
                return seen;
            }
            Kind::CookieReply => panic!("nobody is under load here"),
            Kind::Data | Kind::Control => Header::read(kind, &bytes).expect("it has a tag"),
        };
        let of_header = |session: &Session| session.established.local == header.session;
        seen.session = self.sessions.iter().position(of_header).expect("the session is known");
        let Session { established, highest, .. } = &mut self.sessions[seen.session];
        seen.path = header.path.0;
        let expected = highest.get(&seen.path).map_or(0, |highest| highest + 1);
        let number = header.number.expand(PacketNumber(expected));
        seen.number = number.0;
        let key = established.receive.path_key(established.cipher, header.path);
        let (clear, sealed) = bytes.split_at_mut(HEADER_BYTES);
        let text = key.open(number, clear, sealed).expect("the endpoint sealed it");
        let best = highest.entry(seen.path).or_default();
        *best = number.0.max(*best);
        self.routes.insert(seen.path, route);
        if kind == Kind::Data {
            let (prefix, inner) = DataPrefix::read(text).expect("long enough");
            seen.sent = prefix.sent.0;
            seen.what = What::Data { seq: prefix.seq.0, prev: prefix.prev, inner: inner.to_vec() };
        } else {
            let (prefix, frames) = ControlPrefix::read(text).expect("long enough");
            seen.sent = prefix.sent.0;
            let frames = Frame::read_all(frames).expect("the endpoint writes what can be read");
            seen.what = What::Control { next_seq: prefix.next_seq.0, frames };
        }
        seen
    }

    /// Lets the endpoint reach out to the peer, and gives its initiations.
    pub(crate) fn start(&mut self) -> Vec<Seen> {
        self.endpoint.start(self.now);
        self.drain();
        self.take(|seen| matches!(seen.what, What::Initiation(_)))
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.drain();
        while let Some(due) = self.endpoint.poll_timeout(self.now).filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        self.run_for(Duration::from_millis(ms));
    }

    /// All that was seen since the last time, of one kind; forgets the rest.
    pub(crate) fn take(&mut self, wanted: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let seen = core::mem::take(&mut self.seen);
        seen.into_iter().filter(|seen| wanted(seen)).collect()
    }

    /// The same, of control datagrams with such a frame.
    pub(crate) fn take_with(&mut self, wanted: impl Fn(&Frame) -> bool) -> Vec<Seen> {
        self.take(|seen| seen.frames().iter().any(&wanted))
    }

    /// The numbers of the inner packets delivered since the last time.
    pub(crate) fn take_delivered(&mut self) -> Vec<u32> {
        let delivered = core::mem::take(&mut self.delivered);
        delivered.iter().map(|packet| plait_pair::number(packet)).collect()
    }

    pub(crate) fn drops(&self, reason: DropReason) -> u64 {
        self.endpoint.drop_count(reason)
    }

    pub(crate) fn status(&mut self) -> PeerStatus {
        self.endpoint.status(self.now).peers.remove(0)
    }

    pub(crate) fn path(&mut self, id: u8) -> Option<PathStatus> {
        self.status().paths.into_iter().find(|path| path.id == id)
    }

    /// The receiver index in datagrams to the endpoint, under the newest session.
    pub(crate) fn own_receiver_index(&self, path: u8) -> u32 {
        self.sessions[self.newest()].established.remote.wire() | u32::from(path)
    }

    /// The receiver index in datagrams of the endpoint, under the newest session.
    pub(crate) fn endpoints_receiver_index(&self, path: u8) -> u32 {
        self.sessions[self.newest()].established.local.wire() | u32::from(path)
    }
}

fn answer_to(frame: &Frame) -> Option<Frame> {
    match frame {
        Frame::PathChallenge(token) => Some(Frame::PathResponse(*token)),
        Frame::Probe(id) => Some(Frame::ProbeEcho(*id)),
        Frame::MtuProbe { id, .. } => Some(Frame::MtuEcho(*id)),
        _ => None,
    }
}
