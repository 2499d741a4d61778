//! Forwarding and NAT.

use plait_net::machine::is_interface_name;

use super::network::Network;
use super::{Finding, gateway_option, option_at};
use crate::config::{Config, Forward, Nat};
use crate::daemon::{self, HostError};

/// Forwarding that cannot be switched on; `None` when it is not configured.
pub(super) fn forwarding(config: &Config) -> Option<Finding> {
    let subject = match config.lans.first() {
        Some(lan) if !config.gateway.forward => option_at(config, lan.line, "[[lan]]"),
        _ => gateway_option(config, "forward"),
    };
    config.makes_host_forward().then(|| match daemon::can_forward(config) {
        Ok(()) => Finding::ok(subject, "forwarding can be switched on"),
        Err(error) => Finding::error(subject, error.to_string(), error.help()),
    })
}

/// Addresses of `[[forward]]` that this host does not have: packets for them come only if others
/// lead them here.
pub(super) fn addresses(config: &Config, network: &Network) -> Vec<Finding> {
    let has = |address| network.addresses().any(|(_, own)| own.address == address);
    let missing = |forward: &Forward| {
        let address = forward.address.filter(|address| !has(*address))?;
        let subject = option_at(config, forward.line, "[[forward]] address");
        let text =
            format!("{address} is on no interface: nothing comes for it, unless routed here");
        let help = format!("`ip address add {address} dev INTERFACE`, or correct it");
        Some(Finding::warning(subject, text, help))
    };
    config.forwards.iter().filter_map(missing).collect()
}

/// `probe` asks the packet filter whether it would take the rules.
pub(super) fn nat(config: &Config, probe: impl Fn() -> Result<(), HostError>) -> Vec<Finding> {
    let subject = match &config.gateway.nat {
        _ if !config.needs_table() => return Vec::new(),
        Nat::Off if config.forwards.is_empty() => "return_by_bond",
        Nat::Off => "[[forward]]",
        _ => "nat",
    };
    let mut findings = vec![match probe() {
        Ok(()) => Finding::ok(subject, "nft is there, and the kernel takes its rules"),
        Err(error) if subject == "nat" => Finding::error("nat", error.to_string(), error.help()),
        Err(error) => Finding::error(subject, error.of(subject), error.help_of(subject)),
    }];
    let Nat::Interfaces(names) = &config.gateway.nat else { return findings };
    for name in names.iter().filter(|name| !is_interface_name(name)) {
        let text = format!("no interface called {name} now; nothing is hidden until there is one");
        let help = "`ip link` shows this machine's interfaces; correct `nat`";
        findings.push(Finding::warning(gateway_option(config, "nat"), text, help));
    }
    findings
}
