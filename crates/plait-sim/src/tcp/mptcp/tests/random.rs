//! Properties of every connection, however bad its links, as long as the first one lives.

use plait_proto::congestion::{Algorithm, ControllerConfig};
use proptest::prelude::*;

use super::*;
use crate::tcp::Recovery;

/// More than the worst of the links below needs, with timeouts backed off.
const DEADLINE: Instant = Instant::from_millis(40_000_000);
const LINKS_MAX: usize = 3;

fn links() -> impl Strategy<Value = Vec<(ChannelConfig, Option<u64>)>> {
    let hostile = (0_u32..150_000, 0_u32..50_000, 0_u32..300_000, 0_u64..200);
    let shape = (1_u64..100, 1_u64..200, 3_000_u64..200_000);
    let death = prop::option::weighted(0.3, 0_u64..3000);
    let link = (shape, hostile, death).prop_map(
        |((mbit, rtt_ms, queue_bytes), (loss, twice, late, late_ms), dead_from_ms)| {
            let channel = ChannelConfig {
                queue_bytes,
                loss: Ratio::from_ppm(loss),
                duplication: Ratio::from_ppm(twice),
                lateness: Ratio::from_ppm(late),
                late_by: Duration::from_millis(late_ms),
                ..clean(mbit, rtt_ms)
            };
            (channel, dead_from_ms)
        },
    );
    prop::collection::vec(link, 1..=LINKS_MAX)
}

#[derive(Clone, Debug)]
struct Settings {
    scheduler: SchedulerName,
    algorithm: Algorithm,
    recovery: Recovery,
    bytes: u64,
    window_bytes_max: u64,
    send_buffer_bytes: Option<u64>,
    penalise: bool,
    backup: [bool; LINKS_MAX],
}

fn settings() -> impl Strategy<Value = Settings> {
    let recoveries = [Recovery::RackTlp, Recovery::NewReno, Recovery::ALL[0]];
    let names = (
        prop::sample::select(SchedulerName::ALL.to_vec()),
        prop::sample::select(Algorithm::ALL.to_vec()),
        prop::sample::select(recoveries.to_vec()),
    );
    let buffers = (0_u64..100_000, prop::option::of(4096_u64..100_000));
    (names, 0_u64..400_000, buffers, any::<bool>(), any::<[bool; LINKS_MAX]>()).prop_map(
        |((scheduler, algorithm, recovery), bytes, buffers, penalise, backup)| Settings {
            scheduler,
            algorithm,
            recovery,
            bytes,
            window_bytes_max: buffers.0,
            send_buffer_bytes: buffers.1,
            penalise,
            backup,
        },
    )
}

fn world(links: &[(ChannelConfig, Option<u64>)], settings: &Settings) -> World {
    let mut config = config(settings.scheduler, links.len(), Source::Bytes(settings.bytes));
    for (subflow, is_backup) in config.subflows.iter_mut().zip(settings.backup) {
        subflow.is_backup = is_backup;
    }
    config.sender.controller =
        ControllerConfig { fixed_window_bytes: 30_000, ..settings.algorithm.into() };
    config.sender.recovery = settings.recovery;
    config.receiver.window_bytes_max = settings.window_bytes_max;
    config.send_buffer_bytes = settings.send_buffer_bytes;
    config.penalise = settings.penalise;
    let channels: Vec<ChannelConfig> = links.iter().map(|(link, _)| *link).collect();
    let mut world = World::new(config, &channels);
    for (dead, (_, from_ms)) in world.dead_from.iter_mut().zip(links).skip(1) {
        *dead = from_ms.map(Instant::from_millis);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    })]

    /// The world checks meanwhile that every byte is delivered once and in order, and that the
    /// window is never overrun.
    #[test]
    fn everything_arrives_once_in_order(links in links(), settings in settings()) {
        let mut world = world(&links, &settings);
        world.run_until(DEADLINE);
        prop_assert!(world.connection.is_finished(), "unfinished: {:?}", world.connection);
        prop_assert_eq!(world.delivered_to, settings.bytes);
        prop_assert_eq!(world.connection.counters().acked_bytes, settings.bytes);
        prop_assert_eq!(world.connection.poll_timeout(), None);
    }

    /// Only a timeout may make a backup carry data while others are there.
    #[test]
    fn a_backup_is_silent_while_the_others_live(
        links in prop::collection::vec((1_u64..50, 1_u64..100), 2..=LINKS_MAX),
        settings in settings(),
    ) {
        let links: Vec<_> = links.into_iter().map(|(mbit, rtt)| (clean(mbit, rtt), None)).collect();
        let mut backup = settings.backup;
        backup[0] = false;
        let mut world = world(&links, &Settings { backup, ..settings });
        world.run_until(DEADLINE);
        let statuses = || (0..links.len()).map(|at| world.connection.status(at));
        if statuses().all(|status| status.counters.rtos == 0) {
            let carried = statuses().zip(backup).filter(|(_, is_backup)| *is_backup);
            prop_assert_eq!(carried.map(|(status, _)| status.throughput_bytes).sum::<u64>(), 0);
        }
    }

    #[test]
    fn the_same_run_twice_is_the_same(links in links(), settings in settings()) {
        let run = || {
            let mut world = world(&links, &settings);
            world.run_until(DEADLINE);
            (world.now, world.connection.counters())
        };
        prop_assert_eq!(run(), run());
    }
}

/// Karn: its handshake gives no round-trip time, and so no rate to judge it by.
#[test]
fn regression_a_subflow_whose_syn_was_lost_is_given_data() {
    let channel = |mbit, delay_us: u64, queue_bytes, loss, late, late_ms| ChannelConfig {
        queue_bytes,
        loss: Ratio::from_ppm(loss),
        duplication: Ratio::ZERO,
        lateness: Ratio::from_ppm(late),
        late_by: Duration::from_millis(late_ms),
        delay: Duration::from_micros(delay_us),
        ..clean(mbit, 1)
    };
    let links = vec![
        (channel(1, 500, 4500, 0, 0, 0), None),
        (channel(1, 1000, 3000, 113_451, 72_867, 10), None),
    ];
    let settings = Settings {
        scheduler: SchedulerName::ShortestFlush,
        algorithm: Algorithm::CubicLinux,
        recovery: Recovery::RackTlp,
        bytes: 127_459,
        window_bytes_max: 9968,
        send_buffer_bytes: None,
        penalise: false,
        backup: [true, false, false],
    };
    let mut world = world(&links, &settings);
    world.run_until(DEADLINE);
    assert!(world.connection.is_finished());
}
