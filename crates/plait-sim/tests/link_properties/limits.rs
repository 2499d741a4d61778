//! Buckets, rooms, steps of the rate, grants and frames: what each of them promises.

use super::*;

const FULL: u64 = 1_500;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at_ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A link without delay, with room for everything.
fn wide(rate: Rate) -> LinkConfig {
    LinkConfig { queue: Room::Bytes(u64::MAX / 2), ..LinkConfig::new(rate, Duration::ZERO) }
}

/// What leaves a link that always has packets of this length to send: when, and how many bytes.
fn saturated(mut link: Link<usize>, bytes: u64, until: Instant) -> Vec<(Instant, u64)> {
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        while link.waiting_bytes() < 400 * bytes {
            link.send(now, bytes, 0);
        }
        let Some(next) = link.next_event().filter(|next| *next < until) else { return out };
        now = now.max(next);
        while let Some((due, _)) = link.poll_due(now) {
            out.push((due, bytes));
        }
    }
}

/// The most that passes in any span beyond what the rate gives in it, in bytes.
fn largest_burst(passed: &[(Instant, u64)], rate: Rate) -> u64 {
    let mut largest = 0;
    for first in 0..passed.len() {
        let mut bytes = 0;
        for (at, length) in &passed[first..] {
            bytes += length;
            // What comes within a nanosecond is rounding's.
            let gained = rate.bytes_in(*at - passed[first].0 + Duration::from_nanos(1));
            largest = largest.max(bytes.saturating_sub(gained + 1));
        }
    }
    largest
}

