use crate::scenarios::{assert_in, run_written};

/// 002's gateways with T_lto 50 ms, T_report 50 ms, k 0.5 and T_dwd 250 ms.
const PAPER_002: &str = r#"
[links.dsl]
rate_mbit = 64
rtt_ms = 13
[links.lte]
rate_mbit = 60
rtt_ms = [25, 45]
price = 1
[bond]
links = ["dsl", "lte"]
[bond.scheduler]
algorithm = "adaptive-wrr"
[bond.resequencer]
order = "bond"
timer = "fixed"
timeout_ms = 50
loss_detection = "timer"
"#;

#[test]
fn adaptive_wrr_carries_what_one_link_cannot() {
    let app = r#"
        [[app]]
        name = "flow"
        kind = "udp"
        payload_bytes = 1388
        rate = { mbit = 100, layer = "offered" }
    "#;
    let result = run_written(&format!("duration_s = 32\nwarmup_s = 2\n{PAPER_002}{app}"));
    assert_in(&result, "loss_percent", 0.0..=1.0);
    assert_in(&result, "goodput_mbit", 99.0..=100.1);
    assert_eq!(result.counters["reordered_packets.flow"], 0, "whole-bond order");
    assert_eq!(result.counters["repeated_packets.flow"], 0);
}
