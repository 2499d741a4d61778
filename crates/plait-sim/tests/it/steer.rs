//! A steering node and DIDA between hosts that know nothing of either.

use plait_sim::run::RunResult;

use crate::scenarios::{assert_in, run_written};

/// Half of the packets over a link with three times the other's delay.
fn world(node: &str, app: &str) -> RunResult {
    run_written(&format!(
        "duration_s = 80\nserver_rtt_ms = 40\n\
         links.slow = {{ rate_mbit = 20, rtt_ms = 30, queue_ms = 100 }}\n\
         links.quick = {{ rate_mbit = 40, rtt_ms = 10, queue_ms = 100 }}\n\
         steer = {{ links = [\"slow\", \"quick\"], policy = \"fixed\", shares = [1, 1]{node} }}\n\
         [[app]]\nname = \"flow\"\nkind = \"tcp\"\ntransfer_bytes = 4_000_000\n{app}\n"
    ))
}

const THREE_DUPS: &str = "recovery = \"rfc6675\"\nundo = false\n";

#[test]
fn both_links_carry_their_share() {
    // A window that no queue overflows with: what is dropped is in neither link's throughput.
    let result = world("", "window_bytes_max = 100_000");
    let links = ["slow", "quick"]
        .map(|link| result.metrics[&format!("link_throughput_mbit.{link}")] * 80e6 / 8.0);
    let share = links[0] / (links[0] + links[1]);
    assert!((0.48..0.52).contains(&share), "{share}");
    assert!(links[0] + links[1] > 4e6, "every byte came over one of them: {links:?}");
    assert!(result.metrics["transfer_s.flow"] < 20.0);
}

#[test]
fn disorder_costs_a_sender_that_counts_duplicates_and_dida_wins_it_back() {
    let native = world("", THREE_DUPS);
    let held = world(", dida = { hold = 50 }", THREE_DUPS);
    assert!(native.metrics["fast_recoveries.flow"] > 4.0, "{:#?}", native.metrics);
    let gain = held.metrics["transfer_mbit.flow"] / native.metrics["transfer_mbit.flow"];
    assert!(gain > 1.5, "{gain} {:#?}", held.metrics);
    assert!(held.metrics["discarded_acks"] > 100.0 && held.metrics["masked_acks"] > 100.0);
    assert!(held.metrics["duplicate_acks.flow"] < native.metrics["duplicate_acks.flow"]);
    assert_in(&held, "hold_max_ms", 5.0..=51.0);
}

#[test]
fn dida_that_holds_nothing_changes_nothing() {
    let (native, off) = (world("", THREE_DUPS), world(", dida = { hold = \"off\" }", THREE_DUPS));
    assert_eq!(native.trace, off.trace);
    assert_eq!(off.metrics["held_acks"], 0.0);
    assert!(!native.metrics.contains_key("held_acks"));
}

#[test]
fn order_at_the_client_leaves_the_sender_no_duplicates() {
    let ordered = world(", client = { t_reordering_ms = 300 }", THREE_DUPS);
    let native = world("", THREE_DUPS);
    let duplicates = |result: &RunResult| result.metrics["duplicate_acks.flow"];
    assert!(duplicates(&ordered) < duplicates(&native) / 10.0, "{:#?}", ordered.metrics);
    assert!(ordered.metrics["transfer_mbit.flow"] > 1.5 * native.metrics["transfer_mbit.flow"]);
}

#[test]
fn a_sender_without_sack_is_served_too() {
    let native = world("", "sack = false\nundo = false\n");
    let held = world(", dida = { hold = 50 }", "sack = false\nundo = false\n");
    assert!(held.metrics["transfer_mbit.flow"] > native.metrics["transfer_mbit.flow"]);
    assert_eq!(held.metrics["masked_acks"], 0.0);
}

#[test]
fn clients_and_flows_share_the_links() {
    let result = run_written(
        "duration_s = 10\nserver_rtt_ms = 40\n\
         links.a = { rate_mbit = 20, rtt_ms = 30 }\nlinks.b = { rate_mbit = 40, rtt_ms = 10 }\n\
         steer = { links = [\"a\", \"b\"], clients = 2, dida = {} }\n\
         app = [{ name = \"x\", kind = \"tcp\", flows = 2 }, \
         { name = \"y\", kind = \"tcp\", client = 2 }, \
         { name = \"v\", kind = \"voip\", client = 2 }, \
         { name = \"w\", kind = \"web\", objects = 3, think_s = 0.1 }]\n",
    );
    for app in ["x", "y", "w"] {
        assert_in(&result, &format!("goodput_mbit.{app}"), 1.0..=60.0);
    }
    assert_in(&result, "loss_percent.v", 0.0..=5.0);
}

#[test]
fn dida_beside_a_bond_sees_its_acknowledgements() {
    let bond = |dida: &str| {
        run_written(&format!(
            "duration_s = 10\nserver_rtt_ms = 20\n\
             links.a = {{ rate_mbit = 20, rtt_ms = 30 }}\n\
             links.b = {{ rate_mbit = 40, rtt_ms = 10 }}\n\
             bond = {{ links = [\"a\", \"b\"]{dida} }}\n\
             app = [{{ name = \"flow\", kind = \"tcp\" }}]\n"
        ))
    };
    let (without, with) = (bond(""), bond(", dida = { hold = 20 }"));
    assert!(!without.metrics.contains_key("held_acks"));
    assert!(with.metrics["held_acks"] + with.metrics["masked_acks"] > 0.0, "{:#?}", with.metrics);
}
