//! Random interleavings against what must hold whatever comes.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const FLOWS: u16 = 3;
const HOLD: Duration = Duration::from_millis(40);

/// What may happen.
#[derive(Clone, Debug)]
enum Op {
    /// Segments to the client, from so many below the highest sent on.
    Data {
        flow: u16,
        back: u32,
        count: u32,
    },
    /// A pure ACK so many segments above the lowest unacknowledged one, with this many SACK blocks
    /// above it.
    Ack {
        flow: u16,
        above: u32,
        blocks: u32,
    },
    /// A pure ACK of the same number with what makes it no duplicate.
    Odd {
        flow: u16,
        oddity: Oddity,
        blocks: u32,
    },
    Wait {
        ms: u64,
    },
    SynAck {
        flow: u16,
    },
    /// The owner was late: time passes without its timers.
    Oversleep {
        ms: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Oddity {
    Payload,
    Window,
    Dsack,
    Fin,
    Rst,
    Old,
    Beyond,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let oddity = prop_oneof![
        Just(Oddity::Payload),
        Just(Oddity::Window),
        Just(Oddity::Dsack),
        Just(Oddity::Fin),
        Just(Oddity::Rst),
        Just(Oddity::Old),
        Just(Oddity::Beyond),
    ];
    let flow = 0..FLOWS;
    let op = prop_oneof![
        4 => (flow.clone(), 1_u32..6)
            .prop_map(|(flow, count)| Op::Data { flow, back: 0, count }),
        1 => (flow.clone(), 1_u32..4, 1_u32..3)
            .prop_map(|(flow, back, count)| Op::Data { flow, back, count }),
        12 => (flow.clone(), 0_u32..3)
            .prop_map(|(flow, blocks)| Op::Ack { flow, above: 0, blocks }),
        4 => (flow.clone(), 1_u32..4, 0_u32..3)
            .prop_map(|(flow, above, blocks)| Op::Ack { flow, above, blocks }),
        4 => (flow.clone(), oddity, 0_u32..2)
            .prop_map(|(flow, oddity, blocks)| Op::Odd { flow, oddity, blocks }),
        6 => (0_u64..30).prop_map(|ms| Op::Wait { ms }),
        1 => flow.prop_map(|flow| Op::SynAck { flow }),
        1 => (0_u64..60).prop_map(|ms| Op::Oversleep { ms }),
    ];
    vec(op, 1..250)
}

fn configs() -> impl Strategy<Value = DidaConfig> {
    let hold = prop_oneof![3 => Just(HoldPolicy::Fixed(HOLD)), 1 => Just(HoldPolicy::Optimum)];
    let bounds = (1_usize..4, prop_oneof![Just(8 << 20), 0_usize..700], 0_usize..6);
    (hold, any::<[bool; 3]>(), bounds).prop_map(|(hold, [mask, discard, recovery], bounds)| {
        DidaConfig {
            hold,
            sack: if mask { SackHandling::Mask } else { SackHandling::Pass },
            on_gap_filled: if discard { GapFilled::Discard } else { GapFilled::Forward },
            released_until: if recovery {
                ReleasedUntil::RecoveryPoint
            } else {
                ReleasedUntil::NextAck
            },
            hold_max: 2 * HOLD,
            flows_max: bounds.0,
            held_bytes_max: bounds.1,
            held_packets_per_flow_max: bounds.2,
            idle: Duration::from_secs(1),
            ..DidaConfig::default()
        }
    })
}

/// What the checker remembers of a flow.
#[derive(Default)]
struct Known {
    /// Segments sent to the client in all, and those that it acknowledged.
    sent: u32,
    received: u32,
    /// The same as far as the node can know it, which forgets flows.
    seen: u32,
    acked: Option<u32>,
    /// Held and not yet out: their marks, with the time, in order.
    held: Vec<(u32, Instant)>,
    /// What the sender was not told last: the ACK's mark and when withholding began.
    withheld: Option<(u32, Instant)>,
}

/// Runs operations; every packet from a client is marked by its timestamp.
struct Run {
    dida: Dida,
    now: Instant,
    known: BTreeMap<u16, Known>,
    next_mark: u32,
    given_in: u64,
    /// Everything that went up: flow and mark, and whether it was without the SACK it came with.
    log: Vec<(u16, u32, bool)>,
    has_overslept: bool,
}

impl Run {
    fn new(config: DidaConfig) -> Self {
        Self {
            dida: Dida::new(config),
            now: Instant::from_millis(1),
            known: BTreeMap::new(),
            next_mark: 1,
            given_in: 0,
            log: Vec::new(),
            has_overslept: false,
        }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Data { flow, back, count } => self.data(flow, back, count),
            Op::Ack { flow, above, blocks } => {
                let known = self.known.entry(flow).or_default();
                let ack = (known.received + above).min(known.sent);
                let packet = self.segment(flow, ack, blocks, None);
                self.up(flow, ack, packet, None);
            }
            Op::Odd { flow, oddity, blocks } => {
                let known = self.known.entry(flow).or_default();
                let (oddity, ack) = match (oddity, known.acked) {
                    (Oddity::Old, Some(acked @ 1..)) => (oddity, acked - 1),
                    (Oddity::Old, _) => (Oddity::Rst, 0),
                    (Oddity::Beyond, _) => (oddity, known.sent + 2),
                    _ => (oddity, known.received),
                };
                let packet = self.segment(flow, ack, blocks, Some(oddity));
                self.up(flow, ack, packet, Some(oddity));
            }
            Op::Wait { ms } => self.wait(Duration::from_millis(ms)),
            Op::SynAck { flow } => {
                let flags = TcpFlags(TcpFlags::SYN | TcpFlags::ACK);
                let ends = flow_of(false, flow);
                let syn = TcpSegment { flags, ..TcpSegment::new(ends, seq(0), seq(0), &[]) };
                self.dida.handle_downstream(self.now, &syn.to_packet());
                self.drain();
            }
            Op::Oversleep { ms } => {
                self.now += Duration::from_millis(ms);
                self.has_overslept = true;
                self.dida.handle_timeout(self.now);
                self.drain();
                self.has_overslept = false;
            }
        }
        self.check_bounds();
    }

    fn data(&mut self, flow: u16, back: u32, count: u32) {
        let known = self.known.entry(flow).or_default();
        let from = known.sent.saturating_sub(back);
        known.sent = known.sent.max(from + count);
        if self.dida.table.peek(&flow_of(false, flow)).is_none() {
            (known.seen, known.acked) = (0, None);
        }
        known.seen = known.seen.max(from + count);
        for segment in from..from + count {
            let payload = [0; SEGMENT_BYTES as usize];
            let ends = flow_of(false, flow);
            let packet = TcpSegment::new(ends, seq(segment), TcpSeq(1), &payload).to_packet();
            self.dida.handle_downstream(self.now, &packet);
            self.drain();
        }
    }

    /// A packet of the client with the next mark.
    fn segment(&mut self, flow: u16, ack: u32, blocks: u32, oddity: Option<Oddity>) -> Vec<u8> {
        let block = |n| SackBlock { left: seq(ack + 2 * n + 1), right: seq(ack + 2 * n + 2) };
        let mut sack: Vec<SackBlock> = (0..blocks).map(block).collect();
        let payload = [7; 5];
        let ends = flow_of(false, flow).reversed();
        let mut segment = TcpSegment::new(ends, TcpSeq(1), seq(ack), &[]);
        segment.timestamps = Some((self.next_mark, 0));
        segment.window = WINDOW;
        match oddity {
            Some(Oddity::Payload) => segment.payload = &payload,
            // Never the same window twice.
            Some(Oddity::Window) => segment.window = 1000 + (self.next_mark % 60_000) as u16,
            Some(Oddity::Dsack) => {
                let left = BASE.plus(ack.wrapping_mul(SEGMENT_BYTES).wrapping_sub(1000));
                sack.insert(0, SackBlock { left, right: seq(ack) });
            }
            Some(Oddity::Fin) => segment.flags.0 |= TcpFlags::FIN,
            Some(Oddity::Rst) => segment.flags.0 |= TcpFlags::RST,
            Some(Oddity::Old | Oddity::Beyond) | None => {}
        }
        self.next_mark += 1;
        TcpSegment { sack: &sack, ..segment }.to_packet()
    }

    fn up(&mut self, flow: u16, ack: u32, mut packet: Vec<u8>, oddity: Option<Oddity>) {
        self.given_in += 1;
        let before = packet.clone();
        let mark = mark_of(&before);
        let has_sack = TcpPacket::read(&before).expect("well formed").has_sack();
        let is_known = self.dida.table.peek(&flow_of(false, flow)).is_some();
        let upstream = self.dida.handle_upstream(self.now, &mut packet);
        let known = &self.known[&flow];
        let advances = is_known
            && ack <= known.seen
            && known.acked.is_none_or(|acked| ack > acked)
            && oddity != Some(Oddity::Rst);
        if advances {
            self.note_advance(flow, ack);
        }
        self.drain();
        let is_masked = packet != before;
        match upstream {
            Upstream::Held => {
                assert!(oddity.is_none(), "{oddity:?} is never held");
                let acked = self.known[&flow].acked;
                assert!(is_known && acked == Some(ack), "only a duplicate is held");
                assert_eq!(packet, before);
                self.known.get_mut(&flow).expect("known").held.push((mark, self.now));
            }
            Upstream::Forward => self.log.push((flow, mark, is_masked)),
        }
        if is_masked {
            let may_be = matches!(oddity, None | Some(Oddity::Window));
            assert!(may_be && has_sack, "{oddity:?} is never masked");
            assert_eq!(self.dida.config.sack, SackHandling::Mask);
            assert!(!TcpPacket::read(&packet).expect("still well formed").has_sack());
        }
        if is_masked || upstream == Upstream::Held && has_sack {
            let withheld = &mut self.known.get_mut(&flow).expect("known").withheld;
            *withheld = Some((mark, withheld.map_or(self.now, |(_, since)| since)));
        }
    }

    /// The gap is filled: what was held need not come, or comes now.
    fn note_advance(&mut self, flow: u16, ack: u32) {
        if self.dida.config.on_gap_filled == GapFilled::Forward {
            self.drain();
        }
        let known = self.known.get_mut(&flow).expect("it advances");
        known.acked = Some(ack);
        known.received = known.received.max(ack);
        known.held.clear();
        known.withheld = None;
    }

    fn drain(&mut self) {
        while let Some(packet) = self.dida.poll_transmit() {
            let read = TcpPacket::read(&packet).expect("what goes up is well formed");
            let flow = read.flow().source_port;
            let mark = mark_of(&packet);
            let known = self.known.get_mut(&flow).expect("something came up before");
            if known.withheld.is_some_and(|(last, _)| last == mark) {
                known.withheld = None;
            }
            if let Some(&(first, since)) = known.held.first()
                && first == mark
            {
                known.held.remove(0);
                let took = self.now.since(since);
                assert!(took <= 2 * HOLD || self.has_overslept, "held for {took:?}");
            } else {
                let was_masked = self.log.contains(&(flow, mark, true));
                assert!(was_masked, "in order, and nothing that was not withheld");
            }
            assert!(!self.log.contains(&(flow, mark, false)), "{mark} went up twice");
            self.log.push((flow, mark, false));
        }
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut fires = 0;
        while let Some(due) = self.dida.poll_timeout().filter(|due| *due <= end) {
            fires += 1;
            assert!(fires <= 10, "a timer that is due must have an effect");
            self.now = due.max(self.now);
            self.dida.handle_timeout(self.now);
            self.drain();
            self.check_bounds();
        }
        self.now = end;
    }

    fn check_bounds(&self) {
        let stats = self.dida.stats();
        let config = self.dida.config();
        assert_eq!(stats.forwarded.total() + stats.held, self.given_in);
        assert_eq!(stats.held, stats.held_ends.total() + stats.held_now);
        let held: usize = self.known.values().map(|known| known.held.len()).sum();
        assert_eq!(stats.held_now, held as u64);
        assert!(stats.kept_peak_bytes <= config.held_bytes_max as u64, "{stats:?}");
        assert!(stats.flows <= config.flows_max as u64);
        let ended = stats.gaps_filled + stats.gaps_expired + stats.gaps_given_up;
        assert_eq!(stats.gaps, ended + self.dida.deadlines.len() as u64);
        for known in self.known.values() {
            assert!(known.held.len() <= config.held_packets_per_flow_max);
            let oldest = known.held.first().map(|&(_, since)| since);
            for since in oldest.into_iter().chain(known.withheld.map(|(_, since)| since)) {
                let took = self.now.since(since);
                assert!(took <= 2 * HOLD, "withheld for {took:?}, and the gap is still there");
            }
        }
    }
}

fn mark_of(packet: &[u8]) -> u32 {
    let read = TcpPacket::read(packet).expect("well formed");
    read.timestamps().expect("marked").0
}

proptest! {
    #[test]
    fn nothing_is_lost_or_kept_too_long(config in configs(), ops in ops()) {
        let mut run = Run::new(config);
        for op in &ops {
            run.step(op);
        }
        run.dida.release_all();
        run.drain();
        run.check_bounds();
        let stats = run.dida.stats();
        prop_assert_eq!((stats.held_now, stats.kept_now_bytes), (0, 0));
        prop_assert!(run.known.values().all(|known| known.withheld.is_none()));
        run.wait(Duration::from_secs(2));
        prop_assert_eq!((run.dida.stats().flows, run.dida.poll_timeout()), (0, None));
    }

    #[test]
    fn the_same_comes_out_again(config in configs(), ops in ops()) {
        let run = || {
            let mut run = Run::new(config);
            for op in &ops {
                run.step(op);
            }
            (run.log, run.dida.stats())
        };
        prop_assert_eq!(run(), run());
    }
}
