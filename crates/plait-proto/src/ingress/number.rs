//! Stage 4, number: a packet's place in the bond's sequence and in its path's, strictly one after
//! the other. All that comes later can be done in any order.

use crate::config::BondConfig;
use crate::flow::Lanes;
use crate::path::SendPath;
use crate::rng::Rng;
use crate::seq::{BondSeq, PacketNumber};
use crate::time::Instant;
use crate::wire::Kind;
use crate::wire::dscp::Dscps;
use crate::wire::ip::Inner;
use crate::wire::sealed::{ControlPrefix, DataPrefix, Header, SendTimestamp};

/// Gives out numbers.
#[derive(Debug)]
pub(super) struct Numbering {
    lanes: Lanes,
    unordered: Dscps,
    next_seq: BondSeq,
    /// For which packet numbers are left out.
    rng: Rng,
}

/// What a datagram's seal is made of, beside its text and its path's key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) header: Header,
    pub(super) number: PacketNumber,
}

impl Numbering {
    pub(super) fn new(config: &BondConfig, lane_seed: u64, rng: Rng) -> Self {
        let lanes = Lanes::new(config.order, lane_seed);
        Self { lanes, unordered: config.unordered, next_seq: BondSeq(0), rng }
    }

    /// Goes on with another order; sequence numbers go on.
    pub(super) fn set_order(&mut self, config: &BondConfig, lane_seed: u64) {
        self.lanes = Lanes::new(config.order, lane_seed);
        self.unordered = config.unordered;
    }

    /// The next packet's place in the bond's sequence, behind its predecessor in its flow's lane if
    /// it is of a class that is put in order.
    pub(super) fn place(&mut self, now: Instant, inner: &Inner, packet: &[u8]) -> DataPrefix {
        if self.unordered.contain(packet) {
            return self.place_alone(now);
        }
        let prev = self.lanes.predecessor_distance(inner, packet, self.next_seq);
        DataPrefix { prev, ..self.place_alone(now) }
    }

    /// The same of a packet that waits for none before it.
    pub(super) fn place_alone(&mut self, now: Instant) -> DataPrefix {
        let seq = self.next_seq;
        self.next_seq = seq.next();
        DataPrefix { seq: seq.truncate(), prev: 0, sent: SendTimestamp::of(now) }
    }

    /// What a control datagram says of the bond's sequence.
    pub(super) const fn control_prefix(&self, now: Instant) -> ControlPrefix {
        ControlPrefix::new(now, self.next_seq)
    }

    /// The next number of a path, which is used up.
    pub(super) fn number(&mut self, path: &mut SendPath, kind: Kind) -> Numbered {
        path.leave_out_numbers(&mut self.rng);
        let (session, number) = path.take_number();
        let header = Header { kind, session, path: path.id, number: number.truncate() };
        Numbered { header, number }
    }

    /// The sequence number of the next data packet.
    pub(super) const fn next_seq(&self) -> BondSeq {
        self.next_seq
    }
}
