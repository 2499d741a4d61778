//! What one customer of a gateway may do to another.

use plait_pair::{CUSTOMER, PROVIDER, PROVIDER_IP, Pair, Setup, packet_with};
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
