//! The flows, which of them have packets, and in which order they have their turns (RFC 8290 §4).

use core::cmp::Reverse;
use std::collections::VecDeque;

use super::activity::Activity;
use super::census::Counted;
use super::codel::Codel;
use super::store::Chain;
use crate::flow::flow_hash;
use crate::wire::ip::Inner;

/// Buckets that flows are hashed into (RFC 8290 §5.2.5).
const BUCKETS: u16 = 1024;

/// The number of a bucket that has had packets: they are counted as they come.
pub(super) type FlowId = u16;

/// Of a bucket that has had no packet.
const UNUSED: FlowId = FlowId::MAX;

/// What is known of the flows of one bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    bucket: u16,
    pub(super) chain: Chain,
    pub(super) codel: Codel,
    pub(super) activity: Activity,
    /// Packets at the head that CoDel has let pass: they were put back.
    pub(super) passed_packets: u32,
    /// Bytes that it may still send in this turn.
    pub(super) credit_bytes: i64,
    pub(super) counted: Counted,
    /// It stands in one of the two lists.
    listed: bool,
}

/// All flows.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Flows {
    /// The flow of the packet before and its bucket: flows send trains, and a hash costs more than
    /// a comparison.
    latest: Option<(Inner, FlowId)>,
    flows: Vec<Flow>,
    /// Keeps strangers from choosing flows that share a bucket.
    seed: u64,
    /// The flows of each bucket, or [`UNUSED`]. Empty until the first packet: a bond that carries
    /// nothing stays small.
    buckets: Vec<FlowId>,
    /// Flows that have sent less than their credit since they came: they have their turn first.
    new: VecDeque<FlowId>,
    old: VecDeque<FlowId>,
}

impl Flows {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            buckets: Vec::new(),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            latest: None,
        }
    }

    /// The bucket of a flow.
    pub(super) fn find(&mut self, inner: &Inner) -> FlowId {
        match self.latest {
            Some((known, id)) if known == *inner => id,
            _ => {
                let bucket = (flow_hash(inner, self.seed) % u64::from(BUCKETS)) as u16;
                let id = self.of_bucket(bucket);
                self.latest = Some((*inner, id));
                id
            }
        }
    }

    fn of_bucket(&mut self, bucket: u16) -> FlowId {
        if self.buckets.is_empty() {
            self.buckets.resize(BUCKETS.into(), UNUSED);
        }
        let id = &mut self.buckets[usize::from(bucket)];
        if *id == UNUSED {
            *id = self.flows.len() as FlowId;
            self.flows.push(Flow { bucket, ..Flow::default() });
        }
        *id
    }

    pub(super) fn get(&mut self, id: FlowId) -> &mut Flow {
        &mut self.flows[usize::from(id)]
    }

    /// Lists a flow that has a packet now; one that was not listed is new, and has `credit_bytes`
    /// (RFC 8290 §4.1).
    pub(super) fn list(&mut self, id: FlowId, credit_bytes: u32) {
        let flow = &mut self.flows[usize::from(id)];
        if !flow.listed {
            flow.listed = true;
            flow.credit_bytes = credit_bytes.into();
            self.new.push_back(id);
        }
    }

    /// The flow whose turn it is, once those that have used up their credit have stood back with
    /// another `quantum_bytes` (RFC 8290 §4.2). `None` when none is listed.
    pub(super) fn turn(&mut self, quantum_bytes: u32) -> Option<FlowId> {
        loop {
            let id = *self.new.front().or(self.old.front())?;
            let flow = &mut self.flows[usize::from(id)];
            if flow.credit_bytes > 0 {
                return Some(id);
            }
            flow.credit_bytes += i64::from(quantum_bytes);
            self.take_first();
            self.old.push_back(id);
        }
    }

    /// The flow whose turn it is has no packet. A new one takes a turn among the old before it is
    /// forgotten, so that coming anew is no way to be served first (RFC 8290 §4.2).
    pub(super) fn on_empty(&mut self) {
        let was_new = !self.new.is_empty();
        let Some(id) = self.take_first() else { return };
        if was_new && !self.old.is_empty() {
            self.old.push_back(id);
        } else {
            self.flows[usize::from(id)].listed = false;
        }
    }

    fn take_first(&mut self) -> Option<FlowId> {
        self.new.pop_front().or_else(|| self.old.pop_front())
    }

    /// The flow with the most bytes; of equals the first bucket.
    pub(super) fn fattest(&self) -> Option<FlowId> {
        let waiting = (0..).zip(&self.flows).filter(|(_, flow)| flow.chain.packets() > 0);
        let most = waiting.max_by_key(|(_, flow)| (flow.chain.bytes(), Reverse(flow.bucket)));
        most.map(|(id, _)| id)
    }
}
