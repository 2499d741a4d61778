//! A foreign transmitter beside one receiver: a stream of datagrams at a constant rate, each a
//! frame of its own. It senses nobody, and the radio that sends to that receiver does not sense it:
//! their frames collide there.

use plait_proto::time::{Duration, Instant};

use crate::packet::Way;
use crate::prng::Prng;

/// What an interferer does to a subframe in whose middle it is on the air.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effect {
    /// Destroys it, at any scheme.
    Destroys,
    /// Is received beside it at this power, in dBm.
    Power(f64),
}

/// A foreign transmitter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interferer {
    /// The radio at whose receiver it is.
    pub radio: usize,
    /// The direction that is received there.
    pub way: Way,
    /// One frame of its own in each period, at a time by chance.
    pub period: Duration,
    /// How long the frame is; the whole period at most.
    pub air: Duration,
    /// What it does.
    pub effect: Effect,
    /// Whether it sends.
    pub on: bool,
    /// Decides the times of its frames.
    pub seed: u64,
}

impl Interferer {
    /// Whether a frame of it is on the air.
    pub(super) fn is_sending(&self, at: Instant) -> bool {
        if !self.on {
            return false;
        }
        let (period, air) = (nanos(self.period), nanos(self.air));
        let (number, since) = (at.as_nanos() / period, at.as_nanos() % period);
        // A generator of its own for each period: any time can be asked for, in any order.
        let mut prng = Prng::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let begin = prng.up_to(period.saturating_sub(air));
        (begin..begin + air).contains(&since)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_its_share_of_the_time() {
        let us = Duration::from_micros;
        let of = |air, on| {
            let interferer = Interferer {
                radio: 0,
                way: Way::Down,
                period: us(588),
                air: us(air),
                effect: Effect::Destroys,
                on,
                seed: 3,
            };
            let samples = 200_000;
            let sends =
                |at: &u64| interferer.is_sending(Instant::from_nanos(at * 2_741 + at * at % 977));
            (0..samples).filter(sends).count() as f64 / samples as f64
        };
        assert!((of(294, true) - 0.5).abs() < 0.01, "{}", of(294, true));
        assert!((of(588, true), of(294, false)) == (1.0, 0.0));
    }
}
