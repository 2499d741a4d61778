use plait_proto::config::{
    BondConfig, EndpointConfig, LossDetection, Order, PeerConfig, Prefix, RekeyLimits, SocketId,
};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::session::PrivateKey;
use plait_proto::time::Instant;
use plait_proto::wire::ecn::Ecn;

use super::content::{Addresses, Content, Kind};
use super::*;
use crate::prng::Prng;

const ROUTE: Route = Route {
    socket: SocketId(0),
    remote: core::net::SocketAddr::new(
        core::net::IpAddr::V4(core::net::Ipv4Addr::new(10, 1, 0, 1)),
        1000,
    ),
    local: None,
};

fn now() -> Instant {
    Instant::from_millis(1000)
}

fn victim(hostile: PublicKey) -> Endpoint {
    let config = EndpointConfig {
        private_key: PrivateKey::from_bytes([1; 32]),
        wall_clock_at_zero: Duration::from_secs(1_700_000_000),
        links: Vec::new(),
        bond: BondConfig {
            scheduler: SchedulerConfig::default(),
            congestion: None,
            order: Order::Flow,
            unordered: plait_proto::wire::dscp::Dscps::default(),
            resequencer: ResequencerConfig::default(),
            loss_detection: LossDetection::Known,
            report_interval: Duration::from_millis(50),
            inner_mtu: 1440,
            rekey: RekeyLimits::default(),
            release: None,
        },
    };
    let peer = PeerConfig {
        public_key: hostile,
        preshared_key: PresharedKey::default(),
        endpoints: Vec::new(),
        allowed_ips: vec![Prefix { address: [10, 9, 0, 2].into(), length: 32 }],
        keepalive: Duration::from_secs(25),
    };
    Endpoint::new(config, vec![peer], Rng::from_seed([3; 32]))
}

fn tell(victim: &mut Endpoint, datagram: &[u8], ecn: Ecn) -> Vec<Vec<u8>> {
    let mut bytes = datagram.to_vec();
    victim.handle_datagrams(now(), ROUTE, ecn, bytes.len(), &mut bytes);
    let mut said = Vec::new();
    while let Some(transmit) = victim.poll_transmit() {
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        said.extend(transmit.contents.chunks(size).map(<[u8]>::to_vec));
    }
    said
}

/// A victim and a peer with one path up.
fn pair() -> (Endpoint, HostilePeer, Content) {
    let victim_key = PrivateKey::from_bytes([1; 32]).public_key();
    let identity = Identity::new(PrivateKey::from_bytes([2; 32]));
    let mut peer = HostilePeer::new(identity, victim_key, [4; 32]);
    let mut victim = victim(peer.public_key());
    let addresses = Addresses {
        own: vec![[10, 9, 0, 2].into()],
        foreign: vec![[10, 9, 0, 3].into()],
        beyond: vec![[10, 9, 0, 1].into()],
    };
    let content = Content::new(addresses, 1472);
    let initiation = peer.initiate(Duration::from_secs(1_700_000_001));
    let answers = tell(&mut victim, &initiation, Ecn::NotEct);
    assert_eq!(answers.iter().map(|answer| peer.hear(answer)).next(), Some(Heard::Session));
    let path = content.main_path(&peer);
    let mut frames = Vec::new();
    Frame::PathChallenge(7).write(&mut frames);
    let prefix = ControlPrefix::new(now(), plait_proto::seq::BondSeq(0));
    let opening = peer.control(path, prefix, &frames).expect("a session");
    for answer in tell(&mut victim, &opening, Ecn::NotEct) {
        let Heard::Control(path, frames) = peer.hear(&answer) else { continue };
        let mut replies = Vec::new();
        replies_to(&frames, 0).iter().for_each(|reply| reply.write(&mut replies));
        let reply = peer.control(path, prefix, &replies).expect("a session");
        tell(&mut victim, &reply, Ecn::NotEct);
    }
    assert_eq!(victim.drop_total(), 0);
    (victim, peer, content)
}

fn say(kind: Kind, count: usize) -> Endpoint {
    let (mut victim, mut peer, mut content) = pair();
    let mut prng = Prng::new(1);
    for _ in 0..count {
        let wall_clock = Duration::from_secs(1_700_000_001);
        let made =
            content.make(kind, &mut peer, now(), wall_clock, &mut |max| prng.up_to(max)).unwrap();
        assert!(made.bytes.len() <= 1472, "{} bytes of {}", made.bytes.len(), kind.name());
        for answer in tell(&mut victim, &made.bytes, made.ecn) {
            content.note(&peer.hear(&answer));
        }
    }
    victim
}

#[test]
fn what_it_seals_is_authentic_whatever_it_is() {
    for kind in Kind::ALL {
        let mut victim = say(*kind, 40);
        for reason in [DropReason::BadTag, DropReason::BadHandshake, DropReason::BadMac] {
            assert_eq!(victim.drop_count(reason), 0, "{}: {reason:?}", kind.name());
        }
        assert!(victim.status(now()).peers[0].session_age_s.is_some() || *kind == Kind::Farewells);
    }
}

#[test]
fn ordinary_data_comes_out_and_the_rest_has_its_reason() {
    let delivered = |mut victim: Endpoint| victim.status(now()).peers[0].inner_delivered_packets;
    assert_eq!(delivered(say(Kind::Ordinary, 20)), 20);
    for (kind, reason) in [
        (Kind::Spoofed, DropReason::SourceNotAllowed),
        (Kind::Marked, DropReason::MarkedNotEct),
        (Kind::BadFrames, DropReason::BadControl),
        (Kind::OldNumbers, DropReason::TooOld),
    ] {
        let victim = say(kind, 20);
        assert!(victim.drop_count(reason) > 0, "{}", kind.name());
    }
}

#[test]
fn a_cookie_is_shown_when_it_is_asked_for() {
    let (mut victim, mut peer, _) = pair();
    victim.set_handshake_limits(plait_proto::config::HandshakeLimits { per_second: 1, burst: 1 });
    let mut shown = None;
    for second in 2..5 {
        let initiation = peer.initiate(Duration::from_secs(1_700_000_000 + second));
        for answer in tell(&mut victim, &initiation, Ecn::NotEct) {
            if let Heard::Cookie(message) = peer.hear(&answer) {
                shown = Some(message);
            }
        }
    }
    assert!(victim.drop_count(DropReason::CookieAsked) > 0);
    let answers = tell(&mut victim, &shown.expect("a cookie"), Ecn::NotEct);
    assert_eq!(victim.drop_count(DropReason::BadMac), 0);
    assert!(answers.len() <= 1);
}
