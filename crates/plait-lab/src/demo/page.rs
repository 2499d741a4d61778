//! The demo as results of a run, so that its page is made like every other: one cell for each
//! setup.

use super::{DemoPlan, Outcome, RATIO_MIN, Row, report};
use crate::measure::over_time::INTERVAL;
use crate::record::{
    CellFigure, CellRecord, CheckFigure, Origin, Results, RunRecord, SummaryRecord,
};
use crate::report::{Bar, Lead, bars, escape, figure_of, page_led_by};
use plait_sim::scenario::Settings;

const NAME: &str = "demo";
const COMMAND: &str = "plait-lab demo";
const SETUP: &str = "setup";
const BOND_COLOUR: usize = 2;
const LINK_COLOUR: usize = 0;
const BARE_COLOUR: usize = 7;

/// The page: the bond's result first, in words and beside the figures to compare it with.
pub(super) fn html(plan: DemoPlan, rows: &[Row], outcome: &Outcome, elapsed_s: f64) -> String {
    page_led_by(&lead(rows), &results(plan, rows, outcome, elapsed_s))
}

fn lead(rows: &[Row]) -> Lead {
    let sentence = report::sentence_of(rows).unwrap_or_default();
    let drawn = [
        side_by_side("One TCP download, Mbit/s", rows, |row| row.tcp.throughput_bps),
        side_by_side("UDP that arrived, Mbit/s", rows, |row| row.udp.throughput_bps),
        side_by_side("A file from a web server, Mbit/s", rows, |row| row.file.throughput_bps),
    ];
    Lead {
        headline: format!("<p class=\"headline\">{}</p>\n", escape(&sentence)),
        drawn: format!("<div class=\"plots lead\">\n{}</div>\n", drawn.concat()),
        more: String::new(),
    }
}

/// The bond, and the figures to compare it with: the links and their sum, through plait and
/// without.
fn side_by_side(title: &str, rows: &[Row], throughput_bps: fn(&Row) -> u64) -> String {
    let [bare_dsl, bare_lte, dsl, lte, bond] = rows else { return String::new() };
    let bar = |name: &str, rows: &[&Row], colour| {
        let value = rows.iter().map(|row| throughput_bps(row) as f64 / 1e6).sum();
        Bar { name: name.to_owned(), value, low: value, high: value, mark: None, colour }
    };
    let all = [
        bar("the bond of DSL and LTE", &[bond], BOND_COLOUR),
        bar("DSL alone, through plait", &[dsl], LINK_COLOUR),
        bar("LTE alone, through plait", &[lte], LINK_COLOUR),
        bar("their sum, through plait", &[dsl, lte], LINK_COLOUR),
        bar("DSL alone, without plait", &[bare_dsl], BARE_COLOUR),
        bar("LTE alone, without plait", &[bare_lte], BARE_COLOUR),
        bar("their sum, without plait", &[bare_dsl, bare_lte], BARE_COLOUR),
    ];
    figure_of(title, "", &bars(title, &all, None))
}

/// The demo's rows and its result. `elapsed_s` is the real time that it took.
fn results(plan: DemoPlan, rows: &[Row], outcome: &Outcome, elapsed_s: f64) -> Results {
    let checks = checks(plan, rows, outcome);
    let summary = SummaryRecord {
        name: NAME.into(),
        ok: checks.iter().all(|check| check.ok),
        checks,
        title: "A bond of a DSL and an LTE link, beside each link alone".into(),
        source: "real gateways, the kernel's TCP, iperf3 and curl; the links are 002's".into(),
        on: "network namespaces".into(),
        duration_s: plan.tcp.total().as_secs_f64(),
        axes: vec![SETUP.into()],
        seed: 0,
        seeds: 0,
        elapsed_s,
        command: command(plan),
        origin: Origin::new(String::new()),
        machine: outcome.machine.clone(),
    };
    // The bond, measured last, comes first because readers look for it; then the links through
    // plait.
    let order = [4, 2, 3, 0, 1];
    let ordered = || order.iter().filter_map(|at| rows.get(*at));
    Results {
        runs: ordered().map(|row| run(row, plan)).collect(),
        cells: ordered().map(cell).collect(),
        scatters: Vec::new(),
        summary,
    }
}

fn command(plan: DemoPlan) -> String {
    plan.option.map_or_else(|| COMMAND.into(), |option| format!("{COMMAND} {option}"))
}

fn settings(row: &Row) -> Settings {
    Settings::from([(SETUP.into(), row.setup.into())])
}

fn run(row: &Row, plan: DemoPlan) -> RunRecord {
    RunRecord {
        scenario: NAME.into(),
        cell: row.setup.into(),
        settings: settings(row),
        seed: 0,
        command: command(plan),
        origin: Origin::new(String::new()),
        interval_s: INTERVAL.as_secs_f64(),
        metrics: figures(row).into_iter().map(|(name, _, value)| (name.into(), value)).collect(),
        series: row.over_time.within(plan.tcp.total()),
    }
}

fn cell(row: &Row) -> CellRecord {
    let figure = |(metric, unit, value): (&str, &str, f64)| CellFigure {
        metric: metric.into(),
        unit: unit.into(),
        median: value,
        low: value,
        high: value,
        ..CellFigure::default()
    };
    CellRecord {
        scenario: NAME.into(),
        cell: row.setup.into(),
        settings: settings(row),
        seeds: Vec::new(),
        figures: figures(row).into_iter().map(figure).collect(),
    }
}

