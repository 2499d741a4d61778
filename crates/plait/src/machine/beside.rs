//! What `[[beside]]` needs of the machine: the packet filter, and the links that it names.

use std::path::Path;

use plait_net::netlink::Interface;

use super::network::Network;
use super::{Finding, option_at};
use crate::config::identity::{SYSFS, SharedIdentity, find};
use crate::config::{Beside, Config, LinkName, PathConfig};
use crate::daemon;

/// Whether the packet filter takes the rules.
pub(super) fn rules(config: &Config, has_rights: bool) -> Option<Finding> {
    const WHAT: &str = "[[beside]]";
    if config.beside.is_empty() {
        return None;
    }
    Some(match daemon::can_go_beside(config, has_rights) {
        Ok(()) => Finding::ok(WHAT, "nft is there, and the kernel takes its rules"),
        Err(error) => Finding::error(WHAT, error.of_table(WHAT), error.help_of(WHAT)),
    })
}

/// Whether each rule has a link now.
pub(super) fn links(config: &Config, network: &Network) -> Vec<Finding> {
    config.beside.iter().map(|beside| link(config, beside, network)).collect()
}

fn link(config: &Config, beside: &Beside, network: &Network) -> Finding {
    let Some(over) = &beside.over else {
        let subject = option_at(config, beside.line, "[[beside]]");
        let any = network.defaults(&config.gateway.tun).next().is_some();
        if any {
            return Finding::ok(subject, format!("{}: over the best link", beside.told()));
        }
        let help = "add one for each link, as in `ip route add default via ROUTER dev LINK`";
        return Finding::warning(subject, "no link has a default route now", help);
    };
    let subject = option_at(config, over.line, "[[beside]] over");
    let interface = match interface(config, &over.value, network) {
        Ok(Some(interface)) => interface,
        Ok(None) => {
            let text = match &over.value {
                LinkName::Named(name) => format!("no [[path]] and no interface is called {name}"),
                LinkName::Identity(identity) => format!("no interface has {identity}"),
            };
            let paths: Vec<_> = config.paths.iter().map(|path| path.name.as_str()).collect();
            let known: Vec<_> = network.interfaces.iter().map(|i| i.name.as_str()).collect();
            let help = format!("paths: {}; interfaces: {}", paths.join(", "), known.join(", "));
            return Finding::warning(subject, format!("{text} now; the rule waits"), help);
        }
        Err(shared) => return Finding::error(subject, shared.to_string(), shared.help()),
    };
    let interface = interface.as_str();
    if !network.defaults(&config.gateway.tun).any(|known| known == interface) {
        let text = format!("{interface} has no default route now; the rule waits");
        let help = format!("add one: `ip route add default via ROUTER dev {interface} metric 100`");
        return Finding::warning(subject, text, help);
    }
    Finding::ok(subject, format!("{}: over {interface}", beside.told()))
}

/// The interface of a link; a path's own name where the path is named by it.
fn interface(
    config: &Config,
    over: &LinkName,
    network: &Network,
) -> Result<Option<String>, SharedIdentity> {
    let by_identity = |identity| {
        let found = find(identity, &network.interfaces, Path::new(SYSFS))?;
        Ok(found.map(|interface| interface.name.clone()))
    };
    let name = match over {
        LinkName::Identity(identity) => return by_identity(identity),
        LinkName::Named(name) => name,
    };
    match config.paths.iter().find(|path| path.name == *name) {
        Some(PathConfig { link: Some(link), .. }) => by_identity(&link.value),
        Some(PathConfig { interface: Some(interface), .. }) => Ok(Some(interface.value.clone())),
        Some(PathConfig { address: Some(address), .. }) => {
            let has = |known: &&Interface| known.addresses.contains(&address.value);
            Ok(network.interfaces.iter().find(has).map(|interface| interface.name.clone()))
        }
        _ => Ok(network.interface(name).map(|interface| interface.name.clone())),
    }
}
