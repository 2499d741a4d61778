//! The text against the status that it is made from.

use std::collections::{BTreeMap, BTreeSet};

use plait_proto::stats::EndpointStatus;
use serde_json::{Value as Json, json};

use super::super::figures::In;
use super::*;

/// Every number in it differs from every other.
fn status() -> Json {
    let path = |id: u8, name: &str| {
        let base = 1000 * u64::from(id);
        json!({
            "id": id, "name": name, "state": if id == 0 { "up" } else { "silent" },
            "reason": "answers", "remote": "192.0.2.1:7788", "price": 3 + id, "weight": base + 5,
            "srtt_us": base + 31, "min_rtt_us": base + 30, "jitter_us": base + 7,
            "delay_excess_us": base + 8, "loss_ratio": 0.25 + f64::from(id) / 10.0,
            "mtu_bytes": base + 1428, "standby": id == 1, "metered": id == 0, "in_use": id == 0,
            "in_flight_bytes": base + 40, "control_packets": base + 41,
            "rescued_packets": base + 42,
            "window_bytes": base + 43, "pacing_rate_bps": base + 44, "capacity_bps": base + 45,
            "delivery_rate_bps": base + 46, "sent_packets": base + 47, "sent_bytes": base + 48,
            "received_packets": base + 49, "received_bytes": base + 50,
            "delivered_bytes": 3_000_000 + base, "lost_packets": base + 51, "late_packets": 7,
            "reported_lost_packets": base + 52,
        })
    };
    json!({
        "public_key": "OWN=",
        "peers": [{
            "public_key": "abcdefghIJKLMNOP=", "state": "up", "scheduler": "earliest-delivery",
            "session_age_s": 61, "handshakes": 62, "cipher": "AES-256-GCM",
            "inner_mtu_bytes": 1440, "inner_sent_packets": 63, "inner_sent_bytes": 64,
            "inner_delivered_packets": 65, "inner_delivered_bytes": 66,
            "backlog": {
                "congestion": "gauge", "packets": 67, "bytes": 68, "waited_us": 69,
                "repaired_packets": 70, "copied_bytes": 71,
            },
            "attempts": {
                "count": 72, "since_ms": 73, "last_ms_ago": 74, "next_in_ms": 75, "asked": [],
            },
            "paths": [path(0, "dsl"), path(1, "lte")],
            "resequencer": {
                "at_once": 80, "waited": 81, "waiting_total_us": 82, "waiting_max_us": 83,
                "timeout_max_us": 84, "waiting_histogram": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                "waiting_now_packets": 85, "waiting_now_bytes": 86, "peak_packets": 87,
                "peak_bytes": 88,
                "released": { "in_order": 89, "known_lost": 90, "timer": 91, "overflow": 92 },
                "given_up": 93, "known_lost": 94, "late_dropped": 95, "late_delivered": 96,
                "duplicates": 97,
            },
        }],
        "drops": { "bad-tag": 98, "replayed": 99 },
    })
}

fn socket(base: u64) -> Json {
    json!({
        "sends": base, "sent_datagrams": base + 1, "sent_bytes": base + 2,
        "received_buffers": base + 3, "received_datagrams": base + 4,
        "refused_segmentation": base + 5, "too_long_datagrams": base + 6,
        "full_sends": base + 7, "failed_sends": base + 8,
    })
}

fn links() -> Json {
    json!([
        { "name": "dsl", "interface": "eth0", "state": "up", "reason": "", "socket": socket(200) },
        { "name": "lte", "interface": "wwan0", "state": "absent", "reason": "no such interface" },
    ])
}

fn device() -> Json {
    json!({
        "reads": 301, "read_packets": 302, "dropped_malformed": 303, "written_packets": 304,
        "written_aggregates": 305, "refused_aggregates": 306, "dropped_full": 307,
        "dropped_invalid": 308,
    })
}

fn snapshot(status: Json) -> Snapshot {
    Snapshot {
        uptime_s: 400,
        endpoint: serde_json::from_value(status).unwrap(),
        contacts: Vec::new(),
        links: serde_json::from_value(links()).unwrap(),
        listening: Some(serde_json::from_value(socket(500)).unwrap()),
        quotas: Vec::new(),
        device: serde_json::from_value(device()).unwrap(),
        hooks: Vec::new(),
        beside: Vec::new(),
        outage: serde_json::from_value(json!({
            "when_down": "hold", "bypassing": false, "down_for_s": null, "text": "",
        }))
        .unwrap(),
        lans: Vec::new(),
        dns: None,
    }
}

