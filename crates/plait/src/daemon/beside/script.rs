//! The table of the packet filter for what goes beside the bond, as a script for nft.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use plait_net::netlink::policy::Family;
use plait_toml::forward::Protocols;

use super::super::exits::Exit;
use super::super::nat::{plain_name, removal};
use super::names::Domains;
use super::ways::{mark, zone};
use crate::config::{Beside as Rule, Cidr, Config};

/// Begins the names of these tables.
const PREFIX: &str = "plait-beside_";
/// Begins the names of the rules' counters.
const COUNTER: &str = "rule";
/// What the host and its links say to each other, and what is for this host.
const OF_LINKS: &str = "    fib daddr type != unicast accept
    ip6 daddr fe80::/10 accept
    icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } \
     accept
    udp sport { 67, 68 } udp dport { 67, 68 } accept
    udp sport { 546, 547 } udp dport { 546, 547 } accept
";

/// Where a rule's traffic of a family goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Over this link.
    Over(Exit),
    /// Into the bond: its link is down.
    Bond,
    /// Nowhere: its link is down.
    Blocked,
}

impl Way {
    pub(super) fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Over(exit) => Some(exit),
            Self::Bond | Self::Blocked => None,
        }
    }

    /// For the status.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Over(exit) => &exit.interface,
            Self::Bond => "bond",
            Self::Blocked => "blocked",
        }
    }

    /// For the log.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Over(exit) => format!("over {}", exit.interface),
            Self::Bond => "into the bond: its link is down".to_owned(),
            Self::Blocked => "nowhere: its link is down".to_owned(),
        }
    }
}

/// Where a family stands among the ways of a rule.
pub(super) fn place(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

/// What the table is made from.
pub(super) struct Script<'a> {
    pub(super) tun: &'a str,
    pub(super) rules: &'a [Rule],
    pub(super) ways: &'a [[Way; 2]],
    pub(super) exits: &'a [Exit],
    pub(super) paths: &'a BTreeMap<String, String>,
    pub(super) endpoints: &'a [SocketAddr],
    pub(super) listen_ports: &'a [u16],
    pub(super) domains: &'a Domains,
    /// What the gateway's marks begin with.
    pub(super) base: u32,
}

