//! A scenario's links, hosts and addresses as namespaces and devices.
//!
//! ```text
//! customer ═══ link0, link1, … (emulated) ═══ provider ─── server
//! ```
//!
//! The customer's gateway and its host are one namespace; the wire to the server is a veth pair, or
//! one more emulated link when it has a delay.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use plait_net::netns::NetNs;
use plait_net::tun::Tun;
use plait_proto::units::Rate;
use plait_sim::link::{Link, LinkConfig, Room};
use plait_sim::prng::Prng;
use plait_sim::scenario::app::{Direction, Via};
use plait_sim::scenario::{Action, AppSpec, LinkSpec, Scenario};
use plait_sim::world::air::Air;
use plait_sim::world::link_config;

use super::plan::{HOST_MTU_BYTES, set_receiver, set_recovery};
use super::player::{self, silence};
use crate::emulator::{Cargo, Emulator, Epoch, Strand, StrandView, Way};
use crate::topology::{
    Interface, LinkEnds, PROVIDER_V4, SERVER_BARE_V4, SERVER_V4, TUN_QUEUE_PACKETS, address_server,
    allow_mptcp, choose_link_by_source, connect_server, enable_mptcp, inner_v4, ip_batch, link_v4,
    new_netns,
};

/// Rate of a wire with a delay: that of a server's port. Far above what the scenarios' links carry,
/// and low enough for a thread to release each packet of a burst on time: a proxy takes in
/// megabytes at the wire's rate.
const WIRE_RATE_MBIT: u64 = 1000;
const WIRE_QUEUE_BYTES: u64 = 64 << 20;

/// The name of a link's devices: the link's own name may not be valid for a device.
pub(crate) fn device_of(scenario: &Scenario, name: &str) -> String {
    device(place_of(scenario, name))
}

/// The customer's address on a link.
pub(crate) fn customer_address(scenario: &Scenario, name: &str) -> Ipv4Addr {
    link_v4(number(place_of(scenario, name)), 1)
}

/// A link's index among the scenario's.
pub(crate) fn place_of(scenario: &Scenario, name: &str) -> usize {
    let at = scenario.links.keys().position(|known| known == name);
    at.expect("a checked scenario names links that exist")
}

fn device(at: usize) -> String {
    format!("link{at}")
}

/// N of the network 10.N.0.0/30 of link number `at`; 10.3.0.0/24 is the server's.
fn number(at: usize) -> u8 {
    let number = if at < 2 { at + 1 } else { at + 2 };
    u8::try_from(number).expect("a scenario that netns takes has at most 64 links")
}

/// A scenario's network, running.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) epoch: Epoch,
    // Dropped first: links stop before the namespaces of their devices vanish.
    emulators: Vec<Emulator>,
    wire: Option<Emulator>,
    /// For each link, its emulator and its strand in it.
    places: Vec<(usize, usize)>,
    pub(crate) customer: NetNs,
    pub(crate) provider: NetNs,
    pub(crate) server: NetNs,
}

/// Source and destination of an application's data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) sender: (&'a NetNs, Ipv4Addr),
    pub(super) receiver: (&'a NetNs, Ipv4Addr),
}

impl Site {
    pub(crate) fn build(scenario: &Scenario, prng: &mut Prng) -> Result<Self> {
        let [customer, provider, server] =
            ["plait-customer", "plait-provider", "plait-server"].map(new_netns);
        let (customer, provider, server) = (customer?, provider?, server?);
        let epoch = Epoch::started(silence(scenario));
        let wire = join_server(scenario, &provider, &server, epoch)?;
        let mut site = Self {
            epoch,
            emulators: Vec::new(),
            wire,
            places: Vec::new(),
            customer,
            provider,
            server,
        };
        site.join_links(scenario, prng)?;
        set_recovery(scenario, Direction::Down, &site.server)?;
        set_recovery(scenario, Direction::Up, &site.customer)?;
        set_receiver(scenario, Direction::Down, &site.customer)?;
        set_receiver(scenario, Direction::Up, &site.server)?;
        Ok(site)
    }

