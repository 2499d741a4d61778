//! The plan that a seed generates: the links, the gateways' settings, the load and the faults.

use plait_proto::config::{BondConfig, LossDetection, Order, RekeyLimits};
use plait_proto::congestion;
use plait_proto::resequencer::{LatePolicy, ResequencerConfig, Timer};
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::draw::Draw;
use super::fault::{Action, FaultKinds, Faults};
use super::load::FlowPlan;
use crate::link::{Discipline, LinkConfig, Loss, Room};
use crate::ratio::Ratio;
use crate::world::CipherChoice;
use plait_proto::wire::dscp::Dscps;

/// Most packets that a seed's load has.
pub const PACKETS_MAX: u64 = 100_000;
/// How long gateways have to find each other before faults begin.
const CALM_START: Duration = Duration::from_millis(500);

/// One link, both ways.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Up, down.
    pub ways: [LinkConfig; 2],
    /// Datagrams that arrive twice.
    pub duplicates: Ratio,
    /// Datagrams that arrive changed.
    pub corrupted: Ratio,
    /// Price class.
    pub price: u8,
    /// Weight for `fixed`.
    pub weight: u16,
    /// Carries data only while no other link does.
    pub standby: bool,
    /// Sleeps while the bond is idle.
    pub metered: bool,
}

impl LinkPlan {
    /// The same link without faults.
    pub fn healed(&self) -> Self {
        let heal = |config: LinkConfig| LinkConfig { loss: Loss::NONE, ..config };
        Self {
            ways: self.ways.map(heal),
            duplicates: Ratio::ZERO,
            corrupted: Ratio::ZERO,
            ..self.clone()
        }
    }
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct SwarmPlan {
    /// The seed of everything that is drawn while it runs.
    pub seed: u64,
    /// The links.
    pub links: Vec<LinkPlan>,
    /// How the customer's and the provider's bonds behave.
    pub bonds: [BondConfig; 2],
    /// The provider knows an address of the customer and initiates too.
    pub both_seek: bool,
    /// The cipher of datagrams.
    pub cipher: CipherChoice,
    /// The load.
    pub flows: Vec<FlowPlan>,
    /// Most packets of the load.
    pub packets_max: u64,
    /// Faults and their ends, sorted by time.
    pub actions: Vec<(Instant, Action)>,
    /// When everything heals.
    pub heal_at: Instant,
    /// The provider has a third peer, which is hostile, and stays so when everything heals.
    pub hostile: bool,
}

impl SwarmPlan {
    /// The plan of a seed.
    pub fn new(seed: u64, kinds: FaultKinds) -> Self {
        let mut draw = Draw::new(seed ^ 0x5761_726d_5377_0001);
        let links: Vec<LinkPlan> = {
            let count = draw.between(2, 6);
            (0..count).map(|_| link(&mut draw)).collect()
        };
        let rekey = rekey_limits(&mut draw);
        let packets = draw.spread(500, 80_000);
        let active = draw.millis_spread(5_000, 90_000);
        let rate_ms = packets / (active.as_millis() as u64).max(1) + 1;
        let heal_at = Instant::ZERO + CALM_START + active;
        let flows = flows(&mut draw, packets, active, rate_ms);
        let mut faults = Faults::new(&mut draw, kinds, &links, Instant::ZERO + CALM_START, heal_at);
        let count = faults.count();
        for _ in 0..count {
            faults.add();
        }
        let actions = faults.finish();
        let bonds = [(); 2].map(|()| bond(&mut draw, rekey));
        let cipher = if draw.one_in(8) { CipherChoice::Real } else { CipherChoice::Null };
        Self {
            seed,
            links,
            bonds,
            both_seek: draw.one_in(3),
            cipher,
            flows,
            packets_max: packets.min(PACKETS_MAX),
            actions,
            heal_at,
            hostile: false,
        }
    }

    /// A plan of many hours: mild links, steady loads of `rate` in all, faults every few minutes.
    pub fn soak(seed: u64, length: Duration, rate: Rate, kinds: FaultKinds) -> Self {
        let mut draw = Draw::new(seed ^ 0x536f_616b_0000_0001);
        let count = draw.between(2, 4);
        let links: Vec<LinkPlan> = (0..count)
            .map(|_| {
                let mut plan = link(&mut draw);
                for way in &mut plan.ways {
                    way.rate = Rate::from_mbit(draw.between(6, 40));
                    way.queue = Room::Bytes(way.rate.bytes_in(Duration::from_millis(100)));
                }
                plan
            })
            .collect();
        let heal_at = Instant::ZERO + length;
        let mean_s = 60;
        let mut faults = Faults::new(&mut draw, kinds, &links, Instant::ZERO + CALM_START, heal_at);
        for _ in 0..(length.as_secs() / mean_s).max(3) {
            faults.add();
        }
        let actions = faults.finish();
        let rekey = RekeyLimits::default();
        let bonds = [(); 2].map(|()| bond(&mut draw, rekey));
        Self {
            seed,
            links,
            bonds,
            both_seek: draw.one_in(2),
            cipher: CipherChoice::Null,
            flows: FlowPlan::steady(&mut draw, rate, length),
            packets_max: u64::MAX,
            actions,
            heal_at,
            hostile: false,
        }
    }

