//! What `when_down` needs of the machine: the packet filter, and a way past the bond.

use super::network::Network;
use super::{Finding, gateway_option};
use crate::config::{Config, WhenDown};
use crate::daemon;

/// Whether the packet filter takes the rules.
pub(super) fn rules(config: &Config, has_rights: bool) -> Option<Finding> {
    let probed = match config.gateway.when_down {
        WhenDown::Hold => return None,
        WhenDown::Bypass => daemon::can_bypass(config, has_rights),
        WhenDown::Block => daemon::can_block(config, has_rights),
    };
    Some(match probed {
        Ok(()) => Finding::ok("when_down", "nft is there, and the kernel takes its rules"),
        Err(error) => {
            Finding::error("when_down", error.of("when_down"), error.help_of("when_down"))
        }
    })
}

/// Whether each family that the bond carries has another default route.
pub(super) fn exits(config: &Config, network: &Network) -> Vec<Finding> {
    if config.gateway.when_down != WhenDown::Bypass {
        return Vec::new();
    }
    let subject = gateway_option(config, "when_down");
    let led: Vec<_> = config.allowed_prefixes().into_iter().filter(|p| p.length <= 1).collect();
    let mut findings = Vec::new();
    for (is_ipv4, family, ip) in [(true, "IPv4", "ip"), (false, "IPv6", "ip -6")] {
        if !led.iter().any(|prefix| prefix.address.is_ipv4() == is_ipv4) {
            continue;
        }
        let defaults = network.routes.iter().filter(|route| {
            let is_other = route.index.is_none_or(|at| network.name_of(at) != config.gateway.tun);
            route.prefix == 0 && route.destination.is_ipv4() == is_ipv4 && is_other
        });
        let over: Vec<_> =
            defaults.filter_map(|route| route.index).map(|at| network.name_of(at)).collect();
        findings.push(if over.is_empty() {
            let text =
                format!("no default route of {family} besides the bond: nothing to fall back on");
            let help = format!("add one for each link, as in `{ip} route add default via ROUTER`");
            Finding::warning(subject.as_str(), text, help)
        } else {
            Finding::ok(subject.as_str(), format!("{family} can leave over {}", over.join(", ")))
        });
    }
    findings
}
