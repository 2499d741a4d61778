//! Handshakes while strangers send initiations (spec H-10, H-11).

use core::net::{Ipv4Addr, SocketAddr};

use plait_pair::{CUSTOMER, Datagram, PROVIDER, Pair, Setup, bond_config, packet, public_key};
use plait_proto::config::{HandshakeLimits, Order, RekeyLimits};
use plait_proto::drop_reason::DropReason;
use plait_proto::rng::Rng;
use plait_proto::scheduler::Algorithm;
use plait_proto::seq::BondIncarnation;
use plait_proto::session::{Cookie, Hello, Identity, PresharedKey, PrivateKey, Timestamp};
use plait_proto::time::Duration;
use plait_proto::wire::handshake::{Initiation, SessionIndex};

const INITIATION: u8 = 0x11;
const RESPONSE: u8 = 0x12;
const COOKIE_REPLY: u8 = 0x13;

/// An initiation with a right mac1 from a key that nobody knows.
fn strangers_initiation(to: usize) -> Vec<u8> {
    let hello = Hello {
        incarnation: BondIncarnation(1),
        aes_is_fast: true,
        inner_mtu: 1440,
        repairs: false,
        revision: 0,
    };
    let state = Identity::new(PrivateKey::from_bytes([77; 32])).initiate(
        &mut Rng::from_seed([78; 32]),
        &public_key(to),
        &PresharedKey::default(),
        SessionIndex::from_random(0x77_7777).expect("a number that is not zero"),
        Timestamp::from_unix(Duration::from_secs(1)),
        hello,
    );
    state.message.to_vec()
}

fn stranger(number: u32) -> SocketAddr {
    (Ipv4Addr::from(0xc633_6400 + number % 1000), 4000 + number as u16 % 100).into()
}

/// Takes all the room that a side has for strangers.
fn put_under_load(pair: &mut Pair, side: usize) {
    pair.sides[side].set_handshake_limits(HandshakeLimits { per_second: 1, burst: 1 });
    let initiation = strangers_initiation(side);
    let asked = pair.sides[side].drop_count(DropReason::CookieAsked);
    pair.inject_from(side, stranger(0), &initiation);
    pair.inject_from(side, stranger(0), &initiation);
    assert_eq!(pair.sides[side].drop_count(DropReason::CookieAsked), asked + 1);
}

/// 20,000 initiations a second from many addresses.
fn flood(pair: &mut Pair, time: Duration) {
    let initiation = strangers_initiation(PROVIDER);
    for at in 0..time.as_millis() as u32 {
        for n in 0..20 {
            pair.inject_from(PROVIDER, stranger(20 * at + n), &initiation);
        }
        pair.run_for(Duration::from_millis(1));
    }
}

fn of_kind(captured: &[Datagram], kind: u8, to: usize) -> Vec<&Datagram> {
    captured.iter().filter(|datagram| datagram.bytes[0] == kind && datagram.to == to).collect()
}

fn shows_cookie(datagram: &Datagram) -> bool {
    datagram.bytes[datagram.bytes.len() - 16..] != [0; 16]
}

/// Spec H-10, H-11: a cookie reply of 61 bytes for each beyond the limit, and who shows it gets in.
#[test]
fn a_bond_is_made_under_attack() {
    let mut pair = Pair::connected(Setup::default());
    flood(&mut pair, Duration::from_millis(200));
    pair.restart(CUSTOMER);
    let mark = pair.captured.len();
    flood(&mut pair, Duration::from_millis(120));
    // Two round trips for the handshake, two for the check of the slower path.
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
    let sent = of_kind(&pair.captured[mark..], INITIATION, PROVIDER);
    let shown = sent.iter().filter(|datagram| shows_cookie(datagram)).count();
    assert!(shown > 0, "the customer showed its cookie");
    // The limit, and no more, was worked on: that takes the costly part.
    let worked_on = pair.sides[PROVIDER].drop_count(DropReason::UnknownPeer);
    assert!((100..=100 + 40).contains(&worked_on), "{worked_on} initiations worked on");
    let replies = pair.astray.len() as u64;
    assert_eq!(replies + worked_on, 20 * 320, "one small answer each");
    assert!(pair.astray.iter().all(|(_, bytes)| bytes.len() == 61));
}

/// Spec H-11: kept for further initiations over that path.
#[test]
fn the_cookie_serves_the_next_handshake_too() {
    let mut bond = bond_config(Algorithm::RoundRobin, Order::Bond);
    bond.rekey = RekeyLimits { rekey_after: Duration::from_secs(2), ..RekeyLimits::default() };
    let mut pair = Pair::new(Setup { bond, ..Setup::default() });
    put_under_load(&mut pair, PROVIDER);
    pair.run_for(Duration::from_millis(500));
    let asked = of_kind(&pair.captured, COOKIE_REPLY, CUSTOMER).len();
    assert_eq!(asked, 2, "one for each path");
    pair.run_for(Duration::from_millis(1400));
    put_under_load(&mut pair, PROVIDER);
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.sides[CUSTOMER].status(pair.now).peers[0].handshakes, 2);
    assert_eq!(of_kind(&pair.captured, COOKIE_REPLY, CUSTOMER).len(), asked);
}

