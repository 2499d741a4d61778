//! The links: whether each path has one now, and whether the peers are reached over it.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use plait_net::netlink::Packet;

use super::network::{Network, sysctl};
use super::{Finding, Peers, option_at};
use crate::config::identity::SYSFS;
use crate::config::{Cidr, Config, PathConfig};
use crate::daemon::LinkState;
use crate::daemon::host::halved;
use crate::daemon::links::open;
use crate::daemon::links::plan::{Families, Wanted, WantedLinks, plan};

/// Inner bytes that every path should carry: what IPv6 requires of a link (RFC 8200 section 5).
const INNER_BYTES_WANTED: u16 = 1280;

pub(super) fn links(config: &Config, peers: &Peers, network: &mut Network) -> Vec<Finding> {
    let families = Families::of(peers.addresses());
    let (interfaces, sysfs) = (&network.interfaces, Path::new(SYSFS));
    let plan = plan(&config.paths, interfaces, families, &config.gateway.tun, sysfs);
    let mut findings = states(config, &plan, network);
    for wanted in &plan.wanted {
        let path = &config.paths[wanted.path];
        let subject = subject(config, path);
        if let Err(error) = open(wanted, None) {
            let help = "run plait as root, or give it the right CAP_NET_RAW";
            findings.push(Finding::error(subject, error.to_string(), help));
            continue;
        }
        let reached = reached_over(wanted, peers, network);
        for peer in &reached {
            if peer.reached.is_empty() {
                findings.push(unreachable(&subject, wanted, &peer.wanted));
            }
        }
        let reached: Vec<_> = reached.into_iter().flat_map(|peer| peer.reached).collect();
        findings.extend(small_mtu(config, &subject, wanted, &reached, network));
        findings.extend(strict_filter(config, &subject, wanted, &reached, network));
    }
    if config.paths.is_empty() {
        findings.extend(without_paths(config, peers, network));
    }
    findings.extend(swallowed_answers(config));
    findings
}

fn subject(config: &Config, path: &PathConfig) -> String {
    let (line, option) = match (&path.interface, &path.link, &path.address) {
        (Some(interface), ..) => (interface.line, "interface"),
        (None, Some(link), _) => (link.line, "link"),
        (None, None, Some(address)) => (address.line, "address"),
        (None, None, None) => (path.line, "name"),
    };
    option_at(config, line, &format!("[[path]] {option}"))
}

/// A line for each link that exists or should exist.
fn states(config: &Config, plan: &WantedLinks, network: &Network) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (status, at) in plan.status.iter().zip(&plan.paths) {
        let path = &config.paths[*at];
        let subject = subject(config, path);
        if let Some((_, shared)) = plan.shared.iter().find(|(shared, _)| shared == at) {
            findings.push(Finding::error(subject, shared.to_string(), shared.help()));
            continue;
        }
        let name = &status.interface;
        let interface = network.interface(name);
        let (text, help) = match (status.state, interface, &path.address) {
            (LinkState::Up, ..) => {
                let is = path.link.as_ref().map(|link| format!("{} is ", link.value));
                let text = format!("{}{name} {}", is.unwrap_or_default(), status.reason);
                findings.push(Finding::ok(subject, text));
                continue;
            }
            (LinkState::Down, ..) => {
                findings.push(Finding::ok(subject, status.reason.clone()));
                continue;
            }
            (LinkState::Absent, Some(interface), _) if !interface.up => (
                format!("{name} is switched off; the path waits for it"),
                format!("switch it on: `ip link set {name} up`"),
            ),
            (LinkState::Absent, Some(_), _) => (
                format!("{name} has no carrier; the path waits for it"),
                "plug the cable in, or look at the modem; nothing else is to be done".to_owned(),
            ),
            (LinkState::Absent, None, _) => {
                let known: Vec<_> = network.interfaces.iter().map(|i| i.name.as_str()).collect();
                let whose = match &path.link {
                    Some(link) => format!("no interface has {}", link.value),
                    None => format!("no interface called {name}"),
                };
                (
                    format!("{whose} now; the path waits for it"),
                    format!("this machine has: {}", known.join(", ")),
                )
            }
            (LinkState::NoAddress, _, Some(address)) => {
                let of = if name.is_empty() { "this machine" } else { name };
                (
                    format!("{} is not an address of {of} now; the path waits", address.value),
                    "`ip address` shows this machine's addresses".to_owned(),
                )
            }
            (LinkState::NoAddress, _, None) => (
                format!("{name}: {}; the path waits for one", status.reason),
                "an endpoint's address family must be one that the link has: give the link an \
                 address, or add an endpoint of the other family to the peer"
                    .to_owned(),
            ),
        };
        findings.push(Finding::warning(subject, text, help));
    }
    findings
}

/// A peer's endpoints, and which of them a link reaches.
struct Reached {
    wanted: Vec<SocketAddr>,
    reached: Vec<SocketAddr>,
}

fn reached_over(wanted: &Wanted, peers: &Peers, network: &mut Network) -> Vec<Reached> {
    let mut all = Vec::new();
    for endpoints in &peers.endpoints {
        let has_family =
            |to: &&SocketAddr| wanted.addresses.iter().any(|own| own.is_ipv4() == to.is_ipv4());
        let way = |to: &&SocketAddr| {
            let (source, interface) = (wanted.bind, Some(wanted.index));
            network.way(&Packet { destination: to.ip(), source, interface }).is_some()
        };
        let reached = endpoints.iter().filter(has_family).filter(way).copied().collect();
        all.push(Reached { wanted: endpoints.clone(), reached });
    }
    all
}

