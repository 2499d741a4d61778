//! road.3: a provider's gateway with ten thousand peers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::{Effort, Figure};
use crate::cli::Load;
use crate::gateway::{
    Gateway, GatewayFile, customer_file, endpoint_v4, idle_peer, make_key, path_over, provider_file,
};
use crate::many_peers::{ManyPeers, instructions_per_packet};
use crate::measure::{Echo, RoundTrips, median};
use crate::output::Meter;
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, Topology, inner_v4};

const SOURCE: &str = "road.3";
const PEERS: usize = 10_000;
const ACTIVE: usize = 64;
const LINK: LinkSpec = LinkSpec::new("wire", 100, 2, 2);
const ECHO_PORT: u16 = 9000;
/// Questions through the bond around a reload, and the time between two.
const ASKED: u32 = 3000;
const INTERVAL: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(30);
/// Packets of the two runs whose difference counts, under callgrind, and of a run that is timed.
const COUNTED: [usize; 2] = [10_000, 30_000];
const TIMED: usize = 200_000;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let mut meter = Meter::new("road.3", "parts", 3);
    let mut figures = gateways(effort)?;
    meter.finished_one();
    for receives in [false, true] {
        figures.extend(packets(receives, effort)?);
        meter.finished_one();
    }
    Ok(figures)
}

/// Real gateways: the worst of all runs counts.
fn gateways(effort: Effort) -> Result<Vec<Figure>> {
    let (mut start, mut reload) = (Duration::ZERO, RoundTrips::default());
    let (mut quiet, mut grown_mib) = (RoundTrips::default(), 0.0_f64);
    for _ in 0..effort.runs() {
        let topology = Topology::build(&[LINK])?;
        let scratch = Scratch::in_memory("provider")?;
        let key = |name: &str| make_key(&scratch.path().join(name));
        let keys = [key("provider.key")?, key("customer.key")?];
        let (.., few) = started(&topology, &scratch, &keys[1], 1)?;
        let (mut provider, file, time, many) = started(&topology, &scratch, &keys[1], PEERS)?;
        start = start.max(time);
        grown_mib = grown_mib.max(many - few);
        let customer =
            customer_file("customer.key", 2, &keys[0], &[endpoint_v4()], &[path_over(LINK.name)]);
        let mut customer =
            Gateway::start(&topology.customer().netns, scratch.path(), "customer", &customer)?;
        wait_until("a bond", LIMIT, || {
            let status = customer.status(&topology.customer().netns)?;
            Ok(status.filter(|status| status.is_up(1)))
        })?;
        round_trips(&topology, &mut provider, file, [&mut quiet, &mut reload])?;
        customer.stop()?;
        provider.stop()?;
    }
    let longest = |name: &str, trips: &RoundTrips| {
        Figure::number(format!("longest round trip {name}"), trips.percentile_us(100) / 1e3, "ms")
    };
    Ok(vec![
        Figure::number("from start to status with 10,000 peers", start.as_secs_f64(), "s")
            .at_most(2.0, SOURCE),
        Figure::number(
            "memory of an idle peer, at most",
            grown_mib * 1048.576 / PEERS as f64,
            "kB",
        )
        .at_most(16.0, SOURCE),
        longest("in a second without a reload", &quiet),
        longest("over a reload with 10,000 peers", &reload).at_most(50.0, SOURCE),
        Figure::count("round trips lost over a reload", reload.unanswered).exactly(0.0, SOURCE),
    ])
}

/// A provider with so many peers, the customer first; its file, the time until it answered
/// `plait status`, and its peak memory then in MiB.
fn started(
    topology: &Topology,
    scratch: &Scratch,
    customer_key: &str,
    peers: usize,
) -> Result<(Gateway, GatewayFile, Duration, f64)> {
    let mut file = provider_file("provider.key", &[(customer_key.into(), 2)]);
    file.peers.extend((1..peers).map(idle_peer));
    let begun = Instant::now();
    let mut provider = Gateway::start(&topology.provider, scratch.path(), "provider", &file)?;
    wait_until("an answer of the provider", LIMIT, || provider.status(&topology.provider))
        .with_context(|| format!("its log ends:\n{}", provider.log_tail()))?;
    let time = begun.elapsed();
    let memory = provider.peak_memory_mib()?;
    Ok((provider, file, time, memory))
}

/// Asks through the bond without a reload, then around one that adds a peer and changes another.
fn round_trips(
    topology: &Topology,
    provider: &mut Gateway,
    mut file: GatewayFile,
    [quiet, reload]: [&mut RoundTrips; 2],
) -> Result<()> {
    let customer_at = &topology.customer().netns;
    let from = (customer_at, (inner_v4(2), 0).into());
    let echo = Echo::open(from, (&topology.provider, (inner_v4(1), ECHO_PORT).into()))?;
    echo.ask(ASKED / 3, INTERVAL, quiet)?;
    file.peers[PEERS / 2].keepalive *= 2;
    file.peers.push(idle_peer(PEERS));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| echo.ask(ASKED, INTERVAL, reload));
        std::thread::sleep(INTERVAL * ASKED / 4);
        provider.reload_with(&file)?;
        asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let known = provider.status(&topology.provider)?.context("the provider says nothing")?;
    ensure!(known.peers.len() == PEERS + 1, "the reload came too late to be measured");
    Ok(())
}

/// A packet's cost in memory, as the [many peers](crate::many_peers) carry it.
fn packets(receives: bool, effort: Effort) -> Result<Vec<Figure>> {
    let way = if receives { "receiving" } else { "sending" };
    let load = |peers, active, rate| Load { peers, active, rate, receives };
    let few = instructions_per_packet(load(1, 1, 1), COUNTED)?;
    let many = instructions_per_packet(load(PEERS, 1, 1), COUNTED)?;
    let mut all = Vec::new();
    for load in [load(1, 1, 1), load(1, 1, ACTIVE), load(PEERS, ACTIVE, 1)] {
        all.push((ManyPeers::new(load)?, Vec::new()));
    }
    for _ in 0..2 * effort.runs() + 3 {
        for (peers, times) in &mut all {
            times.push(peers.carry(TIMED)?);
        }
    }
    let [one, fast, crowd] = [0, 1, 2].map(|at| median(all[at].1.clone()) as f64);
    let number = |what: &str, value, unit| Figure::number(format!("{way}: {what}"), value, unit);
    Ok(vec![
        number("instructions of a packet, one peer", few.round(), ""),
        number("the same with 10,000 peers, to that", many / few, "ratio").at_most(1.1, SOURCE),
        number("time of a packet, one peer", one, "ns"),
        number("the same with 64 active of 10,000, to that", crowd / one, "ratio")
            .at_most(1.3, SOURCE),
        number("the latter to one peer that is 64 times as fast", crowd / fast, "ratio"),
    ])
}
