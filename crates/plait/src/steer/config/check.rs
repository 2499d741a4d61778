//! Finds conflicts in a steering node's configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plait_proto::steer::Addresses;
use plait_toml::{Place, Problem, Problems};

use super::{Attachment, CLIENTS_MAX, Client, SteerConfig};

/// Attachments that a client may have.
const ATTACHMENTS_MAX: usize = 16;

/// Options that contradict each other.
#[derive(Debug, thiserror::Error)]
enum Conflict {
    #[error("no client to steer for")]
    NoClient,
    #[error("more than {limit} of them")]
    TooMany { limit: usize },
    #[error("the client of line {other_line} is called \"{name}\" too")]
    SameClient { name: String, other_line: usize },
    #[error("the attachment of line {other_line} is called \"{name}\" too")]
    SameAttachment { name: String, other_line: usize },
    #[error("the client has no primary address")]
    NoAddress,
    #[error("the client has no attachment")]
    NoAttachment,
    #[error("the first attachment is the primary, whose packets keep the client's own address")]
    PrimaryAddress,
    #[error("the client's address on this attachment is missing")]
    NoAttachmentAddress,
    #[error("the client has no {family} primary address to rewrite to {address}")]
    NoSuchFamily { family: &'static str, address: IpAddr },
    #[error("{address} is used in line {other_line} too")]
    SameAddress { address: IpAddr, other_line: usize },
    #[error("{address} is not the address of one host")]
    NotAHost { address: IpAddr },
    #[error("{gateway} leads to no address of this attachment: there is no {family} one")]
    IdleGateway { family: &'static str, gateway: IpAddr },
    #[error("{gateway} is a link-local address, which needs its interface")]
    LinkLocalGateway { gateway: IpAddr },
    #[error("{name} is the node's own TUN device")]
    OwnDevice { name: String },
    #[error("{mtu} bytes are too few for IPv6")]
    MtuTooSmallForIpv6 { mtu: u16 },
    #[error("{0}")]
    Refused(String),
}

impl Conflict {
    fn help(&self) -> String {
        match self {
            Self::NoClient => {
                "add a [[client]] with `name`, `address` and its [[client.attachment]]s".into()
            }
            Self::TooMany { limit } => format!("keep at most {limit}"),
            Self::SameClient { .. } => "give each client its own `name`".into(),
            Self::SameAttachment { .. } => "give each attachment of a client its own `name`".into(),
            Self::NoAddress => {
                "add `address = \"10.1.0.1\"`, `address6 = \"2001:db8::1\"` or both".into()
            }
            Self::NoAttachment => {
                "add a [[client.attachment]] for each way to it, the primary first".into()
            }
            Self::PrimaryAddress => {
                "remove it here; the address stands in [[client]], and another attachment comes \
                 after the primary"
                    .into()
            }
            Self::NoAttachmentAddress => {
                "add `address = \"10.2.0.1\"`: the client's own address there, also inside an \
                 IPsec tunnel"
                    .into()
            }
            Self::NoSuchFamily { .. } => {
                "remove it, or give the client a primary address of that family".into()
            }
            Self::SameAddress { .. } => "use each address once".into(),
            Self::NotAHost { .. } => "write the client's own address".into(),
            Self::IdleGateway { .. } => {
                "remove it, or give the attachment an address of that family".into()
            }
            Self::LinkLocalGateway { .. } => {
                "add `interface = \"…\"` with the one that leads to it".into()
            }
            Self::OwnDevice { .. } => "name the interface that leads to the client".into(),
            Self::MtuTooSmallForIpv6 { .. } => {
                "set mtu to 1280 or more, or remove the IPv6 addresses".into()
            }
            Self::Refused(_) => "correct the options that it names".into(),
        }
    }
}

impl From<Conflict> for Problem {
    fn from(conflict: Conflict) -> Self {
        Self::new(conflict.to_string(), conflict.help())
    }
}

/// Notes conflicts.
pub(super) fn check(problems: &Problems, config: &SteerConfig) {
    let check = Check { problems, config };
    check.clients();
    check.addresses();
    check.mtu();
    // The protocol's own checks, for conflicts not found above.
    if problems.none_found()
        && let Err(error) = config.node_config().check()
    {
        check.note(config.node.line, "[node]", Conflict::Refused(error.to_string()));
    }
}

struct Check<'a> {
    problems: &'a Problems,
    config: &'a SteerConfig,
}

impl Check<'_> {
    fn note(&self, line: usize, option: &str, conflict: Conflict) {
        let place = Place::Line(self.config.file.as_path().into(), line);
        self.problems.add(&place, option, conflict);
    }

