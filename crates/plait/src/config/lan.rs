//! `[[lan]]`: networks whose hosts use this gateway as their router.

use std::net::Ipv6Addr;

use plait_net::icmp::advertisement::AUTONOMOUS_LENGTH;
use plait_proto::config::Prefix;
use plait_toml::lan::{self as file, LAN, check_lan};
use plait_toml::{Problems, Section, option};

use super::error::Conflict;
use super::located::line_of;
use super::{Cidr, Config};

/// Networks that one gateway may have.
const LANS_MAX: usize = 16;

/// One `[[lan]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lan {
    /// The section's line.
    pub(crate) line: usize,
    /// The interface into it.
    pub(crate) interface: String,
    /// This gateway's addresses there.
    pub(crate) addresses: Vec<Cidr>,
    /// Whether the IPv6 prefixes are told to its hosts.
    pub(crate) advertise: bool,
    /// Name servers that are told with them.
    pub(crate) dns: Vec<Ipv6Addr>,
}

/// Reads one `[[lan]]`.
pub(super) fn read(mut section: Section<'_>) -> Lan {
    let mut said = file::Lan::default();
    option::read(LAN, &mut section, &mut said);
    check_lan(&section, &said);
    let line = line_of(section.place());
    section.finish();
    let file::Lan { interface, prefixes, advertise, dns } = said;
    Lan { line, interface, addresses: prefixes, advertise, dns }
}

impl Lan {
    /// Whether hosts there are told of IPv6 prefixes.
    pub(crate) fn tells(&self) -> bool {
        self.advertise && self.ipv6().next().is_some()
    }

    /// The IPv6 addresses.
    pub(crate) fn ipv6(&self) -> impl Iterator<Item = Cidr> {
        self.addresses.iter().copied().filter(|own| own.address.is_ipv6())
    }
}

impl Config {
    /// The networks of all `[[lan]]`.
    pub(crate) fn lan_prefixes(&self) -> Vec<Prefix> {
        let addresses = self.lans.iter().flat_map(|lan| &lan.addresses);
        addresses.map(|address| (*address).into()).collect()
    }

    /// Whether the host is made to forward packets while the gateway runs.
    pub(crate) fn makes_host_forward(&self) -> bool {
        self.gateway.forward || !self.lans.is_empty()
    }
}

/// Notes networks that are in each other's way, or in that of a link.
pub(super) fn check(problems: &Problems, config: &Config) {
    let add = |line, option, conflict| config.add(problems, line, option, conflict);
    if let Some(lan) = config.lans.get(LANS_MAX) {
        add(lan.line, "[[lan]]", Conflict::TooMany { limit: LANS_MAX });
    }
    for (at, lan) in config.lans.iter().enumerate() {
        let name = &lan.interface;
        let is_its = |path: &&super::PathConfig| {
            path.interface.is_some() && path.takes_interface(&lan.interface)
        };
        if let Some(path) = config.paths.iter().find(is_its) {
            let conflict = Conflict::LanIsLink { other_line: path.line };
            add(lan.line, "[[lan]] interface", conflict);
        }
        if *name == config.gateway.tun || name == "lo" {
            add(lan.line, "[[lan]] interface", Conflict::LanIsNone { name: name.clone() });
        }
        let others = &config.lans[..at];
        if let Some(other) = others.iter().find(|other| other.interface == *name) {
            add(lan.line, "[[lan]] interface", Conflict::SameLan { other_line: other.line });
        }
        let known = others.iter().flat_map(|other| &other.addresses);
        let known: Vec<Cidr> = known.chain(&config.gateway.addresses).copied().collect();
        for own in &lan.addresses {
            if let Some(other) = known.iter().find(|other| other.overlaps(*own)) {
                let conflict = Conflict::LanOverlaps { own: *own, other: *other };
                add(lan.line, "[[lan]] prefixes", conflict);
            }
        }
    }
}

/// Warns of advertisements of which hosts make less than expected.
pub(super) fn warnings(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    let prefixes = config.allowed_prefixes();
    let led = prefixes.iter().any(|prefix| prefix.address.is_ipv6() && prefix.length <= 1);
    for lan in config.lans.iter().filter(|lan| lan.tells()) {
        for own in lan.ipv6().filter(|own| own.length != AUTONOMOUS_LENGTH) {
            let text = format!("hosts give themselves no addresses in {own}");
            let help = "write a /64; other lengths need DHCPv6".into();
            warn(lan.line, "[[lan]] prefixes", text, help);
        }
        if !led {
            let text = "no peer has ::/0: the bond carries no IPv6 of these hosts to the internet";
            let help = "add `::/0` to the peer's `allowed_ips`, or set `advertise = false`".into();
            warn(lan.line, "[[lan]] prefixes", text.into(), help);
        }
    }
}
