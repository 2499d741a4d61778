//! The lab's networks, made again for every set of measurements.
//!
//! ```text
//! customer ═══ dsl, lte (emulated links) ═══ provider ─── server
//!          10.N.0.1            10.N.0.2      10.3.0.1   10.3.0.2, 198.51.100.10
//! ```
//!
//! The provider's gateway address, 192.0.2.1, is reached over every link. The customer reaches the
//! server's address 198.51.100.10 only through the bond, and its address 10.3.0.2 over the bare
//! links, where the source address chooses the link.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use plait_net::tun::Tun;
use plait_proto::units::Rate;
use plait_sim::link::{DEFAULT_QUEUE_TIME, LinkConfig, Room};

use crate::emulator::{Emulator, Way};

mod host;
mod interface;
mod ip;
mod multipath;
mod veth;

pub(crate) use crate::addresses::*;
pub(crate) use host::{ROUTER_V4, host_behind};
pub(crate) use interface::Interface;
pub(crate) use ip::{ip_batch, ip_output, mtu_of};
pub(crate) use multipath::{allow_mptcp, enable_mptcp};
pub(crate) use veth::{PLAIN_V4, VETH_LINKS, VethChain, VethTopology};

/// Default MTU of an emulated link's devices, in bytes: room for a full packet and a tunnel's
/// framing, so that the MTU does not affect measurements.
const DEFAULT_MTU: u32 = 1600;
/// Packets that the kernel queues for the emulator. They are taken out at once; the link model has
/// the queue that matters.
pub(crate) const TUN_QUEUE_PACKETS: u32 = 5000;

/// An emulated access link, the same in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) name: &'static str,
    pub(crate) rate_mbit: u64,
    pub(crate) rtt_min_ms: u64,
    pub(crate) rtt_max_ms: u64,
    /// Time that its drop-tail queues hold at its rate.
    pub(crate) queue_time: Duration,
    /// MTU of the devices at its ends, in bytes.
    pub(crate) mtu: u32,
}

impl LinkSpec {
    /// 002's DSL line.
    pub(crate) const DSL: Self = Self::new("dsl", 64, 13, 13);
    /// 002's LTE link.
    pub(crate) const LTE: Self = Self::new("lte", 60, 25, 45);

    /// A link of `rate_mbit` megabits per second whose empty round trip takes this long, with
    /// queues of 50 ms.
    pub(crate) const fn new(
        name: &'static str,
        rate_mbit: u64,
        rtt_min_ms: u64,
        rtt_max_ms: u64,
    ) -> Self {
        let queue_time = DEFAULT_QUEUE_TIME;
        Self { name, rate_mbit, rtt_min_ms, rtt_max_ms, queue_time, mtu: DEFAULT_MTU }
    }

    pub(crate) fn config(&self) -> LinkConfig {
        let rate = Rate::from_mbit(self.rate_mbit);
        let [rtt_min, rtt_max] = [self.rtt_min_ms, self.rtt_max_ms].map(Duration::from_millis);
        let queue = Room::Bytes(rate.bytes_in(self.queue_time));
        LinkConfig { queue, ..LinkConfig::with_rtt(rate, rtt_min, rtt_max) }
    }

    /// For people: `dsl 64 Mbit/s 13 ms`.
    pub(crate) fn describe(&self) -> String {
        let Self { name, rate_mbit, rtt_min_ms, rtt_max_ms, .. } = self;
        if rtt_min_ms == rtt_max_ms {
            format!("{name} {rate_mbit} Mbit/s, RTT {rtt_min_ms} ms")
        } else {
            format!("{name} {rate_mbit} Mbit/s, RTT {rtt_min_ms} to {rtt_max_ms} ms")
        }
    }
}

/// A link of a topology.
#[derive(Debug)]
pub(crate) struct AttachedLink {
    pub(crate) spec: LinkSpec,
    /// N of the link's networks 10.N.0.0/30 and fd00:N::/64.
    pub(crate) number: u8,
    pub(crate) emulator: Emulator,
}

impl AttachedLink {
    /// The customer's address on the link.
    pub(crate) fn customer_address(&self) -> IpAddr {
        link_v4(self.number, 1).into()
    }
}

