//! Decides which links there should be, from the configuration and the machine's interfaces.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use plait_net::netlink::Interface;
use serde::{Deserialize, Serialize};

use crate::config::PathConfig;
use crate::config::identity::{SharedIdentity, find};
use crate::daemon::ports::SocketStatus;

/// Most links of a gateway: as many as a bond has paths.
const LINKS_MAX: usize = plait_proto::bond::PATHS_MAX;

/// Whether a configured path has a link now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum LinkState {
    /// It has a socket.
    #[serde(rename = "up")]
    Up,
    /// The interface does not exist or does not work.
    #[serde(rename = "absent")]
    Absent,
    /// The interface works but has no suitable address.
    #[serde(rename = "no address")]
    NoAddress,
    /// It is taken out.
    #[serde(rename = "down")]
    Down,
}

impl LinkState {
    /// The state's name in the status.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Absent => "absent",
            Self::NoAddress => "no address",
            Self::Down => "down",
        }
    }
}

/// The status of a configured path's link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LinkStatus {
    /// Name of the link.
    pub(crate) name: String,
    /// The interface, or the wildcard while nothing matches it; empty when an address alone is
    /// configured and no interface has it.
    pub(crate) interface: String,
    /// What stays of the interface, where the path is named by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<String>,
    /// State.
    pub(crate) state: LinkState,
    /// Why, in words.
    pub(crate) reason: String,
    /// Counters of its socket since it was opened.
    #[serde(default)]
    pub(crate) socket: Option<SocketStatus>,
}

/// Address families of the peers' endpoints. Without endpoints any family will do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Families {
    ipv4: bool,
    ipv6: bool,
}

impl Families {
    pub(crate) fn of<'a>(endpoints: impl Iterator<Item = &'a SocketAddr>) -> Self {
        let add = |families: Self, endpoint: &SocketAddr| Self {
            ipv4: families.ipv4 || endpoint.is_ipv4(),
            ipv6: families.ipv6 || endpoint.is_ipv6(),
        };
        endpoints.fold(Self::default(), add)
    }

    /// Those of either.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { ipv4: self.ipv4 || other.ipv4, ipv6: self.ipv6 || other.ipv6 }
    }

    fn takes(self, address: IpAddr) -> bool {
        match (self.ipv4, self.ipv6) {
            (false, false) => true,
            (ipv4, ipv6) => {
                if address.is_ipv4() {
                    ipv4
                } else {
                    ipv6
                }
            }
        }
    }

    fn text(self) -> &'static str {
        match (self.ipv4, self.ipv6) {
            (true, false) => "IPv4 ",
            (false, true) => "IPv6 ",
            _ => "",
        }
    }
}

/// A link that should be there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    /// Its place among the configured paths.
    pub(crate) path: usize,
    pub(crate) name: String,
    pub(crate) interface: String,
    pub(crate) index: u32,
    /// The address that its socket is bound to; `None`: any of the interface's.
    pub(crate) bind: Option<IpAddr>,
    /// The interface's addresses that may serve.
    pub(crate) addresses: Vec<IpAddr>,
}

impl Wanted {
    /// Whether one socket serves both: a socket is bound to the interface itself, not to its name.
    pub(crate) fn is_same_socket(&self, other: &Self) -> bool {
        let identity = |link: &Self| (link.index, link.bind);
        identity(self) == identity(other)
            && self.name == other.name
            && self.interface == other.interface
    }
}

/// The links that the configuration implies on this machine now.
#[derive(Debug, Default)]
pub(crate) struct WantedLinks {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) status: Vec<LinkStatus>,
    /// For each status its place among the configured paths.
    pub(crate) paths: Vec<usize>,
    /// Paths that several interfaces could serve, by their places.
    pub(crate) shared: Vec<(usize, SharedIdentity)>,
}

/// Makes the plan. `own_tun` is never a link; `sysfs` is where the kernel describes devices.
pub(crate) fn plan(
    paths: &[PathConfig],
    interfaces: &[Interface],
    families: Families,
    own_tun: &str,
    sysfs: &Path,
) -> WantedLinks {
    let mut plan = WantedLinks::default();
    let mut taken: Vec<&str> = vec![own_tun];
    let exact = paths.iter().filter(|path| !path.is_wildcard());
    taken.extend(exact.filter_map(|path| path.interface.as_ref()).map(|name| name.value.as_str()));
    let by_identity =
        |path: &PathConfig| path.link.as_ref().map(|link| find(&link.value, interfaces, sysfs));
    let identified = paths.iter().filter_map(|path| by_identity(path)?.ok().flatten());
    taken.extend(identified.map(|interface| interface.name.as_str()));
    for (at, path) in paths.iter().enumerate() {
        if let Some(reason) = path.down.reason() {
            plan.miss(at, path, LinkState::Down, reason.into());
        } else if let Some(found) = by_identity(path) {
            match found {
                Ok(found) => plan.add(at, path, &path.name, found, families),
                Err(shared) => {
                    plan.miss(at, path, LinkState::Absent, shared.to_string());
                    plan.shared.push((at, shared));
                }
            }
        } else if path.is_wildcard() {
            let matches = |known: &&Interface| {
                path.takes_interface(&known.name) && !taken.contains(&known.name.as_str())
            };
            let found: Vec<&Interface> = interfaces.iter().filter(matches).collect();
            taken.extend(found.iter().map(|interface| interface.name.as_str()));
            for interface in &found {
                plan.add(at, path, &interface.name, Some(interface), families);
            }
            if found.is_empty() {
                plan.miss(at, path, LinkState::Absent, "no interface of such a name".into());
            }
        } else {
            let has_address = |known: &&Interface| {
                path.address.as_ref().is_none_or(|wanted| known.addresses.contains(&wanted.value))
            };
            let mut named = interfaces.iter().filter(|known| path.takes_interface(&known.name));
            let found = match path.interface {
                Some(_) => named.next(),
                None => named.find(has_address),
            };
            plan.add(at, path, &path.name, found, families);
        }
    }
    plan.wanted.truncate(LINKS_MAX);
    plan
}

