//! Pins: inner flows that their owner keeps on one path, whatever the scheduler thinks of it. For
//! measuring each path by itself.
//!
//! In an open loop the egress does not put a pinned flow in order: its path does, and what the path
//! lost must not wait until the other paths have passed it. In a closed one it is queued, repaired
//! and put in order like others, over its path alone (`queue/pinned`). So the flow fares as over a
//! bond of this path alone.
//!
//! A pin ends by itself, so that no owner who goes away leaves one behind. While its path cannot
//! carry data the flow goes the bond's way.

use super::Ingress;
use crate::path::SendPath;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::wire::ip::Inner;

/// Most flows that are pinned at a time.
pub const PINS_MAX: usize = 128;
/// A pin ends so long after it was set last.
pub const PIN_TIME: Duration = Duration::from_secs(60);

/// Why a flow cannot be pinned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PinError {
    /// The flow's destination belongs to no peer.
    #[error("the flow's destination is in no peer's allowed_ips")]
    NoPeer,
    /// There is no bond with the peer.
    #[error("there is no bond with the peer")]
    NoBond,
    /// The bond has no such path.
    #[error("the bond has no path {0}")]
    NoPath(PathId),
    /// The table is full.
    #[error("{PINS_MAX} flows are pinned already")]
    TooMany,
}

#[derive(Clone, Copy, Debug)]
struct Pin {
    flow: Inner,
    path: PathId,
    until: Instant,
}

/// Which flow is kept on which path, and until when.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    table: Vec<Pin>,
}

impl Pins {
    /// Keeps a flow on a path for [`PIN_TIME`] from now on, in place of an earlier pin.
    ///
    /// # Errors
    /// [`PinError::TooMany`].
    pub(crate) fn set(&mut self, now: Instant, flow: Inner, path: PathId) -> Result<(), PinError> {
        self.table.retain(|pin| pin.until > now && pin.flow != flow);
        if self.table.len() >= PINS_MAX {
            return Err(PinError::TooMany);
        }
        self.table.push(Pin { flow, path, until: now + PIN_TIME });
        Ok(())
    }

    /// The flow goes the bond's way again.
    pub(crate) fn remove(&mut self, flow: &Inner) {
        self.table.retain(|pin| pin.flow != *flow);
    }

    /// The path will not come back under this id.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.table.retain(|pin| pin.path != path);
    }

    /// Whether a flow may still be pinned to the path.
    pub(super) fn has_path(&self, path: PathId) -> bool {
        self.table.iter().any(|pin| pin.path == path)
    }

    fn path_of(&self, now: Instant, flow: &Inner) -> Option<PathId> {
        let pin = self.table.iter().find(|pin| pin.flow == *flow)?;
        (pin.until > now).then_some(pin.path)
    }
}

impl Ingress {
    /// The table of pins.
    pub(crate) fn pins_mut(&mut self) -> &mut Pins {
        &mut self.pins
    }

    /// The path that a packet's flow is pinned to, if that can carry it now.
    pub(super) fn pinned(&mut self, now: Instant, flow: &Inner, bytes: usize) -> Option<PathId> {
        let id = self.pins.path_of(now, flow)?;
        let can_carry = |path: &SendPath| path.carries_pinned() && bytes <= path.inner_max();
        self.paths.get(id).is_some_and(can_carry).then(|| {
            self.expire_unacknowledged(now);
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn flow(ports: u32) -> Inner {
        let address = |last| core::net::IpAddr::from([10, 99, 0, last]);
        Inner { source: address(2), destination: address(1), protocol: 6, ports }
    }

    #[test]
    fn a_pin_ends_by_itself_and_setting_it_again_prolongs_it() {
        let mut pins = Pins::default();
        let half = Instant::ZERO + PIN_TIME / 2;
        pins.set(Instant::ZERO, flow(1), PathId(3)).expect("room");
        pins.set(half, flow(2), PathId(3)).expect("room");
        let end = Instant::ZERO + PIN_TIME;
        assert_eq!(pins.path_of(half, &flow(1)), Some(PathId(3)));
        assert_eq!(pins.path_of(end, &flow(1)), None);
        assert_eq!(pins.path_of(end, &flow(2)), Some(PathId(3)));
        pins.set(half, flow(1), PathId(4)).expect("room");
        assert_eq!(pins.path_of(end, &flow(1)), Some(PathId(4)));
    }

    #[test]
    fn the_table_is_bounded_and_what_has_ended_makes_room() {
        let mut pins = Pins::default();
        for ports in 0..PINS_MAX as u32 {
            pins.set(Instant::ZERO, flow(ports), PathId(0)).expect("room");
        }
        assert_eq!(pins.set(Instant::ZERO, flow(1000), PathId(0)), Err(PinError::TooMany));
        assert_eq!(pins.set(Instant::ZERO, flow(7), PathId(1)), Ok(()), "it has its place");
        assert_eq!(pins.set(Instant::ZERO + PIN_TIME, flow(1000), PathId(0)), Ok(()));
        assert_eq!(pins.table.len(), 1);
    }

    proptest! {
        #[test]
        fn the_table_does_what_a_map_does(
            ops in vec((0..4_u8, 0..5_u32, 0..3_u8, 0..40_u64), 0..80),
        ) {
            let (mut pins, mut model) = (Pins::default(), BTreeMap::new());
            let mut now = Instant::ZERO;
            for (op, ports, path, seconds) in ops {
                let path = PathId(path);
                match op {
                    0 => {
                        pins.set(now, flow(ports), path).expect("few flows");
                        model.insert(ports, (path, now + PIN_TIME));
                    }
                    1 => {
                        pins.remove(&flow(ports));
                        model.remove(&ports);
                    }
                    2 => {
                        pins.forget_path(path);
                        model.retain(|_, (pinned, _)| *pinned != path);
                    }
                    _ => now += Duration::from_secs(seconds),
                }
                for ports in 0..5 {
                    let known = model.get(&ports).filter(|(_, until)| *until > now);
                    prop_assert_eq!(pins.path_of(now, &flow(ports)), known.map(|(path, _)| *path));
                }
            }
        }
    }
}
