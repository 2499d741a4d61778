//! Redundant: a copy on every path. `docs/algorithms/redundant.md`.

use super::{Decision, PacketInfo, PathId, PathSet, Scheduler, View};

/// Sends every packet over every path.
#[derive(Debug, Default)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn pick(&mut self, view: &View<'_>, _packet: &PacketInfo) -> Decision {
        if view.paths.is_empty() {
            return Decision::Blocked;
        }
        let mut paths = PathSet::default();
        view.paths.iter().for_each(|path| paths.insert(path.id));
        Decision::Copies(paths)
    }

    fn on_run(&mut self, _view: &View<'_>, _path: PathId, _bytes: u64) {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PACKET, plain_paths, view};
    use super::*;

    #[test]
    fn every_path_gets_a_copy() {
        let paths = plain_paths(3);
        let Decision::Copies(set) = Redundant.pick(&view(&paths), &PACKET) else {
            panic!("expected copies");
        };
        assert_eq!(set.iter().collect::<Vec<_>>(), [PathId(0), PathId(1), PathId(2)]);
    }
}
