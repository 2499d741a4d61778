//! From a scenario's steering node to the configuration of a real one. Every option is written out,
//! so that the node's defaults have no say.

use std::time::Duration;

use plait_proto::dida::{DidaConfig, HoldPolicy};
use plait_proto::steer::Granularity;
use plait_sim::scenario::{Scenario, SteerSpec};
use toml::Value;

use super::site::{customer_address, device_of};
use crate::steering::{AttachmentSection, ClientSection, DidaSection, NodeFile, NodeSection};

/// What the node is told.
pub(crate) fn node_file(scenario: &Scenario, steer: &SteerSpec) -> NodeFile {
    let attachments = steer.links.iter().zip(&steer.shares).enumerate();
    let attachment = |(at, (name, weight)): (usize, (&String, &u16))| AttachmentSection {
        name: name.clone(),
        address: (at > 0).then(|| customer_address(scenario, name)),
        interface: Some(device_of(scenario, name)),
        weight: Some(*weight),
        price: Some(scenario.links[name].price),
        ..AttachmentSection::default()
    };
    let primary = steer.links.first().expect("a checked steering node has links");
    let client = ClientSection {
        name: "client".into(),
        address: Some(customer_address(scenario, primary)),
        address6: None,
        attachment: attachments.map(attachment).collect(),
    };
    let per = match steer.granularity {
        Granularity::Packet => "packet",
        Granularity::Flow => "flow",
    };
    NodeFile {
        node: NodeSection {
            per: per.into(),
            first_packets: Some(steer.first_packets),
            mtu: Some(steer.mtu),
            ..NodeSection::with_policy(&steer.policy.to_string())
        },
        client: vec![client],
        dida: steer.dida.as_ref().map(dida),
    }
}

fn dida(config: &DidaConfig) -> DidaSection {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    DidaSection {
        hold: Some(match config.hold {
            HoldPolicy::Fixed(time) => Value::Float(millis(time)),
            policy => Value::String(policy.name().into()),
        }),
        sack: Some(config.sack.name().into()),
        gap_filled: Some(config.on_gap_filled.name().into()),
        released_until: Some(config.released_until.name().into()),
        hold_max_ms: Some(millis(config.hold_max)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plait_sim::scenario::Experiment;

    use super::*;

    fn written(steer: &str) -> String {
        let text = format!(
            "name = \"x/y\"\ntitle = \"t\"\nsource = \"s\"\nduration_s = 1\n\
             app = [{{ name = \"a\", kind = \"tcp\" }}]\n\
             [links.wifi]\nrate_mbit = 40\nrtt_ms = 10\n\
             [links.lte]\nrate_mbit = 10\nrtt_ms = 40\nprice = 3\nmtu = 1400\n\
             [steer]\nlinks = [\"lte\", \"wifi\"]\n{steer}"
        );
        let read = |_: &Path| Ok(text.clone());
        let none: [&str; 0] = [];
        let scenario = Experiment::load(Path::new("y.toml"), &none, &read).unwrap().scenario;
        let file = node_file(&scenario, scenario.steer.as_ref().unwrap());
        toml::to_string(&file).unwrap()
    }

    #[test]
    fn every_option_of_the_scenario_reaches_the_node() {
        let steer = "policy = \"fixed\"\nshares = [20, 80]\nper = \"flow\"\nfirst_packets = 7\n\
                     [steer.dida]\nhold = 50\nsack = \"pass\"\ngap_filled = \"forward\"\n\
                     released_until = \"next-ack\"\nhold_max_ms = 300\n";
        let expected = "[node]\ntun = \"steer0\"\npolicy = \"fixed\"\nper = \"flow\"\n\
                        first_packets = 7\nmtu = 1400\nstate_file = \"node.state\"\n\n\
                        [[client]]\nname = \"client\"\naddress = \"10.1.0.1\"\n\n\
                        [[client.attachment]]\nname = \"lte\"\ninterface = \"link0\"\n\
                        weight = 20\nprice = 3\n\n\
                        [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\n\
                        interface = \"link1\"\nweight = 80\nprice = 0\n\n\
                        [dida]\nhold = 50.0\nsack = \"pass\"\ngap_filled = \"forward\"\n\
                        released_until = \"next-ack\"\nhold_max_ms = 300.0\n";
        assert_eq!(written(steer), expected);
    }

    #[test]
    fn defaults_are_written_out_and_no_dida_is_none() {
        let file = written("policy = \"inverse-rtt\"\n");
        assert!(file.contains("policy = \"inverse-rtt\"\nper = \"packet\"\nfirst_packets = 10\n"));
        assert!(!file.contains("[dida]"), "{file}");
        let file = written("policy = \"inverse-rtt\"\n[steer.dida]\n");
        assert!(file.contains("[dida]\nhold = \"optimum\"\nsack = \"filter\"\n"), "{file}");
    }
}
