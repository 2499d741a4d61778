//! `plait-lab demo`: the throughput of a bond of a DSL and an LTE link, compared with each link
//! alone.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cli::DemoArgs;
use crate::emulator::{Lateness, LatenessSummary};
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::measure::over_time::{self, OverTime};
use crate::measure::{
    self, DownloadFigures, Span, TcpFigures, UdpFigures, WebServer, aggregation_benefit,
    aggregation_ratio,
};
use crate::output::{Output, Progress, Verdict};
use crate::report::PageFile;
use crate::site::{Carrier, on_site};
use crate::topology::LinkSpec;

mod page;
mod report;

const LINKS: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
/// The smallest acceptable aggregation ratio of the bond's TCP, in thousandths.
const RATIO_MIN: i64 = 900;
/// Time to build a network and start its gateways.
const SET_UP: Duration = Duration::from_secs(2);

/// How long each measurement takes.
#[derive(Clone, Copy, Debug)]
struct DemoPlan {
    tcp: Span,
    udp: Span,
    file_bytes: u64,
    has_bar: bool,
    /// The command line's option that chose this plan.
    option: Option<&'static str>,
}

impl DemoPlan {
    fn of(args: &DemoArgs) -> Self {
        let span = |seconds, omit_seconds| Span { seconds, omit_seconds };
        if args.short {
            let (tcp, udp) = (span(2, 1), span(1, 1));
            Self { tcp, udp, file_bytes: 5_000_000, has_bar: false, option: Some("--short") }
        } else if args.quick {
            let (tcp, udp) = (span(4, 1), span(2, 1));
            Self { tcp, udp, file_bytes: 20_000_000, has_bar: true, option: Some("--quick") }
        } else {
            let (tcp, udp) = (span(10, 2), span(5, 2));
            Self { tcp, udp, file_bytes: 40_000_000, has_bar: true, option: None }
        }
    }

    /// Time of one setup.
    fn setup_time(self, rate_mbit: u64) -> Duration {
        let file = Duration::from_micros(self.file_bytes * 8 / rate_mbit.max(1));
        SET_UP + self.tcp.total() + self.udp.total() + file
    }
}

/// One setup that carries the traffic.
#[derive(Debug)]
struct Setup {
    name: &'static str,
    carrier: Carrier,
    rate_mbit: u64,
}

/// The results of one setup.
#[derive(Clone, Debug, Serialize)]
struct Row {
    setup: &'static str,
    tcp: TcpFigures,
    /// Payload rate that the UDP sender offered.
    udp_offered_bps: u64,
    udp: UdpFigures,
    file: DownloadFigures,
    /// During the TCP download.
    #[serde(flatten)]
    over_time: OverTime,
}

/// The demo's result.
#[derive(Debug, Serialize)]
struct Outcome {
    machine: Machine,
    /// A_r of the TCP flow in thousandths, the links measured alone through plait.
    aggregation_ratio_permille: i64,
    /// A_b of the TCP flow in thousandths.
    aggregation_benefit_permille: i64,
    lateness: LatenessSummary,
    passed: bool,
}

pub(crate) fn run(args: &DemoArgs, output: &Output) -> Result<Verdict> {
    let plan = DemoPlan::of(args);
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let started = Instant::now();
    let setups = setups();
    let total = setups.iter().map(|setup| plan.setup_time(setup.rate_mbit)).sum();
    let mut progress = Progress::new(setups.len() * 4, total);
    let mut lateness = Lateness::default();
    output.line(report::introduction(&LINKS))?;
    let mut rows = Vec::new();
    for setup in &setups {
        let row = measure(setup, plan, &mut progress, &mut lateness)
            .with_context(|| format!("while measuring: {}", setup.name))?;
        output.record("measurement", &row)?;
        rows.push(row);
    }
    let outcome = outcome(plan, &rows, &lateness, Machine::detect());
    let verdict = finish(plan, &rows, &outcome, output)?;
    if let Some(page) = page {
        let elapsed_s = started.elapsed().as_secs_f64();
        page.write_text(&page::html(plan, &rows, &outcome, elapsed_s))?;
    }
    Ok(verdict)
}

