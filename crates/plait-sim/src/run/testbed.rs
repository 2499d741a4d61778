//! The interface of a run to its back-end: the simulated world, or real processes in real time.

use std::borrow::Cow;

use plait_proto::dida::DidaStats;
use plait_proto::stats::PeerStatus;
use plait_proto::time::Instant;

use crate::app::{Observation, Tally};
use crate::error::WorldError;
use crate::world::{LinkView, Way, World};

/// A scenario's topology with its applications, at the start of the scenario. Applications and
/// links are counted in the scenario's order.
pub trait Testbed {
    /// Errors of the testbed.
    type Error;

    /// When the scenario started.
    fn zero(&self) -> Instant;

    /// Runs everything that happens until `end`.
    ///
    /// # Errors
    ///
    /// The testbed broke.
    fn run_until(&mut self, end: Instant) -> Result<(), Self::Error>;

    /// What an application sent and received.
    fn tally(&self, app: usize) -> Cow<'_, Tally>;

    /// Other figures of an application.
    fn observe(&self, app: usize) -> Observation;

    /// Whether an application's tally tells which of its packets arrived, and when.
    fn tells_arrivals(&self, app: usize) -> bool;

    /// One direction of a link.
    fn link(&self, link: usize, way: Way) -> LinkView;

    /// Status of the gateway that sends in this direction; `None` without a bond.
    fn bond_sender(&mut self, way: Way) -> Option<PeerStatus>;

    /// Counters of DIDA at a steering node or beside a bond's egress; `None` without one.
    fn dida(&mut self) -> Option<DidaStats>;

    /// Status of the gateway that receives in this direction; `None` without a bond.
    fn bond_receiver(&mut self, way: Way) -> Option<PeerStatus> {
        self.bond_sender(if way == Way::Down { Way::Up } else { Way::Down })
    }
}

impl Testbed for World {
    type Error = WorldError;

    fn zero(&self) -> Instant {
        World::zero(self)
    }

    fn run_until(&mut self, end: Instant) -> Result<(), WorldError> {
        World::run_until(self, end);
        Ok(())
    }

    fn tally(&self, app: usize) -> Cow<'_, Tally> {
        Cow::Borrowed(self.app(app).tally())
    }

    fn observe(&self, app: usize) -> Observation {
        self.app(app).observe()
    }

    fn tells_arrivals(&self, _app: usize) -> bool {
        true
    }

    fn link(&self, link: usize, way: Way) -> LinkView {
        World::link(self, link, way)
    }

    fn bond_sender(&mut self, way: Way) -> Option<PeerStatus> {
        World::bond_sender(self, way)
    }

    fn dida(&mut self) -> Option<DidaStats> {
        World::dida(self)
    }
}