impl WantedLinks {
    fn add(
        &mut self,
        at: usize,
        path: &PathConfig,
        name: &str,
        interface: Option<&Interface>,
        families: Families,
    ) {
        let Some(interface) = interface else {
            let (state, reason) = match (&path.link, &path.interface, &path.address) {
                (Some(link), ..) => (LinkState::Absent, format!("no interface has {}", link.value)),
                (None, None, Some(address)) => {
                    (LinkState::NoAddress, format!("no interface has {}", address.value))
                }
                _ => (LinkState::Absent, "no such interface".to_owned()),
            };
            self.miss(at, path, state, reason);
            return;
        };
        let (state, reason) = match usable_addresses(path, interface, families) {
            Ok(addresses) => {
                let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                self.wanted.push(Wanted {
                    path: at,
                    name: name.to_owned(),
                    interface: interface.name.clone(),
                    index: interface.index,
                    bind: path.address.as_ref().map(|address| address.value),
                    addresses,
                });
                (LinkState::Up, format!("has {}", list.join(", ")))
            }
            Err(missing) => missing,
        };
        let (name, interface) = (name.to_owned(), interface.name.clone());
        let identity = identity_of(path);
        self.paths.push(at);
        self.status.push(LinkStatus { name, interface, identity, state, reason, socket: None });
    }

    fn miss(&mut self, at: usize, path: &PathConfig, state: LinkState, reason: String) {
        let interface = path.interface.as_ref().map(|name| name.value.clone());
        let interface = interface.unwrap_or_default();
        self.paths.push(at);
        let (name, identity) = (path.name.clone(), identity_of(path));
        self.status.push(LinkStatus { name, interface, identity, state, reason, socket: None });
    }
}

fn identity_of(path: &PathConfig) -> Option<String> {
    path.link.as_ref().map(|link| link.value.to_string())
}