    /// Makes all links: those that share a link share an emulator.
    fn join_links(&mut self, scenario: &Scenario, prng: &mut Prng) -> Result<()> {
        let specs: Vec<&LinkSpec> = scenario.links.values().collect();
        let devices: Vec<String> = (0..specs.len()).map(device).collect();
        let through = through(scenario);
        let ends: Vec<LinkEnds<'_>> = specs
            .iter()
            .enumerate()
            .map(|(at, spec)| {
                let shared = through[at].map_or(spec.mtu, |shared| specs[shared].mtu);
                let mtu = spec.mtu.min(shared).into();
                LinkEnds { device: &devices[at], number: number(at), mtu }
            })
            .collect();
        self.places = vec![(0, 0); specs.len()];
        let mut media: Vec<Air<Cargo>> = Air::all(scenario, prng);
        let on_medium: Vec<Option<usize>> = (0..specs.len())
            .map(|at| media.iter().position(|air| air.radio_of(at).is_some()))
            .collect();
        for group in groups(&through, &on_medium) {
            let emulator = self.emulators.len();
            let mut strands = Vec::new();
            let is_its = |air: &mut Air<Cargo>| air.radio_of(group[0]).is_some();
            let air = media.extract_if(.., is_its).next();
            for (strand, &at) in group.iter().enumerate() {
                self.places[at] = (emulator, strand);
                let (down, up) = (&specs[at].down, &specs[at].up);
                strands.push(Strand {
                    customer: ends[at].open(&self.customer, 1)?,
                    provider: ends[at].open(&self.provider, 2)?,
                    down: link_config::of_way(specs[at], down, prng.next_u64()),
                    up: link_config::of_way(specs[at], up, prng.next_u64()),
                    radio: air.as_ref().and_then(|air| air.radio_of(at)),
                    through: through[at]
                        .and_then(|shared| group.iter().position(|other| *other == shared)),
                });
            }
            self.emulators.push(Emulator::join(strands, air, self.epoch)?);
        }
        choose_link_by_source(&self.customer, &ends)
    }

    /// The emulators, including that of the wire to the server.
    pub(crate) fn emulators(&self) -> impl Iterator<Item = &Emulator> {
        self.emulators.iter().chain(&self.wire)
    }

    pub(crate) fn observe(&self, link: usize, way: Way) -> StrandView {
        let (emulator, strand) = self.places[link];
        self.emulators[emulator].observe(strand, way)
    }

    /// Starts the links' timelines of the scenario, which starts at `zero`.
    pub(super) fn begin(
        &self,
        scenario: &Scenario,
        zero: plait_proto::time::Instant,
    ) -> Result<()> {
        for ((name, spec), &(emulator, strand)) in scenario.links.iter().zip(&self.places) {
            for (way, spec) in [(Way::Down, &spec.down), (Way::Up, &spec.up)] {
                let schedule = link_config::LinkSchedule::new(name, spec, zero)?;
                self.emulators[emulator].begin(strand, way, schedule);
            }
        }
        Ok(())
    }

    /// Lets connections of the kernel's MPTCP use every link, from either end. A player's begin
    /// over its own primary link, and the provider's proxy is their end.
    pub(crate) fn enable_mptcp(&self, scenario: &Scenario) -> Result<()> {
        let end =
            |name: &String| (customer_address(scenario, name).into(), device_of(scenario, name));
        let video = player::videos(scenario).find(|(app, _)| app.via == Via::Mptcp);
        let primary = video.and_then(|(_, video)| video.mptcp.as_ref()).map(|it| &it.primary);
        let first = primary.or(scenario.links.keys().next());
        let others = scenario.links.keys().filter(|name| Some(*name) != first);
        enable_mptcp(&self.customer, &self.server, others.map(end))?;
        let Some(primary) = primary else { return Ok(()) };
        allow_mptcp(&self.provider)?;
        set_recovery(scenario, Direction::Down, &self.provider)?;
        self.lead(scenario, PROVIDER_V4, primary)
    }

    /// Leads the customer's packets for an address over a link, whoever sends them.
    pub(super) fn lead(&self, scenario: &Scenario, to: Ipv4Addr, link: &str) -> Result<()> {
        let place = place_of(scenario, link);
        let (device, over) = (device(place), link_v4(number(place), 2));
        ip_batch(&self.customer, "", &[format!("route add {to}/32 via {over} dev {device}")])
    }

    /// The emulator of a link.
    pub(super) fn emulator(&self, scenario: &Scenario, name: &str) -> &Emulator {
        &self.emulators[self.places[place_of(scenario, name)].0]
    }

    /// Changes the configuration of one direction of a link.
    pub(super) fn change(
        &self,
        scenario: &Scenario,
        name: &str,
        way: Way,
        change: impl FnOnce(LinkConfig) -> LinkConfig,
    ) {
        let (emulator, strand) = self.places[place_of(scenario, name)];
        self.emulators[emulator].change(strand, way, change);
    }

    /// Lets an event happen to the medium that it concerns.
    pub(super) fn happen_on_air(&self, action: &Action) {
        self.emulators.iter().for_each(|emulator| emulator.happen_on_air(action));
    }

