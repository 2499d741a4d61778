//! What holds for every link, whatever is sent through it and however it is polled.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;
use plait_sim::link::{Link, LinkConfig, Verdict};
use plait_sim::ratio::Ratio;
use proptest::prelude::*;

/// One packet: time since the packet before it, and its length.
type Arrival = (u64, u64);

#[derive(Debug)]
struct Out {
    number: usize,
    sent: Instant,
    due: Instant,
    bytes: u64,
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    (1_u64..200, 0_u64..50_000, 0_u64..30_000, 0_u32..200_000, 0_u64..100_000).prop_map(
        |(mbit, delay_us, jitter_us, loss_ppm, queue_bytes)| LinkConfig {
            rate: Rate::from_mbit(mbit),
            delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            loss: Ratio::from_ppm(loss_ppm),
            queue_bytes,
        },
    )
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    prop::collection::vec((0_u64..2_000_000, 40_u64..1_600), 1..300)
}

/// Sends all, polling after each packet when `eager`, and else only at the end. Checks the queue's
/// bound on the way.
fn run(
    config: LinkConfig,
    arrivals: &[Arrival],
    seed: u64,
    eager: bool,
) -> (Link<usize>, Vec<Out>) {
    let mut link = Link::new(config, seed);
    let mut now = Instant::ZERO;
    let mut sent = Vec::new();
    let mut out = Vec::new();
    for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
        now += Duration::from_nanos(gap);
        let before = link.waiting_bytes();
        let verdict = link.send(now, bytes, number);
        sent.push((now, bytes));
        assert!(link.waiting_bytes() <= config.queue_bytes, "the queue is bounded");
        if verdict == Verdict::QueueFull {
            assert!(before + bytes > config.queue_bytes, "dropped although it fitted");
        }
        while let Some((due, number)) = eager.then(|| link.poll_due(now)).flatten() {
            out.push(Out { number, sent: sent[number].0, due, bytes: sent[number].1 });
        }
    }
    while let Some(event) = link.next_event() {
        now = now.max(event);
        while let Some((due, number)) = link.poll_due(now) {
            out.push(Out { number, sent: sent[number].0, due, bytes: sent[number].1 });
        }
    }
    (link, out)
}

proptest! {
    #[test]
    fn packets_are_conserved_and_keep_their_order(
        config in configs(), arrivals in arrivals(), seed: u64, eager: bool,
    ) {
        let (link, out) = run(config, &arrivals, seed, eager);
        let counters = link.counters();
        prop_assert_eq!(link.inside_packets(), 0);
        prop_assert_eq!(counters.in_packets, arrivals.len() as u64);
        prop_assert_eq!(counters.out_packets, out.len() as u64);
        prop_assert_eq!(counters.out_bytes, out.iter().map(|o| o.bytes).sum::<u64>());
        prop_assert_eq!(
            counters.in_packets,
            counters.out_packets + counters.dropped_queue_packets + counters.dropped_loss_packets
        );
        prop_assert!(out.is_sorted_by(|a, b| a.number < b.number), "first in, first out");
        prop_assert!(out.is_sorted_by_key(|o| o.due), "release times do not decrease");
    }

    #[test]
    fn delay_lies_between_its_bounds(
        config in configs(), arrivals in arrivals(), seed: u64,
    ) {
        let (_, out) = run(config, &arrivals, seed, true);
        // The queue, a full packet in the transmitter, the packet itself, and a nanosecond of
        // rounding for each packet.
        let slack = Duration::from_nanos(arrivals.len() as u64);
        let queueing = config.rate.time_for(config.queue_bytes + 2 * 1_600) + slack;
        for packet in &out {
            let took = packet.due - packet.sent;
            prop_assert!(took >= config.delay + config.rate.time_for(packet.bytes));
            prop_assert!(took <= config.delay + config.jitter + queueing);
        }
    }

    #[test]
    fn rate_is_never_exceeded(
        config in configs(), arrivals in arrivals(), seed: u64,
    ) {
        let config = LinkConfig { jitter: Duration::ZERO, ..config };
        let (_, out) = run(config, &arrivals, seed, true);
        for first in 0..out.len() {
            let mut bytes = 0;
            for packet in &out[first + 1..] {
                bytes += packet.bytes;
                let time = packet.due - out[first].due;
                prop_assert!(config.rate.time_for(bytes) <= time);
            }
        }
    }

    #[test]
    fn jitter_compresses_by_a_tenth_at_most(
        config in configs(), arrivals in arrivals(), seed: u64,
    ) {
        let (_, out) = run(config, &arrivals, seed, true);
        for pair in out.windows(2) {
            let alone = config.rate.time_for(pair[1].bytes);
            prop_assert!(pair[1].due - pair[0].due + Duration::from_nanos(2) >= alone * 9 / 10);
        }
    }

    #[test]
    fn polling_later_changes_no_due_time(
        config in configs(), arrivals in arrivals(), seed: u64,
    ) {
        let (_, eager) = run(config, &arrivals, seed, true);
        let (_, late) = run(config, &arrivals, seed, false);
        let dues = |out: &[Out]| out.iter().map(|o| (o.number, o.due)).collect::<Vec<_>>();
        prop_assert_eq!(dues(&eager), dues(&late));
    }
}