    /// Two quiet links, plain or metered, without load and without faults.
    pub fn idle(metered: bool, length: Duration) -> Self {
        let mut draw = Draw::new(0x4964_6c65);
        let quiet = |delay_ms| {
            let config = LinkConfig::new(Rate::from_mbit(60), Duration::from_millis(delay_ms));
            LinkPlan {
                ways: [config; 2],
                duplicates: Ratio::ZERO,
                corrupted: Ratio::ZERO,
                price: 0,
                weight: 1,
                standby: false,
                metered,
            }
        };
        let scheduler = SchedulerConfig::default();
        let bond = BondConfig {
            congestion: scheduler.algorithm.default_congestion(),
            scheduler,
            ..bond(&mut draw, RekeyLimits::default())
        };
        Self {
            seed: 1,
            links: vec![quiet(7), quiet(18)],
            bonds: [bond.clone(), bond],
            both_seek: false,
            cipher: CipherChoice::Null,
            flows: Vec::new(),
            packets_max: 0,
            actions: Vec::new(),
            heal_at: Instant::ZERO + length,
            hostile: false,
        }
    }
}

fn link(draw: &mut Draw) -> LinkPlan {
    let delay = draw.millis_spread(1, 150);
    let loss = match draw.between(0, 5) {
        0 | 1 => Loss::NONE,
        2 | 3 => Loss::Bernoulli(draw.percent(2)),
        4 => Loss::Bernoulli(draw.percent(15)),
        _ => Loss::GilbertElliott {
            good_to_bad: draw.percent(1),
            bad_to_good: Ratio::from_percent(20),
            loss_good: Ratio::ZERO,
            loss_bad: draw.percent(100),
        },
    };
    let jitter = if draw.one_in(2) { draw.millis_spread(1, 60) } else { Duration::ZERO };
    let reorder = draw.one_in(4);
    let discipline = draw.pick([Discipline::DropTail, Discipline::DropTail, Discipline::CoDel]);
    let ways = [(); 2].map(|()| {
        let rate = Rate::from_bits_per_second(draw.spread(500_000, 100_000_000));
        let queue = draw.millis_spread(10, 400);
        let queue = Room::Bytes(rate.bytes_in(queue).max(6_000));
        let plain = LinkConfig::new(rate, delay);
        LinkConfig { jitter, reorder, loss, discipline, queue, ..plain }
    });
    let rarely = |draw: &mut Draw| if draw.one_in(4) { draw.percent(2) } else { Ratio::ZERO };
    LinkPlan {
        ways,
        duplicates: rarely(draw),
        corrupted: rarely(draw),
        price: draw.between(0, 2) as u8,
        weight: draw.between(1, 10) as u16,
        standby: draw.one_in(8),
        metered: draw.one_in(8),
    }
}

fn rekey_limits(draw: &mut Draw) -> RekeyLimits {
    if draw.one_in(2) {
        return RekeyLimits::default();
    }
    let after = draw.millis(2_000, 20_000);
    RekeyLimits {
        rekey_after: after,
        rekey_after_packets: draw.spread(100, 50_000),
        reject_after: after + draw.millis(3_000, 20_000),
    }
}

/// The schedulers to draw from. A separate list: a scheduler added elsewhere must not change a
/// seed's plan.
const SCHEDULERS: [Algorithm; 9] = [
    Algorithm::AdaptiveWrr,
    Algorithm::Fixed,
    Algorithm::RoundRobin,
    Algorithm::MinRtt,
    Algorithm::Redundant,
    Algorithm::EarliestDelivery,
    Algorithm::CheapestFirst,
    Algorithm::Blest,
    Algorithm::Ecf,
];

fn bond(draw: &mut Draw, rekey: RekeyLimits) -> BondConfig {
    let timer = match draw.between(0, 2) {
        0 => Timer::Fixed(draw.millis_spread(2, 200)),
        _ => Timer::ADAPTIVE,
    };
    let resequencer = ResequencerConfig {
        timer,
        late: draw.pick([LatePolicy::Drop, LatePolicy::Drop, LatePolicy::Deliver]),
        packets_max: draw.pick([64, 1024, 32_768, 32_768]),
        bytes_max: draw.pick([4_096, 100_000, 16 << 20]),
        ..ResequencerConfig::default()
    };
    BondConfig {
        scheduler: SchedulerConfig::from(draw.pick(SCHEDULERS)),
        congestion: draw.one_in(2).then(|| draw.pick(congestion::Algorithm::ALL).into()),
        order: draw.pick([Order::Flow, Order::Flow, Order::Bond, Order::None]),
        unordered: Dscps::default(),
        resequencer,
        loss_detection: draw.pick([
            LossDetection::Known,
            LossDetection::Known,
            LossDetection::Timer,
        ]),
        report_interval: draw.millis(20, 100),
        inner_mtu: draw.pick([1440, 1440, 1380]),
        rekey,
        release: None,
    }
}

fn flows(draw: &mut Draw, packets: u64, active: Duration, per_ms: u64) -> Vec<FlowPlan> {
    let count = draw.between(1, 8);
    let share = (packets / count).max(1);
    (0..count)
        .map(|at| {
            // The first two flows go in opposite directions, so that most runs use both.
            let from = if at < 2 { at as usize } else { draw.index(2) };
            FlowPlan::random(draw, from, share, active, per_ms)
        })
        .collect()
}
