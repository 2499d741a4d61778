//! What the interfaces are and which addresses can be used, read in one go.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};

use super::{Netlink, NetlinkError, address_info};

/// An interface with its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its index. An interface that is made anew has another.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its hardware address, if it has one of Ethernet's form.
    pub mac: Option<[u8; 6]>,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is switched on and there is a carrier.
    pub running: bool,
    /// The addresses that a socket can be bound to now: those of IPv6 that are still being checked
    /// for duplicates (RFC 4862 §5.4), and those that failed the check, are left out.
    pub addresses: Vec<IpAddr>,
}

impl Netlink {
    /// All interfaces with their usable addresses.
    ///
    /// # Errors
    /// [`NetlinkError`]
    pub fn interfaces(&mut self) -> Result<Vec<Interface>, NetlinkError> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self.dump("list the addresses", request)?;
        let usable = |answer| match answer {
            RouteNetlinkMessage::NewAddress(address) if is_usable(&address) => {
                address_info(&address)
            }
            _ => None,
        };
        let addresses: Vec<_> = answers.into_iter().filter_map(usable).collect();
        let links = self.links()?.into_iter().map(|link| Interface {
            index: link.index,
            mac: link.mac,
            up: link.up,
            running: link.running,
            addresses: addresses
                .iter()
                .filter(|(index, ..)| *index == link.index)
                .map(|(_, address, _)| *address)
                .collect(),
            name: link.name,
        });
        Ok(links.collect())
    }
}

fn is_usable(message: &AddressMessage) -> bool {
    let unusable = AddressFlags::Tentative | AddressFlags::Dadfailed;
    let optimistic = |flags: AddressFlags| flags.contains(AddressFlags::Optimistic);
    message.attributes.iter().all(|attribute| match attribute {
        AddressAttribute::Flags(flags) => !flags.intersects(unusable) || optimistic(*flags),
        _ => true,
    })
}