/// Samples by their names with labels in order.
type Samples = BTreeMap<String, f64>;

/// Reads the text; no series may be there twice, and each has a type.
fn samples(text: &str) -> Samples {
    let mut samples = Samples::new();
    assert!(text.ends_with("# EOF\n"));
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let types: BTreeSet<&str> = types.collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let series = series.strip_suffix("{}").unwrap_or(series);
        let before = samples.insert(series.to_owned(), value.parse().unwrap());
        assert_eq!(before, None, "{line}");
        let name = series.split('{').next().unwrap();
        let suffixes = ["_total", "_info", "_sum", "_count", "_bucket", ""];
        let is_typed = |suffix| name.strip_suffix(suffix).is_some_and(|of| types.contains(of));
        assert!(suffixes.into_iter().any(is_typed), "{line} has no type");
    }
    samples
}

fn text_of(status: Json) -> String {
    let served = Served::default();
    Exposition::new(snapshot(status), served, &mut PathNames::default()).into_text()
}

/// The series' name that a figure has in the text.
fn series<T>(figure: &Figure<T>, labels: &str) -> String {
    let unit = match figure.unit {
        In::Count => "",
        In::Seconds => "_seconds",
        In::Bytes => "_bytes",
        In::BytesPerSecond => "_bytes_per_second",
        In::Ratio => "_ratio",
    };
    let total = if matches!(figure.value, Value::Counter(_)) { "_total" } else { "" };
    format!("plait_{}{unit}{total}{labels}", figure.name)
}

/// A number of the status in the metrics' unit.
fn in_base_unit(field: &str, value: &Json) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_bool().map(|is_so| is_so.into()))?;
    Some(match field.rsplit('_').next() {
        Some("us") => number / 1e6,
        Some("ms") => number / 1e3,
        Some("bps") => number / 8.0,
        _ => number,
    })
}

/// All numbers and truths below `of`, by JSON pointer.
fn numbers(of: &Json, at: &str, into: &mut BTreeMap<String, f64>) {
    match of {
        Json::Object(fields) => {
            for (name, field) in fields {
                numbers(field, &format!("{at}/{name}"), into);
            }
        }
        Json::Array(all) => {
            for (at_index, field) in all.iter().enumerate() {
                numbers(field, &format!("{at}/{at_index}"), into);
            }
        }
        other => into.extend(in_base_unit(at, other).map(|number| (at.to_owned(), number))),
    }
}

/// Each number of `of` is shown by a figure with just its value, unless it is `shown_otherwise`.
fn check<T>(
    figures: &[Figure<T>],
    labels: &str,
    of: &Json,
    shown_otherwise: &[&str],
    samples: &Samples,
) {
    let mut expected = BTreeMap::new();
    numbers(of, "", &mut expected);
    expected.retain(|field, _| !shown_otherwise.iter().any(|other| field.starts_with(other)));
    for figure in figures.iter().filter(|figure| !figure.field.is_empty()) {
        let number = expected.remove(figure.field);
        let number = number.unwrap_or_else(|| panic!("the status has no {}", figure.field));
        let series = series(figure, labels);
        let shown = samples.get(&series).unwrap_or_else(|| panic!("no {series}"));
        assert!((shown - number).abs() <= 1e-9 * number.abs(), "{series}: {shown}, not {number}");
    }
    assert!(expected.is_empty(), "no metric shows {expected:?}");
}

