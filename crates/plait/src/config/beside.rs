//! `[[beside]]`: traffic that goes beside the bond, over a bare link.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use plait_toml::beside::{self as file, BESIDE, Otherwise};
use plait_toml::forward::Protocols;
use plait_toml::value::{Cidr, LinkName};
use plait_toml::{Problems, Section, option};

use super::error::Conflict;
use super::located::{Located, line_of};
use super::{Config, Endpoint, Peer};

/// Rules that one gateway may have.
pub(crate) const RULES_MAX: usize = 64;
/// Names in all rules together.
const DOMAINS_MAX: usize = 64;

/// One `[[beside]]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Beside {
    /// The section's line.
    pub(crate) line: usize,
    /// From whom; empty: from everybody.
    pub(crate) sources: Vec<Cidr>,
    /// To whom; empty, and `domains` too: to everybody.
    pub(crate) destinations: Vec<Cidr>,
    /// The same by name.
    pub(crate) domains: Vec<String>,
    /// By which protocol.
    pub(crate) protocol: Option<Protocols>,
    /// To which ports; empty: to all.
    pub(crate) ports: Vec<RangeInclusive<u16>>,
    /// With which DSCP codepoints; empty: with any.
    pub(crate) dscp: Vec<u8>,
    /// Over which link; `None`: over the best one.
    pub(crate) over: Option<Located<LinkName>>,
    /// What becomes of it while the link is down.
    pub(crate) otherwise: Otherwise,
}

/// Reads one `[[beside]]`.
pub(super) fn read(mut section: Section<'_>) -> Beside {
    let mut said = file::Beside::default();
    let wrong = option::read(BESIDE, &mut section, &mut said);
    if wrong.is_empty() {
        file::check_beside(&section, &said);
    }
    let line = line_of(section.place());
    let over = Located::maybe(&section, "over", said.over);
    section.finish();
    let networks = |list: Vec<Cidr>| list.into_iter().map(Cidr::network).collect();
    Beside {
        line,
        sources: networks(said.sources),
        destinations: networks(said.destinations),
        domains: said.domains,
        protocol: said.protocol,
        ports: said.ports.into_iter().map(|ports| ports.0).collect(),
        dscp: said.dscp,
        over,
        otherwise: said.otherwise.unwrap_or_default(),
    }
}

impl Beside {
    /// Whether it says to whom.
    pub(crate) fn names_destinations(&self) -> bool {
        !self.destinations.is_empty() || !self.domains.is_empty()
    }

    /// Whether UDP to this port is among it, as far as protocol and ports go.
    fn has_udp_to(&self, port: u16) -> bool {
        self.protocol != Some(Protocols::Tcp)
            && (self.ports.is_empty() || self.ports.iter().any(|range| range.contains(&port)))
    }

    /// Whether it names this host of the bond as a destination of its UDP.
    fn takes_bond(&self, endpoint: &SocketAddr) -> bool {
        let is_to = |network: &Cidr| network.holds(endpoint.ip().to_canonical());
        self.sources.is_empty()
            && self.destinations.iter().any(is_to)
            && self.has_udp_to(endpoint.port())
    }

    /// What it is for, in the words of the file.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        let mut tell = |what: &str, values: Vec<String>| {
            if !values.is_empty() {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{comma}{what} {}", values.join(" "));
            }
        };
        let texts = |list: &[Cidr]| list.iter().map(ToString::to_string).collect();
        let range = |range: &RangeInclusive<u16>| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{}-{}", range.start(), range.end()),
        };
        tell("from", texts(&self.sources));
        tell("to", texts(&self.destinations));
        tell("to", self.domains.clone());
        let protocol = match self.protocol {
            Some(Protocols::Tcp) => "tcp",
            Some(Protocols::Udp) => "udp",
            _ => "",
        };
        let word = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
        tell("by", word(protocol).into_iter().collect());
        tell("to ports", self.ports.iter().map(range).collect());
        tell("with dscp", self.dscp.iter().map(ToString::to_string).collect());
        text
    }
}

/// Notes rules that are too many, and those that would take the bond's own datagrams.
pub(super) fn check(problems: &Problems, config: &Config) {
    let add = |line, conflict| config.add(problems, line, "[[beside]]", conflict);
    if let Some(beside) = config.beside.get(RULES_MAX) {
        add(beside.line, Conflict::TooMany { limit: RULES_MAX });
    }
    let names = config.beside.iter().flat_map(|beside| beside.domains.iter().map(|_| beside.line));
    if let Some(line) = names.into_iter().nth(DOMAINS_MAX) {
        config.add(problems, line, "[[beside]] domains", Conflict::TooMany { limit: DOMAINS_MAX });
    }
    let written: Vec<SocketAddr> = config.peers.iter().flat_map(written_endpoints).collect();
    for beside in &config.beside {
        if let Some(endpoint) = written.iter().find(|endpoint| beside.takes_bond(endpoint)) {
            add(beside.line, Conflict::BondBeside { endpoint: *endpoint });
        }
    }
}

/// The endpoints of a peer that are addresses, with each of its ports.
fn written_endpoints(peer: &Peer) -> Vec<SocketAddr> {
    let addresses = peer.endpoints.iter().filter_map(|endpoint| match endpoint.value {
        Endpoint::Address(address) => Some(address),
        Endpoint::Name(..) => None,
    });
    let ports = |first: SocketAddr| {
        let more = peer.more_ports.iter().map(move |port| SocketAddr::new(first.ip(), *port));
        std::iter::once(first).chain(more)
    };
    addresses.flat_map(ports).collect()
}

/// Warns of rules that take more than expected, or nothing.
pub(super) fn warnings(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    for (at, beside) in config.beside.iter().enumerate() {
        let same = config.beside[..at].iter().find(|other| {
            let said = Beside { line: other.line, over: other.over.clone(), ..beside.clone() };
            said == Beside { otherwise: said.otherwise, ..(*other).clone() }
        });
        if let Some(other) = same {
            let text = format!("the rule of line {} takes all of it already", other.line);
            warn(beside.line, "[[beside]]", text, "keep one of them".into());
        }
        let port = config.peers.iter().flat_map(|peer| &peer.endpoints).map(|e| e.value.port());
        let is_wide = beside.sources.is_empty() && !beside.names_destinations();
        if is_wide
            && beside.dscp.is_empty()
            && let Some(port) = port.into_iter().find(|port| beside.has_udp_to(*port))
        {
            let text = format!(
                "it would take the bond's own datagrams to UDP port {port}, too: these are left out"
            );
            let help = "write `sources` or `destinations`, or ports other than the bond's";
            warn(beside.line, "[[beside]]", text, help.into());
        }
    }
    if let Some(first) = config.beside.first().filter(|_| config.paths.is_empty()) {
        let text = "without a [[path]] the bond's own datagrams take the machine's routes".into();
        let help = "add a [[path]] for each link: its socket is bound to the link".into();
        warn(first.line, "[[beside]]", text, help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_told_in_the_words_of_the_file() {
        let beside = Beside {
            line: 1,
            sources: vec![Cidr::parse("192.168.7.20").unwrap()],
            destinations: Vec::new(),
            domains: vec!["bank.example".into()],
            protocol: Some(Protocols::Tcp),
            ports: vec![443..=443, 5060..=5080],
            dscp: vec![46],
            over: None,
            otherwise: Otherwise::Bond,
        };
        assert_eq!(
            beside.told(),
            "from 192.168.7.20/32, to bank.example, by tcp, to ports 443 5060-5080, with dscp 46"
        );
    }
}