fn usable_addresses(
    path: &PathConfig,
    interface: &Interface,
    families: Families,
) -> Result<Vec<IpAddr>, (LinkState, String)> {
    if !interface.up {
        return Err((LinkState::Absent, "the interface is switched off".into()));
    }
    if !interface.running {
        return Err((LinkState::Absent, "the interface has no carrier".into()));
    }
    let usable = |address: &IpAddr| match path.address.as_ref() {
        Some(wanted) => *address == wanted.value,
        None => families.takes(*address) && !is_link_local(*address),
    };
    let mut addresses: Vec<IpAddr> = interface.addresses.iter().copied().filter(usable).collect();
    addresses.sort_unstable();
    if addresses.is_empty() {
        let reason = match &path.address {
            Some(address) => format!("{} does not have {}", interface.name, address.value),
            None => format!("the interface has no {}address", families.text()),
        };
        return Err((LinkState::NoAddress, reason));
    }
    Ok(addresses)
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(
        paths: &[PathConfig],
        interfaces: &[Interface],
        families: Families,
        own_tun: &str,
    ) -> WantedLinks {
        super::plan(paths, interfaces, families, own_tun, Path::new("/nowhere"))
    }
    use crate::config::testing::path;

    fn interface(name: &str, index: u32, addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Interface { index, name: name.into(), mac: None, up: true, running: true, addresses }
    }

    fn names(plan: &WantedLinks) -> Vec<(&str, &str)> {
        plan.wanted.iter().map(|w| (w.name.as_str(), w.interface.as_str())).collect()
    }

    fn states(plan: &WantedLinks) -> Vec<(&str, LinkState)> {
        plan.status.iter().map(|status| (status.name.as_str(), status.state)).collect()
    }

    fn families(endpoints: &[&str]) -> Families {
        let parsed: Vec<SocketAddr> = endpoints.iter().map(|text| text.parse().unwrap()).collect();
        Families::of(parsed.iter())
    }

    #[test]
    fn a_link_needs_an_interface_that_works_with_an_address_of_the_family() {
        let paths = ["dsl", "lte", "sat", "off"].map(|name| path(name, Some(name), None));
        let mut off = interface("off", 4, &["10.0.0.4"]);
        off.running = false;
        let interfaces = [
            interface("dsl", 1, &["10.0.0.1", "fe80::1"]),
            interface("lte", 2, &["fd00::2", "fe80::2"]),
            off,
        ];
        let made = plan(&paths, &interfaces, families(&["192.0.2.1:1"]), "plait0");
        assert_eq!(names(&made), [("dsl", "dsl")]);
        let missing = [("lte", LinkState::NoAddress), ("sat", LinkState::Absent)];
        let all = [("dsl", LinkState::Up), missing[0], missing[1], ("off", LinkState::Absent)];
        assert_eq!(states(&made), all);
        assert_eq!(made.status[1].reason, "the interface has no IPv4 address");
        assert_eq!(made.status[3].reason, "the interface has no carrier");
        let made = plan(&paths, &interfaces, families(&["[2001:db8::1]:1"]), "plait0");
        assert_eq!(names(&made), [("lte", "lte")], "link-local addresses do not count");
        let made = plan(&paths, &interfaces, Families::default(), "plait0");
        assert_eq!(names(&made), [("dsl", "dsl"), ("lte", "lte")]);
    }

    #[test]
    fn a_wildcard_takes_what_nobody_else_names() {
        let paths = [
            path("wwan*", Some("wwan*"), None),
            path("best", Some("wwan1"), None),
            path("w*", Some("w*"), None),
        ];
        let there = ["wwan0", "wwan1", "wwan2", "wg0", "wlan0"];
        let interfaces = there.map(|name| interface(name, 1, &["10.0.0.1"]));
        let made = plan(&paths, &interfaces, Families::default(), "wg0");
        let wanted = ["wwan0", "wwan2"].map(|name| (name, name));
        assert_eq!(names(&made), [wanted[0], wanted[1], ("best", "wwan1"), ("wlan0", "wlan0")]);
        let made = plan(&paths, &[], Families::default(), "wg0");
        assert_eq!(states(&made)[0], ("wwan*", LinkState::Absent));
    }

    #[test]
    fn a_path_that_is_taken_out_has_no_link_and_keeps_its_interface() {
        let mut paths = [path("best", Some("wwan1"), None), path("wwan*", Some("wwan*"), None)];
        paths[0].down = crate::config::Down::ByCommand;
        let interfaces = ["wwan0", "wwan1"].map(|name| interface(name, 1, &["10.0.0.1"]));
        let made = plan(&paths, &interfaces, Families::default(), "plait0");
        assert_eq!(names(&made), [("wwan0", "wwan0")], "the wildcard does not take it");
        assert_eq!(made.status[0].state, LinkState::Down);
        assert_eq!(made.status[0].reason, "down by command");
    }

    #[test]
    fn an_identity_finds_its_interface_whatever_its_name_is() {
        let mac = |last| [2, 0, 0, 0, 0, last];
        let of = |name: &str, last| {
            let link = plait_toml::value::Identity::Mac(mac(last));
            let link = Some(crate::config::Located { line: 1, value: link });
            PathConfig { link, ..path(name, None, None) }
        };
        let paths = [of("dsl", 1), of("lte", 2), of("sat", 3), path("w*", Some("w*"), None)];
        let at = |name, last, address| Interface {
            mac: Some(mac(last)),
            ..interface(name, 1, &[address])
        };
        let all =
            [at("wan0", 1, "10.0.0.1"), at("wan1", 2, "10.0.0.2"), at("wlan0", 9, "10.0.0.9")];
        let made = plan(&paths, &all, Families::default(), "plait0");
        assert_eq!(names(&made), [("dsl", "wan0"), ("lte", "wan1"), ("wlan0", "wlan0")]);
        assert_eq!(made.status[2].reason, "no interface has mac:02:00:00:00:00:03");
        assert_eq!(made.status[0].identity.as_deref(), Some("mac:02:00:00:00:00:01"));
        let swapped = [at("wan1", 1, "10.0.0.1"), at("wan0", 2, "10.0.0.2")];
        let made = plan(&paths, &swapped, Families::default(), "plait0");
        assert_eq!(names(&made), [("dsl", "wan1"), ("lte", "wan0")]);
        let shared = [at("wan0", 1, "10.0.0.1"), at("br0", 1, "10.0.0.2")];
        let made = plan(&paths, &shared, Families::default(), "plait0");
        assert_eq!(made.shared.len(), 1);
        assert_eq!(states(&made)[0], ("dsl", LinkState::Absent));
    }

    #[test]
    fn an_address_finds_its_interface() {
        let paths = [path("dsl", None, Some("10.0.0.2"))];
        let interfaces = [interface("a", 1, &["10.0.0.1"]), interface("b", 2, &["10.0.0.2"])];
        let made = plan(&paths, &interfaces, Families::default(), "plait0");
        assert_eq!(names(&made), [("dsl", "b")]);
        assert_eq!(made.wanted[0].bind, Some("10.0.0.2".parse().unwrap()));
        let made = plan(&paths, &interfaces[..1], Families::default(), "plait0");
        assert_eq!(states(&made), [("dsl", LinkState::NoAddress)]);
    }
}
