//! `when_down = "bypass"`: while the bond is down, the host's traffic leaves over the best bare
//! link.
//!
//! The routes that lead everything into the bond are withdrawn; where the host's own default route
//! would take a link that leads nowhere, temporary routes lead over another. What was begun inside
//! the bond has addresses that nobody answers outside it, so it leaves with the link's; the same on
//! the way back. The kernel decides on addresses once per connection, so these packets count as
//! connections of another zone (conntrack), where they are new.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use plait_net::netlink::policy::{Family, TableRoute};
use plait_net::netlink::{Netlink, NetlinkError};
use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::endpoint::Endpoint;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;

use super::super::exits::{Exit, Probes, exits, is_preferred};
use super::super::nat::{HostError, nft, plain_name, removal};
use super::super::policy::{PROTOCOL, name_of, removed};
use super::super::routes::Routes;
use super::super::state::{KeptRoute, StateFile};
use super::watch::Watch;
use crate::config::Config;

/// Begins the names of these tables.
const PREFIX: &str = "plait-bypass_";
/// The kernel's routing table `main`.
const MAIN: u32 = 254;
/// Zone of conntrack for what changes its way.
const ZONE: u16 = 7788;
/// Time between two rounds of pings.
const ROUND: Duration = Duration::from_millis(400);
/// Without news, the bonds are looked at this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// What a bypass changes on the host.
pub(in crate::daemon) struct Host<'a> {
    pub(in crate::daemon) file: &'a mut StateFile,
    pub(in crate::daemon) routes: &'a mut Routes,
    /// The prefixes that have routes while all bonds are up.
    pub(in crate::daemon) wanted: Vec<Prefix>,
}

/// A family whose default route is in the bond with a peer.
#[derive(Debug)]
struct Ward {
    family: Family,
    peer: PublicKey,
    watch: Watch,
    /// The link of the temporary routes.
    over: Option<Exit>,
}

/// The bypass of a running gateway.
#[derive(Debug)]
pub(super) struct Bypass {
    tun: String,
    netlink: Netlink,
    wards: Vec<Ward>,
    /// The peers' addresses, which are asked for signs of life.
    beyond: Vec<IpAddr>,
    probes: Probes,
    exits: Vec<Exit>,
    look_at: Instant,
}

impl Bypass {
    pub(super) fn new(
        now: Instant,
        tun: &str,
        peers: &[PeerConfig],
        file: &mut StateFile,
    ) -> Result<Self, NetlinkError> {
        let mut bypass = Self {
            tun: tun.to_owned(),
            netlink: Netlink::open()?,
            wards: Vec::new(),
            beyond: Vec::new(),
            probes: Probes::paced(ROUND),
            exits: Vec::new(),
            look_at: now,
        };
        bypass.follow(now, peers, file);
        Ok(bypass)
    }

    /// Other peers, or other addresses of theirs. A bond with the same peer stays what it is.
    pub(super) fn follow(&mut self, now: Instant, peers: &[PeerConfig], file: &mut StateFile) {
        let mut old = std::mem::take(&mut self.wards);
        for family in Family::ALL {
            let holds = |peer: &&PeerConfig| peer.allowed_ips.iter().any(|p| is_led(family, p));
            let Some(peer) = peers.iter().find(holds) else { continue };
            let peer = peer.public_key;
            let is_same = |ward: &Ward| ward.family == family && ward.peer == peer;
            let known = old.iter().position(is_same).map(|at| old.swap_remove(at));
            let new = || Ward { family, peer, watch: Watch::new(now), over: None };
            self.wards.push(known.unwrap_or_else(new));
        }
        for exit in old.into_iter().filter_map(|ward| ward.over) {
            remove_ways(&mut self.netlink, &exit, file);
        }
        self.beyond = peers
            .iter()
            .filter(|peer| self.wards.iter().any(|ward| ward.peer == peer.public_key))
            .flat_map(|peer| peer.endpoints.iter().map(|endpoint| endpoint.ip().to_canonical()))
            .collect();
        self.look_at = now;
    }

    /// The prefixes of these that lead into a bond now.
    pub(super) fn led(&self, mut prefixes: Vec<Prefix>) -> Vec<Prefix> {
        prefixes.retain(|prefix| !self.down().any(|ward| is_led(ward.family, prefix)));
        prefixes
    }

