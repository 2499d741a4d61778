//! `[scheduler]`, `[congestion]` and `[resequencer]`: how bonds behave, in a gateway's file and a
//! scenario's `[bond]` alike.

use std::time::Duration;

use plait_proto::config::{LossDetection, Order};
use plait_proto::congestion::{
    Adv, Algorithm as Controller, Backoff, ControllerConfig, EdinburghConfig, Repair, SlowStart,
    WhiteHaulConfig,
};
use plait_proto::resequencer::{LatePolicy, ResequencerConfig, Timer};
use plait_proto::scheduler::{
    Algorithm, DwdMode, SchedulerConfig, SmallFlows, WeightRounding, WeightUnit, WeightsAdapt,
};
use plait_proto::wire::dscp::Dscps;

use crate::Bounds;
use crate::form::{FineMillis, List, Maybe, Named, Number, Time, Whole, WholeList, WholeOr, Words};
use crate::option::{self, Field, Only, Options};
use crate::problem::Problem;
use crate::section::Section;

/// How bonds behave.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuning {
    /// Picks the path of each packet that this gateway sends.
    pub scheduler: SchedulerConfig,
    /// The controller of each path over which this gateway sends; `None`: open loop.
    pub congestion: Option<ControllerConfig>,
    /// Which packets wait for which at the peer's egress.
    pub order: Order,
    /// Classes of packets that wait for none.
    pub unordered: Dscps,
    /// How long they wait at this side's egress, and how many.
    pub resequencer: ResequencerConfig,
    /// How this side's egress finds losses.
    pub loss_detection: LossDetection,
}

impl Tuning {
    /// How often this side's egress reports losses.
    pub fn report_interval(&self) -> Duration {
        Duration::from_millis(self.scheduler.adaptive_wrr.t_report_ms.into())
    }

    /// Writes the sections in full; `outer` stands before their names, as in `bond.`.
    pub fn write(&self, out: &mut String, outer: &str) {
        let header = |name: &str| format!("[{outer}{name}]");
        option::write(out, &header("scheduler"), SCHEDULER, &self.scheduler);
        option::write(out, &header("congestion"), CONGESTION, &Loop::from(self.congestion));
        option::write(out, &header("resequencer"), RESEQUENCER, &Egress::from(self));
    }
}

