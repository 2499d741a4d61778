//! Two bonds in memory, without endpoints: what one of them can do to the other.

use super::*;
use crate::allowed_ips::Routes;
use crate::config::{Order, Prefix, RekeyLimits, SocketId};
use crate::congestion;
use crate::resequencer::ResequencerConfig;
use crate::scheduler::{Algorithm, SchedulerConfig};
use crate::seq::BondIncarnation;
use crate::session::{Finished, Hello, Identity, PresharedKey, PrivateKey, Timestamp};
use crate::wire::control::{Ack, AckRange};
use crate::wire::dscp::Dscps;
use crate::wire::{Kind, REVISION};

const REJECT_AFTER: Duration = Duration::from_secs(180);

/// What both sides have of the session with this number.
fn established(number: u8) -> [Established; 2] {
    let mut rng = Rng::from_seed([number; 32]);
    let sides = [1, 2].map(|byte| Identity::new(PrivateKey::from_bytes([byte; 32])));
    let psk = PresharedKey::default();
    let hello = |name| Hello {
        incarnation: BondIncarnation(name),
        aes_is_fast: true,
        inner_mtu: 1440,
        repairs: true,
        revision: REVISION,
    };
    let [local, remote] =
        [5, 6].map(|n| SessionIndex::from_random(n + 10 * u64::from(number)).expect("not zero"));
    let time = Timestamp::from_unix(Duration::from_secs(1));
    let mut state = sides[0].initiate(&mut rng, &sides[1].public, &psk, local, time, hello(1));
    let read = sides[1].read_initiation(&mut rng, &state.message).expect("an initiation");
    let (theirs, response) = sides[1].respond(read, &psk, remote, &hello(2)).expect("a response");
    match sides[0].finish(&mut state, &response) {
        Ok(Finished::Session(ours)) => [*ours, theirs],
        other => panic!("{other:?}"),
    }
}

fn config() -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig { algorithm: Algorithm::MinRtt, ..SchedulerConfig::default() },
        congestion: Some(congestion::ControllerConfig::default()),
        order: Order::Flow,
        unordered: Dscps::default(),
        resequencer: ResequencerConfig::default(),
        loss_detection: LossDetection::Known,
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits { reject_after: REJECT_AFTER, ..RekeyLimits::default() },
        release: None,
    }
}

/// The bonds of both sides, the first of which gives out even path ids.
fn pair() -> [Bond; 2] {
    let mut parities = [PathIdParity::Even, PathIdParity::Odd].into_iter();
    established(1).map(|session| {
        let setup = BondSetup {
            config: config(),
            keepalive: Duration::from_secs(25),
            parity: parities.next().expect("two sides"),
            rng: Rng::from_seed([9; 32]),
            faults: crate::faults::Faults::default(),
        };
        Bond::new(Instant::ZERO, setup, session)
    })
}

fn route(last: u8) -> Route {
    Route { socket: SocketId(0), remote: ([192, 0, 2, last], 7788).into(), local: None }
}

/// All that a bond sends now, datagram by datagram.
fn sent(bond: &mut Bond) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    while let Some(transmit) = bond.poll_transmit() {
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        datagrams.extend(transmit.contents.chunks(size).map(<[u8]>::to_vec));
    }
    datagrams
}

fn give(bond: &mut Bond, now: Instant, datagram: &[u8], over: Route) -> Result<(), DropReason> {
    let kind = Kind::of(datagram[0]).expect("one of ours");
    let header = Header::read(kind, datagram).expect("whole");
    let all = [Prefix { address: [0, 0, 0, 0].into(), length: 0 }];
    let routes = Routes::new([(0, &all[..])]);
    let sources = Sources::new(&routes, 0);
    bond.handle_datagram(now, header, over, Ecn::NotEct, sources, &mut datagram.to_vec())
}

/// Both sides send each other what they have, until there is no more.
fn exchange(bonds: &mut [Bond; 2], now: Instant) {
    for _ in 0..20 {
        for from in [0, 1] {
            for datagram in sent(&mut bonds[from]) {
                give(&mut bonds[1 - from], now, &datagram, route(9)).expect("it is authentic");
            }
        }
    }
}

fn connected() -> [Bond; 2] {
    let mut bonds = pair();
    bonds[0].open_path(Instant::ZERO, route(9), PathInfo::default());
    exchange(&mut bonds, Instant::from_millis(10));
    assert!(bonds[0].is_up() && bonds[1].is_up());
    bonds
}

fn packet(number: u32) -> Vec<u8> {
    crate::wire::ip::testing::udp_v4([10, 0, 0, 1], [10, 0, 0, 2], number, &[0; 500])
}

fn send_data(bond: &mut Bond, now: Instant, number: u32) -> Result<(), DropReason> {
    let packet = packet(number);
    let inner = Inner::read(&packet).expect("a packet");
    bond.handle_packet(now, &inner, &packet)
}

#[test]
fn regression_a_refused_path_leaves_nothing_behind() {
    let mut bonds = pair();
    bonds[0].open_path(Instant::ZERO, route(9), PathInfo::default());
    bonds[1].open_path(Instant::ZERO, route(9), PathInfo::default());
    let challenge = sent(&mut bonds[1]).remove(0);
    let now = Instant::from_millis(10);
    let refused = give(&mut bonds[0], now, &challenge, route(9));
    assert_eq!(refused, Err(DropReason::RepeatedPath), "the side of the even ids keeps its own");
    assert_eq!(bonds[0].egress.path_count(), 0, "nothing has come on its own one");
}

