//! Configuration of the lab's steering nodes.

use plait_proto::steer::Policy;
use plait_toml::node::Node;

/// A node that steers packet by packet. Its state file is beside the configuration, so that no node
/// of the lab finds another's.
pub(crate) fn node_with(policy: Policy) -> Node {
    Node { policy, state_file: Some("node.state".into()), ..Node::default() }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use plait_proto::dida::{DidaConfig, HoldPolicy};
    use plait_proto::steer::Addresses;
    use plait_proto::time::Duration;
    use plait_toml::node::{Attachment, Client, NodeFile};

    use super::*;

    #[test]
    fn a_nodes_file_is_as_documented() {
        let at = |network| Addresses { v4: Some(Ipv4Addr::new(10, network, 0, 1)), v6: None };
        let wifi = Attachment { name: "wifi".into(), address: at(2), ..Attachment::default() };
        let (name, address) = ("phone".into(), at(1));
        let hold = HoldPolicy::Fixed(Duration::from_millis(50));
        let file = NodeFile {
            node: node_with(Policy::Fixed),
            clients: vec![Client { name, address, attachments: vec![wifi] }],
            dida: Some(DidaConfig { hold, ..DidaConfig::default() }),
        };
        assert_eq!(
            file.to_text(),
            "[node]\npolicy = \"fixed\"\nper = \"packet\"\nfirst_packets = 10\n\
             other = \"flow\"\nunknown_clients = \"forward\"\nprobe = true\n\
             probe_interval_ms = 50\nprobe_idle_interval_ms = 5000\nprobe_timeout_ms = 1000\n\
             flows_per_client_max = 4096\nflow_idle_s = 300\ntun = \"steer0\"\n\
             table = 5200\nforward = false\nsandbox = true\nstate_file = \"node.state\"\n\n\
             [[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\n\n\
             [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\nweight = 1\n\
             price = 0\n\n\
             [dida]\nhold = 50\nsack = \"filter\"\ngap_filled = \"discard\"\n\
             released_until = \"recovery-point\"\nhold_max_ms = 1000\nrto_floor_ms = 200\n\
             flows_max = 4096\nheld_bytes_max = 8388608\nheld_packets_per_flow_max = 4096\n\
             idle_s = 300\n"
        );
    }
}
