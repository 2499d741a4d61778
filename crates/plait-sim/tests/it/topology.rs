//! Links, what is behind them and beside the bond.

use plait_sim::error::WorldError;
use plait_sim::run::run;

use crate::scenarios::{assert_in, run_written, written};

fn cbr(name: &str, via: &str, mbit: u32) -> String {
    format!(
        "[[app]]\nname = \"{name}\"\nkind = \"udp\"\nvia = \"{via}\"\npayload_bytes = 1000\n\
         rate = {{ mbit = {mbit}, layer = \"wire\" }}\n"
    )
}

#[test]
fn bond_and_plain_packets_wait_in_the_same_queue() {
    let links = "duration_s = 3\nwarmup_s = 1\n[links.a]\nrate_mbit = 20\nrtt_ms = 20\n\
                 [bond]\nlinks = [\"a\"]\n[bond.scheduler]\nalgorithm = \"min-rtt\"\n";
    let calm = run_written(&format!("{links}{}{}", cbr("bonded", "bond", 5), cbr("plain", "a", 5)));
    assert_in(&calm, "delay_p95_ms.plain", 10.0..=11.5);
    assert_in(&calm, "loss_percent", 0.0..=0.0);
    assert_in(&calm, "bond_share_percent.a", 49.0..=51.5);
    let full =
        run_written(&format!("{links}{}{}", cbr("bonded", "bond", 25), cbr("plain", "a", 5)));
    // 10 ms, and a queue of 50 ms that is full.
    assert_in(&full, "delay_p50_ms.plain", 57.0..=62.0);
    // A third too much; how drop-tail spreads it over two clocked flows is chance.
    assert_in(&full, "loss_percent", 32.0..=35.0);
    assert_in(&full, "loss_percent.plain", 10.0..=70.0);
    assert_in(&full, "loss_percent.bonded", 10.0..=70.0);
    assert_in(&full, "utilisation_percent.a", 99.0..=100.1);
}

#[test]
fn links_through_a_shared_one_share_its_rate() {
    let links = "duration_s = 3\nwarmup_s = 1\nserver_rtt_ms = 30\n\
                 [links.a]\nrate_mbit = 40\nrtt_ms = 10\nthrough = \"core\"\n\
                 [links.b]\nrate_mbit = 40\nrtt_ms = 10\nthrough = \"core\"\n\
                 [links.core]\nrate_mbit = 20\nrtt_ms = 20\n\
                 [bond]\nlinks = [\"a\", \"b\"]\n[bond.scheduler]\nalgorithm = \"round-robin\"\n";
    let calm = run_written(&format!("{links}{}", cbr("bonded", "bond", 10)));
    // 5 ms on the link, 10 ms on the shared one, 15 ms on the wire to the server.
    assert_in(&calm, "delay_p50_ms.bonded", 30.0..=31.5);
    assert_in(&calm, "bond_path_percent.a", 49.0..=51.0);
    let full = run_written(&format!("{links}{}", cbr("bonded", "bond", 30)));
    assert_in(&full, "link_throughput_mbit.core", 19.8..=20.0);
    assert_in(&full, "loss_percent", 31.0..=35.0);
    assert_in(&full, "link_loss_percent.a", 0.0..=0.0);
    let up = format!("{links}{}direction = \"up\"\n", cbr("bonded", "bond", 10));
    assert_in(&run_written(&up), "delay_p50_ms.bonded", 30.0..=31.5);
}

