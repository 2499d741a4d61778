//! What a gateway needs of its host: sockets, the TUN device with addresses and routes, randomness.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;

use anyhow::Context as _;
use plait_net::netlink::Netlink;
use plait_net::tun::Tun;
use plait_net::udp::{BindTo, UdpSocket};
use plait_proto::config::{LinkConfig, PeerConfig, Prefix, SocketId};
use plait_proto::rng::Rng;
use plait_proto::wire::sealed::{DATA_OVERHEAD_BYTES, SEALED_BYTES_MAX};

use crate::config::Config;

/// Largest headers of an inner TCP packet, which a super-packet carries once.
const INNER_HEADER_BYTES: usize = 60 + 60;

/// Opens the listening socket, then a socket per path. Gives the sockets and the links over which
/// this gateway opens paths.
pub(super) fn open_sockets(config: &Config) -> anyhow::Result<(Vec<UdpSocket>, Vec<LinkConfig>)> {
    let mut sockets = Vec::new();
    let file = config.file.display();
    if let Some(port) = &config.gateway.listen_port {
        let to = BindTo { port: port.value, ..BindTo::default() };
        let place = format!("{file}:{}: [gateway] listen_port", port.line);
        sockets.push(UdpSocket::bind(&to).context(place)?);
    }
    let first_path = sockets.len();
    for path in &config.paths {
        let address = path.address.as_ref().map(|address| address.value);
        let interface = match (&path.interface, address) {
            (Some(interface), _) => Some(interface.value.clone()),
            (None, Some(address)) => interface_of(address)?,
            (None, None) => None,
        };
        let to = BindTo { interface, address, port: 0 };
        let place = format!("{file}:{}: [[path]] {}", path.line, path.name);
        sockets.push(UdpSocket::bind(&to).context(place)?);
    }
    let first_link = if config.paths.is_empty() { 0 } else { first_path };
    let links = config.links(|index| SocketId((first_link + index) as u16));
    Ok((sockets, links))
}

/// The interface that has an address. A path that is bound to an address must leave through that
/// interface whatever the routes say, or its datagrams might be routed into the TUN device itself.
fn interface_of(address: IpAddr) -> anyhow::Result<Option<String>> {
    let mut netlink = Netlink::open()?;
    let addresses = netlink.addresses()?;
    let Some((index, ..)) = addresses.into_iter().find(|(_, known, _)| *known == address) else {
        return Ok(None);
    };
    Ok(netlink.links()?.into_iter().find(|link| link.index == index).map(|link| link.name))
}

/// Creates the TUN device, gives it its addresses and routes and takes it up.
pub(super) fn open_tun(config: &Config, peers: &[PeerConfig], mtu: u16) -> anyhow::Result<Tun> {
    let tun = Tun::open(&config.gateway.tun, true)?;
    let mut netlink = Netlink::open()?;
    let link = netlink.link(tun.name())?;
    let index = link.context("the TUN device vanished as soon as it was made")?.index;
    netlink.set_mtu(index, u32::from(mtu))?;
    if let Err(error) = netlink.set_gso_max_size(index, gso_max_size(mtu)) {
        log::debug!("super-packets may need two sends: {error}");
    }
    for address in &config.gateway.addresses {
        netlink.add_address(index, address.address, address.length)?;
    }
    netlink.set_up(index)?;
    if config.gateway.routes {
        for prefix in peers.iter().flat_map(|peer| &peer.allowed_ips) {
            for half in without_default(*prefix) {
                netlink.add_route(index, half.address, half.length, None)?;
            }
        }
    }
    Ok(tun)
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
    let mut seed = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut seed))
        .context("cannot read /dev/urandom")?;
    Ok(Rng::from_seed(seed))
}
