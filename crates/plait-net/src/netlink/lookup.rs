//! Looks routes up, without changing them.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkFlags;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};

use super::{Netlink, NetlinkError, RouteInfo, family, link_message, route_info};

/// The kernel's errors that mean "no route": for a blackhole, a prohibition, and two for a missing
/// route (ip-route(8)).
const NO_WAY: [i32; 4] = [libc::EINVAL, libc::EACCES, libc::ENETUNREACH, libc::EHOSTUNREACH];
/// An index that no interface has.
const NO_INTERFACE: u32 = i32::MAX as u32;

/// A packet whose route is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where it goes.
    pub destination: IpAddr,
    /// The address it comes from, when that is decided.
    pub source: Option<IpAddr>,
    /// The interface that its socket is bound to, if any.
    pub interface: Option<u32>,
}

/// The route that a packet takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The interface, where there is just one.
    pub index: Option<u32>,
    /// Its prefix length.
    pub prefix: u8,
    /// Whether it stands in the table `main`.
    pub in_main: bool,
}

impl Netlink {
    /// The route that a packet of this machine would take now, by all rules and tables; `None` when
    /// there is none. Nor has a destination that the kernel would try on the wire only because a
    /// socket is bound to the interface.
    ///
    /// # Errors
    /// [`NetlinkError`]
    pub fn way(&mut self, packet: &Packet) -> Result<Option<Way>, NetlinkError> {
        let bits = if packet.destination.is_ipv4() { 32 } else { 128 };
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(packet.destination),
            destination_prefix_length: bits,
            source_prefix_length: if packet.source.is_some() { bits } else { 0 },
            flags: RouteFlags::FibMatch,
            ..RouteHeader::default()
        };
        message.attributes = vec![RouteAttribute::Destination(packet.destination.into())];
        message
            .attributes
            .extend(packet.source.map(|source| RouteAttribute::Source(source.into())));
        message.attributes.extend(packet.interface.map(RouteAttribute::Oif));
        let action = format!("look up the route to {}", packet.destination);
        match self.ask(action, RouteNetlinkMessage::GetRoute(message)) {
            Ok(answers) => Ok(answers.into_iter().find_map(|answer| match answer {
                RouteNetlinkMessage::NewRoute(route) => way_info(&route),
                _ => None,
            })),
            Err(error) if error.errno().is_some_and(|code| NO_WAY.contains(&code)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All routes of the table `main`, also those that lead nowhere, such as `unreachable` ones:
    /// what is in the way of a new route. Routes for a single type of service are left out.
    ///
    /// # Errors
    /// [`NetlinkError`]
    pub fn routes_of_any_kind(&mut self) -> Result<Vec<RouteInfo>, NetlinkError> {
        let routes = self.route_messages()?;
        let plain = routes.iter().filter(|route| route.header.tos == 0);
        Ok(plain.filter_map(route_info).collect())
    }

    /// The interfaces whose default route a router advertised (RFC 4861 section 6.3.4).
    ///
    /// # Errors
    /// [`NetlinkError`]
    pub fn advertised_defaults(&mut self) -> Result<Vec<u32>, NetlinkError> {
        let routes = self.route_messages()?;
        let advertised = routes.iter().filter(|route| route.header.protocol == RouteProtocol::Ra);
        let defaults = advertised.filter_map(route_info).filter(|route| route.prefix == 0);
        Ok(defaults.filter_map(|route| route.index).collect())
    }

    /// Whether this program may change anything in this network namespace. It requests a change
    /// that cannot succeed; the kernel checks the right first.
    ///
    /// # Errors
    /// None known.
    pub fn may_change(&mut self) -> Result<bool, NetlinkError> {
        let mut link = link_message(NO_INTERFACE);
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        let request = RouteNetlinkMessage::SetLink(link);
        match self.change("set an interface up that does not exist".into(), request, 0) {
            Err(error) if error.is_permission_denied() => Ok(false),
            Err(error) if error.errno().is_none() => Err(error),
            _ => Ok(true),
        }
    }

    pub(super) fn route_messages(&mut self) -> Result<Vec<RouteMessage>, NetlinkError> {
        let request = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let answers = self.dump("list the routes", request)?;
        let routes = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        Ok(routes.collect())
    }
}

fn way_info(message: &RouteMessage) -> Option<Way> {
    let leads = matches!(message.header.kind, RouteType::Unicast | RouteType::Local);
    let prefix = message.header.destination_prefix_length;
    let mut way = Way { index: None, prefix, in_main: false };
    let mut table = u32::from(message.header.table);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => way.index = Some(*index),
            RouteAttribute::Table(id) => table = *id,
            _ => {}
        }
    }
    // Local addresses are reported in the table `main` too as long as no rule was added.
    let is_unicast = message.header.kind == RouteType::Unicast;
    way.in_main = is_unicast && table == u32::from(RouteHeader::RT_TABLE_MAIN);
    leads.then_some(way)
}
