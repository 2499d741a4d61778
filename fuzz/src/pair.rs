//! The pair of gateways that targets drive, with every input noted by [`reached`].

use plait_pair::{Input, Pair, Setup, bond_config};
use plait_proto::config::{BondConfig, Order, PeerConfig};
use plait_proto::endpoint::Endpoint;
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Instant;
use plait_proto::wire::ecn::Ecn;

use crate::reached;

/// The customer's links.
pub const LINKS: usize = 2;

/// The bond that targets change parts of.
pub fn default_bond() -> BondConfig {
    bond_config(Algorithm::default(), Order::Flow)
}

/// Two gateways that have done nothing yet; the provider may have peers beside the customer.
pub fn pair(bond: BondConfig, others: Vec<PeerConfig>) -> Pair {
    let mut pair = Pair::idle(Setup {
        links: LINKS,
        provider_link: false,
        bond,
        others,
        seed,
        watch,
        ..Setup::default()
    });
    // ECN marks come from the target's bytes alone.
    pair.links.iter_mut().for_each(|link| link.rewrites = Some(Ecn::NotEct));
    pair
}

fn seed(side: usize, restarts: u8) -> [u8; 32] {
    let mut seed = [side as u8; 32];
    seed[1] = restarts;
    seed
}

fn watch(side: &mut Endpoint, now: Instant, input: Input<'_>, act: &mut dyn FnMut(&mut Endpoint)) {
    let message = match input {
        Input::Packet => "packet of the host",
        Input::Datagram(bytes) => bytes.first().map_or("nothing", |first| reached::message(*first)),
    };
    // The other side is the first of each one's peers.
    reached::around(side, now, 0, message, |side| act(side));
}
