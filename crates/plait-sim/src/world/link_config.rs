//! From a scenario's words about a link to the link model's.

use std::sync::Arc;

use plait_proto::time::Instant;

use crate::error::WorldError;
use crate::link::{Discipline, Link, LinkConfig, Loss, Outages, Service};
use crate::scenario::link::{Capacity, DirectionSpec, LossSpec, QueueSpec};

/// An empty link of one direction's kind, without its outages. A trace begins with the world, which
/// is before the scenario: the gateways speak first.
pub fn link<P>(spec: &DirectionSpec, seed: u64) -> Link<P> {
    let loss = match spec.loss {
        LossSpec::Bernoulli(ratio) => Loss::Bernoulli(ratio),
        LossSpec::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }
        }
    };
    let (discipline, queue_bytes) = match spec.queue {
        QueueSpec::DropTail { bytes } => (Discipline::DropTail, bytes),
        QueueSpec::CoDel { bytes } => (Discipline::CoDel, bytes),
    };
    let config = LinkConfig {
        rate: spec.capacity.mean_rate(),
        delay: spec.delay,
        jitter: spec.jitter,
        reorder: spec.reorder,
        loss,
        discipline,
        queue_bytes,
    };
    let mut link = Link::new(config, seed);
    if let Capacity::Trace(trace) = &spec.capacity {
        link.set_service(Instant::ZERO, Service::Trace(Arc::clone(trace)));
    }
    link
}

/// The outages of a scenario that started at `zero`. `name` is the link's, for the error.
///
/// # Errors
///
/// A list that the link model refuses.
pub fn outages(name: &str, spec: &DirectionSpec, zero: Instant) -> Result<Outages, WorldError> {
    let spans = spec.outages.iter().map(|span| (zero + span.start, zero + span.end)).collect();
    Outages::new(spans)
        .map_err(|error| WorldError::Link { link: name.to_owned(), cause: error.to_string() })
}
