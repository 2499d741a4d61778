//! Modulation and coding schemes of 802.11ac and 802.11ax, computed from what the standards build
//! them of: data subcarriers, bits per subcarrier, coding rate, streams, length of a symbol.
//!
//! The signal that a scheme needs comes from Shannon's formula with a gap, not from a table of
//! receivers: `shared-air.md` in `docs/algorithms`.

use plait_proto::time::Duration;

/// A generation of Wi-Fi.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standard {
    /// 802.11ac (VHT), short guard interval.
    #[default]
    Ac,
    /// 802.11ax (HE), guard interval of 0.8 us, one user per frame.
    Ax,
}

impl Standard {
    /// Both by name.
    pub const ALL: [(&'static str, Self); 2] = [("802.11ac", Self::Ac), ("802.11ax", Self::Ax)];

    /// Subframes that a frame may hold and a block acknowledgement may name.
    pub const fn window(self) -> u32 {
        match self {
            Self::Ac => 64,
            Self::Ax => 256,
        }
    }

    /// Length of a symbol with its guard interval, in nanoseconds.
    const fn symbol_nanos(self) -> f64 {
        match self {
            Self::Ac => 3_600.0,
            Self::Ax => 13_600.0,
        }
    }
}

/// Width of a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Width {
    /// 20 MHz.
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
    /// 160 MHz.
    Mhz160,
}

impl Width {
    /// All widths by their megahertz.
    pub const ALL: [(u16, Self); 4] =
        [(20, Self::Mhz20), (40, Self::Mhz40), (80, Self::Mhz80), (160, Self::Mhz160)];

    /// In megahertz.
    pub const fn mhz(self) -> f64 {
        match self {
            Self::Mhz20 => 20.0,
            Self::Mhz40 => 40.0,
            Self::Mhz80 => 80.0,
            Self::Mhz160 => 160.0,
        }
    }

    /// Data subcarriers: of VHT 802.11-2020 clause 21, of HE 802.11ax-2021 clause 27 for one user
    /// over the whole channel.
    const fn subcarriers(self, standard: Standard) -> u32 {
        match (standard, self) {
            (Standard::Ac, Self::Mhz20) => 52,
            (Standard::Ac, Self::Mhz40) => 108,
            (Standard::Ac, Self::Mhz80) => 234,
            (Standard::Ac, Self::Mhz160) => 468,
            (Standard::Ax, Self::Mhz20) => 234,
            (Standard::Ax, Self::Mhz40) => 468,
            (Standard::Ax, Self::Mhz80) => 980,
            (Standard::Ax, Self::Mhz160) => 1960,
        }
    }
}

/// Bits per subcarrier, and numerator and denominator of the coding rate, by number of the scheme.
const SCHEMES: [(u32, u32, u32); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];
/// 802.11ac ends at 256-QAM.
const SCHEMES_OF_AC: usize = 10;
/// A convolutional encoder of 802.11ac carries so much; faster schemes have several.
const ENCODER_BPS_MAX: f64 = 600e6;
/// Distance of a real receiver from Shannon's bound, in decibels.
const GAP_DB: f64 = 6.0;
/// How sharply the loss of a subframe of [`PACKET_BYTES`] rises below what the scheme needs.
const SLOPE_PER_DB: f64 = 2.2;
/// The packet that capacities and losses are computed for.
pub(super) const PACKET_BYTES: u64 = 1500;

/// How a radio sends: standard, width of the channel, spatial streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// Whose schemes.
    pub standard: Standard,
    /// Width of the channel.
    pub width: Width,
    /// Spatial streams, 1 to 4.
    pub streams: u8,
}

/// One scheme of a mode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mcs {
    /// The standard's number of it.
    pub index: u8,
    /// Bits per second while symbols are sent.
    pub rate_bps: f64,
    /// Signal over interference and noise with which half of the subframes of 1500 bytes arrive, in
    /// decibels.
    pub needs_db: f64,
}

impl Mode {
    /// The schemes that the standard allows, slowest first.
    pub fn schemes(self) -> Vec<Mcs> {
        let count = match self.standard {
            Standard::Ac => SCHEMES_OF_AC,
            Standard::Ax => SCHEMES.len(),
        };
        (0..count).filter_map(|index| self.scheme(index)).collect()
    }