impl Script<'_> {
    /// The table with its counters, which stay when the chains are made again.
    pub(super) fn counters(&self) -> String {
        let mut text = format!("table inet {} {{\n", table_name(self.tun));
        for at in 0..self.rules.len() {
            let _ = writeln!(text, "  counter {COUNTER}{at} {{ }}");
        }
        text.push_str("}\n");
        text
    }

    /// The chains, all of them.
    pub(super) fn chains(&self) -> String {
        let (base, tun) = (self.base, self.tun);
        let links = self.links();
        let ours = format!("meta mark and {:#x} == {base:#x}", !0xff_u32);
        let others = format!("meta mark and {:#x} != {base:#x}", !0xff_u32);
        let mut text = format!("table inet {} {{\n  chain which {{\n", table_name(tun));
        for at in 0..self.rules.len() {
            self.rule(&mut text, at);
        }
        text.push_str("  }\n  chain came {\n");
        text.push_str("    type filter hook prerouting priority -301; policy accept;\n");
        let _ =
            writeln!(text, "    meta mark != 0 accept\n    iifname {{ {links}, \"lo\" }} accept");
        text.push_str(OF_LINKS);
        let _ = writeln!(text, "    fib daddr oifname {{ {links} }} jump which\n  }}");
        text.push_str("  chain sent {\n");
        text.push_str("    type route hook output priority -301; policy accept;\n");
        let _ = writeln!(text, "    meta mark != 0 accept\n    oifname != {{ {links} }} accept");
        self.own_datagrams(&mut text);
        text.push_str(OF_LINKS);
        text.push_str("    jump which\n  }\n");
        // What answers a connection from elsewhere goes back there.
        let mut after =
            format!("    {others} accept\n    ct direction reply meta mark set 0 accept\n");
        let blocked = self.blocked();
        if !blocked.is_empty() {
            let _ = writeln!(after, "    {blocked} drop");
        }
        let _ = writeln!(
            text,
            "  chain tracked {{\n    type filter hook prerouting priority -151; policy accept;\n\
             {after}  }}\n  chain own {{\n    type route hook output priority -151; policy \
             accept;\n{after}  }}"
        );
        text.push_str("  chain left {\n");
        text.push_str("    type filter hook postrouting priority 99; policy accept;\n");
        self.leaving(&mut text);
        // In a moment in which routes and rules do not agree: a wrong source would stick.
        let _ = writeln!(text, "    {ours} iifname != \"{tun}\" drop\n  }}\n  chain hide {{");
        text.push_str("    type nat hook postrouting priority srcnat; policy accept;\n");
        let _ = writeln!(text, "    {ours} oifname != \"{tun}\" masquerade\n  }}\n}}");
        text
    }

    /// The device and all links, as elements of a set.
    fn links(&self) -> String {
        let exits = self.exits.iter().map(|exit| exit.interface.as_str());
        let paths = self.paths.values().map(String::as_str);
        let names: BTreeSet<&str> = exits.chain(paths).filter(|name| !name.is_empty()).collect();
        let names = names.into_iter().filter(|name| *name != self.tun && !name.ends_with('*'));
        let quoted = std::iter::once(self.tun).chain(names).map(|name| format!("\"{name}\""));
        quoted.collect::<Vec<_>>().join(", ")
    }

    /// The bond's own datagrams: they have their links already.
    fn own_datagrams(&self, text: &mut String) {
        for port in self.listen_ports {
            let _ = writeln!(text, "    udp sport {port} accept");
        }
        let endpoints: BTreeSet<&SocketAddr> = self.endpoints.iter().collect();
        for to in endpoints {
            let ip = if to.is_ipv4() { "ip" } else { "ip6" };
            let _ = writeln!(text, "    {ip} daddr {} udp dport {} accept", to.ip(), to.port());
        }
    }

    /// One rule, for both families.
    fn rule(&self, text: &mut String, at: usize) {
        let rule = &self.rules[at];
        for family in Family::ALL {
            let Some(matches) = self.matches(rule, family) else { continue };
            let mark = mark(self.base, at);
            let verdict = match &self.ways[at][place(family)] {
                Way::Over(exit) => {
                    format!("meta mark set {mark:#x} ct original zone set {} accept", zone(exit))
                }
                Way::Bond => "accept".to_owned(),
                Way::Blocked => format!("meta mark set {mark:#x} accept"),
            };
            let _ = writeln!(text, "    {matches}{verdict}");
        }
    }

    /// What a rule says of packets of a family; `None` when it takes none of these.
    fn matches(&self, rule: &Rule, family: Family) -> Option<String> {
        let (protocol, ip) = match family {
            Family::V4 => ("ipv4", "ip"),
            Family::V6 => ("ipv6", "ip6"),
        };
        let of_family = |list: &[Cidr]| {
            let its = list.iter().filter(|network| Family::of(network.address) == family);
            networks(its.copied().collect())
        };
        let mut text = format!("meta nfproto {protocol} ");
        if !rule.sources.is_empty() {
            let _ = write!(text, "{ip} saddr {{ {} }} ", of_family(&rule.sources)?);
        }
        if rule.names_destinations() {
            let mut all = rule.destinations.clone();
            let full = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
            let named = self.domains.addresses(rule).into_iter();
            all.extend(named.map(|address| Cidr { address, length: full(address) }));
            let _ = write!(text, "{ip} daddr {{ {} }} ", of_family(&all)?);
        }
        if !rule.dscp.is_empty() {
            let points: BTreeSet<u8> = rule.dscp.iter().copied().collect();
            let points: Vec<_> = points.iter().map(ToString::to_string).collect();
            let _ = write!(text, "{ip} dscp {{ {} }} ", points.join(", "));
        }
        let ports = ports(&rule.ports);
        let _ = match (rule.protocol, ports.is_empty()) {
            (Some(Protocols::Tcp), true) => write!(text, "meta l4proto tcp "),
            (Some(Protocols::Udp), true) => write!(text, "meta l4proto udp "),
            (Some(Protocols::Tcp), false) => write!(text, "tcp dport {{ {ports} }} "),
            (Some(Protocols::Udp), false) => write!(text, "udp dport {{ {ports} }} "),
            (None | Some(Protocols::Both), true) => Ok(()),
            (None | Some(Protocols::Both), false) => {
                write!(text, "meta l4proto {{ tcp, udp }} th dport {{ {ports} }} ")
            }
        };
        Some(text)
    }

    /// A match for what has nowhere to go; empty when there is none.
    fn blocked(&self) -> String {
        let is_blocked = |at: &usize| self.ways[*at].contains(&Way::Blocked);
        let marks = (0..self.rules.len()).filter(is_blocked);
        // The other family's link may be there.
        let of = |at: usize| {
            let families = Family::ALL.into_iter();
            let its = families.filter(move |family| self.ways[at][place(*family)] == Way::Blocked);
            its.map(move |family| {
                let protocol = if family == Family::V4 { "ipv4" } else { "ipv6" };
                format!("{protocol} . {:#x}", mark(self.base, at))
            })
        };
        let elements: Vec<String> = marks.flat_map(of).collect();
        match elements.is_empty() {
            true => String::new(),
            false => format!("meta nfproto . meta mark {{ {} }}", elements.join(", ")),
        }
    }

    /// What leaves over the link of its rule is counted.
    fn leaving(&self, text: &mut String) {
        for at in 0..self.rules.len() {
            for family in Family::ALL {
                let Some(exit) = self.ways[at][place(family)].exit() else { continue };
                let protocol = if family == Family::V4 { "ipv4" } else { "ipv6" };
                let (mark, name) = (mark(self.base, at), &exit.interface);
                let _ = writeln!(
                    text,
                    "    meta nfproto {protocol} meta mark {mark:#x} oifname \"{name}\" counter \
                     name \"{COUNTER}{at}\" accept"
                );
            }
        }
    }
}

