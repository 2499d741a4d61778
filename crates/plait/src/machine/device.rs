//! The TUN device: its name, its addresses and the routes that lead into it.

use std::net::IpAddr;

use plait_net::machine::is_interface_name;
use plait_net::netlink::RouteInfo;
use plait_proto::config::Prefix;

use super::network::{Network, sysctl};
use super::{Finding, Running, gateway_option, peer_option};
use crate::config::{Cidr, Config};
use crate::daemon::host::{IPV6_OFF_HELP, ROUTE_EXISTS_HELP, halved};
use crate::holder::Holder;

/// The default metric of an IPv6 route (IP6_RT_PRIO_USER); for IPv4 it is 0.
const IPV6_METRIC: u32 = 1024;

pub(super) fn tun_name(config: &Config, running: Running) -> Finding {
    let tun = &config.gateway.tun;
    if is_interface_name(tun) {
        let holder = Holder::of_device(tun);
        if let Some(own) = running.finding("tun", tun, holder.as_ref()) {
            return own;
        }
        let kept = holder.as_ref().map(|holder| format!(", kept by {holder}"));
        let text = format!("an interface called {tun} exists already{}", kept.unwrap_or_default());
        let help = match holder {
            Some(_) => "stop that, or choose another `tun`",
            None => "if `plait up` is running, `plait status` shows it; else choose another `tun`",
        };
        Finding::error("tun", text, help)
    } else {
        Finding::ok("tun", format!("the name {tun} is free"))
    }
}

/// Problems of the device's addresses and routes.
pub(super) fn addresses_and_routes(config: &Config, network: &Network) -> Vec<Finding> {
    let mut findings: Vec<_> = ipv6_is_off(config).into_iter().collect();
    findings
        .extend(config.gateway.addresses.iter().filter_map(|own| overlap(config, *own, network)));
    findings.extend(families_without_address(config));
    findings.extend(routes(config, network));
    findings.extend(native_ipv6(config, network));
    findings
}

/// `default` decides whether a new device has IPv6.
fn ipv6_is_off(config: &Config) -> Option<Finding> {
    let needs_it = |cidr: &Cidr| cidr.address.is_ipv6();
    let routes = config.peers.iter().flat_map(|peer| &peer.allowed_ips).map(|prefix| prefix.value);
    let any_address = config.gateway.addresses.iter().any(needs_it);
    let any_route = config.gateway.routes && routes.filter(needs_it).count() > 0;
    let is_off = sysctl("ipv6/conf/default/disable_ipv6").is_none_or(|off| off != 0);
    let (option, what) = match (any_address, any_route) {
        (true, _) => ("address", "addresses"),
        (_, true) => ("routes", "routes"),
        _ => return None,
    };
    let text = format!("IPv6 is switched off for new devices, which the IPv6 {what} need");
    is_off.then(|| Finding::error(gateway_option(config, option), text, IPV6_OFF_HELP))
}

/// An inner address whose network is also on an interface: packets to that network go there.
fn overlap(config: &Config, own: Cidr, network: &Network) -> Option<Finding> {
    let is_single = own.length == if own.address.is_ipv4() { 32 } else { 128 };
    let (interface, theirs) = network.addresses().find(|(interface, theirs)| {
        let is_other = interface.name != config.gateway.tun;
        let matters = !is_single || config.may_use(interface);
        is_other && matters && theirs.holds(own.address)
    })?;
    let name = &interface.name;
    let text = if theirs.address == own.address {
        format!("{} is the address of {name} too", own.address)
    } else {
        format!("{own} lies in the network of {name}, {}", theirs.network())
    };
    let help = "choose inner addresses from a network that no interface of the two gateways has";
    Some(Finding::warning(gateway_option(config, "address"), text, help))
}

/// All traffic is to go through the bond, but this machine has no inner address of that family.
fn families_without_address(config: &Config) -> Vec<Finding> {
    let own = &config.gateway.addresses;
    let has = |ipv4: bool| own.is_empty() || own.iter().any(|cidr| cidr.address.is_ipv4() == ipv4);
    let mut findings = Vec::new();
    for peer in &config.peers {
        let defaults = peer.allowed_ips.iter().filter(|prefix| prefix.value.length <= 1);
        for prefix in defaults.filter(|prefix| !has(prefix.value.address.is_ipv4())) {
            let (family, example) = match prefix.value.address {
                IpAddr::V4(_) => ("IPv4", "10.99.0.2/24"),
                IpAddr::V6(_) => ("IPv6", "fd99::2/64"),
            };
            let text = format!(
                "{} without an inner {family} address: this machine has none to send from that the \
                 peer would accept",
                prefix.value
            );
            let help = format!(
                "add one to `address` under [gateway], as in \"{example}\", and to the peer's \
                 `allowed_ips`"
            );
            findings.push(Finding::warning(peer_option(config, prefix.line), text, help));
        }
    }
    findings
}

