//! The quality that the buffer alone chooses (BBA-0). See `docs/algorithms/abr-buffer.md`.

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use super::Abr;

/// BBA-0's reservoir and cushion: 90 s and 126 s of a buffer of 240 s.
const RESERVOIR: f64 = 90.0 / 240.0;
const CUSHION: f64 = 126.0 / 240.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    buffer_max: Duration,
}

impl Buffer {
    pub(super) fn new(buffer_max: Duration) -> Self {
        Self { buffer_max }
    }
}

impl Abr for Buffer {
    fn on_segment(&mut self, _bytes: u64, _time: Duration) {}

    fn choose(&self, qualities: &[Rate], last: usize, buffered: Duration) -> usize {
        let bits = |at: usize| qualities[at].bits_per_second() as f64;
        let top = qualities.len() - 1;
        let level = buffered.as_secs_f64() / self.buffer_max.as_secs_f64();
        if level <= RESERVOIR {
            return 0;
        }
        if level >= RESERVOIR + CUSHION {
            return top;
        }
        // The map from buffer to rate: a straight line over the cushion.
        let mapped = bits(0) + (bits(top) - bits(0)) * (level - RESERVOIR) / CUSHION;
        if last < top && mapped >= bits(last + 1) {
            (0..=top).rev().find(|at| bits(*at) < mapped).unwrap_or(last)
        } else if last > 0 && mapped <= bits(last - 1) {
            (0..=top).find(|at| bits(*at) > mapped).unwrap_or(last)
        } else {
            last
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(last: usize, buffered_s: f64) -> usize {
        // A buffer of 240 s: the reservoir ends at 90 s, the cushion at 216 s.
        let buffer = Buffer::new(Duration::from_secs(240));
        let qualities = [1, 2, 4, 8].map(Rate::from_mbit);
        buffer.choose(&qualities, last, Duration::from_secs_f64(buffered_s))
    }

    #[test]
    fn the_lowest_in_the_reservoir_and_the_highest_above_the_cushion() {
        for last in 0..4 {
            assert_eq!((choose(last, 90.0), choose(last, 216.0)), (0, 3), "{last}");
        }
    }

    #[test]
    fn between_them_it_changes_only_when_the_line_has_passed_the_next_rate() {
        // 1 Mbit/s at 90 s, one more every 18 s: 2 at 108 s, 4 at 144 s.
        let table = [(0, 107.0, 0), (0, 109.0, 1), (0, 145.0, 2), (1, 140.0, 1), (2, 109.0, 2)];
        for (last, buffered_s, chosen) in table {
            assert_eq!(choose(last, buffered_s), chosen, "{last} at {buffered_s} s");
        }
        assert_eq!(choose(3, 143.0), 2, "below 4: the lowest above the line");
        assert_eq!(choose(2, 107.0), 1, "below 2: the lowest above the line");
    }
}
