//! A network with a steering node:
//!
//! ```text
//! server ─── node ═══ first link, the primary ═══════════ client
//!              ╚═════ second link (colocated) ═══════════╝
//!              └── access ═══ second link (beside) ══════╝
//! ```
//!
//! The client behaves like an ordinary device: it prefers the second link's router, as phones
//! prefer Wi-Fi, and accepts no packets over an interface that is not their return path. So does
//! the node.

use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use plait_proto::dida::DidaConfig;
use plait_proto::steer::Addresses;
use plait_toml::node::{Attachment, Client, Node, NodeFile};

use super::client::{RecipeKind, print_recipe, run_lines};
use super::node::SteerNode;
use crate::emulator::{Emulator, Way};
use crate::measure::Target;
use crate::scratch::Scratch;
use crate::topology::{
    AttachedLink, LinkEnds, LinkSpec, SERVER_V4, SERVER_V6, connect_server, ip_batch, link_v4,
    link_v6, new_netns,
};

/// N of the wire's networks 10.N.0.0/30 and fd00:N::/64 between the node and the access network.
const ACCESS_NUMBER: u8 = 4;

/// How the node reaches the attachments after the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// Directly: the node is part of both access networks.
    Colocated,
    /// Over a routed link.
    Beside,
}

/// Such a network with links, but without a node.
#[derive(Debug)]
pub(crate) struct SteerSite {
    pub(crate) layout: Layout,
    // Dropped first: links stop before the namespaces of their devices vanish.
    pub(crate) links: Vec<AttachedLink>,
    pub(crate) server: NetNs,
    pub(crate) node: NetNs,
    /// The router beside the node, kept with its links.
    _access: Option<NetNs>,
    pub(crate) client: NetNs,
    pub(crate) scratch: Scratch,
}

impl SteerSite {
    /// Builds a network of these links, the primary first.
    pub(crate) fn build(links: &[LinkSpec], layout: Layout) -> Result<Self> {
        let node = new_netns("plait-node")?;
        let server = new_netns("plait-server")?;
        let client = new_netns("plait-client")?;
        for netns in [&node, &client] {
            for of in ["all", "default"] {
                let key = format!("net.ipv4.conf.{of}.rp_filter");
                netns.set_sysctl(&key, "1").with_context(|| format!("cannot set {key}"))?;
            }
        }
        connect_server(&node, &server)?;
        let access = match layout {
            Layout::Colocated => None,
            Layout::Beside => Some(join_access(&node)?),
        };
        let mut attached = Vec::new();
        for (at, spec) in links.iter().enumerate() {
            let number = number(at);
            let ends = LinkEnds { device: spec.name, number, mtu: spec.mtu };
            let provider = match &access {
                Some(access) if at > 0 => access,
                _ => &node,
            };
            let (near, far) = (ends.open(&client, 1)?, ends.open(provider, 2)?);
            let emulator = Emulator::start(near, far, spec.config(), u64::from(number))?;
            attached.push(AttachedLink { spec: *spec, number, emulator });
        }
        let scratch = Scratch::in_memory("steering")?;
        let site = Self { layout, links: attached, server, node, _access: access, client, scratch };
        site.route_client()?;
        Ok(site)
    }

    /// Default routes over all links, later ones preferred.
    fn route_client(&self) -> Result<()> {
        for (at, link) in self.links.iter().enumerate() {
            let (device, metric) = (link.spec.name, 700 - 100 * at);
            let (v4, v6) = (link_v4(link.number, 2), link_v6(link.number, 2));
            let route =
                |via: IpAddr| format!("route add default via {via} dev {device} metric {metric}");
            ip_batch(&self.client, "", &[route(v4.into())])?;
            ip_batch(&self.client, "-6", &[route(v6.into())])?;
        }
        Ok(())
    }

    /// The configuration of a node here, with one client called `phone`.
    pub(crate) fn node_file(&self, node: Node, dida: Option<DidaConfig>) -> NodeFile {
        let both = |link: &AttachedLink| Addresses {
            v4: Some(link_v4(link.number, 1)),
            v6: Some(link_v6(link.number, 1)),
        };
        let attachment = |(at, link): (usize, &AttachedLink)| {
            let gateways = [link_v4(ACCESS_NUMBER, 2).into(), link_v6(ACCESS_NUMBER, 2).into()];
            let is_beside = self.layout == Layout::Beside && at > 0;
            Attachment {
                name: link.spec.name.into(),
                address: if at > 0 { both(link) } else { Addresses::NONE },
                interface: (!is_beside).then(|| link.spec.name.into()),
                gateway: if is_beside { gateways.into() } else { Vec::new() },
                ..Attachment::default()
            }
        };
        let client = Client {
            name: "phone".into(),
            address: both(&self.links[0]),
            attachments: self.links.iter().enumerate().map(attachment).collect(),
        };
        NodeFile { node, clients: vec![client], dida }
    }

