//! Applications over one link of known properties.

use crate::scenarios::{assert_in, run_written};

const LINK: &str = "duration_s = 20\nwarmup_s = 5\n[links.a]\nrate_mbit = 20\nrtt_ms = 40\n";

#[test]
fn bulk_tcp_fills_a_link_both_ways() {
    for direction in ["down", "up"] {
        let result = run_written(&format!(
            "{LINK}[[app]]\nname = \"bulk\"\nkind = \"tcp\"\nvia = \"a\"\n\
             direction = \"{direction}\"\n[capture]\nseries = [\"cwnd\"]\n"
        ));
        // 1448 of 1500 bytes are payload.
        assert_in(&result, "goodput_mbit.bulk", 18.3..=19.31);
        assert!(result.metrics["retransmitted_percent.bulk"] < 2.0);
        // On average at least what is on the way: 20 Mbit/s for 40 ms are 67 segments.
        let windows = &result.series["cwnd.bulk"][50..];
        assert!(windows.iter().sum::<f64>() / windows.len() as f64 > 67.0, "{windows:?}");
    }
}

#[test]
fn bulk_tcp_fills_a_bond_of_one_link() {
    let result = run_written(&format!(
        "{LINK}[bond]\nlinks = [\"a\"]\n[[app]]\nname = \"bulk\"\nkind = \"tcp\"\n"
    ));
    // 1448 of 1560 bytes are payload; the gateways' own datagrams take some of the rest.
    assert_in(&result, "goodput_mbit.bulk", 16.9..=18.57);
    assert_in(&result, "aggregation_ratio", 0.91..=1.0);
}

#[test]
fn a_transfer_ends_when_all_is_there() {
    let result = run_written(&format!(
        "{LINK}[[app]]\nname = \"file\"\nkind = \"tcp\"\nvia = \"a\"\nflows = 2\nstart_s = 6\n\
         transfer_bytes = 1000000\n[capture]\nseries = [\"goodput\"]\n"
    ));
    let bits: f64 = result.series["goodput.file"].iter().map(|mbit| mbit * 1e5).sum();
    assert!((bits - 16e6).abs() < 1.0, "{bits}");
}

#[test]
fn a_call_is_good_on_a_calm_link_and_bad_on_a_lossy_one() {
    let call = "[[app]]\nname = \"call\"\nkind = \"voip\"\nvia = \"a\"\n";
    let calm = run_written(&format!("{LINK}{call}"));
    // 20 ms of packet and 20 ms of way: R = 93.2 - 0.96.
    assert_in(&calm, "mos.call", 4.38..=4.41);
    assert_in(&calm, "offered_mbit.call", 0.064..=0.064);
    let lossy = run_written(&format!("{LINK}loss = 0.1\n{call}"));
    // A tenth lost: R = 93.2 - 0.96 - 95 · 10 / 35.1 = 65.2.
    assert_in(&lossy, "mos.call", 3.1..=3.6);
    let late = run_written(&format!("{LINK}{call}playout_ms = 15\n"));
    assert_in(&late, "mos.call", 1.0..=1.2);
}

#[test]
fn a_page_of_one_small_object_takes_two_round_trips() {
    let page = |objects: u32, connections: u32| {
        run_written(&format!(
            "{LINK}[[app]]\nname = \"pages\"\nkind = \"web\"\nvia = \"a\"\nthink_s = 0.5\n\
             objects = {objects}\nconnections = {connections}\nobject_bytes = [1000, 1000]\n"
        ))
    };
    // Handshake, request, response: 80 ms and the packets' own time.
    assert_in(&page(1, 1), "page_load_p50_s.pages", 0.080..=0.083);
    // The second object costs a request and a response more, but not on a connection of its own.
    assert_in(&page(2, 1), "page_load_p50_s.pages", 0.120..=0.124);
    assert_in(&page(2, 2), "page_load_p50_s.pages", 0.080..=0.083);
}

/// A clip of 8 s in segments of 2 s at 10 Mbit/s.
const CLIP: &str = "[[app]]\nname = \"clip\"\nkind = \"video\"\nvia = \"a\"\nclip_s = 8\n\
    segment_s = 2\nkbit = 10000\n";

