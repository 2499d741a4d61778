//! Throughput of the connection on single links, as a table. It documents behaviour; it is not a
//! target.

use core::fmt::Write;

use plait_proto::congestion::{Algorithm, ControllerConfig, Repair};

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

/// A queue of one bandwidth-delay product.
fn plain(algorithm: Algorithm) -> (u64, SenderCounters) {
    let config = SenderConfig { controller: algorithm.into(), ..SenderConfig::default() };
    let queue_bytes = Rate::from_mbit(50).bytes_in(Duration::from_millis(20));
    measure(config, ChannelConfig { queue_bytes, ..clean(50, 20) })
}

#[test]
fn every_controller_fills_a_plain_link() {
    for algorithm in Algorithm::ALL {
        let (kbit, counters) = plain(algorithm);
        assert!(kbit > 40_000, "{algorithm}: {kbit} kbit/s of 50000, {counters:?}");
    }
}

/// The queue of this link holds 150 ms, so that the window once finds more than 50 ms in it.
#[test]
fn whitehaul_stays_at_a_hundred_packets_once_there_was_a_queue() {
    let rate_of = |repairs: &[Repair]| {
        let mut controller = ControllerConfig::from(Algorithm::WhiteHaul);
        controller.whitehaul.repairs = repairs.iter().copied().collect();
        let config = SenderConfig { controller, ..SenderConfig::default() };
        let queue_bytes = Rate::from_mbit(50).bytes_in(Duration::from_millis(150));
        let link = ChannelConfig { queue_bytes, ..clean(50, 50) };
        let mut world =
            World::new(config, link, ChannelConfig { rate: Rate::from_mbit(1000), ..link });
        world.run_until(Instant::from_millis(40_000));
        let before = world.receiver.counters().goodput_bytes;
        world.run_until(Instant::from_millis(50_000));
        let bytes = world.receiver.counters().goodput_bytes - before;
        Rate::from_bytes_over(bytes, Duration::from_secs(10)).bits_per_second() / 1000
    };
    // A hundred packets of 1448 bytes in 50 ms are 23.2 Mbit/s.
    let published = rate_of(&[]);
    assert!((22_500..=23_500).contains(&published), "{published} kbit/s");
    let repaired = rate_of(&[Repair::Latch, Repair::Adv]);
    assert!(repaired > 40_000, "{repaired} kbit/s");
}

#[test]
fn a_coupled_subflow_grows_less_beside_another() {
    let goodput = |algorithm: Algorithm, is_alone: bool| {
        let config = SenderConfig { controller: algorithm.into(), ..SenderConfig::default() };
        let link = ChannelConfig { loss: Ratio::from_ppm(2_000), ..clean(100, 50) };
        let mut world = World::new(config, link, ChannelConfig { loss: Ratio::ZERO, ..link });
        assert_eq!(world.sender.is_coupled(), algorithm != Algorithm::NewReno);
        let end = Instant::from_millis(20_000);
        let mut now = Instant::ZERO;
        while now < end {
            now += Duration::from_millis(10);
            if !is_alone {
                // One that stands as this one does.
                let twin = world.sender.as_sibling();
                world.sender.set_siblings(&[twin]);
            }
            world.run_until(now);
        }
        world.receiver.counters().goodput_bytes
    };
    let reno = goodput(Algorithm::NewReno, true);
    for algorithm in [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia] {
        assert_eq!(goodput(algorithm, true), reno, "{algorithm} alone");
        // A fourth of the growth, and the square root of that in the mean window.
        let beside = goodput(algorithm, false) as f64 / reno as f64;
        assert!((0.4..=0.7).contains(&beside), "{algorithm}: {beside}");
    }
}
