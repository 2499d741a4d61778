//! What holds for every controller, whatever happens.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Op {
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

fn ops() -> impl Strategy<Value = Vec<Op>> {
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

fn configs() -> impl Strategy<Value = ControllerConfig> {
    let algorithm = prop::sample::select(vec![Algorithm::NewReno, Algorithm::Cubic]);
    let slow_start = prop::sample::select(SlowStart::ALL.to_vec()).prop_map(Some);
    (algorithm, slow_start).prop_map(|(algorithm, slow_start)| ControllerConfig {
        algorithm,
        slow_start,
        ..ControllerConfig::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn windows_stay_sane(config in configs(), ops in ops()) {
        let mut controller = config.build(Start::ten_segments(S));
        let (mut now, mut phase) = (at(0), Phase::Open);
        for op in ops {
            let before = controller.window();
            match op {
                Op::Acknowledge { segments, after_ms, rtt_ms, app_limited } => {
                    let newest = controller.on_sent(&sent(segments * S));
                    now += ms(after_ms);
                    let sample = acked(now, segments * S, ms(rtt_ms));
                    controller.on_ack(&AckSample { newest, app_limited, phase, ..sample });
                    let after = controller.window();
                    let stands = app_limited || phase == Phase::FastRecovery;
                    prop_assert!(after >= before, "an acknowledgement takes nothing away");
                    prop_assert!(!stands || after == before, "the window stands still");
                    // A stretched acknowledgement may count for several windows.
                    let most = before + segments.max(before / S) * S;
                    prop_assert!(after <= most, "at most doubled: {before} to {after}");
                }
                Op::Phase(next) => phase = next,
                Op::Loss => {
                    controller.on_loss(&Loss { now, flight_bytes: before });
                    // Rounded to whole bytes.
                    let most = (before * 7 / 10 + 1).max(2 * S);
                    prop_assert!(controller.window() <= most);
                }
                Op::Rto(episode) => {
                    let in_flight_bytes = 3 * S;
                    controller.on_rto(&Rto { now, flight_bytes: before, in_flight_bytes, episode });
                    prop_assert_eq!(controller.window(), 4 * S);
                }
                Op::Spurious => {
                    controller.on_spurious(&Spurious { now });
                    prop_assert!(controller.window() >= before);
                }
            }
            prop_assert!(controller.window() >= 2 * S);
            prop_assert!(controller.ssthresh() >= 2 * S);
        }
    }
}
