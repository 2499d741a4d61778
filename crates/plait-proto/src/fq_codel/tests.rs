mod random;

use core::net::IpAddr;

use super::*;
use crate::wire::ecn::Ecn;
use crate::wire::ip::testing::udp_v4;

const PACKET_BYTES: usize = 1000;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn inner(flow: u32) -> Inner {
    Inner {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        protocol: 17,
        ports: flow,
    }
}

/// A packet of a flow with a number in it.
fn packet(flow: u32, number: u32, length: usize) -> Vec<u8> {
    let mut body = vec![0; length - 28];
    body[..4].copy_from_slice(&number.to_be_bytes());
    udp_v4([10, 0, 0, 1], [10, 0, 0, 2], flow, &body)
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[28..32].try_into().expect("packets of these tests have a number"))
}

fn push(queue: &mut FqCodel, now: Instant, flow: u32, number: u32, length: usize) {
    queue.push(now, &inner(flow), &packet(flow, number, length), FlowClass::Bulk);
}

/// Flow and number of the next packet.
fn pop(queue: &mut FqCodel, now: Instant) -> Option<(u32, u32)> {
    let packet = queue.pop(now)?;
    let popped = (packet.inner.ports, number(&packet.bytes));
    queue.recycle(packet.bytes);
    Some(popped)
}

fn pop_all(queue: &mut FqCodel, now: Instant) -> Vec<(u32, u32)> {
    core::iter::from_fn(|| pop(queue, now)).collect()
}

/// A queue without ECN.
fn queue() -> FqCodel {
    FqCodel::new(FqCodelConfig { ecn: false, ..FqCodelConfig::default() }, 1)
}

fn limited(limit_bytes: u64) -> FqCodel {
    FqCodel::new(FqCodelConfig { limit_bytes, ..FqCodelConfig::default() }, 1)
}

#[test]
fn a_packet_comes_out_as_it_went_in() {
    let mut queue = queue();
    let bytes = packet(7, 42, 100);
    queue.push(ms(3), &inner(7), &bytes, FlowClass::Interactive);
    assert_eq!((queue.packets(), queue.bytes(), queue.is_empty()), (1, 100, false));
    let popped = queue.pop(ms(5)).expect("it waits");
    assert_eq!((popped.inner, popped.taken_at), (inner(7), ms(3)));
    assert_eq!((popped.class, popped.bytes), (FlowClass::Interactive, bytes));
    assert_eq!(queue.sojourn(), Duration::from_millis(2));
    assert!(queue.is_empty() && queue.bytes() == 0 && queue.pop(ms(5)).is_none());
}

