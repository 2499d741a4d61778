//! Asks a scheduler of the bond about subflows: the rules of minRTT, BLEST and ECF are the same for
//! paths with windows.

use plait_proto::scheduler::{
    BulkLoad, Decision as BondDecision, FlowClass, PacketInfo, PathView,
    Scheduler as BondScheduler, View,
};
use plait_proto::seq::PathId;
use plait_proto::time::Instant;
use plait_proto::units::Rate;

use super::{ConnectionView, Decision, SubflowView, candidates};

/// A subflow as a path of a bond: what was handed to it counts as in flight.
fn path(at: usize, subflow: &SubflowView) -> PathView {
    let at = u8::try_from(at).expect("a connection has fewer than 256 subflows");
    PathView {
        id: PathId(at),
        price: 0,
        order: at,
        weight: 1,
        srtt: subflow.srtt,
        latest_rtt: None,
        min_rtt: None,
        in_flight_bytes: subflow.in_flight_bytes + subflow.unsent_bytes,
        delivery_rate: Rate::ZERO,
        delivered_bytes: 0,
        sent_packets: 0,
        rtt_variation: subflow.rtt_variation,
        window_bytes: Some(subflow.window_bytes),
        capacity: Rate::ZERO,
        is_starting: false,
        ready_at: Instant::ZERO,
        loss_permille: 0,
    }
}

/// Its decision about the next segment.
pub(super) fn ask(
    scheduler: &mut dyn BondScheduler,
    connection: &ConnectionView,
    subflows: &[SubflowView],
) -> Decision {
    let paths: Vec<PathView> = candidates(subflows).map(|(at, view)| path(at, view)).collect();
    if paths.is_empty() {
        return Decision::Wait;
    }
    let bytes = connection.segment_bytes.min(connection.sendable_bytes());
    let packet = PacketInfo {
        bytes,
        class: FlowClass::Bulk,
        queued_bytes: connection.unsent_bytes - bytes,
        load: BulkLoad::default(),
    };
    match scheduler.pick(&View { now: connection.now, paths: &paths }, &packet) {
        BondDecision::Send(path) => Decision::Send { subflow: path.0.into(), bytes },
        BondDecision::Copies(_) | BondDecision::Wait { .. } | BondDecision::Blocked => {
            Decision::Wait
        }
    }
}
