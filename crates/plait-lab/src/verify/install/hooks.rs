//! install.4: hooks of a running gateway, some of which hang, beside its packets.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::Figure;
use crate::gateway::{Bond, BondSetup, Gateway, GatewayFile, idle_peer};
use crate::measure::{Echo, RoundTrips};
use crate::process::wait_until;
use crate::topology::{LinkSpec, Topology, inner_v4};

/// Where the bands of install.4 come from.
pub(super) const SOURCE: &str = "install.4";
const LINK: LinkSpec = LinkSpec::DSL;
const ECHO_PORT: u16 = 9000;
const WEBHOOK_PORT: u16 = 8901;
/// Peers that are added, each an event.
const EVENTS: usize = 500;
const ASKED: u32 = 400;
const INTERVAL: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(15);

/// A provider with four hooks, to which peers are added while packets pass.
pub(super) fn check() -> Result<Vec<Figure>> {
    let topology = Topology::build(&[LINK])?;
    let (customer, provider) = (&topology.customer().netns, &topology.provider);
    let mut bond = Bond::start(customer, provider, &BondSetup::over(&[LINK.name]))?;
    // It takes connections, as the kernel does for it, and never answers.
    let _silent = provider.run_in(|| TcpListener::bind(("127.0.0.1", WEBHOOK_PORT)))??;
    let told = bond.provider.config().with_file_name("told.txt");
    add_hooks(&bond.provider, &told.to_string_lossy())?;
    bond.provider.kill_and_restart(provider)?;
    bond.wait_until_up(1)?;
    let many = bond.provider.config().with_file_name("many.toml");
    let peers = (1..=EVENTS).map(idle_peer).collect();
    let text = GatewayFile { peers, ..GatewayFile::default() }.to_text();
    fs::write(&many, &text[text.find("[[peer]]").context("there are peers")?..])?;
    let echo = Echo::open(
        (customer, (inner_v4(2), 0).into()),
        (provider, (inner_v4(1), ECHO_PORT).into()),
    )?;
    let mut trips = RoundTrips::default();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| echo.ask(ASKED, INTERVAL, &mut trips));
        std::thread::sleep(INTERVAL * ASKED / 4);
        let from = many.to_string_lossy().into_owned();
        bond.provider.command(provider, &["peer", "add", "--from", &from])?;
        asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let hooks = wait_until("hooks to be given up", LIMIT, || {
        let status = status_of(&bond.provider, &topology)?;
        let hooks = status["hooks"].clone();
        let all = [0, 2].iter().all(|at| hooks[*at]["timed_out"].as_u64() > Some(0));
        Ok(all.then_some(hooks))
    })?;
    let number = |at: usize, key: &str| hooks[at][key].as_u64().unwrap_or_default();
    let told = fs::read_to_string(told).unwrap_or_default();
    bond.stop()?;
    let count = Figure::count;
    Ok(vec![
        count("round trips lost while hooks hang and events flood", trips.unanswered)
            .exactly(0.0, SOURCE),
        Figure::number("longest of them", trips.percentile_us(100) / 1e3, "ms"),
        count("a program that hangs was ended", number(0, "timed_out")).at_least(1.0, SOURCE),
        count("a program that does not exist failed", number(1, "failed")).at_least(1.0, SOURCE),
        count("a webhook that never answers was given up", number(2, "timed_out"))
            .at_least(1.0, SOURCE),
        count("events that a program was told of", told.matches("peer-new\n").count() as u64)
            .within(Some(1.0), Some(20.0), SOURCE),
        count("events left out of so many", number(3, "left_out"))
            .at_least(EVENTS as f64 - 30.0, SOURCE),
    ])
}

/// The whole status, also when it says that peers are down.
fn status_of(gateway: &Gateway, topology: &Topology) -> Result<Value> {
    let mut command = topology.provider.command(crate::gateway::plait_program()?);
    command.args(["status", "--json"]).arg(gateway.config());
    let finished = crate::process::run_any(&mut command, "", LIMIT)?;
    Ok(serde_json::from_str(&finished.stdout)?)
}

fn add_hooks(gateway: &Gateway, told: &str) -> Result<()> {
    let mut file = OpenOptions::new().append(true).open(gateway.config())?;
    write!(
        file,
        r#"
[[hook]]
on = ["peer-new"]
command = ["/bin/sh", "-c", "sleep 977 & wait"]
timeout_s = 1

[[hook]]
on = ["peer-new"]
command = "/nowhere/told"

[[hook]]
on = ["peer-new"]
webhook = "http://127.0.0.1:{WEBHOOK_PORT}/told"
timeout_s = 1

[[hook]]
on = ["peer-new"]
command = ["/bin/sh", "-c", "echo $PLAIT_EVENT >> {told}"]
"#
    )?;
    Ok(())
}
