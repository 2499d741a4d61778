//! Which scheme a radio sends with: the one that brings most at the signal that it has seen.
//!
//! The receiver's view is known, as with a driver that is told the signal in each acknowledgement;
//! nothing is probed. Interference is known by its mean share of the last frames.

use super::mcs::{Mcs, PACKET_BYTES, success};

/// Weight of a new frame in the mean share.
const NEW_WEIGHT: f64 = 1.0 / 8.0;

/// One direction's choice of schemes.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    /// Share of subframes that met interference, a moving mean.
    share: f64,
    /// Signal over interference and noise while there is interference, in decibels.
    disturbed_db: f64,
}

impl RateControl {
    pub(super) fn new() -> Self {
        Self { share: 0.0, disturbed_db: 0.0 }
    }

    /// Notes the share of a frame's subframes that met interference, and the worst signal then.
    pub(super) fn note(&mut self, share: f64, disturbed_db: f64) {
        self.share += (share - self.share) * NEW_WEIGHT;
        if share > 0.0 {
            self.disturbed_db = disturbed_db;
        }
    }

    /// The scheme of the next frame, at this signal without interference. `schemes` are not empty,
    /// slowest first.
    pub(super) fn choose(&self, schemes: &[Mcs], clean_db: f64) -> Mcs {
        let gain = |mcs: &Mcs| {
            let of = |sinr_db| success(sinr_db, mcs.needs_db, PACKET_BYTES);
            let arrives = (1.0 - self.share) * of(clean_db) + self.share * of(self.disturbed_db);
            mcs.rate_bps * arrives
        };
        let slowest = schemes[0];
        let better = |best: (Mcs, f64), mcs: &Mcs| {
            let brings = gain(mcs);
            if brings > best.1 { (*mcs, brings) } else { best }
        };
        schemes.iter().fold((slowest, gain(&slowest)), better).0
    }
}

#[cfg(test)]
mod tests {
    use super::super::mcs::{Mode, Standard, Width};
    use super::*;

    fn index(control: &RateControl, clean_db: f64) -> u8 {
        let mode = Mode { standard: Standard::Ac, width: Width::Mhz80, streams: 1 };
        control.choose(&mode.schemes(), clean_db).index
    }

    #[test]
    fn the_scheme_rises_with_the_signal() {
        let control = RateControl::new();
        let chosen: Vec<u8> = (-5..45).map(|db| index(&control, db.into())).collect();
        assert!(chosen.is_sorted(), "{chosen:?}");
        assert_eq!((chosen.first(), chosen.last()), (Some(&0), Some(&9)));
    }

    #[test]
    fn much_interference_lowers_it_and_a_little_does_not() {
        let mut control = RateControl::new();
        control.note(0.3, 12.0);
        assert_eq!(index(&control, 40.0), 9);
        for _ in 0..50 {
            control.note(0.9, 12.0);
        }
        let lowered = index(&control, 40.0);
        assert!((1..6).contains(&lowered), "{lowered}");
        for _ in 0..100 {
            control.note(0.0, 0.0);
        }
        assert_eq!(index(&control, 40.0), 9);
    }
}