impl From<SchedulerConfig> for Tuning {
    /// A scheduler with the defaults that belong to it.
    fn from(scheduler: SchedulerConfig) -> Self {
        Self {
            congestion: scheduler.algorithm.default_congestion(),
            order: Order::default(),
            unordered: Dscps::default(),
            resequencer: ResequencerConfig::default(),
            loss_detection: LossDetection::default(),
            scheduler,
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        SchedulerConfig::default().into()
    }
}

/// Reads the sections. Use what it returns only when no problem was noted.
pub fn read(
    mut scheduler: Section<'_>,
    mut congestion: Section<'_>,
    mut resequencer: Section<'_>,
) -> Tuning {
    let mut config = SchedulerConfig::default();
    option::read(SCHEDULER, &mut scheduler, &mut config);
    let [initial, max] = [config.adaptive_wrr.w_initial, config.adaptive_wrr.w_max];
    if initial > max {
        let bounds = Bounds::new(0.0, max.into(), "(w_max)");
        scheduler.problem("initial_weight", bounds.problem(initial.to_string()));
    }
    scheduler.finish();
    let mut tuning = Tuning::from(config);
    let mut controlled = Loop::from(tuning.congestion);
    option::read(CONGESTION, &mut congestion, &mut controlled);
    congestion.finish();
    tuning.congestion = controlled.into();
    let mut egress = Egress::from(&tuning);
    option::read(RESEQUENCER, &mut resequencer, &mut egress);
    resequencer.finish();
    egress.tell(&mut tuning);
    tuning
}

/// The options of `[scheduler]`.
pub const SCHEDULER: Options<SchedulerConfig> = &[
    &Field::new(
        "algorithm",
        "picks the path; [choosing](choosing.md) says which is for what",
        Named { all: &Algorithm::ALL, name: Algorithm::name },
        |config: &mut SchedulerConfig| &mut config.algorithm,
    ),
    &Field::new(
        "delay_cost",
        "share of the rate that a much longer round trip costs a bulk flow; a slow path must add \
         more",
        Number(Bounds::new(0.0, 1.0, "")),
        |config: &mut SchedulerConfig| &mut config.earliest_delivery.delay_cost,
    )
    .only(EARLIEST_DELIVERY),
    &Field::new(
        "lambda",
        "scales the estimate of what the quickest path sends meanwhile",
        Number(Bounds::above_zero(100.0)),
        |config: &mut SchedulerConfig| &mut config.blest.lambda,
    )
    .only(BLEST),
    &Field::new(
        "send_window_bytes",
        "send window of the whole bond",
        Whole::new(65_536, 1 << 30, "bytes"),
        |config: &mut SchedulerConfig| &mut config.blest.send_window_bytes,
    )
    .only(BLEST),
    &Field::new(
        "beta",
        "how much longer the quickest path may take once it is waited for",
        Number(Bounds::new(0.0, 100.0, "")),
        |config: &mut SchedulerConfig| &mut config.ecf.beta,
    )
    .only(ECF),
    &Field::new(
        "k",
        "gain of the weight increase on loss",
        Number(Bounds::above_zero(100.0)),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.k,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "w_fixed",
        "weight of the cheapest path",
        Whole::new(1, 1000, ""),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.w_fixed,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "w_max",
        "largest weight of any other path",
        Whole::new(1, WEIGHT_MAX, ""),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.w_max,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "initial_weight",
        "weight of the other paths at the start",
        Whole::new(0, WEIGHT_MAX, ""),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.w_initial,
    )
    .range("0 to `w_max`")
    .only(ADAPTIVE_WRR),
    &Field::new(
        "t_dwd_ms",
        "loss-free time before a weight falls",
        Whole::new(1, 60_000, "milliseconds"),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.t_dwd_ms,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "t_report_ms",
        "time between this side's loss reports; set the same on both sides",
        Whole::new(1, 10_000, "milliseconds"),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.t_report_ms,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "dwd_mode",
        "a weight falls by one per T_dwd, or per report once T_dwd has passed",
        Words(&[("per-tdwd", DwdMode::PerTdwd), ("per-report", DwdMode::PerReport)]),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.dwd_mode,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "weight_unit",
        "what the weights share out",
        Words(&[("packets", WeightUnit::Packets), ("bytes", WeightUnit::Bytes)]),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.weight_unit,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "weights_adapt",
        "losses of a path raise the next `dearer` one's weight; with `both` those of a dearer path \
         also lower its own",
        Words(&[("dearer", WeightsAdapt::Dearer), ("both", WeightsAdapt::Both)]),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.weights_adapt,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "small_flows",
        "packets of interactive flows `share` the paths, or take the `cheapest`",
        Words(&[("share", SmallFlows::Share), ("cheapest", SmallFlows::Cheapest)]),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.small_flows,
    )
    .only(ADAPTIVE_WRR),
    &Field::new(
        "weight_rounding",
        "what becomes of the increase's fraction; `float` keeps it",
        Words(&[
            ("round", WeightRounding::Round),
            ("truncate", WeightRounding::Truncate),
            ("float", WeightRounding::Float),
        ]),
        |config: &mut SchedulerConfig| &mut config.adaptive_wrr.weight_rounding,
    )
    .only(ADAPTIVE_WRR),
];

const WEIGHT_MAX: i64 = 65_535;

macro_rules! only_with {
    ($($name:ident: $algorithm:ident, $setting:literal;)+) => {
        $(const $name: Only<SchedulerConfig> = Only {
            decided_by: "algorithm",
            against: |config| {
                let other = config.algorithm;
                (other != Algorithm::$algorithm).then(|| format!("algorithm = \"{other}\""))
            },
            belongs_to: $setting,
        };)+
    };
}

only_with! {
    EARLIEST_DELIVERY: EarliestDelivery, "algorithm = \"earliest-delivery\"";
    BLEST: Blest, "algorithm = \"blest\"";
    ECF: Ecf, "algorithm = \"ecf\"";
    ADAPTIVE_WRR: AdaptiveWrr, "algorithm = \"adaptive-wrr\"";
}

/// `[congestion]`, as it stands in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// The controller; `None` leaves the loop open.
    algorithm: Option<Controller>,
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
            Controller::WhiteHaul => (whitehaul.adv, whitehaul.delay),
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
            Controller::Fixed => config.fixed_window_bytes = of.window_bytes,
            Controller::WhiteHaul => {
                config.whitehaul = WhiteHaulConfig { adv, delay: of.delay, repairs };
            }
            Controller::Edinburgh => {
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
                Some(Controller::NewReno),
                Some(Controller::Cubic),
                Some(Controller::CubicLinux),
                Some(Controller::Gauge),
                Some(Controller::Lia),
                Some(Controller::Olia),
                Some(Controller::Balia),
                Some(Controller::Illinois),
                Some(Controller::WhiteHaul),
                Some(Controller::Edinburgh),
                Some(Controller::Fixed),
            ],
            name: |controller| controller.map_or("none", Controller::name),
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
            let own = config.algorithm.and_then(Controller::default_slow_start);
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
            Some(Controller::Fixed) => None,
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
            Some(Controller::WhiteHaul) => None,
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
            Some(Controller::WhiteHaul | Controller::Edinburgh) => None,
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
            Some(Controller::Edinburgh) => None,
            Some(Controller::WhiteHaul) if config.repairs.contains(&Repair::Delay) => None,
            Some(Controller::WhiteHaul) => Some("repairs without \"delay\"".to_owned()),
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
            Some(Controller::Edinburgh) => match config.edinburgh.backoff {
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
        Some(Controller::Edinburgh) => None,
        other => Some(other_controller(other)),
    },
    belongs_to: "algorithm = \"edinburgh\"",
};

