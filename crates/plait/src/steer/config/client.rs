//! `[[client]]` and `[[client.attachment]]`: hosts without plait and the ways to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plait_proto::steer::Addresses;
use plait_toml::{Problem, Section};

use crate::config::{Located, interface_name, line_of};

/// Longest name of a client or an attachment, in bytes: a column of `plait status`.
const NAME_BYTES_MAX: usize = 32;

/// One `[[client]]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Client {
    /// The section's line.
    pub(crate) line: usize,
    /// Name for status and logs.
    pub(crate) name: String,
    /// The primary addresses: those the world sends to.
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
    let client = Client {
        line: line_of(section.place()),
        name: name(&mut section, "name = \"phone\""),
        address: addresses(&mut section),
        attachments: section.many("attachment").into_iter().map(attachment).collect(),
    };
    section.finish();
    client
}

fn attachment(mut section: Section<'_>) -> Attachment {
    let interface = section.parsed("interface", interface_name);
    let attachment = Attachment {
        line: line_of(section.place()),
        name: name(&mut section, "name = \"wifi\""),
        address: addresses(&mut section),
        interface: interface.map(|name| Located::option(&section, "interface", name)),
        gateway: gateway(&mut section),
        weight: section.integer("weight", (1, 65_535), "").unwrap_or(1),
        price: section.integer("price", (0, 255), "").unwrap_or(0),
    };
    section.finish();
    attachment
}

/// A name; empty when a problem was noted.
fn name(section: &mut Section<'_>, example: &'static str) -> String {
    let name = section.required_text("name", example).unwrap_or_default();
    if name.len() > NAME_BYTES_MAX {
        let length = name.len();
        let text = format!("\"{name}\" is {length} bytes long, the limit is {NAME_BYTES_MAX}");
        section.problem("name", Problem::new(text, "choose a shorter name"));
    }
    // Names stand in comments of a script that others run.
    if name.chars().any(char::is_control) {
        section.problem("name", Problem::new("not printable", "use letters, digits and spaces"));
    }
    name
}

fn addresses(section: &mut Section<'_>) -> Addresses {
    let v4 = section.parsed("address", |text| {
        text.parse::<Ipv4Addr>().map_err(|_| {
            let is_v6 = text.parse::<Ipv6Addr>().is_ok();
            let help = if is_v6 { "write it as `address6`" } else { "write it as in \"10.1.0.1\"" };
            Problem::new(format!("\"{text}\" is not an IPv4 address"), help)
        })
    });
    let v6 = section.parsed("address6", |text| {
        text.parse::<Ipv6Addr>().map_err(|_| {
            let help = "write it as in \"2001:db8::1\"";
            Problem::new(format!("\"{text}\" is not an IPv6 address"), help)
        })
    });
    Addresses { v4, v6 }
}

/// One next hop of each family at most.
fn gateway(section: &mut Section<'_>) -> Addresses {
    let found = section.parsed_texts("gateway", |text| {
        text.parse::<IpAddr>().map_err(|_| {
            let help = "write the next hop as in \"10.4.0.2\"";
            Problem::new(format!("\"{text}\" is not an IP address"), help)
        })
    });
    let mut gateway = Addresses::NONE;
    for (address, place) in found {
        let first = gateway.like(address).is_none();
        match address {
            IpAddr::V4(v4) => gateway.v4 = Some(v4),
            IpAddr::V6(v6) => gateway.v6 = Some(v6),
        }
        if !first {
            let help = "keep one IPv4 and one IPv6 address at most";
            section.problem_at(&place, "gateway", Problem::new("a second one of its family", help));
        }
    }
    gateway
}
