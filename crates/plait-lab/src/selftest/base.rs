//! Tests of the lab without plait.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use plait_net::tun::Tun;

use crate::emulator::{Lateness, Way};
use crate::measure::ping;
use crate::measure::{self, FileServer, IperfServer, Span, Target, Transport, WebServer, mbit};
use crate::output::Output;
use crate::process::{self, wait_until};
use crate::site::{Carrier, on_site};
use crate::topology::{LinkSpec, SERVER_BARE_V4, SERVER_V4, Topology, link_v4};

const LIMIT: Duration = Duration::from_secs(10);

/// What [`plait_net::netns::isolate`] promises.
pub(super) fn isolation(_output: &Output) -> Result<()> {
    ensure!(std::process::id() == 1, "the lab is process id 1 of its namespace");
    let devices = process::run(Command::new("ip").args(["-o", "link"]), "", LIMIT)?;
    ensure!(devices.lines().count() == 1, "only lo exists, not: {devices}");
    ensure!(devices.contains("lo: <LOOPBACK,UP"), "lo is up, not: {devices}");
    ensure!(fs::read_dir("/run")?.next().is_none(), "/run is empty");
    let netns = NetNs::create("plait-test").context("a namespace with a name")?;
    let again = NetNs::create("plait-test");
    ensure!(again.is_err(), "a name is given once");
    let outer = fs::read_link("/proc/self/ns/net")?;
    let inner = netns.run_in(|| fs::read_link("/proc/thread-self/ns/net"))??;
    ensure!(outer != inner, "work runs inside the namespace");
    let mut command = netns.command("readlink");
    let entered = process::run(command.arg("/proc/self/ns/net"), "", LIMIT)?;
    ensure!(entered.trim() == inner.display().to_string(), "a command runs in the namespace");
    let opened =
        NetNs::open("plait-test")?.run_in(|| fs::read_link("/proc/thread-self/ns/net"))??;
    ensure!(opened == inner, "the name leads to the namespace");
    drop(netns);
    ensure!(!Path::new("/run/netns/plait-test").exists(), "the name goes with its owner");
    Ok(())
}

/// Makes one of everything, prints it, and waits to be killed.
pub(super) fn hang(output: &Output) -> Result<()> {
    let netns = NetNs::create("plait-hang")?;
    let _tun = netns.run_in(|| Tun::open("hang0", false))??;
    let inode = netns.run_in(|| fs::read_link("/proc/thread-self/ns/net"))??;
    let mut children =
        [netns.command("sleep").arg("1000").spawn()?, Command::new("sleep").arg("1000").spawn()?];
    let own = fs::read_link("/proc/self/ns/net")?;
    output.line(format!("ready {} {}", own.display(), inode.display()))?;
    for child in &mut children {
        child.wait()?;
    }
    Ok(())
}

const TEST_LINK: LinkSpec = LinkSpec::new("link", 100, 20, 20);

/// 100 Mbit/s and 10 ms each way: prints the results of TCP and ping.
pub(super) fn emulator(output: &Output) -> Result<()> {
    let topology = Topology::build(&[TEST_LINK])?;
    let customer = &topology.customer().netns;
    let pings = ping(customer, link_v4(1, 2), None, 10)?;
    ensure!(pings.received == 10, "every ping comes back: {pings:?}");
    let rtt_us = pings.mean_rtt_us.context("pings have a round-trip time")?;
    ensure!(rtt_us >= 20_000, "no ping is faster than the link: {rtt_us} us");
    let _server = IperfServer::start(&topology.server, SERVER_BARE_V4.into())?;
    let target = Target { client: customer, server: SERVER_BARE_V4.into(), bind: None };
    let span = Span { seconds: 3, omit_seconds: 1 };
    let tcp = measure::tcp(target, span, "cubic")?;
    ensure!(tcp.throughput_bps <= 100_000_000, "TCP is no faster than the link: {tcp:?}");
    let report = topology.customer().links[0].emulator.report();
    let late = report.lateness.summary();
    output.line(format!(
        "TCP {} Mbit/s (at most 96.5 possible), RTT {rtt_us} us (about 20500 expected), \
         released late by {} us on average, {} us at the 99th percentile, {} us at most",
        mbit(tcp.throughput_bps),
        late.mean_us,
        late.p99_us,
        late.max_us
    ))?;
    for counters in [report.up, report.down] {
        ensure!(counters.out_packets > 0, "both directions carried something");
        let gone = counters.dropped_queue_packets + counters.out_packets;
        ensure!(counters.in_packets.abs_diff(gone) < 1000, "packets are accounted: {counters:?}");
    }
    ensure!(report.refused_packets == 0, "the devices took every packet");
    Ok(())
}

