//! One run: some links, a load, and a bond or none; as a scenario, and what it found.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use plait_proto::config::{LossDetection, Order};
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::time::Duration;
use plait_proto::units::Rate;
use plait_sim::link::{Discipline, Room};
use plait_sim::ratio::Ratio;
use plait_sim::run;
use plait_sim::scenario::app::{Direction, TcpKind, TcpSpec, Traffic, UdpSpec, Via};
use plait_sim::scenario::link::{DirectionSpec, LossSpec, QueueSpec};
use plait_sim::scenario::rate::{Layer, Shape};
use plait_sim::scenario::{AppSpec, Backend, BondSpec, Capture, LinkSpec, Scenario, Span};
use plait_sim::tcp::ReceiverConfig;

use super::course;
use super::rung::{Link, Load, Losses};
use crate::cli::On;
use crate::policy::Policy;
use crate::run::netns::{self, Outcome};

/// Links take packets of this length, and the framing is what they carry inside.
const LINK_MTU_BYTES: u16 = 1500;
const INNER_MTU_BYTES: u16 = 1440;
/// No queue is shorter than this: drivers keep a few packets whatever the rate.
const QUEUE_BYTES_MIN: u64 = 8 * LINK_MTU_BYTES as u64;
/// What QUIC offers of flow control in practice.
const QUIC_WINDOW_BYTES: u64 = 64 << 20;
const UDP_PAYLOAD_BYTES: u32 = 1400;
/// A ping each way, ten times a second.
const PING_BYTES: u32 = 56;
const PING_BITS: f64 = 10.0 * 8.0 * PING_BYTES as f64;
const PINGS: [(&str, Direction); 2] = [("ping-down", Direction::Down), ("ping-up", Direction::Up)];
const LOADS: [(&str, Direction); 2] = [("down", Direction::Down), ("up", Direction::Up)];
/// Seeds begin at different moments, by steps of this.
const SEED_STEP: Duration = Duration::from_millis(37);
const SEED_STEPS: u64 = 16;
/// What is told of a run over time.
const SERIES: [&str; 7] =
    ["goodput", "cwnd", "link_throughput", "drops", "queue_ms", "rtt_ms", "waiting"];
const SAMPLE: Duration = Duration::from_millis(100);
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// How long a run takes and what of it counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Times {
    pub(crate) whole_s: u32,
    /// From the start on, what does not count.
    pub(crate) warmup_s: u32,
}

/// What carries the load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Carrier {
    /// The first link, without plait.
    Bare,
    /// A bond of all links under the policy of this number.
    Bond(usize),
}

/// A run, without its seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Trial {
    pub(super) carrier: Carrier,
    pub(super) links: Vec<Link>,
    pub(super) load: Load,
    pub(super) times: Times,
}

/// What a run found.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Found {
    /// Payload that arrived in order, both ways together.
    pub(super) mbit: f64,
    /// Median round-trip time of small packets beside the load.
    pub(super) ping_ms: Option<f64>,
    /// Longest time without a delivery of the load.
    pub(super) standstill_ms: f64,
    /// What the load's TCP sent again, of all that it sent down; `None` without TCP.
    pub(super) resent_percent: Option<f64>,
    /// How long packets waited at the egress, 95th percentile; `None` without plait.
    pub(super) wait_p95_ms: Option<f64>,
    /// Of each link, in its place.
    pub(super) links: Vec<LinkFound>,
}

/// What happened on a link towards the customer.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct LinkFound {
    /// Of the bond's bytes.
    pub(super) share_percent: f64,
    /// Packets that the link lost or dropped.
    pub(super) lost_percent: f64,
    /// Mean time in its queue.
    pub(super) queue_ms: f64,
}

impl Trial {
    pub(super) fn run(&self, on: On, policies: &[Policy], seed: u64) -> Result<Found> {
        let scenario = self.scenario(policies, seed);
        let outcome = outcome(on, &scenario, seed);
        let outcome = outcome.with_context(|| format!("{}, seed {seed}", scenario.title))?;
        Ok(self.found(&outcome))
    }

