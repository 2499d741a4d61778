//! Target `fq_codel_ops`: packets, time and parameters into the queue at the ingress, against a
//! model.
//!
//! Whatever happens: every packet pushed comes out, was dropped and counted, or waits; a flow keeps
//! its order; a packet is changed by a mark at most; the bounds hold.

use std::collections::{BTreeMap, VecDeque};

use plait_proto::fq_codel::{FqCodel, FqCodelConfig, QUEUE_PACKETS_MAX, Queued};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::{self, Ecn};
use plait_proto::wire::ip::Inner;

use crate::input::Input;
use crate::reached;

const STEPS_MAX: usize = 2000;

/// Runs the operations in `data`.
pub fn fq_codel_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut case = Case::new(&mut input);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        case.step(&mut input);
        case.check();
    }
    while case.pop() {
        case.check();
    }
    reached::statistics("fq_codel_ops", &format!("{:?}", case.queue.counters()));
    assert!(case.queue.is_empty(), "a queue that gives nothing is empty");
}

struct Case {
    queue: FqCodel,
    limit_bytes: u64,
    now: Instant,
    pushed: u64,
    popped: u64,
    /// What may still come of each flow, in order, with its number.
    waiting: BTreeMap<u32, VecDeque<(u64, Vec<u8>)>>,
}

impl Case {
    fn new(input: &mut Input<'_>) -> Self {
        let config = FqCodelConfig {
            target: Duration::from_millis(input.pick([0, 1, 5, 50])),
            interval: Duration::from_millis(input.pick([0, 10, 100])),
            limit_bytes: input.pick([0, 2000, 20_000, 8 << 20]),
            quantum_bytes: input.pick([0, 300, 1500, 9000]),
            ecn: input.flag(),
        };
        Self {
            queue: FqCodel::new(config, input.u8().into()),
            limit_bytes: config.limit_bytes,
            now: Instant::ZERO,
            pushed: 0,
            popped: 0,
            waiting: BTreeMap::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 16 {
            0..=6 => self.push(input),
            7 => {
                for _ in 0..input.u8() {
                    self.push(input);
                }
            }
            8..=10 => {
                self.pop();
            }
            11 => {
                let rounds = input.u8();
                (0..rounds).all(|_| self.pop());
            }
            12 => self.peek(),
            13 => self.queue.set_round_trip(Duration::from_millis(input.u16().into())),
            14 => self.now += Duration::from_millis(input.u8().into()),
            _ => self.now += Duration::from_micros(input.u16().into()),
        }
    }

    fn push(&mut self, input: &mut Input<'_>) {
        let flow = u32::from(input.u8() % 5);
        let length = input.pick([28, 100, 1500, 9000]) + usize::from(input.u8());
        let packet = packet(flow, self.pushed, length, Ecn::from_bits(input.u8()));
        let inner = Inner::read(&packet).expect("the packet is well formed");
        let class = self.queue.classify(self.now, &inner, packet.len());
        self.queue.push(self.now, &inner, &packet, class);
        self.waiting.entry(flow).or_default().push_back((self.pushed, packet));
        self.pushed += 1;
    }

    fn pop(&mut self) -> bool {
        let Some(packet) = self.queue.pop(self.now) else { return false };
        self.popped += 1;
        self.check_popped(&packet);
        self.queue.recycle(packet.bytes);
        true
    }

    fn peek(&mut self) {
        if let Some(packet) = self.queue.pop(self.now) {
            let (packets, bytes) = (self.queue.packets(), self.queue.bytes());
            let length = packet.bytes.len() as u64;
            self.queue.put_back(packet);
            let now = (self.queue.packets(), self.queue.bytes());
            assert_eq!(now, (packets + 1, bytes + length), "putting back undoes popping");
        }
    }

    fn check_popped(&mut self, popped: &Queued) {
        let flow = self.waiting.entry(popped.inner.ports).or_default();
        let waited = loop {
            let (number, waited) = flow.pop_front().expect("pushed, and not popped before");
            if number == number_of(&popped.bytes) {
                break waited;
            }
        };
        let mut marked = waited.clone();
        assert!(
            popped.bytes == waited || ecn::mark(&mut marked) && popped.bytes == marked,
            "a packet is changed by a mark at most"
        );
    }

    fn check(&self) {
        let counters = self.queue.counters();
        let gone = self.popped + counters.dropped_full + counters.dropped_codel;
        let packets = self.queue.packets();
        assert_eq!(self.pushed, gone + packets as u64, "every packet is somewhere: {counters:?}");
        assert!(self.queue.bytes() <= self.limit_bytes, "{} bytes wait", self.queue.bytes());
        assert!(packets <= QUEUE_PACKETS_MAX, "{packets} packets wait");
        assert_eq!(self.queue.is_empty(), packets == 0);
    }
}

/// A UDP packet whose ports are the flow, with a number behind its headers.
fn packet(flow: u32, number: u64, body: usize, ecn: Ecn) -> Vec<u8> {
    let total = (28 + 8 + body) as u16;
    let mut packet = vec![0x45, ecn.bits()];
    packet.extend_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend_from_slice(&flow.to_be_bytes());
    packet.extend_from_slice(&[0; 4]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet.resize(total.into(), 0);
    packet
}

fn number_of(packet: &[u8]) -> u64 {
    u64::from_be_bytes(packet[28..36].try_into().expect("packets of this target have a number"))
}
