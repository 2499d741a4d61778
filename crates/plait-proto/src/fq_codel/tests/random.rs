//! Random operations, against a model: a list per flow.

use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Push {
        flow: u32,
        length: usize,
        ecn: u8,
    },
    Pop,
    /// Pops and puts back.
    Peek,
    Wait {
        millis: u64,
    },
    Interval {
        millis: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..4u32, 32..2000usize, 0..4u8)
            .prop_map(|(flow, length, ecn)| Op::Push { flow, length, ecn }),
        3 => Just(Op::Pop),
        1 => Just(Op::Peek),
        2 => (0..60u64).prop_map(|millis| Op::Wait { millis }),
        1 => (0..400u64).prop_map(|millis| Op::Interval { millis }),
    ]
}

struct Case {
    queue: FqCodel,
    limit_bytes: u64,
    now: Instant,
    pushed: u32,
    popped: u64,
    /// What may still come of each flow, in order.
    waiting: BTreeMap<u32, VecDeque<Vec<u8>>>,
}

impl Case {
    fn new(limit_bytes: u64) -> Self {
        let config = FqCodelConfig { limit_bytes, ..FqCodelConfig::default() };
        let (now, waiting) = (Instant::ZERO, BTreeMap::new());
        Self { queue: FqCodel::new(config, 7), limit_bytes, now, pushed: 0, popped: 0, waiting }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Push { flow, length, ecn } => {
                let mut bytes = packet(flow, self.pushed, length);
                Ecn::from_bits(ecn).write(&mut bytes);
                self.pushed += 1;
                let class = self.queue.classify(self.now, &inner(flow), length);
                self.queue.push(self.now, &inner(flow), &bytes, class);
                self.waiting.entry(flow).or_default().push_back(bytes);
            }
            Op::Pop => {
                if let Some(packet) = self.queue.pop(self.now) {
                    self.popped += 1;
                    self.check_popped(&packet);
                    self.queue.recycle(packet.bytes);
                }
            }
            Op::Peek => {
                if let Some(packet) = self.queue.pop(self.now) {
                    let (packets, bytes) = (self.queue.packets(), self.queue.bytes());
                    let length = packet.bytes.len() as u64;
                    self.queue.put_back(packet);
                    assert_eq!(self.queue.packets(), packets + 1);
                    assert_eq!(self.queue.bytes(), bytes + length);
                }
            }
            Op::Wait { millis } => self.now += Duration::from_millis(millis),
            Op::Interval { millis } => self.queue.set_round_trip(Duration::from_millis(millis)),
        }
    }

    /// It is one of its flow's that came later than those before it, and was changed at most by a
    /// mark.
    fn check_popped(&mut self, popped: &Queued) {
        let flow = self.waiting.entry(popped.inner.ports).or_default();
        let waited = loop {
            let waited = flow.pop_front().expect("the packet was pushed, and not popped before");
            if number(&waited) == number(&popped.bytes) {
                break waited;
            }
        };
        let mut marked = waited.clone();
        if ecn::mark(&mut marked) && popped.bytes == marked {
            return;
        }
        assert_eq!(popped.bytes, waited);
    }

    fn check(&self) {
        let counters = self.queue.counters();
        let gone = self.popped + counters.dropped_full + counters.dropped_codel;
        assert_eq!(u64::from(self.pushed), gone + self.queue.packets() as u64, "{counters:?}");
        assert!(self.queue.bytes() <= self.limit_bytes);
        assert_eq!(self.queue.is_empty(), self.queue.bytes() == 0);
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_unseen_doubled_or_overtaken(
        ops in vec(op(), 0..400), limit_bytes in prop_oneof![Just(5_000u64), Just(1 << 20)],
    ) {
        let mut case = Case::new(limit_bytes);
        for op in &ops {
            case.step(op);
            case.check();
        }
        while !case.queue.is_empty() {
            case.step(&Op::Pop);
            case.check();
        }
    }

    /// However long their packets are, greedy flows get the same bytes within a turn each.
    #[test]
    fn greedy_flows_share_equally(lengths in vec(40..1500usize, 2..6)) {
        let mut queue = queue();
        let mut sent = vec![0i64; lengths.len()];
        for (flow, length) in lengths.iter().enumerate() {
            for number in 0..(60_000 / length) as u32 {
                push(&mut queue, ms(0), flow as u32, number, *length);
            }
        }
        while sent.iter().all(|bytes| *bytes < 50_000) {
            let (flow, _) = pop(&mut queue, ms(0)).expect("all flows have more");
            sent[flow as usize] += lengths[flow as usize] as i64;
        }
        let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
        prop_assert!(spread <= 2 * 1500, "{sent:?}");
    }
}
