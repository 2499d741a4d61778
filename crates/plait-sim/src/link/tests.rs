use super::*;
use crate::ratio::Ratio;

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
    let mut link = Link::new(LinkConfig { queue_bytes: 3000, ..config() }, 1);
    let verdicts: Vec<_> = (0..4).map(|n| link.send(ms(0), 1500, n)).collect();
    assert_eq!(verdicts[2], Verdict::Accepted, "one in the transmitter, two wait");
    assert_eq!(verdicts[3], Verdict::QueueFull);
    assert_eq!(link.waiting_bytes(), 3000);
    assert_eq!(link.send(ms(1), 1500, 9), Verdict::Accepted, "one has left");
    assert_eq!(link.counters().dropped_queue_packets, 1);
}

#[test]
fn loss_takes_its_share() {
    let config = LinkConfig { loss: Ratio::from_percent(10), ..config() };
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
    let config =
        LinkConfig { loss: Ratio::from_percent(30), jitter: Duration::from_millis(10), ..config() };
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