/// Networks as elements of a set, none of them within another; `None` when there are none.
fn networks(mut list: Vec<Cidr>) -> Option<String> {
    list.sort_by_key(|network| (network.length, network.address));
    let mut kept: Vec<Cidr> = Vec::new();
    for network in list {
        if !kept.iter().any(|wider| wider.holds(network.address)) {
            kept.push(network);
        }
    }
    let texts: Vec<_> = kept.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Ports as elements of a set, those that touch as one range.
fn ports(list: &[RangeInclusive<u16>]) -> String {
    let mut sorted: Vec<(u16, u16)> =
        list.iter().map(|range| (*range.start(), *range.end())).collect();
    sorted.sort_unstable();
    let mut joined: Vec<(u16, u16)> = Vec::new();
    for (low, high) in sorted {
        match joined.last_mut().filter(|(_, last)| low <= last.saturating_add(1)) {
            Some((_, last)) => *last = high.max(*last),
            None => joined.push((low, high)),
        }
    }
    let text = |(low, high): &(u16, u16)| match low == high {
        true => low.to_string(),
        false => format!("{low}-{high}"),
    };
    joined.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The name of a device's table.
pub(super) fn table_name(tun: &str) -> String {
    format!("{PREFIX}{}", plain_name(tun))
}

/// Whether a table is one of plait's.
pub(super) fn is_ours(table: &str) -> bool {
    table.strip_prefix(PREFIX).is_some_and(|tun| plain_name(tun) == tun)
}

/// The rules' counters in what `nft list counters` prints: the rule's place, packets, bytes.
pub(super) fn counters(text: &str) -> Vec<(usize, u64, u64)> {
    let mut found = Vec::new();
    let mut at = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["counter", name, ..] => {
                at = name.strip_prefix(COUNTER).and_then(|number| number.parse().ok());
            }
            ["packets", packets, "bytes", bytes] => {
                if let (Some(at), Ok(packets), Ok(bytes)) =
                    (at.take(), packets.parse(), bytes.parse())
                {
                    found.push((at, packets, bytes));
                }
            }
            _ => {}
        }
    }
    found
}

/// The table of a configuration on links that do not exist, to try it.
pub(super) fn example(config: &Config) -> String {
    let exits = [Exit::example(Family::V4, ""), Exit::example(Family::V6, "")];
    let over = exits.clone().map(Way::Over);
    let ways = vec![over; config.beside.len()];
    let script = Script {
        tun: &config.gateway.tun,
        rules: &config.beside,
        ways: &ways,
        exits: &exits,
        paths: &BTreeMap::new(),
        endpoints: &[],
        listen_ports: &[],
        domains: &Domains::default(),
        base: Config::BESIDE_MARK,
    };
    let table = table_name(&config.gateway.tun);
    format!("{}{}{}", removal(&table), script.counters(), script.chains())
}

