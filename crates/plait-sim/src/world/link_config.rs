//! Converts a scenario's link settings to the link model's.

use std::sync::Arc;

use plait_proto::time::Instant;
use plait_proto::units::Rate;

use crate::error::WorldError;
use crate::link::{Link, LinkConfig, Loss, Outages, Room, Service};
use crate::scenario::LinkSpec;
use crate::scenario::link::{Capacity, DirectionSpec, LossSpec};

/// What a link on a medium does to packets that have crossed the air: as good as no time in a
/// transmitter, then delay, loss and outages.
pub fn behind_air<P>(spec: &DirectionSpec, seed: u64) -> Link<P> {
    let mut link = link(spec, seed);
    let rate = Rate::from_bits_per_second(u64::MAX);
    let config = LinkConfig { rate, queue: Room::Packets(u64::MAX), ..link.config() };
    link.reconfigure(Instant::ZERO, config);
    link
}

/// An empty link for one direction of a scenario's.
pub fn of_way<P>(link_spec: &LinkSpec, way: &DirectionSpec, seed: u64) -> Link<P> {
    if link_spec.air.is_some() { behind_air(way, seed) } else { link(way, seed) }
}

/// An empty link for one direction, as before its scenario starts. A trace begins with the world,
/// before the scenario: the gateways connect first.
pub fn link<P>(spec: &DirectionSpec, seed: u64) -> Link<P> {
    let loss = match spec.loss {
        LossSpec::Bernoulli(ratio) => Loss::Bernoulli(ratio),
        LossSpec::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }
        }
    };
    let config = LinkConfig {
        rate: spec.capacity.rate_at_first(),
        delay: spec.delay,
        jitter: spec.jitter,
        reorder: spec.reorder,
        loss,
        discipline: spec.queue.discipline,
        queue: spec.queue.room,
        policer: spec.policer,
        shaper: spec.shaper,
        access: spec.access,
    };
    let mut link = Link::new(config, seed);
    if let Capacity::Trace(trace) = &spec.capacity {
        link.set_service(Instant::ZERO, Service::Trace(Arc::clone(trace)));
    }
    link
}

/// A link's timeline during a scenario: outages and rate steps.
#[derive(Debug)]
pub struct LinkSchedule {
    outages: Outages,
    service: Option<Service>,
}

impl LinkSchedule {
    /// The schedule of a scenario that starts at `zero`. `name` is the link's, for the error.
    ///
    /// # Errors
    ///
    /// A list of outages that the link model refuses.
    pub fn new(name: &str, spec: &DirectionSpec, zero: Instant) -> Result<Self, WorldError> {
        let spans = spec.outages.iter().map(|span| (zero + span.start, zero + span.end)).collect();
        let outages = Outages::new(spans).map_err(|error| WorldError::Link {
            link: name.to_owned(),
            cause: error.to_string(),
        })?;
        let service = match &spec.capacity {
            Capacity::Steps { steps, .. } => {
                Some(Service::Steps(Arc::new(steps.starting_at(zero))))
            }
            Capacity::Fixed(_) | Capacity::Trace(_) => None,
        };
        Ok(Self { outages, service })
    }

    /// Applies it to a link from `now` on.
    pub fn begin<P>(self, now: Instant, link: &mut Link<P>) {
        link.set_outages(now, self.outages);
        if let Some(service) = self.service {
            link.set_service(now, service);
        }
    }
}