#[test]
fn a_clip_on_a_quick_link_waits_for_two_segments_as_long_as_its_goal() {
    let result = run_written(&format!("{LINK}{CLIP}"));
    // Four round trips (connection, manifest, two segments) and slow start; 5 MB at 19.3 Mbit/s of
    // payload take 2.07 s.
    assert_in(&result, "initial_load_s.clip", 2.23..=2.6);
    assert_in(&result, "stalls.clip", 0.0..=0.0);
    assert_in(&result, "finished.clip", 1.0..=1.0);
    assert_in(&result, "quality_mbit.clip", 10.0..=10.0);
    // All of it: 10 MB take 4.15 s.
    assert_in(&result, "buffered_s.clip", 4.4..=5.0);
    assert_in(&result, "viewer_score.clip", 3.24..=3.25);
}

#[test]
fn a_page_that_is_there_before_the_clip_is_wanted_has_its_connection() {
    let load =
        |start: &str| run_written(&format!("{LINK}{CLIP}{start}")).metrics["initial_load_s.clip"];
    // A handshake of 40 ms, and the time of a packet each way; but the receiver's first round trip
    // ends with the first packet then, so that its window grows a little later.
    let saved = load("") - load("start_s = 2\n");
    assert!((0.025..=0.041).contains(&saved), "{saved} s");
}

#[test]
fn a_clip_that_has_not_begun_and_one_that_stands_still_are_told_as_they_are() {
    let dead = run_written(&format!("{LINK}outages_s = [[0, 20]]\n{CLIP}start_s = 6\n"));
    assert_in(&dead, "initial_load_s.clip", 14.0..=14.0);
    assert_in(&dead, "finished.clip", 0.0..=0.0);
    assert!(!dead.metrics.contains_key("buffered_s.clip"), "{:?}", dead.metrics);
    assert!(!dead.metrics.contains_key("quality_mbit.clip"), "{:?}", dead.metrics);
    let cut = run_written(&format!("{LINK}outages_s = [[3, 20]]\n{CLIP}"));
    // Two segments were there and no third one; less than half a second of them is left over.
    assert_in(&cut, "stalls.clip", 1.0..=1.0);
    let waited = cut.metrics["initial_load_s.clip"] + cut.metrics["stalled_s.clip"];
    assert!((16.25..=16.5).contains(&waited), "of 20 s: {:?}", cut.metrics);
    assert_in(&cut, "finished.clip", 0.0..=0.0);
}

#[test]
fn a_clip_over_mptcp_has_the_sum_of_both_links_and_says_what_each_brought() {
    let result = run_written(&format!(
        "duration_s = 30\n[links.a]\nrate_mbit = 12\nrtt_ms = 40\n[links.b]\nrate_mbit = 12\n\
         rtt_ms = 20\n{}clip_s = 20\nkbit = 18000\nprimary = \"b\"\n",
        CLIP.replace("via = \"a\"\nclip_s = 8\n", "via = \"mptcp\"\n")
            .replace("kbit = 10000\n", "")
    ));
    // One link has two thirds of what it needs: it would stall.
    assert_in(&result, "stalls.clip", 0.0..=0.0);
    for link in ["a", "b"] {
        // 360 Mbit in 30 s are 12 Mbit/s, half of it each.
        assert_in(&result, &format!("subflow_throughput_mbit.clip:{link}"), 5.0..=7.5);
    }
}

#[test]
fn a_clip_of_several_qualities_takes_what_the_link_has() {
    let clip = |abr: &str| {
        let many = format!("kbit = [1000, 2000, 4000, 8000, 16000]\nabr = \"{abr}\"\n");
        let clip = CLIP.replace("kbit = 10000\n", &many).replace("clip_s = 8", "clip_s = 40");
        run_written(
            &format!("{LINK}down = {{ rate_mbit = 6 }}\n{clip}").replace("n_s = 20", "n_s = 60"),
        )
    };
    for abr in ["throughput", "buffer"] {
        let result = clip(abr);
        assert_in(&result, "stalls.clip", 0.0..=0.0);
        assert_in(&result, "finished.clip", 1.0..=1.0);
        assert_in(&result, "quality_mbit.clip", 2.5..=5.5);
    }
    // Downloads say 5.5 Mbit/s: 4 is at most 0.85 of that, and stays.
    assert_in(&clip("throughput"), "switches.clip", 1.0..=3.0);
}
