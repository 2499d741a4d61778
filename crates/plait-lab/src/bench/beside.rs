//! plait beside wireguard-go, interleaved, each run on a fresh network: one TCP flow over links
//! without a limit, round trips of a quiet tunnel, and the processor time at a given rate.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use serde::Serialize;

use super::BenchPlan;
use crate::figure::Figure;
use crate::gateway::{Bond, BondSetup};
use crate::measure::{self, Echo, IperfServer, RoundTrips, Span, Target, median};
use crate::output::{Progress, Table};
use crate::topology::{LinkSpec, Topology, VETH_LINKS, VethTopology, inner_v4};
use crate::wireguard_go::{self, WireGuardGo};

const SOURCE: &str = "road.2";
const TUNNELS: [Tunnel; 3] = [Tunnel::Plait(1), Tunnel::Plait(2), Tunnel::WireGuardGo];
/// The shaped link, and what is sent over it in bits per second.
const SHAPED: LinkSpec = LinkSpec::new("wire", 100, 10, 10);
const SHAPED_BPS: u64 = 90_000_000;
const ECHO_PORT: u16 = 9000;
const ASKED: u32 = 500;
const ASK_INTERVAL: Duration = Duration::from_millis(2);

/// What packets go through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tunnel {
    /// plait over so many paths.
    Plait(usize),
    WireGuardGo,
}

impl Tunnel {
    const fn name(self) -> &'static str {
        match self {
            Self::Plait(1) => "plait, one path",
            Self::Plait(_) => "plait, two paths",
            Self::WireGuardGo => "wireguard-go",
        }
    }
}

/// A tunnel's runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BesideRow {
    tunnel: &'static str,
    tcp_bps: Vec<u64>,
    /// Medians of the quiet tunnel's round trips.
    rtt_ns: Vec<u64>,
    /// Of both ends together, over the shaped link; empty where that was not measured.
    cpu_ms: Vec<u64>,
}

/// A running tunnel.
enum Running<'a> {
    Plait(Box<Bond<'a>>),
    WireGuardGo(WireGuardGo),
}

impl<'a> Running<'a> {
    fn start(
        tunnel: Tunnel,
        customer: &'a NetNs,
        provider: &'a NetNs,
        links: &[&str],
    ) -> Result<Self> {
        Ok(match tunnel {
            Tunnel::Plait(paths) => {
                let setup = BondSetup::over(&links[..paths]);
                Self::Plait(Box::new(Bond::start(customer, provider, &setup)?))
            }
            Tunnel::WireGuardGo => Self::WireGuardGo(WireGuardGo::start(customer, provider)?),
        })
    }

    fn cpu_time(&self) -> Result<Duration> {
        match self {
            Self::Plait(bond) => Ok(bond.customer.cpu_time()? + bond.provider.cpu_time()?),
            Self::WireGuardGo(ends) => ends.cpu_time(),
        }
    }
}

/// Measures every tunnel in turn, as often as the plan says.
pub(crate) fn measure_all(plan: BenchPlan) -> Result<Vec<BesideRow>> {
    wireguard_go::program()?;
    let shaped_span = Span { seconds: 2 * plan.span.seconds, ..plan.span };
    let runs = u32::try_from(plan.runs)?;
    let unlimited = (plan.span.total() + ASK_INTERVAL * ASKED) * 3 * runs;
    let shaped = shaped_span.total() * 2 * runs;
    let mut progress = Progress::new(2, unlimited + shaped);
    let row = |tunnel: Tunnel| BesideRow {
        tunnel: tunnel.name(),
        tcp_bps: Vec::new(),
        rtt_ns: Vec::new(),
        cpu_ms: Vec::new(),
    };
    let mut rows = TUNNELS.map(row);
    let step = progress.step("beside wireguard-go: no limit", unlimited);
    for _ in 0..plan.runs {
        for (tunnel, row) in TUNNELS.iter().zip(&mut rows) {
            measure_unlimited(*tunnel, plan.span, row).context(tunnel.name())?;
        }
    }
    drop(step);
    let _step = progress.step("beside wireguard-go: 90 Mbit/s", shaped);
    for _ in 0..plan.runs {
        for at in [0, 2] {
            let cpu = measure_shaped(TUNNELS[at], shaped_span).context(TUNNELS[at].name())?;
            rows[at].cpu_ms.push(cpu.as_millis() as u64);
        }
    }
    Ok(rows.into())
}

