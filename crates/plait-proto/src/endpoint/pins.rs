//! Flows that the owner keeps on one path.

use super::Endpoint;
use super::peer::Peer;
use crate::ingress::PinError;
use crate::seq::PathId;
use crate::time::Instant;
use crate::wire::ip::Inner;

impl Endpoint {
    /// Keeps an inner flow of this side on a path of the bond with the peer that its destination
    /// belongs to. The pin ends after [`PIN_TIME`](crate::ingress::PIN_TIME), unless it is set
    /// again; while the path cannot carry data the flow goes the bond's way.
    ///
    /// Call it with all outputs drained, and drain them afterwards.
    ///
    /// # Errors
    /// No such peer, bond or path; or too many pins.
    pub fn pin_flow(&mut self, now: Instant, flow: Inner, path: PathId) -> Result<(), PinError> {
        let peer = self.peer_behind(&flow).ok_or(PinError::NoPeer)?;
        peer.used_bond_mut().ok_or(PinError::NoBond)?.pin_flow(now, flow, path)
    }

    /// Lets a flow go the bond's way again.
    pub fn unpin_flow(&mut self, flow: &Inner) {
        if let Some(bond) = self.peer_behind(flow).and_then(Peer::used_bond_mut) {
            bond.unpin_flow(flow);
        }
    }

    fn peer_behind(&mut self, flow: &Inner) -> Option<&mut Peer> {
        self.routes.peer_of(flow.destination).map(|at| &mut self.peers[at])
    }
}
