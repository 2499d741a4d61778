//! `[congestion]`: the controller of each path.

use std::time::Duration;

use plait_proto::congestion::{
    Adv, Algorithm, Backoff, ControllerConfig, EdinburghConfig, Repair, SlowStart, WhiteHaulConfig,
};

use super::Tuning;
use crate::form::{FineMillis, List, Maybe, Named, Whole, WholeOr, Words};
use crate::option::{Field, Only, Options};
use crate::problem::Problem;

/// `[congestion]`, as it stands in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// The controller; `None` leaves the loop open.
    algorithm: Option<Algorithm>,
    slow_start: Option<SlowStart>,
    window_bytes: u64,
    repairs: Vec<Repair>,
    /// In packets; `None`: measured.
    adv: Option<u32>,
    delay: Duration,
    edinburgh: EdinburghConfig,
}

impl From<Option<ControllerConfig>> for Loop {
    fn from(config: Option<ControllerConfig>) -> Self {
        let ControllerConfig { algorithm, slow_start, fixed_window_bytes, whitehaul, edinburgh } =
            config.unwrap_or_default();
        let (adv, delay) = match algorithm {
            Algorithm::WhiteHaul => (whitehaul.adv, whitehaul.delay),
            _ => (edinburgh.adv, edinburgh.delay),
        };
        Self {
            algorithm: config.map(|_| algorithm),
            slow_start,
            window_bytes: fixed_window_bytes,
            repairs: whitehaul.repairs.iter().collect(),
            adv: match adv {
                Adv::Segments(segments) => Some(segments),
                Adv::Auto => None,
            },
            delay,
            edinburgh,
        }
    }
}

impl From<Loop> for Option<ControllerConfig> {
    fn from(of: Loop) -> Self {
        let adv = of.adv.map_or(Adv::Auto, Adv::Segments);
        let repairs = of.repairs.iter().copied().collect();
        let mut config = ControllerConfig::from(of.algorithm?);
        config.slow_start = of.slow_start;
        match config.algorithm {
            Algorithm::Fixed => config.fixed_window_bytes = of.window_bytes,
            Algorithm::WhiteHaul => {
                config.whitehaul = WhiteHaulConfig { adv, delay: of.delay, repairs };
            }
            Algorithm::Edinburgh => {
                config.edinburgh = EdinburghConfig { adv, delay: of.delay, ..of.edinburgh };
            }
            _ => {}
        }
        Some(config)
    }
}

impl Default for Loop {
    fn default() -> Self {
        Tuning::default().congestion.into()
    }
}

/// Values of `adv`, in packets.
pub const ADV: WholeOr<u32> = WholeOr { whole: Whole::new(2, 100_000, "packets"), word: "auto" };

/// The largest `delay_ms`.
pub const DELAY_MS_MAX: u32 = 1000;

/// Values of `repairs`.
pub const REPAIRS: List<Repair> = List {
    told: "list of `ssthresh`, `adv`, `delay`, `latch`, `short-samples`, `ageing`, `remainder`, \
           `beta`, `unused-window`, `count` and `rtt-max`",
    read: |name| {
        name.parse().map_err(|_| Problem::choice(name, Repair::ALL.map(Repair::name).into_iter()))
    },
};

