//! What a gateway needs of its host: sockets, the TUN device with its addresses, randomness.

use std::fs::File;
use std::io::Read as _;

use anyhow::Context as _;
use plait_net::netlink::{Netlink, NetlinkError};
use plait_net::tun::Tun;
use plait_net::udp::{BindTo, UdpSocket};
use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::rng::Rng;
use plait_proto::wire::sealed::{DATA_OVERHEAD_BYTES, SEALED_BYTES_MAX};

use super::routes::halved;
use crate::config::Config;

/// Largest headers of an inner TCP packet, which a super-packet carries once.
const INNER_HEADER_BYTES: usize = 60 + 60;

/// Below this MTU the kernel takes a device's IPv6 addresses and routes away (RFC 8200 §5).
const IPV6_MTU_MIN: u16 = 1280;
/// What adding something gives that is there already.
const EEXIST: i32 = 17;

/// Opens the socket for peers that call, if the gateway is to have one.
pub(super) fn open_listening_socket(config: &Config) -> anyhow::Result<Option<UdpSocket>> {
    let Some(port) = &config.gateway.listen_port else { return Ok(None) };
    let to = BindTo { port: port.value, ..BindTo::default() };
    let place = format!("{}:{}: [gateway] listen_port", config.file.display(), port.line);
    Ok(Some(UdpSocket::bind(&to).context(place)?))
}

/// Creates the TUN device, gives it its addresses and takes it up.
pub(super) fn open_tun(
    config: &Config,
    peers: &[PeerConfig],
    mtu: u16,
) -> anyhow::Result<(Tun, TunMtu)> {
    let tun = Tun::open(&config.gateway.tun, true)?;
    let mut netlink = Netlink::open()?;
    let link = netlink.link(tun.name())?;
    let index = link.context("the TUN device vanished as soon as it was made")?.index;
    set_mtu(&mut netlink, index, mtu)?;
    for address in &config.gateway.addresses {
        netlink.add_address(index, address.address, address.length)?;
    }
    netlink.set_up(index)?;
    let prefixes: Vec<Prefix> =
        peers.iter().flat_map(|peer| peer.allowed_ips.iter().copied()).collect();
    let routes = if config.gateway.routes { halved(&prefixes) } else { Vec::new() };
    let cidrs = config.gateway.addresses.iter();
    let addresses = cidrs.map(|cidr| Prefix { address: cidr.address, length: cidr.length });
    let only_v6 = |prefix: &Prefix| prefix.address.is_ipv6();
    let ipv6_addresses = addresses.filter(only_v6).collect();
    let ipv6_routes = routes.into_iter().filter(only_v6).collect();
    Ok((tun, TunMtu { index, mtu, ipv6_addresses, ipv6_routes }))
}

fn set_mtu(netlink: &mut Netlink, index: u32, mtu: u16) -> anyhow::Result<()> {
    netlink.set_mtu(index, u32::from(mtu))?;
    if let Err(error) = netlink.set_gso_max_size(index, gso_max_size(mtu)) {
        log::debug!("super-packets may need two sends: {error}");
    }
    Ok(())
}

/// The TUN device's MTU, which follows the bonds' inner MTU.
#[derive(Debug)]
pub(super) struct TunMtu {
    index: u32,
    mtu: u16,
    ipv6_addresses: Vec<Prefix>,
    ipv6_routes: Vec<Prefix>,
}

impl TunMtu {
    /// Sets the MTU; an error is logged, and packets that do not fit are dropped and counted.
    pub(super) fn follow(&mut self, mtu: u16) {
        log::info!("the bonds carry inner packets of {mtu} bytes, before {}", self.mtu);
        match self.set(mtu) {
            Ok(()) => self.mtu = mtu,
            Err(error) => log::warn!("the TUN device keeps its MTU of {}: {error:#}", self.mtu),
        }
    }

    fn set(&self, mtu: u16) -> anyhow::Result<()> {
        let mut netlink = Netlink::open()?;
        set_mtu(&mut netlink, self.index, mtu)?;
        if self.mtu < IPV6_MTU_MIN && mtu >= IPV6_MTU_MIN {
            for address in &self.ipv6_addresses {
                unless_there(netlink.add_address(self.index, address.address, address.length))?;
            }
            for route in &self.ipv6_routes {
                unless_there(netlink.add_route(self.index, route.address, route.length, None))?;
            }
        }
        Ok(())
    }
}

/// What is there already need not be added.
fn unless_there(result: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    result.or_else(|error| if error.errno() == Some(EEXIST) { Ok(()) } else { Err(error) })
}

/// The largest super-packet whose datagrams fit one UDP send.
fn gso_max_size(mtu: u16) -> u32 {
    let datagrams = SEALED_BYTES_MAX / (usize::from(mtu) + DATA_OVERHEAD_BYTES);
    let bytes = datagrams * (usize::from(mtu).saturating_sub(INNER_HEADER_BYTES));
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A generator seeded by the operating system.
pub(super) fn random_generator() -> anyhow::Result<Rng> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut seed))
        .context("cannot read /dev/urandom")?;
    Ok(Rng::from_seed(seed))
}
