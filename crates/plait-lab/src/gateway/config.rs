//! Configuration of the lab's gateways.

use plait_proto::session::PublicKey;
use plait_toml::gateway::{GatewayFile, Path, Peer};
use plait_toml::value::Cidr;

/// A path over the device of the same name.
pub(crate) fn path_over(name: &str) -> Path {
    Path { name: Some(name.into()), interface: Some(name.into()), ..Path::default() }
}

/// A customer that never calls: number `at` of many, of which none is in the lab's networks.
pub(crate) fn idle_peer(at: usize) -> Peer {
    let [.., high, low] = (at as u32).to_be_bytes();
    let mut key = [77; 32];
    key[..2].copy_from_slice(&[low, high]);
    let v6 = [0xfd16, 0, 0, 0, 0, 0, high.into(), low.into()];
    Peer {
        public_key: PublicKey::from_bytes(key).to_string(),
        allowed_ips: vec![
            Cidr { address: [10, 116, high, low].into(), length: 32 },
            Cidr { address: v6.into(), length: 128 },
        ],
        ..Peer::default()
    }
}

/// Removes IPv6 inside the bond.
pub(super) fn without_ipv6(file: &mut GatewayFile) {
    file.gateway.address.retain(|cidr| cidr.address.is_ipv4());
    for peer in &mut file.peers {
        peer.allowed_ips.retain(|cidr| cidr.address.is_ipv4());
    }
}

#[cfg(test)]
mod tests {
    use plait_proto::config::Order;
    use plait_proto::scheduler::{Algorithm, SchedulerConfig};
    use plait_toml::tuning::Tuning;

    use super::super::{customer_file, endpoint_v4, endpoint_v6, provider_file};
    use super::*;

    #[test]
    fn customer_file_is_as_documented() {
        let paths = ["dsl", "lte"].map(path_over);
        let endpoints = [endpoint_v4(), endpoint_v6()];
        let mut file = customer_file("customer.key", 2, "S0VZ", &endpoints, &paths);
        let scheduler = SchedulerConfig::from(Algorithm::AdaptiveWrr);
        file.tuning = Some(Tuning { order: Order::Bond, ..scheduler.into() });
        let expected = r#"[gateway]
private_key_file = "customer.key"
tun = "plait0"
address = ["10.99.0.2/24", "fd99::2/64"]
routes = true
state_file = "customer.state"
sandbox = true
allow_open_key_files = false
forward = false
nat = false
measure = false
measure_port = 7789
metrics_open = false

[[path]]
interface = "dsl"
name = "dsl"
price = 0
weight = 1
standby = false
metered = false
down = false

[[path]]
interface = "lte"
name = "lte"
price = 0
weight = 1
standby = false
metered = false
down = false

[[peer]]
public_key = "S0VZ"
endpoint = ["192.0.2.1:7788", "[2001:db8::1]:7788"]
allowed_ips = ["10.99.0.1/32", "fd99::1/128", "198.51.100.0/24", "2001:db8:100::/48"]
keepalive_s = 25

[scheduler]
algorithm = "adaptive-wrr"
k = 0.5
w_fixed = 50
w_max = 50
initial_weight = 0
t_dwd_ms = 250
t_report_ms = 50
dwd_mode = "per-tdwd"
weight_unit = "packets"
weights_adapt = "dearer"
small_flows = "share"
weight_rounding = "round"

[congestion]
algorithm = "none"

[resequencer]
order = "bond"
timer = "adaptive"
timeout_max_ms = 500
late = "drop"
loss_detection = "known"
buffer_bytes_max = 16777216
"#;
        assert_eq!(file.to_text(), expected);
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
sandbox = true
allow_open_key_files = false
forward = false
nat = false
measure = false
measure_port = 7789
metrics_open = false

[[peer]]
public_key = "S0VZ"
allowed_ips = ["10.99.0.2/32", "fd99::2/128"]
keepalive_s = 25
"#;
        assert_eq!(file.to_text(), expected);
    }
}
