//! One seed is one run.

use plait_sim::run::run;

use crate::scenarios::written;

const EVERYTHING: &str = r#"
duration_s = 4
warmup_s = 1
server_rtt_ms = 10
[links.a]
rate_mbit = 20
rtt_ms = [10, 20]
loss = 0.005
through = "core"
[links.b]
rate_mbit = 15
rtt_ms = [30, 60]
loss = { p_good_bad = 0.002, p_bad_good = 0.2, bad = 0.5 }
outages_s = [[2.0, 2.4]]
[links.core]
rate_mbit = 30
rtt_ms = 4
queue = "codel"
[bond]
links = ["a", "b"]
[[app]]
name = "bulk"
kind = "tcp"
flows = 2
[[app]]
name = "beside"
kind = "tcp"
via = "a"
direction = "up"
recovery = "rfc6675"
[[app]]
name = "call"
kind = "voip"
[[app]]
name = "pages"
kind = "web"
object_bytes = [1000, 50000]
think_s = 0.1
[[app]]
name = "clip"
kind = "video"
kbit = [300, 900]
clip_s = 20
segment_s = 1
size_spread = 0.3
[[app]]
name = "bursts"
kind = "on-off"
on_s = 0.1
off_s = 0.2
times = "exponential"
rate = { mbit = 3, layer = "goodput" }
[capture]
series = [
    "link_throughput", "drops", "queue_ms", "weight", "rtt_ms", "offered", "goodput", "delay_ms",
    "cwnd", "losses", "waiting",
]
"#;

#[test]
fn a_seed_repeats_to_the_last_event() {
    let experiment = written(EVERYTHING);
    let scenario = &experiment.cells[0].scenario;
    let (first, again, other) =
        (run(scenario, 7).unwrap(), run(scenario, 7).unwrap(), run(scenario, 8).unwrap());
    assert!(first.trace.events() > 20_000, "{:?}", first.trace);
    assert_eq!(first.trace, again.trace);
    assert_eq!((&first.metrics, &first.series), (&again.metrics, &again.series));
    assert_ne!(first.trace.digest(), other.trace.digest());
}

#[test]
fn every_series_has_every_sample_and_nothing_arrives_twice() {
    let experiment = written(EVERYTHING);
    let result = run(&experiment.cells[0].scenario, 7).unwrap();
    // links: 3 each of throughput, drops, queue; 2 each of weight and rtt; apps: 6 each of offered,
    // goodput, delay; windows of 4; 2 of the run.
    assert_eq!(result.series.len(), 9 + 4 + 18 + 4 + 2);
    assert!(result.series.values().all(|samples| samples.len() == 40));
    for app in ["bulk", "beside", "call", "pages", "clip", "bursts"] {
        assert!(result.metrics[&format!("goodput_mbit.{app}")] > 0.0, "{app}");
        assert_eq!(result.counters[&format!("repeated_packets.{app}")], 0, "{app}");
        let sent = result.counters[&format!("sent_packets.{app}")];
        assert!(result.counters[&format!("received_packets.{app}")] <= sent, "{app}");
    }
}
