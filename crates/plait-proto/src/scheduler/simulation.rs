//! The open-loop schedulers under the same load, as a table.
//!
//! One window-limited flow, without pacing (CUBIC's growth, back-off 0.7) crosses two links: FIFO,
//! drop-tail queue of 50 ms, constant delay. The egress is the crate's own: resequencer with
//! delay-spread timer, gap counter, loss reports every 50 ms; acknowledgements leave every 5 ms.
//! Nothing is random. The table documents behaviour; it is no target.

mod closed;
mod link;
mod tcp;

use core::fmt::Write;
use std::collections::VecDeque;

use super::testing::PACKET;
use super::*;
use crate::path::gaps::PathGapCounter;
use crate::resequencer::delay_spread::DelaySpread;
use crate::resequencer::{Resequencer, ResequencerConfig, Timer};
use crate::seq::{BondSeq, PacketNumber};
use link::{Link, LinkSpec};
use tcp::Tcp;

/// The schedulers that can do without congestion controllers.
const OPEN_LOOP: [Algorithm; 5] = [
    Algorithm::AdaptiveWrr,
    Algorithm::Fixed,
    Algorithm::RoundRobin,
    Algorithm::MinRtt,
    Algorithm::Redundant,
];
const TICK: Duration = Duration::from_micros(100);
const ACK_TICKS: u64 = 50;
const REPORT_TICKS: u64 = 500;
const WARM_UP: Duration = Duration::from_secs(10);
const END: Duration = Duration::from_secs(40);

struct World {
    scheduler: Box<dyn Scheduler>,
    links: Vec<Link>,
    tcp: Tcp,
    resequencer: Resequencer,
    spread: DelaySpread,
    gaps: PathGapCounter,
    reported: Vec<(u64, u64)>,
    next_seq: u64,
}

impl World {
    fn new(algorithm: Algorithm, specs: &[LinkSpec]) -> Self {
        let config = ResequencerConfig {
            timer: Timer::ADAPTIVE,
            count_known_lost: false,
            release_known_lost: false,
            ..ResequencerConfig::default()
        };
        let return_delay = specs.iter().map(|spec| spec.rtt).min().expect("links exist") / 2;
        Self {
            scheduler: SchedulerConfig::from(algorithm).build(),
            links: specs.iter().map(|&spec| Link::new(spec)).collect(),
            tcp: Tcp::new(return_delay),
            resequencer: Resequencer::new(config),
            spread: DelaySpread::new(Duration::from_millis(5), Duration::from_millis(500)),
            gaps: PathGapCounter::new(),
            reported: vec![(0, 0); specs.len()],
            next_seq: 0,
        }
    }

    fn run(&mut self) {
        let mut now = Instant::ZERO;
        let mut tick = 0;
        while now < Instant::ZERO + END {
            now += TICK;
            tick += 1;
            if now == Instant::ZERO + WARM_UP {
                self.links.iter_mut().for_each(Link::start_measuring);
            }
            self.receive(now);
            if tick % ACK_TICKS == 0 {
                self.links.iter_mut().for_each(|link| link.send_ack(now));
                if let Some(timeout) = self.spread.timeout(now) {
                    self.resequencer.set_timeout(timeout);
                }
            }
            self.links.iter_mut().for_each(|link| link.receive_acks(now));
            if tick % REPORT_TICKS == 0 {
                self.report(now);
            }
            self.tcp.receive_acks(now);
            while self.tcp.may_send() {
                self.send(now);
            }
        }
    }

    fn views(&self) -> Vec<PathView> {
        (0..).zip(&self.links).map(|(id, link)| link.view(id)).collect()
    }

    fn send(&mut self, now: Instant) {
        let paths = self.views();
        let seq = self.next_seq;
        self.next_seq += 1;
        self.tcp.on_sent();
        match self.scheduler.pick(&View { now, paths: &paths }, &PACKET) {
            Decision::Send(path) => self.links[usize::from(path.0)].send(now, seq),
            Decision::Copies(set) => {
                set.iter().for_each(|path| self.links[usize::from(path.0)].send(now, seq));
            }
            other => panic!("the open loop never holds back: {other:?}"),
        }
    }

    fn receive(&mut self, now: Instant) {
        let tcp = &mut self.tcp;
        let mut out = |packet: &[u8]| {
            let seq = packet.try_into().expect("a packet holds its number");
            tcp.on_delivered(now, u64::from_le_bytes(seq));
        };
        for (id, link) in (0..).map(PathId).zip(&mut self.links) {
            while let Some(arrival) = link.pop_arrival(now) {
                self.gaps.received(id, PacketNumber(arrival.number));
                self.spread.sample(arrival.at, id, arrival.send_ts());
                let packet = arrival.seq.to_le_bytes();
                self.resequencer.insert(now, BondSeq(arrival.seq), 1, id, &packet, &mut out);
            }
        }
        if self.resequencer.poll_timeout().is_some_and(|due| due <= now) {
            self.resequencer.handle_timeout(now, &mut out);
        }
    }

