//! Cheapest first: a dearer price class carries only what the cheaper ones cannot.
//! `docs/algorithms/cheapest-first.md`.

use super::delivery::{
    INTERACTIVE_WAIT_MAX, Preferred, SPILL_BACKLOG, any_has_room, delivery_delay, price_classes,
    time_to_room, wait_for,
};
use super::stall::Stalls;
use super::{
    COPIES_LOSS_PERMILLE, Decision, FlowClass, PacketInfo, PathId, PathView, Scheduler, View,
};

/// Fills price classes in their order; within a class the earliest delivery counts.
#[derive(Debug, Default)]
pub struct CheapestFirst {
    stalls: Stalls,
}

impl CheapestFirst {
    fn bulk(&self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let backlog_bytes = packet.queued_bytes.saturating_add(packet.bytes);
        let mut cheaper = Preferred::default();
        for class in price_classes(view) {
            let with_room = class.iter().filter(|path| path.has_room(view.now, packet.bytes));
            if let Some(best) = with_room.min_by_key(|path| delivery_delay(path, packet.bytes)) {
                return match cheaper.keeping_up(backlog_bytes, SPILL_BACKLOG) {
                    Some(soonest) => wait_for(soonest, view, packet.bytes),
                    None => Decision::Send(best.id),
                };
            }
            let alive = class.iter().filter(|path| !self.stalls.is_stalled(path, view.now));
            alive.for_each(|path| cheaper.add(path, view, packet.bytes));
        }
        Decision::Blocked
    }

    fn interactive(&self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let bytes = packet.bytes;
        let good = |path: &&PathView| path.loss_permille < COPIES_LOSS_PERMILLE;
        for class in price_classes(view) {
            let with_room = |path: &&PathView| path.has_room(view.now, bytes);
            let best = class.iter().filter(good).filter(with_room);
            if let Some(best) = best.min_by_key(|path| delivery_delay(path, bytes)) {
                return Decision::Send(best.id);
            }
            let soon = class.iter().filter(good).filter(|path| {
                time_to_room(path, view.now, bytes) <= INTERACTIVE_WAIT_MAX
                    && !self.stalls.is_slow_to_open(path, view.now)
            });
            let soonest = soon.min_by_key(|path| time_to_room(path, view.now, bytes));
            if let Some(soonest) = soonest.filter(|_| any_has_room(view, bytes)) {
                return wait_for(soonest, view, bytes);
            }
        }
        let with_room = view.paths.iter().filter(|path| path.has_room(view.now, bytes));
        let best = with_room.min_by_key(|path| delivery_delay(path, bytes));
        best.map_or(Decision::Blocked, |best| Decision::Send(best.id))
    }
}

impl Scheduler for CheapestFirst {
    fn respects_windows(&self) -> bool {
        true
    }

    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        self.stalls.watch(view, packet.bytes);
        match packet.class {
            FlowClass::Bulk => self.bulk(view, packet),
            FlowClass::Interactive => self.interactive(view, packet),
        }
    }

    fn on_run(&mut self, _view: &View<'_>, _path: PathId, _bytes: u64) {}

    fn on_path_gone(&mut self, path: PathId) {
        self.stalls.forget(path);
    }
}

#[cfg(test)]
mod tests;