#[test]
fn every_number_of_the_status_has_its_metric() {
    let status = status();
    let samples = samples(&text_of(status.clone()));
    let peer = &status["peers"][0];
    for (at, path) in ["dsl", "lte"].into_iter().enumerate() {
        let labels = format!("{{peer=\"abcdefgh\",path=\"{path}\"}}");
        check(PATH, &labels, &peer["paths"][at], &["/id"], &samples);
    }
    let elsewhere = [
        "/paths",
        "/resequencer/released",
        "/resequencer/waiting_histogram",
        "/resequencer/waiting_total_us",
        // They follow from the first attempt and the waits of the protocol.
        "/attempts/last_ms_ago",
        "/attempts/next_in_ms",
    ];
    check(PEER, "{peer=\"abcdefgh\"}", peer, &elsewhere, &samples);
    check(SOCKET, "{link=\"dsl\"}", &socket(200), &[], &samples);
    check(SOCKET, "{link=\"(listening)\"}", &socket(500), &[], &samples);
    check(DEVICE, "", &device(), &[], &samples);
    for (series, value) in [
        ("plait_uptime_seconds", 400.0),
        ("plait_peers{state=\"up\"}", 1.0),
        ("plait_peers{state=\"down\"}", 0.0),
        ("plait_peers_left_out", 0.0),
        ("plait_drops_total{reason=\"bad-tag\"}", 98.0),
        ("plait_drops_total{reason=\"no-peer\"}", 0.0),
        ("plait_link_up{link=\"dsl\"}", 1.0),
        ("plait_link_up{link=\"lte\"}", 0.0),
        ("plait_peer_up{peer=\"abcdefgh\"}", 1.0),
        ("plait_peer_state{peer=\"abcdefgh\",state=\"up\"}", 1.0),
        ("plait_path_state{peer=\"abcdefgh\",path=\"lte\",state=\"silent\"}", 1.0),
        ("plait_resequencer_released_packets_total{peer=\"abcdefgh\",reason=\"timer\"}", 91.0),
        ("plait_resequencer_wait_seconds_sum{peer=\"abcdefgh\"}", 82e-6),
        ("plait_resequencer_wait_seconds_count{peer=\"abcdefgh\"}", 55.0),
        ("plait_resequencer_wait_seconds_bucket{le=\"0.005\",peer=\"abcdefgh\"}", 6.0),
        ("plait_resequencer_wait_seconds_bucket{le=\"+Inf\",peer=\"abcdefgh\"}", 55.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}");
    }
    let build = concat!("plait_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
    assert_eq!(samples.get(build), Some(&1.0));
    let of = serde_json::from_value::<EndpointStatus>(status).unwrap().peers.remove(0);
    let overhead = samples.get("plait_peer_overhead_ratio{peer=\"abcdefgh\"}");
    assert_eq!(overhead.copied(), of.overhead());
}

#[test]
fn a_quota_is_shown_beside_its_limit() {
    let mut with_quota = snapshot(status());
    with_quota.quotas.push(crate::daemon::quota::QuotaStatus {
        path: "lte".into(),
        used_bytes: 5,
        limit_bytes: 7,
    });
    let served = Served::default();
    let text = Exposition::new(with_quota, served, &mut PathNames::default()).into_text();
    let samples = samples(&text);
    assert_eq!(samples["plait_quota_used_bytes{path=\"lte\"}"], 5.0);
    assert_eq!(samples["plait_quota_limit_bytes{path=\"lte\"}"], 7.0);
}

#[test]
fn no_name_breaks_a_line_or_makes_a_series_twice() {
    let mut status = status();
    let peer = &mut status["peers"][0];
    peer["paths"][0]["name"] = json!("a\"b\\");
    peer["paths"][1]["name"] = json!("a\"b\\");
    let mut second = peer.clone();
    second["public_key"] = json!("abcdefghXYZ=");
    status["peers"].as_array_mut().unwrap().push(second);
    let samples = samples(&text_of(status));
    for (peer, path) in [("IJKLMNOP=", ""), ("IJKLMNOP=", "#1"), ("XYZ=", ""), ("XYZ=", "#1")] {
        let series = format!("plait_path_up{{peer=\"abcdefgh{peer}\",path=\"a\\\"b\\\\{path}\"}}");
        assert!(samples.contains_key(&series), "{series}");
    }
}

#[test]
fn a_peer_that_renames_its_paths_makes_only_so_many_series() {
    let mut names = PathNames::default();
    let mut seen = BTreeSet::new();
    for turn in 0..1000 {
        let mut status = status();
        status["peers"][0]["paths"][0]["name"] = json!(format!("name{turn}"));
        let told = snapshot(status);
        seen.extend(names.of("abcdefgh", &told.endpoint.peers[0].paths));
    }
    assert!((10..=18).contains(&seen.len()), "{seen:?}");
}

#[test]
fn peers_beyond_the_first_thousand_are_counted_only() {
    let mut status = status();
    let peer = status["peers"][0].clone();
    let peers = status["peers"].as_array_mut().unwrap();
    for number in 1..1003 {
        let mut peer = peer.clone();
        peer["public_key"] = json!(format!("{number:08}="));
        peers.push(peer);
    }
    let samples = samples(&text_of(status));
    assert_eq!(samples["plait_peers_left_out"], 3.0);
    assert_eq!(samples["plait_peers{state=\"up\"}"], 1003.0);
    let labelled = samples.keys().filter(|series| series.starts_with("plait_peer_up{"));
    assert_eq!(labelled.count(), 1000);
}
