//! Two namespaces and two links without a limit: what the machine itself can carry.

use anyhow::Result;
use plait_net::netns::NetNs;

use super::{PROVIDER_V4, PROVIDER_V6, ip_batch, link_v4, link_v6, new_netns};

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
        for (name, number) in VETH_LINKS.iter().zip(1_u8..) {
            let pair = format!("link add {name} type veth peer name {name} netns plait-provider");
            ip_batch(&customer, "", &[pair])?;
            for (netns, host) in [(&customer, 1), (&provider, 2)] {
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
            let route =
                format!("route add {PROVIDER_V4}/32 via {} metric {number}", link_v4(number, 2));
            ip_batch(&customer, "", &[route])?;
        }
        Ok(Self { customer, provider })
    }
}