    /// Runs an action on the customer's interface of a link.
    pub(super) fn interface(
        &self,
        scenario: &Scenario,
        name: &str,
        work: impl FnOnce(Interface<'_>) -> Result<()>,
    ) -> Result<()> {
        let place = place_of(scenario, name);
        let (device, mtu) = (device(place), scenario.links[name].mtu.into());
        work(Interface { device: &device, number: number(place), place, mtu })
    }

    /// Hosts and addresses of an application.
    pub(super) fn ends(&self, scenario: &Scenario, app: &AppSpec) -> Ends<'_> {
        let (customer, server) = match &app.via {
            Via::Bond => (inner_v4(2), SERVER_V4),
            Via::Steer => (customer_address(scenario, primary(scenario)), SERVER_BARE_V4),
            Via::Mptcp => (customer_address(scenario, first(scenario)), SERVER_BARE_V4),
            Via::Link(name) => (customer_address(scenario, name), SERVER_BARE_V4),
        };
        let (customer, server) = ((&self.customer, customer), (&self.server, server));
        match app.direction {
            Direction::Down => Ends { sender: server, receiver: customer },
            Direction::Up => Ends { sender: customer, receiver: server },
        }
    }
}

/// The one link on which the customer speaks to the server, if it is one: also a node's client
/// speaks on its own.
pub(super) fn only_link<'a>(scenario: &'a Scenario, via: &'a Via) -> Option<&'a str> {
    match via {
        Via::Link(name) => Some(name),
        Via::Steer => Some(primary(scenario)),
        Via::Bond | Via::Mptcp => None,
    }
}

/// The steering node's first link, on which its client has its public address.
fn primary(scenario: &Scenario) -> &str {
    let steer = scenario.steer.as_ref();
    let links = steer.map(|steer| &steer.links).and_then(|links| links.first());
    links.expect("a checked scenario steers over links where it says so")
}

/// The link over which the kernel's MPTCP opens connections.
fn first(scenario: &Scenario) -> &str {
    scenario.links.keys().next().expect("a checked scenario has a link")
}

/// For each link, the one that its packets also cross.
fn through(scenario: &Scenario) -> Vec<Option<usize>> {
    let at = |name: &String| scenario.links.keys().position(|known| known == name);
    scenario.links.values().map(|link| link.through.as_ref().and_then(at)).collect()
}

/// Links grouped by the one that they share, or by their medium; a link that shares none is its own
/// group.
fn groups(through: &[Option<usize>], media: &[Option<usize>]) -> Vec<Vec<usize>> {
    let is_first = |at: &usize| media[*at].is_none() || !media[..*at].contains(&media[*at]);
    let heads = (0..through.len()).filter(|at| through[*at].is_none()).filter(is_first);
    heads
        .map(|head| {
            let beside = |at: &usize| *at != head && media[*at].is_some();
            let same_medium = |at: &usize| beside(at) && media[*at] == media[head];
            let behind = |at: &usize| through[*at] == Some(head) || same_medium(at);
            [head].into_iter().chain((0..through.len()).filter(behind)).collect()
        })
        .collect()
}

/// Joins provider and server; returns the emulated link if the wire has a delay.
fn join_server(
    scenario: &Scenario,
    provider: &NetNs,
    server: &NetNs,
    epoch: Epoch,
) -> Result<Option<Emulator>> {
    if scenario.server_rtt.is_zero() {
        connect_server(provider, server)?;
        return Ok(None);
    }
    let config = LinkConfig {
        queue: Room::Bytes(WIRE_QUEUE_BYTES),
        ..LinkConfig::new(Rate::from_mbit(WIRE_RATE_MBIT), scenario.server_rtt / 2)
    };
    let open = |netns: &NetNs, device: &'static str| -> Result<Tun> {
        let tun = netns.run_in(|| Tun::open(device, false))??;
        let line =
            format!("link set dev {device} mtu {HOST_MTU_BYTES} txqueuelen {TUN_QUEUE_PACKETS}");
        ip_batch(netns, "", &[line])?;
        Ok(tun)
    };
    let (at_server, at_provider) = (open(server, "provider")?, open(provider, "server")?);
    address_server(provider, server)?;
    // A wire without jitter and loss draws no random numbers.
    let (up, down) = (Link::new(config, 0), Link::new(config, 0));
    let strand =
        Strand { customer: at_provider, provider: at_server, up, down, through: None, radio: None };
    Ok(Some(Emulator::join(vec![strand], None, epoch)?))
}

/// Estimated time to set up a network and to start its gateways.
pub(super) const SET_UP: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_behind_one_bottleneck_are_one_group() {
        let alone = [None; 4];
        assert_eq!(groups(&[Some(3), None, Some(3), None], &alone), [vec![1], vec![3, 0, 2]]);
    }

    #[test]
    fn links_on_one_medium_are_one_group() {
        let media = [Some(1), None, Some(0), Some(1), Some(1)];
        assert_eq!(groups(&[None; 5], &media), [vec![0, 3, 4], vec![1], vec![2]]);
    }

    #[test]
    fn no_link_has_the_servers_network() {
        let numbers: Vec<u8> = (0..4).map(number).collect();
        assert_eq!(numbers, [1, 2, 4, 5]);
    }
}
