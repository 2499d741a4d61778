//! A link's configuration.

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use super::access::Access;
use super::bucket::Bucket;
use super::loss::Loss;
use super::queue::{Discipline, Room};

/// Time that the default queue holds at the link's rate.
pub const DEFAULT_QUEUE_TIME: Duration = Duration::from_millis(50);

/// One direction of a link, without what changes over time: a trace, rate steps and outages are set
/// on the link itself ([`Link::set_service`], [`Link::set_outages`]).
///
/// [`Link::set_service`]: super::Link::set_service
/// [`Link::set_outages`]: super::Link::set_outages
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// Rate of the transmitter at the IP layer. At rate zero nothing leaves.
    pub rate: Rate,
    /// One-way propagation delay, after the transmitter.
    pub delay: Duration,
    /// Largest extra delay.
    pub jitter: Duration,
    /// How the extra delay varies: if false, slowly, so that packets are never reordered; if true,
    /// each packet has its own, uniform from zero to `jitter`, and may overtake others.
    pub reorder: bool,
    /// Packets lost at random, after the transmitter.
    pub loss: Loss,
    /// Which waiting packets are dropped.
    pub discipline: Discipline,
    /// How much may wait for the transmitter. A packet that does not fit any more is dropped.
    pub queue: Room,
    /// A bucket at the entrance: a packet that finds too few tokens is dropped.
    pub policer: Option<Bucket>,
    /// A bucket behind the queue: a packet waits for its tokens before it is sent.
    pub shaper: Option<Bucket>,
    /// When the transmitter may send.
    pub access: Access,
}

impl LinkConfig {
    /// A link without jitter and loss whose drop-tail queue holds [`DEFAULT_QUEUE_TIME`].
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            jitter: Duration::ZERO,
            reorder: false,
            loss: Loss::NONE,
            discipline: Discipline::DropTail,
            queue: Room::Bytes(rate.bytes_in(DEFAULT_QUEUE_TIME)),
            policer: None,
            shaper: None,
            access: Access::Always,
        }
    }

    /// One direction of a symmetric link whose round trip without queueing takes `rtt_min` to
    /// `rtt_max`, half of it in each direction.
    pub fn with_rtt(rate: Rate, rtt_min: Duration, rtt_max: Duration) -> Self {
        Self { jitter: rtt_max.saturating_sub(rtt_min) / 2, ..Self::new(rate, rtt_min / 2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_is_split_in_two() {
        let ms = Duration::from_millis;
        let lte = LinkConfig::with_rtt(Rate::from_mbit(60), ms(25), ms(45));
        assert_eq!(lte.delay, Duration::from_micros(12_500));
        assert_eq!(lte.jitter, ms(10));
        assert_eq!(lte.queue, Room::Bytes(375_000));
    }
}