/// Routes that cannot be added, and routes that would not be used.
fn routes(config: &Config, network: &Network) -> Vec<Finding> {
    let mut findings = Vec::new();
    // If the gateway runs already, the finding on its device is enough.
    let runs = network.interface(&config.gateway.tun).is_some();
    if !config.gateway.routes || runs {
        return findings;
    }
    for prefix in config.peers.iter().flat_map(|peer| &peer.allowed_ips) {
        let routes = halved(&[prefix.value.into()]);
        let found = |fate: Fate| -> Vec<String> {
            let known = routes.iter().flat_map(|route| {
                let same = network.routes.iter().filter(|known| is_same(known, route));
                same.filter(|known| fate_of(config, known) == fate)
            });
            known.map(|known| describe(known, network)).collect()
        };
        let subject = peer_option(config, prefix.line);
        let (taken, preferred) = (found(Fate::Taken), found(Fate::Loses));
        if !taken.is_empty() {
            let text = format!("there is a route to {} already", taken.join(" and to "));
            findings.push(Finding::error(subject, text, ROUTE_EXISTS_HELP));
        } else if !preferred.is_empty() {
            let text = format!(
                "{} does not go into the bond: there is a route to {}, which is preferred",
                prefix.value,
                preferred.join(" and to ")
            );
            findings.push(Finding::warning(subject, text, ROUTE_EXISTS_HELP));
        }
    }
    findings
}

/// What happens to a route into the device when another to the same network exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It cannot be added.
    Taken,
    /// It is added, but the other is preferred.
    Loses,
    /// It is added and preferred.
    Wins,
}

fn is_same(known: &RouteInfo, route: &Prefix) -> bool {
    (known.destination, known.prefix) == (route.address, route.length)
}

fn fate_of(config: &Config, known: &RouteInfo) -> Fate {
    let metric = known.metric.unwrap_or(0);
    if known.destination.is_ipv6() {
        return match metric.cmp(&IPV6_METRIC) {
            std::cmp::Ordering::Less => Fate::Loses,
            std::cmp::Ordering::Equal => Fate::Taken,
            std::cmp::Ordering::Greater => Fate::Wins,
        };
    }
    // For the network of the device's own address the kernel itself adds a route, after the others.
    let network = Cidr { address: known.destination, length: known.prefix };
    let is_own = config.gateway.addresses.iter().any(|own| own.network() == network);
    match (metric, is_own && known.prefix < 32) {
        (0, false) => Fate::Taken,
        (0, true) => Fate::Loses,
        _ => Fate::Wins,
    }
}

fn describe(route: &RouteInfo, network: &Network) -> String {
    let to = format!("{}/{}", route.destination, route.prefix);
    match route.index {
        Some(index) => format!("{to} over {}", network.name_of(index)),
        None => to,
    }
}

/// All IPv4 goes through the bond, but IPv6 bypasses it.
fn native_ipv6(config: &Config, network: &Network) -> Option<Finding> {
    let prefixes = || config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    let is_default = |cidr: Cidr| cidr.length == 0;
    let ipv4 = prefixes().find(|p| is_default(p.value) && p.value.address.is_ipv4())?;
    if prefixes().any(|prefix| prefix.value.length <= 1 && prefix.value.address.is_ipv6()) {
        return None;
    }
    let default = network
        .routes
        .iter()
        .find(|route| route.destination.is_ipv6() && route.prefix == 0 && route.index.is_some())?;
    let has_address = network.addresses().any(|(_, cidr)| cidr.address.is_ipv6());
    let name = network.name_of(default.index?);
    let text = format!(
        "0.0.0.0/0 leads all IPv4 into the bond, while IPv6 goes past it: {name} has an IPv6 \
         default route"
    );
    let help = "add \"::/0\" to `allowed_ips` and an inner IPv6 address to both gateways, or \
                switch IPv6 off: `sysctl -w net.ipv6.conf.all.disable_ipv6=1`";
    has_address.then(|| Finding::warning(peer_option(config, ipv4.line), text, help))
}