/// Where little drains, CoDel alone let packets of a flow that heeds nothing wait for 20 s.
#[test]
fn regression_nothing_waits_longer_than_five_seconds() {
    let mut queue = queue();
    let (mut number, mut longest) = (0, Duration::ZERO);
    for at in 0..20_000 {
        // A thousand packets a second come, a hundred leave; every other one is put back first.
        push(&mut queue, ms(at), 1, number, 1200);
        number += 1;
        if at % 10 == 0
            && let Some(packet) = queue.pop(ms(at))
        {
            queue.put_back(packet);
        }
        if at % 10 == 5
            && let Some(packet) = queue.pop(ms(at))
        {
            longest = longest.max(ms(at).since(packet.taken_at));
            queue.recycle(packet.bytes);
        }
    }
    assert!(longest > Duration::from_secs(4), "{longest:?}: the queue stands");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

#[test]
fn flows_take_turns_by_bytes() {
    let mut queue = queue();
    for number in 0..30 {
        push(&mut queue, ms(0), 1, number, 1000);
    }
    for number in 0..90 {
        push(&mut queue, ms(0), 2, number, 250);
    }
    let popped = pop_all(&mut queue, ms(0));
    let bytes = |flow: u32, until: usize| {
        let length = if flow == 1 { 1000i64 } else { 250 };
        popped[..until].iter().filter(|(of, _)| *of == flow).count() as i64 * length
    };
    for until in (0..100).step_by(10) {
        let ahead = bytes(1, until) - bytes(2, until);
        assert!(ahead.abs() <= 2 * 1500, "after {until}: {ahead} bytes ahead");
    }
    assert_eq!(popped.len(), 120);
}

#[test]
fn a_new_flow_passes_a_backlog() {
    let mut queue = queue();
    for number in 0..100 {
        push(&mut queue, ms(0), 1, number, PACKET_BYTES);
    }
    for number in 0..3 {
        assert_eq!(pop(&mut queue, ms(0)), Some((1, number)));
    }
    push(&mut queue, ms(0), 2, 0, 100);
    assert_eq!(pop(&mut queue, ms(0)), Some((2, 0)), "before the backlog");
    assert_eq!(pop(&mut queue, ms(0)), Some((1, 3)), "which goes on then");
}

#[test]
fn coming_anew_is_no_way_to_be_served_first_each_time() {
    let mut queue = queue();
    for number in 0..100 {
        push(&mut queue, ms(0), 1, number, 1500);
    }
    let mut first = 0;
    for number in 0..40 {
        push(&mut queue, ms(0), 2, number, 1500);
        first += u32::from(pop(&mut queue, ms(0)).is_some_and(|(flow, _)| flow == 2));
    }
    assert!((19..=21).contains(&first), "{first} of 40 turns, half is fair");
}

#[test]
fn a_flow_keeps_its_order() {
    let mut queue = queue();
    for number in 0..50 {
        push(&mut queue, ms(0), number % 5, number, 100 + number as usize);
    }
    let popped = pop_all(&mut queue, ms(0));
    for flow in 0..5 {
        let numbers: Vec<_> = popped.iter().filter(|(of, _)| *of == flow).map(|(_, n)| n).collect();
        assert!(numbers.len() == 10 && numbers.is_sorted(), "{numbers:?}");
    }
}

#[test]
fn a_full_queue_drops_half_of_the_fattest_flow_from_its_head() {
    let mut queue = limited(20_000);
    for number in 0..4 {
        push(&mut queue, ms(0), 2, number, PACKET_BYTES);
    }
    for number in 0..16 {
        push(&mut queue, ms(0), 1, number, PACKET_BYTES);
    }
    assert_eq!(queue.counters(), FqCodelCounters::default(), "just full");
    push(&mut queue, ms(0), 2, 4, PACKET_BYTES);
    assert_eq!(queue.counters().dropped_full, 8);
    let popped = pop_all(&mut queue, ms(0));
    let of = |flow: u32| popped.iter().filter(move |(of, _)| *of == flow).map(|(_, n)| *n);
    assert_eq!(of(1).collect::<Vec<_>>(), (8..16).collect::<Vec<_>>());
    assert_eq!(of(2).collect::<Vec<_>>(), (0..5).collect::<Vec<_>>());
}

#[test]
fn a_batch_of_drops_is_bounded() {
    let mut queue = limited(1_000_000);
    for number in 0..1001 {
        push(&mut queue, ms(0), 1, number, PACKET_BYTES);
    }
    assert_eq!(queue.counters().dropped_full, 64);
}

#[test]
fn small_packets_are_limited_by_number() {
    let mut queue = queue();
    for number in 0..QUEUE_PACKETS_MAX as u32 {
        push(&mut queue, ms(0), 1, number, 40);
    }
    assert_eq!((queue.packets(), queue.counters().dropped_full), (QUEUE_PACKETS_MAX, 0));
    push(&mut queue, ms(0), 1, 0, 40);
    assert_eq!((queue.packets(), queue.counters().dropped_full), (QUEUE_PACKETS_MAX - 63, 64));
}

/// Pushes and pops a packet of this kind per millisecond behind 50 ms of backlog.
fn stand(queue: &mut FqCodel, from_ms: u64, millis: u64, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut popped = Vec::new();
    for now in from_ms..from_ms + millis {
        queue.push(ms(now), &inner(1), bytes, FlowClass::Bulk);
        if queue.packets() > 50 {
            popped.extend(queue.pop(ms(now)).map(|packet| packet.bytes));
        }
    }
    popped
}

#[test]
fn a_standing_queue_drops_more_and_more() {
    let mut queue = queue();
    let popped = stand(&mut queue, 0, 1000, &packet(1, 0, PACKET_BYTES));
    let dropped = queue.counters().dropped_codel;
    assert!((15..30).contains(&dropped), "{dropped} in the first second");
    assert_eq!(popped.len() as u64 + dropped, 1000 - queue.packets() as u64);
    assert_eq!((queue.counters().marked, queue.counters().dropped_full), (0, 0));
}

/// Spec E-4.
#[test]
fn packets_that_understand_it_are_marked_instead() {
    let mut bytes = packet(1, 0, PACKET_BYTES);
    Ecn::Ect0.write(&mut bytes);
    let mut queue = FqCodel::new(FqCodelConfig::default(), 1);
    let popped = stand(&mut queue, 0, 1000, &bytes);
    let marked = popped.iter().filter(|bytes| Ecn::of(bytes) == Ecn::Ce).count() as u64;
    let counters = queue.counters();
    assert_eq!(counters, FqCodelCounters { marked, ..FqCodelCounters::default() });
    assert!((15..30).contains(&marked), "{marked} in the first second");
    let mut unmarked = super::FqCodel::new(FqCodelConfig { ecn: false, ..queue.config }, 1);
    stand(&mut unmarked, 0, 1000, &bytes);
    assert!(unmarked.counters().marked == 0 && unmarked.counters().dropped_codel > 0, "if wanted");
}

#[test]
fn a_queue_that_drains_drops_nothing() {
    let mut queue = queue();
    for now in 0..10_000 {
        if now % 100 == 0 {
            for number in 0..80 {
                push(&mut queue, ms(now), 1, number, PACKET_BYTES);
            }
        }
        pop(&mut queue, ms(now));
    }
    assert_eq!(queue.counters(), FqCodelCounters::default());
}

#[test]
fn the_sparse_flow_beside_a_standing_queue_is_left_alone() {
    let mut queue = queue();
    let mut waited = Duration::ZERO;
    for now in 0..2000 {
        push(&mut queue, ms(now), 1, 0, PACKET_BYTES);
        push(&mut queue, ms(now), 1, 0, PACKET_BYTES);
        if now % 20 == 0 {
            push(&mut queue, ms(now), 2, 0, 200);
        }
        if let Some((2, _)) = pop(&mut queue, ms(now)) {
            waited = waited.max(queue.sojourn());
        }
    }
    assert!(waited <= Duration::from_millis(2), "a quantum of another new flow: {waited:?}");
    assert!(queue.counters().dropped_codel > 0, "the other one is not");
}

#[test]
fn target_and_interval_follow_the_round_trip() {
    let mut queue = queue();
    let at = |queue: &mut FqCodel, rtt_ms: u64| {
        queue.set_round_trip(Duration::from_millis(rtt_ms));
        let Parameters { target, interval } = queue.parameters();
        (target.as_millis(), interval.as_millis())
    };
    let now = queue.parameters();
    assert_eq!((now.target.as_millis(), now.interval.as_millis()), (30, 100));
    assert_eq!(at(&mut queue, 100), (40, 100));
    assert_eq!(at(&mut queue, 300), (60, 300), "nobody is to wait longer");
    assert_eq!(at(&mut queue, 20), (30, 100), "not below the configuration's");
    assert_eq!(at(&mut queue, 5000), (60, 1000), "nor without bound");
}

#[test]
fn a_target_is_stretched_up_to_its_bound_and_never_shortened() {
    let after = |times: u32| {
        let mut queue = queue();
        queue.set_round_trip(Duration::from_millis(100));
        queue.stretch_target(|target| target * times / 2);
        let Parameters { target, interval } = queue.parameters();
        (target.as_millis(), interval.as_millis())
    };
    assert_eq!([1, 2, 4, 40].map(after), [(40, 100), (40, 100), (80, 100), (250, 100)]);
}

#[test]
fn nothing_is_dropped_for_having_waited_until_a_rate_is_known() {
    let mut queue = queue();
    let dropped_after = |queue: &mut FqCodel, begins_ms: u64| {
        for number in 0..200 {
            push(queue, Instant::from_millis(begins_ms), 1, number, 1000);
        }
        for at_ms in (begins_ms + 200..begins_ms + 1200).step_by(50) {
            queue.pop(Instant::from_millis(at_ms)).expect("packets wait");
        }
        let dropped = queue.counters().dropped_codel;
        while queue.pop(Instant::from_millis(begins_ms + 1200)).is_some() {}
        dropped
    };
    queue.wait_for_rate();
    assert_eq!(dropped_after(&mut queue, 0), 0);
    queue.set_round_trip(Duration::from_millis(100));
    assert!(dropped_after(&mut queue, 10_000) > 0);
}

#[test]
fn a_packet_put_back_is_the_next_of_its_flow_but_a_new_flow_passes() {
    let mut queue = queue();
    for number in 0..10 {
        push(&mut queue, ms(0), 1, number, PACKET_BYTES);
    }
    for number in 0..2 {
        assert_eq!(pop(&mut queue, ms(0)), Some((1, number)), "no longer new");
    }
    let back = queue.pop(ms(0)).expect("more wait");
    assert_eq!(queue.flow_bytes(), 7000);
    queue.put_back(back);
    assert_eq!((queue.packets(), queue.bytes()), (8, 8000));
    push(&mut queue, ms(0), 2, 0, 100);
    assert_eq!(pop(&mut queue, ms(0)), Some((2, 0)));
    let rest: Vec<_> = pop_all(&mut queue, ms(0)).iter().map(|(_, number)| *number).collect();
    assert_eq!(rest, (2..10).collect::<Vec<_>>());
}

#[test]
fn putting_back_costs_neither_credit_nor_a_second_judgement() {
    let mut queue = queue();
    let mut plain = super::FqCodel::new(queue.config, 1);
    let mut dropped = Vec::new();
    for now in 0..1000 {
        for queue in [&mut queue, &mut plain] {
            push(queue, ms(now), 1, now as u32, PACKET_BYTES);
            push(queue, ms(now), 2, now as u32, PACKET_BYTES);
        }
        if now > 20 {
            for _ in 0..3 {
                let back = queue.pop(ms(now)).expect("a backlog waits");
                queue.put_back(back);
            }
            assert_eq!(pop(&mut queue, ms(now)), pop(&mut plain, ms(now)), "at {now}");
        }
        dropped.push((queue.counters(), plain.counters()));
    }
    assert!(dropped.iter().all(|(a, b)| a == b), "{:?}", dropped.last());
    assert!(queue.counters().dropped_codel > 10);
}

#[test]
fn nothing_is_allocated_once_it_runs() {
    let mut queue = queue();
    let mut buffers = Vec::new();
    for now in 0..2000 {
        push(&mut queue, ms(now), now as u32 % 3, 0, PACKET_BYTES);
        if now < 40 {
            continue;
        }
        let packet = queue.pop(ms(now)).expect("a backlog waits");
        let address = packet.bytes.as_ptr() as usize;
        if now < 200 {
            buffers.push(address);
        } else {
            assert!(buffers.contains(&address), "a new buffer at {now}");
        }
        queue.recycle(packet.bytes);
    }
    assert!(queue.store.slots() <= 41, "{} slots", queue.store.slots());
}

#[test]
fn spare_buffers_are_bounded() {
    let mut queue = queue();
    for _ in 0..5000 {
        queue.recycle(Vec::with_capacity(10));
    }
    assert_eq!(queue.store.spare(), 1024);
}

#[test]
fn drops_are_told_once() {
    let mut queue = limited(2000);
    for number in 0..3 {
        push(&mut queue, ms(0), 1, number, PACKET_BYTES);
    }
    let mut drops = DropCounters::default();
    queue.drain_drops(&mut drops);
    queue.drain_drops(&mut drops);
    assert_eq!((drops.get(DropReason::QueueFull), drops.get(DropReason::QueueDelay)), (2, 0));
    let mut queue = super::tests::queue();
    stand(&mut queue, 0, 200, &packet(1, 0, PACKET_BYTES));
    queue.drain_drops(&mut drops);
    assert_eq!(drops.get(DropReason::QueueDelay), queue.counters().dropped_codel);
}

#[test]
fn the_class_follows_what_the_flow_sends_queued_or_not() {
    let mut queue = queue();
    let classes: Vec<_> = (0..12).map(|_| queue.classify(ms(0), &inner(1), 1500)).collect();
    assert_eq!(classes[..10], [FlowClass::Interactive; 10]);
    assert_eq!(classes[10..], [FlowClass::Bulk; 2]);
    assert_eq!(queue.classify(ms(0), &inner(2), 1500), FlowClass::Interactive, "each its own");
    assert!(queue.is_empty());
}

#[test]
fn a_quantum_of_nothing_still_makes_progress() {
    let config = FqCodelConfig { quantum_bytes: 0, ..FqCodelConfig::default() };
    let mut queue = FqCodel::new(config, 1);
    for number in 0..4 {
        push(&mut queue, ms(0), number % 2, number, 60_000);
    }
    assert_eq!(pop_all(&mut queue, ms(0)).len(), 4);
}
