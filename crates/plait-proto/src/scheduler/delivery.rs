//! When a packet would arrive over a path, and when a path will have room again, as far as a view
//! tells, and the steps that schedulers share. `docs/algorithms/earliest-delivery.md` has the
//! equations.

use super::{Decision, PathView, View};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Bytes in flight that never count as a queue: four full packets. Without them a path that was
/// never loaded, whose rate looks low for that reason, would look full at its first packet.
pub(super) const FREE_BYTES_MIN: u64 = 4 * 1500;
/// Acknowledgements come at least so far apart (or an eighth of a round trip); what was delivered
/// since the last one still counts as in flight.
pub(super) const ACK_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// The round trip of a path before its first sample (RFC 9002 section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// A wait for a path with a shorter round trip may last this long all the same.
pub(super) const WAIT_BOUND_MIN: Duration = Duration::from_millis(1);

/// Bulk traffic overflows to a dearer class when this much of the cheaper classes' time waits. It
/// is below the five milliseconds at which the ingress queue begins to slow its flows down.
pub(super) const SPILL_BACKLOG: Duration = Duration::from_millis(4);
/// An interactive packet waits so long at most for a better path.
pub(super) const INTERACTIVE_WAIT_MAX: Duration = Duration::from_millis(5);

/// The smoothed round-trip time, or what is nearest to it.
pub(super) fn smoothed_rtt(path: &PathView) -> Duration {
    path.srtt.or(path.min_rtt).unwrap_or(INITIAL_RTT)
}

/// The round-trip time without a queue.
pub(super) fn base_rtt(path: &PathView) -> Duration {
    path.min_rtt.or(path.srtt).unwrap_or(INITIAL_RTT)
}

/// The time between two acknowledgements of a loaded path.
pub(super) fn ack_interval(path: &PathView) -> Duration {
    ACK_INTERVAL_MIN.max(base_rtt(path) / 8)
}

/// What the path's smoothed and latest round trips have both lasted longer than its base: one late
/// packet is jitter, and a smoothed time alone remembers a queue that is gone.
pub(super) fn seen_excess(path: &PathView) -> Duration {
    let smoothed = smoothed_rtt(path);
    path.latest_rtt.unwrap_or(smoothed).min(smoothed).saturating_sub(base_rtt(path))
}

/// The delay of the queue in the path: what its round trips show, or what its bytes in flight
/// imply by Little's law, whichever is longer. Round trips are late by one; the bytes count at
/// once, but know nothing of others' traffic. With next to nothing in flight there is no queue, and
/// the round trips are old.
pub(super) fn queue_delay(path: &PathView) -> Duration {
    if path.in_flight_bytes <= FREE_BYTES_MIN {
        return Duration::ZERO;
    }
    let unqueued = base_rtt(path) + ack_interval(path);
    let free = path.capacity.bytes_in(unqueued).max(FREE_BYTES_MIN);
    let implied = time_for(path.capacity, path.in_flight_bytes.saturating_sub(free));
    seen_excess(path).max(implied)
}

/// From the path's entry to the peer: half its base round trip and its queue.
pub(super) fn one_way_delay(path: &PathView) -> Duration {
    (base_rtt(path) / 2).saturating_add(queue_delay(path))
}

/// What arrives of what the path carries, in bits per second.
pub(super) fn useful_rate(path: &PathView) -> u64 {
    let arriving = 1000_u64.saturating_sub(path.loss_permille.into());
    path.capacity.bits_per_second() / 1000 * arriving
}

/// How long after it leaves a packet of `bytes` has wholly arrived.
pub(super) fn delivery_delay(path: &PathView, bytes: u64) -> Duration {
    one_way_delay(path).saturating_add(time_for(path.capacity, bytes))
}

/// Like [`Rate::time_for`], but an unknown rate adds nothing.
fn time_for(rate: Rate, bytes: u64) -> Duration {
    if rate == Rate::ZERO { Duration::ZERO } else { rate.time_for(bytes) }
}

/// How long until the path may let `bytes` go; zero when it does now. When the pacer does not let
/// them go that is its time; a window opens with an acknowledgement, one interval away.
pub(super) fn time_to_room(path: &PathView, now: Instant, bytes: u64) -> Duration {
    let pacer = path.ready_at.since(now);
    if path.has_window(bytes) { pacer } else { pacer.max(ack_interval(path)) }
}

/// Waits for a path that has no room now: until it may have, a round trip of it at most.
pub(super) fn wait_for(path: &PathView, view: &View<'_>, bytes: u64) -> Decision {
    // A path may be closed by its scheduler alone; that too changes with an acknowledgement.
    let until_room = match time_to_room(path, view.now, bytes) {
        Duration::ZERO => ack_interval(path),
        time => time,
    };
    let bound = smoothed_rtt(path).max(WAIT_BOUND_MIN);
    Decision::Wait { until: view.now + until_room.min(bound) }
}

/// Of the paths with room the one with the shortest round trip, unless `waits(quickest, path)` says
/// that it is better to wait for the quickest of all.
pub(super) fn quickest_with_room_unless(
    view: &View<'_>,
    bytes: u64,
    waits: impl FnOnce(&PathView, &PathView) -> bool,
) -> Decision {
    let with_room = view.paths.iter().filter(|path| path.has_room(view.now, bytes));
    let Some(path) = with_room.min_by_key(|path| smoothed_rtt(path)) else {
        return Decision::Blocked;
    };
    let quickest = view.paths.iter().min_by_key(|path| smoothed_rtt(path)).unwrap_or(path);
    if quickest.id != path.id && waits(quickest, path) {
        return wait_for(quickest, view, bytes);
    }
    Decision::Send(path.id)
}

/// The paths of a view by price, cheapest first.
pub(super) fn price_classes<'a>(view: &View<'a>) -> impl Iterator<Item = &'a [PathView]> + use<'a> {
    view.paths.chunk_by(|a, b| a.price == b.price)
}

/// Whether any path lets `bytes` go now.
pub(super) fn any_has_room(view: &View<'_>, bytes: u64) -> bool {
    view.paths.iter().any(|path| path.has_room(view.now, bytes))
}

/// Paths that would be preferred but have no room now.
#[derive(Clone, Copy, Default)]
pub(super) struct Preferred<'a> {
    /// What they carry together.
    pub(super) rate: Rate,
    /// The one that may have room first.
    pub(super) soonest: Option<&'a PathView>,
}

impl<'a> Preferred<'a> {
    pub(super) fn add(&mut self, path: &'a PathView, view: &View<'_>, bytes: u64) {
        self.rate = Rate::from_bits_per_second(
            self.rate.bits_per_second().saturating_add(path.capacity.bits_per_second()),
        );
        let time = |path: &PathView| time_to_room(path, view.now, bytes);
        if self.soonest.is_none_or(|soonest| time(path) < time(soonest)) {
            self.soonest = Some(path);
        }
    }

    /// The path to wait for when the backlog is no more than these paths carry in `time`.
    pub(super) fn keeping_up(&self, backlog_bytes: u64, time: Duration) -> Option<&'a PathView> {
        self.soonest.filter(|_| backlog_bytes <= self.rate.bytes_in(time))
    }
}
