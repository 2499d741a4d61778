//! install.2's table: machines that boot where something is missing, and what comes of it without
//! anybody's help.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::debian::{Debian, Sources};
use super::package::Network;
use crate::addresses::{PROVIDER_V4, link_v4};
use crate::figure::Figure;
use crate::output::Progress;
use crate::scratch::Scratch;
use crate::topology::ip_batch;
use crate::verify::Effort;

const SOURCE: &str = "install.2";
const STEP_LIMIT: Duration = Duration::from_secs(60);
/// A bond that was hindered must be up this soon after the hindrance is gone.
const UP_WITHIN: Duration = Duration::from_secs(30);
/// How long a hindrance lasts after the boot.
const HINDERED: Duration = Duration::from_secs(4);
const NAME: &str = "gw.plait.example";

/// Something that is wrong when the customer's machine boots.
struct Hindrance {
    name: &'static str,
    /// Commands in the customer's machine that make it so, before the power is cut.
    before: &'static str,
    /// What is true of the machine while it is hindered: otherwise the boot shows nothing.
    seen: &'static str,
    /// Those that set it right, some time after the boot.
    after: &'static str,
    /// The device that is down meanwhile.
    device: Option<&'static str>,
}

const HINDRANCES: [Hindrance; 4] = [
    Hindrance { name: "nothing", before: "true", seen: "true", after: "true", device: None },
    Hindrance {
        name: "a missing link",
        before: "true",
        seen: "! ip link show lte | grep -q LOWER_UP",
        after: "true",
        device: Some("lte"),
    },
    Hindrance {
        name: "dead DNS",
        before: "sed -i /plait.example/d /etc/hosts; echo nameserver 192.0.2.99 > /etc/resolv.conf",
        seen: "! plait status",
        after: "echo 192.0.2.1 gw.plait.example >> /etc/hosts",
        device: None,
    },
    Hindrance {
        name: "a wrong clock",
        before: WRONG_CLOCK,
        seen: "grep -q faketime /proc/$(systemctl show -P MainPID plait@plait0)/maps",
        after: "true",
        device: None,
    },
];
/// A machine without a battery begins ten years ago. The clock is the whole host's, so a library
/// shows the gateway another one.
const WRONG_CLOCK: &str = "mkdir -p /etc/systemd/system/plait@.service.d
    so=$(ls /usr/lib/*/faketime/libfaketime.so.1)
    printf '[Service]\\nEnvironment=LD_PRELOAD=%s FAKETIME=-3650d\\n' $so \
        > /etc/systemd/system/plait@.service.d/clock.conf
    echo Environment=FAKETIME_DONT_FAKE_MONOTONIC=1 \
        >> /etc/systemd/system/plait@.service.d/clock.conf";

pub(super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let sources = Sources::find()?;
    let time = Duration::from_secs(30) * HINDRANCES.len() as u32;
    let mut progress = Progress::new(1, time);
    let _step = progress.step("a machine that boots where something is missing", time);
    let scratch = Scratch::on_disk("boot")?;
    let network = Network::build()?;
    let provider = Debian::make(&sources, &scratch.path().join("provider"), "plait-provider")?;
    let mut customer = set_up(&sources, scratch.path(), &provider, "")?;
    let mut figures = Vec::new();
    for hindrance in &HINDRANCES {
        let up_s = boot_with(hindrance, &network, &mut customer)
            .with_context(|| format!("boot with {}", hindrance.name))?;
        figures.push(
            Figure::number(format!("boot with {}: bond up after it", hindrance.name), up_s, "s")
                .at_most(UP_WITHIN.as_secs_f64(), SOURCE),
        );
    }
    Ok(figures)
}

/// Sets both ends up by their commands, the provider's with these options; gives the customer's.
pub(super) fn set_up(
    sources: &Sources,
    folder: &Path,
    provider: &Debian,
    options: &str,
) -> Result<Debian> {
    let install = "apt-get install --yes /opt/plait.deb";
    provider.run(install, STEP_LIMIT)?;
    let line = format!("plait setup provider --at {NAME} {options} --yes --json");
    let said = provider.run(&line, STEP_LIMIT)?;
    let said: serde_json::Value = serde_json::from_str(&said).context("setup answers oddly")?;
    let invitation = said["invitation"].as_str().context("there is no invitation")?;
    let customer = Debian::make(sources, &folder.join("customer"), "plait-customer")?;
    customer.run(&format!("echo {PROVIDER_V4} {NAME} >> /etc/hosts"), STEP_LIMIT)?;
    customer.run(install, STEP_LIMIT)?;
    customer.run(&format!("plait setup join {invitation} --yes"), STEP_LIMIT)?;
    Ok(customer)
}

/// Boots the customer's machine; the seconds from the end of the hindrance until the bond is up.
fn boot_with(hindrance: &Hindrance, network: &Network, customer: &mut Debian) -> Result<f64> {
    customer.run(hindrance.before, STEP_LIMIT)?;
    let netns = &network.topology.customer().netns;
    if let Some(device) = hindrance.device {
        ip_batch(netns, "", &[format!("link set {device} down")])?;
    }
    customer.cut_power_and_boot("plait-customer")?;
    std::thread::sleep(HINDERED);
    customer.run(hindrance.seen, STEP_LIMIT).context("the hindrance is not there")?;
    if let Some(device) = hindrance.device {
        // The kernel forgets the routes of a device that goes down.
        let next_hop = link_v4(network.topology.link(device)?.number, 2);
        let route = format!("route add default via {next_hop} dev {device} metric 2");
        ip_batch(netns, "", &[format!("link set {device} up"), route])?;
    }
    customer.run(hindrance.after, STEP_LIMIT)?;
    let begun = Instant::now();
    let is_up = "systemctl is-active plait@plait0 && plait status";
    while !customer.run_any(is_up, STEP_LIMIT)?.status.success() {
        if begun.elapsed() > UP_WITHIN {
            let why = "plait status; systemctl status 'plait@*' --no-pager; \
                       journalctl -b -u 'plait@*' --no-pager | tail -30";
            let said = customer.run_any(why, STEP_LIMIT)?;
            bail!("the bond does not come up: {}{}", said.stdout, said.stderr);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(begun.elapsed().as_secs_f64())
}
