//! `plait measure` between real gateways over emulated links.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::gateway::{Bond, BondSetup, MeasuredView};
use crate::machine::Watch;
use crate::measure::mbit;
use crate::output::Output;
use crate::topology::{LinkSpec, Topology};

/// Links slow enough that even a busy machine fills them.
const LINKS: [LinkSpec; 2] = [LinkSpec::new("fast", 8, 20, 20), LinkSpec::new("slow", 4, 40, 40)];
/// Extra time beyond the announcement for a busy machine.
const GRACE_S: f64 = 5.0;
const LIMIT: Duration = Duration::from_secs(120);

fn setup() -> BondSetup {
    BondSetup { measures: true, ..BondSetup::over(&["fast", "slow"]) }
}

/// Both directions are measured, each path over its own link, within what was announced, and
/// nothing stays behind.
pub(super) fn measures_each_path_and_the_bond(output: &Output) -> Result<()> {
    let topology = Topology::build(&LINKS)?;
    let customer = &topology.customer().netns;
    let mut bond = Bond::start(customer, &topology.provider, &setup())?;
    let arguments = ["--seconds", "4", "--direction", "both", "--max-bytes", "300 MB"];
    let watch = Watch::start();
    let measured = bond.customer.measure(customer, &arguments, LIMIT)?;
    let is_held_up = watch.end().excuses();
    let view = measured.view()?;
    output.line(view.advice.join("; "))?;
    ensure!(measured.told().contains("up to 300.0 MB over all links"), "{}", measured.told());
    within_announced(&view, measured.took)?;
    ensure!(view.directions.len() == 2, "{} directions", view.directions.len());
    for direction in &view.directions {
        let what = &direction.direction;
        for (path, link) in direction.paths.iter().zip(LINKS) {
            ensure!(path.name == link.name, "{what}: {} in the place of {}", path.name, link.name);
            let rate = link.rate_mbit as f64 * 1e6;
            let columns = [("individual", path.individual), ("simultaneous", path.simultaneous)];
            for (column, flow) in columns {
                let bps = flow.context("a figure is missing")?.throughput_bps;
                let share = bps as f64 / rate;
                let place = format!("{what}: {} {column} {} Mbit/s", link.name, mbit(bps));
                output.line(&place)?;
                // A machine that keeps programs waiting does not fill a link.
                let least = if is_held_up { 0.02 } else { 0.3 };
                ensure!((least..1.02).contains(&share), "{place}: {share:.2} of the link");
            }
            let idle_us = path.idle.context("no idle latency")?.median_us;
            let rtt_us = link.rtt_min_ms * 1000;
            ensure!(idle_us >= rtt_us, "{}: {idle_us} us", link.name);
        }
        let bonded = direction.bond.bonded;
        output.line(format!("{what}: bond {} Mbit/s", mbit(bonded.throughput_bps)))?;
        let latencies = [direction.bond.idle, bonded.latency];
        ensure!(latencies.iter().all(Option::is_some), "{what}: latencies {latencies:?}");
        ensure!(direction.aggregation_ratio.is_some(), "{what}: no A_r");
        let bounds: Vec<_> = direction.bounds.iter().map(|one| one.equation.as_str()).collect();
        ensure!(bounds == ["5.1", "5.2", "5.3"], "{what}: bounds {bounds:?}");
        let holding = direction.bounds.iter().filter(|one| one.holds).count();
        output.line(format!("{what}: {holding} of the bounds hold"))?;
    }
    leaves_nothing(&mut bond)?;
    bounded_by_bytes(&mut bond, output)?;
    bond.stop()
}

/// The announced duration and bytes are not exceeded.
fn within_announced(view: &MeasuredView, took: Duration) -> Result<()> {
    let MeasuredView { announced, used, .. } = view;
    ensure!(used.bytes <= announced.bytes, "{} of {} bytes", used.bytes, announced.bytes);
    let most_s = announced.seconds + GRACE_S;
    ensure!(used.seconds <= most_s, "{} of {} s", used.seconds, announced.seconds);
    ensure!(took.as_secs_f64() <= most_s, "took {took:?}");
    Ok(())
}

fn leaves_nothing(bond: &mut Bond<'_>) -> Result<()> {
    for status in [bond.customer_status()?, bond.provider_status()?] {
        ensure!(status.measurements.is_empty(), "still measuring: {:?}", status.measurements);
    }
    Ok(())
}

/// A small byte limit is kept too, whatever is left of the measurement.
fn bounded_by_bytes(bond: &mut Bond<'_>, output: &Output) -> Result<()> {
    let arguments = ["--seconds", "4", "--bonded-only", "--max-bytes", "1 MB"];
    let measured = bond.customer.measure(bond.customer_netns(), &arguments, LIMIT)?;
    let view = measured.view()?;
    within_announced(&view, measured.took)?;
    output.line(format!("with 1 MB: {} bytes, {} runs cut", view.used.bytes, view.cut_phases))?;
    ensure!(view.cut_phases == 1, "1 MB does not last for 4 s");
    ensure!(view.directions[0].aggregation_ratio.is_none(), "there is nothing to compare");
    Ok(())
}

/// A peer that does not allow it, a path that does not exist, a metered path that nobody is asked
/// about, a gateway that is not there: each is an error with its remedy.
pub(super) fn says_why_it_cannot_measure(_output: &Output) -> Result<()> {
    let topology = Topology::build(&LINKS)?;
    let customer = &topology.customer().netns;
    let mut unmeasured = BondSetup::over(&["fast", "slow"]);
    unmeasured.paths[1].metered = true;
    let mut bond = Bond::start(customer, &topology.provider, &unmeasured)?;
    for (arguments, expected) in [
        (vec!["--yes"], "`measure = true` under its [gateway]"),
        (vec!["--path", "dsl"], "there is no path dsl"),
        (vec![], "path slow is metered, and nobody can be asked"),
        (vec!["--yes", "--to", "10.99.0.77"], "no measuring service at 10.99.0.77:7789"),
        (vec!["--peer", "nobody"], "no peer has this key"),
    ] {
        let measured = bond.customer.measure(customer, &arguments, LIMIT)?;
        let complaint = measured.complaint()?;
        ensure!(complaint.contains(expected), "{arguments:?}: {complaint}");
        ensure!(complaint.contains("help: "), "{arguments:?}: {complaint}");
    }
    bond.provider.kill()?;
    bond.customer.kill_and_restart(customer)?;
    let refused = || -> Result<Option<String>> {
        let measured = bond.customer.measure(customer, &["--yes"], LIMIT)?;
        let complaint = measured.complaint()?;
        // Until the gateway has its control socket it cannot be found.
        Ok((!complaint.contains("is the gateway running?")).then(|| complaint.to_owned()))
    };
    let complaint = crate::process::wait_until("an answer", Duration::from_secs(10), refused)?;
    ensure!(complaint.contains("not up"), "{complaint}");
    bond.customer.stop()
}
