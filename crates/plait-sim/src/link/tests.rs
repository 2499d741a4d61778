use std::sync::Arc;

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use super::*;
use crate::ratio::Ratio;

mod trace;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// 12 Mbit/s: 1500 bytes take exactly one millisecond. 10 ms delay, no jitter, no loss.
fn config() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(12), Duration::from_millis(10))
}

fn drain(link: &mut Link<u32>) -> Vec<(Instant, u32)> {
    let mut out = Vec::new();
    while let Some(now) = link.next_event() {
        while let Some((due, payload)) = link.poll_due(now) {
            assert!(due <= now, "nothing comes out before it is due");
            out.push((due, payload));
        }
    }
    out
}

#[test]
fn packets_are_serialised_then_delayed() {
    let mut link = Link::new(config(), 1);
    for n in 0..3 {
        assert_eq!(link.send(ms(0), 1500, n), Verdict::Accepted);
    }
    assert_eq!(drain(&mut link), [(ms(11), 0), (ms(12), 1), (ms(13), 2)]);
}

#[test]
fn a_late_caller_changes_nothing_but_its_own_lateness() {
    let mut link = Link::new(config(), 1);
    link.send(ms(0), 1500, 0);
    link.send(ms(0), 1500, 1);
    assert_eq!(link.poll_due(ms(50)), Some((ms(11), 0)));
    assert_eq!(link.poll_due(ms(50)), Some((ms(12), 1)));
    assert_eq!(link.poll_due(ms(50)), None);
}

#[test]
fn queue_drops_at_its_tail_and_not_before() {
    let mut link = Link::new(LinkConfig { queue: Room::Bytes(3000), ..config() }, 1);
    let verdicts: Vec<_> = (0..4).map(|n| link.send(ms(0), 1500, n)).collect();
    assert_eq!(verdicts[2], Verdict::Accepted, "one in the transmitter, two wait");
    assert_eq!(verdicts[3], Verdict::QueueFull);
    assert_eq!(link.waiting_bytes(), 3000);
    assert_eq!(link.send(ms(1), 1500, 9), Verdict::Accepted, "one has left");
    assert_eq!(link.counters().dropped_queue_packets, 1);
}

#[test]
fn loss_takes_its_share() {
    let config = LinkConfig { loss: Ratio::from_percent(10).into(), ..config() };
    let mut link = Link::new(config, 5);
    for n in 0..10_000_u32 {
        let now = ms(u64::from(n) * 2);
        link.send(now, 1500, n);
        while link.poll(now).is_some() {}
    }
    drain(&mut link);
    let counters = link.counters();
    assert!((900..1100).contains(&counters.dropped_loss_packets), "{counters:?}");
    assert_eq!(counters.out_packets + counters.dropped_loss_packets, 10_000);
}

#[test]
fn a_cut_link_loses_what_it_sends_and_heals() {
    let mut link = Link::new(config(), 1);
    link.send(ms(0), 1500, 0);
    link.set_cut(ms(5), true);
    link.send(ms(5), 1500, 1);
    link.set_cut(ms(7), false);
    link.send(ms(7), 1500, 2);
    assert_eq!(drain(&mut link), [(ms(11), 0), (ms(18), 2)]);
    assert_eq!(link.counters().dropped_cut_packets, 1);
}

#[test]
fn a_shorter_delay_does_not_reorder() {
    let mut link = Link::new(config(), 1);
    link.send(ms(0), 1500, 0);
    let shorter = LinkConfig { delay: Duration::from_millis(1), ..config() };
    link.reconfigure(ms(2), shorter);
    link.send(ms(2), 1500, 1);
    assert_eq!(drain(&mut link), [(ms(11), 0), (ms(11), 1)]);
}

#[test]
fn a_new_rate_holds_for_the_packet_in_the_transmitter() {
    let mut link = Link::new(config(), 1);
    link.reconfigure(ms(0), LinkConfig { rate: Rate::ZERO, ..config() });
    link.send(ms(0), 1500, 0);
    assert_eq!(link.next_event(), None);
    link.reconfigure(ms(3), config());
    assert_eq!(drain(&mut link).len(), 1);
}