/// TCP, UDP and a file over a bare link: every kind of figure exists and none exceeds the link.
pub(super) fn measurements(output: &Output) -> Result<()> {
    const OFFERED_BPS: u64 = 30_000_000;
    let span = Span { seconds: 2, omit_seconds: 1 };
    let carrier = Carrier::Bare("dsl");
    on_site(&[LinkSpec::DSL, LinkSpec::LTE], &carrier, &mut Lateness::default(), |site| {
        let tcp = measure::tcp(site.target(), span, "cubic")?;
        let udp = measure::udp(site.target(), span, OFFERED_BPS)?;
        let web = WebServer::start(&site.topology.server, 4_000_000)?;
        let file = measure::download(site.target(), &web)?;
        output.line(format!("{tcp:?}\n{udp:?}\n{file:?}"))?;
        ensure!(tcp.congestion == "cubic", "the sender used what was asked for");
        ensure!(tcp.segments > 1000 && tcp.throughput_bps < 66_000_000, "TCP: {tcp:?}");
        ensure!(udp.packets > 5000 && udp.throughput_bps <= OFFERED_BPS * 11 / 10, "UDP: {udp:?}");
        ensure!(file.bytes == 4_000_000 && file.throughput_bps < 64_000_000, "file: {file:?}");
        let [dsl, lte] = &site.topology.customer().links[..] else {
            unreachable!("the network was built with two links");
        };
        let carried = [dsl, lte].map(|link| link.emulator.report().down.out_packets);
        // The kernel announces a new device's multicast groups on the link.
        ensure!(carried[0] > 10_000 && carried[1] < 10, "only the DSL line was used: {carried:?}");
        Ok(())
    })
}

/// Files arrive over a bare link and over the kernel's MPTCP, each with its sender's view.
pub(super) fn fetch(output: &Output) -> Result<()> {
    const BYTES: u64 = 3_000_000;
    let links = [LinkSpec::new("first", 20, 20, 20), LinkSpec::new("second", 20, 30, 30)];
    let topology = Topology::build(&links)?;
    let client = &topology.customer().netns;
    let bind = Some(topology.link("second")?.customer_address());
    let target = Target { client, server: SERVER_BARE_V4.into(), bind };
    let server = FileServer::start(&topology.server, target.server, Transport::Tcp, BYTES)?;
    let file = server.fetch(target, BYTES)?;
    output.line(format!("TCP: {file:?}"))?;
    ensure!(file.is_complete() && file.is_intact, "the file is whole: {file:?}");
    ensure!((10_000_000..20_000_000).contains(&file.rate_bps()), "20 Mbit/s: {file:?}");
    let view = file.sender.context("a sender's view")?;
    ensure!(view.info.bytes_sent >= BYTES && view.info.srtt_us > 30_000, "sender: {view:?}");
    ensure!(server.fetch(target, BYTES + 1).is_err(), "no more than there is");
    ensure!(server.fetch(target, 1)?.is_complete(), "the server goes on");
    drop(server);
    if !Path::new("/proc/sys/net/mptcp").exists() {
        output.line("MPTCP: skipped, this kernel has none")?;
        return Ok(());
    }
    topology.enable_mptcp()?;
    let carried = |link: &str| -> Result<u64> {
        Ok(topology.link(link)?.emulator.delivered_bytes(Way::Down))
    };
    let before = carried("second")?;
    let server = FileServer::start(&topology.server, target.server, Transport::Mptcp, BYTES)?;
    let file = server.fetch(Target { bind: None, ..target }, BYTES)?;
    output.line(format!("MPTCP: {file:?}"))?;
    ensure!(file.is_complete() && file.is_intact, "the file is whole: {file:?}");
    ensure!(carried("second")? - before > BYTES / 10, "both links are used");
    Ok(())
}