    fn report(&mut self, now: Instant) {
        let lost = self.resequencer.drain_lost();
        self.gaps.attribute(lost.lost);
        for (path, count) in lost.recovered {
            (0..count).for_each(|_| self.gaps.late(path));
        }
        let mut reports = Vec::new();
        for ((id, link), known) in (0..).map(PathId).zip(&self.links).zip(&mut self.reported) {
            let total = (self.gaps.loss(id).net(), link.sent_packets());
            reports.push(PathReport {
                path: id,
                lost_packets: total.0.saturating_sub(known.0),
                sent_packets: total.1 - known.1,
            });
            *known = total;
        }
        let paths = self.views();
        self.scheduler.on_report(&View { now, paths: &paths }, &reports);
    }
}

/// What a run shows, in rounded integers.
struct Outcome {
    sum_percent: u64,
    lines: Vec<link::Measured>,
    goodput_percent: u64,
}

fn simulate(algorithm: Algorithm, specs: &[LinkSpec]) -> Outcome {
    let mut world = World::new(algorithm, specs);
    world.run();
    let time = END - WARM_UP;
    let capacity: u64 = specs.iter().map(|spec| spec.rate.bytes_in(time)).sum();
    let lines: Vec<_> = world.links.iter().map(|link| link.measured(time)).collect();
    let carried: u64 = lines.iter().map(|line| line.bytes).sum();
    let goodput = world.tcp.delivered_since(Instant::ZERO + WARM_UP) * PACKET.bytes;
    Outcome {
        sum_percent: (carried * 100 + capacity / 2) / capacity,
        goodput_percent: (goodput * 100 + capacity / 2) / capacity,
        lines,
    }
}

/// Two links with drop-tail queues of `queue_ms`; each is given as Mbit/s and round trip in ms.
fn links(queue_ms: u64, pair: [(u64, u64); 2]) -> [LinkSpec; 2] {
    pair.map(|(mbit, rtt_ms)| LinkSpec {
        rate: Rate::from_mbit(mbit),
        rtt: Duration::from_millis(rtt_ms),
        queue: Duration::from_millis(queue_ms),
    })
}

fn near() -> [LinkSpec; 2] {
    links(50, [(64, 13), (60, 35)])
}

fn far() -> [LinkSpec; 2] {
    links(50, [(50, 20), (10, 60)])
}

fn table() -> String {
    let cases = [
        ("64/13 60/35 50", near()),
        ("50/20 10/60 50", far()),
        ("2/30 1/50 50", links(50, [(2, 30), (1, 50)])),
        ("64/13 60/35 10", links(10, [(64, 13), (60, 35)])),
    ];
    let mut table = String::new();
    let (links, scheduler) = ("Mbit/s/ms, queue", "scheduler");
    writeln!(table, "{links:<18}{scheduler:<14} sum%  good%   used%    drops/10000  queue ms")
        .expect("a string takes all");
    for (name, specs) in cases {
        for algorithm in OPEN_LOOP {
            let Outcome { sum_percent, goodput_percent, lines } = simulate(algorithm, &specs);
            let pair = |pick: fn(&link::Measured) -> u64| {
                format!("{:>4} {:>4}", pick(&lines[0]), pick(&lines[1]))
            };
            writeln!(
                table,
                "{name:<18}{algorithm:<14} {sum_percent:>4}   {goodput_percent:>4} {}      {} {}",
                pair(|line| line.used_percent),
                pair(|line| line.drops_per_10000),
                pair(|line| line.mean_queue_ms),
            )
            .expect("a string takes all");
        }
    }
    table
}

#[test]
fn all_schedulers_behave_as_recorded() {
    let table = table();
    let recorded = include_str!("simulation/table.txt");
    assert_eq!(table, recorded, "if the new behaviour is right, record this table:\n{table}");
}

#[test]
fn min_rtt_uses_the_sum_of_both_links() {
    for specs in [near(), far()] {
        let outcome = simulate(Algorithm::MinRtt, &specs);
        assert!(outcome.goodput_percent >= 95, "{} %", outcome.goodput_percent);
        let drops = |line: &link::Measured| line.drops_per_10000;
        assert!(outcome.lines.iter().all(|line| drops(line) <= 2), "neither path overflows alone");
    }
}
