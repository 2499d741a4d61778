//! Forwarding and NAT.

use plait_net::machine::is_interface_name;

use super::{Finding, gateway_option};
use crate::config::{Config, Nat};
use crate::daemon::{self, HostError};

/// Forwarding that cannot be switched on; `None` when it is not configured.
pub(super) fn forwarding(config: &Config) -> Option<Finding> {
    let asked = config.gateway.forward;
    let subject = gateway_option(config, "forward");
    asked.then(|| match daemon::can_forward(config) {
        Ok(()) => Finding::ok(subject, "forwarding can be switched on"),
        Err(error) => Finding::error(subject, error.to_string(), error.help()),
    })
}

/// `probe` asks the packet filter whether it would take the rules.
pub(super) fn nat(config: &Config, probe: impl Fn() -> Result<(), HostError>) -> Vec<Finding> {
    if config.gateway.nat == Nat::Off {
        return Vec::new();
    }
    let mut findings = vec![match probe() {
        Ok(()) => Finding::ok("nat", "nft is there, and the kernel takes its rules"),
        Err(error) => Finding::error("nat", error.to_string(), error.help()),
    }];
    let Nat::Interfaces(names) = &config.gateway.nat else { return findings };
    for name in names.iter().filter(|name| !is_interface_name(name)) {
        let text = format!("no interface called {name} now; nothing is hidden until there is one");
        let help = "`ip link` shows this machine's interfaces; correct `nat`";
        findings.push(Finding::warning(gateway_option(config, "nat"), text, help));
    }
    findings
}