#[test]
fn one_seed_one_course() {
    let config = LinkConfig {
        loss: Ratio::from_percent(30).into(),
        jitter: Duration::from_millis(10),
        ..config()
    };
    let run = |seed| {
        let mut link = Link::new(config, seed);
        (0..30).for_each(|n| {
            link.send(ms(u64::from(n) * 20), 1500, n);
        });
        drain(&mut link)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_new_rate_does_not_undo_the_time_before_it() {
    let mut link = Link::new(config(), 1);
    (0..3).for_each(|n| {
        link.send(ms(0), 1500, n);
    });
    link.reconfigure(Instant::from_nanos(500_000), LinkConfig { rate: Rate::ZERO, ..config() });
    link.reconfigure(ms(100), config());
    let half = |ms: u64| Instant::from_nanos(ms * 1_000_000 + 500_000);
    assert_eq!(drain(&mut link), [(half(110), 0), (half(111), 1), (half(112), 2)]);
}

#[test]
fn an_outage_loses_what_leaves_in_it() {
    let mut link = Link::new(config(), 1);
    link.set_outages(ms(0), Outages::new(vec![(ms(2), ms(4)), (ms(6), ms(7))]).unwrap());
    (0..8).for_each(|n| {
        link.send(ms(0), 1500, n);
    });
    // They leave at 1, 2 … 8 ms.
    let out: Vec<_> = drain(&mut link).into_iter().map(|(_, n)| n).collect();
    assert_eq!(out, [0, 3, 4, 6, 7]);
    let counters = link.counters();
    assert_eq!((counters.dropped_outage_packets, counters.dropped_cut_packets), (3, 0));
    assert_eq!(counters.dropped_bytes, 4500);
}

#[test]
fn jitter_with_reordering_lets_packets_overtake() {
    let config = LinkConfig {
        jitter: Duration::from_millis(20),
        reorder: true,
        queue: Room::Bytes(u64::MAX),
        ..config()
    };
    let mut link = Link::new(config, 9);
    (0..2000).for_each(|n| {
        link.send(ms(0), 1500, n);
    });
    let out = drain(&mut link);
    assert_eq!(out.len(), 2000);
    assert!(out.is_sorted_by_key(|(due, _)| *due), "they come out as they are due");
    let late = out.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
    assert!((700..1100).contains(&late), "nearly half of the pairs change places: {late}");
    let extra = |(due, n): &(Instant, u32)| (*due - ms(u64::from(*n) + 11)).as_micros();
    let mean = out.iter().map(extra).sum::<u128>() / 2000;
    assert!((9_500..10_500).contains(&mean), "uniform up to 20 ms: {mean} us on average");
    assert!(out.iter().all(|packet| extra(packet) <= 20_000));
}

#[test]
fn order_is_kept_again_when_reordering_ends() {
    let wild = LinkConfig { jitter: Duration::from_millis(500), reorder: true, ..config() };
    let mut link = Link::new(wild, 9);
    (0..5).for_each(|n| {
        link.send(ms(0), 1500, n);
    });
    link.reconfigure(ms(20), config());
    link.send(ms(20), 1500, 5);
    assert_eq!(drain(&mut link).last().map(|(_, n)| *n), Some(5));
}

#[test]
fn codel_drops_are_counted_apart() {
    let config =
        LinkConfig { discipline: Discipline::CoDel, queue: Room::Bytes(150_000), ..config() };
    let mut link = Link::new(config, 1);
    for n in 0..1000 {
        link.send(ms(u64::from(n)), 1500, n);
        link.send(ms(u64::from(n)), 1500, n);
    }
    let out = drain(&mut link).len() as u64;
    let counters = link.counters();
    assert!(counters.dropped_codel_packets > 10, "{counters:?}");
    assert!(counters.dropped_queue_packets > 10, "a source that does not slow down: {counters:?}");
    assert_eq!(counters.dropped_packets() + out, 2000);
}
