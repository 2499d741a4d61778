//! `plait-lab bench`: how much the machine can carry, with and without plait, over unlimited links,
//! and beside wireguard-go.

pub(crate) mod beside;
pub(crate) mod node;
pub(crate) mod sim;
pub(crate) mod steering;

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use steering::SteeringPlan;

use crate::cli::BenchArgs;
use crate::figure::{Figure, Summary};
use crate::gateway::{Bond, BondSetup};
use crate::machine::Machine;
use crate::measure::{self, IperfServer, Span, Target, mbit, median, median_tcp, percent};
use crate::output::{self, Output, Progress, Table, Verdict};
use crate::topology::{PROVIDER_V4, VETH_LINKS, VethTopology, inner_v4};
use crate::wireguard_go;

/// iperf3's value for unlimited speed.
const UNLIMITED: u64 = 0;

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchPlan {
    pub(crate) runs: usize,
    pub(crate) span: Span,
}

impl BenchPlan {
    pub(crate) fn of(quick: bool) -> Self {
        let span = |seconds| Span { seconds, omit_seconds: 1 };
        if quick { Self { runs: 1, span: span(2) } } else { Self { runs: 3, span: span(5) } }
    }
}

/// Medians of one setup.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BenchRow {
    pub(crate) setup: &'static str,
    pub(crate) tcp_bps: u64,
    pub(crate) tcp_retransmits: u64,
    pub(crate) udp_bps: u64,
    pub(crate) udp_loss_ppm: u64,
}

impl BenchRow {
    /// The row for the machine interface.
    pub(crate) fn figures(&self) -> [Figure; 3] {
        let setup = self.setup;
        [
            Figure::mbit(format!("{setup}: TCP"), self.tcp_bps),
            Figure::mbit(format!("{setup}: UDP"), self.udp_bps),
            Figure::percent(format!("{setup}: UDP lost at full speed"), self.udp_loss_ppm),
        ]
    }
}

#[derive(Debug, Serialize)]
struct More {
    machine: Machine,
    runs: usize,
}

pub(crate) fn run(args: &BenchArgs, output: &Output) -> Result<Verdict> {
    let plan = BenchPlan::of(args.quick);
    let rows = measure_all(plan)?;
    output.records("measurement", &rows)?;
    output.lines(table(&rows).lines())?;
    if let Err(missing) = wireguard_go::program() {
        output::note(format!("wireguard-go is not measured beside plait: {missing:#}"));
    } else {
        let rows = beside::measure_all(plan)?;
        output.records("measurement", &rows)?;
        output.line("")?;
        output.lines(beside::table(&rows).lines())?;
    }
    let node = node::measure_all(node::NodePlan::of(args.quick))?;
    output.records("measurement", &node.rows)?;
    output.line("")?;
    output.lines(node.table().lines())?;
    let machine = Machine::detect();
    output.line("")?;
    output.line(format!(
        "One flow, sender, receiver and both gateways on the same cores; median of {}. {}",
        plan.runs,
        machine.sentence()
    ))?;
    output.line("")?;
    steering::print(SteeringPlan::of(args.quick), &machine, output)?;
    let more = More { machine, runs: plan.runs };
    output.record("summary", &Summary::new("bench", &[], more))?;
    Ok(Verdict::Good)
}

/// Measures every setup, each on a fresh network.
pub(crate) fn measure_all(plan: BenchPlan) -> Result<Vec<BenchRow>> {
    let setups: [(&'static str, &[&str]); 3] = [
        ("plain veth", &[]),
        ("plait, one path", &VETH_LINKS[..1]),
        ("plait, two paths", &VETH_LINKS),
    ];
    let expected = plan.span.total() * 2 * u32::try_from(plan.runs)? + Duration::from_secs(2);
    let mut progress = Progress::new(setups.len(), expected * 3);
    let mut rows = Vec::new();
    for (setup, links) in setups {
        let _step = progress.step(setup, expected);
        rows.push(measure_one(setup, links, plan).with_context(|| format!("measuring {setup}"))?);
    }
    Ok(rows)
}

fn measure_one(setup: &'static str, links: &[&str], plan: BenchPlan) -> Result<BenchRow> {
    let topology = VethTopology::build()?;
    let (client, provider) = (&topology.customer, &topology.provider);
    let mut bond = match links {
        [] => None,
        links => Some(Bond::start(client, provider, &BondSetup::over(links))?),
    };
    let server = if bond.is_some() { inner_v4(1) } else { PROVIDER_V4 };
    let _iperf = IperfServer::start(provider, server.into())?;
    let target = Target { client, server: server.into(), bind: None };
    let tcp = median_tcp(plan.runs, || measure::tcp(target, plan.span, "cubic"))?;
    let udp = (0..plan.runs)
        .map(|_| measure::udp(target, plan.span, UNLIMITED))
        .collect::<Result<Vec<_>>>()?;
    if let Some(bond) = &mut bond {
        bond.stop()?;
    }
    Ok(BenchRow {
        setup,
        tcp_bps: tcp.throughput_bps,
        tcp_retransmits: tcp.retransmits,
        udp_bps: median(udp.iter().map(|run| run.throughput_bps).collect()),
        udp_loss_ppm: median(udp.iter().map(measure::UdpFigures::loss_ppm).collect()),
    })
}

/// The rows as a table for people.
pub(crate) fn table(rows: &[BenchRow]) -> Table {
    let mut table = Table::of_numbers(&["", "TCP Mbit/s", "re-sent", "UDP Mbit/s", "lost"]);
    for row in rows {
        table.row([
            row.setup.to_owned(),
            mbit(row.tcp_bps),
            row.tcp_retransmits.to_string(),
            mbit(row.udp_bps),
            percent(row.udp_loss_ppm),
        ]);
    }
    table
}