proptest! {
    #[test]
    fn a_policer_lets_in_what_its_bucket_gives_and_no_less(
        bucket in buckets(), arrivals in arrivals(), seed: u64,
    ) {
        let config = LinkConfig { policer: Some(bucket), ..wide(Rate::from_mbit(1000)) };
        let mut link = Link::new(config, seed);
        let (mut now, mut passed) = (Instant::ZERO, Vec::new());
        for (gap, bytes) in arrivals {
            now += Duration::from_nanos(gap);
            passed.push((now, bytes));
            let taken = link.send(now, bytes, 0) == Verdict::Accepted;
            let burst = largest_burst(&passed, bucket.rate);
            if taken {
                prop_assert!(burst <= bucket.burst_bytes, "{burst} bytes");
            } else {
                prop_assert!(burst + 3 > bucket.burst_bytes, "dropped although it conforms");
                passed.pop();
            }
        }
        prop_assert_eq!(link.counters().dropped_queue_packets, 0);
    }

    #[test]
    fn a_shaper_lets_out_what_its_bucket_gives_and_loses_nothing(
        bucket in buckets(), arrivals in arrivals(), seed: u64,
    ) {
        let rate = Rate::from_mbit(200);
        let made = Made {
            config: LinkConfig { shaper: Some(bucket), ..wide(rate) },
            service: None,
            outages: Outages::default(),
        };
        let (link, out) = run(&made, &arrivals, seed, true);
        prop_assert_eq!(link.counters().dropped_packets(), 0);
        // A packet takes its tokens when its first byte leaves.
        let begun: Vec<_> = out
            .iter()
            .map(|packet| (packet.due.saturating_sub(rate.time_for(packet.bytes)), packet.bytes))
            .collect();
        let burst = largest_burst(&begun, bucket.rate);
        prop_assert!(burst <= bucket.burst_bytes, "{burst} bytes");
        // It never stands still: what came in an idle moment and was sent with tokens left over is
        // as early as without a shaper.
        let all: u64 = out.iter().map(|packet| packet.bytes).sum();
        if all <= bucket.burst_bytes {
            let (_, free) = run(&made.clone().without_limits(), &arrivals, seed, true);
            let dues = |out: &[Out]| out.iter().map(|packet| packet.due).collect::<Vec<_>>();
            prop_assert_eq!(dues(&out), dues(&free));
        }
    }

    #[test]
    fn grants_keep_the_mean_rate_and_leave_gaps(
        grants in grants(), mbit in 1_u64..100, seed: u64,
    ) {
        let rate = Rate::from_mbit(mbit);
        let config = LinkConfig { access: Access::Granted(grants), ..wide(rate) };
        let end = at_ms(10_000);
        let out = saturated(Link::new(config, seed), FULL, end);
        let bytes: u64 = out.iter().map(|(_, bytes)| bytes).sum();
        // A cycle at either end, and the packet under way.
        let cycle = grants.gap_max + grants.gap_max * 100 / (grants.peak_percent - 100);
        let slack = rate.bytes_in(2 * cycle) + FULL;
        let expected = rate.bytes_in(end - Instant::ZERO);
        prop_assert!(bytes.abs_diff(expected) <= slack, "{bytes} of {expected}, {slack}");
        let peak = Rate::from_bits_per_second(
            rate.bits_per_second() * u64::from(grants.peak_percent) / 100,
        );
        let alone = peak.time_for(FULL);
        for pair in out.windows(2) {
            let gap = pair[1].0 - pair[0].0;
            // Either back to back, or there is a gap between them, or several for a long packet.
            let within = gap <= alone + Duration::from_nanos(2);
            prop_assert!(within || gap >= grants.gap_min, "{gap:?}");
        }
    }

    #[test]
    fn frames_hold_what_they_may_and_the_air_is_won_before_each(
        aggregation in aggregations(), mbit in 1_u64..200, bytes in 100_u64..1_600, seed: u64,
    ) {
        let rate = Rate::from_mbit(mbit);
        let config = LinkConfig { access: Access::Contended(aggregation), ..wide(rate) };
        let out = saturated(Link::new(config, seed), bytes, at_ms(2_000));
        let fits = |packets: u64| {
            packets <= aggregation.packets_max.into()
                && rate.time_for(packets * bytes) <= aggregation.air_max
        };
        let mut frames: Vec<(Instant, u64)> = Vec::new();
        for (at, _) in out {
            match frames.last_mut() {
                Some((last, packets)) if *last == at => *packets += 1,
                _ => frames.push((at, 1)),
            }
        }
        for pair in frames.windows(2) {
            let packets = pair[1].1;
            prop_assert!(packets == 1 || fits(packets), "{packets} packets");
            prop_assert!(!fits(packets + 1), "{packets} packets and more waited");
            let won = (pair[1].0 - pair[0].0).saturating_sub(rate.time_for(packets * bytes));
            let (low, high) = (aggregation.access_min, aggregation.access_max);
            prop_assert!(low <= won && won <= high + Duration::from_nanos(1), "{won:?}");
        }
    }

    #[test]
    fn a_queue_in_packets_counts_packets(
        room in 0_u64..50, lengths in prop::collection::vec(40_u64..1_600, 1..100),
    ) {
        let config = LinkConfig { queue: Room::Packets(room), ..wide(Rate::from_mbit(10)) };
        let mut link = Link::new(config, 1);
        let verdicts: Vec<_> =
            lengths.iter().map(|bytes| link.send(Instant::ZERO, *bytes, 0)).collect();
        let taken = verdicts.iter().filter(|verdict| **verdict == Verdict::Accepted).count();
        prop_assert_eq!(taken as u64, (room + 1).min(lengths.len() as u64));
    }

    #[test]
    fn a_queue_in_time_changes_with_the_rate_and_one_in_bytes_does_not(
        first in 1_u64..100, second in 1_u64..100, room_ms in 0_u64..200,
    ) {
        let (first, second) = (Rate::from_mbit(first), Rate::from_mbit(second));
        let steps = vec![(ms(100), second)];
        let steps = RateSteps::new(Instant::ZERO, first, steps, None).expect("one step");
        let service = Service::Steps(Arc::new(steps));
        let fixed = Room::Bytes(first.bytes_in(ms(room_ms)));
        for (queue, at, rate) in [
            (Room::Time(ms(room_ms)), at_ms(0), first),
            (Room::Time(ms(room_ms)), at_ms(100), second),
            (fixed, at_ms(0), first),
            (fixed, at_ms(100), first),
        ] {
            let mut link = Link::new(LinkConfig { queue, ..wide(first) }, 1);
            link.set_service(Instant::ZERO, service.clone());
            while link.send(at, 100, 0) == Verdict::Accepted {}
            prop_assert_eq!(link.waiting_bytes(), rate.bytes_in(ms(room_ms)) / 100 * 100);
        }
    }

    #[test]
    fn each_step_of_the_rate_sends_its_share(steps in rate_steps(), seed: u64) {
        let mut link = Link::new(wide(Rate::ZERO), seed);
        link.set_service(Instant::ZERO, Service::Steps(Arc::new(steps.clone())));
        let out = saturated(link, 100, at_ms(500));
        let (mut at, end) = (Instant::ZERO, at_ms(500));
        let mut expected = 0;
        while at < end {
            let (rate, next) = steps.at(at);
            let until = next.unwrap_or(end).min(end);
            expected += rate.bytes_in(until - at);
            at = until;
            let passed: u64 = out.iter().filter(|(due, _)| *due <= at).map(|(_, b)| b).sum();
            // A packet under way, and rounding: a byte a step, a nanosecond a packet.
            let slack = 100 + 100 + expected / 100;
            prop_assert!(passed <= expected && passed + slack >= expected, "{passed} {expected}");
        }
    }
}

