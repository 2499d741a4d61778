//! The host's routes into the TUN device: one for each prefix of the peers, when the configuration
//! asks for them. They follow a reload, and vanish with the device at the end.

use anyhow::Context as _;
use plait_net::netlink::{Netlink, RouteInfo};
use plait_proto::config::Prefix;

use super::host::{ROUTE_EXISTS_HELP, advised, halved};
use crate::advice::Advised;

/// The error of adding something that exists already.
const EEXIST: i32 = 17;
/// The error of removing something that does not exist.
const ESRCH: i32 = 3;

/// The routes of one TUN device.
#[derive(Debug)]
pub(super) struct Routes {
    netlink: Netlink,
    /// The device.
    index: u32,
    /// Those that were added, in order.
    added: Vec<Prefix>,
}

/// The result of adding a route.
enum Added {
    Done,
    /// One of the device's own addresses implies it.
    BelongsToDevice,
}

impl Routes {
    /// No routes yet, into the device called `tun`.
    ///
    /// # Errors
    /// There is no such device, or the kernel cannot be asked.
    pub(super) fn new(tun: &str) -> anyhow::Result<Self> {
        let mut netlink = Netlink::open()?;
        let link = netlink.link(tun)?.context("the TUN device vanished as soon as it was made")?;
        Ok(Self { netlink, index: link.index, added: Vec::new() })
    }

    /// Adds the first routes.
    ///
    /// # Errors
    /// One cannot be added, with the remedy.
    pub(super) fn set_up(&mut self, prefixes: &[Prefix]) -> Result<(), Advised> {
        for route in halved(prefixes) {
            self.add(route)?;
        }
        Ok(())
    }

    /// Adds missing routes and removes superfluous ones. A failure is logged with its remedy, and
    /// tried again at the next reload; the rest is still done.
    pub(super) fn follow(&mut self, prefixes: &[Prefix]) {
        let wanted = halved(prefixes);
        for route in &wanted {
            if self.added.binary_search(route).is_err()
                && let Err(error) = self.add(*route)
            {
                log::error!("{:#} ({})", chain(&error), error.help());
            }
        }
        let added = std::mem::take(&mut self.added).into_iter();
        let stays = |route: &Prefix| wanted.binary_search(route).is_ok() || !self.remove(*route);
        self.added = added.filter(stays).collect();
    }

    /// Adds those of one more peer. A failure keeps none of the others back.
    pub(super) fn add_all(&mut self, prefixes: &[Prefix]) -> Vec<Advised> {
        let missing = halved(prefixes).into_iter();
        let missing: Vec<_> =
            missing.filter(|route| self.added.binary_search(route).is_err()).collect();
        missing.into_iter().filter_map(|route| self.add(route).err()).collect()
    }

    /// Removes those of a peer that is gone, unless another one asks for them, too.
    pub(super) fn remove_all(&mut self, prefixes: &[Prefix], stays: impl Fn(&Prefix) -> bool) {
        for route in halved(prefixes).into_iter().filter(|route| !stays(route)) {
            if let Ok(at) = self.added.binary_search(&route)
                && self.remove(route)
            {
                self.added.remove(at);
            }
        }
    }

    /// Removes a route; says whether it is gone.
    fn remove(&mut self, route: Prefix) -> bool {
        let removed = self.netlink.remove_route(self.index, route.address, route.length, None);
        match removed {
            Err(error) if error.errno() != Some(ESRCH) => {
                log::error!("{:#}: `plait up` again removes it", anyhow::Error::from(error));
                false
            }
            // Somebody else may have removed it.
            _ => {
                log::info!("no route to {}/{} any more", route.address, route.length);
                true
            }
        }
    }

    fn add(&mut self, route: Prefix) -> Result<(), Advised> {
        match self.try_add(route)? {
            Added::Done => {
                log::info!("route to {}/{} is set", route.address, route.length);
                let at = self.added.binary_search(&route).unwrap_or_else(|at| at);
                self.added.insert(at, route);
            }
            Added::BelongsToDevice => {}
        }
        Ok(())
    }

    fn try_add(&mut self, route: Prefix) -> Result<Added, Advised> {
        let Prefix { address, length } = route;
        match self.netlink.add_route(self.index, address, length, None) {
            Ok(()) => Ok(Added::Done),
            Err(error) if error.errno() == Some(EEXIST) => match self.existing(route) {
                Some(known) if known.index == Some(self.index) => Ok(Added::BelongsToDevice),
                known => Err(self.is_taken(route, known.and_then(|known| known.index))),
            },
            Err(error) => Err(advised(error)),
        }
    }

    /// The route that is in the way.
    fn existing(&mut self, route: Prefix) -> Option<RouteInfo> {
        let routes = self.netlink.routes().ok()?;
        let is_same =
            |known: &RouteInfo| known.destination == route.address && known.prefix == route.length;
        // Over IPv6 there may be one with another metric, which does not conflict.
        let (own, others): (Vec<_>, Vec<_>) =
            routes.into_iter().filter(is_same).partition(|known| known.index == Some(self.index));
        own.into_iter().chain(others).next()
    }

    fn is_taken(&mut self, route: Prefix, index: Option<u32>) -> Advised {
        let links = self.netlink.links().unwrap_or_default();
        let through = links.iter().find(|link| Some(link.index) == index);
        let through = through.map(|link| format!(" through {}", link.name)).unwrap_or_default();
        let Prefix { address, length } = route;
        let text = format!("there is a route to {address}/{length} already{through}");
        Advised::new(format!("[gateway] routes: {text}"), ROUTE_EXISTS_HELP)
    }
}

/// The error with its causes, in one line.
fn chain(error: &Advised) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
