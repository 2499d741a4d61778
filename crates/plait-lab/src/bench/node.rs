//! Measures how much a steering node can carry over unlimited links, and how much latency it adds.
//!
//! A figure per core is the traffic carried over the processor time of the node's process for it,
//! in user space and in the kernel. Sender, receiver and node share the machine's cores, so the
//! throughput depends on all of them; the figure per core does not.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plait_proto::dida::DidaConfig;
use plait_proto::steer::{Addresses, Policy};
use plait_toml::node::{Attachment, Client, NodeFile};
use serde::Serialize;

use crate::figure::Figure;
use crate::machine::{Interruption, Watch};
use crate::measure::{self, Echo, Flood, FloodFigures, IperfServer, RoundTrips, Span, Target};
use crate::output::{Progress, Table};
use crate::steering::{PlacedNode, node_with};
use crate::topology::{PLAIN_V4, SERVER_BARE_V4, VETH_LINKS, VethChain, link_v4};

/// Length of a small packet and of a full one, including the IP header, in bytes.
const LENGTHS: [usize; 2] = [64, 1500];
/// A rate that every machine keeps up with, in packets per second.
const STEADY_PER_SECOND: u64 = 5000;
const ASK_INTERVAL: Duration = Duration::from_millis(2);
/// Round trips through the node and past it alternate in blocks of this many.
const ASK_BLOCK: u32 = 250;
/// A machine may stall for a moment.
const TRIES: usize = 3;
/// Weights of both attachments: nearly every flow is rewritten, or half of the packets.
const REWRITTEN: [u16; 2] = [1, 60_000];
const HALVES: [u16; 2] = [50, 50];
/// Setups for TCP flows: a name, the weights, and whether there is DIDA. If all packets are
/// rewritten they stay together in large segments; if only some are, they do not.
const TCP_SETUPS: [(&str, [u16; 2], bool); 3] = [
    ("TCP, rewritten", REWRITTEN, false),
    ("TCP, packets 50:50", HALVES, false),
    ("TCP, packets 50:50, DIDA", HALVES, true),
];

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodePlan {
    runs: usize,
    span: Span,
    blocks: u32,
}

impl NodePlan {
    pub(crate) fn of(quick: bool) -> Self {
        let span = |seconds| Span { seconds, omit_seconds: 1 };
        if quick {
            Self { runs: 1, span: span(2), blocks: 4 }
        } else {
            Self { runs: 3, span: span(5), blocks: 20 }
        }
    }
}

/// The traffic carried during a measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeRow {
    pub(crate) setup: String,
    /// Packets or bits per second, as `unit` says.
    pub(crate) carried: f64,
    /// The same per second of the node's processor time; `None` without a node on the route.
    pub(crate) per_core: Option<f64>,
    pub(crate) unit: &'static str,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub(crate) struct NodeBench {
    pub(crate) rows: Vec<NodeRow>,
    steady: Steady,
    through: RoundTrips,
    past: RoundTrips,
}

/// Packets at a steady rate, of which a node loses none as long as the machine lets it run.
#[derive(Clone, Copy, Debug)]
struct Steady {
    flood: FloodFigures,
    machine: Interruption,
}

/// Measures a node, each time on a fresh network.
pub(crate) fn measure_all(plan: NodePlan) -> Result<NodeBench> {
    let time = plan.span.total() + Duration::from_secs(2);
    let asking = ASK_INTERVAL * 2 * plan.blocks * ASK_BLOCK;
    let total = time * u32::try_from(5 * plan.runs)? + asking;
    let mut progress = Progress::new(LENGTHS.len() + TCP_SETUPS.len() + 1, total);
    let mut rows = Vec::new();
    for length in LENGTHS {
        let what = format!("steering node: UDP, {length} bytes");
        let _step = progress.step(&what, time * u32::try_from(plan.runs)?);
        let runs = (0..plan.runs).map(|_| flood(length, plan)).collect::<Result<Vec<_>>>();
        rows.push(middle(runs.with_context(|| what)?));
    }
    for (setup, weights, dida) in TCP_SETUPS {
        let what = format!("steering node: {setup}");
        let _step = progress.step(&what, time * u32::try_from(plan.runs)?);
        let run = |_| tcp(setup, weights, dida, plan);
        let runs = (0..plan.runs).map(run).collect::<Result<Vec<_>>>();
        rows.push(middle(runs.with_context(|| what)?));
    }
    rows.push(past(plan).context("TCP past the node")?);
    let _step = progress.step("steering node: round trips", asking);
    let (steady, through, past) = latency(plan).context("round trips")?;
    Ok(NodeBench { rows, steady, through, past })
}

