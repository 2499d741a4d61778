//! How much faster than real time. For people: no bar, and ignored by default.

use std::time::Instant;

use plait_sim::run::run;

use crate::scenarios::written;

const TWO_LINKS: &str = r#"
duration_s = 20
[links.a]
rate_mbit = 60
rtt_ms = 13
[links.b]
rate_mbit = 60
rtt_ms = [25, 45]
[bond]
links = ["a", "b"]
[bond.scheduler]
algorithm = "round-robin"
"#;

#[test]
#[ignore = "measures time; run it alone"]
fn faster_than_real_time() {
    let udp = "[[app]]\nname = \"udp\"\nkind = \"udp\"\npayload_bytes = 1400\n\
               rate = { mbit = 118, layer = \"wire\" }\n";
    let tcp = "[[app]]\nname = \"tcp\"\nkind = \"tcp\"\nflows = 4\n";
    let capture = "[capture]\nseries = [\"link_throughput\", \"goodput\", \"weight\"]\n";
    for (name, app) in [("udp", udp), ("tcp", tcp)] {
        let experiment = written(&format!("{TWO_LINKS}{app}{capture}"));
        let start = Instant::now();
        let result = run(&experiment.cells[0].scenario, 1).unwrap();
        let took = start.elapsed().as_secs_f64();
        let packets: u64 = result.counters[&format!("sent_packets.{name}")];
        println!(
            "{name}: 20 s in {took:.2} s, {:.0} times real time, {:.2} µs per packet, {:.1} Mbit/s",
            20.0 / took,
            took * 1e6 / packets as f64,
            result.metrics["goodput_mbit"]
        );
    }
}
