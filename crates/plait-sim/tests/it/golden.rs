//! Golden tables: small sweeps, held as rounded integers in `golden/*.txt`, so that a review sees
//! which cell of which table a change has moved. None of these figures is a promise.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plait_sim::run::run_cell;
use plait_sim::scenario::metric::unit_of;
use plait_sim::scenario::{CellResult, Experiment};

use crate::scenarios::{repository, small};

/// With `write` as its value the tables are replaced by what the runs find.
const VARIABLE: &str = "PLAIT_GOLDEN";

/// Runs each cell once and compares the table of these metrics with the one in the repository.
fn check(name: &str, experiment: &Experiment, metrics: &[&str]) {
    let run = |cell| run_cell(cell, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut found: Vec<CellResult> = experiment.cells.iter().map(run).collect();
    let scenario = &experiment.scenario;
    scenario.compare(&mut found);
    let head = format!("{}, {} s, seed 1", scenario.name, scenario.duration.as_secs_f64());
    let table = format!("{head}\n{}", table(&found, metrics));
    let file = file(name);
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "write") {
        std::fs::write(&file, table).expect("the folder of the tables can be written");
        return;
    }
    let held = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        held == table,
        "{} differs from what the runs find ({name}):\n{}if that is meant, accept it and commit \
         the file: {VARIABLE}=write cargo test -p plait-sim --test it golden",
        file.display(),
        difference(&held, &table),
    );
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name).with_extension("txt")
}

/// One row for each cell and metric, aligned; a metric that a cell does not have is `-`.
fn table(cells: &[CellResult], metrics: &[&str]) -> String {
    let mut rows = vec![["cell".to_owned(), "metric".into(), "value".into(), "unit".into()]];
    for cell in cells {
        for metric in metrics {
            let (factor, unit) = integer_unit(metric);
            let value = cell.metrics.get(*metric).filter(|value| value.is_finite());
            let value = value.map_or("-".into(), |value| format!("{:.0}", value * factor + 0.0));
            rows.push([cell.cell.clone(), (*metric).to_owned(), value, unit.into()]);
        }
    }
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [cell, metric, value, unit] in &rows {
        let [first, second, third] = widths;
        writeln!(text, "{cell:first$}  {metric:second$}  {value:>third$}  {unit}")
            .expect("writing to a text does not fail");
    }
    text
}

/// In which unit a metric is a whole number that tells enough, and how many make one of its own.
fn integer_unit(metric: &str) -> (f64, &'static str) {
    match unit_of(metric) {
        "%" => (100.0, "0.01 %"),
        "Mbit/s" => (100.0, "10 kbit/s"),
        "ms" => (10.0, "100 us"),
        "s" => (1000.0, "ms"),
        "packets" => (1.0, "packets"),
        "packets/min" => (1.0, "packets/min"),
        _ if is_count(metric) => (1.0, "times"),
        _ => (1000.0, "0.001"),
    }
}

fn is_count(metric: &str) -> bool {
    ["timeouts", "penalties", "stalls.", "switches"].iter().any(|name| metric.starts_with(name))
}

/// The lines that only one of the two has.
fn difference(held: &str, found: &str) -> String {
    let (held, found): (Vec<&str>, Vec<&str>) = (held.lines().collect(), found.lines().collect());
    let mut text = String::new();
    for at in 0..held.len().max(found.len()) {
        let (before, now) = (held.get(at), found.get(at));
        for (sign, line) in [("-", before), ("+", now)] {
            if let Some(line) = line.filter(|_| before != now) {
                writeln!(text, "{sign} {line}").expect("writing to a text does not fail");
            }
        }
    }
    text
}

#[test]
fn table_loss() {
    let settings = [
        "duration_s=10",
        "app.flow.rate.rise_s=4",
        "app.flow.rate.hold_s=2",
        "app.flow.rate.fall_s=4",
        "measure.weight_high.from_s=4",
        "measure.weight_high.to_s=6",
        "measure.weight_low.from_s=4",
        "measure.weight_low.to_s=6",
        "k=[0.1, 1.0]",
        "t_dwd_ms=[50, 500]",
    ];
    let experiment = repository("002/table-loss.toml", &settings);
    let metrics = ["loss_percent", "goodput_mbit", "utilisation_percent.dsl", "wait_p95_ms"];
    check("table-loss", &experiment, &metrics);
}

