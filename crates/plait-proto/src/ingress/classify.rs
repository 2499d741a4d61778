//! Stage 1, classify: what a packet needs of a path, what kind of flow it belongs to, and whether
//! that flow is pinned to a path.

use super::Ingress;
use crate::scheduler::FlowClass;
use crate::seq::PathId;
use crate::time::Instant;
use crate::wire::ip::{Inner, room_needed};

/// A packet from the host, before anything is decided about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classified<'a> {
    /// What was read of it.
    pub(super) inner: &'a Inner,
    /// The packet itself.
    pub(super) bytes: &'a [u8],
    /// The kind of its flow.
    pub(super) class: FlowClass,
    /// The only path that its flow may take, if there is one that can carry it now.
    pub(super) pin: Option<PathId>,
}

impl Ingress {
    pub(super) fn classify<'a>(
        &mut self,
        now: Instant,
        inner: &'a Inner,
        bytes: &'a [u8],
    ) -> Classified<'a> {
        let pin = self.pinned(now, inner, room_needed(bytes));
        let class =
            if self.paths.is_closed_loop() || (pin.is_none() && self.picker.tells_flows_apart()) {
                self.queue.classify(now, pin, inner, bytes.len())
            } else {
                FlowClass::default()
            };
        Classified { inner, bytes, class, pin }
    }
}
