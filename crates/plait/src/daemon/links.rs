//! The links of a running gateway: each configured path has a socket while its interface exists,
//! works and has an address. This module does not know the protocol's state; the
//! [driver](super::driver) carries out its changes.

pub(crate) mod plan;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plait_net::netlink::Netlink;
use plait_net::udp::{BindError, BindTo, UdpSocket};
use plait_proto::config::{LinkConfig, SocketId};

use super::host::tell_of_single_sends;
use super::ports::SocketStatus;
use crate::advice::Advised;
use crate::config::identity::SYSFS;
use crate::config::{Config, PathConfig};
use plan::{Families, Wanted};
pub(crate) use plan::{LinkState, LinkStatus};

/// A change to a link, to be carried out.
#[derive(Debug)]
pub(super) enum Change {
    /// It appeared; its socket is open.
    Add(Box<UdpSocket>, LinkConfig),
    /// It is gone, or has to be opened again.
    Remove(SocketId),
    /// Its interface has other addresses: the peer should see so at once. The socket is bound to
    /// the interface alone and stays in use.
    Moved(SocketId),
    /// Its description has changed.
    Update(LinkConfig),
}

#[derive(Debug)]
struct Live {
    wanted: Wanted,
    config: LinkConfig,
}

/// The link manager.
#[derive(Debug)]
pub(super) struct Links {
    file: PathBuf,
    paths: Vec<PathConfig>,
    families: Families,
    own_tun: String,
    /// The mark of the links' sockets.
    mark: Option<u32>,
    /// Lower socket numbers are reserved for other sockets.
    first_socket: u16,
    netlink: Netlink,
    live: Vec<Live>,
    status: Vec<LinkStatus>,
    /// For each status its place among the paths.
    status_of: Vec<usize>,
    /// Links whose sockets cannot be opened, with the reason last logged.
    refused: Vec<(String, String)>,
    /// What was last logged of paths that several interfaces could serve.
    shared: Vec<String>,
}