    fn scheme(self, index: usize) -> Option<Mcs> {
        let (bits, numerator, denominator) = SCHEMES[index];
        let coded = self.width.subcarriers(self.standard) * bits * u32::from(self.streams);
        let coding = f64::from(numerator) / f64::from(denominator);
        let per_symbol = f64::from(coded) * coding;
        let rate_bps = per_symbol / self.standard.symbol_nanos() * 1e9;
        if self.standard == Standard::Ac {
            // 802.11-2020 clause 21: each encoder gets whole blocks of the code in each symbol.
            let encoders = (rate_bps / ENCODER_BPS_MAX).ceil().max(1.0) as u32;
            if !coded.is_multiple_of(encoders) || !(coded / encoders).is_multiple_of(denominator) {
                return None;
            }
        }
        let needs_db = needed_db(f64::from(bits) * coding);
        Some(Mcs { index: index as u8, rate_bps, needs_db })
    }

    /// Time before the data: the legacy preamble, then training and signalling of the standard's
    /// own, with one training symbol for each stream (802.11-2020 clause 21, 802.11ax-2021 clause
    /// 27).
    pub fn preamble(self) -> Duration {
        let streams = u64::from(self.streams);
        Duration::from_micros(match self.standard {
            Standard::Ac => 36 + 4 * streams,
            Standard::Ax => 36 + 8 * streams,
        })
    }
}

/// Signal that `bits` per subcarrier need: Shannon's C = B log2(1 + SINR), and the gap.
fn needed_db(bits: f64) -> f64 {
    10.0 * (bits.exp2() - 1.0).log10() + GAP_DB
}

/// Share of subframes of `bytes` that arrive at this signal over interference and noise, with a
/// scheme that needs `needs_db`.
pub(super) fn success(sinr_db: f64, needs_db: f64, bytes: u64) -> f64 {
    let of_full = 1.0 / (1.0 + (-(sinr_db - needs_db) * SLOPE_PER_DB).exp());
    of_full.powf(bytes as f64 / PACKET_BYTES as f64)
}

/// Share of preambles that are recognised: sent like the slowest scheme, and short.
pub(super) fn preamble_success(sinr_db: f64) -> f64 {
    success(sinr_db, needed_db(0.5), PREAMBLE_BYTES)
}

/// A preamble's signalling, in bytes.
const PREAMBLE_BYTES: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(standard: Standard, width: Width, streams: u8) -> Vec<f64> {
        let schemes = Mode { standard, width, streams }.schemes();
        schemes.iter().map(|mcs| (mcs.rate_bps / 1e5).round() / 10.0).collect()
    }

    #[test]
    fn rates_are_those_of_the_standards() {
        // As both standards print them for 80 MHz and one stream.
        let ac = mbit(Standard::Ac, Width::Mhz80, 1);
        assert_eq!(ac, [32.5, 65.0, 97.5, 130.0, 195.0, 260.0, 292.5, 325.0, 390.0, 433.3]);
        let ax = mbit(Standard::Ax, Width::Mhz80, 1);
        let printed =
            [36.0, 72.1, 108.1, 144.1, 216.2, 288.2, 324.3, 360.3, 432.4, 480.4, 540.4, 600.5];
        assert_eq!(ax, printed);
        assert_eq!(mbit(Standard::Ac, Width::Mhz40, 2).last(), Some(&400.0));
    }

    #[test]
    fn schemes_that_the_standard_excludes_are_absent() {
        let indices = |width, streams| -> Vec<u8> {
            let mode = Mode { standard: Standard::Ac, width, streams };
            mode.schemes().iter().map(|mcs| mcs.index).collect()
        };
        // 20 MHz has no MCS 9 but with three streams; 80 MHz with three streams has no MCS 6.
        assert!(!indices(Width::Mhz20, 1).contains(&9) && !indices(Width::Mhz20, 2).contains(&9));
        assert!(indices(Width::Mhz20, 3).contains(&9));
        assert!(!indices(Width::Mhz80, 3).contains(&6));
        assert_eq!(indices(Width::Mhz80, 1).len(), 10);
    }

    #[test]
    fn faster_schemes_need_more_signal() {
        for (_, standard) in Standard::ALL {
            for (_, width) in Width::ALL {
                let schemes = Mode { standard, width, streams: 1 }.schemes();
                let rises = |a: &Mcs, b: &Mcs| a.rate_bps < b.rate_bps && a.needs_db < b.needs_db;
                assert!(schemes.is_sorted_by(rises), "{standard:?} {width:?}");
            }
        }
        assert!(success(20.0, 15.0, 1500) > 0.999 && success(10.0, 15.0, 1500) < 0.001);
        assert!(success(15.0, 15.0, 100) > success(15.0, 15.0, 1500));
    }
}
