//! Writing a steering node's configuration file.

use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result};
use serde::Serialize;
use toml::Value;

/// A whole file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeFile {
    pub(crate) node: NodeSection,
    pub(crate) client: Vec<ClientSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dida: Option<DidaSection>,
}

/// `[node]`. What is `None` is not written: the default holds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeSection {
    pub(crate) tun: String,
    pub(crate) policy: String,
    pub(crate) per: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_packets: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe_timeout_ms: Option<u64>,
    /// Makes the host forward while the node runs.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) forward: bool,
    /// Beside the configuration: no node of the lab finds what another left.
    pub(crate) state_file: String,
}

fn is_default(flag: &bool) -> bool {
    !flag
}

impl NodeSection {
    /// A node that steers packet by packet.
    pub(crate) fn with_policy(policy: &str) -> Self {
        Self {
            tun: "steer0".into(),
            policy: policy.into(),
            per: "packet".into(),
            first_packets: None,
            mtu: None,
            probe_interval_ms: None,
            probe_timeout_ms: None,
            forward: false,
            state_file: "node.state".into(),
        }
    }
}

/// `[[client]]`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClientSection {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address6: Option<Ipv6Addr>,
    /// The primary first.
    pub(crate) attachment: Vec<AttachmentSection>,
}

/// `[[client.attachment]]`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct AttachmentSection {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address6: Option<Ipv6Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interface: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gateway: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<u8>,
}

/// `[dida]`. What is `None` is not written: the default holds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DidaSection {
    /// A policy's name, or a number of milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sack: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gap_filled: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) released_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold_max_ms: Option<f64>,
}

impl NodeFile {
    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("a steering node's configuration can be written as TOML")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_is_written() {
        let wifi = AttachmentSection {
            name: "wifi".into(),
            address: Some([10, 2, 0, 1].into()),
            ..AttachmentSection::default()
        };
        let file = NodeFile {
            node: NodeSection::with_policy("fixed"),
            client: vec![ClientSection {
                name: "phone".into(),
                address: Some([10, 1, 0, 1].into()),
                address6: None,
                attachment: vec![wifi],
            }],
            dida: Some(DidaSection { hold: Some(Value::Integer(50)), ..DidaSection::default() }),
        };
        assert_eq!(
            file.to_toml().unwrap(),
            "[node]\ntun = \"steer0\"\npolicy = \"fixed\"\nper = \"packet\"\n\
             state_file = \"node.state\"\n\n[[client]]\nname = \"phone\"\n\
             address = \"10.1.0.1\"\n\n\
             [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\n\n[dida]\nhold = 50\n"
        );
    }
}