/// Spec H-11: an initiation without a response forgets all cookies of the peer.
#[test]
fn cookies_of_a_peer_that_started_again_are_forgotten() {
    let mut pair = Pair::new(Setup { links: 1, ..Setup::default() });
    put_under_load(&mut pair, PROVIDER);
    pair.run_for(Duration::from_millis(500));
    assert_eq!(of_kind(&pair.captured, COOKIE_REPLY, CUSTOMER).len(), 1);
    pair.restart(PROVIDER);
    pair.delivered[PROVIDER].clear();
    for n in 0..200 {
        pair.send(CUSTOMER, &[packet(CUSTOMER, 1, n)]);
        pair.run_for(Duration::from_millis(10));
    }
    assert!(pair.sides[PROVIDER].drop_count(DropReason::BadMac) > 0, "it was shown once");
    assert!(!pair.delivered[PROVIDER].is_empty(), "the bond is back");
}

/// Spec H-10: responses are answered with cookie replies as initiations are.
#[test]
fn an_initiator_under_load_asks_too() {
    let mut pair = Pair::new(Setup::default());
    put_under_load(&mut pair, CUSTOMER);
    pair.run_for(Duration::from_millis(100));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
    assert!(!of_kind(&pair.captured, COOKIE_REPLY, PROVIDER).is_empty());
    let responses = of_kind(&pair.captured, RESPONSE, CUSTOMER);
    assert!(responses.iter().any(|datagram| shows_cookie(datagram)));
}

/// Spec H-11: once for every path the message went over.
#[test]
fn a_forged_or_repeated_cookie_reply_has_no_effect() {
    let mut pair = Pair::new(Setup { links: 1, ..Setup::default() });
    put_under_load(&mut pair, PROVIDER);
    pair.run_for(Duration::from_millis(5));
    let reply = of_kind(&pair.captured, COOKIE_REPLY, CUSTOMER)[0].bytes.clone();
    let sent = pair.captured.len();
    for bit in 0..reply.len() * 8 {
        let mut flipped = reply.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let drops = pair.sides[CUSTOMER].drop_total();
        pair.inject(CUSTOMER, 0, &flipped);
        assert_eq!(pair.sides[CUSTOMER].drop_total(), drops + 1, "bit {bit}");
        assert_eq!(pair.captured.len(), sent, "bit {bit} made the customer send");
    }
    // From an address to which nothing was sent, it would make the customer send there.
    pair.inject_from(CUSTOMER, stranger(1), &reply);
    assert_eq!(pair.captured.len() + pair.astray.len(), sent + 1, "one of the load");
    for _ in 0..3 {
        pair.inject(CUSTOMER, 0, &reply);
        assert_eq!(pair.captured.len(), sent + 1, "the true one is answered once");
    }
    assert_eq!(pair.sides[CUSTOMER].drop_count(DropReason::UnexpectedCookie), 32 + 1 + 2);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.paths_up(CUSTOMER), 1);
}

/// Spec H-11, H-6: 5 at once from one address; a foreign cookie is dropped without an answer.
#[test]
fn a_source_that_shows_its_cookie_is_limited() {
    let mut pair = Pair::connected(Setup::default());
    put_under_load(&mut pair, PROVIDER);
    let (_, reply) = pair.astray.pop().expect("the stranger got a cookie");
    let mut initiation = strangers_initiation(PROVIDER);
    let key = public_key(PROVIDER);
    let reply = reply.try_into().expect("a cookie reply has one length");
    let cookie = Cookie::open(&reply, &key, &initiation[Initiation::MAC1]).unwrap();
    cookie.write_mac2(&mut initiation);
    let count = |pair: &Pair, reason| pair.sides[PROVIDER].drop_count(reason);
    let worked_on = count(&pair, DropReason::UnknownPeer);
    for _ in 0..100 {
        pair.inject_from(PROVIDER, stranger(0), &initiation);
    }
    assert_eq!(count(&pair, DropReason::UnknownPeer), worked_on + 5);
    assert_eq!(count(&pair, DropReason::SourceTooFast), 95);
    pair.inject_from(PROVIDER, stranger(1), &initiation);
    assert_eq!(count(&pair, DropReason::BadMac), 1, "a cookie is of one address");
    assert!(pair.astray.is_empty());
}
