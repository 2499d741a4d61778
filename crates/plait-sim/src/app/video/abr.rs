//! Which quality the next segment has: one algorithm per file.

mod buffer;
mod throughput;

use core::fmt::Debug;

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use crate::scenario::video::AbrName;

/// Chooses qualities, which are numbers of rates in rising order.
pub(super) trait Abr: Debug + Send {
    /// A segment arrived: so many bytes in this time.
    fn on_segment(&mut self, bytes: u64, time: Duration);

    /// The quality of the next segment, after `last`, with so much buffered. Before the first
    /// segment `last` is the lowest.
    fn choose(&self, qualities: &[Rate], last: usize, buffered: Duration) -> usize;
}

/// Makes the algorithm of this name; `buffer_max` is the most that is buffered.
pub(super) fn build(name: AbrName, buffer_max: Duration) -> Box<dyn Abr> {
    match name {
        AbrName::Throughput => Box::new(throughput::Throughput::default()),
        AbrName::Buffer => Box::new(buffer::Buffer::new(buffer_max)),
    }
}
