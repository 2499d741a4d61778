//! From figures that are printed to what the medium is made from: couplings from shares of the air,
//! the scale of a radio's rates from its capacity, an interferer's frames from the share that it
//! takes.

use plait_proto::time::{Duration, Instant};

use super::aggregate::{ACCESS_MEAN, exchange, subframe};
use super::interferer::{Effect, Interferer};
use super::mcs::{PACKET_BYTES, success};
use super::medium::Medium;
use super::radio::RadioConfig;
use super::rate_control::RateControl;
use crate::packet::Way;

/// Fastest scheme of a radio that is to have a given capacity, at most.
const RATE_BPS_MAX: f64 = 1e11;
/// How long a trial of an interferer lasts, in virtual time.
const TRIAL: Duration = Duration::from_secs(2);
/// Trials until the share is met to about a thousandth.
const TRIALS: usize = 12;

/// What two radios that always have something to send get, as shares of what each gets alone, when
/// the first senses `first` of the other's frames and the other `second` of the first's: the
/// solution of f1 = 1 - first f2 and f2 = 1 - second f1. With both 1 every split that fills the air
/// is one; then it is the even one.
pub fn shares(first: f64, second: f64) -> (f64, f64) {
    let rest = 1.0 - first * second;
    if rest <= 0.0 { (0.5, 0.5) } else { ((1.0 - first) / rest, (1.0 - second) / rest) }
}

/// The couplings with which two such radios get these shares; `None` where none between 0 and 1
/// gives them.
pub fn couplings(first: f64, second: f64) -> Option<(f64, f64)> {
    let found = ((1.0 - first) / second, (1.0 - second) / first);
    let valid = |coupling: f64| (0.0..=1.0).contains(&coupling);
    (valid(found.0) && valid(found.1)).then_some(found)
}

/// What a radio link carries alone, without interference, in one direction, when packets of 1500
/// bytes always wait: bits per second at the IP layer.
pub fn capacity_bps(config: &RadioConfig) -> f64 {
    let clean_db = config.clean_db();
    let scheme = RateControl::new().choose(&config.schemes(), clean_db);
    carried_bps(config, scheme.rate_bps) * success(clean_db, scheme.needs_db, PACKET_BYTES)
}

/// The same at this rate without losses.
fn carried_bps(config: &RadioConfig, rate_bps: f64) -> f64 {
    let each = subframe(PACKET_BYTES, rate_bps);
    let packets = config.aggregate.fitting(each);
    let whole = ACCESS_MEAN + exchange(config.mode.preamble(), each * packets);
    f64::from(packets) * PACKET_BYTES as f64 * 8.0 / whole.as_secs_f64()
}

/// The scale of the standard's rates with which a radio link carries `bps` at its fastest scheme;
/// `None` when no rate does, because of the time around each frame.
pub fn rate_scale(config: &RadioConfig, bps: f64) -> Option<f64> {
    let fastest = config.mode.schemes().last()?.rate_bps;
    if carried_bps(config, RATE_BPS_MAX) < bps {
        return None;
    }
    let (mut low, mut high) = (bps, RATE_BPS_MAX);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if carried_bps(config, middle) < bps { low = middle } else { high = middle }
    }
    Some(high / fastest)
}

/// How long the frames of an interferer must be, one in each period, so that a radio link that
/// always has something to send carries the share 1 - `taken` of what it carries without: found by
/// trials on a medium of its own. A window that stands still costs more than the subframes that are
/// destroyed, so this is less than the share of the period.
pub fn interferer_air(config: &RadioConfig, taken: f64, period: Duration) -> Duration {
    if taken <= 0.0 {
        return Duration::ZERO;
    }
    let clean = trial(config, None);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..TRIALS {
        let middle = f64::midpoint(low, high);
        let left = trial(config, Some((period.mul_f64(middle), period))) / clean;
        if left > 1.0 - taken { low = middle } else { high = middle }
    }
    period.mul_f64(f64::midpoint(low, high))
}

/// Bytes that a radio link carries in a trial, with frames of an interferer: how long, how often.
fn trial(config: &RadioConfig, frames: Option<(Duration, Duration)>) -> f64 {
    const SEED: u64 = 0x0061_6972;
    let mut medium = Medium::new(&[(*config, SEED)]);
    if let Some((air, period)) = frames {
        let (radio, way, effect) = (0, Way::Down, Effect::Destroys);
        let interferer = Interferer { radio, way, period, air, effect, on: true, seed: SEED };
        medium.add_interferer(interferer);
    }
    saturated(&mut medium, TRIAL)[0] as f64
}

/// Bytes that each radio link carries down in this time when packets of 1500 bytes always wait for
/// all of them.
pub fn saturated(medium: &mut Medium<()>, time: Duration) -> Vec<u64> {
    let (mut now, end) = (Instant::ZERO, Instant::ZERO + time);
    let mut carried = vec![0; medium.count()];
    let fill = |medium: &mut Medium<()>, now, radio| {
        let room = medium.config(radio).queue_packets;
        while medium.waiting_packets(radio, Way::Down) < room {
            medium.send(now, radio, Way::Down, PACKET_BYTES, ());
        }
    };
    (0..medium.count()).for_each(|radio| fill(medium, now, radio));
    while let Some(next) = medium.next_event().filter(|next| *next <= end) {
        now = now.max(next);
        while let Some(arrival) = medium.poll(now, Way::Down) {
            carried[arrival.radio] += arrival.bytes;
            fill(medium, now, arrival.radio);
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::super::mcs::Width;
    use super::super::radio::tests::near;
    use super::*;

    #[test]
    fn shares_and_couplings_are_each_others_inverse() {
        // 003, table 5.1 clean: 149/229 and 258/261.
        let (first, second) = couplings(149.0 / 229.0, 258.0 / 261.0).unwrap();
        assert!((first - 0.3534).abs() < 5e-4 && (second - 0.0177).abs() < 5e-4);
        let (f1, f2) = shares(first, second);
        assert!((f1 - 149.0 / 229.0).abs() < 1e-9 && (f2 - 258.0 / 261.0).abs() < 1e-9);
        assert_eq!((shares(0.0, 0.0), shares(1.0, 1.0)), ((1.0, 1.0), (0.5, 0.5)));
        assert_eq!(couplings(1.1, 0.9), None, "more than alone");
    }

    #[test]
    fn the_capacity_is_what_a_saturated_radio_carries() {
        for width in [Width::Mhz20, Width::Mhz40, Width::Mhz80] {
            let config = near(width);
            let mut medium = Medium::new(&[(config, 5)]);
            let time = Duration::from_secs(2);
            let carried = saturated(&mut medium, time)[0] as f64 * 8.0 / time.as_secs_f64();
            let off = carried / capacity_bps(&config) - 1.0;
            assert!(off.abs() < 0.005, "{width:?} {carried} {off}");
        }
    }

    #[test]
    fn a_radio_is_scaled_to_a_capacity() {
        for mbit in [20.0, 61.9, 229.0, 1000.0] {
            let config = near(Width::Mhz80);
            let rate_scale = rate_scale(&config, mbit * 1e6).unwrap();
            let scaled = capacity_bps(&RadioConfig { rate_scale, ..config }) / 1e6;
            assert!((scaled / mbit - 1.0).abs() < 1e-3, "{mbit} {scaled}");
        }
        assert_eq!(rate_scale(&near(Width::Mhz80), 9e9), None);
    }
}