impl Links {
    /// A manager of no links yet; `endpoints` are the peers'.
    pub(super) fn new<'a>(
        config: &Config,
        endpoints: impl Iterator<Item = &'a SocketAddr>,
        first_socket: u16,
    ) -> anyhow::Result<Self> {
        let mut links = Self {
            file: config.file.clone(),
            paths: Vec::new(),
            families: Families::default(),
            own_tun: config.gateway.tun.clone(),
            mark: config.socket_mark(),
            first_socket,
            netlink: Netlink::open()?,
            live: Vec::new(),
            status: Vec::new(),
            status_of: Vec::new(),
            refused: Vec::new(),
            shared: Vec::new(),
        };
        links.reconfigure(&config.paths, endpoints);
        Ok(links)
    }

    /// The first look: a missing right ends the start, a missing interface does not.
    pub(super) fn start(&mut self) -> anyhow::Result<Vec<Change>> {
        let mut failed = Vec::new();
        let changes = self.refresh_noting(&mut failed)?;
        match failed.into_iter().next() {
            None => Ok(changes),
            Some((path, error)) => {
                let path = &self.paths[path];
                let place =
                    format!("{}:{}: [[path]] {}", self.file.display(), path.line, path.name);
                let help = "plait needs the right to bind sockets to interfaces: run it as root, \
                            or give it CAP_NET_RAW";
                Err(Advised::new(place, help).caused_by(error).into())
            }
        }
    }

    /// Applies other paths or other endpoints of peers. Unchanged links keep their sockets. Says
    /// whether there is a difference: then [`Self::refresh`] must follow, which returns the
    /// changes.
    pub(super) fn reconfigure<'a>(
        &mut self,
        paths: &[PathConfig],
        endpoints: impl Iterator<Item = &'a SocketAddr>,
    ) -> bool {
        let families = Families::of(endpoints);
        let differs = self.paths != paths || self.families != families;
        self.paths = paths.to_vec();
        self.families = families;
        differs
    }

    /// Peers came with these endpoints; says as [`Self::reconfigure`] does whether there is a
    /// difference.
    pub(super) fn widen<'a>(&mut self, endpoints: impl Iterator<Item = &'a SocketAddr>) -> bool {
        let families = Families::of(endpoints).and(self.families);
        let differs = families != self.families;
        self.families = families;
        differs
    }

    /// Every configured path's links, each with the path's place.
    pub(super) fn states(&self) -> impl Iterator<Item = (usize, &LinkStatus)> {
        self.status_of.iter().copied().zip(&self.status)
    }

    /// The sockets that are open, each with the name of its configured path.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (SocketId, &str)> {
        let live = self.live.iter();
        live.map(|live| (live.config.socket, self.paths[live.wanted.path].name.as_str()))
    }

    /// The interface of a socket's link.
    pub(super) fn interface_of(&self, socket: SocketId) -> Option<&str> {
        let live = self.live.iter().find(|live| live.config.socket == socket);
        live.map(|live| live.wanted.interface.as_str())
    }

    /// The interfaces of the links.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.live.iter().map(|live| live.wanted.interface.as_str())
    }

    /// Every configured path with its link's state; `socket_of` gives a socket's counters.
    pub(super) fn status(
        &self,
        socket_of: impl Fn(SocketId) -> Option<SocketStatus>,
    ) -> Vec<LinkStatus> {
        let mut status = self.status.clone();
        for live in &self.live {
            let is_its = |link: &&mut LinkStatus| {
                link.name == live.wanted.name && link.interface == live.wanted.interface
            };
            if let Some(link) = status.iter_mut().find(is_its) {
                link.socket = socket_of(live.config.socket);
            }
        }
        status
    }

    /// Whether a link waits for a socket that could not be opened: look again in a while.
    pub(super) fn wants_retry(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Reads the machine's interfaces and returns the changes. The kernel blocks this read while
    /// interfaces change, in any network namespace, and no packet moves meanwhile: a gateway
    /// without configured paths does not read them.
    pub(super) fn refresh(&mut self) -> anyhow::Result<Vec<Change>> {
        self.refresh_noting(&mut Vec::new())
    }

    fn refresh_noting(
        &mut self,
        failed: &mut Vec<(usize, BindError)>,
    ) -> anyhow::Result<Vec<Change>> {
        let interfaces = if self.paths.is_empty() {
            Vec::new()
        } else {
            self.netlink.interfaces().context("cannot look at the interfaces")?
        };
        let sysfs = Path::new(SYSFS);
        let plan = plan::plan(&self.paths, &interfaces, self.families, &self.own_tun, sysfs);
        let shared = plan.shared.iter().map(|(at, shared)| {
            format!("path {}: {shared} ({})", self.paths[*at].name, shared.help())
        });
        let shared: Vec<String> = shared.collect();
        for text in shared.iter().filter(|text| !self.shared.contains(text)) {
            log::error!("{text}");
        }
        self.shared = shared;
        self.status = plan.status;
        self.status_of = plan.paths;
        let mut changes = self.remove_unwanted(&plan.wanted);
        let mut refused = Vec::new();
        for wanted in plan.wanted {
            if let Some(at) = self.live.iter().position(|live| live.wanted.is_same_socket(&wanted))
            {
                changes.extend(self.follow(at, wanted));
                continue;
            }
            let socket = self.free_socket(&wanted);
            match open(&wanted, self.mark) {
                Ok(opened) => changes.push(self.add(opened, socket, wanted)),
                Err(error) => {
                    refused.push(self.refuse(&wanted, &error));
                    // The interface went since it was read: a notification will follow.
                    let is_gone = matches!(
                        error,
                        BindError::NoSuchInterface { .. } | BindError::AddressUnavailable { .. }
                    );
                    failed.extend((!is_gone).then_some((wanted.path, error)));
                }
            }
        }
        self.refused = refused;
        Ok(changes)
    }

    fn remove_unwanted(&mut self, wanted: &[Wanted]) -> Vec<Change> {
        let stays = |live: &Live| wanted.iter().any(|wanted| wanted.is_same_socket(&live.wanted));
        let mut changes = Vec::new();
        let mut told = Vec::new();
        self.live.retain(|live| {
            let stays = stays(live);
            if !stays {
                changes.push(Change::Remove(live.config.socket));
                told.push((live.wanted.name.clone(), live.wanted.interface.clone()));
            }
            stays
        });
        for (name, interface) in told {
            let status = self.status.iter().find(|status| status.interface == interface);
            let reason = match status {
                Some(status) if status.state != LinkState::Up => status.reason.as_str(),
                Some(_) => "it comes again with another socket",
                None => "no such interface, or not configured any more",
            };
            log::info!(plait_link = name; "link {name} on {interface} is gone: {reason}");
        }
        changes
    }

    /// Finds other addresses or another description of a link that stays.
    fn follow(&mut self, at: usize, wanted: Wanted) -> Vec<Change> {
        let live = &mut self.live[at];
        let mut changes = Vec::new();
        let config = self.paths[wanted.path].link(live.config.socket, &wanted.name);
        if config != live.config {
            let name = &wanted.name;
            log::info!(plait_link = name; "link {name} has another description");
            live.config = config.clone();
            changes.push(Change::Update(config));
        }
        if wanted.addresses != live.wanted.addresses {
            let (name, interface) = (&wanted.name, &wanted.interface);
            log::info!(plait_link = name; "link {name}: {interface} now has {}", list(&wanted));
            changes.push(Change::Moved(live.config.socket));
        }
        live.wanted = wanted;
        changes
    }

    fn add(&mut self, opened: UdpSocket, socket: SocketId, wanted: Wanted) -> Change {
        let (name, interface) = (&wanted.name, &wanted.interface);
        log::info!(plait_link = name; "link {name} is there: {interface} has {}", list(&wanted));
        let config = self.paths[wanted.path].link(socket, &wanted.name);
        self.live.push(Live { wanted, config: config.clone() });
        Change::Add(Box::new(opened), config)
    }

    /// Logs once why a socket cannot be opened.
    fn refuse(&mut self, wanted: &Wanted, error: &BindError) -> (String, String) {
        let text = format!("{:#}", anyhow::anyhow!("{error}"));
        let entry = (wanted.name.clone(), text);
        if !self.refused.contains(&entry) {
            let (name, text) = &entry;
            log::warn!(plait_link = name; "link {name} has no socket: {text}");
        }
        if let Some(status) = self.status.iter_mut().find(|status| status.name == wanted.name) {
            status.state = LinkState::Absent;
            status.reason.clone_from(&entry.1);
        }
        entry
    }

    /// A number for a new link's socket. Links of equal price are used in the order of these
    /// numbers: as far as possible the file's order, whichever link appears first.
    fn free_socket(&self, wanted: &Wanted) -> SocketId {
        let first = self.first_socket;
        let count = self.paths.len() as u16;
        let own = first + wanted.path as u16;
        let free = |id: &u16| !self.live.iter().any(|live| live.config.socket.0 == *id);
        let others = first + count..;
        let mut ids = std::iter::once(own).chain(others).filter(free);
        SocketId(ids.next().expect("a gateway has fewer links than there are socket numbers"))
    }
}