/// Source addresses choose their link; packets for the bond never leave over a bare link.
pub(super) fn topology(_output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let customer = topology.customer();
    for link in &customer.links {
        let before = link.emulator.report().up.out_packets;
        let pings = ping(&customer.netns, SERVER_BARE_V4, Some(link.customer_address()), 3)?;
        ensure!(pings.received == 3, "the server answers over {}: {pings:?}", link.spec.name);
        let carried = link.emulator.report().up.out_packets - before;
        ensure!(carried == 3, "{} carried its 3 pings, not {carried}", link.spec.name);
    }
    let pings = ping(&customer.netns, SERVER_V4, None, 1);
    ensure!(
        pings.is_err() || pings.is_ok_and(|pings| pings.received == 0),
        "the bond's address is out of reach without the bond"
    );
    Ok(())
}

/// A running link changes its delay, and can be cut and joined.
pub(super) fn reconfiguration(_output: &Output) -> Result<()> {
    let topology = Topology::build(&[TEST_LINK])?;
    let customer = topology.customer();
    let emulator = &customer.links[0].emulator;
    emulator.capture(5);
    emulator.reconfigure(|config| plait_sim::link::LinkConfig {
        delay: Duration::from_millis(30),
        ..config
    });
    let slower = ping(&customer.netns, link_v4(1, 2), None, 3)?;
    ensure!(slower.mean_rtt_us.is_some_and(|rtt| rtt >= 60_000), "60 ms round trip: {slower:?}");
    let captured = emulator.captured(Way::Up);
    ensure!(captured.len() == 3, "three pings were captured, not {}", captured.len());
    ensure!(captured.iter().all(|packet| packet[0] >> 4 == 4), "they are IPv4");
    emulator.set_cut(true);
    ensure!(ping(&customer.netns, link_v4(1, 2), None, 2)?.received == 0, "a cut link is silent");
    emulator.set_cut(false);
    ensure!(ping(&customer.netns, link_v4(1, 2), None, 2)?.received == 2, "a joined link carries");
    Ok(())
}

/// A connection of the kernel's MPTCP uses every link.
pub(super) fn mptcp(output: &Output) -> Result<()> {
    const BYTES: u64 = 500_000;
    const PATIENCE: Duration = Duration::from_secs(30);
    if !Path::new("/proc/sys/net/mptcp").exists() {
        output.line("mptcp: skipped, this kernel has none")?;
        return Ok(());
    }
    let links = [LinkSpec::new("first", 20, 20, 20), LinkSpec::new("second", 10, 40, 40)];
    on_site(&links, &Carrier::Mptcp, &mut Lateness::default(), |site| {
        let _stream = site.download()?;
        let carried = || {
            let links = site.topology.customer().links.iter();
            links.map(|link| link.emulator.delivered_bytes(Way::Down)).collect::<Vec<_>>()
        };
        let both = || Ok(carried().iter().all(|bytes| *bytes > BYTES).then_some(()));
        wait_until("a download over both links", PATIENCE, both)
            .with_context(|| format!("{:?} bytes over the links", carried()))?;
        output.line(format!("{:?} bytes over the links", carried()))
    })
}
