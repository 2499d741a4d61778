//! What holds for every controller, whatever happens.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// Packets leave and are acknowledged after some milliseconds.
    Acknowledge {
        segments: u64,
        after_ms: u64,
        rtt_ms: u64,
        app_limited: bool,
    },
    Phase(Phase),
    Loss,
    Rto(Episode),
    Spurious,
}

pub(super) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let phases = prop::sample::select(vec![Phase::Open, Phase::FastRecovery, Phase::RtoRecovery]);
    let episodes = prop::sample::select(vec![Episode::New, Episode::Continued]);
    let acknowledge = (1_u64..200, 0_u64..2_000, 1_u64..500, any::<bool>()).prop_map(
        |(segments, after_ms, rtt_ms, app_limited)| Op::Acknowledge {
            segments,
            after_ms,
            rtt_ms,
            app_limited,
        },
    );
    let op = prop_oneof![
        12 => acknowledge,
        2 => phases.prop_map(Op::Phase),
        1 => Just(Op::Loss),
        1 => episodes.prop_map(Op::Rto),
        1 => Just(Op::Spurious),
    ];
    prop::collection::vec(op, 1..200)
}

/// Applies operations to a controller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct World {
    now: Instant,
    phase: Phase,
}

impl World {
    pub(super) fn apply(&mut self, controller: &mut dyn Controller, op: Op, siblings: &[Sibling]) {
        let (flight_bytes, in_flight_bytes) = (controller.window(), 3 * S);
        match op {
            Op::Acknowledge { segments, after_ms, rtt_ms, app_limited } => {
                let newest = controller.on_sent(&sent(segments * S));
                self.now += ms(after_ms);
                let sample = acked(self.now, segments * S, ms(rtt_ms));
                let phase = self.phase;
                controller.on_ack(&AckSample { newest, app_limited, phase, siblings, ..sample });
            }
            Op::Phase(next) => self.phase = next,
            Op::Loss => controller.on_loss(&Loss { now: self.now, flight_bytes }),
            Op::Rto(episode) => {
                controller.on_rto(&Rto { now: self.now, flight_bytes, in_flight_bytes, episode });
            }
            Op::Spurious => controller.on_spurious(&Spurious { now: self.now, window_bytes: 0 }),
        }
    }
}

fn with_slow_starts(algorithms: Vec<Algorithm>) -> impl Strategy<Value = ControllerConfig> {
    let algorithm = prop::sample::select(algorithms);
    let slow_start = prop::sample::select(SlowStart::ALL.to_vec()).prop_map(Some);
    (algorithm, slow_start)
        .prop_map(|(algorithm, slow_start)| ControllerConfig { slow_start, ..algorithm.into() })
}

fn configs() -> impl Strategy<Value = ControllerConfig> {
    with_slow_starts(vec![Algorithm::NewReno, Algorithm::Cubic, Algorithm::Lia, Algorithm::Balia])
}

/// All that back off to two segments at least. Some give way to delay or to siblings, or grow by
/// more than a segment per window.
fn all_kinds() -> impl Strategy<Value = ControllerConfig> {
    let has_slow_start = |algorithm: &Algorithm| algorithm.default_slow_start().is_some();
    let algorithms = Algorithm::ALL.into_iter().filter(has_slow_start).collect();
    let repairs = prop::sample::subsequence(Repair::ALL.to_vec(), 0..=Repair::ALL.len());
    let adv = prop_oneof![Just(Adv::Auto), (2_u32..500).prop_map(Adv::Segments)];
    let backoff = prop::sample::select(vec![Backoff::Constant, Backoff::Delay]);
    (with_slow_starts(algorithms), repairs, adv, backoff).prop_map(
        |(config, repairs, adv, backoff)| {
            let repairs = repairs.into_iter().collect();
            let whitehaul = WhiteHaulConfig { adv, repairs, ..config.whitehaul };
            let edinburgh = EdinburghConfig { adv, backoff, ..config.edinburgh };
            ControllerConfig { whitehaul, edinburgh, ..config }
        },
    )
}

fn siblings() -> impl Strategy<Value = Vec<Sibling>> {
    let one = (1_u64..10_000, prop::option::of(0_u64..1000), any::<u32>()).prop_map(
        |(segments, rtt_ms, loss_gap)| Sibling {
            window_bytes: segments * S,
            in_flight_bytes: 0,
            srtt: rtt_ms.map(ms),
            delivery_rate: Rate::ZERO,
            loss_gap_bytes: loss_gap.into(),
        },
    );
    prop::collection::vec(one, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn windows_stay_sane(config in configs(), ops in ops()) {
        let mut controller = config.build(START);
        let mut world = World::default();
        for op in ops {
            let before = controller.window();
            world.apply(&mut *controller, op, &[]);
            let after = controller.window();
            match op {
                Op::Acknowledge { segments, app_limited, .. } => {
                    let stands = app_limited || world.phase == Phase::FastRecovery;
                    prop_assert!(after >= before, "an acknowledgement takes nothing away");
                    prop_assert!(!stands || after == before, "the window stands still");
                    // A stretched acknowledgement may count for several windows.
                    let most = before + segments.max(before / S) * S;
                    prop_assert!(after <= most, "at most doubled: {before} to {after}");
                }
                Op::Phase(_) => {}
                Op::Loss => {
                    // Rounded to whole bytes.
                    let most = (before * 7 / 10 + 1).max(2 * S);
                    prop_assert!(after <= most);
                }
                Op::Rto(_) => prop_assert_eq!(after, 4 * S),
                Op::Spurious => prop_assert!(after >= before),
            }
            prop_assert!(after >= 2 * S);
            prop_assert!(controller.ssthresh() >= 2 * S);
        }
    }

    /// Whatever the algorithm: at least two segments, no more than was earned, and nothing gained
    /// in recovery or by a window that is not used.
    #[test]
    fn windows_of_all_kinds_stay_sane(config in all_kinds(), ops in ops(), beside in siblings()) {
        let mut controller = config.build(START);
        let mut world = World::default();
        // Fifty segments per window of at least two.
        let mut most = controller.window();
        for op in ops {
            let before = controller.window();
            world.apply(&mut *controller, op, &beside);
            let after = controller.window();
            if let Op::Acknowledge { segments, app_limited, .. } = op {
                most += 50 * segments * S;
                let stands = app_limited || world.phase == Phase::FastRecovery;
                prop_assert!(!stands || after <= before, "the window does not grow");
            }
            if matches!(op, Op::Loss) {
                prop_assert!(after <= before, "a loss adds nothing");
            }
            prop_assert!(after >= 2 * S, "{after}");
            prop_assert!(after <= most, "{after} of {most}");
            prop_assert!(controller.ssthresh() >= 2 * S);
            prop_assert!(controller.in_slow_start() == (after < controller.ssthresh()));
        }
    }
}