/// Opens a link's socket.
pub(crate) fn open(wanted: &Wanted, mark: Option<u32>) -> Result<UdpSocket, BindError> {
    let interface = Some(wanted.interface.clone());
    let socket = UdpSocket::bind(&BindTo { interface, address: wanted.bind, port: 0, mark })?;
    tell_of_single_sends(&socket);
    Ok(socket)
}

fn list(wanted: &Wanted) -> String {
    let mut text = String::new();
    for (at, address) in wanted.addresses.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{address}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::path;

    fn links(paths: &[PathConfig]) -> Links {
        Links {
            file: "plait0.toml".into(),
            paths: paths.to_vec(),
            families: Families::default(),
            own_tun: "plait0".into(),
            mark: None,
            first_socket: 0,
            netlink: Netlink::open().expect("a socket needs no right"),
            live: Vec::new(),
            status: Vec::new(),
            status_of: Vec::new(),
            refused: Vec::new(),
            shared: Vec::new(),
        }
    }

    #[test]
    fn only_other_paths_or_address_families_are_a_difference() {
        let both = ["dsl", "lte"].map(|name| path(name, Some(name), None));
        let mut links = links(&both);
        assert!(!links.reconfigure(&both, [].iter()));
        let v4: [SocketAddr; 2] = [([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 2).into()];
        assert!(links.reconfigure(&both, v4[..1].iter()));
        assert!(!links.reconfigure(&both, v4[1..].iter()));
        assert!(links.reconfigure(&both[..1], v4.iter()));
        let mut dearer = both[0].clone();
        dearer.price += 1;
        assert!(links.reconfigure(&[dearer], v4.iter()));
    }
}
