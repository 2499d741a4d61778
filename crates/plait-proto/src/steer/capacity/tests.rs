use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::scheduler::testing::path;
use crate::wire::tcp::{SackBlock, TcpSegment, TcpSeq};

const PAYLOAD: [u8; 1400] = [0; 1400];

fn flow(port: u16) -> TcpFlow {
    TcpFlow {
        source: [192, 0, 2, 9].into(),
        destination: [10, 0, 0, 1].into(),
        source_port: 443,
        destination_port: port,
    }
}

fn data(port: u16, seq: u32) -> Vec<u8> {
    TcpSegment::new(flow(port), TcpSeq(seq), TcpSeq(1), &PAYLOAD).to_packet()
}

fn ack(port: u16, ack: u32, sack: &[SackBlock]) -> Vec<u8> {
    let segment = TcpSegment::new(flow(port).reversed(), TcpSeq(1), TcpSeq(ack), &[]);
    TcpSegment { sack, ..segment }.to_packet()
}

/// A link: a rate, which may be another one from a moment on, and a delay there and back.
#[derive(Clone, Copy)]
struct Link {
    mbit: f64,
    then: Option<(u64, f64)>,
    delay_ms: u64,
}

impl Link {
    fn new(mbit: f64, delay_ms: u64) -> Self {
        Self { mbit, then: None, delay_ms }
    }

    fn bytes_per_us(&self, at_us: u64) -> f64 {
        let now = self.then.filter(|(from_ms, _)| at_us >= from_ms * 1000);
        now.map_or(self.mbit, |(_, mbit)| mbit) / 8.0
    }
}

/// A client that acknowledges every segment at once, behind two links, and a sender that keeps so
/// many segments under way.
struct World {
    capacity: Capacity,
    links: [Link; 2],
    free_at_us: [u64; 2],
    events: BTreeMap<(u64, u32), bool>,
    received: BTreeSet<u32>,
    first_missing: u32,
    under_way: u32,
    next: u32,
    /// When each segment left, over which link, and how long it took.
    sent: Vec<(u64, u8, u64)>,
    has_sack: bool,
}

impl World {
    fn new(links: [Link; 2]) -> Self {
        Self {
            capacity: Capacity::new(2),
            links,
            free_at_us: [0; 2],
            events: BTreeMap::new(),
            received: BTreeSet::new(),
            first_missing: 0,
            under_way: 0,
            next: 0,
            sent: Vec::new(),
            has_sack: true,
        }
    }

    fn now(at_us: u64) -> Instant {
        Instant::from_nanos(at_us * 1000)
    }

    fn send(&mut self, at_us: u64) {
        let now = Self::now(at_us);
        let packet = data(1, self.next * 1400);
        let view = [path(0).build(), path(1).build()];
        let picked = self.capacity.pick(now, &view, Some(&flow(1)), packet.len() as u64);
        let over = picked.unwrap_or((self.next % 2) as u8);
        self.capacity.sent(now, over, &packet);
        let at = usize::from(over);
        let link = &self.links[at];
        // In steps of a millisecond, so that a link may stop in the middle of a packet.
        let (mut left, mut done) = (packet.len() as f64, at_us.max(self.free_at_us[at]));
        while left > 0.0 && done < at_us + 10_000_000 {
            let rate = link.bytes_per_us(done);
            let step = if rate * 1000.0 < left { 1000.0 } else { left / rate };
            left -= rate * step;
            done += step.ceil() as u64;
        }
        self.free_at_us[at] = done;
        let arrival = done + link.delay_ms * 1000;
        self.events.insert((arrival, self.next), true);
        self.sent.push((at_us, over, arrival - at_us));
        self.under_way += 1;
        self.next += 1;
    }

    fn arrive(&mut self, at_us: u64, number: u32) {
        self.received.insert(number);
        while self.received.remove(&self.first_missing) {
            self.first_missing += 1;
        }
        let first = self.first_missing;
        let blocks = if number < first || !self.has_sack {
            Vec::new()
        } else {
            let left =
                (first..=number).rev().find(|n| !self.received.contains(n)).map_or(0, |n| n + 1);
            let right = (number..).find(|n| !self.received.contains(n)).expect("an end");
            vec![SackBlock { left: TcpSeq(left * 1400), right: TcpSeq(right * 1400) }]
        };
        self.capacity.answered(Self::now(at_us), &ack(1, first * 1400, &blocks));
        self.under_way -= 1;
    }

    /// Passes time with so many segments under way.
    fn run(&mut self, until_ms: u64, window: u32) {
        loop {
            let next = self.events.first_key_value().map(|(key, _)| *key);
            let at_us = next.map_or(0, |(at, _)| at);
            if at_us > until_ms * 1000 {
                break;
            }
            if let Some((at, number)) = next {
                self.events.remove(&(at, number));
                self.arrive(at, number);
            }
            while self.under_way < window {
                self.send(at_us);
            }
        }
    }

