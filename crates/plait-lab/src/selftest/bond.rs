//! Tests of real gateways over emulated links.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;

use crate::gateway::{
    Bond, BondSetup, Gateway, customer_file, endpoint_v4, endpoint_v6, make_key, path_over,
    provider_file,
};
use crate::measure::{self, IperfServer, Span, Target, WebServer, mbit};
use crate::measure::{Pings, counters, ping};
use crate::output::Output;
use crate::process::{self, wait_until};
use crate::scratch::Scratch;
use crate::topology::{
    Customer, LinkSpec, SERVER_V4, SERVER_V6, Topology, inner_v4, inner_v6, ip_batch, mtu_of,
};

const SPAN: Span = Span { seconds: 2, omit_seconds: 1 };
const PACKETS_MIN: u64 = 100;
/// Links slow enough that even a busy machine fills them.
const NARROW: [LinkSpec; 2] = [LinkSpec::new("dsl", 8, 13, 13), LinkSpec::new("lte", 6, 30, 30)];

fn all_came_back(what: &str, pings: Pings, sent: u32) -> Result<()> {
    ensure!(pings.received == sent, "{what}: {} of {sent} pings came back", pings.received);
    Ok(())
}

/// Ping, TCP and a file pass through a bond of two links, and both links carry them.
pub(super) fn carries_ping_and_tcp(output: &Output) -> Result<()> {
    let topology = Topology::build(&NARROW)?;
    let customer = &topology.customer().netns;
    let mut bond = Bond::over(&topology)?;
    all_came_back("to the other gateway", ping(customer, inner_v4(1), None, 5)?, 5)?;
    all_came_back("to the server", ping(customer, SERVER_V4, None, 5)?, 5)?;

    let _iperf = IperfServer::start(&topology.server, SERVER_V4.into())?;
    let web = WebServer::start(&topology.server, 4_000_000)?;
    let target = Target { client: customer, server: SERVER_V4.into(), bind: None };
    let tcp = measure::tcp(target, SPAN, "cubic")?;
    measure::download(target, &web)?;
    output.line(format!("TCP through the bond: {} Mbit/s", mbit(tcp.throughput_bps)))?;
    for link in &topology.customer().links {
        let carried = link.emulator.report().down.out_packets;
        ensure!(carried > PACKETS_MIN, "{} carried {carried} packets only", link.spec.name);
    }
    bond.stop()
}

/// Builds the bond and keeps it until standard input ends, for inspection from outside with
/// `nsenter`.
pub(super) fn stand(output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let _iperf = IperfServer::start(&topology.server, SERVER_V4.into())?;
    let mut bond = Bond::over(&topology)?;
    output.line("the bond stands; ip netns list shows the namespaces")?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    bond.stop()
}

/// IPv6 passes through the bond, and the bond runs over IPv6.
pub(super) fn carries_ipv6_inside_and_outside(_output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let customer = &topology.customer().netns;
    let mut setup = BondSetup::over(&["dsl", "lte"]);
    for endpoint in [endpoint_v4(), endpoint_v6()] {
        setup.endpoints = vec![endpoint];
        let mut bond = Bond::start(customer, &topology.provider, &setup)
            .with_context(|| format!("a bond to {endpoint}"))?;
        for (what, address) in [
            ("IPv6 to the other gateway", IpAddr::from(inner_v6(1))),
            ("IPv6 to the server", IpAddr::from(SERVER_V6)),
            ("IPv4 to the server", IpAddr::from(SERVER_V4)),
        ] {
            all_came_back(what, ping(customer, address, None, 3)?, 3)
                .with_context(|| format!("over {endpoint}"))?;
        }
        bond.stop()?;
    }
    Ok(())
}

