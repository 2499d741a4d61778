//! Fixed shares: smooth weighted round robin over the configured weights.
//! `docs/algorithms/fixed.md`.

use super::smooth_wrr::{ONE_PACKET, SmoothWrr};
use super::{Decision, PacketInfo, PathId, Scheduler, View};

/// Shares packets in proportion to the paths' configured weights.
#[derive(Debug, Default)]
pub struct Fixed {
    wrr: SmoothWrr,
}

fn weights<'a>(view: &View<'a>) -> impl Iterator<Item = (PathId, u32)> + Clone + use<'a> {
    view.paths.iter().map(|path| (path.id, u32::from(path.weight)))
}

impl Scheduler for Fixed {
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
    use super::super::testing::{path, pick, picks, tally, view};
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        let mut fixed = Fixed::default();
        let paths =
            [path(0).weight(50).build(), path(1).weight(45).build(), path(2).weight(5).build()];
        assert_eq!(tally(&picks(&mut fixed, &paths, 1000)), [500, 450, 50]);
    }

    #[test]
    fn shares_hold_when_runs_are_sent_without_asking() {
        let mut fixed = Fixed::default();
        let paths = [path(0).weight(2).build(), path(1).weight(1).build()];
        let mut sent = [0; 2];
        for run in 0..300 {
            let path = pick(&mut fixed, &paths);
            // Runs of 1 to 7 packets.
            for _ in 0..run % 7 {
                fixed.on_run(&view(&paths), PathId(path), 1500);
            }
            sent[usize::from(path)] += 1 + run % 7;
        }
        let total: usize = sent.iter().sum();
        assert!(sent[0].abs_diff(total * 2 / 3) <= 7, "{sent:?}");
    }

    #[test]
    fn a_path_that_leaves_gives_its_share_to_the_others() {
        let mut fixed = Fixed::default();
        let paths =
            [path(0).weight(1).build(), path(1).weight(1).build(), path(2).weight(2).build()];
        picks(&mut fixed, &paths, 17);
        assert_eq!(tally(&picks(&mut fixed, &paths[1..], 30)), [0, 10, 20]);
    }
}
