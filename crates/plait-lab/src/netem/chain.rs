//! The networks: a link of netem between two routers, or of the emulator.
//!
//! ```text
//! customer ── near ══ far ── provider
//! ```
//!
//! Rate and queue are on the wire between the routers, loss and delay behind it. A netem at the
//! sender would hold the sender back by itself (TCP small queues); two for one wire would share one
//! limit of packets.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use plait_net::tun::Tun;
use plait_sim::link::{Access, Discipline, LinkConfig, Loss, Room};
use plait_sim::ratio::Ratio;
use plait_sim::scenario::LinkSpec;
use plait_sim::world::link_config::of_way;

use super::Carrier;
use crate::emulator::{Emulator, Epoch, Strand};
use crate::process;
use crate::topology::{LinkEnds, ip_batch, link_v4, new_netns};

const TC_LIMIT: Duration = Duration::from_secs(10);
/// The largest IP packet of either kind of link.
const MTU: u32 = 1500;
/// netem counts a packet's Ethernet header, which is not on the link: `rate`'s overhead.
const HEADER_BYTES: i32 = 14;
/// As good as no limit, for what only delays.
const FLYING_MAX: u32 = 1_000_000;
/// TCP sends packets as long as on a real wire: netem would take a train of them for one.
const ONE_BY_ONE: &str = "gso_max_segs 1";
/// The emulated link's device and number.
const EMULATED: (&str, u8) = ("link", 1);

/// Two hosts and a link.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) customer: NetNs,
    pub(super) provider: NetNs,
    /// An address of the provider.
    pub(super) server: IpAddr,
    emulator: Option<Emulator>,
    /// They live as long as the chain.
    _routers: Vec<NetNs>,
}

impl Chain {
    pub(super) fn build(link: &LinkSpec, carrier: Carrier, seed: u64) -> Result<Self> {
        match carrier {
            Carrier::Netem => Self::netem(link),
            Carrier::Emulator => Self::emulated(link, seed),
        }
    }

    fn emulated(link: &LinkSpec, seed: u64) -> Result<Self> {
        let (customer, provider) = (new_netns("plait-customer")?, new_netns("plait-provider")?);
        let (device, number) = EMULATED;
        let ends = LinkEnds { device, number, mtu: MTU };
        let open = |netns: &NetNs, host| -> Result<Tun> {
            let tun = ends.open(netns, host)?;
            ip_batch(netns, "", &[format!("link set dev {device} {ONE_BY_ONE}")])?;
            Ok(tun)
        };
        let strand = Strand {
            customer: open(&customer, 1)?,
            provider: open(&provider, 2)?,
            up: of_way(link, &link.up, seed.wrapping_mul(2)),
            down: of_way(link, &link.down, seed.wrapping_mul(2) + 1),
            through: None,
            radio: None,
        };
        let emulator = Some(Emulator::join(vec![strand], None, Epoch::start())?);
        let server = link_v4(number, 2).into();
        Ok(Self { customer, provider, server, emulator, _routers: Vec::new() })
    }

    fn netem(link: &LinkSpec) -> Result<Self> {
        let [up, down] = [&link.up, &link.down].map(|way| of_way::<()>(link, way, 0).config());
        let hosts = ["plait-customer", "plait-near", "plait-far", "plait-provider"];
        let [customer, near, far, provider] = hosts.map(new_netns);
        let (customer, near, far, provider) = (customer?, near?, far?, provider?);
        for (wire, here, there) in [(1, &customer, &near), (2, &near, &far), (3, &far, &provider)] {
            join(wire, here, hosts[usize::from(wire)], there)?;
        }
        for router in [&near, &far] {
            router.set_sysctl("net.ipv4.ip_forward", "1")?;
        }
        let routes = [
            (&customer, format!("default via {}", address(1, 2))),
            (&near, format!("{}/30 via {}", address(3, 0), address(2, 2))),
            (&far, format!("{}/30 via {}", address(1, 0), address(2, 1))),
            (&provider, format!("default via {}", address(3, 1))),
        ];
        for (host, route) in routes {
            ip_batch(host, "", &[format!("route add {route}")])?;
        }
        for (router, wire, line) in [
            (&near, 2, rate_and_queue(&up)?),
            (&far, 3, loss_and_delay(&up)?),
            (&far, 2, rate_and_queue(&down)?),
            (&near, 1, loss_and_delay(&down)?),
        ] {
            add_netem(router, wire, &line)?;
        }
        let (server, emulator) = (IpAddr::V4(address(3, 2)), None);
        Ok(Self { customer, provider, server, emulator, _routers: vec![near, far] })
    }

