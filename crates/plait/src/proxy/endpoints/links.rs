//! Which addresses the links have now, and how a packet leaves from each. Decided from what the
//! kernel tells of interfaces and of the table `main`.

use std::net::IpAddr;

use plait_net::netlink::policy::Family;
use plait_net::netlink::{Interface, Netlink, NetlinkError, RouteInfo};

use super::EndpointLink;
use super::found::Found;
use super::plan::Owned;
use crate::advice::Advised;

/// Where packets from a link's address leave to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Out {
    /// To this router.
    Via(IpAddr),
    /// Into the interface, which has but one other end.
    Direct,
    /// The interface has no default route.
    Nowhere,
}

/// An address of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LinkWay {
    pub(super) dev: String,
    pub(super) address: IpAddr,
    pub(super) backup: bool,
    pub(super) out: Out,
}

/// The links as they are.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Links {
    /// In the order of the file, which is the order in which the kernel opens subflows.
    pub(super) ways: Vec<LinkWay>,
    /// What the operator should know of.
    pub(super) notes: Vec<String>,
    /// A link lacks a route, which may come soon: an address comes first, and no notice of routes.
    pub(super) incomplete: bool,
}

/// Asks the kernel.
pub(super) fn now(
    links: &[EndpointLink],
    netlink: &mut Netlink,
    found: &Found,
    owned: &Owned,
) -> Result<Links, Advised> {
    let mut read = || -> Result<_, NetlinkError> { Ok((netlink.interfaces()?, netlink.routes()?)) };
    let (interfaces, routes) = read().map_err(|error| {
        Advised::new("cannot read interfaces and routes", "look at the cause")
            .caused_by(anyhow::Error::new(error))
    })?;
    let listed = found.endpoints.iter().filter(|endpoint| !endpoint.implicit);
    let known: Vec<IpAddr> =
        owned.addresses().chain(listed.map(|endpoint| endpoint.address)).collect();
    Ok(choose(links, &interfaces, &routes, &known))
}

/// The addresses that each link has. Of several in one family it takes one that is `known`, so that
/// connections keep their subflows.
pub(super) fn choose(
    links: &[EndpointLink],
    interfaces: &[Interface],
    routes: &[RouteInfo],
    known: &[IpAddr],
) -> Links {
    let mut chosen = Links::default();
    for link in links {
        let serving: Vec<_> = interfaces.iter().filter(|one| serves(one, link)).collect();
        if serving.is_empty() {
            chosen.notes.push(format!("{}: {}", link.name, why_absent(link, interfaces)));
        }
        for interface in serving {
            for family in Family::ALL {
                let Some(address) = address(interface, link, family, known) else { continue };
                if chosen.ways.iter().any(|way| way.address == address) {
                    continue;
                }
                let out = out(interface.index, family, routes);
                if out == Out::Nowhere {
                    chosen.incomplete = true;
                    chosen.notes.push(format!(
                        "{}: {} has no default route for {address}: subflows from it reach only \
                         what the table main leads to there",
                        link.name, interface.name
                    ));
                }
                let (dev, backup) = (interface.name.clone(), link.backup);
                chosen.ways.push(LinkWay { dev, address, backup, out });
            }
        }
    }
    let begins = begins_elsewhere(&chosen.ways, interfaces, routes);
    chosen.notes.extend(begins);
    chosen
}

fn serves(interface: &Interface, link: &EndpointLink) -> bool {
    let may = Family::ALL.iter().any(|family| address(interface, link, *family, &[]).is_some());
    interface.running && is_named(interface, link) && may
}

fn is_named(interface: &Interface, link: &EndpointLink) -> bool {
    let Some(wanted) = &link.interface else { return true };
    match wanted.strip_suffix('*') {
        Some(begin) => interface.name != "lo" && interface.name.starts_with(begin),
        None => interface.name == *wanted,
    }
}

fn address(
    interface: &Interface,
    link: &EndpointLink,
    family: Family,
    known: &[IpAddr],
) -> Option<IpAddr> {
    let of_link = |address: &&IpAddr| match link.address {
        Some(wanted) => **address == wanted,
        None => is_for_others(**address),
    };
    let usable = interface.addresses.iter().filter(|address| Family::of(**address) == family);
    let usable = usable.filter(of_link);
    usable.min_by_key(|address| (!known.contains(address), is_of_one_site(**address))).copied()
}

/// Whether hosts beyond the link can answer to it.
fn is_for_others(address: IpAddr) -> bool {
    let local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !local && !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
}

/// RFC 4193: of an interface's IPv6 addresses the last choice.
fn is_of_one_site(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unique_local())
}

