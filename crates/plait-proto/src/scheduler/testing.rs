//! Synthetic views for tests of schedulers.

use super::{FlowClass, PacketInfo, PathView, Scheduler, View};
use crate::scheduler::Decision;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A path that is usable and about which nothing is known yet.
pub(super) struct PathBuilder(PathView);

/// Starts a path with this id, which is also its place in the configuration.
pub(super) fn path(id: u8) -> PathBuilder {
    PathBuilder(PathView {
        id: PathId(id),
        price: 0,
        order: id,
        weight: 1,
        srtt: None,
        latest_rtt: None,
        min_rtt: None,
        in_flight_bytes: 0,
        delivery_rate: Rate::ZERO,
        sent_packets: 0,
        rtt_variation: None,
        window_bytes: None,
        capacity: Rate::ZERO,
        ready_at: Instant::ZERO,
        loss_permille: 0,
    })
}

impl PathBuilder {
    pub(super) fn weight(mut self, weight: u16) -> Self {
        self.0.weight = weight;
        self
    }

    /// All round-trip times alike: no queue.
    pub(super) fn rtt_ms(mut self, ms: u64) -> Self {
        let rtt = Some(Duration::from_millis(ms));
        (self.0.srtt, self.0.latest_rtt, self.0.min_rtt) = (rtt, rtt, rtt);
        self
    }

    pub(super) fn srtt_ms(mut self, ms: u64) -> Self {
        self.0.srtt = Some(Duration::from_millis(ms));
        self
    }

    pub(super) fn rate_mbit(mut self, mbit: u64) -> Self {
        self.0.delivery_rate = Rate::from_mbit(mbit);
        self
    }

    pub(super) fn in_flight(mut self, bytes: u64) -> Self {
        self.0.in_flight_bytes = bytes;
        self
    }

    pub(super) fn build(self) -> PathView {
        self.0
    }
}

/// Plain paths with the ids 0 to `count`.
pub(super) fn plain_paths(count: u8) -> Vec<PathView> {
    (0..count).map(|id| path(id).build()).collect()
}

/// A view at time zero.
pub(super) fn view(paths: &[PathView]) -> View<'_> {
    View { now: Instant::ZERO, paths }
}

/// A full-sized packet.
pub(super) const PACKET: PacketInfo =
    PacketInfo { bytes: 1500, class: FlowClass::Bulk, queued_bytes: 0 };

/// The path of the next packet.
pub(super) fn pick(scheduler: &mut dyn Scheduler, paths: &[PathView]) -> u8 {
    match scheduler.pick(&view(paths), &PACKET) {
        Decision::Send(path) => path.0,
        other => panic!("expected one path, got {other:?}"),
    }
}

/// The paths of the next `count` packets.
pub(super) fn picks(scheduler: &mut dyn Scheduler, paths: &[PathView], count: usize) -> Vec<u8> {
    (0..count).map(|_| pick(scheduler, paths)).collect()
}

/// How often each of the first `N` ids occurs.
pub(super) fn tally<const N: usize>(picks: &[u8]) -> [usize; N] {
    core::array::from_fn(|id| picks.iter().filter(|&&pick| usize::from(pick) == id).count())
}
