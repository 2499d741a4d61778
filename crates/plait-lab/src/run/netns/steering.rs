//! Converts a scenario's steering node to the configuration of a real one. Every option is written,
//! so that the node's defaults do not matter.

use plait_proto::steer::Addresses;
use plait_sim::scenario::{Scenario, SteerSpec};
use plait_toml::node::{Attachment, Client, Node, NodeFile};

use super::site::{customer_address, device_of};
use crate::steering::node_with;

/// The node's configuration.
pub(crate) fn node_file(scenario: &Scenario, steer: &SteerSpec) -> NodeFile {
    let address =
        |name: &String| Addresses { v4: Some(customer_address(scenario, name)), v6: None };
    let attachments = steer.links.iter().zip(&steer.shares).enumerate();
    let attachment = |(at, (name, weight)): (usize, (&String, &u16))| Attachment {
        name: name.clone(),
        address: if at > 0 { address(name) } else { Addresses::NONE },
        interface: Some(device_of(scenario, name)),
        weight: *weight,
        price: scenario.links[name].price,
        ..Attachment::default()
    };
    let primary = steer.links.first().expect("a checked steering node has links");
    let client = Client {
        name: "client".into(),
        address: address(primary),
        attachments: attachments.map(attachment).collect(),
    };
    NodeFile {
        node: Node {
            granularity: steer.granularity,
            first_packets: steer.first_packets,
            mtu: Some(steer.mtu),
            ..node_with(steer.policy)
        },
        clients: vec![client],
        dida: steer.dida,
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
        file.to_text()
    }

    #[test]
    fn every_option_of_the_scenario_reaches_the_node() {
        let steer = "policy = \"fixed\"\nshares = [20, 80]\nper = \"flow\"\nfirst_packets = 7\n\
                     [steer.dida]\nhold = 50\nsack = \"pass\"\ngap_filled = \"forward\"\n\
                     released_until = \"next-ack\"\nhold_max_ms = 300\n";
        let expected = "[node]\npolicy = \"fixed\"\nper = \"flow\"\nfirst_packets = 7\n\
                        other = \"flow\"\nunknown_clients = \"forward\"\nprobe = true\n\
                        probe_interval_ms = 50\nprobe_idle_interval_ms = 5000\n\
                        probe_timeout_ms = 1000\nflows_per_client_max = 4096\n\
                        flow_idle_s = 300\ntun = \"steer0\"\ntable = 5200\nmtu = 1400\n\
                        forward = false\nsandbox = true\nstate_file = \"node.state\"\n\n\
                        [[client]]\nname = \"client\"\naddress = \"10.1.0.1\"\n\n\
                        [[client.attachment]]\nname = \"lte\"\ninterface = \"link0\"\n\
                        weight = 20\nprice = 3\n\n\
                        [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\n\
                        interface = \"link1\"\nweight = 80\nprice = 0\n\n\
                        [dida]\nhold = 50\nsack = \"pass\"\ngap_filled = \"forward\"\n\
                        released_until = \"next-ack\"\nhold_max_ms = 300\n\
                        rto_floor_ms = 200\nflows_max = 4096\nheld_bytes_max = 8388608\n\
                        held_packets_per_flow_max = 4096\nidle_s = 300\n";
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