    /// The series of a run, one sample a second.
    pub(super) fn run_over_time(
        &self,
        on: On,
        policies: &[Policy],
        seed: u64,
    ) -> Result<BTreeMap<String, Vec<f64>>> {
        let mut scenario = self.scenario(policies, seed);
        let series = SERIES.iter().map(|series| (*series).to_owned());
        scenario.capture = Capture { interval: Duration::from_secs(1), series: series.collect() };
        Ok(outcome(on, &scenario, seed)?.series)
    }

    /// How long a run takes in real time.
    pub(super) fn run_time(&self, policies: &[Policy]) -> Duration {
        netns::run_time(&self.scenario(policies, 1))
    }

    /// Whether the namespaces can run it.
    pub(super) fn check_netns(&self, policies: &[Policy]) -> Result<()> {
        netns::check(&self.scenario(policies, 1))
    }

    /// For people who wait.
    pub(super) fn describe(&self, policies: &[Policy]) -> String {
        let title = self.scenario(policies, 1).title;
        match self.carrier {
            Carrier::Bare => format!("bare, {title}"),
            Carrier::Bond(policy) => format!("{}, {title}", policies[policy]),
        }
    }

    fn scenario(&self, policies: &[Policy], seed: u64) -> Scenario {
        let seconds = |s: u32| Duration::from_secs(s.into());
        let duration = seconds(self.times.whole_s);
        let names: Vec<String> = (0..self.links.len()).map(|at| self.link_name(at)).collect();
        let bond = match self.carrier {
            Carrier::Bare => None,
            Carrier::Bond(policy) => Some(bond(names.clone(), &policies[policy])),
        };
        let via = if bond.is_some() { Via::Bond } else { Via::Link(names[0].clone()) };
        let links = self.links.iter().map(link_spec);
        let described: Vec<String> = self.links.iter().map(ToString::to_string).collect();
        Scenario {
            name: "ladder/rung".into(),
            title: format!("{} over {}", self.load, described.join(" + ")),
            source: String::new(),
            backends: vec![Backend::Sim, Backend::Netns],
            duration,
            warmup: seconds(self.times.warmup_s),
            server_rtt: Duration::ZERO,
            links: names.into_iter().zip(links).collect(),
            bond,
            steer: None,
            apps: self.apps(via, duration, seed),
            sweep: Vec::new(),
            capture: Capture { interval: SAMPLE, series: vec!["queue_ms".into()] },
            measures: Vec::new(),
            figures: Vec::new(),
            paper: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Links are sorted by their names, and must keep their order.
    pub(super) fn link_name(&self, at: usize) -> String {
        format!("{at}-{}", self.links[at].name)
    }

    fn apps(&self, via: Via, duration: Duration, seed: u64) -> Vec<AppSpec> {
        let start = SEED_STEP * u32::try_from(seed % SEED_STEPS).expect("below sixteen");
        let app = |(name, direction): (&str, Direction), traffic: Traffic| AppSpec {
            name: name.into(),
            direction,
            via: via.clone(),
            client: 0,
            start,
            start_latest: start,
            stop: duration,
            traffic,
        };
        let ping = UdpSpec {
            payload_bytes: PING_BYTES,
            shape: Shape::Constant(PING_BITS),
            told_at: Layer::Offered,
        };
        let pings = PINGS.into_iter().map(|ping_app| app(ping_app, Traffic::Udp(ping.clone())));
        let loads = self.loads().iter().map(|load| app(*load, traffic(self.load)));
        pings.chain(loads).collect()
    }

    fn loads(&self) -> &'static [(&'static str, Direction)] {
        if self.load.both_ways { &LOADS } else { &LOADS[..1] }
    }

