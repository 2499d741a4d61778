//! What a gateway gets from its host: sockets, the TUN device with its addresses, randomness.

use std::net::IpAddr;
use std::sync::Once;

use anyhow::Context as _;
use plait_net::machine::fill_random;
use plait_net::netlink::{Netlink, NetlinkError};
use plait_net::tun::{Offload, Tun};
use plait_net::udp::{BindTo, UdpSocket};
use plait_proto::config::Prefix;
use plait_proto::endpoint::Endpoint;
use plait_proto::rng::Rng;
use plait_proto::wire::sealed::{DATA_OVERHEAD_BYTES, SEALED_BYTES_MAX};
use zeroize::Zeroizing;

use crate::advice::Advised;
use crate::config::Config;
use crate::randomness;

/// Largest headers of an inner TCP packet, which a super-packet carries once.
const INNER_HEADER_BYTES: usize = 60 + 60;

/// Operation not permitted.
const EPERM: i32 = 1;
/// The error of adding an IPv6 address or route on a device without IPv6.
const EACCES: i32 = 13;
/// The error of adding something that exists already.
const EEXIST: i32 = 17;

/// What to do about a route that exists already.
pub(crate) const ROUTE_EXISTS_HELP: &str = concat!(
    "`ip route` and `ip -6 route` show it: end the program that made it (another VPN?) or remove ",
    "it with `ip route del`; or remove `routes = true` and add routes of your own"
);
/// What to do about IPv6 that is switched off.
pub(crate) const IPV6_OFF_HELP: &str = concat!(
    "switch it on with `sysctl -w net.ipv6.conf.default.disable_ipv6=0`, or remove the IPv6 ",
    "addresses and prefixes"
);

/// Opens the sockets for peers that call, one for each port.
pub(super) fn open_listening_sockets(config: &Config) -> Result<Vec<UdpSocket>, Advised> {
    let place =
        |option: &str, line| format!("{}:{line}: [gateway] {option}", config.file.display());
    let open = |(at, port)| {
        let to = BindTo { port, mark: config.socket_mark(), ..BindTo::default() };
        let socket = UdpSocket::bind(&to).map_err(|cause| {
            let help = format!("`ss -ulpn sport = :{port}` shows who has the port");
            let place = match &config.gateway.listen_port {
                Some(first) if at == 0 => place("listen_port", first.line),
                _ => place("more_ports", config.gateway.line),
            };
            Advised::new(place, help).caused_by(cause)
        })?;
        tell_of_single_sends(&socket);
        Ok(socket)
    };
    config.gateway.listen_ports().enumerate().map(open).collect()
}

/// Tells, once, when the kernel segments no datagrams.
pub(super) fn tell_of_single_sends(socket: &UdpSocket) {
    static TOLD: Once = Once::new();
    if socket.max_segments() == 1 {
        TOLD.call_once(|| {
            log::info!("this kernel cannot send UDP in batches: each datagram is a system call");
        });
    }
}

/// Creates the TUN device, gives it its addresses and sets it up.
pub(super) fn open_tun(config: &Config, mtu: u16) -> anyhow::Result<Tun> {
    let name = &config.gateway.tun;
    let tun = Tun::open(name, true).map_err(|cause| {
        let help = "`plait check` says what is missing; another `tun` may be free";
        Advised::new(format!("no TUN device {name}"), help).caused_by(cause)
    })?;
    if tun.offload() < Offload::Tcp {
        log::info!("the TUN device {name} takes single packets: this kernel joins none for it");
    }
    let mut netlink = Netlink::open()?;
    let link = netlink.link(tun.name())?;
    let index = link.context("the TUN device vanished as soon as it was made")?.index;
    set_mtu(&mut netlink, index, mtu)?;
    for address in &config.gateway.addresses {
        netlink.add_address(index, address.address, address.length).map_err(advised)?;
    }
    netlink.set_up(index)?;
    Ok(tun)
}

/// Each prefix once, in order; a default route becomes its two halves.
pub(crate) fn halved(prefixes: &[Prefix]) -> Vec<Prefix> {
    let mut routes: Vec<Prefix> =
        prefixes.iter().flat_map(|prefix| without_default(*prefix)).collect();
    routes.sort_unstable();
    routes.dedup();
    routes
}

/// The error of an address or a route that cannot be added, with its remedy.
pub(super) fn advised(error: NetlinkError) -> Advised {
    let help = match error.errno() {
        Some(EEXIST) => ROUTE_EXISTS_HELP,
        Some(EACCES) => IPV6_OFF_HELP,
        Some(EPERM) => "run plait as root, or give it CAP_NET_ADMIN",
        _ => "correct `address` under [gateway], or `allowed_ips` of the [[peer]]",
    };
    Advised::new(error.to_string(), help).caused_by(error.source)
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

/// A default route becomes its two halves: they win over the host's own default route, which stays
/// for the links.
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

/// A random generator seeded by the operating system. It may have to be waited for: this comes
/// before anything is changed.
///
/// # Errors
/// It has no random numbers, with the remedy.
pub(super) fn random_generator() -> Result<Rng, Advised> {
    let mut result = Ok(());
    let tell = |what: &str| log::warn!("{what}");
    let rng = Rng::seeded_by(|seed| result = randomness::fill(seed, tell));
    result.map(|()| rng)
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

    #[test]
    fn each_route_is_there_once_and_a_default_in_halves() {
        let prefix = |text: &str, length| Prefix { address: text.parse().unwrap(), length };
        let prefixes = [prefix("0.0.0.0", 0), prefix("128.0.0.0", 1), prefix("fd99::", 64)];
        let routes = [prefix("0.0.0.0", 1), prefix("128.0.0.0", 1), prefix("fd99::", 64)];
        assert_eq!(halved(&prefixes), routes);
        assert_eq!(halved(&[prefix("::", 0)]), [prefix("::", 1), prefix("8000::", 1)]);
    }
}
