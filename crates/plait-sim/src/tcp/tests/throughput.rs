//! Throughput of the connection on single links, as a table. It documents behaviour; it is not a
//! target.

use core::fmt::Write;

use plait_proto::congestion::{Algorithm, ControllerConfig};

use super::*;

const WARM_UP: Instant = Instant::from_millis(2_000);
const END: Instant = Instant::from_millis(12_000);

fn clean(mbit: u64, rtt_ms: u64) -> ChannelConfig {
    ChannelConfig::clean(Rate::from_mbit(mbit), Duration::from_millis(rtt_ms))
}

/// Goodput in kbit/s between the end of the warm-up and the end, and the sender's counters.
fn measure(config: SenderConfig, forward: ChannelConfig) -> (u64, SenderCounters) {
    let backward = ChannelConfig { loss: Ratio::ZERO, rate: Rate::from_mbit(1000), ..forward };
    let mut world = World::new(config, forward, backward);
    world.run_until(WARM_UP);
    let before = world.receiver.counters().goodput_bytes;
    world.run_until(END);
    let bytes = world.receiver.counters().goodput_bytes - before;
    let rate = Rate::from_bytes_over(bytes, END.since(WARM_UP));
    ((rate.bits_per_second() + 500) / 1000, world.sender.counters())
}

#[test]
fn throughput_is_as_recorded() {
    let mut table = String::from(
        "controller  recovery       Mbit/s RTT ms loss ppm |   \
         kbit/s  resent recoveries rtos undone\n",
    );
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        for recovery in Recovery::ALL {
            for (mbit, rtt_ms) in [(10, 50), (50, 10), (50, 50), (100, 50), (100, 200)] {
                for loss_ppm in [0, 5_000] {
                    let controller = ControllerConfig::from(algorithm);
                    let config = SenderConfig { controller, recovery, ..SenderConfig::default() };
                    let loss = Ratio::from_ppm(loss_ppm);
                    let link = ChannelConfig { loss, ..clean(mbit, rtt_ms) };
                    let (kbit, counters) = measure(config, link);
                    writeln!(
                        table,
                        "{algorithm:11} {recovery:14} {mbit:6} {rtt_ms:6} {loss_ppm:8} | \
                         {kbit:8} {:7} {:10} {:4} {:6}",
                        counters.retransmits,
                        counters.fast_recoveries,
                        counters.rtos,
                        counters.spurious_undos
                    )
                    .unwrap();
                }
            }
        }
    }
    let recorded = include_str!("throughput.txt");
    assert!(table == recorded, "the table is now\n{table}");
}

#[test]
fn cubic_fills_a_clean_link() {
    let (kbit, counters) = measure(SenderConfig::default(), clean(50, 20));
    assert!(kbit > 46_500, "{kbit} kbit/s of 50000");
    assert_eq!(counters.rtos, 0);
}

#[test]
fn a_paced_sender_fills_a_clean_link() {
    let config = SenderConfig { pacing: Pacing::Always, ..SenderConfig::default() };
    let (kbit, _) = measure(config, clean(50, 20));
    assert!(kbit > 46_500, "{kbit} kbit/s of 50000");
}

#[test]
fn pacing_spares_a_short_queue_the_initial_burst() {
    let resent = |pacing| {
        let source = Source::Bytes(10 * 1448);
        let config = SenderConfig { pacing, source, ..SenderConfig::default() };
        let link = ChannelConfig { queue_bytes: 6 * 1500, ..clean(10, 50) };
        measure(config, link).1.retransmits
    };
    assert_eq!(resent(Pacing::Always), 0);
    assert_eq!(resent(Pacing::Controller), 4, "six of ten fit");
}
