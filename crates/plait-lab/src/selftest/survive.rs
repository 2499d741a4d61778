//! A bond under a download among hostile datagrams. The bounds are generous: `plait-lab verify`
//! measures.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::emulator::Way;
use crate::gateway::{Bond, captured};
use crate::measure::{HostileSender, Hostility, Stream};
use crate::output::Output;
use crate::topology::{LinkSpec, Topology};

/// Longest acceptable standstill of a download.
const STANDSTILL_MAX: Duration = Duration::from_secs(5);
/// Time in which the download gets going.
const RAMP: Duration = Duration::from_secs(2);
/// Time in which the download is watched: longer than the longest standstill.
const WATCHED: Duration = Duration::from_secs(7);
const HOSTILE: u64 = 20_000;
const HOSTILE_PER_SECOND: u64 = 10_000;
const CAPTURE_PACKETS_MAX: usize = 500;

/// Random, mutated and replayed datagrams are counted and change nothing.
pub(super) fn hostile(output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    topology.capture(CAPTURE_PACKETS_MAX);
    let mut bond = Bond::over(&topology)?;
    let stream = Stream::start(&topology, Way::Down)?;
    std::thread::sleep(RAMP);
    let hostility = Hostility { captures: captured::payloads(&topology), seed: 1 };
    let generator =
        HostileSender::start(&topology.server, &hostility, HOSTILE_PER_SECOND, HOSTILE)?;
    let from = Instant::now();
    std::thread::sleep(WATCHED);
    let gap = stream.deliveries().longest_gap(from, Instant::now());
    output.line(format!("hostile datagrams: stood still for {} ms", gap.as_millis()))?;
    if let Some(death) = stream.death() {
        anyhow::bail!("the download died: {death}");
    }
    bond.ensure_both_run()?;
    ensure!(gap < STANDSTILL_MAX, "the download stood still for {gap:?}");
    let sent = generator.stop()?;
    ensure!(sent.datagrams == HOSTILE, "only {} were sent", sent.datagrams);
    let status = bond.provider_status()?;
    output.line(format!("drops: {:?}", status.drops))?;
    ensure!(status.drops_total() > HOSTILE / 2, "drops are counted: {:?}", status.drops);
    bond.wait_until_up(2)?;
    drop(stream);
    bond.stop()
}
