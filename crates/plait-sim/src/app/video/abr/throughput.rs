//! The quality that the recent download rate allows. See `docs/algorithms/abr-throughput.md`.

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use super::Abr;

/// Half-lives of the two averages, in seconds of downloading.
const HALF_LIVES_S: [f64; 2] = [2.0, 5.0];
/// What a quality may take of the estimate to be kept, and to be changed up to.
const KEPT: f64 = 0.95;
const RISEN_TO: f64 = 0.85;
/// Before so many bytes have come the estimate is not trusted.
const BYTES_MIN: u64 = 128_000;
/// The estimate until then.
const FIRST_BPS: f64 = 1e6;

/// An average of rates, each weighed by the time for which it was seen; older ones count half
/// after each half-life.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    weighed_bps: f64,
    weight: f64,
}

impl Average {
    fn add(&mut self, bps: f64, seconds: f64, half_life_s: f64) {
        let kept = 0.5_f64.powf(seconds / half_life_s);
        self.weighed_bps = self.weighed_bps * kept + bps * (1.0 - kept);
        self.weight = self.weight * kept + (1.0 - kept);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throughput {
    averages: [Average; 2],
    bytes: u64,
}

impl Throughput {
    fn estimate_bps(&self) -> f64 {
        if self.bytes < BYTES_MIN {
            return FIRST_BPS;
        }
        let each = self.averages.iter().map(|average| average.weighed_bps / average.weight);
        each.fold(f64::INFINITY, f64::min)
    }
}

impl Abr for Throughput {
    fn on_segment(&mut self, bytes: u64, time: Duration) {
        let seconds = time.as_secs_f64().max(1e-3);
        self.bytes += bytes;
        for (average, half_life_s) in self.averages.iter_mut().zip(HALF_LIVES_S) {
            average.add(bytes as f64 * 8.0 / seconds, seconds, half_life_s);
        }
    }

    fn choose(&self, qualities: &[Rate], last: usize, _buffered: Duration) -> usize {
        let estimate_bps = self.estimate_bps();
        let fits =
            |at: usize, share: f64| qualities[at].bits_per_second() as f64 <= estimate_bps * share;
        if !fits(last, KEPT) {
            return (0..last).rev().find(|at| fits(*at, KEPT)).unwrap_or(0);
        }
        (last + 1..qualities.len()).rev().find(|at| fits(*at, RISEN_TO)).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit_for(throughput: &mut Throughput, mbit: u64, seconds: u64) {
        throughput.on_segment(mbit * 125_000 * seconds, Duration::from_secs(seconds));
    }

    fn choose(throughput: &Throughput, last: usize) -> usize {
        let qualities = [1, 2, 4, 8].map(Rate::from_mbit);
        throughput.choose(&qualities, last, Duration::ZERO)
    }

    #[test]
    fn the_first_samples_count_fully() {
        let mut throughput = Throughput::default();
        mbit_for(&mut throughput, 10, 1);
        assert!((throughput.estimate_bps() - 10e6).abs() < 1.0);
    }

    #[test]
    fn a_fall_counts_at_once_and_a_rise_after_a_while() {
        let mut throughput = Throughput::default();
        mbit_for(&mut throughput, 8, 60);
        mbit_for(&mut throughput, 2, 2);
        // Half of the quick average is new: 5 Mbit/s; the slow one has 6.55.
        assert!((throughput.estimate_bps() - 5e6).abs() < 1e4, "{}", throughput.estimate_bps());
        mbit_for(&mut throughput, 2, 60);
        mbit_for(&mut throughput, 8, 2);
        // Now the slow one is the lower: 2 + 6 · (1 - 2^-0.4).
        let due = 2e6 + 6e6 * (1.0 - 0.5_f64.powf(0.4));
        assert!((throughput.estimate_bps() - due).abs() < 1e4, "{}", throughput.estimate_bps());
    }

    #[test]
    fn a_quality_is_kept_to_0_95_and_reached_from_0_85() {
        let at = |kbit: u64| {
            let mut throughput = Throughput::default();
            throughput.on_segment(kbit * 125 * 60, Duration::from_secs(60));
            throughput
        };
        // 4 Mbit/s: kept down to 4.21, reached from 4.71 on.
        assert_eq!((choose(&at(4300), 2), choose(&at(4300), 1)), (2, 1));
        assert_eq!((choose(&at(4800), 1), choose(&at(4150), 2)), (2, 1));
        assert_eq!((choose(&at(100_000), 0), choose(&at(100), 3)), (3, 0));
    }

    #[test]
    fn little_data_is_not_trusted() {
        let mut throughput = Throughput::default();
        throughput.on_segment(100_000, Duration::from_millis(1));
        assert_eq!(choose(&throughput, 0), 0);
    }
}