    fn found(&self, outcome: &Outcome) -> Found {
        let metric = |name: &str, of: &str| outcome.metrics.get(&format!("{name}.{of}")).copied();
        let loads = || self.loads().iter().map(|(name, _)| *name);
        let delays: Option<Vec<f64>> =
            PINGS.iter().map(|(name, _)| metric("delay_p50_ms", name)).collect();
        let standstill = loads().map(|name| outcome.standstill[name]).max().unwrap_or_default();
        Found {
            mbit: loads().filter_map(|name| metric("goodput_mbit", name)).sum(),
            ping_ms: delays.map(|delays| delays.iter().sum()),
            standstill_ms: standstill.as_secs_f64() * 1e3,
            resent_percent: metric("retransmitted_percent", "down"),
            wait_p95_ms: outcome.metrics.get("wait_p95_ms").copied(),
            links: (0..self.links.len())
                .map(|at| {
                    let name = self.link_name(at);
                    LinkFound {
                        share_percent: metric("bond_path_percent", &name).unwrap_or(100.0),
                        lost_percent: metric("link_loss_percent", &name).unwrap_or(0.0),
                        queue_ms: mean(&outcome.series, &name, self.times),
                    }
                })
                .collect(),
        }
    }
}

fn outcome(on: On, scenario: &Scenario, seed: u64) -> Result<Outcome> {
    match on {
        On::Sim => simulate(scenario, seed),
        On::Netns => netns::run_scenario(scenario, seed),
    }
}

fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome> {
    let run::RunResult { metrics, series, counters, .. } = run::run(scenario, seed)?;
    let standstill = scenario.apps.iter().map(|app| {
        let standstill_us = counters[&format!("standstill_us.{}", app.name)];
        (app.name.clone(), Duration::from_micros(standstill_us))
    });
    let standstill = standstill.collect();
    Ok(Outcome { metrics, series, standstill })
}

/// The mean queue of a link over the time that counts.
fn mean(series: &BTreeMap<String, Vec<f64>>, link: &str, times: Times) -> f64 {
    let samples = series.get(&format!("queue_ms.{link}")).map_or(&[][..], Vec::as_slice);
    let warm = times.warmup_s as usize * 1000 / SAMPLE.as_millis() as usize;
    let counted = &samples[warm.min(samples.len())..];
    if counted.is_empty() { 0.0 } else { counted.iter().sum::<f64>() / counted.len() as f64 }
}

/// A bond under a policy; the rest is the bond's default.
fn bond(links: Vec<String>, policy: &Policy) -> BondSpec {
    BondSpec {
        links,
        scheduler: policy.scheduler.clone(),
        congestion: policy.congestion,
        order: Order::default(),
        loss_detection: LossDetection::default(),
        resequencer: ResequencerConfig::default(),
        report_interval: REPORT_INTERVAL,
        inner_mtu: INNER_MTU_BYTES,
        dida: None,
    }
}

fn traffic(load: Load) -> Traffic {
    let Some(inner) = load.inner else {
        return Traffic::Udp(UdpSpec {
            payload_bytes: UDP_PAYLOAD_BYTES,
            shape: Shape::Constant(f64::from(load.kbit) * 1e3),
            told_at: Layer::Offered,
        });
    };
    let window_bytes_max =
        if load.like_quic { QUIC_WINDOW_BYTES } else { ReceiverConfig::WINDOW_BYTES_MAX };
    let tcp = TcpKind {
        controller: inner.controller().into(),
        recovery: "rack-tlp".into(),
        window_bytes_max,
        sack: true,
        undo: true,
        paced: load.like_quic,
    };
    Traffic::Tcp(TcpSpec { flows: load.flows, transfer_bytes: None, tcp })
}

