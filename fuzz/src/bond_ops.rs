//! A bond under packets, time, faults, outages and restarts; at the end it must work again.

use plait_pair::{CUSTOMER, Fault, PROVIDER, Pair, number, packet_of};
use plait_proto::config::{BondConfig, LossDetection, Order, RekeyLimits};
use plait_proto::resequencer::{LatePolicy, ResequencerConfig, Timer};
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::time::{Duration, Instant};

use crate::input::Input;
use crate::pair::{LINKS, default_bond, pair};

const OPS_MAX: usize = 300;
const FLOWS: u16 = 3;
/// Packets that one case sends at most: a batch beyond is left out.
const PACKETS_MAX: usize = 4000;
/// Virtual time that one case may pass before recovery; longer waits are left out.
const TIME_MAX: Duration = Duration::from_secs(240);
/// Virtual seconds after which a healed bond must carry packets.
const RECOVERY_SECONDS: u32 = 15;

/// Nothing comes out twice, changed, or out of order; memory is bounded; the bond recovers.
pub fn bond_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let config = choose_config(&mut input);
    let mut run = Run::new(config);
    for _ in 0..OPS_MAX {
        if input.is_empty() {
            break;
        }
        run.step(&mut input);
        run.check();
    }
    run.recover();
}

fn choose_config(input: &mut Input<'_>) -> BondConfig {
    let millis = Duration::from_millis;
    let quick = RekeyLimits {
        rekey_after: Duration::from_secs(4),
        rekey_after_packets: 200,
        reject_after: Duration::from_secs(6),
    };
    BondConfig {
        scheduler: SchedulerConfig {
            algorithm: input.pick(Algorithm::ALL),
            ..SchedulerConfig::default()
        },
        order: input.pick([Order::Flow, Order::Bond, Order::None]),
        resequencer: ResequencerConfig {
            timer: input.pick([Timer::ADAPTIVE, Timer::Fixed(millis(50))]),
            late: input.pick([LatePolicy::Drop, LatePolicy::Deliver]),
            packets_max: input.pick([32_768, 64]),
            bytes_max: input.pick([16 << 20, 4096]),
            ..ResequencerConfig::default()
        },
        loss_detection: input.pick([LossDetection::Known, LossDetection::Timer]),
        rekey: input.pick([RekeyLimits::default(), quick]),
        ..default_bond()
    }
}

/// What one side sent, and how much of it came out at the other.
#[derive(Default)]
struct Direction {
    sent: Vec<Vec<u8>>,
    delivered: Vec<bool>,
    /// One more than the highest number delivered, by flow.
    next: [u32; FLOWS as usize],
}

struct Run {
    pair: Pair,
    config: BondConfig,
    /// By sending side.
    directions: [Direction; 2],
    /// How often a gateway started again.
    restarts: u64,
    /// Seconds that the wall clocks jumped forwards; gateways read them when they start.
    jumped_s: u64,
}

impl Run {
    fn new(config: BondConfig) -> Self {
        let mut pair = pair(config.clone(), Vec::new());
        pair.start();
        pair.run_for(Duration::from_millis(200));
        Self { pair, config, directions: Default::default(), restarts: 0, jumped_s: 0 }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let millis = |value: u64| Duration::from_millis(value);
        match op % 16 {
            0..=3 => {
                let (from, count) = (usize::from(op >> 7), usize::from(input.u8() % 64));
                let bytes = input.pick([0, 100, 1000, 1440]);
                self.send(from, count, bytes);
            }
            4..=6 => self.wait(millis(input.u8().into())),
            7 => self.wait(millis(20 * u64::from(input.u8()))),
            8 => self.wait(millis(100 * u64::from(input.u16() % 2048))),
            9 => self.pair.faults.push_back(Fault::Drop),
            10 => self.pair.faults.push_back(Fault::Duplicate(millis(input.u8().into()))),
            11 => self.pair.faults.push_back(Fault::Delay(millis(input.u8().into()))),
            12 => {
                let (at, pattern) = (usize::from(input.u8()), input.u8().max(1));
                self.pair.faults.push_back(Fault::Corrupt(at, pattern));
            }
            13 => self.pair.links[usize::from(op >> 7) % LINKS].up = false,
            14 => self.pair.links[usize::from(op >> 7) % LINKS].up = true,
            _ => match (op >> 4) & 7 {
                // A path's address, the clocks, the keys' age.
                5 => self.pair.links[usize::from(op >> 7) % LINKS].port += 1,
                6 => self.jumped_s += u64::from(input.u16()),
                7 => self.wait(self.config.rekey.rekey_after.min(Duration::from_secs(5))),
                _ => self.restart(usize::from(op >> 7)),
            },
        }
    }