#[test]
fn multi_flow() {
    let metrics = [
        "losses_while_it_fits_packets",
        "losses_at_second_start_packets",
        "losses_above_packets_per_minute",
        "mobile_before_mbit",
        "mobile_empty_s",
        "weight_peak",
        "loss_percent.first",
        "loss_percent.second",
        "loss_percent.third",
    ];
    check("multi-flow", &small("multi-flow"), &metrics);
}

#[test]
fn tcp_over_a_bond() {
    let metrics = [
        "goodput_mbit.bulk",
        "retransmitted_percent.bulk",
        "timeouts.bulk",
        "bond_path_percent.dsl",
        "wait_p95_ms",
    ];
    check("tcp-over-bond", &small("tcp-over-bond"), &metrics);
}

#[test]
fn open_loop_schedulers() {
    let metrics = [
        "goodput_mbit.bulk",
        "utilisation_percent.a",
        "utilisation_percent.b",
        "link_loss_percent.a",
        "link_loss_percent.b",
        "link_queue_ms.a",
        "link_queue_ms.b",
    ];
    check("open-schedulers", &small("open-schedulers"), &metrics);
}

#[test]
fn closed_loop_schedulers() {
    let metrics = ["goodput_mbit.bulk", "utilisation_percent.a", "utilisation_percent.b"];
    check("closed-schedulers", &small("closed-schedulers"), &metrics);
}

#[test]
fn tcp_over_a_link() {
    let metrics = [
        "goodput_mbit.bulk",
        "retransmitted_percent.bulk",
        "timeouts.bulk",
        "delay_p50_ms.bulk",
        "link_loss_percent.a",
    ];
    check("tcp-over-link", &small("tcp-over-link"), &metrics);
}

#[test]
fn mptcp() {
    let metrics = [
        "goodput_mbit.bulk",
        "subflow_throughput_mbit.bulk:a",
        "subflow_throughput_mbit.bulk:b",
        "reinjected_percent.bulk",
        "penalties.bulk",
        "window_blocked_ms.bulk",
    ];
    check("mptcp", &small("mptcp"), &metrics);
}

#[test]
fn shared_bottleneck() {
    let settings = ["duration_s=12", "warmup_s=4"];
    let experiment = repository("shared/shared-bottleneck.toml", &settings);
    let metrics = [
        "goal_1_percent",
        "goal_2_percent",
        "goal_3_percent",
        "jain_index",
        "bonded_mbit",
        "plain_mbit",
        "share_percent",
    ];
    check("shared-bottleneck", &experiment, &metrics);
}

#[test]
fn voip() {
    let metrics = ["mos.call", "loss_percent.call", "delay_p50_ms.call", "delay_p95_ms.call"];
    check("voip", &small("voip"), &metrics);
}

#[test]
fn video() {
    let metrics = [
        "initial_load_s.clip",
        "stalls.clip",
        "stalled_s.clip",
        "buffered_s.clip",
        "quality_mbit.clip",
        "switches.clip",
        "viewer_score.clip",
        "finished.clip",
        "link_share_percent.a",
    ];
    check("video", &small("video"), &metrics);
}

#[test]
fn link_models() {
    let metrics = [
        "loss_percent",
        "goodput_mbit",
        "delay_p50_ms.flow",
        "delay_p95_ms.flow",
        "link_throughput_mbit.a",
        "utilisation_percent.a",
    ];
    check("link-models", &small("link-models"), &metrics);
}

#[test]
fn a_difference_shows_what_was_and_what_is() {
    assert_eq!(difference("a\nb\nc\n", "a\nd\nc\ne\n"), "- b\n+ d\n+ e\n");
    assert_eq!(difference("a\n", "a\n"), "");
}