fn link_spec(link: &Link) -> LinkSpec {
    let way = |kbit: u32| {
        let rate = Rate::from_bits_per_second(u64::from(kbit) * 1000);
        let bytes = rate.bytes_in(Duration::from_millis(link.queue_ms.into()));
        let outage = course::outage(link.course);
        DirectionSpec {
            jitter: Duration::from_millis(link.jitter_ms.into()) / 2,
            loss: loss_spec(link.losses),
            queue: QueueSpec {
                discipline: Discipline::DropTail,
                room: Room::Bytes(bytes.max(QUEUE_BYTES_MIN)),
            },
            outages: outage.into_iter().map(|(start, end)| Span { start, end }).collect(),
            ..DirectionSpec::new(
                course::capacity(link.course, kbit),
                Duration::from_millis(link.rtt_ms.into()) / 2,
            )
        }
    };
    LinkSpec {
        title: link.name.into(),
        source: String::new(),
        up: way(link.up_kbit),
        down: way(link.down_kbit),
        mtu: LINK_MTU_BYTES,
        price: 0,
        weight: u16::try_from(link.down_kbit / 1000).unwrap_or(u16::MAX).max(1),
        through: None,
    }
}

fn loss_spec(losses: Losses) -> LossSpec {
    match losses {
        Losses::None => LossSpec::Bernoulli(Ratio::ZERO),
        Losses::Random { permille } => LossSpec::Bernoulli(Ratio::from_ppm(permille * 1000)),
        // Gilbert's chain: a run ends with 1/n, so its mean is n, and begins so often that the
        // share of packets in runs is the losses'.
        Losses::Bursts { permille, packets } => LossSpec::GilbertElliott {
            good_to_bad: Ratio::from_ppm(permille * 1_000_000 / (packets * (1000 - permille))),
            bad_to_good: Ratio::from_ppm(1_000_000 / packets),
            loss_good: Ratio::ZERO,
            loss_bad: Ratio::ONE,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::rung::Inner;

    const LINK: Link = Link::new("dsl", 8, 20);

    fn trial(carrier: Carrier, links: &[Link]) -> Trial {
        let load = Load::tcp(Inner::Cubic);
        let times = Times { whole_s: 6, warmup_s: 2 };
        Trial { carrier, links: links.to_vec(), load, times }
    }

    #[test]
    fn bursts_have_their_length_and_their_share() {
        let spec = loss_spec(Losses::Bursts { permille: 20, packets: 10 });
        let LossSpec::GilbertElliott { good_to_bad, bad_to_good, .. } = spec else {
            panic!("bursts are a chain")
        };
        assert_eq!(bad_to_good, Ratio::from_percent(10));
        let (into, out) = (f64::from(good_to_bad.ppm()), f64::from(bad_to_good.ppm()));
        assert!((into / (into + out) - 0.02).abs() < 1e-4);
    }

    #[test]
    fn a_bare_link_carries_its_rate_and_plait_less_by_its_framing() {
        // In an open loop nothing but the framing lies between the two.
        let policies = ["open/min-rtt".parse().unwrap()];
        let bare = trial(Carrier::Bare, &[LINK]).run(On::Sim, &policies, 1).unwrap();
        let alone = trial(Carrier::Bond(0), &[LINK]).run(On::Sim, &policies, 1).unwrap();
        assert!((7.5..7.8).contains(&bare.mbit), "{bare:?}");
        assert!((0.93..0.99).contains(&(alone.mbit / bare.mbit)), "{bare:?} {alone:?}");
        assert!(alone.ping_ms.unwrap() >= 20.0 && alone.standstill_ms < 100.0, "{alone:?}");
        assert!(bare.wait_p95_ms.is_none() && alone.wait_p95_ms.is_some(), "{bare:?} {alone:?}");
    }

    #[test]
    fn links_keep_their_places() {
        let links = [LINK, Link::new("adsl", 2, 30)];
        let policies = [Policy::default_policy()];
        let found = trial(Carrier::Bond(0), &links).run(On::Sim, &policies, 1).unwrap();
        let shares: Vec<f64> = found.links.iter().map(|link| link.share_percent).collect();
        assert!(shares[0] > shares[1] && (shares.iter().sum::<f64>() - 100.0).abs() < 1e-6);
    }
}
