//! Flows that are kept on one path.

use super::Bond;
use crate::ingress::PinError;
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::Instant;
use crate::wire::ip::Inner;

impl Bond {
    /// Keeps an inner flow of this side on a path for a while; a sleeping path is woken for it.
    ///
    /// # Errors
    /// There is no such path, or too many flows are pinned.
    pub fn pin_flow(&mut self, now: Instant, flow: Inner, path: PathId) -> Result<(), PinError> {
        let state = self.ingress.path(path).ok_or(PinError::NoPath(path))?.state;
        self.ingress.pins_mut().set(now, flow, path)?;
        if state == PathState::Asleep {
            self.wake(now, path);
        }
        Ok(())
    }

    /// Lets a flow go the bond's way again.
    pub fn unpin_flow(&mut self, flow: &Inner) {
        self.ingress.pins_mut().remove(flow);
    }
}
