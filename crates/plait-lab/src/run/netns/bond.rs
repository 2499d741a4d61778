//! From a scenario's bond to the configuration of its gateways. Every option is written out, so
//! that the gateways' defaults have no say.

use plait_proto::config::{LossDetection, Order};
use plait_proto::congestion::{Algorithm as Controller, SlowStart};
use plait_proto::resequencer::{LatePolicy, Timer};
use plait_proto::scheduler::{Algorithm, DwdMode, WeightRounding};
use plait_sim::scenario::{BondSpec, Scenario};

use super::site::device_of;
use crate::gateway::{
    BondSetup, CongestionSection, PathSection, ResequencerSection, SchedulerSection, endpoint_v4,
};

/// What both gateways are told.
pub(super) fn setup(scenario: &Scenario, bond: &BondSpec) -> BondSetup {
    let path = |name: &String| {
        let link = &scenario.links[name];
        PathSection {
            name: name.clone(),
            interface: device_of(scenario, name),
            price: Some(link.price),
            weight: Some(link.weight),
            metered: false,
        }
    };
    BondSetup {
        paths: bond.links.iter().map(path).collect(),
        endpoints: vec![endpoint_v4()],
        scheduler: Some(scheduler(bond)),
        congestion: Some(congestion(bond)),
        resequencer: Some(resequencer(bond)),
        inner_mtu: Some(bond.inner_mtu),
        measures: false,
    }
}

/// The options of one algorithm are errors with another.
fn scheduler(bond: &BondSpec) -> SchedulerSection {
    let algorithm = bond.scheduler.algorithm;
    let named = SchedulerSection { algorithm: algorithm.to_string(), ..Default::default() };
    match algorithm {
        Algorithm::AdaptiveWrr => adaptive_wrr(bond, named),
        Algorithm::EarliestDelivery => SchedulerSection {
            delay_cost: Some(bond.scheduler.earliest_delivery.delay_cost),
            ..named
        },
        Algorithm::Blest => SchedulerSection {
            lambda: Some(bond.scheduler.blest.lambda),
            send_window_bytes: Some(bond.scheduler.blest.send_window_bytes),
            ..named
        },
        Algorithm::Ecf => SchedulerSection { beta: Some(bond.scheduler.ecf.beta), ..named },
        _ => named,
    }
}

fn congestion(bond: &BondSpec) -> CongestionSection {
    match &bond.congestion {
        None => CongestionSection { algorithm: "none", slow_start: None, window_bytes: None },
        Some(config) => CongestionSection {
            algorithm: config.algorithm.name(),
            slow_start: config.slow_start.map(SlowStart::name),
            window_bytes: (config.algorithm == Controller::Fixed)
                .then_some(config.fixed_window_bytes),
        },
    }
}

fn adaptive_wrr(bond: &BondSpec, named: SchedulerSection) -> SchedulerSection {
    let config = &bond.scheduler.adaptive_wrr;
    SchedulerSection {
        k: Some(config.k),
        w_fixed: Some(config.w_fixed),
        w_max: Some(config.w_max),
        initial_weight: Some(config.w_initial),
        t_dwd_ms: Some(config.t_dwd_ms.into()),
        t_report_ms: Some(config.t_report_ms.into()),
        dwd_mode: Some(match config.dwd_mode {
            DwdMode::PerTdwd => "per-tdwd",
            DwdMode::PerReport => "per-report",
        }),
        weight_rounding: Some(match config.weight_rounding {
            WeightRounding::Round => "round",
            WeightRounding::Truncate => "truncate",
            WeightRounding::Float => "float",
        }),
        ..named
    }
}

fn resequencer(bond: &BondSpec) -> ResequencerSection {
    let config = &bond.resequencer;
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).ok();
    let (timer, timeout_ms, timeout_max_ms) = match config.timer {
        Timer::Fixed(timeout) => ("fixed", millis(timeout), None),
        Timer::Adaptive { max, .. } => ("adaptive", None, millis(max)),
    };
    ResequencerSection {
        order: Some(match bond.order {
            Order::Flow => "flow",
            Order::Bond => "bond",
            Order::None => "none",
        }),
        timer: Some(timer),
        timeout_ms,
        timeout_max_ms,
        late: Some(match config.late {
            LatePolicy::Drop => "drop",
            LatePolicy::Deliver => "deliver",
        }),
        loss_detection: Some(match bond.loss_detection {
            LossDetection::Known => "known",
            LossDetection::Timer => "timer",
        }),
        buffer_bytes_max: Some(config.bytes_max),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plait_sim::scenario::Experiment;

    use super::*;

    fn written(bond: &str) -> String {
        let text = format!(
            "name = \"x/y\"\ntitle = \"t\"\nsource = \"s\"\nduration_s = 1\n\
             app = [{{ name = \"a\", kind = \"tcp\" }}]\n\
             [links.a]\nrate_mbit = 10\nrtt_ms = 10\nprice = 3\nweight = 7\n\
             [bond]\nlinks = [\"a\"]\n{bond}"
        );
        let read = |_: &Path| Ok(text.clone());
        let none: [&str; 0] = [];
        let scenario = Experiment::load(Path::new("y.toml"), &none, &read).unwrap().scenario;
        let setup = setup(&scenario, scenario.bond.as_ref().unwrap());
        assert_eq!((setup.paths[0].price, setup.paths[0].weight), (Some(3), Some(7)));
        let scheduler = toml::to_string(&setup.scheduler).unwrap();
        let congestion = toml::to_string(&setup.congestion).unwrap();
        let resequencer = toml::to_string(&setup.resequencer).unwrap();
        format!(
            "mtu = {}\n[bond.scheduler]\n{scheduler}[bond.congestion]\n{congestion}\
             [bond.resequencer]\n{resequencer}",
            setup.inner_mtu.unwrap()
        )
    }

    #[test]
    fn every_option_of_the_scenario_reaches_the_gateways() {
        let bond = "[bond.scheduler]\nalgorithm = \"adaptive-wrr\"\nk = 0.1\nw_fixed = 40\n\
                    w_max = 45\ninitial_weight = 5\nt_dwd_ms = 500\nt_report_ms = 60\n\
                    dwd_mode = \"per-report\"\nweight_rounding = \"float\"\n\
                    [bond.congestion]\nalgorithm = \"fixed\"\nwindow_bytes = 30000\n\
                    [bond.resequencer]\norder = \"bond\"\ntimer = \"fixed\"\ntimeout_ms = 70\n\
                    late = \"deliver\"\nloss_detection = \"timer\"\nbuffer_bytes_max = 100000\n";
        assert_eq!(written(bond), format!("mtu = 1500\n{bond}"));
    }

    #[test]
    fn defaults_are_written_out() {
        let resequencer = "[bond.resequencer]\norder = \"flow\"\ntimer = \"adaptive\"\n\
                           timeout_max_ms = 500\nlate = \"drop\"\nloss_detection = \"known\"\n\
                           buffer_bytes_max = 16777216\n";
        let closed = "mtu = 1000\n[bond.scheduler]\nalgorithm = \"earliest-delivery\"\n\
                      delay_cost = 0.15\n[bond.congestion]\nalgorithm = \"bbr\"\n";
        assert_eq!(written("inner_mtu = 1000\n"), format!("{closed}{resequencer}"));
        let min_rtt = "[bond.scheduler]\nalgorithm = \"min-rtt\"\n";
        let open = format!("mtu = 1500\n{min_rtt}[bond.congestion]\nalgorithm = \"none\"\n");
        assert_eq!(written(min_rtt), format!("{open}{resequencer}"));
    }
}
