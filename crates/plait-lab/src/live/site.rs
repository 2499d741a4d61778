//! What carries a stream from the customer to the server: one link, two proxies with the kernel's
//! MPTCP between them, or a bond.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use plait_net::netns::NetNs;
use plait_toml::proxy::{ProxyFile, Upstream, WayIn};

use super::cases::{Case, LINK_NAMES};
use crate::emulator::Lateness;
use crate::measure::FETCH_CONGESTION;
use crate::proxy::{HeldRules, ProxyProcess, hold_rules, open_to_all};
use crate::scratch::Scratch;
use crate::site::{Carrier, on_site};
use crate::topology::{
    PROVIDER_V4, ROUTER_V4, SERVER_BARE_V4, SERVER_V4, Topology, allow_mptcp, host_behind,
    ip_batch, link_v4,
};

const REDIRECT_PORT: u16 = 3129;
const CONVERT_PORT: u16 = 5124;

/// What carries a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// The better link.
    OneLink,
    /// A proxy at the customer that the encoder knows nothing of, and one at the provider.
    Proxies,
    /// plait with its defaults.
    Bond,
}

impl By {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneLink => "one link",
            Self::Proxies => "proxies",
            Self::Bond => "bond",
        }
    }

    fn carrier(self) -> Carrier {
        match self {
            Self::OneLink => Carrier::Bare(LINK_NAMES[0]),
            Self::Proxies => Carrier::Mptcp,
            Self::Bond => Carrier::plait(&LINK_NAMES),
        }
    }
}

/// Where a stream begins and ends.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) topology: &'a Topology,
    /// Where the encoder runs.
    pub(super) encoder: &'a NetNs,
    /// How it reaches the server.
    pub(super) server: IpAddr,
}

/// Both proxies, and the rules that lead the encoder's connections in.
#[derive(Debug)]
struct Proxies {
    // Drop order: nothing is led to a proxy that has ended.
    _rules: HeldRules,
    _near: ProxyProcess,
    _far: ProxyProcess,
    _scratch: Scratch,
}

/// Builds the network of a case, does `work` on it and removes it.
pub(super) fn on<T>(
    case: &Case,
    by: By,
    lateness: &mut Lateness,
    work: impl FnOnce(Place<'_>) -> Result<T>,
) -> Result<T> {
    on_site(&case.specs(), &by.carrier(), lateness, |site| {
        let topology = site.topology;
        let customer = &topology.customer().netns;
        if by != By::Proxies {
            let (server, over) = match by {
                By::Bond => (SERVER_V4, "dev plait0".to_owned()),
                _ => {
                    let next = link_v4(topology.link(LINK_NAMES[0])?.number, 2);
                    (SERVER_BARE_V4, format!("via {next} dev {}", LINK_NAMES[0]))
                }
            };
            send_alike(customer, server, &over)?;
            return work(Place { topology, encoder: customer, server: server.into() });
        }
        let host = host_behind(customer)?;
        send_alike(&host, SERVER_BARE_V4, &format!("via {ROUTER_V4}"))?;
        let _proxies = Proxies::start(topology)?;
        work(Place { topology, encoder: &host, server: SERVER_BARE_V4.into() })
    })
}

/// Gives connections to the server the congestion control of all that is measured: an encoder takes
/// the system's, which may be any.
fn send_alike(netns: &NetNs, server: Ipv4Addr, over: &str) -> Result<()> {
    ip_batch(netns, "", &[format!("route add {server}/32 {over} congctl {FETCH_CONGESTION}")])
}

impl Proxies {
    fn start(topology: &Topology) -> Result<Self> {
        allow_mptcp(&topology.provider)?;
        let scratch = Scratch::in_memory("live-proxies")?;
        let (customer, folder) = (&topology.customer().netns, scratch.path());
        let address = (PROVIDER_V4, CONVERT_PORT).into();
        let far = open_to_all(&[(address, WayIn::Convert)], FETCH_CONGESTION);
        let far = ProxyProcess::start(&topology.provider, folder, "far", &far)?;
        let listener = ([0, 0, 0, 0], REDIRECT_PORT).into();
        let near = ProxyFile {
            upstream: Some(Upstream { address, ..Upstream::default() }),
            ..open_to_all(&[(listener, WayIn::Redirect)], FETCH_CONGESTION)
        };
        let near = ProxyProcess::start(customer, folder, "near", &near)?;
        let rules = hold_rules(customer, folder, "near")?;
        Ok(Self { _rules: rules, _near: near, _far: far, _scratch: scratch })
    }
}
