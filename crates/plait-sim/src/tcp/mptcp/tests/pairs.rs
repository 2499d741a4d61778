//! Pairs of links that show one thing each.

use super::*;

const SECONDS: u64 = 20;

fn run(config: MptcpConfig, links: &[ChannelConfig]) -> World {
    let mut world = World::new(config, links);
    world.run_until(Instant::from_millis(SECONDS * 1000));
    world
}

fn with_window(scheduler: SchedulerName, window_bytes_max: u64) -> MptcpConfig {
    let config = config(scheduler, 2, Source::Endless);
    let receiver = ReceiverConfig { window_bytes_max, ..config.receiver };
    MptcpConfig { receiver, ..config }
}

#[test]
fn two_equal_links_give_their_sum_with_every_scheduler_but_redundant() {
    let links = [clean(20, 30), clean(20, 30)];
    for scheduler in SchedulerName::ALL {
        let world = run(with_window(scheduler, 3 << 20), &links);
        let mbit = world.goodput_mbit();
        // 1424 of 1500 bytes are payload.
        let expected = if scheduler == SchedulerName::Redundant { 17.0..19.1 } else { 34.0..38.1 };
        assert!(expected.contains(&mbit), "{scheduler}: {mbit}");
    }
}

#[test]
fn a_far_thin_link_fills_the_window_and_the_penalty_wins_some_of_it_back() {
    let links = [clean(20, 10), clean(1, 300)];
    let goodput = |penalise| {
        let config = with_window(SchedulerName::MinRtt, 3 << 20);
        let world = run(MptcpConfig { penalise, ..config }, &links);
        (world.goodput_mbit(), world.connection.counters())
    };
    let (blocked, without) = goodput(false);
    let (helped, with) = goodput(true);
    assert!(blocked < 17.0, "{blocked}: the near link alone would carry 19");
    assert!(without.blocked > Duration::from_secs(1), "{:?}", without.blocked);
    assert!(helped > 1.05 * blocked, "{helped} against {blocked}");
    // A timeout reinjects without the switch, too.
    assert!(with.penalties > 0 && with.reinjected_bytes > without.reinjected_bytes, "{with:?}");
    assert_eq!(without.penalties, 0);
}

#[test]
fn a_link_that_dies_takes_nothing_with_it() {
    for scheduler in SchedulerName::ALL {
        for dead in [0, 1] {
            let bytes = 20_000_000;
            let config = config(scheduler, 2, Source::Bytes(bytes));
            let mut world = World::new(config, &[clean(20, 30), clean(20, 60)]);
            world.dead_from[dead] = Some(Instant::from_millis(2000));
            world.run_until(Instant::from_millis(60_000));
            assert!(world.connection.is_finished(), "{scheduler}, link {dead}");
            assert_eq!(world.delivered_to, bytes);
            // At 19 Mbit/s the rest takes 8 s at most.
            let time = world.now.since(Instant::ZERO);
            assert!(time < Duration::from_secs(14), "{scheduler}, link {dead}: {time:?}");
        }
    }
}

#[test]
fn a_backup_takes_over() {
    for scheduler in SchedulerName::ALL {
        let mut config = config(scheduler, 2, Source::Bytes(10_000_000));
        config.subflows[1].is_backup = true;
        let mut world = World::new(config, &[clean(20, 30), clean(20, 60)]);
        world.dead_from[0] = Some(Instant::from_millis(2000));
        world.run_until(Instant::from_millis(2000));
        assert_eq!(world.throughput(1), 0, "{scheduler}");
        world.run_until(Instant::from_millis(60_000));
        assert!(world.connection.is_finished(), "{scheduler}: {:?}", world.delivered_to);
    }
}

#[test]
fn others_join_after_the_first_and_carry_data_a_round_trip_later() {
    let mut config = config(SchedulerName::MinRtt, 2, Source::Endless);
    config.primary = 1;
    let mut world = World::new(config, &[clean(20, 100), clean(20, 40)]);
    // The first opens after 40 ms and is confirmed at 80; the other's SYN is answered at 180, and
    // its answer acknowledged at 280. Its first data is there 50 ms later.
    world.run_until(Instant::from_millis(325));
    assert!(world.throughput(1) > 0);
    assert_eq!(world.throughput(0), 0);
    world.run_until(Instant::from_millis(340));
    assert!(world.throughput(0) > 0);
}

#[test]
fn all_data_travels_on_each_link_when_it_is_sent_redundantly() {
    let bytes = 3_000_000;
    let config = config(SchedulerName::Redundant, 2, Source::Bytes(bytes));
    let mut world = World::new(config, &[clean(20, 30), clean(20, 30)]);
    world.run_until(Instant::from_millis(60_000));
    assert_eq!(world.delivered_to, bytes);
    let shares = [world.throughput(0), world.throughput(1)];
    assert!(shares.iter().all(|share| *share > bytes * 9 / 10), "{shares:?}");
}

#[test]
fn what_a_living_subflow_could_not_hand_on_does_not_keep_back_what_a_dead_one_had() {
    // The first loses so much that its timeouts queue data which only the second could carry, and
    // that one dies.
    let lossy = ChannelConfig { loss: Ratio::from_ppm(250_000), ..clean(3, 100) };
    for seed_ms in 0..20 {
        let config = config(SchedulerName::MinRtt, 2, Source::Bytes(300_000));
        let mut world = World::new(config, &[lossy, clean(7, 150)]);
        world.dead_from[1] = Some(Instant::from_millis(700 + 40 * seed_ms));
        world.run_until(Instant::from_millis(2_000_000));
        assert!(world.connection.is_finished(), "{seed_ms}");
    }
}