/// The run with the median throughput.
fn middle(mut runs: Vec<NodeRow>) -> NodeRow {
    runs.sort_by(|one, other| one.carried.total_cmp(&other.carried));
    runs.swap_remove(runs.len() / 2)
}

/// A node between the customer's links and the server.
fn start<'a>(chain: &'a VethChain, weights: [u16; 2], dida: bool) -> Result<PlacedNode<'a>> {
    let attachments = VETH_LINKS.iter().zip(weights).zip(1_u8..);
    let address = |number| Addresses { v4: Some(link_v4(number, 1)), v6: None };
    let attachment = |((name, weight), number): ((&&str, u16), u8)| Attachment {
        name: (*name).to_owned(),
        address: if number > 1 { address(number) } else { Addresses::NONE },
        interface: Some((*name).to_owned()),
        weight,
        ..Attachment::default()
    };
    let client = Client {
        name: "client".into(),
        address: address(1),
        attachments: attachments.map(attachment).collect(),
    };
    let (node, dida) = (node_with(Policy::Fixed), dida.then(DidaConfig::default));
    let file = NodeFile { node, clients: vec![client], dida };
    PlacedNode::start(&chain.provider, &chain.customer, &file)
}

/// Both ends of a flood or a round trip, with `port` at each.
fn ends(chain: &VethChain, to: IpAddr, port: u16) -> [(&plait_net::netns::NetNs, SocketAddr); 2] {
    let from = SocketAddr::new(SERVER_BARE_V4.into(), port);
    [(&chain.server, from), (&chain.customer, SocketAddr::new(to, port))]
}

fn flood(length: usize, plan: NodePlan) -> Result<NodeRow> {
    let chain = VethChain::build()?;
    let mut node = start(&chain, REWRITTEN, false)?;
    let [from, to] = ends(&chain, link_v4(1, 1).into(), 7000);
    let flood = Flood::open(from, to)?;
    flood.run(length, None, Duration::from_secs(plan.span.omit_seconds.into()))?;
    let before = node.cpu_time()?;
    let figures = flood.run(length, None, Duration::from_secs(plan.span.seconds.into()))?;
    let cpu = node.cpu_time()? - before;
    drop(flood);
    node.stop()?;
    let packets = figures.received_packets as f64;
    Ok(NodeRow {
        setup: format!("UDP, packets of {length} bytes, rewritten"),
        carried: figures.received_per_second(),
        per_core: Some(packets / cpu.as_secs_f64().max(1e-2)),
        unit: "packets/s",
    })
}

fn tcp(setup: &str, weights: [u16; 2], dida: bool, plan: NodePlan) -> Result<NodeRow> {
    let chain = VethChain::build()?;
    let mut node = start(&chain, weights, dida)?;
    let _iperf = IperfServer::start(&chain.server, SERVER_BARE_V4.into())?;
    let bind = Some(link_v4(1, 1).into());
    let target = Target { client: &chain.customer, server: SERVER_BARE_V4.into(), bind };
    let (before, start) = (node.cpu_time()?, Instant::now());
    let figures = measure::tcp(target, plan.span, "cubic")?;
    let busy = (node.cpu_time()? - before).as_secs_f64() / start.elapsed().as_secs_f64();
    node.stop()?;
    let carried = figures.throughput_bps as f64;
    Ok(NodeRow {
        setup: setup.into(),
        carried,
        per_core: Some(carried / busy.max(1e-3)),
        unit: "bit/s",
    })
}

/// TCP forwarded by the kernel on the same network, without a node.
fn past(plan: NodePlan) -> Result<NodeRow> {
    let chain = VethChain::build()?;
    let _iperf = IperfServer::start(&chain.server, SERVER_BARE_V4.into())?;
    let target = Target {
        client: &chain.customer,
        server: SERVER_BARE_V4.into(),
        bind: Some(PLAIN_V4.into()),
    };
    let figures = measure::median_tcp(plan.runs, || measure::tcp(target, plan.span, "cubic"))?;
    let carried = figures.throughput_bps as f64;
    let setup = "TCP without a node".to_owned();
    Ok(NodeRow { setup, carried, per_core: None, unit: "bit/s" })
}