fn setups() -> Vec<Setup> {
    let [dsl, lte] = LINKS.map(|link| link.rate_mbit);
    let setup = |name, carrier, rate_mbit| Setup { name, carrier, rate_mbit };
    vec![
        setup("dsl, bare", Carrier::Bare("dsl"), dsl),
        setup("lte, bare", Carrier::Bare("lte"), lte),
        setup("dsl through plait", Carrier::plait(&["dsl"]), dsl),
        setup("lte through plait", Carrier::plait(&["lte"]), lte),
        setup("dsl + lte bonded", Carrier::plait(&["dsl", "lte"]), dsl + lte),
    ]
}

fn measure(
    setup: &Setup,
    plan: DemoPlan,
    progress: &mut Progress,
    lateness: &mut Lateness,
) -> Result<Row> {
    let name = setup.name;
    let building = progress.step(&format!("{name}: building the network"), SET_UP);
    on_site(&LINKS, &setup.carrier, lateness, |site| {
        drop(building);
        let step = progress.step(&format!("{name}: TCP download"), plan.tcp.total());
        let download =
            || measure::tcp_over_time(site.target(), plan.tcp, "cubic", over_time::INTERVAL);
        let (result, mut over_time) = over_time::watch(site.topology, download);
        let (tcp, goodput_bps) = result?;
        over_time.add("goodput.tcp", &goodput_bps);
        drop(step);
        let udp_offered_bps = udp_offer(setup.rate_mbit);
        let step = progress.step(&format!("{name}: UDP download"), plan.udp.total());
        let udp = measure::udp(site.target(), plan.udp, udp_offered_bps)?;
        drop(step);
        let rest = plan.setup_time(setup.rate_mbit) - SET_UP - plan.tcp.total() - plan.udp.total();
        let _step = progress.step(&format!("{name}: a file from a web server"), rest);
        let server = WebServer::start(&site.topology.server, plan.file_bytes)?;
        let file = measure::download(site.target(), &server)?;
        Ok(Row { setup: setup.name, tcp, udp_offered_bps, udp, file, over_time })
    })
}

/// Payload rate that, with plait's framing, fills nine tenths of the links.
fn udp_offer(rate_mbit: u64) -> u64 {
    const PAYLOAD_BYTES: u64 = 1388;
    const FRAMED_BYTES: u64 = PAYLOAD_BYTES + 28 + 60;
    rate_mbit * 1_000_000 * 9 / 10 * PAYLOAD_BYTES / FRAMED_BYTES
}

fn outcome(plan: DemoPlan, rows: &[Row], lateness: &Lateness, machine: Machine) -> Outcome {
    let [_, _, dsl, lte, bond] = rows else {
        unreachable!("there is one row for each of the five setups");
    };
    let alone = [dsl.tcp.throughput_bps, lte.tcp.throughput_bps];
    let ratio = aggregation_ratio(bond.tcp.throughput_bps, &alone);
    Outcome {
        machine,
        aggregation_ratio_permille: ratio,
        aggregation_benefit_permille: aggregation_benefit(bond.tcp.throughput_bps, &alone),
        lateness: lateness.summary(),
        passed: !plan.has_bar || ratio >= RATIO_MIN,
    }
}

fn finish(plan: DemoPlan, rows: &[Row], outcome: &Outcome, output: &Output) -> Result<Verdict> {
    output.lines(report::table(rows).lines())?;
    output.lines(report::closing(rows, outcome, plan.has_bar))?;
    let ratio = outcome.aggregation_ratio_permille as f64 / 1000.0;
    let figure = Figure::number("A_r of one TCP flow", ratio, "ratio");
    let least = RATIO_MIN as f64 / 1000.0;
    let figure = if plan.has_bar { figure.at_least(least, "003 §4.1, bond.1") } else { figure };
    let figures = [figure];
    let summary = Summary::new("demo", &figures, outcome);
    output.record("summary", &summary)?;
    Ok(Verdict::of(summary.ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_demo_takes_less_than_a_minute() {
        let plan = DemoPlan::of(&DemoArgs { quick: false, short: true, html: None });
        let total: Duration = setups().iter().map(|setup| plan.setup_time(setup.rate_mbit)).sum();
        assert!(total < Duration::from_secs(50), "{total:?}");
    }

    #[test]
    fn udp_fits_into_the_links() {
        let offer = udp_offer(124);
        assert!(offer * 1476 / 1388 <= 124_000_000 * 9 / 10);
        assert!(offer > 100_000_000);
    }
}
