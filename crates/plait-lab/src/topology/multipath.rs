//! Lets the kernel's MPTCP use every link of the first customer.

use std::fmt::Display;
use std::net::IpAddr;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;

use super::{Topology, ip_batch};

/// Subflows that a connection may have besides its first: more than any topology has links.
const SUBFLOWS_MAX: usize = 8;

impl Topology {
    /// Lets the customer's MPTCP connections take a subflow over each of its links (RFC 8684
    /// section 3.2). The first subflow goes over the first link, which routes prefer.
    pub(crate) fn enable_mptcp(&self) -> Result<()> {
        let others = self.customer().links.iter().skip(1);
        let others = others.map(|link| (link.customer_address(), link.spec.name));
        enable_mptcp(&self.customer().netns, &self.server, others)
    }
}

/// Lets a customer's MPTCP connections open a subflow over each of `others`, address and device,
/// besides the one over the preferred route.
pub(crate) fn enable_mptcp(
    customer: &NetNs,
    server: &NetNs,
    others: impl Iterator<Item = (IpAddr, impl Display)>,
) -> Result<()> {
    for netns in [customer, server] {
        allow_mptcp(netns)?;
    }
    let endpoints = others.map(|(address, device)| {
        // Also announced, for connections that begin at the server.
        format!("mptcp endpoint add {address} dev {device} subflow signal")
    });
    ip_batch(customer, "", &endpoints.collect::<Vec<_>>())
}

/// Lets a namespace's connections have as many subflows as any topology has links.
pub(crate) fn allow_mptcp(netns: &NetNs) -> Result<()> {
    netns.set_sysctl("net.mptcp.enabled", "1").context(
        "the kernel has no MPTCP, beside which plait is to be measured; use one that was built \
         with CONFIG_MPTCP (Linux 5.16 or later)",
    )?;
    let limits =
        format!("mptcp limits set subflows {SUBFLOWS_MAX} add_addr_accepted {SUBFLOWS_MAX}");
    ip_batch(netns, "", &[limits]).context("`ip mptcp` is in iproute2 5.8 or later")
}
