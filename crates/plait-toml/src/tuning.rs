//! `[scheduler]` and `[resequencer]`: how bonds behave, in a gateway's configuration and in a
//! scenario's `[bond]` alike.

use std::time::Duration;

use plait_proto::config::{LossDetection, Order};
use plait_proto::congestion::{Algorithm as Controller, ControllerConfig, SlowStart};
use plait_proto::resequencer::{LatePolicy, ResequencerConfig, Timer};
use plait_proto::scheduler::{
    AdaptiveWrrConfig, Algorithm, BlestConfig, DwdMode, EarliestDeliveryConfig, EcfConfig,
    SchedulerConfig, WeightRounding,
};

use crate::{Bounds, Section};

/// How bonds behave.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Picks the path of each packet that this gateway sends.
    pub scheduler: SchedulerConfig,
    /// The controller of each path over which this gateway sends; `None` in an open loop.
    pub congestion: Option<ControllerConfig>,
    /// Which packets wait for which at the peer's egress.
    pub order: Order,
    /// How long they wait at this side's egress, and how many.
    pub resequencer: ResequencerConfig,
    /// How this side's egress finds losses.
    pub loss_detection: LossDetection,
    /// How often this side's egress reports losses.
    pub report_interval: Duration,
}

/// The parameters of `adaptive-wrr`, as options of the file.
const ADAPTIVE_WRR_OPTIONS: &[&str] = &[
    "k",
    "w_fixed",
    "w_max",
    "initial_weight",
    "t_dwd_ms",
    "t_report_ms",
    "dwd_mode",
    "weight_rounding",
];

/// The algorithms that have parameters, these as options of the file, and how to get them.
const PARAMETERS: [(Algorithm, &[&str], &str); 4] = [
    (Algorithm::AdaptiveWrr, ADAPTIVE_WRR_OPTIONS, "algorithm = \"adaptive-wrr\""),
    (Algorithm::EarliestDelivery, &["delay_cost"], "algorithm = \"earliest-delivery\""),
    (Algorithm::Blest, &["lambda", "send_window_bytes"], "algorithm = \"blest\""),
    (Algorithm::Ecf, &["beta"], "algorithm = \"ecf\""),
];

/// Reads the sections. What it returns is of use only when no problem was noted.
pub fn read(scheduler: Section<'_>, congestion: Section<'_>, resequencer: Section<'_>) -> Tuning {
    let scheduler = read_scheduler(scheduler);
    let congestion = read_congestion(congestion, scheduler.algorithm);
    let (order, loss_detection, resequencer) = read_resequencer(resequencer);
    let report_interval = Duration::from_millis(scheduler.adaptive_wrr.t_report_ms.into());
    Tuning { scheduler, congestion, order, resequencer, loss_detection, report_interval }
}

fn read_scheduler(mut section: Section<'_>) -> SchedulerConfig {
    let adaptive_wrr = read_adaptive_wrr(&mut section);
    let (earliest_delivery, blest, ecf) = read_closed_loop(&mut section);
    let algorithms = Algorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
    let chosen = section.choice("algorithm", &algorithms);
    let misspelt = section.holds_any(&["algorithm"]) && chosen.is_none();
    let algorithm = chosen.unwrap_or_default();
    for (owner, options, belongs_to) in PARAMETERS {
        if algorithm != owner && !misspelt {
            section.no_effect(options, &format!("algorithm = \"{algorithm}\""), belongs_to);
        }
    }
    section.finish();
    SchedulerConfig { algorithm, adaptive_wrr, earliest_delivery, blest, ecf }
}

fn read_closed_loop(section: &mut Section<'_>) -> (EarliestDeliveryConfig, BlestConfig, EcfConfig) {
    let mut earliest_delivery = EarliestDeliveryConfig::default();
    let mut blest = BlestConfig::default();
    let mut ecf = EcfConfig::default();
    for (option, field, bounds) in [
        ("delay_cost", &mut earliest_delivery.delay_cost, Bounds::new(0.0, 1.0, "")),
        ("lambda", &mut blest.lambda, Bounds::above_zero(100.0)),
        ("beta", &mut ecf.beta, Bounds::new(0.0, 100.0, "")),
    ] {
        if let Some(number) = section.number(option, bounds) {
            *field = number;
        }
    }
    if let Some(bytes) = section.integer("send_window_bytes", (65_536, 1 << 30), "bytes") {
        blest.send_window_bytes = bytes;
    }
    (earliest_delivery, blest, ecf)
}

/// `None` is the open loop.
fn read_congestion(mut section: Section<'_>, scheduler: Algorithm) -> Option<ControllerConfig> {
    const NONE: &str = "none";
    let names = Controller::ALL.map(|algorithm| (algorithm.name(), Some(algorithm)));
    let names: Vec<_> = [(NONE, None)].into_iter().chain(names).collect();
    let chosen = section.choice("algorithm", &names);
    let mut config = match chosen {
        None => scheduler.default_congestion(),
        Some(algorithm) => algorithm.map(ControllerConfig::from),
    };
    let forms = SlowStart::ALL.map(|form| (form.name(), form));
    let slow_start = section.choice("slow_start", &forms);
    let window = section.integer("window_bytes", (1500, 1 << 30), "bytes");
    if let Some(config) = &mut config {
        config.slow_start = slow_start.or(config.slow_start);
        config.fixed_window_bytes = window.unwrap_or(config.fixed_window_bytes);
    }
    let misspelt = section.holds_any(&["algorithm"]) && chosen.is_none();
    if !misspelt {
        note_without_effect(&mut section, config.as_ref().map(|config| config.algorithm));
    }
    section.finish();
    config
}

