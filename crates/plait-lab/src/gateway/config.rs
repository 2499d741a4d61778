//! Writing a gateway's configuration file.

use anyhow::{Context, Result};
use serde::Serialize;

/// A whole file. An empty section is not written.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GatewayFile {
    pub(crate) gateway: GatewaySection,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) path: Vec<PathSection>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) peer: Vec<PeerSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheduler: Option<SchedulerSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) congestion: Option<CongestionSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resequencer: Option<ResequencerSection>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct GatewaySection {
    pub(crate) private_key_file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen_port: Option<u16>,
    pub(crate) tun: String,
    pub(crate) address: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u16>,
    pub(crate) routes: bool,
    /// Beside the configuration: no gateway of the lab finds what another left.
    pub(crate) state_file: String,
    /// Peers may measure the bond with this gateway.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) measure: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct PathSection {
    pub(crate) name: String,
    pub(crate) interface: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<u16>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) metered: bool,
}

fn is_default(flag: &bool) -> bool {
    !flag
}

impl PathSection {
    /// A path over the device of the same name.
    pub(crate) fn over(name: &str) -> Self {
        Self {
            name: name.into(),
            interface: name.into(),
            price: None,
            weight: None,
            metered: false,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct PeerSection {
    pub(crate) public_key: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoint: Vec<String>,
    pub(crate) allowed_ips: Vec<String>,
}

/// `[congestion]`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CongestionSection {
    pub(crate) algorithm: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slow_start: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SchedulerSection {
    pub(crate) algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lambda: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send_window_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) k: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) w_fixed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) w_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initial_weight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) t_dwd_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) t_report_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dwd_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight_rounding: Option<&'static str>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ResequencerSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timer: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_max_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) late: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss_detection: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) buffer_bytes_max: Option<u64>,
}

impl GatewayFile {
    /// Takes out what is IPv6 inside the bond.
    pub(super) fn without_ipv6(&mut self) {
        self.gateway.address.retain(|address| !address.contains(':'));
        for peer in &mut self.peer {
            peer.allowed_ips.retain(|prefix| !prefix.contains(':'));
        }
    }

    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("a gateway file cannot be written as TOML")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{customer_file, endpoint_v4, endpoint_v6, provider_file};
    use super::*;

    #[test]
    fn customer_file_is_as_documented() {
        let paths = [PathSection::over("dsl"), PathSection::over("lte")];
        let endpoints = [endpoint_v4(), endpoint_v6()];
        let mut file = customer_file("customer.key", 2, "S0VZ", &endpoints, &paths);
        file.scheduler = Some(SchedulerSection {
            algorithm: "adaptive-wrr".into(),
            k: Some(0.5),
            t_dwd_ms: Some(250),
            ..SchedulerSection::default()
        });
        file.resequencer =
            Some(ResequencerSection { order: Some("bond"), ..ResequencerSection::default() });
        let expected = r#"[gateway]
private_key_file = "customer.key"
tun = "plait0"
address = ["10.99.0.2/24", "fd99::2/64"]
routes = true
state_file = "customer.state"

[[path]]
name = "dsl"
interface = "dsl"

[[path]]
name = "lte"
interface = "lte"

[[peer]]
public_key = "S0VZ"
endpoint = ["192.0.2.1:7788", "[2001:db8::1]:7788"]
allowed_ips = ["10.99.0.1/32", "fd99::1/128", "198.51.100.0/24", "2001:db8:100::/48"]

[scheduler]
algorithm = "adaptive-wrr"
k = 0.5
t_dwd_ms = 250

[resequencer]
order = "bond"
"#;
        assert_eq!(file.to_toml().unwrap(), expected);
    }

    #[test]
    fn provider_file_has_no_paths_and_no_endpoint() {
        let file = provider_file("provider.key", &[("S0VZ".into(), 2)]);
        let expected = r#"[gateway]
private_key_file = "provider.key"
listen_port = 7788
tun = "plait1"
address = ["10.99.0.1/24", "fd99::1/64"]
routes = true
state_file = "provider.state"

[[peer]]
public_key = "S0VZ"
allowed_ips = ["10.99.0.2/32", "fd99::2/128"]
"#;
        assert_eq!(file.to_toml().unwrap(), expected);
    }
}
