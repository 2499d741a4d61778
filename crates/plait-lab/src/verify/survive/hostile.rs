//! survive.5: hostile datagrams against a gateway that carries a bond.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::{Effort, Figure};
use super::{LINKS, count_alive};
use crate::emulator::Way;
use crate::gateway::{Bond, captured};
use crate::measure::{Deliveries, HostileSender, Hostility, Stream, unread_datagrams};
use crate::output::Progress;
use crate::topology::{SERVER_V4, Topology};

const SOURCE: &str = "survive.5";
const GROWTH_MIB_MAX: f64 = 8.0;
const THROUGHPUT_SHARE_MIN: f64 = 0.5;
/// Share of the datagrams read from its socket that the gateway must account for.
const COUNTED_SHARE_MIN: f64 = 0.9;

const DATAGRAMS: u64 = 10_000_000;
const DATAGRAMS_QUICK: u64 = 300_000;
/// Rate of the flood: about what a gateway can read, so that datagrams reach it and not only its
/// socket.
const FLOOD_PER_SECOND: u64 = 50_000;
/// Rate during which the throughput is measured.
const BESIDE_PER_SECOND: u64 = 20_000;

/// Packets kept per direction of each link, from the first handshake on.
const CAPTURE_PACKETS_MAX: usize = 2_000;
/// Traffic under which packets are captured.
const CAPTURING: Duration = Duration::from_secs(3);
/// Packets kept per direction of each link at each renewal of the captures: older ones fail because
/// of their age alone.
const FRESH_PACKETS_MAX: usize = 200;
/// Time between two renewals. Within it captured packets have arrived, so that a copy is a replay.
const RENEWAL: Duration = Duration::from_millis(500);
/// Time in which the last datagrams are read.
const SETTLE: Duration = Duration::from_secs(2);
const STREAMS: usize = 2;
const RAMP: Duration = Duration::from_secs(3);

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let quick = effort.is_quick();
    let datagrams = if quick { DATAGRAMS_QUICK } else { DATAGRAMS };
    let flooding = Duration::from_secs(datagrams / FLOOD_PER_SECOND);
    let counted = Duration::from_secs(if quick { 5 } else { 20 });
    let (warming, comparing) = (RAMP + CAPTURING, (RAMP + counted) * 2);
    let mut progress = Progress::new(3, warming + comparing + flooding);

    let topology = Topology::build(&LINKS)?;
    topology.capture(CAPTURE_PACKETS_MAX);
    let mut bond = Bond::over(&topology)?;
    let streams = Stream::start_several(&topology, Way::Down, STREAMS)?;
    let step = progress.step("capturing the bond's datagrams", warming);
    std::thread::sleep(warming);
    drop(step);
    let captures = captured::payloads(&topology);
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

/// Gives the generator the links' current packets.
fn renew(topology: &Topology, generator: &HostileSender) {
    topology.capture(FRESH_PACKETS_MAX);
    std::thread::sleep(RENEWAL);
    generator.renew(captured::payloads(topology));
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
    let generator = HostileSender::start(&topology.server, hostility, BESIDE_PER_SECOND, u64::MAX)?;
    let done = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renew(topology, &generator);
            }
        });
        let beside = rate();
        done.store(true, Ordering::Relaxed);
        beside
    });
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
        Figure::percent("generator's CPU, of a core, beside the throughput", sent.cpu_ppm()),
    ])
}

fn flood(
    topology: &Topology,
    bond: &mut Bond<'_>,
    hostility: &Hostility,
    datagrams: u64,
) -> Result<Vec<Figure>> {
    let drops_before = bond.provider_status()?.drops;
    let unread_before = unread_datagrams(&topology.provider)?;
    let memory_before = bond.provider.memory_mib()?;
    let generator = HostileSender::start(&topology.server, hostility, FLOOD_PER_SECOND, datagrams)?;
    let mut memory_halfway = None;
    while generator.sent() < datagrams && generator.runs() {
        renew(topology, &generator);
        bond.ensure_both_run().context("under hostile datagrams")?;
        if generator.sent() >= datagrams / 2 && memory_halfway.is_none() {
            memory_halfway = Some(bond.provider.memory_mib()?);
        }
    }
    let sent = generator.stop()?;
    std::thread::sleep(SETTLE);
    let memory_end = bond.provider.memory_mib()?;
    let status = bond.provider_status()?;
    let dropped = risen(&drops_before, &status.drops);
    let counted: u64 = dropped.values().sum();
    let unread = unread_datagrams(&topology.provider)? - unread_before;
    ensure!(sent.datagrams > unread, "no hostile datagram reached the gateway");
    let share = counted as f64 / (sent.datagrams - unread) as f64;
    let memory_halfway = memory_halfway.context("the generator passes half of its datagrams")?;
    let answered = crate::measure::ping(&topology.customer().netns, SERVER_V4, None, 5)?.received;
    let mut figures = vec![
        Figure::count("hostile datagrams sent", sent.datagrams).at_least(datagrams as f64, SOURCE),
        Figure::count("of them not read by the busy gateway", unread),
        Figure::count("drops that the gateway counted", counted),
        Figure::number("drops counted, of the datagrams read", share, "ratio")
            .at_least(COUNTED_SHARE_MIN, "from the network: a counted drop"),
        Figure::number("gateway's memory before", memory_before, "MiB"),
        Figure::number("gateway's memory halfway", memory_halfway, "MiB"),
        Figure::number("gateway's memory at the end", memory_end, "MiB"),
        Figure::number("growth of memory", memory_end - memory_before, "MiB")
            .at_most(GROWTH_MIB_MAX, SOURCE),
        Figure::number("generator's CPU time", sent.cpu.as_secs_f64(), "s"),
        Figure::percent("generator's CPU, of a core", sent.cpu_ppm()),
        Figure::number("replies to hostile datagrams", sent.reply_bps() as f64 / 1e3, "kbit/s"),
        Figure::count("pings of 5 answered afterwards", answered.into())
            .exactly(5.0, "the bond works on"),
    ];
    let by_reason = |(reason, count)| Figure::count(format!("drops counted as {reason}"), count);
    figures.extend(dropped.into_iter().map(by_reason));
    Ok(figures)
}

/// Counters that have grown, and by how much.
pub(in super::super) fn risen(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let risen = after
        .iter()
        .map(|(reason, count)| (reason.clone(), count - before.get(reason).copied().unwrap_or(0)));
    risen.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rose_is_counted() {
        let counters = |list: &[(&str, u64)]| {
            list.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
        };
        let before = counters(&[("replayed", 2), ("bad-tag", 7)]);
        let after = counters(&[("replayed", 5), ("bad-tag", 7), ("truncated", 1)]);
        assert_eq!(risen(&before, &after), counters(&[("replayed", 3), ("truncated", 1)]));
    }
}
