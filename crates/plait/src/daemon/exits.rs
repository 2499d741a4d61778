//! The bare links over which the host's traffic may leave: the default routes of the host, and
//! which of them lead somewhere.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plait_net::icmp::EchoSocket;
use plait_net::netlink::policy::Family;
use plait_net::netlink::{Netlink, NetlinkError};
use plait_proto::time::Instant;

/// Requests of a round for each link.
const TARGETS_MAX: usize = 8;

/// A default route of the host, over a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Exit {
    pub(super) family: Family,
    pub(super) interface: String,
    pub(super) index: u32,
    pub(super) gateway: Option<IpAddr>,
    metric: u32,
    /// Whether the link has a carrier.
    pub(super) running: bool,
    /// The link's addresses of the family.
    pub(super) addresses: Vec<IpAddr>,
}

impl Exit {
    /// One that does not exist, to try rules with.
    pub(super) fn example(family: Family, address: &str) -> Self {
        let addresses = address.parse().into_iter().collect();
        let (interface, metric) = ("lo0".to_owned(), 0);
        Self { family, interface, index: 0, gateway: None, metric, running: true, addresses }
    }
}

/// How far a link leads, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reach {
    /// It has no carrier.
    Nothing,
    /// Nobody answered of late.
    Unknown,
    /// Its router answers.
    Router,
    /// A host beyond its router answers.
    Beyond,
}

/// The default routes of this host but those into `tun`, the preferred first.
///
/// # Errors
/// The kernel cannot be asked.
pub(super) fn exits(netlink: &mut Netlink, tun: &str) -> Result<Vec<Exit>, NetlinkError> {
    let interfaces = netlink.interfaces()?;
    let routes = netlink.routes()?;
    let defaults = routes.into_iter().filter(|route| route.prefix == 0);
    let mut exits: Vec<Exit> = defaults
        .filter_map(|route| {
            let found = interfaces.iter().find(|known| Some(known.index) == route.index)?;
            let family = Family::of(route.destination);
            let is_its = |address: &&IpAddr| Family::of(**address) == family;
            (found.name != tun).then(|| Exit {
                family,
                interface: found.name.clone(),
                index: found.index,
                gateway: route.gateway,
                metric: route.metric.unwrap_or(0),
                running: found.running,
                addresses: found.addresses.iter().filter(is_its).copied().collect(),
            })
        })
        .collect();
    exits.sort_by_key(|exit| (exit.family, exit.metric));
    Ok(exits)
}

/// Asks the routers of the links, and hosts beyond them, for signs of life.
#[derive(Debug)]
pub(super) struct Probes {
    /// Time between two rounds of requests.
    pace: Duration,
    sent_at: Option<Instant>,
    round: u16,
    sockets: BTreeMap<(String, bool), EchoSocket>,
    /// When a link's router last answered, and when a host beyond.
    heard: BTreeMap<(String, Family), [Option<Instant>; 2]>,
}

impl Probes {
    /// None yet; a round of requests is to be sent this often.
    pub(super) fn paced(pace: Duration) -> Self {
        Self { pace, sent_at: None, round: 0, sockets: BTreeMap::new(), heard: BTreeMap::new() }
    }

    /// An answer tells of a link for so long: one may be lost.
    fn fresh(&self) -> Duration {
        self.pace * 11 / 4
    }

