//! Round robin: every path carries the same number of packets. `docs/algorithms/round-robin.md`.

use super::smooth_wrr::{ONE_PACKET, SmoothWrr};
use super::{Decision, PacketInfo, PathId, Scheduler, View};

/// Takes the paths in turn.
#[derive(Debug, Default)]
pub struct RoundRobin {
    wrr: SmoothWrr,
}

fn weights<'a>(view: &View<'a>) -> impl Iterator<Item = (PathId, u32)> + Clone + use<'a> {
    view.paths.iter().map(|path| (path.id, 1))
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, view: &View<'_>, _packet: &PacketInfo) -> Decision {
        self.wrr.pick(weights(view), ONE_PACKET)
    }

    fn on_run(&mut self, view: &View<'_>, path: PathId, _bytes: u64) {
        self.wrr.charge(weights(view), path, ONE_PACKET);
    }

    fn weights(&self, view: &View<'_>) -> Vec<(PathId, u32)> {
        weights(view).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{path, pick, picks, view};
    use super::*;

    #[test]
    fn paths_take_turns_whatever_their_weights() {
        let paths = [path(0).weight(9).build(), path(1).build(), path(2).build()];
        assert_eq!(picks(&mut RoundRobin::default(), &paths, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_run_counts_as_turns() {
        let paths = [path(0).build(), path(1).build()];
        let mut scheduler = RoundRobin::default();
        let first = pick(&mut scheduler, &paths);
        for _ in 0..3 {
            scheduler.on_run(&view(&paths), PathId(first), 1500);
        }
        assert_eq!(picks(&mut scheduler, &paths, 6), [1, 1, 1, 1, 0, 1]);
    }
}