fn other_controller(controller: Option<Controller>) -> String {
    match controller {
        None => "no congestion control".to_owned(),
        Some(algorithm) => format!("algorithm = \"{algorithm}\""),
    }
}

/// `[resequencer]`, as it stands in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Egress {
    order: Order,
    unordered_dscp: Option<Vec<u16>>,
    is_fixed: bool,
    timeout: Duration,
    timeout_max: Duration,
    late: LatePolicy,
    loss_detection: LossDetection,
    buffer_bytes_max: u64,
}

impl From<&Tuning> for Egress {
    fn from(tuning: &Tuning) -> Self {
        const T_LTO_002: Duration = Duration::from_millis(50);
        let both = |timer| match timer {
            Timer::Fixed(timeout) => (Some(timeout), None),
            Timer::Adaptive { max, .. } => (None, Some(max)),
        };
        let (timeout, timeout_max) = both(tuning.resequencer.timer);
        let unordered: Vec<u16> = tuning.unordered.iter().collect();
        Self {
            order: tuning.order,
            unordered_dscp: (!unordered.is_empty()).then_some(unordered),
            is_fixed: timeout.is_some(),
            timeout: timeout.unwrap_or(T_LTO_002),
            timeout_max: timeout_max.or(both(Timer::ADAPTIVE).1).unwrap_or_default(),
            late: tuning.resequencer.late,
            loss_detection: tuning.loss_detection,
            buffer_bytes_max: tuning.resequencer.bytes_max,
        }
    }
}

impl Egress {
    fn tell(self, tuning: &mut Tuning) {
        tuning.order = self.order;
        tuning.unordered = self.unordered_dscp.iter().flatten().copied().collect();
        tuning.loss_detection = self.loss_detection;
        let is_known = self.loss_detection == LossDetection::Known;
        tuning.resequencer = ResequencerConfig {
            timer: self.timer(),
            late: self.late,
            count_known_lost: is_known,
            release_known_lost: is_known,
            bytes_max: self.buffer_bytes_max,
            ..tuning.resequencer
        };
    }

    fn timer(&self) -> Timer {
        match Timer::ADAPTIVE {
            Timer::Adaptive { min, .. } if !self.is_fixed => {
                Timer::Adaptive { min: min.min(self.timeout_max), max: self.timeout_max }
            }
            _ => Timer::Fixed(self.timeout),
        }
    }
}

impl Default for Egress {
    fn default() -> Self {
        (&Tuning::default()).into()
    }
}

