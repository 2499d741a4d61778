//! bond.5: what an eavesdropper on the links can see, and what a forger can do.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;

use super::{Effort, Figure};
use crate::emulator::Way;
use crate::gateway::Bond;
use crate::gateway::captured::holds;
use crate::output::Progress;
use crate::topology::{LinkSpec, SERVER_BARE_V4, SERVER_V4, Topology, inner_v4};

mod forge;
mod host;
mod seen;

use forge::{FORGED_PER_KIND, forge};
use host::{Host, numbered};
use seen::Seen;

const MARKER: &[u8] = b"this-text-must-never-be-seen-on-a-link";
const MARKER_PORT: u16 = 9_009;
/// Datagrams with the marker in each direction.
const MARKED: usize = 200;
const CAPTURE_PACKETS_MAX: usize = 5_000;
/// Time in which a few datagrams have left the transmitter of a link.
const TRANSMISSION: Duration = Duration::from_millis(20);
/// Durations of the two steps, for the progress display.
const LISTENING: Duration = Duration::from_secs(5);
const FORGING: Duration = Duration::from_secs(20);
/// Time in which the last datagrams arrive.
const SETTLE: Duration = Duration::from_secs(1);
/// Lost packets are sent again, and may be lost again; after this time all have arrived.
const REST_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let mut progress = Progress::new(2, LISTENING + FORGING);
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    topology.capture(CAPTURE_PACKETS_MAX);
    let mut bond = Bond::over(&topology)?;
    let step = progress.step("listening on the links", LISTENING);
    let arrived = exchange_marked(&topology)?;
    let seen = Seen::on(&topology);
    drop(step);
    let mut figures = seen.figures(arrived);
    let _step = progress.step("forging datagrams", FORGING);
    for way in [Way::Up, Way::Down] {
        let mut host = host_behind(&topology, way)?;
        figures.extend(forge(&topology, &mut bond, &seen, way, "seen", &mut host)?);
    }
    let mut host = host_behind(&topology, Way::Up)?;
    let lost = capture_lost(&topology, &mut host)?;
    bond.wait_until_up(2)?;
    wait_until_at_rest(&mut bond)?;
    figures.push(Figure::count(
        "lost ones that their gateway sent again before any was forged",
        host.deliveries().genuine,
    ));
    figures.extend(forge(&topology, &mut bond, &lost, Way::Up, "lost", &mut host)?);
    bond.stop()?;
    figures.push(marker_is_seen_without_plait(&topology)?);
    Ok(figures)
}

/// The host that receives the inner packets of one direction.
fn host_behind(topology: &Topology, way: Way) -> Result<Host> {
    match way {
        Way::Up => Host::new(&topology.server, SERVER_V4.into()),
        Way::Down => Host::new(&topology.customer().netns, inner_v4(2).into()),
    }
}

/// Captures datagrams that the links lose: the gateway has not seen their packet numbers, so only
/// their tags can reveal a forgery.
fn capture_lost(topology: &Topology, host: &mut Host) -> Result<Seen> {
    let customer = topology.customer();
    let sender = customer.netns.run_in(|| UdpSocket::bind((inner_v4(2), 0)))??;
    topology.capture(CAPTURE_PACKETS_MAX);
    customer.links.iter().for_each(|link| link.emulator.set_cut(true));
    let numbers = 0..FORGED_PER_KIND as u32;
    host.expect(numbers.clone());
    for number in numbers {
        sender.send_to(&numbered(number), (SERVER_V4, MARKER_PORT))?;
    }
    std::thread::sleep(TRANSMISSION);
    customer.links.iter().for_each(|link| link.emulator.set_cut(false));
    Ok(Seen::on(topology))
}

/// Waits until the provider receives no inner packet for a while: the customer retransmits what its
/// links lost, which must not be mistaken for forgeries.
fn wait_until_at_rest(bond: &mut Bond<'_>) -> Result<()> {
    let deadline = Instant::now() + REST_WITHIN;
    let mut before = bond.provider_status()?.opened_packets()?;
    while Instant::now() < deadline {
        std::thread::sleep(SETTLE);
        let now = bond.provider_status()?.opened_packets()?;
        if now == before {
            return Ok(());
        }
        before = now;
    }
    bail!("inner packets still come {} s after the last was sent", REST_WITHIN.as_secs())
}

/// Sends marked datagrams both ways through the bond and counts those that arrive.
fn exchange_marked(topology: &Topology) -> Result<usize> {
    let customer = &topology.customer().netns;
    let ends = [inner_v4(2).into(), SERVER_V4.into()];
    let up = send_marked(customer, ends[0], &topology.server, ends[1])?;
    let down = send_marked(&topology.server, ends[1], customer, ends[0])?;
    Ok(up + down)
}

fn send_marked(from: &NetNs, source: IpAddr, to: &NetNs, destination: IpAddr) -> Result<usize> {
    let receiver = to.run_in(|| UdpSocket::bind((destination, MARKER_PORT)))??;
    let sender = from.run_in(|| UdpSocket::bind((source, 0)))??;
    sender.connect((destination, MARKER_PORT))?;
    receiver.set_nonblocking(true)?;
    let payload = MARKER.repeat(10);
    let mut buffer = [0; 2048];
    let mut arrived = 0;
    let mut count_arrived = || {
        while let Ok(length) = receiver.recv(&mut buffer) {
            arrived += usize::from(buffer[..length] == payload);
        }
    };
    for _ in 0..MARKED {
        sender.send(&payload)?;
        std::thread::sleep(Duration::from_millis(1));
        count_arrived();
    }
    std::thread::sleep(SETTLE);
    count_arrived();
    Ok(arrived)
}

/// The cross-check: without plait the capture does show the marker.
fn marker_is_seen_without_plait(topology: &Topology) -> Result<Figure> {
    let customer = topology.customer();
    let link = customer.links.first().context("a topology has links")?;
    link.emulator.capture(CAPTURE_PACKETS_MAX);
    let source = link.customer_address();
    send_marked(&customer.netns, source, &topology.server, SERVER_BARE_V4.into())?;
    let marked = link.emulator.captured(Way::Up).iter().filter(|p| holds(p, MARKER)).count();
    let name = "captured with the marker, without plait";
    Ok(Figure::count(name, marked as u64).at_least(1.0, "the capture does see clear text"))
}
