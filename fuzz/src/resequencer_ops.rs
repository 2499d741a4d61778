//! The resequencer under any sequence of arrivals, time and passages, against a model that knows
//! only what arrived and what went on.

use std::collections::{BTreeMap, BTreeSet};

use plait_proto::resequencer::{
    Inserted, LatePolicy, NewlyLost, Resequencer, ResequencerConfig, Timer,
};
use plait_proto::seq::{BondSeq, PathId};
use plait_proto::time::{Duration, Instant};

use crate::input::Input;
use crate::reached;

const OPS_MAX: usize = 4000;
/// Numbers whose arrival the resequencer remembers below its floor.
const HISTORY: u64 = 65_536;

/// Nothing goes on twice or before its predecessor, counts add up, bounds hold, nothing stays.
pub fn resequencer_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut run = Run::new(&mut input);
    for _ in 0..OPS_MAX {
        if input.is_empty() {
            break;
        }
        run.step(&mut input);
        run.check();
    }
    run.finish();
}

struct Run {
    config: ResequencerConfig,
    first: u64,
    now: Instant,
    resequencer: Resequencer,
    inserted: u64,
    /// Numbers from `first` on that arrived.
    arrived: BTreeSet<u64>,
    floor: u64,
    lost: NewlyLost,
    model: Model,
}

/// What went on.
#[derive(Default)]
struct Model {
    delivered: BTreeSet<u64>,
    /// Predecessors that may no longer go on, with the number that went before them.
    passed_over: BTreeMap<u64, u64>,
    predecessors: BTreeMap<u64, u64>,
    in_order: bool,
}

impl Model {
    fn deliver(&mut self, packet: &[u8]) {
        let head = packet.first_chunk().expect("every packet begins with its number");
        let seq = u64::from_be_bytes(*head);
        assert!(self.delivered.insert(seq), "packet {seq} went on twice");
        if !self.in_order {
            return;
        }
        let successor = self.passed_over.get(&seq);
        assert_eq!(successor, None, "packet {seq} went on after its successor");
        if let Some(predecessor) = self.predecessors.get(&seq) {
            self.passed_over.insert(*predecessor, seq);
        }
    }
}

impl Run {
    fn new(input: &mut Input<'_>) -> Self {
        let millis = Duration::from_millis;
        let fixed = Timer::Fixed(millis(50));
        let config = ResequencerConfig {
            timer: input.pick([fixed, Timer::Adaptive { min: millis(5), max: millis(500) }]),
            late: input.pick([LatePolicy::Drop, LatePolicy::Deliver]),
            count_known_lost: input.flag(),
            release_known_lost: input.flag(),
            packets_max: input.pick([64, 128, 1024]),
            bytes_max: input.pick([200, 4096, 1 << 20]),
        };
        let first = input.pick([0, 1, 1 << 24, 1 << 40]);
        Self {
            config,
            first,
            now: Instant::ZERO,
            resequencer: Resequencer::starting_at(config, BondSeq(first)),
            inserted: 0,
            arrived: BTreeSet::new(),
            floor: first,
            lost: NewlyLost::default(),
            model: Model { in_order: config.late == LatePolicy::Drop, ..Model::default() },
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let next = self.resequencer.expected_next().0;
        match input.u8() % 16 {
            0..=5 => self.insert(next, input),
            6..=8 => self.insert(next + u64::from(input.u8() % 8), input),
            9 | 10 => self.insert(next.saturating_sub(u64::from(input.u8())), input),
            11 => self.insert(next + u64::from(input.u16()), input),
            12 => self.insert(next.saturating_sub(u64::from(input.u16())), input),
            13 => {
                let bound = (next + 8).saturating_sub(u64::from(input.u8()));
                let model = &mut self.model;
                let mut out = |packet: &[u8]| model.deliver(packet);
                self.resequencer.path_passed(self.now, BondSeq(bound), &mut out);
            }
            14 => self.resequencer.set_timeout(
                Duration::from_millis(input.u16().into()),
                Duration::from_millis(input.u16().into()),
            ),
            _ => {
                self.now += Duration::from_millis(input.u8().into());
                self.time_out();
            }
        }
    }

    fn insert(&mut self, seq: u64, input: &mut Input<'_>) {
        let control = input.u8();
        let prev = match control & 3 {
            0 => 0,
            1 => 1,
            2 => u16::from(control >> 4),
            _ => input.u16(),
        };
        let mut packet = seq.to_be_bytes().to_vec();
        packet.resize(8 + usize::from(input.u8()), control);
        if !self.model.predecessors.contains_key(&seq)
            && let Some(predecessor) = seq.checked_sub(prev.into()).filter(|_| prev != 0)
        {
            self.model.predecessors.insert(seq, predecessor);
        }
        let known = self.arrived.contains(&seq);
        let before = self.model.delivered.contains(&seq);
        let model = &mut self.model;
        let mut out = |packet: &[u8]| model.deliver(packet);
        let path = PathId(control >> 5);
        let what = self.resequencer.insert(self.now, BondSeq(seq), prev, path, &packet, &mut out);
        self.inserted += 1;
        if seq >= self.first {
            self.arrived.insert(seq);
        }
        let went_on = !before && self.model.delivered.contains(&seq);
        match what {
            Inserted::Delivered | Inserted::LateDelivered => assert!(went_on, "{what:?}: {seq}"),
            Inserted::Duplicate => assert!(known && !went_on, "{what:?}: {seq}"),
            Inserted::Waiting | Inserted::LateDropped | Inserted::Forgotten => {
                assert!(!went_on, "{what:?}: {seq}");
            }
        }
    }

    fn time_out(&mut self) {
        let model = &mut self.model;
        let mut out = |packet: &[u8]| model.deliver(packet);
        self.resequencer.handle_timeout(self.now, &mut out);
        let due = self.resequencer.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "a timer stays due after it was handled");
    }

