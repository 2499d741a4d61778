//! From a scenario's steering node to the configuration of a real one. Every option is written out,
//! so that the node's defaults have no say.

use std::time::Duration;

use plait_proto::dida::{DidaConfig, HoldPolicy};
use plait_proto::steer::Granularity;
use plait_sim::scenario::{Scenario, SteerSpec};

use super::site::{customer_address, device_of};
use crate::gateway::{AttachmentSection, ClientSection, DidaSection, Hold, NodeFile, NodeSection};

/// What the node is told.
pub(crate) fn node_file(scenario: &Scenario, steer: &SteerSpec) -> NodeFile {
    let attachments = steer.links.iter().zip(&steer.shares).enumerate();
    let attachment = |(at, (name, weight)): (usize, (&String, &u16))| AttachmentSection {
        name: name.clone(),
        address: (at > 0).then(|| customer_address(scenario, name)),
        interface: device_of(scenario, name),
        weight: *weight,
        price: scenario.links[name].price,
    };
    let primary = steer.links.first().expect("a checked steering node has links");
    let client = ClientSection {
        name: "client".into(),
        address: customer_address(scenario, primary),
        attachment: attachments.map(attachment).collect(),
    };
    NodeFile {
        node: NodeSection {
            mtu: Some(steer.mtu),
            policy: Some(steer.policy.to_string()),
            per: Some(match steer.granularity {
                Granularity::Packet => "packet",
                Granularity::Flow => "flow",
            }),
            first_packets: Some(steer.first_packets),
            ..NodeFile::of(client.clone()).node
        },
        dida: steer.dida.as_ref().map(dida),
        ..NodeFile::of(client)
    }
}

fn dida(config: &DidaConfig) -> DidaSection {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    DidaSection {
        hold: Some(match config.hold {
            HoldPolicy::Fixed(time) => Hold::Millis(millis(time)),
            policy => Hold::Policy(policy.name()),
        }),
        sack: Some(config.sack.name()),
        gap_filled: Some(config.on_gap_filled.name()),
        released_until: Some(config.released_until.name()),
        hold_max_ms: Some(millis(config.hold_max)),
    }
}
