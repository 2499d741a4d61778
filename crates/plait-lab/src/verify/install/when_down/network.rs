//! A household with two links and a LAN, a provider, and a server that is reached over the bond and
//! over the bare links.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use plait_toml::value::WhenDown;

use super::asker::{Asker, By, Server};
use crate::emulator::Way;
use crate::gateway::captured::{Captured, sort};
use crate::gateway::{
    Gateway, GatewayFile, cidr, customer_file, endpoint_v4, make_key, path_over, provider_file,
};
use crate::process::{self, wait_until};
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, SERVER_BARE_V4, Topology, inner_v4, ip_batch, new_netns};

const LINKS: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
/// The LAN host's namespace.
const HOST: &str = "plait-host";
const HOST_V4: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 2);
const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 1);
const LAN: &str = "10.97.0.0/24";
const PORT: u16 = 9000;
const CAPTURE_PACKETS_MAX: usize = 50_000;
const UP_LIMIT: Duration = Duration::from_secs(15);

/// The whole network, and its gateways once they are started.
pub(super) struct Network {
    topology: Topology,
    _host: NetNs,
    scratch: Scratch,
    files: [GatewayFile; 2],
    customer: Option<Gateway>,
    provider: Option<Gateway>,
    _server: Server,
}

impl Network {
    pub(super) fn build(when_down: WhenDown) -> Result<Self> {
        let topology = Topology::build(&LINKS)?;
        let _host = lan_host(&topology.customer().netns)?;
        let scratch = Scratch::in_memory("when-down")?;
        let key = |name: &str| make_key(&scratch.path().join(name));
        let [customer_key, provider_key] = [key("customer.key")?, key("provider.key")?];
        let paths = LINKS.map(|link| path_over(link.name));
        let mut customer =
            customer_file("customer.key", 2, &provider_key, &[endpoint_v4()], &paths);
        customer.gateway.when_down = Some(when_down);
        if when_down == WhenDown::Block {
            customer.gateway.block_allows = vec![cidr(LAN)];
        }
        customer.gateway.forward = true;
        customer.peers[0].allowed_ips = vec![cidr("0.0.0.0/0"), cidr("::/0")];
        let mut provider = provider_file("provider.key", &[(customer_key, 2)]);
        provider.peers[0].allowed_ips.push(cidr(LAN));
        let server = Server::start(&topology.server, PORT)?;
        let files = [customer, provider];
        let (customer, provider) = (None, None);
        Ok(Self { topology, _host, scratch, files, customer, provider, _server: server })
    }

    pub(super) fn start_customer(&mut self) -> Result<()> {
        let netns = &self.topology.customer().netns;
        let [file, _] = &self.files;
        self.customer = Some(Gateway::start(netns, self.scratch.path(), "customer", file)?);
        Ok(())
    }

    pub(super) fn start_provider(&mut self) -> Result<()> {
        let [_, file] = &self.files;
        let started =
            Gateway::start(&self.topology.provider, self.scratch.path(), "provider", file)?;
        self.provider = Some(started);
        Ok(())
    }

    /// Starts both after they were killed.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.restart_provider()?;
        let customer = self.customer.as_mut().context("the customer was not started")?;
        customer.restart(&self.topology.customer().netns)
    }

    pub(super) fn restart_provider(&mut self) -> Result<()> {
        let provider = self.provider.as_mut().context("the provider was not started")?;
        provider.restart(&self.topology.provider)
    }

    pub(super) fn customer(&mut self) -> Result<&mut Gateway> {
        self.customer.as_mut().context("the customer was not started")
    }

    pub(super) fn provider(&mut self) -> Result<&mut Gateway> {
        self.provider.as_mut().context("the provider was not started")
    }

    pub(super) fn wait_until_up(&mut self, paths: usize) -> Result<()> {
        let netns = &self.topology.customer().netns;
        let customer = self.customer.as_mut().context("the customer was not started")?;
        wait_until("the customer's bond", UP_LIMIT, || {
            let status = customer.status(netns)?;
            Ok(status.filter(|status| status.is_up(paths)).map(drop))
        })
        .with_context(|| format!("the customer's log ends:\n{}", customer.log_tail()))
    }

    /// Waits until the kill switch is in force: the first that the gateway sets up.
    pub(super) fn wait_until_blocked(&self) -> Result<()> {
        wait_until("the kill switch", UP_LIMIT, || {
            let mut command = self.topology.customer().netns.command("nft");
            command.args(["list", "table", "inet", "plait-block_plait0"]);
            let listed = process::run_any(&mut command, "", UP_LIMIT)?;
            Ok(listed.status.success().then_some(()))
        })
    }

    /// Cuts the link that the host's own default route takes, both ways; it keeps its carrier.
    pub(super) fn cut_preferred(&self) {
        self.topology.customer().links[0].emulator.set_cut(true);
    }

    /// Streams of the host behind the customer and of the customer itself.
    pub(super) fn ask_everywhere(&self) -> Result<Vec<Asker>> {
        let mut askers = Vec::new();
        for (name, netns) in [("the LAN host", HOST), ("the gateway's host", "plait-customer")] {
            for by in [By::Udp, By::Tcp] {
                askers.push(Asker::start(name, by, netns, server())?);
            }
        }
        Ok(askers)
    }

    /// Answers to twenty questions of the LAN host that came through the bond.
    pub(super) fn answers_through_the_bond(&self) -> Result<u64> {
        let asker = Asker::start("the LAN host", By::Udp, HOST, server())?;
        std::thread::sleep(Duration::from_millis(1500));
        let seen = asker.stop();
        Ok(seen.count_after(|source| self.is_inside(source), Duration::ZERO).min(20))
    }

    /// Whether the server sees this address of what comes through the bond.
    pub(super) fn is_inside(&self, source: IpAddr) -> bool {
        [IpAddr::from(HOST_V4), inner_v4(2).into()].contains(&source)
    }

    pub(super) fn begin_capture(&self) {
        self.topology.capture(CAPTURE_PACKETS_MAX);
    }

    /// Packets that left the customer over its links beside plait's datagrams and what a link
    /// needs; and all packets.
    pub(super) fn outside(&self) -> (u64, u64) {
        let up: Vec<_> = self.topology.captured().filter(|(way, _)| *way == Way::Up).collect();
        let foreign = up.iter().filter(|(_, packet)| matches!(sort(packet), Captured::Foreign));
        (foreign.count() as u64, up.len() as u64)
    }
}

fn server() -> SocketAddr {
    (SERVER_BARE_V4, PORT).into()
}

/// A host behind the customer, which is its router.
fn lan_host(customer: &NetNs) -> Result<NetNs> {
    let host = new_netns(HOST)?;
    let pair = format!("link add lan type veth peer name router netns {HOST}");
    ip_batch(customer, "", &[pair])?;
    let of_router = [format!("addr add {ROUTER_V4}/24 dev lan"), "link set dev lan up".into()];
    ip_batch(customer, "", &of_router)?;
    let of_host = [
        format!("addr add {HOST_V4}/24 dev router"),
        "link set dev router up".into(),
        format!("route add default via {ROUTER_V4}"),
    ];
    ip_batch(&host, "", &of_host)?;
    Ok(host)
}