fn measure_unlimited(tunnel: Tunnel, span: Span, row: &mut BesideRow) -> Result<()> {
    let topology = VethTopology::build()?;
    let (client, provider) = (&topology.customer, &topology.provider);
    let _running = Running::start(tunnel, client, provider, &VETH_LINKS)?;
    let from = (client, (inner_v4(2), 0).into());
    let echo = Echo::open(from, (provider, (inner_v4(1), ECHO_PORT).into()))?;
    let mut trips = RoundTrips::default();
    echo.ask(ASKED, ASK_INTERVAL, &mut trips)?;
    row.rtt_ns.push((trips.percentile_us(50) * 1e3) as u64);
    let _iperf = IperfServer::start(provider, inner_v4(1).into())?;
    let target = Target { client, server: inner_v4(1).into(), bind: None };
    row.tcp_bps.push(measure::tcp(target, span, "cubic")?.throughput_bps);
    Ok(())
}

/// The processor time of both ends for a flow of a given rate.
fn measure_shaped(tunnel: Tunnel, span: Span) -> Result<Duration> {
    let topology = Topology::build(&[SHAPED])?;
    let client = &topology.customer().netns;
    let running = Running::start(tunnel, client, &topology.provider, &[SHAPED.name])?;
    let _iperf = IperfServer::start(&topology.provider, inner_v4(1).into())?;
    let target = Target { client, server: inner_v4(1).into(), bind: None };
    let before = running.cpu_time()?;
    let figures = measure::tcp_at(target, span, "cubic", SHAPED_BPS)?;
    anyhow::ensure!(
        figures.throughput_bps >= SHAPED_BPS / 10 * 9,
        "only {} Mbit/s came",
        measure::mbit(figures.throughput_bps)
    );
    Ok(running.cpu_time()? - before)
}

/// The figures, with the bars of road.2.
pub(crate) fn figures(rows: &[BesideRow]) -> Vec<Figure> {
    let [one, two, other] = rows else { unreachable!("there is a row for each tunnel") };
    let mut figures: Vec<Figure> = rows
        .iter()
        .flat_map(|row| {
            [
                Figure::mbit(format!("{}: TCP", row.tunnel), median(row.tcp_bps.clone())),
                Figure::text(format!("{}: TCP, least to most", row.tunnel), row.tcp_range()),
            ]
        })
        .collect();
    let middle = |values: &[u64]| median(values.to_vec()) as f64;
    let ratio = |name: &str, own: &[u64], others: &[u64]| {
        Figure::number(name, middle(own) / middle(others), "ratio")
    };
    figures.extend([
        ratio("TCP over one path to wireguard-go's", &one.tcp_bps, &other.tcp_bps)
            .at_least(2.5, SOURCE),
        ratio("TCP over two paths to one", &two.tcp_bps, &one.tcp_bps).at_least(1.0, SOURCE),
        Figure::number("idle round trip, one path", middle(&one.rtt_ns) / 1e3, "us"),
        Figure::number("idle round trip, wireguard-go", middle(&other.rtt_ns) / 1e3, "us"),
        ratio("idle round trip to wireguard-go's", &one.rtt_ns, &other.rtt_ns).at_most(1.0, SOURCE),
        Figure::number("processor time at 90 Mbit/s", middle(&one.cpu_ms) / 1e3, "s"),
        Figure::number("the same, wireguard-go", middle(&other.cpu_ms) / 1e3, "s"),
        ratio("processor time at 90 Mbit/s to wireguard-go's", &one.cpu_ms, &other.cpu_ms)
            .at_most(0.4, SOURCE),
    ]);
    figures
}

impl BesideRow {
    fn tcp_range(&self) -> String {
        let ends = [self.tcp_bps.iter().min(), self.tcp_bps.iter().max()];
        let [least, most] = ends.map(|bps| measure::mbit(bps.copied().unwrap_or(0)));
        format!("{least} to {most} Mbit/s")
    }
}

/// The rows as a table for people.
pub(crate) fn table(rows: &[BesideRow]) -> Table {
    let heads = ["beside each other", "TCP Mbit/s", "idle RTT us", "s of CPU at 90 Mbit/s"];
    let mut table = Table::of_numbers(&heads);
    for row in rows {
        let seconds = |ms: u64| format!("{:.2}", ms as f64 / 1e3);
        let cpu =
            if row.cpu_ms.is_empty() { "".into() } else { seconds(median(row.cpu_ms.clone())) };
        let rtt = format!("{:.0}", median(row.rtt_ns.clone()) as f64 / 1e3);
        table.row([row.tunnel.to_owned(), mbit_of(row), rtt, cpu]);
    }
    table
}

fn mbit_of(row: &BesideRow) -> String {
    measure::mbit(median(row.tcp_bps.clone()))
}