/// Over links of 1500 bytes, inner packets of every size up to the TUN's MTU come through, and
/// larger ones are answered with the MTU instead of vanishing.
pub(super) fn fills_links_of_ordinary_mtu(_output: &Output) -> Result<()> {
    let links = [LinkSpec::DSL, LinkSpec::LTE].map(|link| LinkSpec { mtu: 1500, ..link });
    let topology = Topology::build(&links)?;
    let customer = &topology.customer().netns;
    let mut bond = Bond::over(&topology)?;
    let mtu = mtu_of(customer, "plait0")?;
    for bytes in [100, mtu / 2, mtu - 1, mtu] {
        let answered = ping_of_size(customer, bytes)?;
        ensure!(answered, "a packet of {bytes} bytes does not come through an MTU of {mtu}");
    }
    ensure!(!ping_of_size(customer, mtu + 1)?, "a packet beyond the MTU came through whole");
    let web = WebServer::start(&topology.server, 4_000_000)?;
    let target = Target { client: customer, server: SERVER_V4.into(), bind: None };
    measure::download(target, &web)?;
    for link in &topology.customer().links {
        let refused = link.emulator.report().refused_packets;
        ensure!(refused == 0, "{} refused {refused} packets", link.spec.name);
    }
    bond.stop()
}

/// Whether a ping whose IP packet has `bytes` bytes, not to be fragmented, is answered.
fn ping_of_size(netns: &NetNs, bytes: u32) -> Result<bool> {
    const HEADER_BYTES: u32 = 28;
    let payload = (bytes - HEADER_BYTES).to_string();
    let mut command = netns.command("ping");
    command.args(["-n", "-q", "-M", "do", "-c", "2", "-i", "0.2", "-W", "2", "-s", &payload]);
    let limit = Duration::from_secs(10);
    Ok(process::run_any(command.arg(SERVER_V4.to_string()), "", limit)?.status.success())
}

/// One gateway serves two customers, and each gets its own packets.
pub(super) fn several_peers(_output: &Output) -> Result<()> {
    let second = LinkSpec { name: "cable", ..LinkSpec::LTE };
    let topology = Topology::build_customers(&[&[LinkSpec::DSL], &[second]])?;
    let scratch = Scratch::in_memory("several-peers")?;
    let provider_key = make_key(&scratch.path().join("provider.key"))?;
    let mut keys = Vec::new();
    let mut files = Vec::new();
    for (customer, host) in topology.customers.iter().zip([2_u8, 3]) {
        let key_file = format!("customer{host}.key");
        keys.push((make_key(&scratch.path().join(&key_file))?, host));
        let paths = [path_over(customer.links[0].spec.name)];
        let mut file = customer_file(&key_file, host, &provider_key, &[endpoint_v4()], &paths);
        file.gateway.tun = format!("plait{host}");
        files.push(file);
    }
    let provider_file = provider_file("provider.key", &keys);
    let (provider_netns, folder) = (&topology.provider, scratch.path());
    let mut provider = Gateway::start(provider_netns, folder, "provider", &provider_file)?;
    let mut gateways = Vec::new();
    for ((customer, file), (_, host)) in topology.customers.iter().zip(&files).zip(&keys) {
        gateways.push(Gateway::start(&customer.netns, folder, &format!("customer{host}"), file)?);
    }
    wait_until("both peers up", Duration::from_secs(15), || {
        let status = provider.status(provider_netns)?;
        Ok(status.filter(|status| status.peers.len() == 2 && status.is_up(1)))
    })
    .with_context(|| provider.log_tail())?;
    for customer in &topology.customers {
        let name = customer.links[0].spec.name;
        all_came_back(name, ping(&customer.netns, SERVER_V4, None, 5)?, 5)?;
    }
    for gateway in &mut gateways {
        gateway.stop()?;
    }
    provider.stop()
}

