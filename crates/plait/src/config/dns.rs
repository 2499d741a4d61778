//! `[dns]`: name servers that the host asks through the bond.

use std::net::IpAddr;

use plait_toml::dns::{self as file, DNS, Domain, check_dns};
use plait_toml::{Section, option};

use super::located::line_of;
use super::{Config, Endpoint, WhenDown};

/// `[dns]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dns {
    /// The section's line.
    pub(crate) line: usize,
    /// The servers, the first preferred.
    pub(crate) servers: Vec<IpAddr>,
    /// Whose names they are asked for.
    pub(crate) domains: Vec<Domain>,
}

/// Reads `[dns]`, if it is there.
pub(super) fn read(mut section: Section<'_>) -> Option<Dns> {
    if !section.is_present() {
        return None;
    }
    let mut said = file::Dns::default();
    option::read(DNS, &mut section, &mut said);
    check_dns(&section, &said);
    let line = line_of(section.place());
    section.finish();
    let mut domains = said.domains;
    if domains.is_empty() {
        domains.push(Domain::root());
    }
    Some(Dns { line, servers: said.servers, domains })
}

impl Dns {
    /// Whether the servers are asked for all names.
    pub(crate) fn is_for_all(&self) -> bool {
        self.domains.iter().any(Domain::is_root)
    }
}

/// Warns of servers that are not behind the bond, and of names that cannot be asked for.
pub(super) fn warnings(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    let Some(dns) = &config.dns else { return };
    let allowed = || config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    for server in &dns.servers {
        if !allowed().any(|prefix| prefix.value.holds(*server)) {
            let text = format!("{server} is not behind the bond: no peer has it in `allowed_ips`");
            let help = format!("add it to a peer's: `allowed_ips = [\"{server}\"]`");
            warn(dns.line, "[dns] servers", text, help);
        }
    }
    let mut endpoints = config.peers.iter().flat_map(|peer| &peer.endpoints);
    let named = endpoints.find(|endpoint| matches!(endpoint.value, Endpoint::Name(..)));
    let goes_back = config.gateway.when_down == WhenDown::Bypass;
    if let Some(endpoint) = named.filter(|_| dns.is_for_all() && !goes_back) {
        let text = format!(
            "while the bond is down, a new address of {} is asked for in vain, through the bond",
            endpoint.value
        );
        let help = "write the endpoint's IP address, or add `when_down = \"bypass\"`";
        warn(endpoint.line, "[[peer]] endpoint", text, help.into());
    }
}