fn why_absent(link: &EndpointLink, interfaces: &[Interface]) -> String {
    let mut named = interfaces.iter().filter(|one| is_named(one, link));
    match (&link.interface, link.address, named.next()) {
        (Some(name), _, None) => format!("no interface called {name}"),
        (Some(_), _, Some(one)) if !one.up => format!("{} is switched off", one.name),
        (Some(_), _, Some(one)) if !one.running => format!("{} has no carrier", one.name),
        (Some(_), None, Some(one)) => format!("{} has no address", one.name),
        (_, Some(address), _) => format!("no running interface has {address}"),
        (None, None, _) => "names neither an interface nor an address".to_owned(),
    }
}

fn best_default(
    family: Family,
    routes: &[RouteInfo],
    fits: impl Fn(u32) -> bool,
) -> Option<&RouteInfo> {
    let defaults = routes.iter().filter(|route| {
        route.prefix == 0
            && Family::of(route.destination) == family
            && route.index.is_some_and(&fits)
    });
    defaults.min_by_key(|route| route.metric.unwrap_or(0))
}

fn out(index: u32, family: Family, routes: &[RouteInfo]) -> Out {
    match best_default(family, routes, |at| at == index) {
        None => Out::Nowhere,
        Some(RouteInfo { gateway: Some(gateway), .. }) => Out::Via(*gateway),
        Some(_) => Out::Direct,
    }
}

/// A connection begins where the default route leads, unless its program chooses an address.
fn begins_elsewhere(
    ways: &[LinkWay],
    interfaces: &[Interface],
    routes: &[RouteInfo],
) -> Option<String> {
    let primary = ways.first()?;
    let route = best_default(Family::of(primary.address), routes, |_| true)?;
    let begins = interfaces.iter().find(|one| Some(one.index) == route.index)?;
    (begins.name != primary.dev).then(|| {
        format!(
            "connections begin over {}, where the default route leads, not over {}: give that \
             one's route the lower metric",
            begins.name, primary.dev
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str) -> EndpointLink {
        let interface = Some(name.to_owned());
        EndpointLink { name: name.into(), interface, address: None, backup: false }
    }

    fn interface(index: u32, name: &str, running: bool, addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Interface { index, name: name.into(), mac: None, up: true, running, addresses }
    }

    fn default_by(index: u32, gateway: Option<&str>, metric: u32) -> RouteInfo {
        RouteInfo {
            destination: [0, 0, 0, 0].into(),
            prefix: 0,
            gateway: gateway.map(|text| text.parse().unwrap()),
            index: Some(index),
            metric: Some(metric),
        }
    }

    #[test]
    fn each_link_gives_an_address_of_each_family_and_its_router() {
        let wifi =
            ["169.254.3.4", "192.168.1.2", "192.168.1.3", "fe80::1", "fd00::2", "2001:db8::2"];
        let interfaces = [
            interface(2, "wlan0", true, &wifi),
            interface(3, "wwan1", true, &["10.0.0.2"]),
            interface(4, "wwan2", false, &["10.0.0.3"]),
        ];
        let routes = [
            default_by(3, None, 100),
            default_by(2, Some("192.168.1.9"), 700),
            default_by(2, Some("192.168.1.1"), 600),
        ];
        let links = [link("wlan0"), link("wwan*"), link("eth0")];
        let chosen = choose(&links, &interfaces, &routes, &["192.168.1.3".parse().unwrap()]);
        let ways: Vec<_> =
            chosen.ways.iter().map(|way| (way.address.to_string(), way.out)).collect();
        assert_eq!(
            ways,
            [
                ("192.168.1.3".to_owned(), Out::Via("192.168.1.1".parse().unwrap())),
                ("2001:db8::2".to_owned(), Out::Nowhere),
                ("10.0.0.2".to_owned(), Out::Direct),
            ]
        );
        assert!(chosen.incomplete);
        let notes = chosen.notes.join("\n");
        for part in [
            "wlan0 has no default route for 2001:db8::2",
            "eth0: no interface called eth0",
            "connections begin over wwan1, where the default route leads, not over wlan0",
        ] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
    }

    #[test]
    fn a_link_that_cannot_be_used_says_why() {
        let mut off = interface(2, "off", false, &[]);
        off.up = false;
        let interfaces =
            [off, interface(3, "idle", false, &[]), interface(4, "bare", true, &["fe80::1"])];
        let mut by_address = link("none");
        (by_address.interface, by_address.address) = (None, Some([10, 9, 9, 9].into()));
        let links = [link("off"), link("idle"), link("bare"), by_address];
        let chosen = choose(&links, &interfaces, &[], &[]);
        assert_eq!(chosen.ways, []);
        assert_eq!(
            chosen.notes,
            [
                "off: off is switched off",
                "idle: idle has no carrier",
                "bare: bare has no address",
                "none: no running interface has 10.9.9.9",
            ]
        );
    }
}
