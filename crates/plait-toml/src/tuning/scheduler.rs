//! `[scheduler]`: which path a packet takes.

use plait_proto::scheduler::{
    Algorithm, DwdMode, SchedulerConfig, SmallFlows, WeightRounding, WeightUnit, WeightsAdapt,
};

use crate::Bounds;
use crate::form::{Named, Number, Whole, Words};
use crate::option::{Field, Only, Options};

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
