//! Namespaces and unlimited links: they carry what the machine can.

use std::net::Ipv4Addr;

use anyhow::Result;
use plait_net::netns::NetNs;

use super::{
    LinkEnds, PROVIDER_V4, PROVIDER_V6, choose_link_by_source, connect_server, ip_batch, link_v4,
    link_v6, new_netns,
};

/// Names of the two links.
pub(crate) const VETH_LINKS: [&str; 2] = ["fast1", "fast2"];

/// Customer and provider joined by two veth pairs. The provider is its own server.
#[derive(Debug)]
pub(crate) struct VethTopology {
    pub(crate) customer: NetNs,
    pub(crate) provider: NetNs,
}

impl VethTopology {
    pub(crate) fn build() -> Result<Self> {
        let customer = new_netns("plait-customer")?;
        let provider = new_netns("plait-provider")?;
        ip_batch(
            &provider,
            "",
            &[
                format!("addr add {PROVIDER_V4}/32 dev lo"),
                format!("addr add {PROVIDER_V6}/128 dev lo nodad"),
            ],
        )?;
        join(&customer, &provider)?;
        for number in (1_u8..).take(VETH_LINKS.len()) {
            let route =
                format!("route add {PROVIDER_V4}/32 via {} metric {number}", link_v4(number, 2));
            ip_batch(&customer, "", &[route])?;
        }
        Ok(Self { customer, provider })
    }
}

/// Joins customer and provider by both links and gives them their addresses.
fn join(customer: &NetNs, provider: &NetNs) -> Result<()> {
    for (name, number) in VETH_LINKS.iter().zip(1_u8..) {
        let pair = format!("link add {name} type veth peer name {name} netns plait-provider");
        ip_batch(customer, "", &[pair])?;
        for (netns, host) in [(customer, 1), (provider, 2)] {
            ip_batch(
                netns,
                "",
                &[
                    format!("addr add {}/30 dev {name}", link_v4(number, host)),
                    format!("addr add {}/64 dev {name} nodad", link_v6(number, host)),
                    format!("link set dev {name} up"),
                ],
            )?;
        }
    }
    Ok(())
}

/// An address of the customer that no link has: the provider forwards packets to it like any
/// router, whatever a steering node does with the others.
pub(crate) const PLAIN_V4: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);

/// Customer, provider and server: the customer joined to the provider by two veth pairs, the server
/// by one. A steering node runs at the provider.
#[derive(Debug)]
pub(crate) struct VethChain {
    pub(crate) customer: NetNs,
    pub(crate) provider: NetNs,
    pub(crate) server: NetNs,
}

impl VethChain {
    pub(crate) fn build() -> Result<Self> {
        let [customer, provider, server] =
            ["plait-customer", "plait-provider", "plait-server"].map(new_netns);
        let (customer, provider, server) = (customer?, provider?, server?);
        connect_server(&provider, &server)?;
        join(&customer, &provider)?;
        let ends: Vec<LinkEnds<'_>> = (VETH_LINKS.iter().zip(1_u8..))
            .map(|(device, number)| LinkEnds { device, number, mtu: 1500 })
            .collect();
        choose_link_by_source(&customer, &ends)?;
        ip_batch(&customer, "", &[format!("addr add {PLAIN_V4}/32 dev lo")])?;
        let plain = format!("route add {PLAIN_V4}/32 via {}", link_v4(1, 1));
        ip_batch(&provider, "", &[plain])?;
        Ok(Self { customer, provider, server })
    }
}
