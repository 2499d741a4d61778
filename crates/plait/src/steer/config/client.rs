//! `[[client]]` and `[[client.attachment]]`: hosts without plait and their attachments.

use std::net::IpAddr;

use plait_proto::steer::Addresses;
use plait_toml::{Section, node};

use crate::config::{Located, line_of};

/// One `[[client]]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Client {
    /// The section's line.
    pub(crate) line: usize,
    /// Name for status and logs.
    pub(crate) name: String,
    /// The primary addresses: those known to the outside.
    pub(crate) address: Addresses,
    /// The attachments; the first is the primary.
    pub(crate) attachments: Vec<Attachment>,
}

/// One `[[client.attachment]]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Attachment {
    /// The section's line.
    pub(crate) line: usize,
    /// Name for status and logs.
    pub(crate) name: String,
    /// The client's addresses on it; none on the primary.
    pub(crate) address: Addresses,
    /// The node's interface through which it is reached.
    pub(crate) interface: Option<Located<String>>,
    /// The next hops over which it is reached.
    pub(crate) gateway: Addresses,
    /// Static weight for the policy `fixed`.
    pub(crate) weight: u16,
    /// Price class; cheapest first.
    pub(crate) price: u8,
}

/// Reads one `[[client]]`.
pub(super) fn read(mut section: Section<'_>) -> Client {
    let (said, attachments) = node::read_client(&mut section);
    let attachments = attachments.into_iter();
    let client = Client {
        line: line_of(section.place()),
        name: said.name,
        address: said.address,
        attachments: attachments.map(|(said, section)| attachment(said, section)).collect(),
    };
    section.finish();
    client
}

fn attachment(said: node::Attachment, section: Section<'_>) -> Attachment {
    let attachment = Attachment {
        line: line_of(section.place()),
        interface: Located::maybe(&section, "interface", said.interface),
        name: said.name,
        address: said.address,
        gateway: said.gateway.into_iter().fold(Addresses::NONE, with),
        weight: said.weight,
        price: said.price,
    };
    section.finish();
    attachment
}

fn with(addresses: Addresses, address: IpAddr) -> Addresses {
    match address {
        IpAddr::V4(v4) => Addresses { v4: Some(v4), ..addresses },
        IpAddr::V6(v6) => Addresses { v6: Some(v6), ..addresses },
    }
}
