//! What an endpoint tells of itself, at once or in parts.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, packet};
use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::StatusWalk;
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::time::Duration;

fn stranger(number: u8) -> PeerConfig {
    PeerConfig {
        public_key: PrivateKey::from_bytes([100 + number; 32]).public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: Vec::new(),
        allowed_ips: vec![Prefix { address: [10, 77, 0, number].into(), length: 32 }],
        keepalive: Duration::from_secs(25),
    }
}

fn strangers(count: u8) -> Vec<PeerConfig> {
    (0..count).map(stranger).collect()
}

#[test]
fn a_status_in_parts_is_the_whole() {
    let mut pair = Pair::connected(Setup::default());
    pair.reconfigure(CUSTOMER, |peers, _| peers.extend(strangers(20)));
    let now = pair.now;
    let side = &mut pair.sides[CUSTOMER];
    let (mut walk, mut parts) = (StatusWalk::default(), 1);
    while !side.gather_status(now, &mut walk, 4) {
        parts += 1;
    }
    let gathered = side.finish_status(walk);
    assert_eq!((parts, gathered.peers.len()), (6, 21));
    assert_eq!(format!("{gathered:?}"), format!("{:?}", side.status(now)));
}

#[test]
fn a_walk_begins_anew_when_the_peers_change() {
    let mut pair = Pair::connected(Setup::default());
    pair.reconfigure(CUSTOMER, |peers, _| peers.extend(strangers(5)));
    let mut walk = StatusWalk::default();
    assert!(!pair.sides[CUSTOMER].gather_status(pair.now, &mut walk, 3));
    pair.reconfigure(CUSTOMER, |peers, _| *peers = strangers(9));
    let now = pair.now;
    let side = &mut pair.sides[CUSTOMER];
    while !side.gather_status(now, &mut walk, 2) {}
    let gathered = side.finish_status(walk);
    assert_eq!(format!("{gathered:?}"), format!("{:?}", side.status(now)));
}

/// A counter that falls is taken for one that began anew.
#[test]
fn regression_drops_of_a_bond_that_is_gone_stay_counted() {
    let mut pair = Pair::connected(Setup::default());
    pair.send(CUSTOMER, &[packet(CUSTOMER, 1, 0)]);
    pair.run_for(Duration::from_millis(100));
    let sealed = pair
        .captured
        .iter()
        .rev()
        .find(|datagram| datagram.to == PROVIDER && datagram.bytes[0] == 0x14);
    let bytes = sealed.expect("a packet was sent").bytes.clone();
    for _ in 0..3 {
        pair.inject(PROVIDER, 0, &bytes);
    }
    let replayed = |pair: &Pair| pair.sides[PROVIDER].drop_count(DropReason::Replayed);
    assert_eq!(replayed(&pair), 3);
    pair.restart(CUSTOMER);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(replayed(&pair), 3, "another bond took its place");
    pair.reconfigure(PROVIDER, |peers, _| *peers = strangers(1));
    assert_eq!(replayed(&pair), 3, "the peer is gone");
    let told = pair.sides[PROVIDER].status(pair.now).drops;
    assert_eq!(told.get("replayed"), Some(&3));
}