/// The options of `[resequencer]`.
pub const RESEQUENCER: Options<Egress> = &[
    &Field::new(
        "order",
        "what this side asks of the peer's egress: order per `flow`, for the whole `bond`, or \
         `none`",
        Words(&[("flow", Order::Flow), ("bond", Order::Bond), ("none", Order::None)]),
        |config: &mut Egress| &mut config.order,
    ),
    &Field::new(
        "unordered_dscp",
        "DSCP codepoints whose packets wait for none before them: for flows that mind delay more \
         than order",
        Maybe(WholeList { low: 0, high: Dscps::COUNT - 1 }),
        |config: &mut Egress| &mut config.unordered_dscp,
    ),
    &Field::new(
        "timer",
        "how long a packet waits for a missing one: `adaptive` follows the measured delay spread",
        Words(&[("adaptive", false), ("fixed", true)]),
        |config: &mut Egress| &mut config.is_fixed,
    ),
    &Field::new("timeout_ms", "the time", Time::millis(1, 10_000), |config: &mut Egress| {
        &mut config.timeout
    })
    .only(Only {
        decided_by: "timer",
        against: |config| (!config.is_fixed).then(|| "timer = \"adaptive\"".to_owned()),
        belongs_to: "timer = \"fixed\"",
    }),
    &Field::new(
        "timeout_max_ms",
        "the longest time; but the first repair over a far path is waited for, 2 s at most",
        Time::millis(1, 10_000),
        |config: &mut Egress| &mut config.timeout_max,
    )
    .only(Only {
        decided_by: "timer",
        against: |config| config.is_fixed.then(|| "timer = \"fixed\"".to_owned()),
        belongs_to: "timer = \"adaptive\"",
    }),
    &Field::new(
        "late",
        "what becomes of a packet that arrives after it was given up",
        Words(&[("drop", LatePolicy::Drop), ("deliver", LatePolicy::Deliver)]),
        |config: &mut Egress| &mut config.late,
    ),
    &Field::new(
        "loss_detection",
        "a loss is `known` once every live path has passed the gap; or by the `timer` alone, as \
         in 002",
        Words(&[("known", LossDetection::Known), ("timer", LossDetection::Timer)]),
        |config: &mut Egress| &mut config.loss_detection,
    ),
    &Field::new(
        "buffer_bytes_max",
        "bytes that may wait, per bond",
        Whole::new(65_536, 1 << 30, "bytes"),
        |config: &mut Egress| &mut config.buffer_bytes_max,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;
    use crate::{Place, Problems};

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, SCHEDULER, SchedulerConfig::default());
            round_trip(seed, CONGESTION, Loop::default());
            round_trip(seed, RESEQUENCER, Egress::default());
        }
    }

    fn told(text: &str) -> Result<Tuning, String> {
        let file = std::path::Path::new("x.toml");
        let table = crate::tree::parse(file, text).unwrap();
        let problems = Problems::default();
        let mut top = Section::top(&problems, Place::Line(file.into(), 1), &table);
        let [first, second, third] =
            ["scheduler", "congestion", "resequencer"].map(|name| top.single(name));
        let tuning = read(first, second, third);
        problems.finish(Some(tuning)).map_err(|errors| errors.to_string())
    }

    #[test]
    fn every_controller_can_be_named_and_the_default_is_as_told() {
        let [algorithm, ..] = CONGESTION else { panic!("it has options") };
        let [_, range, absent] = algorithm.told(&mut Loop::default());
        for controller in Controller::ALL {
            assert!(range.contains(&format!("`{controller}`")), "{controller}");
        }
        for scheduler in Algorithm::ALL {
            let expected = absent.contains(&format!("`{scheduler}`"));
            assert_eq!(scheduler.default_congestion().is_some(), expected, "{scheduler}");
        }
    }

    #[test]
    fn a_tuning_that_is_written_is_read_again() {
        let paper = Tuning {
            order: Order::Bond,
            resequencer: ResequencerConfig::PAPER_002,
            loss_detection: LossDetection::Timer,
            ..SchedulerConfig::from(Algorithm::AdaptiveWrr).into()
        };
        for tuning in [Tuning::default(), paper] {
            let mut text = String::new();
            tuning.write(&mut text, "");
            assert_eq!(told(&text), Ok(tuning));
        }
    }

    #[test]
    fn parameters_of_adaptive_wrr_out_of_range_are_refused() {
        for (line, words) in [
            ("k = -0.1", "k: -0.1 is out of range"),
            ("k = 0", "k: 0 is out of range"),
            ("k = nan", "k: nan is out of range"),
            ("w_fixed = 0", "w_fixed: 0 is out of range"),
            ("w_fixed = 1001", "w_fixed: 1001 is out of range"),
            ("w_max = 65536", "w_max: 65536 is out of range"),
            ("initial_weight = 51", "initial_weight: 51 is out of range"),
            ("t_report_ms = 0", "t_report_ms: 0 is out of range"),
            ("w_maximum = 45", "w_maximum: unknown option"),
            ("w-max = 45", "w-max: unknown option"),
        ] {
            let told = told(&format!("[scheduler]\nalgorithm = \"adaptive-wrr\"\n{line}\n"));
            let told = told.unwrap_err();
            assert!(told.contains(words), "{line}: {told}");
        }
    }

    #[test]
    fn parameters_of_closed_loops_out_of_range_are_refused() {
        for (algorithm, line) in [
            ("earliest-delivery", "delay_cost = -0.1"),
            ("earliest-delivery", "delay_cost = 1.1"),
            ("earliest-delivery", "delay_cost = nan"),
            ("blest", "lambda = 0"),
            ("blest", "lambda = 100.1"),
            ("blest", "lambda = nan"),
            ("blest", "send_window_bytes = 0"),
            ("ecf", "beta = -0.1"),
            ("ecf", "beta = 100.1"),
            ("ecf", "beta = nan"),
        ] {
            let told = told(&format!("[scheduler]\nalgorithm = \"{algorithm}\"\n{line}\n"));
            assert!(told.clone().unwrap_err().contains("out of range"), "{line}: {told:?}");
        }
    }

    /// Options that a misspelt other option alone makes ineffective are not reported.
    #[test]
    fn regression_a_misspelt_timer_leaves_the_options_of_the_right_one_alone() {
        let told = told("[resequencer]\ntimer = \"fixd\"\ntimeout_ms = 50\n").unwrap_err();
        assert!(told.contains("did you mean \"fixed\"?"), "{told}");
        assert!(!told.contains("timeout_ms"), "{told}");
    }
}