/// A bucket fills while nothing is sent, and only so far.
#[test]
fn a_shaper_sends_its_burst_and_then_its_rate() {
    let bucket = Bucket { rate: Rate::from_mbit(12), burst_bytes: 15_000 };
    let config = LinkConfig { shaper: Some(bucket), ..wide(Rate::from_mbit(1200)) };
    let mut link = Link::new(config, 1);
    let mut dues = Vec::new();
    for start in [0, 1000] {
        (0..30).for_each(|n| {
            link.send(at_ms(start), FULL, n);
        });
        while let Some(next) = link.next_event() {
            while let Some((due, _)) = link.poll_due(next) {
                dues.push((due - at_ms(start)).as_micros());
            }
        }
    }
    // Ten at a hundredth of a millisecond each, then one each millisecond.
    let expected: Vec<u128> =
        (0..30).map(|n| if n < 10 { 10 * n + 10 } else { 1000 * (n - 9) + 10 }).collect();
    assert_eq!(dues[..30], expected);
    assert_eq!(dues[30..], expected);
}

/// What is longer than the bucket would never pass.
#[test]
fn a_packet_longer_than_the_shapers_bucket_is_dropped_at_the_door() {
    let bucket = Bucket { rate: Rate::from_mbit(12), burst_bytes: 1_000 };
    let mut link = Link::new(LinkConfig { shaper: Some(bucket), ..wide(Rate::from_mbit(100)) }, 1);
    assert_eq!(link.send(Instant::ZERO, 1_001, 0), Verdict::Policed);
    assert_eq!(link.send(Instant::ZERO, 1_000, 0), Verdict::Accepted);
    assert_eq!(link.counters().dropped_policer_packets, 1);
}

/// A change in mid-flight keeps what has left, and the tokens that were taken.
#[test]
fn new_limits_hold_for_what_has_not_left() {
    let slow = LinkConfig {
        shaper: Some(Bucket { rate: Rate::from_mbit(12), burst_bytes: FULL }),
        ..wide(Rate::from_mbit(12))
    };
    let mut link = Link::new(slow, 1);
    (0..3).for_each(|n| {
        link.send(Instant::ZERO, FULL, n);
    });
    let due = |link: &mut Link<usize>| {
        let next = link.next_event()?;
        link.poll_due(next).map(|(due, _)| (due - Instant::ZERO).as_micros())
    };
    assert_eq!(due(&mut link), Some(1000));
    // The second waits for no token now: it has half a millisecond left, and then half of the rate.
    let half = Instant::from_nanos(1_500_000);
    link.reconfigure(half, LinkConfig { shaper: None, rate: Rate::from_mbit(6), ..slow });
    assert_eq!((due(&mut link), due(&mut link)), (Some(2500), Some(4500)));
}

/// Tokens are taken once, when the first byte leaves, whatever changes then.
#[test]
fn a_packet_under_way_takes_no_tokens_again() {
    let bucket = Bucket { rate: Rate::from_mbit(6), burst_bytes: FULL };
    let before = LinkConfig { shaper: Some(bucket), ..wide(Rate::from_mbit(12)) };
    let mut link = Link::new(before, 1);
    (0..2).for_each(|n| {
        link.send(Instant::ZERO, FULL, n);
    });
    link.reconfigure(
        Instant::from_nanos(500_000),
        LinkConfig { rate: Rate::from_mbit(24), ..before },
    );
    let mut dues = Vec::new();
    while let Some(next) = link.next_event() {
        dues.extend(link.poll_due(next).map(|(due, _)| (due - Instant::ZERO).as_micros()));
    }
    // Half of the first is left, at twice the rate. The second's tokens are there after 2 ms.
    assert_eq!(dues, [750, 2500]);
}