/// Spec P-9: what was sent to the address that the peer left is lost there.
#[test]
fn regression_what_was_on_its_way_to_an_address_that_was_left_is_sent_again() {
    let mut bonds = connected();
    let now = Instant::from_millis(20);
    for number in 0..8 {
        send_data(&mut bonds[1], now, number).expect("it is sent");
    }
    let is_data = |datagram: &&Vec<u8>| Kind::of(datagram[0]) == Some(Kind::Data);
    assert_eq!(sent(&mut bonds[1]).iter().filter(is_data).count(), 8, "to the old address");
    // The peer sends from elsewhere, is asked there, and answers from there.
    send_data(&mut bonds[0], now, 100).expect("it is sent");
    let mut again = 0;
    for ms in 21..24 {
        let now = Instant::from_millis(ms);
        for datagram in sent(&mut bonds[0]) {
            give(&mut bonds[1], now, &datagram, route(10)).expect("it is authentic");
        }
        let answer = sent(&mut bonds[1]);
        again += answer.iter().filter(is_data).count();
        for datagram in answer {
            give(&mut bonds[0], now, &datagram, route(9)).expect("it is authentic");
        }
    }
    assert_eq!(again, 8);
}

/// Spec K-5: a receiver that acknowledges what it did not get, to be sent more, names numbers that
/// were left out.
#[test]
fn regression_acknowledgements_of_packets_never_sent_have_no_effect() {
    let mut bonds = connected();
    let mut honest = 0;
    for n in 0..5000_u64 {
        let now = Instant::from_millis(20 + n);
        let _ = send_data(&mut bonds[0], now, 7);
        exchange(&mut bonds, now);
        for bond in &mut bonds {
            bond.handle_timeout(now);
        }
        honest = bonds[0].ingress.drops.get(DropReason::ForgedAck);
    }
    assert_eq!(honest, 0, "an honest peer names none");
    let path = bonds[0].ingress.path(PathId(0)).expect("its path");
    let sent_in_all = path.sealed_in_epoch();
    assert!(sent_in_all > 5000, "{sent_in_all}");
    let now = Instant::from_millis(6000);
    let all = AckRange { gap: 0, length: sent_in_all as u32 };
    let ack = Ack {
        index: bonds[0].session.wire() | u32::from(PathId(0).0),
        largest: crate::seq::PacketNumber(sent_in_all - 1).truncate(),
        delay: 0,
        transit: 0,
        ranges: vec![all],
    };
    let remote = bonds[0].ingress.session().remote;
    let forged = Ack { index: remote.wire() | u32::from(PathId(0).0), ..ack };
    let before = bonds[0].ingress.path(PathId(0)).expect("its path").sent.in_flight_bytes();
    bonds[0].handle_ack(now, forged.clone());
    assert_eq!(bonds[0].ingress.drops.get(DropReason::ForgedAck), 1);
    let after = bonds[0].ingress.path(PathId(0)).expect("its path").sent.in_flight_bytes();
    assert_eq!(before, after);
    let beyond = crate::seq::PacketNumber(sent_in_all + 5).truncate();
    bonds[0].handle_ack(now, Ack { largest: beyond, ..forged });
    assert_eq!(bonds[0].ingress.drops.get(DropReason::ForgedAck), 2);
}

/// Spec K-6: a session that is too old seals nothing, whatever asks for it.
#[test]
fn regression_nothing_is_sealed_under_an_expired_session() {
    let mut bonds = connected();
    let late = Instant::ZERO + REJECT_AFTER;
    for bond in &mut bonds {
        sent(bond);
        bond.probe_paths_over(late, SocketId(0));
        assert_eq!(send_data(bond, late, 1), Err(DropReason::ExpiredSession));
        bond.close(late);
        assert!(!bond.has_transmit());
    }
}

/// Spec K-6: who answered an initiation counts the session's age from there, not from its first
/// use.
#[test]
fn regression_a_responder_sends_no_longer_than_the_initiator() {
    let mut bonds = connected();
    let renewed_at = Instant::from_millis(1000);
    let [ours, theirs] = established(2);
    bonds[1].renew(renewed_at, theirs, false);
    bonds[0].renew(renewed_at, ours, true);
    let confirmed_at = renewed_at + Duration::from_secs(170);
    bonds[0].probe_paths_over(confirmed_at, SocketId(0));
    exchange(&mut bonds, confirmed_at);
    let event = core::iter::from_fn(|| bonds[1].poll_event())
        .find(|event| matches!(event, BondEvent::SessionConfirmed(_)));
    assert_eq!(event, Some(BondEvent::SessionConfirmed(renewed_at)));
    assert_eq!(bonds[1].session_made_at(), renewed_at);
}

/// Spec K-6a: a bond may sleep for ever, its keys may not.
#[test]
fn regression_expired_keys_of_a_sleeping_bond_are_wiped() {
    let mut bonds = pair();
    let metered = PathInfo { metered: true, ..PathInfo::default() };
    bonds[0].open_path(Instant::ZERO, route(9), metered);
    exchange(&mut bonds, Instant::from_millis(10));
    for bond in &mut bonds {
        let asleep_at = Instant::from_millis(30_000);
        bond.handle_timeout(asleep_at);
        assert!(bond.is_asleep());
        let due = bond.poll_timeout(asleep_at);
        assert_eq!(due, Some(Instant::ZERO + REJECT_AFTER), "the keys' end wakes it, nothing else");
        bond.handle_timeout(Instant::ZERO + REJECT_AFTER);
        assert_eq!(bond.session_indices().count(), 0);
        let expired = core::iter::from_fn(|| bond.poll_event())
            .any(|event| matches!(event, BondEvent::SessionExpired(_)));
        assert!(expired, "the owner is told");
        assert!(bond.is_asleep(), "the bond stays");
        assert_eq!(bond.poll_timeout(Instant::ZERO + REJECT_AFTER), None);
    }
}
