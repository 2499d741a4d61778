//! How each loss recovery behaves on a channel that reorders and loses nothing.

use super::*;

/// One segment in fifty is up to 8 ms late: at 20 Mbit/s it is overtaken by up to 13.
fn reordering_link() -> ChannelConfig {
    ChannelConfig {
        lateness: Ratio::from_percent(2),
        late_by: Duration::from_millis(8),
        queue_bytes: 1_000_000,
        ..ChannelConfig::clean(Rate::from_mbit(20), Duration::from_millis(60))
    }
}

fn run(recovery: Recovery) -> World {
    let source = Source::Bytes(8_000_000);
    let config = SenderConfig { recovery, source, ..SenderConfig::default() };
    let forward = reordering_link();
    let backward = ChannelConfig { lateness: Ratio::ZERO, ..forward };
    let mut world = World::new(config, forward, backward);
    world.run_until(Instant::from_millis(60_000));
    assert!(world.sender.is_finished());
    world
}

#[test]
fn a_fixed_threshold_takes_reordering_for_loss_and_undoes_it_each_time() {
    let counters = run(Recovery::ALL[0]).sender.counters();
    assert!(counters.fast_recoveries > 20, "{counters:?}");
    assert!(counters.spurious_undos > counters.fast_recoveries / 2, "{counters:?}");
}

#[test]
fn an_adaptive_threshold_learns() {
    let world = run(Recovery::ALL[1]);
    let counters = world.sender.counters();
    assert!(counters.fast_recoveries < 10, "{counters:?}");
    let threshold = world.sender.dup_threshold().unwrap();
    assert!((8..40).contains(&threshold), "{threshold}");
}

#[test]
fn rack_waits_a_quarter_of_the_round_trip() {
    let counters = run(Recovery::RackTlp).sender.counters();
    assert!(counters.fast_recoveries < 5, "{counters:?}");
}

#[test]
fn quic_takes_reordering_for_loss_and_never_takes_it_back() {
    let counters = run(Recovery::Quic).sender.counters();
    assert!(counters.fast_recoveries > 20, "{counters:?}");
    assert_eq!(counters.spurious_undos, 0, "{counters:?}");
}