/// A household: a customer's gateway and its links. Several may share a provider.
#[derive(Debug)]
pub(crate) struct Customer {
    pub(crate) netns: NetNs,
    pub(crate) links: Vec<AttachedLink>,
}

/// Customer, provider, server.
#[derive(Debug)]
pub(crate) struct Topology {
    pub(crate) customers: Vec<Customer>,
    pub(crate) provider: NetNs,
    pub(crate) server: NetNs,
}

impl Topology {
    /// One customer with these links.
    pub(crate) fn build(links: &[LinkSpec]) -> Result<Self> {
        Self::build_customers(&[links])
    }

    /// Several customers, each with its own links, whose names must differ.
    pub(crate) fn build_customers(customers: &[&[LinkSpec]]) -> Result<Self> {
        let provider = new_netns("plait-provider")?;
        let server = new_netns("plait-server")?;
        connect_server(&provider, &server)?;
        let mut topology = Self { customers: Vec::new(), provider, server };
        let mut number = 0;
        for (index, specs) in customers.iter().enumerate() {
            let netns = new_netns(&customer_name(index))?;
            let mut links = Vec::new();
            for spec in *specs {
                number += if number == 2 { 2 } else { 1 };
                links.push(attach_link(&netns, &topology.provider, *spec, number)?);
            }
            let ends = links.iter().map(|AttachedLink { spec, number, .. }| LinkEnds {
                device: spec.name,
                number: *number,
                mtu: spec.mtu,
            });
            choose_link_by_source(&netns, &ends.collect::<Vec<_>>())?;
            topology.customers.push(Customer { netns, links });
        }
        Ok(topology)
    }

    /// The only customer, or the first.
    pub(crate) fn customer(&self) -> &Customer {
        self.customers.first().expect("a topology has at least one customer")
    }

    /// Starts keeping copies of the packets on each of the first customer's links, up to
    /// `packets_max` per direction.
    pub(crate) fn capture(&self, packets_max: usize) {
        self.customer().links.iter().for_each(|link| link.emulator.capture(packets_max));
    }

    /// Takes the packets kept of the first customer's links, and stops keeping them.
    pub(crate) fn captured(&self) -> impl Iterator<Item = (Way, Box<[u8]>)> {
        let ways = |link: &AttachedLink| {
            [Way::Up, Way::Down].map(|way| (way, link.emulator.captured(way)))
        };
        let all = self.customer().links.iter().flat_map(ways);
        all.flat_map(|(way, packets)| packets.into_iter().map(move |packet| (way, packet)))
    }

    /// The first customer's link called `name`.
    pub(crate) fn link(&self, name: &str) -> Result<&AttachedLink> {
        let links = &self.customer().links;
        links.iter().find(|link| link.spec.name == name).with_context(|| format!("no link {name}"))
    }
}

fn customer_name(index: usize) -> String {
    if index == 0 { "plait-customer".into() } else { format!("plait-customer{}", index + 1) }
}

/// A namespace with the kernel parameters that every experiment needs.
pub(crate) fn new_netns(name: &str) -> Result<NetNs> {
    let netns = NetNs::create(name).with_context(|| format!("cannot make namespace {name}"))?;
    for (key, value) in [
        // A connection must not reuse metrics of an earlier one.
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", "4096 131072 16777216"),
        ("net.ipv4.tcp_wmem", "4096 131072 16777216"),
        // Packets from one address arrive over several links.
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        // No link-local traffic on the links.
        ("net.ipv6.conf.default.addr_gen_mode", "1"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
    ] {
        netns.set_sysctl(key, value).with_context(|| format!("cannot set {key} in {name}"))?;
    }
    Ok(netns)
}

pub(crate) fn connect_server(provider: &NetNs, server: &NetNs) -> Result<()> {
    ip_batch(provider, "", &["link add server type veth peer name provider netns plait-server"])?;
    address_server(provider, server)
}

/// Sets addresses and routes for the wire between provider and server, whose devices exist:
/// `server` at the provider, `provider` at the server.
pub(crate) fn address_server(provider: &NetNs, server: &NetNs) -> Result<()> {
    for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        provider.set_sysctl(key, "1").with_context(|| format!("cannot set {key}"))?;
    }
    ip_batch(
        provider,
        "",
        &[
            &format!("addr add {PROVIDER_V4}/32 dev lo"),
            &format!("addr add {PROVIDER_V6}/128 dev lo nodad"),
            &format!("addr add {PROVIDER_LAN_V4}/24 dev server"),
            &format!("addr add {PROVIDER_LAN_V6}/64 dev server nodad"),
            // Neighbour discovery for forwarded packets needs a link-local address.
            "addr add fe80::1/64 dev server nodad",
            "link set dev server up",
        ],
    )?;
    ip_batch(
        server,
        "",
        &[
            &format!("addr add {SERVER_BARE_V4}/24 dev provider"),
            &format!("addr add {SERVER_BARE_V6}/64 dev provider nodad"),
            "addr add fe80::2/64 dev provider nodad",
            &format!("addr add {SERVER_V4}/32 dev lo"),
            &format!("addr add {SERVER_V6}/128 dev lo nodad"),
            "link set dev provider up",
            &format!("route add default via {PROVIDER_LAN_V4}"),
        ],
    )?;
    ip_batch(server, "-6", &[&format!("route add default via {PROVIDER_LAN_V6}")])?;
    ip_batch(provider, "", &[&format!("route add {SERVER_V4}/32 via {SERVER_BARE_V4}")])?;
    ip_batch(provider, "-6", &[&format!("route add {SERVER_V6}/128 via {SERVER_BARE_V6}")])
}

