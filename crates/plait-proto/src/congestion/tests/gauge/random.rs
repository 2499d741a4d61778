//! What holds whatever happens.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Acknowledge {
        segments: u64,
        lost: u64,
        after_us: u64,
        rtt_us: u64,
        rate_kbit: u64,
        app_limited: bool,
    },
    Idle(u64),
    Loss,
    Rto,
    Spurious,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let acknowledge =
        (1_u64..200, 0_u64..20, 0_u64..50_000, 0_u64..500_000, 0_u64..2_000_000, any::<bool>())
            .prop_map(|(segments, lost, after_us, rtt_us, rate_kbit, app_limited)| {
                Op::Acknowledge { segments, lost, after_us, rtt_us, rate_kbit, app_limited }
            });
    let op = prop_oneof![
        20 => acknowledge,
        1 => (0_u64..100_000).prop_map(Op::Idle),
        1 => Just(Op::Loss),
        1 => Just(Op::Rto),
        1 => Just(Op::Spurious),
    ];
    prop::collection::vec(op, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn windows_and_rates_stay_sane(ops in ops()) {
        let mut controller = Gauge::new(Start::ten_segments(S));
        let mut now = at(0);
        for op in ops {
            match op {
                Op::Acknowledge { segments, lost, after_us, rtt_us, rate_kbit, app_limited } => {
                    let in_flight_bytes = controller.window();
                    let packet = Sent { now, bytes: S, in_flight_bytes };
                    let newest = controller.on_sent(&packet);
                    now += Duration::from_micros(after_us);
                    controller.on_ack(&AckSample {
                        newest,
                        in_order: None,
                        in_flight_bytes,
                        lost_bytes: lost * S,
                        delivery_rate: Rate::from_bits_per_second(rate_kbit * 1000),
                        rate_is_app_limited: app_limited,
                        ..acked(now, segments * S, Duration::from_micros(rtt_us))
                    });
                }
                Op::Idle(millis) => {
                    now += ms(millis);
                    controller.on_sent(&Sent { now, bytes: S, in_flight_bytes: S });
                }
                Op::Loss => controller.on_loss(&loss(20)),
                Op::Rto => controller.on_rto(&rto(20, Episode::New)),
                Op::Spurious => controller.on_spurious(&Spurious { now, window_bytes: 0 }),
            }
            prop_assert!(controller.window() >= S);
            prop_assert!(controller.pacing_rate().is_none_or(|rate| rate > Rate::ZERO));
        }
    }
}
