//! Tests of a gateway's changes to its host, and of `plait check`.

use std::fs;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use plait_toml::gateway::{Gateway, Peer};
use plait_toml::value::Endpoint;
use socket2::{Domain, Protocol, Socket, Type};

use crate::gateway::{
    GatewayFile, GatewayPath, answers, cidr, endpoint_v4, make_key, plait_program,
};
use crate::output::Output;
use crate::process::{Service, wait_until};
use crate::scratch::Scratch;
use crate::topology::{ip_batch, ip_output, new_netns};
use crate::verify::trust::set_ups;

const LIMIT: Duration = Duration::from_secs(15);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const FORWARDING: &str = "all/forwarding";

/// `plait check` finds what makes `plait up` fail, and what makes a bond useless.
pub(super) fn check_and_up_agree(_output: &Output) -> Result<()> {
    set_ups::test_some()
}

/// A forwarding gateway keeps its links' routes from router advertisements, and accepts new ones,
/// also on a link that comes later. At its end everything is restored.
pub(super) fn forwarding_keeps_router_advertisements(_output: &Output) -> Result<()> {
    let (customer, router) = (new_netns("plait-customer")?, new_netns("plait-router")?);
    add_link(&customer, &router, 0)?;
    advertise(&router, 0, 1800)?;
    wait_for_default(&customer, true).context("before the gateway")?;

    let scratch = Scratch::in_memory("advertisements")?;
    let mut gateway = start(&customer, scratch.path())?;
    ensure!(sysctl(&customer, FORWARDING)? == "1", "the host does not forward");
    ensure!(sysctl(&customer, "eth0/accept_ra")? == "2", "accept_ra is not 2");
    wait_for_default(&customer, true).context("with forwarding")?;
    // The host notices a router that resigns, and one that comes back.
    advertise(&router, 0, 0)?;
    wait_for_default(&customer, false).context("the router has taken its leave")?;
    advertise(&router, 0, 1800)?;
    wait_for_default(&customer, true).context("the router is back")?;

    add_link(&customer, &router, 1)?;
    wait_until("accept_ra of the new link", LIMIT, || {
        Ok((sysctl(&customer, "eth1/accept_ra")? == "2").then_some(()))
    })?;
    let status = gateway.stop(LIMIT)?.context("the gateway does not end on SIGTERM")?;
    ensure!(status.success(), "the gateway ended with {status}");
    for (name, before) in [(FORWARDING, "0"), ("eth0/accept_ra", "1"), ("eth1/accept_ra", "1")] {
        let now = sysctl(&customer, name)?;
        ensure!(now == before, "{name} is {now} and was {before}");
    }
    wait_for_default(&customer, true).context("after the gateway")
}

/// A wire from `eth{number}`, which accepts router advertisements like a host, to the router.
fn add_link(customer: &NetNs, router: &NetNs, number: u8) -> Result<()> {
    let (near, far) = (format!("eth{number}"), format!("router{number}"));
    let wire = format!("link add {near} type veth peer name {far} netns plait-router");
    ip_batch(customer, "", &[wire])?;
    customer.set_sysctl(&format!("net.ipv6.conf.{near}.accept_ra"), "1")?;
    for (netns, device, host) in [(router, &far, 1), (customer, &near, 2)] {
        ip_batch(
            netns,
            "",
            &[
                format!("link set {device} up"),
                format!("addr add fe80::{host}/64 dev {device} nodad"),
                format!("addr add 10.{}.0.{host}/24 dev {device}", number + 1),
            ],
        )?;
    }
    Ok(())
}

/// Sends a router advertisement (RFC 4861 section 4.2) to all nodes on the link.
fn advertise(router: &NetNs, number: u8, lifetime_s: u16) -> Result<()> {
    const ROUTER_ADVERTISEMENT: u8 = 134;
    const HOP_LIMIT: u32 = 255;
    let mut packet = [0; 16];
    packet[0] = ROUTER_ADVERTISEMENT;
    packet[6..8].copy_from_slice(&lifetime_s.to_be_bytes());
    let device = format!("router{number}");
    router.run_in(|| -> Result<()> {
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        socket.bind_device(Some(device.as_bytes()))?;
        socket.set_multicast_hops_v6(HOP_LIMIT)?;
        socket.send_to(&packet, &SocketAddrV6::new(ALL_NODES, 0, 0, 0).into())?;
        Ok(())
    })?
}

fn wait_for_default(netns: &NetNs, wanted: bool) -> Result<()> {
    let what = if wanted { "a default route" } else { "no default route" };
    wait_until(what, LIMIT, || {
        let routes = ip_output(netns, &["-6", "route", "show", "default"])?;
        Ok((routes.contains("via fe80::1") == wanted).then_some(()))
    })
}

/// The value of a sysctl below `net/ipv6/conf`.
fn sysctl(netns: &NetNs, name: &str) -> Result<String> {
    let file = Path::new("/proc/sys/net/ipv6/conf").join(name);
    Ok(netns.run_in(|| fs::read_to_string(file))??.trim().to_owned())
}

/// A gateway that forwards IPv6, with every `eth*` as a link.
fn start(netns: &NetNs, folder: &Path) -> Result<Service> {
    make_key(&folder.join("gateway.key"))?;
    let peer_key = make_key(&folder.join("peer.key"))?;
    let file = folder.join("gateway.toml");
    let gateway = Gateway {
        private_key_file: "gateway.key".into(),
        address: vec![cidr("fd99::2/64")],
        forward: true,
        state_file: Some("state.json".into()),
        ..Gateway::default()
    };
    let path = GatewayPath { interface: Some("eth*".into()), ..GatewayPath::default() };
    let peer = Peer {
        public_key: peer_key,
        endpoint: vec![Endpoint::Address(endpoint_v4())],
        allowed_ips: vec![cidr("fd99::1/128")],
        ..Peer::default()
    };
    let text = GatewayFile { gateway, paths: vec![path], peers: vec![peer], tuning: None };
    fs::write(&file, text.to_text())?;
    let log = folder.join("gateway.log");
    let plait = plait_program()?;
    let mut service = Service::start(netns.command(plait).arg("up").arg(&file), &log)?;
    wait_until("a gateway that answers", LIMIT, || {
        let words = || fs::read_to_string(&log).unwrap_or_default();
        ensure!(service.runs(), "the gateway has ended: {}", words());
        Ok(answers(netns, &file)?.then_some(()))
    })?;
    Ok(service)
}