    fn between(&self, from_ms: u64, to_ms: u64) -> Vec<(u8, u64)> {
        let is_in = |at: &u64| (from_ms * 1000..to_ms * 1000).contains(at);
        let sent = self.sent.iter().filter(|(at, ..)| is_in(at));
        sent.map(|(_, over, took)| (*over, *took)).collect()
    }

    fn share_of_first(&self, from_ms: u64, to_ms: u64) -> f64 {
        let sent = self.between(from_ms, to_ms);
        sent.iter().filter(|(over, _)| *over == 0).count() as f64 / sent.len() as f64
    }
}

/// Links, segments under way, and the share of the first link that fills both.
const SHARES: &[(f64, u64, f64, u64, u32, f64)] = &[
    (16.0, 20, 40.0, 10, 150, 0.286),
    (10.0, 10, 10.0, 10, 100, 0.5),
    (10.0, 60, 10.0, 10, 150, 0.5),
    (4.0, 15, 60.0, 15, 200, 0.0625),
    (100.0, 10, 50.0, 30, 400, 0.667),
];

#[test]
fn packets_are_shared_in_proportion_to_what_the_links_deliver() {
    for &(a, a_ms, b, b_ms, window, share) in SHARES {
        let mut world = World::new([Link::new(a, a_ms), Link::new(b, b_ms)]);
        world.run(3000, window);
        let seen = world.share_of_first(1000, 2900);
        assert!((seen - share).abs() < 0.04, "{a} and {b} Mbit/s: {seen} instead of {share}");
        let took = world.between(1000, 2900).into_iter().map(|(_, took)| took);
        let (least, most) = (took.clone().min().unwrap(), took.max().unwrap());
        // What fills both links waits in both for about as long.
        let queue_us = f64::from(window) * 1440.0 * 8.0 / (a + b);
        let bound = queue_us as u64 + 25_000;
        assert!(most < bound, "{a} and {b} Mbit/s: {least} to {most} us, at most {bound}");
    }
}

#[test]
fn what_one_link_carries_alone_stays_on_the_nearer_one() {
    let mut world = World::new([Link::new(20.0, 40), Link::new(40.0, 10)]);
    world.run(3000, 10);
    let seen = world.share_of_first(1000, 2900);
    assert!(seen < 0.02, "{seen}");
}

#[test]
fn a_stalled_link_is_left_within_two_round_trips_and_used_again() {
    let mut stalls = Link::new(40.0, 10);
    stalls.then = Some((1000, 0.4));
    let mut world = World::new([Link::new(16.0, 20), stalls]);
    world.run(2000, 100);
    let late = world.between(1040, 1900);
    let over_it = late.iter().filter(|(over, _)| *over == 1).count();
    let share = over_it as f64 / late.len() as f64;
    assert!(share < 0.1, "{over_it} of {}: {share}", late.len());
    let mut heals = Link::new(0.4, 10);
    heals.then = Some((1000, 40.0));
    let mut world = World::new([Link::new(16.0, 20), heals]);
    world.run(2000, 150);
    let share = world.share_of_first(1300, 1900);
    assert!((0.22..0.4).contains(&share), "{share}");
}

#[test]
fn without_sack_a_flow_is_steered_by_what_others_taught() {
    let mut world = World::new([Link::new(16.0, 20), Link::new(40.0, 10)]);
    world.has_sack = false;
    world.run(3000, 60);
    let now = World::now(3_000_000);
    let view = [path(0).build(), path(1).build()];
    let ledger = &world.capacity.flows[&flow(1)];
    assert!(!ledger.teaches(), "its duplicates carry no blocks");
    world.capacity.taught_at = None;
    assert_eq!(world.capacity.pick(now, &view, Some(&flow(1)), 1440), None);
    assert_eq!(world.capacity.pick(now, &view, None, 1440), None, "no TCP, and nobody taught");
    world.capacity.taught_at = Some(now);
    assert!(world.capacity.pick(now, &view, Some(&flow(1)), 1440).is_some());
    assert!(world.capacity.pick(now, &view, None, 1440).is_some());
}

