//! Links, addresses, routes and routing rules over rtnetlink (RFC 3549), one request at a time.
//!
//! Acts in the network namespace of the thread that opened it, even when used from another.

mod interfaces;
mod lookup;
mod monitor;
pub mod policy;
mod request;

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

pub use self::interfaces::Interface;
pub use self::lookup::{Packet, Way};
pub use self::monitor::Monitor;
use self::request::Connection;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct NetlinkError {
    /// What was tried.
    pub action: String,
    /// The kernel's answer.
    pub source: io::Error,
}

impl NetlinkError {
    /// The kernel's error number, when the answer had one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Whether a right is missing: CAP_NET_ADMIN in this network namespace.
    pub fn is_permission_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
}

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkInfo {
    /// Its index, which never changes.
    pub index: u32,
    /// Bytes of the longest IP packet.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is switched on and there is a carrier.
    pub running: bool,
    /// Its name, which may change.
    pub name: String,
    /// Bytes of the longest super-packet that it is given; unknown to old kernels.
    pub gso_max_size: Option<u32>,
    /// Its hardware address, where it has one of Ethernet's form that is not all zero.
    pub mac: Option<[u8; 6]>,
}

/// An entry of the routing table `main`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteInfo {
    /// The network; the unspecified address for the default route.
    pub destination: IpAddr,
    /// Its prefix length.
    pub prefix: u8,
    /// The next hop, where there is one.
    pub gateway: Option<IpAddr>,
    /// The interface, where there is just one.
    pub index: Option<u32>,
    /// The metric: lower is preferred.
    pub metric: Option<u32>,
}

/// A connection to the kernel.
#[derive(Debug)]
pub struct Netlink {
    connection: Connection,
}

