//! Converts a scenario's bond to the configuration of its gateways. The bond's settings are written
//! in full, so that the gateways' defaults do not matter.

use plait_sim::scenario::{BondSpec, Scenario};

use super::site::device_of;
use crate::gateway::{BondSetup, GatewayPath, endpoint_v4};

/// The setup of both gateways.
pub(super) fn setup(scenario: &Scenario, bond: &BondSpec) -> BondSetup {
    let path = |name: &String| {
        let link = &scenario.links[name];
        GatewayPath {
            name: Some(name.clone()),
            interface: Some(device_of(scenario, name)),
            price: link.price,
            weight: link.weight,
            ..GatewayPath::default()
        }
    };
    BondSetup {
        paths: bond.links.iter().map(path).collect(),
        endpoints: vec![endpoint_v4()],
        tuning: Some(bond.tuning()),
        inner_mtu: Some(bond.inner_mtu),
        ..BondSetup::over(&[])
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
        assert_eq!((setup.paths[0].price, setup.paths[0].weight), (3, 7));
        let mut text = format!("mtu = {}\n", setup.inner_mtu.unwrap());
        setup.tuning.unwrap().write(&mut text, "bond.");
        text.replace("\n\n", "\n")
    }

    #[test]
    fn every_option_of_the_scenario_reaches_the_gateways() {
        let bond = "[bond.scheduler]\nalgorithm = \"adaptive-wrr\"\nk = 0.1\nw_fixed = 40\n\
                    w_max = 45\ninitial_weight = 5\nt_dwd_ms = 500\nt_report_ms = 60\n\
                    dwd_mode = \"per-report\"\nweight_unit = \"bytes\"\n\
                    weights_adapt = \"both\"\nsmall_flows = \"cheapest\"\n\
                    weight_rounding = \"float\"\n\
                    [bond.congestion]\nalgorithm = \"fixed\"\nwindow_bytes = 30000\n\
                    [bond.resequencer]\norder = \"bond\"\nunordered_dscp = [46]\n\
                    timer = \"fixed\"\ntimeout_ms = 70\n\
                    late = \"deliver\"\nloss_detection = \"timer\"\nbuffer_bytes_max = 100000\n";
        assert_eq!(written(bond), format!("mtu = 1500\n{bond}"));
    }

    #[test]
    fn defaults_are_written_out() {
        let resequencer = "[bond.resequencer]\norder = \"flow\"\ntimer = \"adaptive\"\n\
                           timeout_max_ms = 500\nlate = \"drop\"\nloss_detection = \"known\"\n\
                           buffer_bytes_max = 16777216\n";
        let closed = "mtu = 1000\n[bond.scheduler]\nalgorithm = \"earliest-delivery\"\n\
                      delay_cost = 0.15\n[bond.congestion]\nalgorithm = \"gauge\"\n";
        assert_eq!(written("inner_mtu = 1000\n"), format!("{closed}{resequencer}"));
        let min_rtt = "[bond.scheduler]\nalgorithm = \"min-rtt\"\n";
        let open = format!("mtu = 1500\n{min_rtt}[bond.congestion]\nalgorithm = \"none\"\n");
        assert_eq!(written(min_rtt), format!("{open}{resequencer}"));
    }
}