#[test]
fn acknowledgements_share_a_narrow_uplink_with_what_else_goes_up() {
    let run = |up_mbit: f64, load_mbit: f64| {
        run_written(&format!(
            "duration_s = 20\nwarmup_s = 5\n[links.a]\nrtt_ms = 40\nqueue_ms = 100\n\
             down = {{ rate_mbit = 40 }}\nup = {{ rate_mbit = {up_mbit} }}\n\
             [[app]]\nname = \"download\"\nkind = \"tcp\"\nvia = \"a\"\n\
             [[app]]\nname = \"upload\"\nkind = \"udp\"\nvia = \"a\"\ndirection = \"up\"\n\
             payload_bytes = 1000\nrate = {{ mbit = {load_mbit}, layer = \"offered\" }}\n"
        ))
    };
    let calm = run(2.0, 0.02);
    assert_in(&calm, "goodput_mbit.download", 37.0..=38.7);
    assert_in(&calm, "delay_p50_ms.upload", 24.0..=26.0);
    // The upload finds 0.7 of 2 Mbit/s taken by acknowledgements, and both wait 100 ms.
    let full = run(2.0, 1.9);
    assert_in(&full, "delay_p50_ms.upload", 115.0..=125.0);
    assert_in(&full, "goodput_mbit.upload", 1.0..=1.5);
    // Each acknowledgement stands for those that the queue dropped.
    assert_in(&run(0.4, 0.0011), "goodput_mbit.download", 34.0..=39.5);
}

#[test]
fn a_policer_drops_and_a_shaper_delays() {
    let run = |limit: &str| {
        run_written(&format!(
            "duration_s = 4\nwarmup_s = 1\n[links.a]\nrate_mbit = 100\nrtt_ms = 20\n{limit}\n{}",
            cbr("plain", "a", 20)
        ))
    };
    let bucket = "= { rate_mbit = 10, burst_bytes = 20000 }";
    let policed = run(&format!("policer {bucket}"));
    assert_in(&policed, "loss_percent", 49.0..=51.0);
    assert_in(&policed, "delay_p95_ms.plain", 10.0..=10.3);
    assert_in(&policed, "utilisation_percent.a", 99.0..=101.0);
    let shaped = run(&format!("shaper {bucket}"));
    assert_in(&shaped, "loss_percent", 49.0..=51.0);
    // 10 ms, and a queue of 50 ms at the shaper's rate.
    assert_in(&shaped, "delay_p50_ms.plain", 58.0..=61.5);
}

#[test]
fn steps_of_the_rate_begin_with_the_scenario() {
    let text = "duration_s = 4\n[links.a]\nrate_mbit = 20\nrtt_ms = 20\nqueue_ms = 20\n\
                rate_steps = [[1, 5]]\nrate_repeat_s = 2\n";
    let result = run_written(&format!(
        "{text}{}[capture]\nseries = [\"link_throughput\"]\n",
        cbr("plain", "a", 30)
    ));
    let series = &result.series["link_throughput.a"];
    for (at, mbit) in [(5, 20.0), (15, 5.0), (25, 20.0), (35, 5.0)] {
        assert!((series[at] - mbit).abs() < 0.3, "{mbit} Mbit/s at {at}: {series:?}");
    }
    // 20 Mbit/s half of the time, 5 Mbit/s the other half.
    assert_in(&result, "utilisation_percent.a", 98.0..=101.0);
}

#[test]
fn an_outage_is_as_long_as_it_is_told() {
    let links =
        "duration_s = 5\n[links.a]\nrate_mbit = 20\nrtt_ms = 20\noutages_s = [[2.0, 2.5]]\n";
    let result = run_written(&format!(
        "{links}{}[capture]\nseries = [\"goodput\", \"drops\"]\n",
        cbr("plain", "a", 10)
    ));
    assert_in(&result, "loss_percent", 9.9..=10.1);
    let silent = |samples: &[f64]| samples.iter().all(|mbit| *mbit == 0.0);
    let goodput = &result.series["goodput.plain"];
    assert!(silent(&goodput[21..25]) && !silent(&goodput[19..20]) && !silent(&goodput[25..26]));
    assert_eq!(result.points("goodput.plain").unwrap()[0].0, 0.1);
}

#[test]
fn gateways_that_cannot_meet_are_an_error() {
    let links = "duration_s = 1\n[links.a]\nrate_mbit = 20\nrtt_ms = 20\nloss = 1.0\n\
                 [bond]\nlinks = [\"a\"]\n";
    let experiment = written(&format!("{links}{}", cbr("bonded", "bond", 5)));
    let error = run(&experiment.cells[0].scenario, 1).unwrap_err();
    assert_eq!(error, WorldError::NoBond { waited_s: 30 });
}
