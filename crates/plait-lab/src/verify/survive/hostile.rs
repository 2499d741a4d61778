//! survive.5: hostile datagrams against a gateway that carries a bond.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::packet::{Captured, sort};
use super::super::{Effort, Figure};
use super::{LINKS, count_alive};
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::measure::{Deliveries, Stream, mbit};
use crate::output::Progress;
use crate::topology::{SERVER_V4, Topology};

mod datagrams;
mod generator;

pub(crate) use generator::{Generator, Hostility};

const SOURCE: &str = "issue 4, promise 5";
const GROWTH_MIB_MAX: f64 = 8.0;
const THROUGHPUT_SHARE_MIN: f64 = 0.5;
/// Of the datagrams that the gateway's socket took, those that it must account for.
const COUNTED_SHARE_MIN: f64 = 0.9;

const DATAGRAMS: u64 = 10_000_000;
const DATAGRAMS_QUICK: u64 = 300_000;
/// Pace of the many: about what a gateway can read, so that they reach it and not only its socket.
const FLOOD_PER_SECOND: u64 = 50_000;
/// Pace of those beside which the throughput is measured.
const BESIDE_PER_SECOND: u64 = 20_000;

/// Packets kept of each direction of each link, from the first handshake on.
const CAPTURE_PACKETS_MAX: usize = 2_000;
/// Traffic under which packets are captured.
const CAPTURING: Duration = Duration::from_secs(3);
/// Time in which the last datagrams are read.
const SETTLE: Duration = Duration::from_secs(2);
const STREAMS: usize = 2;
const RAMP: Duration = Duration::from_secs(3);

/// Bytes in a mebibyte.
const MIB: f64 = (1 << 20) as f64;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let quick = effort.runs == 1;
    let datagrams = if quick { DATAGRAMS_QUICK } else { DATAGRAMS };
    let flooding = Duration::from_secs(datagrams / FLOOD_PER_SECOND);
    let counted = Duration::from_secs(if quick { 5 } else { 20 });
    let (warming, comparing) = (RAMP + CAPTURING, (RAMP + counted) * 2);
    let mut progress = Progress::new(3, warming + comparing + flooding);

    let topology = Topology::build(&LINKS)?;
    topology.customer().links.iter().for_each(|link| link.emulator.capture(CAPTURE_PACKETS_MAX));
    let setup = BondSetup::over(&LINKS.map(|link| link.name));
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    let streams = Stream::start_several(&topology, Way::Down, STREAMS)?;
    let step = progress.step("capturing the bond's datagrams", warming);
    std::thread::sleep(warming);
    drop(step);
    let captures = captured_payloads(&topology);
    let hostility = Hostility { captures, seed: 5 };

    let step = progress.step("throughput alone, and beside hostile datagrams", comparing);
    let mut figures = compare_throughput(&topology, &streams, &hostility, counted)?;
    drop(step);
    let _step = progress.step("many hostile datagrams", flooding);
    figures.extend(flood(&topology, &mut bond, &hostility, datagrams)?);
    let alive = count_alive(&streams);
    figures.push(
        Figure::count(format!("connections of {STREAMS} that live"), alive)
            .exactly(STREAMS as f64, SOURCE),
    );
    drop(streams);
    bond.stop().context("after hostile datagrams")?;
    Ok(figures)
}

/// Payloads of what the gateways sent each other, in both directions.
pub(crate) fn captured_payloads(topology: &Topology) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    for link in &topology.customer().links {
        for way in [Way::Up, Way::Down] {
            for packet in link.emulator.captured(way) {
                if let Captured::Plait { payload, .. } = sort(&packet) {
                    payloads.push(payload.to_vec());
                }
            }
        }
    }
    payloads
}