impl Netlink {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`NetlinkError`], as all methods.
    pub fn open() -> Result<Self, NetlinkError> {
        let connection = Connection::open()
            .map_err(|source| NetlinkError { action: "open rtnetlink".to_owned(), source })?;
        Ok(Self { connection })
    }

    /// The interface `name`; `None` when there is none.
    pub fn link(&mut self, name: &str) -> Result<Option<LinkInfo>, NetlinkError> {
        Ok(self.links()?.into_iter().find(|link| link.name == name))
    }

    /// All interfaces.
    pub fn links(&mut self) -> Result<Vec<LinkInfo>, NetlinkError> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.dump("list the interfaces", request)?;
        let links = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(link_info(link)),
            _ => None,
        });
        Ok(links.collect())
    }

    /// All addresses: index of the interface, address and prefix length.
    pub fn addresses(&mut self) -> Result<Vec<(u32, IpAddr, u8)>, NetlinkError> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self.dump("list the addresses", request)?;
        let addresses = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewAddress(address) => address_info(&address),
            _ => None,
        });
        Ok(addresses.collect())
    }

    /// The unicast routes of the table `main`, both families.
    pub fn routes(&mut self) -> Result<Vec<RouteInfo>, NetlinkError> {
        let routes = self.route_messages()?;
        let unicast = routes.iter().filter(|route| route.header.kind == RouteType::Unicast);
        Ok(unicast.filter_map(route_info).collect())
    }

    /// Switches the interface on.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut link = link_message(index);
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.change(format!("set interface {index} up"), RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Switches the interface off.
    pub fn set_down(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut link = link_message(index);
        link.header.change_mask = LinkFlags::Up;
        self.change(format!("set interface {index} down"), RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Sets the length of the interface's longest IP packet, in bytes.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        let mut link = link_message(index);
        link.attributes.push(LinkAttribute::Mtu(mtu));
        let action = format!("set the MTU of interface {index} to {mtu}");
        self.change(action, RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Sets the length of the longest super-packet that the interface is given, in bytes. Old
    /// kernels ignore or refuse it, which costs speed only.
    pub fn set_gso_max_size(&mut self, index: u32, bytes: u32) -> Result<(), NetlinkError> {
        let mut link = link_message(index);
        link.attributes.push(LinkAttribute::GsoMaxSize(bytes));
        let action = format!("set gso_max_size of interface {index} to {bytes}");
        self.change(action, RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Gives the interface an address. IPv6 addresses are usable at once, without duplicate
    /// address detection: a TUN interface has no neighbours.
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = address_message(index, address, prefix);
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        self.new_address(message, address, prefix)
    }

    /// Gives an interface that has neighbours an address, with duplicate address detection. The
    /// address has the number `protocol`, where the kernel keeps it (since Linux 5.18).
    pub fn add_lan_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
        protocol: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = address_message(index, address, prefix);
        message.attributes.push(AddressAttribute::Protocol(protocol.into()));
        self.new_address(message, address, prefix)
    }

    fn new_address(
        &mut self,
        message: AddressMessage,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let index = message.header.index;
        let action = format!("add the address {address}/{prefix} to interface {index}");
        let request = RouteNetlinkMessage::NewAddress(message);
        self.change(action, request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Takes an address from the interface.
    pub fn remove_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let message = address_message(index, address, prefix);
        let action = format!("remove the address {address}/{prefix} from interface {index}");
        self.change(action, RouteNetlinkMessage::DelAddress(message), 0)
    }

    /// Routes the network `destination/prefix` into the interface, in the table `main`.
    pub fn add_route(
        &mut self,
        index: u32,
        destination: IpAddr,
        prefix: u8,
        metric: Option<u32>,
    ) -> Result<(), NetlinkError> {
        let action = format!("add a route to {destination}/{prefix} through interface {index}");
        let request = RouteNetlinkMessage::NewRoute(route(index, destination, prefix, metric));
        self.change(action, request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes a route that [`Self::add_route`] added.
    pub fn remove_route(
        &mut self,
        index: u32,
        destination: IpAddr,
        prefix: u8,
        metric: Option<u32>,
    ) -> Result<(), NetlinkError> {
        let action =
            format!("remove the route to {destination}/{prefix} through interface {index}");
        let request = RouteNetlinkMessage::DelRoute(route(index, destination, prefix, metric));
        self.change(action, request, 0)
    }

    fn dump(
        &mut self,
        action: &str,
        request: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.connection
            .dump(request)
            .map_err(|source| NetlinkError { action: action.to_owned(), source })
    }

    fn ask(
        &mut self,
        action: String,
        request: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.connection.ask(request).map_err(|source| NetlinkError { action, source })
    }

    fn change(
        &mut self,
        action: String,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        self.connection.change(request, flags).map_err(|source| NetlinkError { action, source })
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn address_message(index: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.index = index;
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    message
}

fn link_message(index: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link
}

/// A route of the table `main` into an interface.
fn route(index: u32, destination: IpAddr, prefix: u8, metric: Option<u32>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family(destination),
        destination_prefix_length: prefix,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: if destination.is_ipv4() { RouteScope::Link } else { RouteScope::Universe },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Oif(index)];
    if prefix > 0 {
        message.attributes.push(RouteAttribute::Destination(destination.into()));
    }
    message.attributes.extend(metric.map(RouteAttribute::Priority));
    message
}

fn link_info(link: LinkMessage) -> LinkInfo {
    let flags = link.header.flags;
    let mut info = LinkInfo {
        index: link.header.index,
        mtu: 0,
        up: flags.contains(LinkFlags::Up),
        running: flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
        name: String::new(),
        gso_max_size: None,
        mac: None,
    };
    for attribute in link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => info.name = name,
            LinkAttribute::Mtu(mtu) => info.mtu = mtu,
            LinkAttribute::GsoMaxSize(bytes) => info.gso_max_size = Some(bytes),
            LinkAttribute::Address(octets) => {
                info.mac = octets.try_into().ok().filter(|mac| *mac != [0; 6]);
            }
            _ => {}
        }
    }
    info
}

/// On a point-to-point interface `Address` is the other end's, and `Local` this one's.
fn address_info(message: &AddressMessage) -> Option<(u32, IpAddr, u8)> {
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let address = local.or_else(|| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })?;
    Some((message.header.index, address, message.header.prefix_len))
}

/// `None` for a route of another table.
fn route_info(message: &RouteMessage) -> Option<RouteInfo> {
    let header = &message.header;
    let unspecified = match header.address_family {
        AddressFamily::Inet => IpAddr::from([0u8; 4]),
        AddressFamily::Inet6 => IpAddr::from([0u8; 16]),
        _ => return None,
    };
    let mut table = u32::from(header.table);
    let mut info = RouteInfo {
        destination: unspecified,
        prefix: header.destination_prefix_length,
        gateway: None,
        index: None,
        metric: None,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => info.destination = ip(address)?,
            RouteAttribute::Gateway(address) => info.gateway = ip(address),
            RouteAttribute::Oif(index) => info.index = Some(*index),
            RouteAttribute::Priority(metric) => info.metric = Some(*metric),
            RouteAttribute::Table(id) => table = *id,
            _ => {}
        }
    }
    (table == u32::from(RouteHeader::RT_TABLE_MAIN)).then_some(info)
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}
