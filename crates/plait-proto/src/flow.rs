//! Inner flows to lanes, at the ingress.
//!
//! A lane is an ordering domain: each packet names its predecessor in its lane, and only the
//! sender knows the lanes, so they can be dealt out at will (spec W-4).

use core::net::IpAddr;

use crate::config::Order;
use crate::seq::BondSeq;
use crate::wire::ip::Inner;
use crate::wire::tcp::is_plain_ack;

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
    ///
    /// In flow order nothing waits for a plain TCP acknowledgement: one that is lost or late says
    /// nothing that the next does not, and a round of data hangs on each. It comes after the data
    /// before it all the same, which may have moved what it acknowledges.
    pub fn predecessor_distance(&mut self, inner: &Inner, packet: &[u8], seq: BondSeq) -> u16 {
        let (lane, is_waited_for) = match self.order {
            Order::None => return 0,
            Order::Bond => (0, true),
            Order::Flow => (self.lane_of(inner), !is_plain_ack(packet)),
        };
        let last = self.last[lane];
        if is_waited_for {
            self.last[lane] = Some(seq);
        }
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
        let distances =
            [0, 1, 2].map(|n| lanes.predecessor_distance(&inner(n), &[], BondSeq(n.into())));
        assert_eq!(distances, [0, 1, 1]);
    }

    #[test]
    fn flows_have_lanes_of_their_own() {
        let mut lanes = Lanes::new(Order::Flow, 1);
        let distances = [(7, 0), (8, 1), (7, 2), (8, 3)]
            .map(|(flow, seq)| lanes.predecessor_distance(&inner(flow), &[], BondSeq(seq)));
        assert_eq!(distances, [0, 0, 2, 2]);
    }

    /// The TCP header of a segment that comes first in a flow: its window and its flags.
    fn tcp(flags: u8, window: u8, data: &[u8]) -> Vec<u8> {
        let total = (40 + data.len()) as u8;
        let mut packet = vec![0x45, 0, 0, total, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0];
        packet.extend_from_slice(&[2, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags]);
        packet.extend_from_slice(&[0, window, 0, 0, 0, 0]);
        packet.extend_from_slice(data);
        packet
    }

    /// An acknowledgement that waits for the one before it costs all data that hangs on the two a
    /// round trip of the slower path.
    #[test]
    fn regression_nothing_waits_for_a_plain_acknowledgement() {
        const ACK: u8 = 0x10;
        const FIN: u8 = 0x01;
        let mut lanes = Lanes::new(Order::Flow, 1);
        let mut distance = |flags, window, data: &[u8], seq| {
            let packet = tcp(flags, window, data);
            let inner = Inner::read(&packet).expect("well formed");
            lanes.predecessor_distance(&inner, &packet, BondSeq(seq))
        };
        assert_eq!(distance(ACK, 9, b"data", 0), 0);
        assert_eq!(distance(ACK, 9, b"", 1), 1, "it comes after the data");
        assert_eq!(distance(ACK, 9, b"", 2), 2, "not after the acknowledgement");
        assert_eq!(distance(ACK, 0, b"", 3), 3, "a window that closes");
        assert_eq!(distance(ACK, 9, b"", 4), 1, "and opens again");
        assert_eq!(distance(ACK | FIN, 9, b"", 5), 2, "the end of the connection");
        assert_eq!(distance(ACK, 9, b"more", 6), 1);

        let mut lanes = Lanes::new(Order::Bond, 1);
        let packet = tcp(ACK, 9, b"");
        let inner = Inner::read(&packet).expect("well formed");
        let distances = [0, 1].map(|seq| lanes.predecessor_distance(&inner, &packet, BondSeq(seq)));
        assert_eq!(distances, [0, 1], "the whole bond's order leaves out nobody");
    }

    #[test]
    fn unordered_packets_have_no_predecessor() {
        let mut lanes = Lanes::new(Order::None, 1);
        assert_eq!([0, 1].map(|n| lanes.predecessor_distance(&inner(0), &[], BondSeq(n))), [0, 0]);
    }

    #[test]
    fn a_predecessor_out_of_reach_is_left_out() {
        let mut lanes = Lanes::new(Order::Bond, 1);
        lanes.predecessor_distance(&inner(0), &[], BondSeq(0));
        assert_eq!(lanes.predecessor_distance(&inner(0), &[], BondSeq(65_536)), 0);
    }
}