    fn clients(&self) {
        let clients = &self.config.clients;
        if clients.is_empty() {
            self.note(self.config.node.line, "[[client]]", Conflict::NoClient);
        }
        if let Some(client) = clients.get(CLIENTS_MAX) {
            self.note(client.line, "[[client]]", Conflict::TooMany { limit: CLIENTS_MAX });
        }
        let mut names = BTreeMap::new();
        for client in clients {
            if let Some(other_line) = names.insert(&client.name, client.line) {
                let name = client.name.clone();
                self.note(
                    client.line,
                    "[[client]] name",
                    Conflict::SameClient { name, other_line },
                );
            }
            if client.address.is_empty() {
                self.note(client.line, "[[client]]", Conflict::NoAddress);
            }
            if client.attachments.is_empty() {
                self.note(client.line, "[[client]]", Conflict::NoAttachment);
            }
            if let Some(attachment) = client.attachments.get(ATTACHMENTS_MAX) {
                let limit = ATTACHMENTS_MAX;
                self.note(attachment.line, "[[client.attachment]]", Conflict::TooMany { limit });
            }
            let mut names = BTreeMap::new();
            for (at, attachment) in client.attachments.iter().enumerate() {
                if let Some(other_line) = names.insert(&attachment.name, attachment.line) {
                    let name = attachment.name.clone();
                    let conflict = Conflict::SameAttachment { name, other_line };
                    self.note(attachment.line, "[[client.attachment]] name", conflict);
                }
                self.attachment(client, at == 0, attachment);
            }
        }
    }

    fn attachment(&self, client: &Client, is_primary: bool, attachment: &Attachment) {
        let note = |option: &str, conflict| {
            self.note(attachment.line, &format!("[[client.attachment]]{option}"), conflict);
        };
        match (is_primary, attachment.address.is_empty()) {
            (true, false) => note(" address", Conflict::PrimaryAddress),
            (false, true) => note("", Conflict::NoAttachmentAddress),
            _ => {}
        }
        for address in attachment.address.iter() {
            if !client.address.is_empty() && client.address.like(address).is_none() {
                let family = family(address);
                note(address_option(address), Conflict::NoSuchFamily { family, address });
            }
        }
        let reached = if is_primary { client.address } else { attachment.address };
        for gateway in attachment.gateway.iter() {
            if !reached.is_empty() && reached.like(gateway).is_none() {
                note(" gateway", Conflict::IdleGateway { family: family(gateway), gateway });
            }
            if is_link_local(gateway) && attachment.interface.is_none() {
                note(" gateway", Conflict::LinkLocalGateway { gateway });
            }
        }
        if let Some(interface) = &attachment.interface
            && interface.value == self.config.node.tun
        {
            let name = interface.value.clone();
            let conflict = Conflict::OwnDevice { name };
            self.note(interface.line, "[[client.attachment]] interface", conflict);
        }
    }

    /// Each address may occur only once.
    fn addresses(&self) {
        let mut seen: BTreeMap<IpAddr, usize> = BTreeMap::new();
        let mut take = |line: usize, section: &str, addresses: Addresses| {
            for address in addresses.iter() {
                let option = format!("{section}{}", address_option(address));
                if !is_a_host(address) {
                    self.note(line, &option, Conflict::NotAHost { address });
                }
                if let Some(other_line) = seen.insert(address, line) {
                    self.note(line, &option, Conflict::SameAddress { address, other_line });
                }
            }
        };
        for client in &self.config.clients {
            take(client.line, "[[client]]", client.address);
            for attachment in &client.attachments {
                take(attachment.line, "[[client.attachment]]", attachment.address);
            }
        }
    }

    /// RFC 8200 §5: every link that carries IPv6 carries 1280 bytes.
    fn mtu(&self) {
        const IPV6_MTU_MIN: u16 = 1280;
        let node = &self.config.node;
        let any_v6 = self.config.clients.iter().any(|client| client.address.v6.is_some());
        if let Some(mtu) = node.mtu.filter(|mtu| *mtu < IPV6_MTU_MIN && any_v6) {
            self.note(node.line, "[node] mtu", Conflict::MtuTooSmallForIpv6 { mtu });
        }
    }
}

fn address_option(address: IpAddr) -> &'static str {
    if address.is_ipv4() { " address" } else { " address6" }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Link-local addresses are not routed, loopback addresses never leave the host.
fn is_a_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    let local = is_link_local(address) || address.is_loopback();
    !(address.is_unspecified() || address.is_multicast() || broadcast || local)
}
