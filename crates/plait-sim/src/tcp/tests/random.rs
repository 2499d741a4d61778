//! Properties of every connection, however bad the channel.

use plait_proto::congestion::{Algorithm, ControllerConfig, SlowStart};
use proptest::prelude::*;

use super::*;

/// More than the worst of the channels below needs: a timeout backed off to 120 s for each of 277
/// segments.
const DEADLINE: Instant = Instant::from_millis(40_000_000);

fn channels() -> impl Strategy<Value = ChannelConfig> {
    let hostile = (0_u32..150_000, 0_u32..100_000, 0_u32..500_000, 0_u64..200);
    let shape = (1_u64..100, 1_u64..200, 3_000_u64..200_000);
    (shape, hostile).prop_map(|((mbit, rtt_ms, queue_bytes), (loss, twice, late, late_ms))| {
        let rtt = Duration::from_millis(rtt_ms);
        ChannelConfig {
            queue_bytes,
            loss: Ratio::from_ppm(loss),
            duplication: Ratio::from_ppm(twice),
            lateness: Ratio::from_ppm(late),
            late_by: Duration::from_millis(late_ms),
            ..ChannelConfig::clean(Rate::from_mbit(mbit), rtt)
        }
    })
}

fn controllers() -> impl Strategy<Value = ControllerConfig> {
    let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
    let slow_start = prop::option::of(prop::sample::select(SlowStart::ALL.to_vec()));
    (algorithm, slow_start).prop_map(|(algorithm, slow_start)| ControllerConfig {
        algorithm,
        slow_start,
        fixed_window_bytes: 30_000,
        ..ControllerConfig::default()
    })
}

fn senders() -> impl Strategy<Value = SenderConfig> {
    let recovery = prop::sample::select(Recovery::ALL.to_vec());
    let pacing = prop::sample::select(vec![Pacing::Controller, Pacing::Always]);
    (0_u64..400_000, controllers(), recovery, pacing).prop_map(
        |(bytes, controller, recovery, pacing)| SenderConfig {
            controller,
            recovery,
            pacing,
            source: Source::Bytes(bytes),
            ..SenderConfig::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    })]

    /// The world checks meanwhile that every byte is delivered once, in order, and only after it
    /// arrived.
    #[test]
    fn everything_arrives_once_in_order(
        config in senders(),
        forward in channels(),
        backward in channels(),
        window_bytes_max in 0_u64..100_000,
    ) {
        let mut world = World::new(config, forward, backward);
        let receiver = ReceiverConfig { window_bytes_max, ..ReceiverConfig::default() };
        world.receiver = TcpReceiver::new(receiver);
        world.run_until(DEADLINE);
        prop_assert!(world.sender.is_finished(), "unfinished: {:?}", world.sender);
        let Source::Bytes(bytes) = config.source else { unreachable!("all sources are finite") };
        prop_assert_eq!(world.delivered_to, bytes);
        let (sent, got) = (world.sender.counters(), world.receiver.counters());
        prop_assert_eq!(sent.acked_bytes, bytes);
        prop_assert_eq!(got.goodput_bytes, bytes);
        prop_assert_eq!(world.sender.in_flight_bytes(), 0);
        prop_assert_eq!(sent.segments_sent - sent.retransmits, bytes.div_ceil(1448));
    }

    #[test]
    fn the_same_run_twice_is_the_same(
        config in senders(),
        forward in channels(),
        backward in channels(),
    ) {
        let run = || {
            let mut world = World::new(config, forward, backward);
            world.run_until(DEADLINE);
            (world.now, world.sender.counters(), world.receiver.counters())
        };
        prop_assert_eq!(run(), run());
    }
}
