//! What one customer of a gateway may do to another.

use plait_pair::{
    CUSTOMER, PROVIDER, PROVIDER_IP, Pair, Setup, number as mark, packet, packet_with,
};
use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::drop_reason::DropReason;
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::time::Duration;

/// An address inside the customer's network that belongs to another customer.
const NEIGHBOUR_IP: [u8; 4] = [10, 99, 0, 9];

fn prefix(ip: [u8; 4], length: u8) -> Prefix {
    Prefix { address: ip.into(), length }
}

fn neighbour() -> PeerConfig {
    PeerConfig {
        public_key: PrivateKey::from_bytes([9; 32]).public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: Vec::new(),
        allowed_ips: vec![prefix(NEIGHBOUR_IP, 32)],
        keepalive: Duration::from_secs(25),
    }
}

/// A gateway of many peers looks only at those that something happened to. The customer's bond is
/// carried, hears of a lost link, is renewed and wakes for traffic all the same, wherever it is.
#[test]
fn a_bond_among_many_peers_fares_as_alone() {
    for place in [0, 7, 20] {
        let mut pair = Pair::connected(Setup::default());
        pair.reconfigure(PROVIDER, |peers, _| {
            for other in 0..20_u8 {
                let own = PrivateKey::from_bytes([100 + other; 32]).public_key();
                let allowed_ips = vec![prefix([10, 98, 0, other], 32)];
                peers.push(PeerConfig { public_key: own, allowed_ips, ..neighbour() });
            }
            peers.swap(0, place);
        });
        let mut number = 0;
        let mut carries = |pair: &mut Pair| {
            number += 1;
            for from in [CUSTOMER, PROVIDER] {
                pair.send(from, &[packet(from, 7, number)]);
            }
            pair.run_for(Duration::from_millis(200));
            let arrived = |to: usize| pair.delivered[to].iter().any(|p| mark(p) == number);
            arrived(CUSTOMER) && arrived(PROVIDER)
        };
        let up = |pair: &mut Pair| [CUSTOMER, PROVIDER].map(|side| pair.paths_up(side));
        assert!(carries(&mut pair), "at place {place}");
        pair.unplug(1);
        pair.run_for(Duration::from_secs(1));
        assert!(carries(&mut pair), "a link is gone, at place {place}");
        assert_eq!(up(&mut pair), [1, 1]);
        pair.plug(1);
        pair.run_for(Duration::from_secs(400));
        assert_eq!(up(&mut pair), [2, 2], "after keepalives and renewals, at place {place}");
        let sessions = pair.sides[PROVIDER].status(pair.now).peers[place].handshakes;
        assert!(sessions >= 3, "{sessions} sessions");
        assert!(carries(&mut pair), "after an idle time, at place {place}");
        pair.run_for(Duration::from_secs(10));
        let due = |pair: &Pair| {
            let at = pair.sides[PROVIDER].poll_timeout(pair.now).expect("keepalives");
            at.since(pair.now)
        };
        assert!(due(&pair) > Duration::from_millis(100), "nothing but keepalives");
        pair.send(PROVIDER, &[packet(PROVIDER, 7, 99)]);
        assert!(due(&pair) <= Duration::from_millis(10), "a mark, at place {place}");
    }
}

/// Spec R-5: the longest prefix over all peers decides whose a source is.
#[test]
fn regression_a_customer_with_a_wide_prefix_cannot_forge_a_neighbour_inside_it() {
    for neighbour_first in [false, true] {
        let mut pair = Pair::connected(Setup::default());
        pair.reconfigure(PROVIDER, |peers, _| {
            peers[0].allowed_ips = vec![prefix([10, 99, 0, 0], 24)];
            peers.insert(if neighbour_first { 0 } else { 1 }, neighbour());
        });
        let forged = packet_with(NEIGHBOUR_IP, PROVIDER_IP, 1, 1);
        let own = packet_with([10, 99, 0, 7], PROVIDER_IP, 1, 2);
        pair.send(CUSTOMER, &[forged, own.clone()]);
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.delivered[PROVIDER], [own]);
        assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::SourceNotAllowed), 1);
    }
}