fn attach_link(
    customer: &NetNs,
    provider: &NetNs,
    spec: LinkSpec,
    number: u8,
) -> Result<AttachedLink> {
    let ends = LinkEnds { device: spec.name, number, mtu: spec.mtu };
    let (customer, provider) = (ends.open(customer, 1)?, ends.open(provider, 2)?);
    let emulator = Emulator::start(customer, provider, spec.config(), u64::from(number))?;
    Ok(AttachedLink { spec, number, emulator })
}

/// The two devices of a link, of the same name in the customer's and the provider's namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkEnds<'a> {
    pub(crate) device: &'a str,
    /// N of the link's networks 10.N.0.0/30 and fd00:N::/64.
    pub(crate) number: u8,
    /// MTU in bytes. Below 1280 the link has no IPv6 (RFC 8200 section 5).
    pub(crate) mtu: u32,
}

impl LinkEnds<'_> {
    fn has_v6(&self) -> bool {
        self.mtu >= 1280
    }

    /// Makes the device of one end: 1 is the customer's, 2 the provider's.
    pub(crate) fn open(&self, netns: &NetNs, host: u8) -> Result<Tun> {
        let Self { device, number, mtu } = *self;
        let tun = netns.run_in(|| Tun::open(device, false))??;
        let mut lines = vec![
            format!("link set dev {device} mtu {mtu} txqueuelen {TUN_QUEUE_PACKETS} up"),
            format!("addr add {}/30 dev {device}", link_v4(number, host)),
        ];
        if self.has_v6() {
            lines.push(format!("addr add {}/64 dev {device} nodad", link_v6(number, host)));
        }
        ip_batch(netns, "", &lines)?;
        Ok(tun)
    }
}

/// Default routes over every link, the first preferred; a source address uses its own link; packets
/// for the bond never leave over a bare link.
pub(crate) fn choose_link_by_source(customer: &NetNs, links: &[LinkEnds<'_>]) -> Result<()> {
    let mut v4 = vec![format!("route add unreachable {BOND_ONLY_V4} metric 60000")];
    let mut v6 = vec![format!("route add unreachable {BOND_ONLY_V6} metric 60000")];
    for (index, link) in links.iter().enumerate() {
        let LinkEnds { device, number, .. } = *link;
        let (table, metric) = (100 + u32::from(number), index + 1);
        for (lines, here, there) in [
            (&mut v4, link_v4(number, 1).to_string(), link_v4(number, 2).to_string()),
            (&mut v6, link_v6(number, 1).to_string(), link_v6(number, 2).to_string()),
        ] {
            if here.contains(':') && !link.has_v6() {
                continue;
            }
            lines.push(format!("route add default via {there} dev {device} metric {metric}"));
            lines.push(format!("route add default via {there} dev {device} table {table}"));
            lines.push(format!("rule add from {here} lookup {table}"));
        }
    }
    ip_batch(customer, "", &v4)?;
    ip_batch(customer, "-6", &v6)
}