/// A flood at a steady rate, then round trips through the node and past it.
fn latency(plan: NodePlan) -> Result<(Steady, RoundTrips, RoundTrips)> {
    let chain = VethChain::build()?;
    let mut node = start(&chain, REWRITTEN, true)?;
    let client = link_v4(1, 1).into();
    let [from, to] = ends(&chain, client, 7000);
    let flood = Flood::open(from, to)?;
    let steady = steady(&flood, Duration::from_secs(plan.span.seconds.into()))?;
    drop(flood);
    let [from, to] = ends(&chain, client, 7001);
    let through = Echo::open(from, to)?;
    let [from, to] = ends(&chain, PLAIN_V4.into(), 7002);
    let past = Echo::open(from, to)?;
    let (mut trips_through, mut trips_past) = (RoundTrips::default(), RoundTrips::default());
    for _ in 0..plan.blocks {
        through.ask(ASK_BLOCK, ASK_INTERVAL, &mut trips_through)?;
        past.ask(ASK_BLOCK, ASK_INTERVAL, &mut trips_past)?;
    }
    drop((through, past));
    node.stop()?;
    Ok((steady, trips_through, trips_past))
}

/// A flood at a steady rate, repeated if the machine stalled meanwhile.
fn steady(flood: &Flood, time: Duration) -> Result<Steady> {
    let run = || -> Result<Steady> {
        let watch = Watch::start();
        let flood = flood.run(LENGTHS[0], Some(STEADY_PER_SECOND), time)?;
        Ok(Steady { flood, machine: watch.end() })
    };
    let mut steady = run()?;
    for _ in 1..TRIES {
        if steady.flood.lost_packets() > 0 && steady.machine.spoils() {
            steady = run()?;
        }
    }
    Ok(steady)
}

impl Steady {
    /// A check, unless the machine may have caused the losses.
    fn figure(&self) -> Figure {
        const SOURCE: &str = "a node on a machine that keeps up loses nothing";
        let (sent, lost) = (self.flood.sent_packets, self.flood.lost_packets());
        let name = format!("lost of {sent} at {STEADY_PER_SECOND} packets/s");
        if lost > 0 && self.machine.spoils() {
            return Figure::text(name, format!("{lost}; {}", self.machine));
        }
        Figure::count(name, lost).exactly(0.0, SOURCE)
    }
}

impl NodeBench {
    /// The figures for the machine interface.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let mut figures: Vec<Figure> = self.rows.iter().flat_map(NodeRow::figures).collect();
        figures.push(self.steady.figure());
        for (what, trips) in [("through the node", &self.through), ("past it", &self.past)] {
            for percent in [50, 99] {
                let name = format!("round trip {what}: {percent}th percentile");
                figures.push(Figure::number(name, trips.percentile_us(percent), "us"));
            }
        }
        let unanswered = self.through.unanswered + self.past.unanswered;
        figures.push(Figure::count("round trips without an answer", unanswered));
        figures.push(Figure::number(
            "latency that the node adds at the 99th percentile",
            self.added_us(99),
            "us",
        ));
        figures
    }

    /// What the node adds to a percentile of the round-trip times, in microseconds.
    fn added_us(&self, percent: usize) -> f64 {
        self.through.percentile_us(percent) - self.past.percentile_us(percent)
    }

    /// The rows as a table for people.
    pub(crate) fn table(&self) -> Table {
        let heads = ["steering node", "carried", "per core of the node"];
        let mut table = Table::of_numbers(&heads);
        for row in &self.rows {
            let text = |value: f64| row.text(value);
            let per_core = row.per_core.map_or("none".into(), text);
            table.row([row.setup.clone(), row.text(row.carried), per_core]);
        }
        let added = format!("{:.0} us", self.added_us(99));
        table.row(["latency added at the 99th percentile".into(), added]);
        table
    }
}

impl NodeRow {
    fn figures(&self) -> Vec<Figure> {
        let figure = |name: String, value: f64| match self.unit {
            "bit/s" => Figure::number(name, value / 1e9, "Gbit/s"),
            _ => Figure::number(name, (value / 1e3).round(), "thousand packets/s"),
        };
        let mut figures = vec![figure(self.setup.clone(), self.carried)];
        let per_core = self.per_core;
        figures.extend(per_core.map(|value| figure(format!("{}, per core", self.setup), value)));
        figures
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            "bit/s" => format!("{:.2} Gbit/s", value / 1e9),
            unit => format!("{:.0} thousand {unit}", value / 1e3),
        }
    }
}