    /// Starts a node.
    pub(crate) fn start_node(&self, file: &NodeFile) -> Result<SteerNode> {
        SteerNode::start(&self.node, self.scratch.path(), file)
    }

    /// Starts a node, runs the recipe on the client and waits until every attachment carries
    /// packets.
    pub(crate) fn start_all(&self, file: &NodeFile, kind: RecipeKind) -> Result<SteerNode> {
        let mut node = self.start_node(file)?;
        self.run_recipe(&node, kind)?;
        node.wait_until_up(&self.node, &self.names())?;
        Ok(node)
    }

    /// Runs the recipe printed for the client.
    pub(crate) fn run_recipe(&self, node: &SteerNode, kind: RecipeKind) -> Result<()> {
        run_lines(&self.client, &print_recipe(node.config(), "phone", kind)?, None)
    }

    /// The names of the links, and of the attachments.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.links.iter().map(|link| link.spec.name).collect()
    }

    /// A download by the client.
    pub(crate) fn target(&self, ipv6: bool) -> Target<'_> {
        let server = if ipv6 { SERVER_V6.into() } else { SERVER_V4.into() };
        Target { client: &self.client, server, bind: None }
    }

    /// A link.
    pub(crate) fn link(&self, name: &str) -> Result<&AttachedLink> {
        let mut links = self.links.iter();
        links.find(|link| link.spec.name == name).with_context(|| format!("no link {name}"))
    }

    /// Bytes that each link has carried to the client.
    pub(crate) fn carried(&self) -> Vec<u64> {
        self.links.iter().map(|link| link.emulator.delivered_bytes(Way::Down)).collect()
    }

    /// Removes the node's interface of a link, with its addresses and routes. The server's
    /// namespace keeps it.
    pub(crate) fn remove_interface(&self, name: &str) -> Result<()> {
        ensure!(self.layout == Layout::Colocated, "the node has an interface of its own there");
        ip_batch(&self.node, "", &[format!("link set dev {name} netns plait-server")])
    }

    /// Brings a removed interface back, with its IPv4 address.
    pub(crate) fn return_interface(&self, name: &str) -> Result<()> {
        let link = self.link(name)?;
        ip_batch(&self.server, "", &[format!("link set dev {name} netns plait-node")])?;
        ip_batch(
            &self.node,
            "",
            &[
                format!("link set dev {name} mtu {} up", link.spec.mtu),
                format!("addr add {}/30 dev {name}", link_v4(link.number, 2)),
                format!("addr add {}/64 dev {name} nodad", link_v6(link.number, 2)),
            ],
        )
    }
}

/// N of the networks of link number `at`; 3 is the server's, 4 the access network's.
fn number(at: usize) -> u8 {
    let number = if at < 2 { at + 1 } else { at + 3 };
    u8::try_from(number).expect("a site has a handful of links")
}

/// A router beside the node.
fn join_access(node: &NetNs) -> Result<NetNs> {
    let access = new_netns("plait-access")?;
    for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        access.set_sysctl(key, "1").with_context(|| format!("cannot set {key}"))?;
    }
    ip_batch(node, "", &["link add access type veth peer name node netns plait-access"])?;
    for (netns, device, host) in [(node, "access", 1), (&access, "node", 2)] {
        ip_batch(
            netns,
            "",
            &[
                format!("addr add {}/30 dev {device}", link_v4(ACCESS_NUMBER, host)),
                format!("addr add {}/64 dev {device} nodad", link_v6(ACCESS_NUMBER, host)),
                // Neighbour discovery for forwarded packets needs a link-local address.
                format!("addr add fe80::{host}/64 dev {device} nodad"),
                format!("link set dev {device} up"),
            ],
        )?;
    }
    let (v4, v6) = (link_v4(ACCESS_NUMBER, 1), link_v6(ACCESS_NUMBER, 1));
    ip_batch(&access, "", &[format!("route add default via {v4}")])?;
    ip_batch(&access, "-6", &[format!("route add default via {v6}")])?;
    Ok(access)
}