    /// The 99th percentile of how late the emulator released packets.
    pub(super) fn late_p99_us(&self) -> Option<u64> {
        Some(self.emulator.as_ref()?.report().lateness.summary().p99_us)
    }
}

/// An address of a wire.
fn address(wire: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 97, wire, host)
}

fn device(wire: u8) -> String {
    format!("wire{wire}")
}

/// A wire of two devices with one name.
fn join(wire: u8, here: &NetNs, name_there: &str, there: &NetNs) -> Result<()> {
    let device = device(wire);
    let pair = format!("link add {device} type veth peer name {device} netns {name_there}");
    ip_batch(here, "", &[pair])?;
    for (netns, host) in [(here, 1), (there, 2)] {
        ip_batch(
            netns,
            "",
            &[
                format!("addr add {}/30 dev {device}", address(wire, host)),
                format!("link set dev {device} mtu {MTU} {ONE_BY_ONE} up"),
            ],
        )?;
    }
    Ok(())
}

/// netem's limit counts the packet that is being sent, the link model's queue does not.
fn rate_and_queue(config: &LinkConfig) -> Result<String> {
    let LinkConfig { discipline, policer, shaper, access, .. } = *config;
    let is_plain = discipline == Discipline::DropTail
        && policer.is_none()
        && shaper.is_none()
        && access == Access::Always;
    let (true, Room::Packets(packets)) = (is_plain, config.queue) else {
        bail!("netem has a rate and a queue in packets alone: write queue_packets, and no more");
    };
    let (bits, limit) = (config.rate.bits_per_second(), packets + 1);
    Ok(format!("rate {bits}bit -{HEADER_BYTES} limit {limit}"))
}

fn loss_and_delay(config: &LinkConfig) -> Result<String> {
    if !config.jitter.is_zero() {
        bail!("netem's jitter is not the link model's: write one rtt_ms");
    }
    let loss = match config.loss {
        Loss::Bernoulli(Ratio::ZERO) => String::new(),
        Loss::Bernoulli(ratio) => format!(" loss {}", percent(ratio)),
        Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            let shares = [good_to_bad, bad_to_good, loss_bad, loss_good].map(percent);
            format!(" loss gemodel {}", shares.join(" "))
        }
    };
    Ok(format!("delay {}us{loss} limit {FLYING_MAX}", config.delay.as_micros()))
}

fn percent(ratio: Ratio) -> String {
    format!("{}%", f64::from(ratio.ppm()) / 1e4)
}

fn add_netem(netns: &NetNs, wire: u8, line: &str) -> Result<()> {
    let line = format!("qdisc add dev {} root netem {line}", device(wire));
    let mut tc = netns.command("tc");
    process::run(tc.args(line.split_whitespace()), "", TC_LIMIT).with_context(|| {
        format!("no netem (tc {line}); use a kernel with CONFIG_NET_SCH_NETEM, as in plait-lab vm")
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_proto::units::Rate;

    fn config() -> LinkConfig {
        let plain = LinkConfig::new(Rate::from_mbit(10), Duration::from_millis(10));
        LinkConfig { queue: Room::Packets(50), ..plain }
    }

    #[test]
    fn a_link_becomes_two_netems() {
        assert_eq!(rate_and_queue(&config()).unwrap(), "rate 10000000bit -14 limit 51");
        assert_eq!(loss_and_delay(&config()).unwrap(), "delay 10000us limit 1000000");
        let lossy = LinkConfig { loss: Loss::Bernoulli(Ratio::from_ppm(2500)), ..config() };
        assert_eq!(loss_and_delay(&lossy).unwrap(), "delay 10000us loss 0.25% limit 1000000");
        let bursts = Loss::GilbertElliott {
            good_to_bad: Ratio::from_percent(1),
            bad_to_good: Ratio::from_percent(30),
            loss_good: Ratio::ZERO,
            loss_bad: Ratio::ONE,
        };
        let line = loss_and_delay(&LinkConfig { loss: bursts, ..config() }).unwrap();
        assert_eq!(line, "delay 10000us loss gemodel 1% 30% 100% 0% limit 1000000");
    }

    #[test]
    fn what_netem_does_not_have_is_refused() {
        let bytes = LinkConfig { queue: Room::Bytes(9000), ..config() };
        assert!(rate_and_queue(&bytes).unwrap_err().to_string().contains("queue_packets"));
        let codel = LinkConfig { discipline: Discipline::CoDel, ..config() };
        assert!(rate_and_queue(&codel).is_err());
        let jitter = LinkConfig { jitter: Duration::from_millis(1), ..config() };
        assert!(loss_and_delay(&jitter).is_err());
    }
}
