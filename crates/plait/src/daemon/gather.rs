//! Gathers the gateway's status in steps, so that packets move in between.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use plait_net::clock::Clock;
use plait_proto::endpoint::{Endpoint, StatusWalk};
use plait_proto::stats::EndpointStatus;
use plait_proto::time::Instant;

use super::requests::Snapshot;

/// A step is not continued after this.
const STEP_TIME: Duration = Duration::from_micros(400);
/// Peers between two looks at the clock.
const PEERS_AT_ONCE: usize = 8;

/// Those who asked for the status, and what was gathered so far.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// They asked since the walk under way began: it may have passed what they want to see.
    waiting: Vec<SyncSender<Snapshot>>,
    /// They get what the walk under way finds.
    served: Vec<SyncSender<Snapshot>>,
    walk: StatusWalk,
}

impl Gathering {
    /// Somebody wants the status.
    pub(super) fn ask(&mut self, reply: SyncSender<Snapshot>) {
        self.waiting.push(reply);
    }

    /// Whether there is a step to do.
    pub(super) fn is_under_way(&self) -> bool {
        !self.waiting.is_empty() || !self.served.is_empty()
    }

    /// Does a step; returns the status when it was the last.
    pub(super) fn step(
        &mut self,
        now: Instant,
        clock: &Clock,
        endpoint: &mut Endpoint,
    ) -> Option<EndpointStatus> {
        if self.served.is_empty() {
            self.served = std::mem::take(&mut self.waiting);
        }
        if self.served.is_empty() {
            return None;
        }
        let end = clock.elapsed() + STEP_TIME;
        while !endpoint.gather_status(now, &mut self.walk, PEERS_AT_ONCE) {
            if clock.elapsed() >= end {
                return None;
            }
        }
        Some(endpoint.finish_status(std::mem::take(&mut self.walk)))
    }

    /// Gives the status to those who asked for it.
    pub(super) fn answer(&mut self, snapshot: Snapshot) {
        let mut served = std::mem::take(&mut self.served);
        let last = served.pop();
        for reply in served {
            // They may have gone away.
            let _ = reply.send(snapshot.clone());
        }
        if let Some(reply) = last {
            let _ = reply.send(snapshot);
        }
    }
}
