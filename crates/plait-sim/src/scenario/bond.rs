//! `[bond]`: the two gateways and what they are told.

use std::collections::BTreeMap;

use plait_proto::config::{LossDetection, Order};
use plait_proto::resequencer::{LatePolicy, ResequencerConfig, Timer};
use plait_proto::scheduler::{
    AdaptiveWrrConfig, Algorithm, DwdMode, SchedulerConfig, WeightRounding,
};
use plait_proto::time::Duration;
use plait_toml::{Bounds, Problem, Section};

use super::error::no_such;
use super::link::{self, LinkSpec};
use super::rate::TUNNEL_BYTES;

/// A bond over some of the links; both gateways are told the same.
#[derive(Clone, PartialEq, Debug)]
pub struct BondSpec {
    /// The links, in the order that breaks ties between equal prices.
    pub links: Vec<String>,
    /// Picks the path of each packet.
    pub scheduler: SchedulerConfig,
    /// Which packets wait for which.
    pub order: Order,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// How long packets wait, and how many.
    pub resequencer: ResequencerConfig,
    /// Time between loss reports.
    pub report_interval: Duration,
    /// Largest inner packet in bytes.
    pub inner_mtu: u16,
}

/// Inner packets are no longer than on Ethernet, unless the scenario says so.
const INNER_MTU_BYTES: u16 = 1500;
/// Paths that one gateway may have.
const LINKS_MAX: usize = 32;

/// Reads the section; `None` when it is absent.
pub(super) fn read(
    mut section: Section<'_>,
    links: &BTreeMap<String, LinkSpec>,
    link_names: &[&str],
) -> Option<BondSpec> {
    if !section.is_present() {
        return None;
    }
    let names = read_links(&mut section, link_names);
    let scheduler = read_scheduler(section.single("scheduler"));
    let (order, loss_detection, resequencer) = read_resequencer(section.single("resequencer"));
    let mtu = names.iter().filter_map(|name| link::path_mtu(links, name)).min();
    let room = mtu.map_or(INNER_MTU_BYTES, room_inside);
    let inner_mtu: u16 =
        section.integer("inner_mtu", (516, 9000), "bytes").unwrap_or(room.min(INNER_MTU_BYTES));
    if inner_mtu > room {
        let text = format!("a packet of {inner_mtu} bytes does not fit the links with its framing");
        let help = format!("write at most {room}, or raise the links' mtu");
        section.problem("inner_mtu", Problem::new(text, help));
    }
    section.finish();
    let report_interval = Duration::from_millis(scheduler.adaptive_wrr.t_report_ms.into());
    let links = names;
    Some(BondSpec {
        links,
        scheduler,
        order,
        loss_detection,
        resequencer,
        report_interval,
        inner_mtu,
    })
}

fn room_inside(mtu: u16) -> u16 {
    mtu - u16::try_from(TUNNEL_BYTES).expect("the framing is shorter than 65536 bytes")
}

fn read_links(section: &mut Section<'_>, known: &[&str]) -> Vec<String> {
    let given = section.holds_any(&["links"]);
    let named = section.texts("links");
    if !given {
        section.missing("links", "links = [\"dsl\", \"lte\"]");
    } else if named.is_empty() || named.len() > LINKS_MAX {
        let text = format!("{} links", named.len());
        section.problem("links", Problem::new(text, format!("name 1 to {LINKS_MAX} links")));
    }
    let mut links: Vec<String> = Vec::new();
    for (name, place) in named {
        if !known.contains(&name.as_str()) {
            let known = known.iter().map(|name| (*name).to_owned()).collect();
            section.problem_at(&place, "links", no_such("link", &name, known));
        } else if links.contains(&name) {
            let text = format!("\"{name}\" stands here twice");
            section.problem_at(&place, "links", Problem::new(text, "keep one of the two"));
        } else {
            links.push(name);
        }
    }
    links
}

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

fn read_scheduler(mut section: Section<'_>) -> SchedulerConfig {
    let algorithms = Algorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
    let misspelt = section.holds_any(&["algorithm"]);
    let chosen = section.choice("algorithm", &algorithms);
    let algorithm = chosen.unwrap_or_default();
    let adaptive_wrr = if algorithm == Algorithm::AdaptiveWrr || (misspelt && chosen.is_none()) {
        read_adaptive_wrr(&mut section)
    } else {
        let setting = format!("algorithm = \"{algorithm}\"");
        section.no_effect(ADAPTIVE_WRR_OPTIONS, &setting, "algorithm = \"adaptive-wrr\"");
        AdaptiveWrrConfig::default()
    };
    section.finish();
    SchedulerConfig { algorithm, adaptive_wrr }
}

fn read_adaptive_wrr(section: &mut Section<'_>) -> AdaptiveWrrConfig {
    let mut config = AdaptiveWrrConfig::default();
    if let Some(k) = section.number("k", Bounds::new(0.001, 100.0, "")) {
        config.k = k;
    }
    for (option, field, range, unit) in [
        ("w_fixed", &mut config.w_fixed, (1, 1000), ""),
        ("w_max", &mut config.w_max, (1, 65_535), ""),
        ("initial_weight", &mut config.w_initial, (0, 65_535), ""),
        ("t_dwd_ms", &mut config.t_dwd_ms, (1, 60_000), "milliseconds"),
        ("t_report_ms", &mut config.t_report_ms, (1, 10_000), "milliseconds"),
    ] {
        if let Some(number) = section.integer(option, range, unit) {
            *field = number;
        }
    }
    if config.w_initial > config.w_max {
        let expected = format!("a number from 0 to {} (w_max)", config.w_max);
        let problem = Problem::Range { value: config.w_initial.to_string(), expected };
        section.problem("initial_weight", problem);
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

/// `None` when the scenario leaves the default.
fn read_timer(section: &mut Section<'_>) -> Option<Timer> {
    const T_LTO_002: Duration = Duration::from_millis(50);
    let fixed = section.choice("timer", &[("adaptive", false), ("fixed", true)]);
    if fixed == Some(true) {
        section.no_effect(&["timeout_max_ms"], "timer = \"fixed\"", "timer = \"adaptive\"");
        return Some(Timer::Fixed(whole_millis(section, "timeout_ms").unwrap_or(T_LTO_002)));
    }
    section.no_effect(&["timeout_ms"], "timer = \"adaptive\"", "timer = \"fixed\"");
    let max = whole_millis(section, "timeout_max_ms")?;
    let min = match Timer::ADAPTIVE {
        Timer::Adaptive { min, .. } => min,
        Timer::Fixed(_) => unreachable!("the adaptive timer is adaptive"),
    };
    Some(Timer::Adaptive { min: min.min(max), max })
}

fn whole_millis(section: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    section.integer(key, (1, 10_000), "milliseconds").map(Duration::from_millis)
}
