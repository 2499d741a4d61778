//! TCP with BBR over links and over a bond.

use crate::scenarios::{assert_in, run_written};

const LINK: &str = "duration_s = 20\nwarmup_s = 5\n[links.a]\nrate_mbit = 20\nrtt_ms = 40\n";

fn bulk(name: &str, controller: &str, via: &str) -> String {
    format!("[[app]]\nname = \"{name}\"\nkind = \"tcp\"\ncontroller = \"{controller}\"\n{via}\n")
}

#[test]
fn it_fills_a_link_alone() {
    let result = run_written(&format!("{LINK}{}", bulk("bulk", "bbr", "via = \"a\"")));
    // 1448 of 1500 bytes are payload.
    assert_in(&result, "goodput_mbit.bulk", 18.5..=19.31);
    assert_in(&result, "retransmitted_percent.bulk", 0.0..=0.1);
}

#[test]
fn random_loss_takes_little_more_than_itself() {
    let result = run_written(&format!("{LINK}loss = 0.02\n{}", bulk("bulk", "bbr", "via = \"a\"")));
    assert_in(&result, "goodput_mbit.bulk", 17.9..=18.95);
}

#[test]
fn it_shares_a_link_with_cubic() {
    let flows = bulk("bbr", "bbr", "via = \"a\"") + &bulk("cubic", "cubic-linux", "via = \"a\"");
    // A minute: the first seconds tell how the two begin.
    let long = LINK.replace("duration_s = 20", "duration_s = 65");
    for queue_ms in [25, 50, 200] {
        let link = format!("{long}queue_ms = {queue_ms}\n");
        let result = run_written(&format!("{link}{flows}"));
        let sum = result.metrics["goodput_mbit.bbr"] + result.metrics["goodput_mbit.cubic"];
        assert!(sum > 17.5, "{sum}");
        assert_in(&result, "goodput_mbit.bbr", 5.0..=14.3);
        assert_in(&result, "goodput_mbit.cubic", 5.0..=14.3);
    }
}

/// Over the bond as it is without controllers of its own.
#[test]
fn it_runs_within_a_bond() {
    let links = format!("{LINK}[links.b]\nrate_mbit = 20\nrtt_ms = 50\n");
    let bond = "[bond]\nlinks = [\"a\", \"b\"]\n[bond.scheduler]\nalgorithm = \"min-rtt\"\n\
                [bond.congestion]\nalgorithm = \"none\"\n";
    for (bond, low) in [(bond.replace(", \"b\"", ""), 17.5), (bond.to_owned(), 33.0)] {
        let result = run_written(&format!("{links}{bond}{}", bulk("bulk", "bbr", "")));
        assert_in(&result, "goodput_mbit.bulk", low..=37.2);
    }
}
