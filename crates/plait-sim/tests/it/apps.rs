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
