//! What a gateway needs of its host: sockets, the TUN device with addresses and routes, randomness.

use std::net::IpAddr;

use anyhow::Context as _;
use plait_net::machine::fill_random;
use plait_net::netlink::Netlink;
use plait_net::tun::Tun;
use plait_net::udp::{BindTo, UdpSocket};
use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::endpoint::Endpoint;
use plait_proto::rng::Rng;
use plait_proto::wire::sealed::{DATA_OVERHEAD_BYTES, SEALED_BYTES_MAX};
use zeroize::Zeroizing;

use crate::config::Config;

/// Largest headers of an inner TCP packet, which a super-packet carries once.
const INNER_HEADER_BYTES: usize = 60 + 60;

/// Opens the socket for peers that call, if the gateway is to have one.
pub(super) fn open_listening_socket(config: &Config) -> anyhow::Result<Option<UdpSocket>> {
    let Some(port) = &config.gateway.listen_port else { return Ok(None) };
    let to = BindTo { port: port.value, ..BindTo::default() };
    let place = format!("{}:{}: [gateway] listen_port", config.file.display(), port.line);
    Ok(Some(UdpSocket::bind(&to).context(place)?))
}

/// Creates the TUN device, gives it its addresses and routes and takes it up.
pub(super) fn open_tun(config: &Config, peers: &[PeerConfig], mtu: u16) -> anyhow::Result<Tun> {
    let tun = Tun::open(&config.gateway.tun, true)?;
    let mut netlink = Netlink::open()?;
    let link = netlink.link(tun.name())?;
    let index = link.context("the TUN device vanished as soon as it was made")?.index;
    set_mtu(&mut netlink, index, mtu)?;
    for address in &config.gateway.addresses {
        netlink.add_address(index, address.address, address.length)?;
    }
    netlink.set_up(index)?;
    let prefixes = peers.iter().flat_map(|peer| &peer.allowed_ips);
    let routes: Vec<Prefix> = prefixes.flat_map(|prefix| without_default(*prefix)).collect();
    for route in routes.iter().filter(|_| config.gateway.routes) {
        netlink.add_route(index, route.address, route.length, None)?;
    }
    Ok(tun)
}

fn set_mtu(netlink: &mut Netlink, index: u32, mtu: u16) -> anyhow::Result<()> {
    netlink.set_mtu(index, u32::from(mtu))?;
    if let Err(error) = netlink.set_gso_max_size(index, gso_max_size(mtu)) {
        log::debug!("super-packets may need two sends: {error}");
    }
    Ok(())
}

/// The largest super-packet whose datagrams fit one UDP send.
fn gso_max_size(mtu: u16) -> u32 {
    let datagrams = SEALED_BYTES_MAX / (usize::from(mtu) + DATA_OVERHEAD_BYTES);
    let bytes = datagrams * (usize::from(mtu).saturating_sub(INNER_HEADER_BYTES));
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A default route becomes its two halves: they win against the host's own default route, which
/// stays for the links.
fn without_default(prefix: Prefix) -> Vec<Prefix> {
    match (prefix.length, prefix.address) {
        (0, IpAddr::V4(_)) => {
            vec![half([0, 0, 0, 0].into()), half([128, 0, 0, 0].into())]
        }
        (0, IpAddr::V6(_)) => {
            vec![half([0_u16; 8].into()), half([0x8000, 0, 0, 0, 0, 0, 0, 0].into())]
        }
        _ => vec![prefix],
    }
}

fn half(address: IpAddr) -> Prefix {
    Prefix { address, length: 1 }
}

/// A generator seeded by the operating system.
pub(super) fn random_generator() -> anyhow::Result<Rng> {
    let mut result = Ok(());
    let rng = Rng::seeded_by(|seed| result = fill_random(seed));
    result.context("the kernel gives no random numbers")?;
    Ok(rng)
}

/// Mixes new entropy into an endpoint's generator, if it drew secrets since the last time.
pub(super) fn refresh_generator(endpoint: &mut Endpoint) {
    if !endpoint.wants_entropy() {
        return;
    }
    let mut entropy = Zeroizing::new([0; 32]);
    match fill_random(&mut *entropy) {
        Ok(()) => endpoint.mix_in(&entropy),
        Err(error) => log::debug!("the kernel gives no random numbers: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_generators_differ() {
        let [mut a, mut b] = [random_generator().unwrap(), random_generator().unwrap()];
        assert_ne!(a.u64(), b.u64());
    }
}