/// Names for people, units and values.
fn figures(row: &Row) -> [(&'static str, &'static str, f64); 7] {
    let mbit = |bps: u64| bps as f64 / 1e6;
    let percent = |ppm: u64| ppm as f64 / 1e4;
    [
        ("TCP download", "Mbit/s", mbit(row.tcp.throughput_bps)),
        ("TCP segments sent again", "%", percent(row.tcp.retransmits_ppm())),
        ("UDP arrived", "Mbit/s", mbit(row.udp.throughput_bps)),
        ("UDP offered", "Mbit/s", mbit(row.udp_offered_bps)),
        ("UDP lost", "%", percent(row.udp.loss_ppm())),
        ("UDP out of order", "packets", row.udp.out_of_order_packets as f64),
        ("file over HTTP", "Mbit/s", mbit(row.file.throughput_bps)),
    ]
}

fn checks(plan: DemoPlan, rows: &[Row], outcome: &Outcome) -> Vec<CheckFigure> {
    let ratio = CheckFigure {
        name: "aggregation ratio".into(),
        value: Some(outcome.aggregation_ratio_permille as f64 / 1e3),
        low: plan.has_bar.then_some(RATIO_MIN as f64 / 1e3),
        ok: outcome.passed,
        source: "003 §4.1, bond.1: one TCP flow over the sum of both links through plait".into(),
        required: plan.has_bar,
        expected: plan.has_bar,
        words: report::sentence_of(rows).unwrap_or_default(),
        ..CheckFigure::default()
    };
    let benefit = CheckFigure {
        name: "aggregation benefit".into(),
        value: Some(outcome.aggregation_benefit_permille as f64 / 1e3),
        ok: true,
        source: "003 §4.1".into(),
        words: "0 is the better link alone, 1 the sum of both".into(),
        ..CheckFigure::default()
    };
    let lateness = CheckFigure {
        name: "lateness".into(),
        value: Some(outcome.lateness.p99_us as f64 / 1e3),
        unit: "ms".into(),
        ok: true,
        source: "the emulated links, 99th percentile".into(),
        words: report::lateness(outcome),
        ..CheckFigure::default()
    };
    vec![ratio, benefit, lateness]
}

#[cfg(test)]
mod tests {
    use super::super::DemoArgs;
    use super::*;
    use crate::emulator::Lateness;
    use crate::machine::Machine;
    use crate::measure::over_time::OverTime;
    use crate::measure::{DownloadFigures, TcpFigures, UdpFigures};

    fn row(setup: &'static str, mbit: u64) -> Row {
        let (throughput_bps, congestion) = (mbit * 1_000_000, String::from("cubic"));
        let mut over_time = OverTime::default();
        over_time.add("goodput.tcp", &[throughput_bps; 100]);
        Row {
            setup,
            tcp: TcpFigures {
                throughput_bps,
                retransmits: 1,
                segments: 1000,
                congestion: congestion.clone(),
            },
            udp_offered_bps: throughput_bps,
            udp: UdpFigures {
                throughput_bps,
                packets: 1,
                lost_packets: 0,
                out_of_order_packets: 0,
            },
            file: DownloadFigures { throughput_bps, bytes: 1, congestion },
            over_time,
        }
    }

    fn demo(bonded_mbit: u64, short: bool) -> (Results, String) {
        let plan = DemoPlan::of(&DemoArgs { quick: false, short, html: None });
        let mut rows: Vec<Row> = ["a", "b", "c", "d"].map(|setup| row(setup, 50)).into();
        rows.push(row("bonded", bonded_mbit));
        let machine = Machine { cpu: "x".into(), cores: 1, kernel: "y".into(), build: "z".into() };
        let outcome = super::super::outcome(plan, &rows, &Lateness::default(), machine);
        (results(plan, &rows, &outcome, 9.0), html(plan, &rows, &outcome, 9.0))
    }

    #[test]
    fn the_page_has_verdict_figures_and_plots() {
        let ((good, page), (bad, bad_page)) = (demo(95, false), demo(80, false));
        assert!(good.summary.ok && !bad.summary.ok);
        assert!(bad_page.contains("0 of 1 required checks hold. Failed: aggregation"));
        let (bond, checks) = (page.find("the bond of DSL and LTE"), page.find("<h3>Checks"));
        assert!(bond.is_some() && bond < checks, "the result stands first");
        assert_eq!(page.matches("class=\"level").count(), 21, "the bond, and two links three ways");
        assert!(!page.contains("tcp_mbit") && page.contains("times it without plait"), "{page}");
        assert!(page.contains("The one required check holds.") && page.contains("0.95"), "{page}");
        assert!(page.contains("data-name=\"TCP download\">95 Mbit/s</td>"), "{page}");
        assert_eq!(page.matches("<svg viewBox=\"0 0 330").count(), 8);
        assert!(!page.contains("seed") && !page.contains("digest"), "nothing is seeded");
    }

    #[test]
    fn a_short_demo_has_no_bar_and_plots_end_with_the_measurement() {
        let (short, _) = demo(10, true);
        assert!(short.summary.ok && !short.summary.checks[0].expected);
        assert_eq!(short.summary.command, "plait-lab demo --short");
        assert_eq!(short.runs[0].series["goodput.tcp"].len(), 15);
    }
}