fn compare_throughput(
    topology: &Topology,
    streams: &[Stream],
    hostility: &Hostility,
    counted: Duration,
) -> Result<Vec<Figure>> {
    let rate = || {
        std::thread::sleep(RAMP);
        let from = Instant::now();
        std::thread::sleep(counted);
        let all: Vec<_> = streams.iter().map(Stream::deliveries).collect();
        Deliveries::merged(&all).rate_bps(from, Instant::now())
    };
    let alone = rate();
    let generator = Generator::start(&topology.server, hostility, BESIDE_PER_SECOND, u64::MAX)?;
    let beside = rate();
    let sent = generator.stop()?;
    ensure!(alone > 0, "the undisturbed bond carries nothing");
    let pace = sent.datagrams as f64 / sent.elapsed.as_secs_f64();
    let share = beside as f64 / alone as f64;
    let name = format!("throughput beside {BESIDE_PER_SECOND} hostile datagrams per second");
    Ok(vec![
        Figure::mbit("throughput undisturbed", alone),
        Figure::mbit(&name, beside),
        Figure::number(format!("{name}, of the undisturbed"), share, "ratio")
            .at_least(THROUGHPUT_SHARE_MIN, SOURCE),
        Figure::number("hostile datagrams sent per second", pace, "per second")
            .at_least(BESIDE_PER_SECOND as f64 * 0.9, "the generator keeps its pace"),
        Figure::percent("generator's CPU beside the throughput", sent.cpu_ppm()),
    ])
}

fn flood(
    topology: &Topology,
    bond: &mut Bond<'_>,
    hostility: &Hostility,
    datagrams: u64,
) -> Result<Vec<Figure>> {
    let drops_before = bond.provider_status()?.drops;
    let unread_before = generator::unread_datagrams(&topology.provider)?;
    let memory_before = bond.provider.memory_bytes()?;
    let generator = Generator::start(&topology.server, hostility, FLOOD_PER_SECOND, datagrams)?;
    let mut memory_halfway = None;
    while generator.sent() < datagrams && generator.runs() {
        std::thread::sleep(Duration::from_millis(100));
        bond.ensure_both_run().context("under hostile datagrams")?;
        if generator.sent() >= datagrams / 2 && memory_halfway.is_none() {
            memory_halfway = Some(bond.provider.memory_bytes()?);
        }
    }
    let sent = generator.stop()?;
    std::thread::sleep(SETTLE);
    let memory_end = bond.provider.memory_bytes()?;
    let status = bond.provider_status()?;
    let counted: u64 = status
        .drops
        .iter()
        .map(|(kind, count)| count - drops_before.get(kind).copied().unwrap_or(0))
        .sum();
    let unread = generator::unread_datagrams(&topology.provider)? - unread_before;
    ensure!(sent.datagrams > unread, "no hostile datagram reached the gateway");
    let share = counted as f64 / (sent.datagrams - unread) as f64;
    let memory_halfway = memory_halfway.context("the generator passes half of its datagrams")?;
    let mib = |bytes: u64| bytes as f64 / MIB;
    let answered = crate::selftest::ping(&topology.customer().netns, SERVER_V4, None, 5)?.received;
    Ok(vec![
        Figure::count("hostile datagrams sent", sent.datagrams).at_least(datagrams as f64, SOURCE),
        Figure::count("of them not read by the busy gateway", unread),
        Figure::count("drops that the gateway counted", counted),
        Figure::number("drops counted, of the datagrams read", share, "ratio")
            .at_least(COUNTED_SHARE_MIN, "from the network: a counted drop"),
        Figure::text("drops by reason", format!("{:?}", status.drops)),
        Figure::number("gateway's memory before", mib(memory_before), "MiB"),
        Figure::number("gateway's memory halfway", mib(memory_halfway), "MiB"),
        Figure::number("gateway's memory at the end", mib(memory_end), "MiB"),
        Figure::number("growth of memory", mib(memory_end) - mib(memory_before), "MiB")
            .at_most(GROWTH_MIB_MAX, SOURCE),
        Figure::percent("generator's CPU", sent.cpu_ppm()),
        Figure::text("generator's CPU time", format!("{:.1} s", sent.cpu.as_secs_f64())),
        Figure::count("pings of 5 afterwards", answered.into()).exactly(5.0, "the bond works on"),
        Figure::text("replies to hostile datagrams", mbit(sent.reply_bps())),
    ])
}