#[test]
fn acknowledgements_of_what_was_never_sent_teach_nothing() {
    let mut capacity = Capacity::new(2);
    let at = Instant::from_millis;
    for n in 0..10 {
        capacity.sent(at(1), 0, &data(1, 5000 + n * 1400));
    }
    let block = |left, right| SackBlock { left: TcpSeq(left), right: TcpSeq(right) };
    let absurd = [block(5000, 50_000), block(0, 6400), block(6400, 5000), block(9000, 9001)];
    capacity.answered(at(2), &ack(1, 5000, &absurd));
    capacity.answered(at(2), &ack(1, 19_001, &[]));
    capacity.answered(at(2), &ack(1, 4999, &[]));
    capacity.answered(at(2), &ack(2, 6400, &[]));
    assert_eq!((capacity.taught_at, capacity.segments), (None, 10));
    capacity.answered(at(3), &ack(1, 6400, &[block(7800, 9200)]));
    assert_eq!((capacity.taught_at, capacity.segments), (Some(at(3)), 9));
}

#[test]
fn what_was_sent_twice_is_not_timed() {
    let mut capacity = Capacity::new(2);
    let at = Instant::from_millis;
    capacity.sent(at(0), 0, &data(1, 0));
    capacity.sent(at(500), 1, &data(1, 0));
    capacity.answered(at(501), &ack(1, 1400, &[]));
    assert_eq!((capacity.taught_at, capacity.rate(0), capacity.rate(1)), (None, None, None));
}

#[test]
fn the_answer_to_a_probe_ends_what_was_lost_before_it() {
    let mut capacity = Capacity::new(2);
    let at = Instant::from_millis;
    for n in 0..50 {
        capacity.sent(at(0), 1, &data(1, n * 1400));
    }
    let view = [path(0).rtt_ms(30).build(), path(1).rtt_ms(20).build()];
    assert_eq!(capacity.pick(at(300), &view, Some(&flow(1)), 1440), Some(0));
    capacity.probed(at(300), 1, Duration::from_millis(20));
    assert_eq!(capacity.pick(at(300), &view, Some(&flow(1)), 1440), Some(1));
}

#[test]
fn state_is_bounded() {
    let mut capacity = Capacity::new(1);
    let at = Instant::from_millis;
    for port in 0..2 * FLOWS_MAX as u16 {
        for n in 0..200 {
            capacity.sent(at(1), 0, &data(port, n * 1400));
        }
    }
    assert_eq!((capacity.flows.len(), capacity.segments), (FLOWS_MAX, SEGMENTS_MAX));
    capacity.sent(at(5000), 0, &data(9999, 0));
    assert_eq!((capacity.flows.len(), capacity.segments), (1, 1), "the idle ones made room");
}

#[derive(Clone, Debug)]
enum Op {
    Sent { port: u16, seq: u32, over: u8 },
    Answered { port: u16, ack: u32, blocks: Vec<(u32, u32)> },
    Probed { over: u8, ms: u64 },
    Pass { ms: u64 },
}

fn any_op() -> impl Strategy<Value = Op> {
    // Few numbers, so that they meet; and any at all.
    let number = || prop_oneof![8 => (0_u32..40).prop_map(|n| n * 700), 1 => any::<u32>()];
    let blocks = prop::collection::vec((number(), number()), 0..4);
    prop_oneof![
        8 => (0_u16..3, number(), 0_u8..2)
            .prop_map(|(port, seq, over)| Op::Sent { port, seq, over }),
        6 => (0_u16..3, number(), blocks)
            .prop_map(|(port, ack, blocks)| Op::Answered { port, ack, blocks }),
        1 => (0_u8..2, 0_u64..3000).prop_map(|(over, ms)| Op::Probed { over, ms }),
        3 => (0_u64..200).prop_map(|ms| Op::Pass { ms }),
    ]
}

proptest! {
    /// Whatever servers and clients say, the sums are right and a packet finds its attachment.
    #[test]
    fn any_numbers_leave_the_books_in_order(ops in prop::collection::vec(any_op(), 1..200)) {
        let mut capacity = Capacity::new(2);
        let mut now = Instant::from_millis(1);
        let view = [path(0).build(), path(1).rtt_ms(20).build()];
        for op in ops {
            match op {
                Op::Sent { port, seq, over } => capacity.sent(now, over, &data(port, seq)),
                Op::Answered { port, ack: number, blocks } => {
                    let block = |&(l, r): &_| SackBlock { left: TcpSeq(l), right: TcpSeq(r) };
                    let blocks: Vec<_> = blocks.iter().map(block).collect();
                    capacity.answered(now, &ack(port, number, &blocks));
                }
                Op::Probed { over, ms } => capacity.probed(now, over, Duration::from_millis(ms)),
                Op::Pass { ms } => now += Duration::from_millis(ms),
            }
            let segments: usize = capacity.flows.values().map(Ledger::len).sum();
            prop_assert_eq!(capacity.segments, segments);
            for attachment in &capacity.attachments {
                attachment.assert_sound();
            }
            prop_assert!(capacity.pick(now, &view, Some(&flow(1000)), 1500).is_some());
        }
    }
}