/// The options of `[congestion]`.
pub const CONGESTION: Options<Loop> = &[
    &Field::new(
        "algorithm",
        "the controller of each path, or `none` for an open loop",
        Named {
            all: &[
                None,
                Some(Algorithm::NewReno),
                Some(Algorithm::Cubic),
                Some(Algorithm::CubicLinux),
                Some(Algorithm::Gauge),
                Some(Algorithm::Lia),
                Some(Algorithm::Olia),
                Some(Algorithm::Balia),
                Some(Algorithm::Illinois),
                Some(Algorithm::WhiteHaul),
                Some(Algorithm::Edinburgh),
                Some(Algorithm::Fixed),
            ],
            name: |controller| controller.map_or("none", Algorithm::name),
        },
        |config: &mut Loop| &mut config.algorithm,
    )
    .absent("`gauge` with `earliest-delivery`, `cheapest-first`, `blest` and `ecf`, else `none`"),
    &Field::new(
        "slow_start",
        "how the first slow start ends",
        Maybe(Named { all: &SlowStart::ALL, name: SlowStart::name }),
        |config: &mut Loop| &mut config.slow_start,
    )
    .absent("`hystart` for `cubic` and `cubic-linux`, `hystart++` for `edinburgh`, else `standard`")
    .only(Only {
        decided_by: "algorithm",
        against: |config| {
            let own = config.algorithm.and_then(Algorithm::default_slow_start);
            own.is_none().then(|| other_controller(config.algorithm))
        },
        belongs_to: SLOW_STARTERS,
    }),
    &Field::new(
        "window_bytes",
        "window of each path",
        Whole::new(1500, 1 << 30, "bytes"),
        |config: &mut Loop| &mut config.window_bytes,
    )
    .only(Only {
        decided_by: "algorithm",
        against: |config| match config.algorithm {
            Some(Algorithm::Fixed) => None,
            other => Some(other_controller(other)),
        },
        belongs_to: "algorithm = \"fixed\"",
    }),
    &Field::new(
        "repairs",
        "which faults of the published code are repaired; \
         [whitehaul](../algorithms/whitehaul.md) says what each is, and of a patent application",
        REPAIRS,
        |config: &mut Loop| &mut config.repairs,
    )
    .only(Only {
        decided_by: "algorithm",
        against: |config| match config.algorithm {
            Some(Algorithm::WhiteHaul) => None,
            other => Some(other_controller(other)),
        },
        belongs_to: "algorithm = \"whitehaul\"",
    }),
    &Field::new(
        "adv",
        "the window that is enough: it grows fast below, slowly above, and returns to it when \
         there is a queue; `auto` measures it, as the repair `adv` does",
        ADV,
        |config: &mut Loop| &mut config.adv,
    )
    .only(Only {
        decided_by: "algorithm",
        against: |config| match config.algorithm {
            Some(Algorithm::WhiteHaul | Algorithm::Edinburgh) => None,
            other => Some(other_controller(other)),
        },
        belongs_to: "algorithm = \"whitehaul\" or \"edinburgh\"",
    }),
    &Field::new(
        "delay_ms",
        "the mean queueing delay of a round trip above which there is a queue",
        FineMillis { high: DELAY_MS_MAX },
        |config: &mut Loop| &mut config.delay,
    )
    .only(Only {
        decided_by: "algorithm",
        against: |config| match config.algorithm {
            Some(Algorithm::Edinburgh) => None,
            Some(Algorithm::WhiteHaul) if config.repairs.contains(&Repair::Delay) => None,
            Some(Algorithm::WhiteHaul) => Some("repairs without \"delay\"".to_owned()),
            other => Some(other_controller(other)),
        },
        belongs_to: "algorithm = \"edinburgh\", or \"whitehaul\" with repairs = [\"delay\"]",
    }),
    &Field::new(
        "alpha_max",
        "packets by which the window grows per round trip below `adv`",
        Whole::new(1, 1000, "packets"),
        |config: &mut Loop| &mut config.edinburgh.alpha_max,
    )
    .only(EDINBURGH),
    &Field::new(
        "theta",
        "round trips without a queue after which it grows so fast again",
        Whole::new(1, 1000, ""),
        |config: &mut Loop| &mut config.edinburgh.theta,
    )
    .only(EDINBURGH),
    &Field::new(
        "win_thresh",
        "below this window it grows by one packet per round trip",
        Whole::new(0, 10_000, "packets"),
        |config: &mut Loop| &mut config.edinburgh.win_thresh,
    )
    .only(EDINBURGH),
    &Field::new(
        "backoff",
        "what a loss takes of the window: a `constant` share, or an eighth to a half by `delay`, \
         as Illinois",
        Words(&[("constant", Backoff::Constant), ("delay", Backoff::Delay)]),
        |config: &mut Loop| &mut config.edinburgh.backoff,
    )
    .only(EDINBURGH),
    &Field::new(
        "beta_64ths",
        "the constant share, in 64ths",
        Whole::new(1, 63, ""),
        |config: &mut Loop| &mut config.edinburgh.beta_64ths,
    )
    .only(Only {
        decided_by: "algorithm",
        against: |config| match config.algorithm {
            Some(Algorithm::Edinburgh) => match config.edinburgh.backoff {
                Backoff::Constant => None,
                Backoff::Delay => Some("backoff = \"delay\"".to_owned()),
            },
            other => Some(other_controller(other)),
        },
        belongs_to: "algorithm = \"edinburgh\" with backoff = \"constant\"",
    }),
];

const SLOW_STARTERS: &str = "algorithm = \"cubic\", \"cubic-linux\", \"new-reno\", \"lia\", \
    \"olia\", \"balia\", \"illinois\", \"whitehaul\" or \"edinburgh\"";

const EDINBURGH: Only<Loop> = Only {
    decided_by: "algorithm",
    against: |config| match config.algorithm {
        Some(Algorithm::Edinburgh) => None,
        other => Some(other_controller(other)),
    },
    belongs_to: "algorithm = \"edinburgh\"",
};

fn other_controller(controller: Option<Algorithm>) -> String {
    match controller {
        None => "no congestion control".to_owned(),
        Some(algorithm) => format!("algorithm = \"{algorithm}\""),
    }
}