/// Also a controller that nobody named leaves options without effect.
fn note_without_effect(section: &mut Section<'_>, controller: Option<Controller>) {
    let Some(algorithm) = controller else {
        let setting = "no congestion control";
        section.no_effect(&["slow_start", "window_bytes"], setting, "algorithm = \"cubic\"");
        return;
    };
    let setting = format!("algorithm = \"{algorithm}\"");
    if algorithm != Controller::Fixed {
        section.no_effect(&["window_bytes"], &setting, "algorithm = \"fixed\"");
    }
    if matches!(algorithm, Controller::Fixed | Controller::Bbr) {
        section.no_effect(&["slow_start"], &setting, "algorithm = \"cubic\"");
    }
}

fn read_adaptive_wrr(section: &mut Section<'_>) -> AdaptiveWrrConfig {
    const WEIGHT_MAX: i64 = 65_535;
    let mut config = AdaptiveWrrConfig::default();
    if let Some(k) = section.number("k", Bounds::above_zero(100.0)) {
        config.k = k;
    }
    for (option, field, range, unit) in [
        ("w_fixed", &mut config.w_fixed, (1, 1000), ""),
        ("w_max", &mut config.w_max, (1, WEIGHT_MAX), ""),
        ("t_dwd_ms", &mut config.t_dwd_ms, (1, 60_000), "milliseconds"),
        ("t_report_ms", &mut config.t_report_ms, (1, 10_000), "milliseconds"),
    ] {
        if let Some(number) = section.integer(option, range, unit) {
            *field = number;
        }
    }
    if let Some(initial) = section.integer::<u32>("initial_weight", (0, WEIGHT_MAX), "") {
        config.w_initial = initial;
        if initial > config.w_max {
            let bounds = Bounds::new(0.0, config.w_max.into(), "(w_max)");
            section.problem("initial_weight", bounds.problem(initial.to_string()));
        }
    }
    let modes = [("per-tdwd", DwdMode::PerTdwd), ("per-report", DwdMode::PerReport)];
    if let Some(mode) = section.choice("dwd_mode", &modes) {
        config.dwd_mode = mode;
    }
    let roundings = [
        ("round", WeightRounding::Round),
        ("truncate", WeightRounding::Truncate),
        ("float", WeightRounding::Float),
    ];
    if let Some(rounding) = section.choice("weight_rounding", &roundings) {
        config.weight_rounding = rounding;
    }
    config
}

fn read_resequencer(mut section: Section<'_>) -> (Order, LossDetection, ResequencerConfig) {
    let mut config = ResequencerConfig::default();
    let orders = [("flow", Order::Flow), ("bond", Order::Bond), ("none", Order::None)];
    let order = section.choice("order", &orders).unwrap_or_default();
    if let Some(timer) = read_timer(&mut section) {
        config.timer = timer;
    }
    let policies = [("drop", LatePolicy::Drop), ("deliver", LatePolicy::Deliver)];
    if let Some(late) = section.choice("late", &policies) {
        config.late = late;
    }
    let detections = [("known", LossDetection::Known), ("timer", LossDetection::Timer)];
    let loss_detection = section.choice("loss_detection", &detections).unwrap_or_default();
    config.count_known_lost = loss_detection == LossDetection::Known;
    config.release_known_lost = config.count_known_lost;
    if let Some(bytes) = section.integer("buffer_bytes_max", (65_536, 1 << 30), "bytes") {
        config.bytes_max = bytes;
    }
    section.finish();
    (order, loss_detection, config)
}

/// `None` when the file leaves the default.
fn read_timer(section: &mut Section<'_>) -> Option<Timer> {
    const T_LTO_002: Duration = Duration::from_millis(50);
    let timeout = milliseconds(section, "timeout_ms");
    let timeout_max = milliseconds(section, "timeout_max_ms");
    let fixed = section.choice("timer", &[("adaptive", false), ("fixed", true)]);
    if fixed == Some(true) {
        section.no_effect(&["timeout_max_ms"], "timer = \"fixed\"", "timer = \"adaptive\"");
        return Some(Timer::Fixed(timeout.unwrap_or(T_LTO_002)));
    }
    section.no_effect(&["timeout_ms"], "timer = \"adaptive\"", "timer = \"fixed\"");
    let Timer::Adaptive { min, .. } = Timer::ADAPTIVE else {
        unreachable!("the adaptive timer is adaptive")
    };
    timeout_max.map(|max| Timer::Adaptive { min: min.min(max), max })
}

fn milliseconds(section: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    let time = section.integer::<u32>(key, (1, 10_000), "milliseconds")?;
    Some(Duration::from_millis(time.into()))
}
