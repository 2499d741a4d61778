//! Opportunistic retransmission and penalty (Raiciu et al., NSDI 2012, section 4.2): what to do
//! when the data that holds the connection up is on a slow subflow.

use plait_proto::congestion::Phase;
use plait_proto::time::{Duration, Instant};

use super::subflow::Subflow;
use crate::tcp::segment::SeqRange;

/// A carrier with no more segments in its window is too slow to be waited for.
const FEW_SEGMENTS: u64 = 4;
/// So many round trips of the quick subflow must fit one of the carrier's.
const ROUNDS: u32 = 4;

/// When each subflow was last penalised, and how often all of them.
#[derive(Debug)]
pub(super) struct Penalty {
    at: Vec<Option<Instant>>,
    count: u64,
}

impl Penalty {
    pub(super) fn new(subflows: usize) -> Self {
        Self { at: vec![None; subflows], count: 0 }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Nothing new may leave although the subflow `quick` has room. Halves the windows of slower
    /// subflows that carry the first byte that is missing, `una`, each at most once in its round
    /// trip, if `penalises`; and returns what `quick` is to send again.
    pub(super) fn on_blocked(
        &mut self,
        now: Instant,
        una: u64,
        subflows: &mut [Subflow],
        quick: usize,
        penalises: bool,
    ) -> Option<SeqRange> {
        let srtt = |subflow: &Subflow| subflow.sender.srtt().unwrap_or_default();
        let quick_rtt = srtt(&subflows[quick]);
        if subflows[quick].sent.holding(una).is_some() {
            return None;
        }
        let mut again = None;
        for (subflow, at) in subflows.iter_mut().zip(&mut self.at) {
            let Some(data) = subflow.sent.holding(una) else { continue };
            let own_rtt = srtt(subflow);
            let segments = subflow.sender.window_bytes().div_ceil(data.len());
            let is_due = at.is_none_or(|at| now.since(at) >= own_rtt);
            if penalises && own_rtt > quick_rtt && is_due && subflow.sender.phase() == Phase::Open {
                subflow.sender.penalise(now);
                *at = Some(now);
                self.count += 1;
            }
            if segments <= FEW_SEGMENTS || is_far(quick_rtt, own_rtt) {
                again = Some(data);
            }
        }
        again
    }
}

fn is_far(quick: Duration, own: Duration) -> bool {
    quick * ROUNDS < own
}