fn unreachable(subject: &str, wanted: &Wanted, endpoints: &[SocketAddr]) -> Finding {
    let name = &wanted.interface;
    let list: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
    let list = list.join(", ");
    let has = |ipv4| wanted.addresses.iter().any(|own| own.is_ipv4() == ipv4);
    if !endpoints.iter().any(|endpoint| has(endpoint.is_ipv4())) {
        let family = if has(true) { "IPv6" } else { "IPv4" };
        let text = format!("{name} has no {family} address, so {list} is not reached over it");
        let help = "give the link an address of that family, or add an endpoint of the other one \
                    to the peer";
        return Finding::warning(subject, text, help);
    }
    let text = format!("no route to {list} over {name}: nothing is bonded over this path");
    let ip = if endpoints.iter().all(SocketAddr::is_ipv6) { "ip -6" } else { "ip" };
    let help = format!(
        "add one: `{ip} route add default via GATEWAY dev {name} metric {}`, with the address of \
         the link's router",
        100 + wanted.index
    );
    Finding::warning(subject, text, help)
}

/// A link whose MTU is so small that the inner packets cannot carry IPv6, or next to nothing.
fn small_mtu(
    config: &Config,
    subject: &str,
    wanted: &Wanted,
    reached: &[SocketAddr],
    network: &Network,
) -> Option<Finding> {
    let any_ipv6 = reached.iter().any(SocketAddr::is_ipv6);
    let inner = INNER_BYTES_WANTED.min(config.inner_mtu(any_ipv6));
    let least = u32::from(inner) + u32::from(Config::overhead_bytes(any_ipv6));
    let mtu = network.mtu(wanted.index).filter(|mtu| *mtu < least)?;
    let name = &wanted.interface;
    let text = format!(
        "{name} carries packets of {mtu} bytes: inner packets of {inner} bytes do not fit, so the \
         path carries small ones only"
    );
    Some(Finding::warning(subject, text, format!("`ip link set {name} mtu {least}` or more")))
}

/// A strict reverse-path filter (RFC 3704) drops packets that come in over another link than the
/// one the kernel would answer over.
fn strict_filter(
    config: &Config,
    subject: &str,
    wanted: &Wanted,
    reached: &[SocketAddr],
    network: &mut Network,
) -> Option<Finding> {
    const STRICT: u32 = 1;
    let name = &wanted.interface;
    let mode = |of: &str| sysctl(&format!("ipv4/conf/{of}/rp_filter")).unwrap_or(0);
    if mode("all").max(mode(name)) != STRICT {
        return None;
    }
    let own = wanted.addresses.iter().copied().find(IpAddr::is_ipv4)?;
    let dropped = reached.iter().filter(|endpoint| endpoint.is_ipv4()).find(|endpoint| {
        let packet = Packet { destination: endpoint.ip(), source: Some(own), interface: None };
        let way = network.way(&packet);
        way.is_some_and(|way| {
            let elsewhere = way.index.is_some_and(|index| index != wanted.index);
            elsewhere || way.in_main && is_led_in(config, endpoint.ip(), way.prefix)
        })
    })?;
    let text = format!(
        "the reverse-path filter of {name} is strict and drops what {} sends: the way back to it \
         is another",
        dropped.ip()
    );
    Some(Finding::warning(subject, text, format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2")))
}

/// Whether plait's own routes lead an address into the bond, over a route of prefix length
/// `against`.
fn is_led_in(config: &Config, address: IpAddr, against: u8) -> bool {
    let routes = halved(&config.allowed_prefixes());
    let holds = |route: &plait_proto::config::Prefix| {
        Cidr { address: route.address, length: route.length }.holds(address)
    };
    config.gateway.routes && routes.iter().any(|route| route.length > against && holds(route))
}

/// Without paths the listening socket calls the peers, over the machine's routes.
fn without_paths(config: &Config, peers: &Peers, network: &mut Network) -> Vec<Finding> {
    let subject = option_at(config, config.gateway.line, "[gateway]");
    let mut findings = Vec::new();
    for endpoint in peers.addresses() {
        let packet = Packet { destination: endpoint.ip(), source: None, interface: None };
        match network.way(&packet) {
            None => {
                let text = format!("no route to {endpoint}");
                let help = "`ip route` shows the routes; add a default route";
                findings.push(Finding::warning(subject.as_str(), text, help));
            }
            Some(way) if way.in_main && is_led_in(config, endpoint.ip(), way.prefix) => {
                let text = format!(
                    "the bond's own datagrams to {endpoint} would go into the bond: `allowed_ips` \
                     holds the address, and without a [[path]] they take the machine's routes"
                );
                let help = "add a [[path]] for each link: its socket is bound to the link";
                findings.push(Finding::warning(subject.as_str(), text, help));
            }
            Some(_) => {}
        }
    }
    findings
}

/// The listening socket is bound to no link: its answers take the machine's routes.
fn swallowed_answers(config: &Config) -> Option<Finding> {
    let port = config.gateway.listen_port.as_ref()?;
    let callers = config.peers.iter().any(|peer| peer.endpoints.is_empty());
    let prefixes = config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    let default = prefixes.map(|prefix| prefix.value).find(|cidr| cidr.length <= 1)?;
    let text = format!(
        "peers that call get no answer: {default} in `allowed_ips` leads the answers into the bond"
    );
    let help = "remove `routes = true` and add the routes that are wanted, or let this gateway \
                call the peer, with `endpoint` and a [[path]] for each link";
    let wrong = callers && config.gateway.routes;
    wrong.then(|| {
        Finding::warning(option_at(config, port.line, "[gateway] listen_port"), text, help)
    })
}
