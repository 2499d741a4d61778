//! The network of video.1 and video.3: a household with two links, a host behind it that knows
//! nothing of MPTCP, a proxy at the provider, a server that knows only TCP.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use plait_net::netns::NetNs;
use plait_toml::proxy::{Access, ProxyFile, Upstream, WayIn};
use plait_toml::value::Cidr;

use super::proxy_file;
use crate::measure::Transport;
use crate::proxy::{ByteServer, HeldRules, ProxyProcess, Route, hold_rules};
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, PROVIDER_V4, SERVER_BARE_V4, Topology, allow_mptcp, host_behind};

/// 40 Mbit/s at 12 ms and 20 at 18, with a queue that a home router has.
pub(super) const LINKS: [LinkSpec; 2] = [
    LinkSpec { queue_time: Duration::from_millis(100), ..LinkSpec::new("first", 40, 12, 12) },
    LinkSpec { queue_time: Duration::from_millis(100), ..LinkSpec::new("second", 20, 18, 18) },
];
const PORTS: [(WayIn, u16); 3] =
    [(WayIn::Http, 3128), (WayIn::Socks, 1080), (WayIn::Convert, 5124)];
/// Ports of the household's transparent listeners.
const REDIRECT_PORT: u16 = 3129;
const TPROXY_PORT: u16 = 3130;

/// A way to the server, of those that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) route: Route,
    /// Whether the client is the host behind the household, which speaks plain TCP.
    pub(super) from_host: bool,
    pub(super) by: Transport,
}

/// The whole network.
pub(super) struct Site {
    pub(super) topology: Topology,
    host: NetNs,
    scratch: Scratch,
    pub(super) plain: ByteServer,
    pub(super) multipath: ByteServer,
    pub(super) far: ProxyProcess,
}

impl Site {
    pub(super) fn build() -> Result<Self> {
        let topology = Topology::build(&LINKS)?;
        let customer = &topology.customer().netns;
        topology.enable_mptcp()?;
        allow_mptcp(&topology.provider)?;
        let host = host_behind(customer)?;
        let [plain, multipath] = [Transport::Tcp, Transport::Mptcp]
            .map(|transport| ByteServer::start(&topology.server, SERVER_BARE_V4.into(), transport));
        let (plain, multipath) = (plain?, multipath?);
        let scratch = Scratch::in_memory("proxies")?;
        let listeners = PORTS.map(|(way, port)| ((PROVIDER_V4, port).into(), way));
        let accesses = topology.customer().links.iter().map(|link| Access {
            name: link.spec.name.into(),
            networks: vec![Cidr { address: link.customer_address(), length: 32 }],
        });
        let file = ProxyFile { accesses: accesses.collect(), ..proxy_file(&listeners) };
        let far = ProxyProcess::start(&topology.provider, scratch.path(), "far", &file)?;
        Ok(Self { topology, host, scratch, plain, multipath, far })
    }

    /// The household's own proxy, and what leads the host's connections to it.
    pub(super) fn start_near(&self, way: WayIn) -> Result<(ProxyProcess, HeldRules)> {
        let port = if way == WayIn::Redirect { REDIRECT_PORT } else { TPROXY_PORT };
        let listener = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let upstream =
            Some(Upstream { address: self.proxy(WayIn::Convert), ..Upstream::default() });
        let file = ProxyFile { upstream, ..proxy_file(&[(listener, way)]) };
        let (netns, folder) = (&self.topology.customer().netns, self.scratch.path());
        let near = ProxyProcess::start(netns, folder, "near", &file)?;
        Ok((near, hold_rules(netns, folder, "near")?))
    }

    fn proxy(&self, way: WayIn) -> SocketAddr {
        let port = PORTS.iter().find(|(known, _)| *known == way).map_or(0, |(_, port)| *port);
        (PROVIDER_V4, port).into()
    }

    /// The kernel's MPTCP from end to end, which nothing between beats.
    pub(super) const DIRECT: Way = Way {
        name: "MPTCP from end to end",
        route: Route::Direct,
        from_host: false,
        by: Transport::Mptcp,
    };

    /// The time to the first byte on that way.
    pub(super) fn first_byte_direct(&self) -> Result<Duration> {
        let way = &Self::DIRECT;
        Ok(way.route.fetch(self.client(way), way.by, self.server(way), 1)?.first_byte)
    }

    /// Every way that a client takes by itself.
    pub(super) fn ways(&self) -> [Way; 4] {
        let way = |name, route| Way { name, route, from_host: false, by: Transport::Mptcp };
        [
            way("HTTP CONNECT", Route::Connect(self.proxy(WayIn::Http))),
            way("plain HTTP", Route::Plain(self.proxy(WayIn::Http))),
            way("SOCKS", Route::Socks(self.proxy(WayIn::Socks))),
            way("convert", Route::Convert(self.proxy(WayIn::Convert))),
        ]
    }

    /// The way of a host that knows of no proxy, through two of them.
    pub(super) fn transparent(way: WayIn) -> Way {
        let name = match way {
            WayIn::Redirect => "redirect, two proxies",
            _ => "tproxy, two proxies",
        };
        Way { name, route: Route::Direct, from_host: true, by: Transport::Tcp }
    }

    /// Where a way's client runs.
    pub(super) fn client(&self, way: &Way) -> &NetNs {
        if way.from_host { &self.host } else { &self.topology.customer().netns }
    }

    /// The server that a way leads to: one that knows only TCP, but for the direct one.
    pub(super) fn server(&self, way: &Way) -> SocketAddr {
        if *way == Self::DIRECT { self.multipath.address } else { self.plain.address }
    }

    /// What the provider's proxy had of memory at most, MiB.
    pub(super) fn far_memory_mib(&self) -> Result<f64> {
        self.far.peak_memory_mib()
    }
}