    fn down(&self) -> impl Iterator<Item = &Ward> {
        self.wards.iter().filter(|ward| ward.watch.is_down())
    }

    /// Something happened to a bond or a link.
    pub(super) fn wake(&mut self, now: Instant) {
        self.look_at = now;
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Instant {
        let watched = self.wards.iter().filter_map(|ward| ward.watch.due_at());
        watched.chain(self.probes.due_at()).fold(self.look_at, Instant::min)
    }

    /// Looks at the bonds, and changes the host's ways as they went down or came back.
    pub(super) fn run_due(&mut self, now: Instant, endpoint: &mut Endpoint, host: Host<'_>) {
        self.look_at = now + LOOK_INTERVAL;
        let mut turned = false;
        for ward in &mut self.wards {
            turned |= ward.watch.note(now, endpoint.is_reached(&ward.peer));
            if ward.watch.is_down() {
                endpoint.hurry(now, &ward.peer);
            }
        }
        let in_doubt = self.wards.iter().any(|ward| ward.watch.is_in_doubt());
        if in_doubt || turned {
            match exits(&mut self.netlink, &self.tun) {
                Ok(found) => self.exits = found,
                Err(error) => log::warn!("{error}: {}", error.source),
            }
        }
        if in_doubt {
            self.probes.run(now, &self.exits, &self.beyond);
        } else {
            self.probes.stop();
        }
        if turned {
            self.turn(now, host);
        } else if self.down().next().is_some() {
            self.choose(now, host.file);
        }
    }

    /// A bond went down or came back.
    fn turn(&mut self, now: Instant, host: Host<'_>) {
        let Host { file, routes, wanted } = host;
        let any_down = self.down().next().is_some();
        if any_down {
            self.set_table(file);
        }
        self.remove_ways(file);
        routes.follow(&self.led(wanted));
        self.choose(now, file);
        if !any_down {
            self.set_table(file);
        }
        for ward in &self.wards {
            let family = name_of(ward.family);
            match ward.watch.down_since() {
                Some(_) => log::warn!("the bond is down: {family} traffic goes {}", self.way(ward)),
                None => log::info!("the bond carries {family} traffic"),
            }
        }
    }

    fn set_table(&self, file: &mut StateFile) {
        let table = table_name(&self.tun);
        file.state.bypass_table = Some(table);
        file.save();
        if let Err(error) = nft(&[], &self.script()) {
            log::error!("{}; connections of the bond are cut off", error.of("when_down"));
        }
    }

    /// Commands that make the table again.
    fn script(&self) -> String {
        let down: Vec<Family> = self.down().map(|ward| ward.family).collect();
        script(&self.tun, &self.exits, &down)
    }

    /// Leads what is down over the best link, where the host would take another.
    fn choose(&mut self, now: Instant, file: &mut StateFile) {
        for at in 0..self.wards.len() {
            let Ward { family, watch, over, .. } = &self.wards[at];
            if !watch.is_down() {
                continue;
            }
            let current = over.as_ref().map(|exit| exit.interface.as_str());
            let preferred = self.exits.iter().find(|exit| exit.family == *family);
            let current = current.or(preferred.map(|exit| exit.interface.as_str()));
            let best = self.probes.best(now, &self.exits, *family, current);
            let wanted = best.filter(|exit| !is_preferred(&self.exits, exit)).cloned();
            let is_same = |exit: &Exit| {
                over.as_ref().is_some_and(|o| (o.index, o.gateway) == (exit.index, exit.gateway))
            };
            if wanted.as_ref().map_or(over.is_none(), is_same) {
                continue;
            }
            self.remove_way(at, file);
            if let Some(exit) = wanted {
                self.add_way(at, exit, file);
            }
            let ward = &self.wards[at];
            log::info!("{} traffic goes {}", name_of(ward.family), self.way(ward));
        }
    }

    fn add_way(&mut self, at: usize, exit: Exit, file: &mut StateFile) {
        for route in ways(&exit) {
            file.state.bypass_routes.push(kept(&route, &exit.interface));
            file.save();
            if let Err(error) = self.netlink.add_table_route(&route, PROTOCOL) {
                log::error!("{error}: {}", error.source);
            }
        }
        self.wards[at].over = Some(exit);
    }

    fn remove_way(&mut self, at: usize, file: &mut StateFile) {
        if let Some(exit) = self.wards[at].over.take() {
            remove_ways(&mut self.netlink, &exit, file);
        }
    }

    /// Removes the temporary routes of bonds that came back.
    fn remove_ways(&mut self, file: &mut StateFile) {
        for at in 0..self.wards.len() {
            if !self.wards[at].watch.is_down() {
                self.remove_way(at, file);
            }
        }
    }

    /// How a family's traffic leaves, in words.
    fn way(&self, ward: &Ward) -> String {
        let preferred = self.exits.iter().find(|exit| exit.family == ward.family);
        match ward.over.as_ref().or(preferred) {
            Some(exit) => format!("over {}", exit.interface),
            None => "nowhere: the host has no other default route".to_owned(),
        }
    }

    /// What it does now: how long a bond has been down, and the links that stand in.
    pub(super) fn now(&self, now: Instant) -> Option<(Duration, Vec<String>)> {
        let since = self.down().filter_map(|ward| ward.watch.down_since()).min()?;
        let ways = self.down().map(|ward| format!("{} {}", name_of(ward.family), self.way(ward)));
        Some((now.since(since), ways.collect()))
    }
}

/// Whether a prefix is a default route of the family, or a half of one.
fn is_led(family: Family, prefix: &Prefix) -> bool {
    Family::of(prefix.address) == family && prefix.length <= 1
}

/// The name of a device's table.
fn table_name(tun: &str) -> String {
    format!("{PREFIX}{}", plain_name(tun))
}

/// The quarters of the default route over a link: they win over every default route and over the
/// halves that lead into the bond, and are in the way of neither.
fn ways(exit: &Exit) -> [TableRoute; 4] {
    [0_u8, 0x40, 0x80, 0xc0].map(|first| {
        let destination = match exit.family {
            Family::V4 => IpAddr::from([first, 0, 0, 0]),
            Family::V6 => IpAddr::from([u16::from(first) << 8, 0, 0, 0, 0, 0, 0, 0]),
        };
        let (table, prefix, index) = (MAIN, 2, Some(exit.index));
        TableRoute { table, destination, prefix, gateway: exit.gateway, index }
    })
}

fn kept(route: &TableRoute, interface: &str) -> KeptRoute {
    let TableRoute { destination, prefix, gateway, .. } = *route;
    KeptRoute { destination, length: prefix, gateway, interface: interface.to_owned() }
}

/// Removes the temporary routes over a link.
fn remove_ways(netlink: &mut Netlink, exit: &Exit, file: &mut StateFile) {
    for route in ways(exit) {
        remove(netlink, &route);
        file.state.bypass_routes.retain(|known| *known != kept(&route, &exit.interface));
    }
    file.save();
}

fn remove(netlink: &mut Netlink, route: &TableRoute) {
    removed(netlink.remove_table_route(route, PROTOCOL));
}

/// Undoes what this run or an earlier one set up.
pub(super) fn undo(file: &mut StateFile) {
    let routes = std::mem::take(&mut file.state.bypass_routes);
    if !routes.is_empty()
        && let Ok(mut netlink) = Netlink::open()
    {
        // Somebody else may have written the file: only routes of ours are removed.
        let ours = routes.into_iter().filter(|route| route.length == 2);
        for KeptRoute { destination, length, gateway, interface } in ours {
            let Ok(Some(link)) = netlink.link(&interface) else { continue };
            let (table, index) = (MAIN, Some(link.index));
            remove(
                &mut netlink,
                &TableRoute { table, destination, prefix: length, gateway, index },
            );
        }
    }
    if let Some(table) = file.state.bypass_table.take() {
        // Somebody else may have written the file: only a table of ours is removed.
        let ours = table.strip_prefix(PREFIX).is_some_and(|tun| plain_name(tun) == tun);
        if ours && let Err(error) = nft(&[], &removal(&table)) {
            log::warn!("the table {table} is not removed: {error}");
        }
    }
    file.save();
}

/// Whether nft is there and, with `has_rights`, whether the kernel would take the table; nothing is
/// changed.
///
/// # Errors
/// nft is missing or refuses.
pub(crate) fn can_bypass(config: &Config, has_rights: bool) -> Result<(), HostError> {
    let example = |family, address: &str| Exit::example(family, address);
    let exits = [example(Family::V4, "192.0.2.1"), example(Family::V6, "2001:db8::1")];
    let script = script(&config.gateway.tun, &exits, &Family::ALL);
    if has_rights { nft(&["--check"], &script) } else { Ok(()) }
}

/// What leaves by a link while the bond is down leaves with the link's address; what has a link's
/// address and goes into the bond, with the inner one.
fn script(tun: &str, exits: &[Exit], down: &[Family]) -> String {
    let table = table_name(tun);
    let quoted = |exit: &Exit| format!("\"{}\"", exit.interface);
    let mut names: Vec<String> = exits.iter().map(quoted).collect();
    names.sort();
    names.dedup();
    let names = names.join(", ");
    let mut script = removal(&table);
    let _ = writeln!(script, "table inet {table} {{\n  chain prerouting {{");
    script.push_str("    type filter hook prerouting priority raw; policy accept;\n");
    for family in down.iter().filter(|_| !names.is_empty()) {
        let protocol = if *family == Family::V4 { "ipv4" } else { "ipv6" };
        let _ = writeln!(
            script,
            "    meta nfproto {protocol} iifname != {{ {names}, \"lo\", \"{tun}\" }} fib daddr \
             type != local fib daddr oifname {{ {names} }} ct original zone set {ZONE}"
        );
    }
    script.push_str("  }\n  chain output {\n");
    script.push_str("    type filter hook output priority raw; policy accept;\n");
    for exit in exits.iter().filter(|exit| !exit.addresses.is_empty()) {
        let (ip, none) = match exit.family {
            Family::V4 => ("ip", "0.0.0.0"),
            Family::V6 => ("ip6", "fe80::/10, ::"),
        };
        let wide =
            |address: &&IpAddr| !matches!(address, IpAddr::V6(a) if a.is_unicast_link_local());
        let own: Vec<_> = exit.addresses.iter().filter(wide).map(ToString::to_string).collect();
        let own = own.join(", ");
        if down.contains(&exit.family) {
            let comma = if own.is_empty() { "" } else { ", " };
            let name = &exit.interface;
            let _ = writeln!(
                script,
                "    oifname \"{name}\" {ip} saddr != {{ {none}{comma}{own} }} ct original zone \
                 set {ZONE}"
            );
        }
        if !own.is_empty() {
            let _ = writeln!(
                script,
                "    oifname \"{tun}\" {ip} saddr {{ {own} }} ct original zone set {ZONE}"
            );
        }
    }
    script.push_str("  }\n  chain postrouting {\n");
    script.push_str("    type nat hook postrouting priority srcnat; policy accept;\n");
    let comma = if names.is_empty() { "" } else { ", " };
    let _ = writeln!(
        script,
        "    oifname {{ \"{tun}\"{comma}{names} }} ct original zone {ZONE} masquerade\n  }}\n}}"
    );
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_elsewhere_takes_the_links_address() {
        let mut dsl = Exit::example(Family::V4, "10.1.0.2");
        dsl.interface = "dsl".into();
        let text = script("plait0", &[dsl.clone()], &[Family::V4]);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|l| l.contains(" zone ")).collect();
        assert_eq!(
            lines,
            [
                "meta nfproto ipv4 iifname != { \"dsl\", \"lo\", \"plait0\" } fib daddr type != \
                 local fib daddr oifname { \"dsl\" } ct original zone set 7788",
                "oifname \"dsl\" ip saddr != { 0.0.0.0, 10.1.0.2 } ct original zone set 7788",
                "oifname \"plait0\" ip saddr { 10.1.0.2 } ct original zone set 7788",
                "oifname { \"plait0\", \"dsl\" } ct original zone 7788 masquerade",
            ]
        );
        let text = script("plait0", &[dsl], &[]);
        assert_eq!(text.matches("zone set").count(), 1, "only the way back is left: {text}");
        assert!(script("plait0", &[], &[Family::V6]).contains("oifname { \"plait0\" } ct"));
    }

    #[test]
    fn default_routes_are_led_past_the_bond_and_no_others() {
        let prefix = |text: &str, length| Prefix { address: text.parse().unwrap(), length };
        assert!(is_led(Family::V4, &prefix("0.0.0.0", 0)));
        assert!(is_led(Family::V6, &prefix("8000::", 1)));
        assert!(!is_led(Family::V6, &prefix("0.0.0.0", 0)));
        assert!(!is_led(Family::V4, &prefix("10.0.0.0", 8)));
    }
}
