//! Tests of a bond whose links, addresses and gateways come and go under a running download. Their
//! bounds are generous: `plait-lab verify` measures.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::measure::Stream;
use crate::output::Output;
use crate::topology::{LinkSpec, Topology};
use crate::verify::survive::hostile::{Generator, Hostility, captured_payloads};

/// Longest standstill of a download that is no failure.
const STANDSTILL_MAX: Duration = Duration::from_secs(5);
/// Time in which the download gets going.
const RAMP: Duration = Duration::from_secs(2);
/// Time after the event in which the download is watched: longer than the longest standstill.
const WATCHED: Duration = Duration::from_secs(7);
const HOSTILE: u64 = 20_000;
const HOSTILE_PER_SECOND: u64 = 10_000;
const CAPTURE_PACKETS_MAX: usize = 500;

/// A bond of two links that carries a download.
struct Download<'a> {
    topology: &'a Topology,
    bond: Bond<'a>,
    stream: Stream,
    output: &'a Output,
}

/// Builds a network with a bond and a download and does `work` with it.
fn with_download(
    output: &Output,
    work: impl FnOnce(&mut Download<'_>) -> Result<()>,
) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    topology.customer().links.iter().for_each(|link| link.emulator.capture(CAPTURE_PACKETS_MAX));
    let setup = BondSetup::over(&["dsl", "lte"]);
    let bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    let stream = Stream::start(&topology, Way::Down)?;
    std::thread::sleep(RAMP);
    let mut download = Download { topology: &topology, bond, stream, output };
    work(&mut download)?;
    let Download { mut bond, stream, .. } = download;
    drop(stream);
    bond.stop()
}

impl Download<'_> {
    /// Lets `event` happen; the download must go on afterwards.
    fn goes_on(&mut self, what: &str, event: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let from = Instant::now();
        event(self)?;
        std::thread::sleep(WATCHED);
        let gap = self.stream.deliveries().longest_gap(from, Instant::now());
        self.output.line(format!("{what}: stood still for {} ms", gap.as_millis()))?;
        if let Some(death) = self.stream.death() {
            anyhow::bail!("{what}: the download died: {death}");
        }
        self.bond.ensure_both_run()?;
        ensure!(gap < STANDSTILL_MAX, "{what}: the download stood still for {gap:?}");
        Ok(())
    }
}

/// Either link may die in silence and heal.
pub(super) fn silent_cut(output: &Output) -> Result<()> {
    with_download(output, |download| {
        for name in ["dsl", "lte"] {
            let emulator = &download.topology.link(name)?.emulator;
            download.goes_on(&format!("{name} cut"), |_| {
                emulator.set_cut(true);
                Ok(())
            })?;
            emulator.set_cut(false);
            download.bond.wait_until_up(2)?;
        }
        Ok(())
    })
}

/// Either gateway may be killed and started again.
pub(super) fn restart(output: &Output) -> Result<()> {
    with_download(output, |download| {
        download.goes_on("calling gateway restarted", |download| {
            download.bond.customer.kill_and_restart(&download.topology.customer().netns)
        })?;
        download.bond.wait_until_up(2)?;
        download.goes_on("listening gateway restarted", |download| {
            download.bond.provider.kill_and_restart(&download.topology.provider)
        })?;
        download.bond.wait_until_up(2)
    })
}

/// Either interface may go and come back.
pub(super) fn interface(output: &Output) -> Result<()> {
    with_download(output, |download| {
        for name in ["dsl", "lte"] {
            let topology = download.topology;
            download.goes_on(&format!("{name} removed"), |_| topology.remove_interface(name))?;
            download.goes_on(&format!("{name} back"), |_| topology.return_interface(name))?;
            download.bond.wait_until_up(2)?;
        }
        Ok(())
    })
}

/// A link's address may change, and so may the ports that a NAT gives it.
pub(super) fn address(output: &Output) -> Result<()> {
    with_download(output, |download| {
        let topology = download.topology;
        download.goes_on("address of dsl changed", |_| topology.change_address("dsl"))?;
        download.bond.wait_until_up(2)?;
        download.goes_on("NAT of lte rebinds", |download| {
            download.topology.link("lte")?.emulator.rebind_ports(1);
            Ok(())
        })?;
        download.bond.wait_until_up(2)
    })
}

/// SIGHUP to either gateway leaves the bond as it is.
pub(super) fn reload(output: &Output) -> Result<()> {
    with_download(output, |download| {
        download.goes_on("SIGHUP, calling", |download| download.bond.customer.reload())?;
        download.goes_on("SIGHUP, listening", |download| download.bond.provider.reload())?;
        download.bond.wait_until_up(2)
    })
}

/// Random, mutated and replayed datagrams are counted and change nothing.
pub(super) fn hostile(output: &Output) -> Result<()> {
    with_download(output, |download| {
        let captures = captured_payloads(download.topology);
        let hostility = Hostility { captures, seed: 1 };
        let server = &download.topology.server;
        let generator = Generator::start(server, &hostility, HOSTILE_PER_SECOND, HOSTILE)?;
        download.goes_on("hostile datagrams", |_| Ok(()))?;
        let sent = generator.stop()?;
        ensure!(sent.datagrams == HOSTILE, "only {} were sent", sent.datagrams);
        let status = download.bond.provider_status()?;
        output.line(format!("drops: {:?}", status.drops))?;
        ensure!(status.drops_total() > HOSTILE / 2, "drops are counted: {:?}", status.drops);
        download.bond.wait_until_up(2)
    })
}