#[cfg(test)]
mod tests {
    use plait_toml::beside::Otherwise;

    use super::*;

    fn rule() -> Rule {
        Rule {
            line: 1,
            sources: Vec::new(),
            destinations: Vec::new(),
            domains: Vec::new(),
            protocol: None,
            ports: Vec::new(),
            dscp: Vec::new(),
            over: None,
            otherwise: Otherwise::Bond,
        }
    }

    fn script(rules: &[Rule], ways: &[[Way; 2]]) -> String {
        let endpoints = ["192.0.2.1:7788".parse().unwrap()];
        let script = Script {
            tun: "plait0",
            rules,
            ways,
            exits: &[],
            paths: &BTreeMap::from([("a".to_owned(), "dsl".to_owned())]),
            endpoints: &endpoints,
            listen_ports: &[],
            domains: &Domains::default(),
            base: 0x7063_0500,
        };
        script.chains()
    }

    fn which(text: &str) -> Vec<&str> {
        let chain = text.split("chain which {\n").nth(1).unwrap();
        chain.lines().map(str::trim).take_while(|line| *line != "}").collect()
    }

    fn cidrs(list: &[&str]) -> Vec<Cidr> {
        list.iter().map(|text| Cidr::parse(text).unwrap()).collect()
    }

    #[test]
    fn a_rule_says_all_that_the_file_does_for_each_family() {
        let (mut dsl, mut lte) = (Exit::example(Family::V4, ""), Exit::example(Family::V6, ""));
        (dsl.interface, dsl.index) = ("dsl".into(), 7);
        (lte.interface, lte.index) = ("lte".into(), 8);
        let rules = [
            Rule {
                sources: cidrs(&["192.168.7.0/24", "192.168.7.20", "fd99:7::20"]),
                destinations: cidrs(&["203.0.113.0/24"]),
                ports: vec![5060..=5080, 443..=443, 5070..=5090, 444..=444],
                dscp: vec![46, 34, 46],
                ..rule()
            },
            Rule { protocol: Some(Protocols::Udp), ..rule() },
            Rule { domains: vec!["bank.example".into()], ..rule() },
        ];
        let over = [Way::Over(dsl), Way::Over(lte)];
        let ways = [over.clone(), [Way::Bond, Way::Blocked], over];
        let text = script(&rules, &ways);
        assert_eq!(
            which(&text),
            [
                "meta nfproto ipv4 ip saddr { 192.168.7.0/24 } ip daddr { 203.0.113.0/24 } ip \
                 dscp { 34, 46 } meta l4proto { tcp, udp } th dport { 443-444, 5060-5090 } meta \
                 mark set 0x70630501 ct original zone set 24583 accept",
                "meta nfproto ipv4 meta l4proto udp accept",
                "meta nfproto ipv6 meta l4proto udp meta mark set 0x70630502 accept",
            ],
            "IPv6 has no such destination, and the name no address yet"
        );
        for line in [
            "meta nfproto . meta mark { ipv6 . 0x70630502 } drop",
            "iifname { \"plait0\", \"dsl\", \"lo\" } accept",
            "ip daddr 192.0.2.1 udp dport 7788 accept",
            "meta nfproto ipv4 meta mark 0x70630501 oifname \"dsl\" counter name \"rule0\" accept",
            "meta mark and 0xffffff00 == 0x70630500 oifname != \"plait0\" masquerade",
        ] {
            assert!(text.lines().any(|known| known.trim() == line), "{line}: {text}");
        }
    }

    #[test]
    fn counters_are_read() {
        let text = "table inet plait-beside_plait0 {\n\tcounter rule0 {\n\t\tpackets 3 bytes 252\n\
                    \t}\n\n\tcounter rule12 {\n\t\tpackets 0 bytes 0\n\t}\n\tcounter x {\n\t\t\
                    packets 1 bytes 1\n\t}\n}\n";
        assert_eq!(counters(text), [(0, 3, 252), (12, 0, 0)]);
        assert!(is_ours("plait-beside_plait0") && !is_ours("plait-beside_a b"));
    }
}
