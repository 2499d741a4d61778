//! `[[forward]]`: services behind the bond that others reach at this host.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use plait_toml::forward::{self as file, FORWARD, Protocols, To};
use plait_toml::value::Cidr;
use plait_toml::{Problems, Section, option};

use super::Config;
use super::error::Conflict;
use super::located::line_of;

/// The port of SSH, by which most hosts are looked after.
const SSH: u16 = 22;
/// Forwards that one gateway may have.
const FORWARDS_MAX: usize = 1024;

/// One `[[forward]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Forward {
    /// The section's line.
    pub(crate) line: usize,
    /// Whose ports they are.
    pub(crate) protocols: Protocols,
    /// The ports of this host; `None`: everything for its address.
    pub(crate) ports: Option<RangeInclusive<u16>>,
    /// The host behind the bond.
    pub(crate) to: To,
    /// The address of this host; `None`: all of the family of `to`.
    pub(crate) address: Option<IpAddr>,
}

/// Reads one `[[forward]]`.
pub(super) fn read(mut section: Section<'_>) -> Forward {
    let mut said = file::Forward::default();
    let wrong = option::read(FORWARD, &mut section, &mut said);
    if wrong.is_empty() {
        file::check_forward(&section, &said);
    }
    let line = line_of(section.place());
    section.finish();
    Forward {
        line,
        protocols: said.protocol.unwrap_or_default(),
        ports: said.ports.map(|ports| ports.0),
        to: said.to,
        address: said.address,
    }
}

impl Forward {
    /// Whether some packet is for both.
    fn meets(&self, other: &Self) -> bool {
        let family = self.to.address.is_ipv4() == other.to.address.is_ipv4();
        let ports = match (&self.ports, &other.ports) {
            (Some(own), Some(others)) => {
                own.start() <= others.end()
                    && others.start() <= own.end()
                    && self.protocols.meets(other.protocols)
            }
            (None, None) => true,
            // Ports come before the rest of an address.
            _ => false,
        };
        family && self.address == other.address && ports
    }

    fn has(&self, protocols: Protocols, port: u16) -> bool {
        let holds = self.ports.as_ref().is_some_and(|ports| ports.contains(&port));
        holds && self.protocols.meets(protocols)
    }
}

/// Notes forwards to nobody, and those that are in each other's or plait's way.
pub(super) fn check(problems: &Problems, config: &Config) {
    let add = |line, conflict| config.add(problems, line, "[[forward]]", conflict);
    if let Some(forward) = config.forwards.get(FORWARDS_MAX) {
        add(forward.line, Conflict::TooMany { limit: FORWARDS_MAX });
    }
    let allowed: Vec<Cidr> =
        config.peers.iter().flat_map(|peer| &peer.allowed_ips).map(|prefix| prefix.value).collect();
    for (at, forward) in config.forwards.iter().enumerate() {
        let address = forward.to.address;
        if !allowed.iter().any(|prefix| prefix.holds(address)) {
            add(forward.line, Conflict::ForwardToNobody { address });
        }
        let mut own = config.gateway.listen_ports();
        if let Some(port) = own.find(|port| forward.has(Protocols::Udp, *port)) {
            add(forward.line, Conflict::ForwardsOwnPort { port });
        }
        if let Some(other) = config.forwards[..at].iter().find(|other| other.meets(forward)) {
            add(forward.line, Conflict::ForwardedTwice { other_line: other.line });
        }
    }
}

/// Warns of forwards that take more than expected, or nothing.
pub(super) fn warnings(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    for forward in &config.forwards {
        let is_range = forward.ports.as_ref().is_some_and(|ports| ports.len() > 1);
        if is_range && forward.has(Protocols::Tcp, SSH) {
            let text = format!("the range holds TCP port {SSH}: SSH to this host ends there");
            let help = format!("leave {SSH} out, or write it as a [[forward]] of its own");
            warn(forward.line, "[[forward]] ports", text, help);
        }
    }
    if let Some(first) = config.forwards.first().filter(|_| !config.gateway.forward) {
        let text = "nothing is forwarded unless the host does it already".to_owned();
        let help = "add `forward = true` to [gateway], unless net.ipv4.ip_forward is set elsewhere";
        warn(first.line, "[[forward]]", text, help.into());
    }
}