    /// A wall clock that a restart does not set back.
    fn restart(&mut self, side: usize) {
        self.restarts += 1;
        self.pair.restart_at(side, self.restarts + self.jumped_s);
    }

    fn wait(&mut self, time: Duration) {
        if (self.pair.now + time).since(Instant::ZERO) <= TIME_MAX {
            self.pair.run_for(time);
        }
    }

    fn send(&mut self, from: usize, count: usize, bytes: usize) {
        let direction = &mut self.directions[from];
        let first = direction.sent.len();
        let last = (first + count).min(PACKETS_MAX);
        let packets = first..last;
        let packets: Vec<Vec<u8>> =
            packets.map(|at| packet_of(from, at as u16 % FLOWS, at as u32, bytes)).collect();
        direction.sent.extend_from_slice(&packets);
        direction.delivered.resize(direction.sent.len(), false);
        self.pair.send(from, &packets);
    }

    fn check(&mut self) {
        for side in [CUSTOMER, PROVIDER] {
            for packet in core::mem::take(&mut self.pair.delivered[side]) {
                self.directions[1 - side].arrived(&packet, &self.config);
            }
            let status = self.pair.sides[side].status(self.pair.now);
            for peer in &status.peers {
                let stats = peer.resequencer;
                let (packets, bytes) = (stats.waiting_now_packets, stats.waiting_now_bytes);
                let limits = &self.config.resequencer;
                assert!(packets < limits.packets_max.into(), "{packets} packets wait");
                assert!(bytes <= limits.bytes_max || packets == 1, "{bytes} bytes wait");
            }
        }
    }

    /// With all links up and no more faults, packets get through again.
    fn recover(&mut self) {
        self.pair.links.iter_mut().for_each(|link| link.up = true);
        self.pair.faults.clear();
        for _ in 0..RECOVERY_SECONDS {
            for side in [CUSTOMER, PROVIDER] {
                self.send_one(side);
            }
            self.pair.run_for(Duration::from_secs(1));
            self.check();
        }
        for side in [CUSTOMER, PROVIDER] {
            let last = self.directions[side].delivered.last();
            assert_eq!(last, Some(&true), "a packet from side {side} gets through after recovery");
        }
    }

    fn send_one(&mut self, side: usize) {
        let direction = &mut self.directions[side];
        let at = direction.sent.len();
        let packet = packet_of(side, at as u16 % FLOWS, at as u32, 0);
        direction.sent.push(packet.clone());
        direction.delivered.push(false);
        self.pair.send(side, &[packet]);
    }
}

impl Direction {
    fn arrived(&mut self, packet: &[u8], config: &BondConfig) {
        let number = number(packet);
        let at = number as usize;
        assert_eq!(
            self.sent.get(at).map(Vec::as_slice),
            Some(packet),
            "it comes out as it went in"
        );
        assert!(!self.delivered[at], "packet {number} came out twice");
        self.delivered[at] = true;
        let late_may_come = config.resequencer.late == LatePolicy::Deliver;
        if config.order != Order::None && !late_may_come {
            let next = &mut self.next[at % usize::from(FLOWS)];
            assert!(*next <= number, "packet {number} came out after {}", *next - 1);
            *next = number + 1;
        }
    }
}
