//! Random lists of operations on two endpoints: what comes out was sent, once and in its order, and
//! a healed bond carries packets again.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, bond_config, number, packet};
use plait_proto::config::{BondConfig, Order, RekeyLimits};
use plait_proto::scheduler::Algorithm;
use plait_proto::time::Duration;
use proptest::prelude::*;

const FLOWS: u16 = 3;
const RECOVERY_STEPS: u32 = 60;
const RECOVERY_STEP: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug)]
enum Op {
    Wait {
        ms: u64,
    },
    Send {
        from: usize,
        count: u32,
    },
    Cut {
        link: usize,
    },
    Join {
        link: usize,
    },
    /// Packets sent from now on overtake, or are overtaken by, those before them.
    Delay {
        link: usize,
        ms: u64,
    },
    Duplicate {
        back: usize,
    },
    Corrupt {
        back: usize,
        at: usize,
        pattern: u8,
    },
    Rekey,
    Restart {
        side: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..2000_u64).prop_map(|ms| Op::Wait { ms }),
        4 => (0..2_usize, 1..40_u32).prop_map(|(from, count)| Op::Send { from, count }),
        1 => (0..2_usize).prop_map(|link| Op::Cut { link }),
        1 => (0..2_usize).prop_map(|link| Op::Join { link }),
        1 => (0..2_usize, 0..200_u64).prop_map(|(link, ms)| Op::Delay { link, ms }),
        1 => (0..50_usize).prop_map(|back| Op::Duplicate { back }),
        1 => (0..50_usize, any::<usize>(), 1..=255_u8)
            .prop_map(|(back, at, pattern)| Op::Corrupt { back, at, pattern }),
        1 => Just(Op::Rekey),
        1 => (0..2_usize).prop_map(|side| Op::Restart { side }),
    ]
}

struct Run {
    pair: Pair,
    /// By sending side: what was sent and whether it came out.
    sent: [Vec<(Vec<u8>, bool)>; 2],
    next: [[u32; FLOWS as usize]; 2],
}

impl Run {
    fn new() -> Self {
        let rekey = RekeyLimits {
            rekey_after: Duration::from_secs(4),
            rekey_after_packets: 100,
            reject_after: Duration::from_secs(8),
        };
        let bond = BondConfig { rekey, ..bond_config(Algorithm::RoundRobin, Order::Flow) };
        let pair = Pair::connected(Setup { bond, ..Setup::default() });
        Self { pair, sent: Default::default(), next: Default::default() }
    }

    fn send(&mut self, from: usize, count: u32) {
        let first = self.sent[from].len() as u32;
        let packets: Vec<Vec<u8>> = (first..first + count)
            .map(|number| packet(from, number as u16 % FLOWS, number))
            .collect();
        self.sent[from].extend(packets.iter().map(|packet| (packet.clone(), false)));
        self.pair.send(from, &packets);
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Wait { ms } => self.pair.run_for(Duration::from_millis(ms)),
            Op::Send { from, count } => self.send(from, count),
            Op::Cut { link } => self.pair.links[link].up = false,
            Op::Join { link } => self.pair.links[link].up = true,
            Op::Delay { link, ms } => self.pair.links[link].delay = Duration::from_millis(ms),
            Op::Duplicate { back } => self.replay(back, |_| ()),
            Op::Corrupt { back, at, pattern } => self.replay(back, |bytes| {
                let at = at % bytes.len();
                bytes[at] ^= pattern;
            }),
            Op::Rekey => self.pair.run_for(Duration::from_millis(4_100)),
            Op::Restart { side } => self.pair.restart(side),
        }
        self.check();
    }

    /// A datagram of a while ago arrives once more.
    fn replay(&mut self, back: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let captured = &self.pair.captured;
        let Some(at) = captured.len().checked_sub(back + 1) else { return };
        let mut datagram = captured[at].clone();
        change(&mut datagram.bytes);
        self.pair.inject(datagram.to, datagram.link, &datagram.bytes);
    }

    fn check(&mut self) {
        for side in [CUSTOMER, PROVIDER] {
            for delivered in core::mem::take(&mut self.pair.delivered[side]) {
                let number = number(&delivered);
                let (sent, came) = &mut self.sent[1 - side][number as usize];
                assert_eq!(*sent, delivered, "it comes out as it went in");
                assert!(!core::mem::replace(came, true), "packet {number} came out twice");
                let next = &mut self.next[side][number as usize % usize::from(FLOWS)];
                assert!(*next <= number, "packet {number} came out after {}", *next - 1);
                *next = number + 1;
            }
        }
    }

    fn recover(&mut self) {
        for link in &mut self.pair.links {
            link.up = true;
            link.delay = Duration::from_millis(10);
        }
        for _ in 0..RECOVERY_STEPS {
            self.send(CUSTOMER, 1);
            self.send(PROVIDER, 1);
            self.pair.run_for(RECOVERY_STEP);
            self.check();
        }
        for side in [CUSTOMER, PROVIDER] {
            let last = self.sent[side].last().map(|(_, came)| *came);
            assert_eq!(last, Some(true), "a packet from side {side} gets through after healing");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, max_shrink_iters: 400, ..ProptestConfig::default()
    })]

    #[test]
    fn any_operations_leave_a_bond_that_recovers(ops in prop::collection::vec(op(), 0..40)) {
        let mut run = Run::new();
        for op in ops {
            run.apply(op);
        }
        run.recover();
    }
}

#[test]
fn regression_peer_restarts_before_any_path_is_validated() {
    let mut pair = Pair::new(Setup::default());
    // The response is there, the first challenge has not arrived.
    pair.run_for(Duration::from_millis(12));
    pair.restart(PROVIDER);
    pair.run_for(Duration::from_secs(15));
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [2, 2]);
}
