//! Inner flows to lanes, at the ingress.
//!
//! A lane is an ordering domain: each packet names its predecessor in its lane, and only the
//! sender knows the lanes, so they can be dealt out at will (spec W-4).

use core::net::IpAddr;

use crate::config::Order;
use crate::seq::BondSeq;
use crate::wire::ip::Inner;

const LANES: usize = 1024;

/// Gives every packet its predecessor.
#[derive(Debug)]
pub struct Lanes {
    order: Order,
    /// Keeps strangers from choosing flows that share a lane.
    seed: u64,
    /// Last sequence number of each lane.
    last: Vec<Option<BondSeq>>,
    /// The flow of the packet before and its lane: flows send trains, and a hash costs more than a
    /// comparison.
    latest: Option<(Inner, usize)>,
}

impl Lanes {
    /// Lanes for an order; `seed` is random.
    pub fn new(order: Order, seed: u64) -> Self {
        let lanes = if order == Order::Flow { LANES } else { 1 };
        Self { order, seed, last: vec![None; lanes], latest: None }
    }

    /// The distance from `seq` to its predecessor, 0 for none; `seq` becomes its lane's last.
    ///
    /// A predecessor further back than the field reaches was resolved long ago: it is left out.
    pub fn predecessor_distance(&mut self, inner: &Inner, seq: BondSeq) -> u16 {
        let lane = match self.order {
            Order::None => return 0,
            Order::Bond => 0,
            Order::Flow => self.lane_of(inner),
        };
        let last = self.last[lane].replace(seq);
        last.and_then(|last| u16::try_from(seq.0 - last.0).ok()).unwrap_or(0)
    }

    fn lane_of(&mut self, inner: &Inner) -> usize {
        match self.latest {
            Some((flow, lane)) if flow == *inner => lane,
            _ => {
                let lane = (flow_hash(inner, self.seed) % LANES as u64) as usize;
                self.latest = Some((*inner, lane));
                lane
            }
        }
    }
}

/// A seeded FNV-1a over the five-tuple, finished with a multiplication that spreads to all bits.
pub(crate) fn flow_hash(inner: &Inner, seed: u64) -> u64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for address in [inner.source, inner.destination] {
        match address {
            IpAddr::V4(address) => add(&address.octets()),
            IpAddr::V6(address) => add(&address.octets()),
        }
    }
    add(&[inner.protocol]);
    add(&inner.ports.to_be_bytes());
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(port: u32) -> Inner {
        Inner {
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
            protocol: 17,
            ports: port,
        }
    }

    #[test]
    fn whole_bond_order_names_the_packet_before() {
        let mut lanes = Lanes::new(Order::Bond, 1);
        let distances = [0, 1, 2].map(|n| lanes.predecessor_distance(&inner(n), BondSeq(n.into())));
        assert_eq!(distances, [0, 1, 1]);
    }

    #[test]
    fn flows_have_lanes_of_their_own() {
        let mut lanes = Lanes::new(Order::Flow, 1);
        let distances = [(7, 0), (8, 1), (7, 2), (8, 3)]
            .map(|(flow, seq)| lanes.predecessor_distance(&inner(flow), BondSeq(seq)));
        assert_eq!(distances, [0, 0, 2, 2]);
    }

    #[test]
    fn unordered_packets_have_no_predecessor() {
        let mut lanes = Lanes::new(Order::None, 1);
        assert_eq!([0, 1].map(|n| lanes.predecessor_distance(&inner(0), BondSeq(n))), [0, 0]);
    }

    #[test]
    fn a_predecessor_out_of_reach_is_left_out() {
        let mut lanes = Lanes::new(Order::Bond, 1);
        lanes.predecessor_distance(&inner(0), BondSeq(0));
        assert_eq!(lanes.predecessor_distance(&inner(0), BondSeq(65_536)), 0);
    }
}
