//! install.1: from a package on two clean Debian systems to a LAN host that fetches a page through
//! the bond, and back to the clean systems.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;

use super::debian::{Debian, Sources};
use super::inventory::Inventory;
use crate::addresses::{BOND_ONLY_V4, BOND_ONLY_V6, PROVIDER_V4, SERVER_V4, SERVER_V6};
use crate::figure::Figure;
use crate::output::Progress;
use crate::process::{self, Finished, Service};
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, Topology, ip_batch, new_netns};
use crate::verify::Effort;

const SOURCE: &str = "install.1";
const STEP_LIMIT: Duration = Duration::from_secs(120);
const PAGE: &str = "a page behind the provider";
const INSTALL: &str = "apt-get install --yes /opt/plait.deb";
/// The page that must have each command.
const GUIDE: &str = include_str!("../../../../../docs/guide/install.md");
/// The most that each end may take, in commands, and both together, in seconds.
const COMMANDS_MAX: f64 = 3.0;
const SECONDS_MAX: f64 = 60.0;
/// What stays after a purge by the guide: the system user, and what Debian's tools note of it.
const STAYS: [&str; 8] = [
    "etc/passwd",
    "etc/passwd-",
    "etc/group",
    "etc/group-",
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/gshadow-",
];

pub(in crate::verify) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let sources = Sources::find()?;
    let progress_time = Duration::from_secs(90);
    let mut progress = Progress::new(1, progress_time);
    let _step = progress.step("two clean systems, package to bond, and back", progress_time);
    let scratch = Scratch::on_disk("install")?;
    let network = Network::build()?;
    let folder = |name: &str| scratch.path().join(name);
    let provider = Debian::make(&sources, &folder("provider"), "plait-provider")?;
    let customer = Debian::make(&sources, &folder("customer"), "plait-customer")?;
    let before = [Inventory::take(&provider)?, Inventory::take(&customer)?];
    let begun = Instant::now();
    let mut ends = [EndCommands::new(&provider), EndCommands::new(&customer)];
    let invitation = install_provider(&mut ends[0])?;
    install_customer(&mut ends[1], &invitation)?;
    let fetched = network.fetch_both()?;
    let seconds = begun.elapsed().as_secs_f64();
    let peers = invite_another(&provider)?;
    let mut figures = vec![
        Figure::number("package", sources.package_bytes()? as f64 / 1e6, "MB"),
        Figure::count("commands at the provider's end", ends[0].count)
            .at_most(COMMANDS_MAX, SOURCE),
        Figure::count("commands at the customer's end", ends[1].count)
            .at_most(COMMANDS_MAX, SOURCE),
        Figure::count("of them, not in the guide", ends[0].unknown + ends[1].unknown)
            .exactly(0.0, SOURCE),
        Figure::number("from the package to the page over IPv4 and IPv6", seconds, "s")
            .at_most(SECONDS_MAX, SOURCE),
        Figure::count("pages fetched by a host of the LAN", fetched).exactly(2.0, SOURCE),
        Figure::count("customers after one more was invited", peers).exactly(2.0, SOURCE),
    ];
    // An inventory that sees nothing would find nothing left.
    let seen = before[0].differences(&Inventory::take(&provider)?).len();
    figures.push(
        Figure::count("differences seen while it is installed", seen as u64).at_least(40.0, SOURCE),
    );
    for (name, system, before) in
        [("provider's", &provider, &before[0]), ("customer's", &customer, &before[1])]
    {
        figures.extend(purge(name, system, before)?);
    }
    Ok(figures)
}

/// The commands that a person gives at one end.
struct EndCommands<'a> {
    system: &'a Debian,
    count: u64,
    /// Those that do not stand in the guide.
    unknown: u64,
}

impl<'a> EndCommands<'a> {
    fn new(system: &'a Debian) -> Self {
        Self { system, count: 0, unknown: 0 }
    }

    /// Gives one command, which the guide has up to `known`.
    fn give(&mut self, known: &str, line: &str) -> Result<Finished> {
        self.count += 1;
        self.unknown += u64::from(!GUIDE.contains(&format!("\n{known}")));
        self.system.run_any(line, STEP_LIMIT)
    }
}

fn succeeded(finished: Finished) -> Result<String> {
    ensure!(finished.status.success(), "a command of the guide failed: {}", finished.stderr.trim());
    Ok(finished.stdout)
}

/// The commands of the guide at the provider's end; gives the invitation.
fn install_provider(end: &mut EndCommands<'_>) -> Result<String> {
    succeeded(end.give("apt install ./plait_", INSTALL)?)?;
    let lan = "--lan 192.168.7.0/24 --lan fd99:7::/64";
    let line = format!("plait setup provider --at {PROVIDER_V4} {lan} --yes --json");
    let said = succeeded(end.give("plait setup provider --at", &line)?)?;
    let said: serde_json::Value = serde_json::from_str(&said).context("setup answers oddly")?;
    Ok(said["invitation"].as_str().context("there is no invitation")?.to_owned())
}