    /// When [`Self::run`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.sent_at.map(|sent_at| sent_at + self.pace)
    }

    /// Reads answers, and sends the next round if it is due. `beyond` are the hosts to ask.
    pub(super) fn run(&mut self, now: Instant, exits: &[Exit], beyond: &[IpAddr]) {
        self.receive(now, exits);
        if self.due_at().is_some_and(|due| due > now) {
            return;
        }
        self.sent_at = Some(now);
        self.round = self.round.wrapping_add(1);
        for exit in exits {
            let is_v6 = exit.family == Family::V6;
            let round = self.round;
            let Some(socket) = self.socket(&exit.interface, is_v6) else { continue };
            let beyond = beyond.iter().filter(|address| address.is_ipv6() == is_v6);
            for target in exit.gateway.iter().chain(beyond).take(TARGETS_MAX) {
                if let Err(error) = socket.request(*target, round, &[]) {
                    log::debug!("asking {target} over {}: {error}", exit.interface);
                }
            }
        }
    }

    /// Nothing more is asked, and nothing known.
    pub(super) fn stop(&mut self) {
        *self = Self { round: self.round, ..Self::paced(self.pace) };
    }

    fn socket(&mut self, interface: &str, is_v6: bool) -> Option<&EchoSocket> {
        let key = (interface.to_owned(), is_v6);
        if !self.sockets.contains_key(&key) {
            // Any number will do; answers to other programs are told by theirs.
            let identifier = std::process::id() as u16;
            match EchoSocket::open_on(Some(interface), is_v6, identifier) {
                Ok(socket) => drop(self.sockets.insert(key.clone(), socket)),
                Err(error) => log::debug!("no socket to ask over {interface}: {error}"),
            }
        }
        self.sockets.get(&key)
    }

    fn receive(&mut self, now: Instant, exits: &[Exit]) {
        for ((interface, is_v6), socket) in &self.sockets {
            let family = if *is_v6 { Family::V6 } else { Family::V4 };
            let is_router = |source: IpAddr| {
                let mut its = exits.iter().filter(|exit| exit.interface == *interface);
                its.any(|exit| exit.gateway == Some(source))
            };
            while let Ok(Some(reply)) = socket.reply() {
                let at = usize::from(!is_router(reply.source));
                self.heard.entry((interface.clone(), family)).or_default()[at] = Some(now);
            }
        }
    }

    fn reach(&self, now: Instant, exit: &Exit) -> Reach {
        let heard = self.heard.get(&(exit.interface.clone(), exit.family));
        let is_fresh = |at: usize| {
            heard.is_some_and(|heard| heard[at].is_some_and(|at| now.since(at) <= self.fresh()))
        };
        match (exit.running, is_fresh(0), is_fresh(1)) {
            (false, ..) => Reach::Nothing,
            (true, _, true) => Reach::Beyond,
            (true, true, false) => Reach::Router,
            (true, false, false) => Reach::Unknown,
        }
    }

    /// The link that leads furthest; of equal ones `current`, else the one that the host prefers.
    pub(super) fn best<'a>(
        &self,
        now: Instant,
        exits: &'a [Exit],
        family: Family,
        current: Option<&str>,
    ) -> Option<&'a Exit> {
        let of_family = exits.iter().filter(|exit| exit.family == family);
        of_family.min_by_key(|exit| {
            let is_other = current != Some(exit.interface.as_str());
            (std::cmp::Reverse(self.reach(now, exit)), is_other, exit.metric)
        })
    }
}

/// Whether the host takes this link by itself.
pub(super) fn is_preferred(exits: &[Exit], exit: &Exit) -> bool {
    exits.iter().find(|known| known.family == exit.family) == Some(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(interface: &str, metric: u32, running: bool) -> Exit {
        let exit = Exit::example(Family::V4, "");
        Exit { interface: interface.into(), index: metric, metric, running, ..exit }
    }

    #[test]
    fn the_link_that_leads_furthest_is_taken_and_kept_among_equals() {
        let exits = [exit("dsl", 1, true), exit("lte", 2, true), exit("sat", 3, false)];
        let mut probes = Probes::paced(Duration::from_millis(400));
        let now = Instant::ZERO + Duration::from_secs(9);
        let best = |probes: &Probes, now, current| {
            probes.best(now, &exits, Family::V4, current).map(|exit| exit.interface.clone())
        };
        assert_eq!(best(&probes, now, None).as_deref(), Some("dsl"));
        assert_eq!(best(&probes, now, Some("lte")).as_deref(), Some("lte"));
        assert_eq!(best(&probes, now, Some("sat")).as_deref(), Some("dsl"), "no carrier");
        probes.heard.insert(("lte".into(), Family::V4), [Some(now), None]);
        assert_eq!(best(&probes, now, Some("dsl")).as_deref(), Some("lte"));
        probes.heard.insert(("dsl".into(), Family::V4), [None, Some(now)]);
        assert_eq!(best(&probes, now, Some("lte")).as_deref(), Some("dsl"));
        let later = now + probes.fresh() + Duration::from_millis(1);
        assert_eq!(best(&probes, later, Some("lte")).as_deref(), Some("lte"), "all forgotten");
        assert!(is_preferred(&exits, &exits[0]) && !is_preferred(&exits, &exits[1]));
    }
}
