//! A host behind a household's router.

use std::net::Ipv4Addr;

use anyhow::Result;
use plait_net::netns::NetNs;

use super::{ip_batch, new_netns};

const HOST_V4: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 2);
/// The router's address towards it.
pub(crate) const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 1);

/// Makes a host that reaches everything by way of `router`, over the router's device `lan`.
pub(crate) fn host_behind(router: &NetNs) -> Result<NetNs> {
    let host = new_netns("plait-host")?;
    ip_batch(router, "", &["link add lan type veth peer name router netns plait-host"])?;
    router.set_sysctl("net.ipv4.ip_forward", "1")?;
    let of_router = [format!("addr add {ROUTER_V4}/24 dev lan"), "link set dev lan up".into()];
    ip_batch(router, "", &of_router)?;
    let of_host = [
        format!("addr add {HOST_V4}/24 dev router"),
        "link set dev router up".into(),
        format!("route add default via {ROUTER_V4}"),
    ];
    ip_batch(&host, "", &of_host)?;
    Ok(host)
}