/// The commands of the guide at the customer's end; the second waits for the bond.
fn install_customer(end: &mut EndCommands<'_>, invitation: &str) -> Result<()> {
    succeeded(end.give("apt install ./plait_", INSTALL)?)?;
    let line = format!("plait setup join {invitation} --yes");
    let joined = end.give("plait setup join plait1.", &line)?;
    if !joined.status.success() {
        let journal =
            end.system.run("journalctl -u 'plait@*' --no-pager | tail -30", STEP_LIMIT)?;
        bail!("no bond: {}\n{journal}", joined.stderr.trim());
    }
    Ok(())
}

/// Lets one more customer in at the running provider's end; how many that has then, in its file.
fn invite_another(system: &Debian) -> Result<u64> {
    let said =
        system.run(&format!("plait setup invite --at {PROVIDER_V4} --yes --json"), STEP_LIMIT)?;
    let said: serde_json::Value = serde_json::from_str(&said).context("setup answers oddly")?;
    said["invitation"].as_str().context("there is no invitation")?;
    system.run("plait reload", STEP_LIMIT)?;
    let listed = system.run("plait peer list --json", STEP_LIMIT)?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let peers = listed["ok"]["peers"].as_array().context("plait peer list answers oddly")?;
    Ok(peers.len() as u64)
}

/// Removes the package with everything; what is there afterwards beyond what the guide names.
fn purge(name: &str, system: &Debian, before: &Inventory) -> Result<Vec<Figure>> {
    system.run("apt-get purge --yes plait", STEP_LIMIT)?;
    let after = Inventory::take(system)?;
    let stays = |entry: &String| {
        let (_, path) = entry.split_once(": ").unwrap_or(("", entry));
        STAYS.contains(&path)
    };
    let left: Vec<_> = before.differences(&after).into_iter().filter(|e| !stays(e)).collect();
    let mut figures = vec![
        Figure::count(format!("left at the {name} end after a purge"), left.len() as u64)
            .exactly(0.0, SOURCE),
    ];
    figures.extend(left.into_iter().take(10).map(|entry| Figure::text("left", entry)));
    Ok(figures)
}

/// Customer, provider and server, and a LAN behind the customer.
pub(super) struct Network {
    pub(super) topology: Topology,
    lan: NetNs,
    scratch: Scratch,
}

impl Network {
    pub(super) fn build() -> Result<Self> {
        let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
        let lan = new_netns("plait-lan")?;
        let customer = &topology.customer().netns;
        ip_batch(&lan, "", &["link add eth0 type veth peer name lan netns plait-customer"])?;
        ip_batch(
            customer,
            "",
            &[
                "addr add 192.168.7.1/24 dev lan",
                "addr add fd99:7::1/64 dev lan nodad",
                "addr add fe80::7:1/64 dev lan nodad",
                "link set lan up",
            ],
        )?;
        ip_batch(
            &lan,
            "",
            &[
                "addr add 192.168.7.2/24 dev eth0",
                "addr add fd99:7::2/64 dev eth0 nodad",
                "addr add fe80::7:2/64 dev eth0 nodad",
                "link set eth0 up",
                "route add default via 192.168.7.1",
            ],
        )?;
        ip_batch(&lan, "-6", &["route add default via fd99:7::1"])?;
        ip_batch(customer, "", &[format!("route del unreachable {BOND_ONLY_V4}")])?;
        ip_batch(customer, "-6", &[format!("route del unreachable {BOND_ONLY_V6}")])?;
        // The gateways themselves must see to forwarding.
        for netns in [customer, &topology.provider] {
            netns.set_sysctl("net.ipv4.ip_forward", "0")?;
            netns.set_sysctl("net.ipv6.conf.all.forwarding", "0")?;
        }
        Ok(Self { topology, lan, scratch: Scratch::in_memory("install-pages")? })
    }

    /// Where a host of the LAN is.
    pub(super) const fn lan(&self) -> &NetNs {
        &self.lan
    }

    /// Fetches a page from the server over both families, again until the bond is there; how many
    /// were right.
    pub(super) fn fetch_both(&self) -> Result<u64> {
        let folder = self.scratch.path();
        std::fs::write(folder.join("index.html"), PAGE)?;
        let mut serve = self.topology.server.command("busybox");
        serve.args(["httpd", "-f", "-p", "[::]:80", "-h"]).arg(folder);
        let _server = Service::start(&mut serve, &folder.join("httpd.log"))?;
        let pages = [format!("http://{SERVER_V4}/"), format!("http://[{SERVER_V6}]/")];
        let right = pages.iter().filter(|url| self.fetch(url)).count();
        Ok(right as u64)
    }

    fn fetch(&self, url: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let mut command: Command = self.lan.command("curl");
            command.args(["--silent", "--max-time", "5", url]);
            let said = process::run_any(&mut command, "", Duration::from_secs(10));
            if said.is_ok_and(|said| said.stdout == PAGE) {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