/// A packet whose source is not the peer's does not come out at the other side, and is counted.
pub(super) fn spoofed_source_is_dropped(_output: &Output) -> Result<()> {
    const SPOOFED: &str = "203.0.113.7";
    const SENT: u64 = 5;
    let topology = Topology::build(&[LinkSpec::DSL])?;
    let customer = &topology.customer().netns;
    let mut bond = Bond::over(&topology)?;
    ip_batch(customer, "", &[format!("addr add {SPOOFED}/32 dev plait0")])?;
    let dropped = |bond: &mut Bond<'_>| -> Result<u64> {
        let both = [bond.customer_status()?, bond.provider_status()?];
        Ok(both.iter().filter_map(|status| status.drops.get("source-not-allowed")).sum())
    };
    let before = dropped(&mut bond)?;
    let delivered = received_at_server(&topology)?;
    let pings = ping(customer, SERVER_V4, Some(SPOOFED.parse()?), u32::try_from(SENT)?)?;
    ensure!(pings.received == 0, "a spoofed ping was answered");
    let rose = dropped(&mut bond)? - before;
    ensure!(rose == SENT, "{SENT} spoofed packets were sent and {rose} counted");
    ensure!(received_at_server(&topology)? == delivered, "nothing reached the server");
    all_came_back("with the right source", ping(customer, SERVER_V4, None, 3)?, 3)?;
    bond.stop()
}

/// Pings that the server has answered so far.
fn received_at_server(topology: &Topology) -> Result<u64> {
    let text =
        topology.server.run_in(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let echos = counters(&text, "Icmp").find(|(name, _)| *name == "InEchos");
    Ok(echos.context("/proc/net/snmp has an unknown form")?.1)
}

/// Each path alone starts the bond, whatever its place in the configuration.
pub(super) fn either_path_starts(_output: &Output) -> Result<()> {
    for dead in ["dsl", "lte"] {
        let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
        let customer = &topology.customer().netns;
        let emulator = &topology.link(dead)?.emulator;
        emulator.set_cut(true);
        let setup = BondSetup::over(&["dsl", "lte"]);
        let mut bond = Bond::start_without_waiting(customer, &topology.provider, &setup)?;
        bond.wait_until_up(1).with_context(|| format!("with {dead} cut"))?;
        all_came_back(&format!("with {dead} cut"), ping(customer, SERVER_V4, None, 5)?, 5)?;
        emulator.set_cut(false);
        bond.wait_until_up(2).with_context(|| format!("after {dead} was joined"))?;
        bond.stop()?;
    }
    Ok(())
}

/// The bond goes on over one link when the other fails silently.
pub(super) fn survives_a_dead_link(_output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let Customer { netns, .. } = topology.customer();
    let mut bond = Bond::over(&topology)?;
    for dead in ["dsl", "lte"] {
        let emulator = &topology.link(dead)?.emulator;
        emulator.set_cut(true);
        // Packets in flight when the link failed, and those that revealed it, may be lost.
        let _noticed = ping(netns, SERVER_V4, None, 15)?;
        all_came_back(&format!("with {dead} dead"), ping(netns, SERVER_V4, None, 5)?, 5)?;
        emulator.set_cut(false);
        bond.wait_until_up(2).with_context(|| format!("after {dead} was joined"))?;
    }
    bond.stop()
}

/// Either gateway can be killed and started again; the bond comes back without the other's help.
pub(super) fn restarts_after_kill(_output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let customer = &topology.customer().netns;
    let mut bond = Bond::over(&topology)?;
    bond.customer.kill_and_restart(customer)?;
    bond.wait_until_up(2).context("after the customer's gateway was killed")?;
    all_came_back("after the customer's restart", ping(customer, SERVER_V4, None, 5)?, 5)?;
    bond.provider.kill_and_restart(&topology.provider)?;
    // The customer notices from unanswered traffic.
    let _noticed = ping(customer, SERVER_V4, None, 15)?;
    bond.wait_until_up(2).context("after the provider's gateway was killed")?;
    all_came_back("after the provider's restart", ping(customer, SERVER_V4, None, 5)?, 5)?;
    bond.stop()
}