    fn check(&mut self) {
        let (floor, next) = (self.resequencer.floor().0, self.resequencer.expected_next().0);
        assert!(self.floor <= floor && floor <= next, "floor {} {floor} {next}", self.floor);
        self.floor = floor;
        let span = u64::from(self.config.packets_max);
        assert!(next - floor <= span, "the ring spans {} of {span} numbers", next - floor);
        let stats = self.resequencer.stats();
        let (packets, bytes) = (stats.waiting_now_packets, stats.waiting_now_bytes);
        assert!(packets < span, "{packets} packets wait in a ring of {span}");
        assert!(bytes <= self.config.bytes_max || packets == 1, "{bytes} bytes wait");
        assert_eq!(packets == 0, bytes == 0, "packets that wait have bytes");
        let late = stats.late_dropped + stats.late_delivered;
        let given_in = stats.at_once + stats.waited + late + stats.duplicates;
        assert_eq!(given_in, self.inserted, "every packet is counted once: {stats:?}");
        let released = stats.released;
        let released = released.in_order + released.known_lost + released.timer + released.overflow;
        assert_eq!(stats.waited, released + packets, "what waited was released or waits");
        let gone = stats.at_once + released + stats.late_delivered;
        assert_eq!(gone, self.model.delivered.len() as u64, "what went on was counted");
        let lost = self.resequencer.drain_lost();
        self.lost.lost += lost.lost;
        self.lost.recovered.extend(lost.recovered);
    }

    /// Time alone lets everything go.
    fn finish(&mut self) {
        let steps = 2 * self.config.packets_max as usize + 2;
        for _ in 0..steps {
            let Some(due) = self.resequencer.poll_timeout() else { break };
            self.now = self.now.max(due);
            self.time_out();
            self.check();
        }
        assert_eq!(self.resequencer.poll_timeout(), None, "time resolves everything");
        assert_eq!(self.resequencer.stats().waiting_now_packets, 0, "nothing waits for ever");
        reached::statistics("resequencer_ops", &format!("{:?}", self.resequencer.stats()));
        let next = self.resequencer.expected_next().0;
        assert_eq!(self.floor, next, "everything is resolved");
        let sent = next - self.first;
        if sent <= HISTORY {
            let recovered: u64 = self.lost.recovered.iter().map(|(_, count)| count).sum();
            let missing = sent - self.arrived.len() as u64;
            assert_eq!(self.lost.lost - recovered, missing, "losses are what never arrived");
        }
    }
}
