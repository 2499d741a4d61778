//! What holds for every link, whatever is sent through it and however it is polled.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;
use plait_sim::link::{
    Access, Aggregation, Bucket, CODEL_TARGET, Discipline, FRAMING_BYTES, Grants, Link, LinkConfig,
    LinkCounters, Loss, OPPORTUNITY_BYTES, Outages, PIE_TARGET, RateSteps, Room, Service, Trace,
    Verdict,
};
use plait_sim::ratio::Ratio;
use proptest::prelude::*;

mod limits;

/// One packet: time since the packet before it, and its length.
type Arrival = (u64, u64);

/// A link before its seed.
#[derive(Clone, Debug)]
struct Made {
    config: LinkConfig,
    service: Option<Service>,
    outages: Outages,
}

impl Made {
    fn link(&self, seed: u64) -> Link<usize> {
        let mut link = Link::new(self.config, seed);
        if let Some(service) = &self.service {
            link.set_service(Instant::ZERO, service.clone());
        }
        link.set_outages(Instant::ZERO, self.outages.clone());
        link
    }

    fn without_jitter(mut self) -> Self {
        self.config.jitter = Duration::ZERO;
        self
    }

    /// A fixed rate that may be used at any time.
    fn with_fixed_rate(self) -> Self {
        Self { service: None, ..self }.without_limits()
    }

    fn without_limits(mut self) -> Self {
        (self.config.policer, self.config.shaper) = (None, None);
        self.config.access = Access::Always;
        self
    }

    fn in_order(mut self) -> Self {
        self.config.reorder = false;
        self
    }
}

#[derive(Debug)]
struct Out {
    number: usize,
    sent: Instant,
    due: Instant,
    bytes: u64,
}

fn losses() -> impl Strategy<Value = Loss> {
    let ratio = |max: u32| (0..=max).prop_map(Ratio::from_ppm);
    let chain = (ratio(300_000), ratio(1_000_000), ratio(50_000), ratio(1_000_000)).prop_map(
        |(good_to_bad, bad_to_good, loss_good, loss_bad)| Loss::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_good,
            loss_bad,
        },
    );
    prop_oneof![ratio(200_000).prop_map(Loss::Bernoulli), chain]
}

fn rooms() -> impl Strategy<Value = Room> {
    prop_oneof![
        (0_u64..100_000).prop_map(Room::Bytes),
        (0_u64..60).prop_map(Room::Packets),
        (0_u64..50).prop_map(|ms| Room::Time(Duration::from_millis(ms))),
    ]
}

fn buckets() -> impl Strategy<Value = Bucket> {
    (1_u64..100, 1_600_u64..60_000)
        .prop_map(|(mbit, burst_bytes)| Bucket { rate: Rate::from_mbit(mbit), burst_bytes })
}

fn grants() -> impl Strategy<Value = Grants> {
    (1_u64..40, 0_u64..60, 110_u32..1000).prop_map(|(low, more, peak_percent)| Grants {
        gap_min: Duration::from_millis(low),
        gap_max: Duration::from_millis(low + more),
        peak_percent,
    })
}

fn aggregations() -> impl Strategy<Value = Aggregation> {
    (1_u32..40, 1_u64..8, 0_u64..3000, 0_u64..3000).prop_map(
        |(packets_max, air_ms, low_us, more_us)| Aggregation {
            packets_max,
            air_max: Duration::from_millis(air_ms),
            access_min: Duration::from_micros(low_us),
            access_max: Duration::from_micros(low_us + more_us),
        },
    )
}

fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Always),
        grants().prop_map(Access::Granted),
        aggregations().prop_map(Access::Contended),
    ]
}

fn rate_steps() -> impl Strategy<Value = RateSteps> {
    let steps = prop::collection::vec((1_u64..50, 0_u64..100), 0..5);
    (steps, 0_u64..100, prop::option::of(1_u64..80), 0_u64..20).prop_map(
        |(gaps, base, more_ms, zero_ms)| {
            let mut at_ms = 0;
            let mut steps: Vec<_> = gaps
                .into_iter()
                .map(|(gap_ms, mbit)| {
                    at_ms += gap_ms;
                    (Duration::from_millis(at_ms), Rate::from_mbit(mbit))
                })
                .collect();
            // The last one lets everything out that waits.
            steps.push((Duration::from_millis(at_ms + 1), Rate::from_mbit(50)));
            let period = more_ms.map(|more_ms| Duration::from_millis(at_ms + 1 + more_ms));
            let (zero, base) = (Instant::from_millis(zero_ms), Rate::from_mbit(base));
            RateSteps::new(zero, base, steps, period).expect("the times grow")
        },
    )
}

fn services() -> impl Strategy<Value = Service> {
    prop_oneof![
        traces().prop_map(|trace| Service::Trace(Arc::new(trace))),
        rate_steps().prop_map(|steps| Service::Steps(Arc::new(steps))),
    ]
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    let discipline =
        prop_oneof![Just(Discipline::DropTail), Just(Discipline::CoDel), Just(Discipline::Pie)];
    let numbers = (1_u64..200, 0_u64..50_000, 0_u64..30_000, rooms());
    let limits = (prop::option::of(buckets()), prop::option::of(buckets()), accesses());
    (numbers, any::<bool>(), losses(), discipline, limits).prop_map(
        |((mbit, delay_us, jitter_us, queue), reorder, loss, discipline, limits)| LinkConfig {
            rate: Rate::from_mbit(mbit),
            delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            reorder,
            loss,
            discipline,
            queue,
            policer: limits.0,
            shaper: limits.1,
            access: limits.2,
        },
    )
}

fn traces() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0_u32..8, 1..60).prop_map(|gaps_ms| {
        let mut now_ms = 0;
        let mut times_ms: Vec<_> = gaps_ms
            .iter()
            .map(|gap_ms| {
                now_ms += gap_ms;
                now_ms
            })
            .collect();
        times_ms.push(now_ms + 1);
        Trace::new(times_ms).expect("the times grow")
    })
}

fn outages() -> impl Strategy<Value = Outages> {
    prop::collection::vec((0_u64..100, 1_u64..50), 0..4).prop_map(|spans_ms| {
        let mut now_ms = 0;
        let spans = spans_ms.iter().map(|(up_ms, down_ms)| {
            let from_ms = now_ms + up_ms;
            now_ms = from_ms + down_ms;
            (Instant::from_millis(from_ms), Instant::from_millis(now_ms))
        });
        Outages::new(spans.collect()).expect("the spans follow each other")
    })
}

fn links() -> impl Strategy<Value = Made> {
    (configs(), prop::option::of(services()), outages())
        .prop_map(|(config, service, outages)| Made { config, service, outages })
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    prop::collection::vec((0_u64..2_000_000, 40_u64..1_600), 1..300)
}

/// Sends all, polling after each packet when `eager`, and else only at the end. Checks the queue's
/// bound and the books on the way.
fn run(made: &Made, arrivals: &[Arrival], seed: u64, eager: bool) -> (Link<usize>, Vec<Out>) {
    let mut link = made.link(seed);
    let mut now = Instant::ZERO;
    let mut sent = Vec::new();
    let mut out = Vec::new();
    for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
        now += Duration::from_nanos(gap);
        let verdict = link.send(now, bytes, number);
        sent.push((now, bytes));
        if let Room::Bytes(room) = made.config.queue {
            let waiting = link.waiting_bytes();
            assert!(waiting <= room, "the queue is bounded");
            if verdict == Verdict::QueueFull {
                assert!(waiting + bytes > room, "dropped although it fitted");
            }
        }
        while let Some((due, number)) = eager.then(|| link.poll_due(now)).flatten() {
            out.push(Out { number, sent: sent[number].0, due, bytes: sent[number].1 });
        }
        check_books(&link);
    }
    while let Some(event) = link.next_event() {
        now = now.max(event);
        while let Some((due, number)) = link.poll_due(now) {
            out.push(Out { number, sent: sent[number].0, due, bytes: sent[number].1 });
        }
    }
    (link, out)
}

fn check_books(link: &Link<usize>) {
    let counters = link.counters();
    let packets = counters.out_packets + counters.dropped_packets() + link.inside_packets();
    assert_eq!(counters.in_packets, packets, "packets are conserved: {counters:?}");
    let bytes = counters.out_bytes + counters.dropped_bytes + link.inside_bytes();
    assert_eq!(counters.in_bytes, bytes, "bytes are conserved: {counters:?}");
}

proptest! {
    #[test]
    fn packets_are_conserved(
        made in links(), arrivals in arrivals(), seed: u64, eager: bool,
    ) {
        let (link, out) = run(&made, &arrivals, seed, eager);
        let counters = link.counters();
        check_books(&link);
        prop_assert_eq!(link.inside_packets(), 0);
        prop_assert_eq!(counters.in_packets, arrivals.len() as u64);
        prop_assert_eq!(counters.out_packets, out.len() as u64);
        prop_assert_eq!(counters.out_bytes, out.iter().map(|o| o.bytes).sum::<u64>());
        prop_assert_eq!(counters.dropped_cut_packets, 0);
        if made.config.discipline != Discipline::CoDel {
            prop_assert_eq!(counters.dropped_codel_packets, 0);
        }
        if made.config.discipline != Discipline::Pie {
            prop_assert_eq!(counters.dropped_pie_packets, 0);
        }
        if made.config.policer.is_none() {
            prop_assert_eq!(counters.dropped_policer_packets, 0);
        }
        if made.outages.spans().is_empty() {
            prop_assert_eq!(counters.dropped_outage_packets, 0);
        }
        let mut numbers: Vec<_> = out.iter().map(|o| o.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), out.len(), "nothing comes out twice");
    }

    #[test]
    fn order_is_kept_unless_the_link_reorders(
        made in links(), arrivals in arrivals(), seed: u64, eager: bool,
    ) {
        let (_, out) = run(&made, &arrivals, seed, eager);
        prop_assert!(out.is_sorted_by_key(|o| o.due), "release times do not decrease");
        let (_, out) = run(&made.in_order(), &arrivals, seed, eager);
        prop_assert!(out.is_sorted_by(|a, b| a.number < b.number), "first in, first out");
    }

    #[test]
    fn delay_lies_between_its_bounds(
        made in links(), arrivals in arrivals(), seed: u64,
    ) {
        let made = made.with_fixed_rate();
        let config = made.config;
        let (_, out) = run(&made, &arrivals, seed, true);
        // The queue, a full packet in the transmitter, the packet itself, and a nanosecond of
        // rounding for each packet.
        let slack = Duration::from_nanos(arrivals.len() as u64);
        let queue = config.queue.time_at(config.rate, 1_600);
        let queueing = queue + config.rate.time_for(2 * 1_600) + slack + Duration::from_nanos(1);
        for packet in &out {
            let took = packet.due - packet.sent;
            prop_assert!(took >= config.delay + config.rate.time_for(packet.bytes));
            prop_assert!(took <= config.delay + config.jitter + queueing);
        }
    }

    #[test]
    fn rate_is_never_exceeded(
        made in links(), arrivals in arrivals(), seed: u64,
    ) {
        let made = made.with_fixed_rate().without_jitter();
        let (_, out) = run(&made, &arrivals, seed, true);
        for first in 0..out.len() {
            let mut bytes = 0;
            for packet in &out[first + 1..] {
                bytes += packet.bytes;
                let time = packet.due - out[first].due;
                prop_assert!(made.config.rate.time_for(bytes) <= time);
            }
        }
    }

    #[test]
    fn packets_leave_at_opportunities_and_within_them(
        made in links(), trace in traces(), arrivals in arrivals(), seed: u64,
    ) {
        let trace = Arc::new(trace);
        let service = Some(Service::Trace(Arc::clone(&trace)));
        let made = Made { service, ..made }.without_jitter().without_limits();
        let (_, out) = run(&made, &arrivals, seed, true);
        let before = |at: Instant| trace.first_after(at.saturating_sub(Duration::from_nanos(1)));
        let left: Vec<_> = out.iter().map(|o| o.due.saturating_sub(made.config.delay)).collect();
        for (packet, &at) in out.iter().zip(&left) {
            let next = trace.opportunity_at(before(at));
            prop_assert!(next == at, "left at {at:?}, not at {next:?}");
            prop_assert!(at > packet.sent, "an opportunity serves what came before it");
        }
        for first in 0..out.len() {
            let mut bytes = 0;
            for (packet, &at) in out.iter().zip(&left).skip(first + 1) {
                bytes += packet.bytes + FRAMING_BYTES;
                let opportunities = trace.first_after(at) - before(left[first]);
                prop_assert!(bytes <= opportunities * OPPORTUNITY_BYTES);
            }
        }
    }

    #[test]
    fn nothing_leaves_in_an_outage(
        made in links(), arrivals in arrivals(), seed: u64,
    ) {
        let made = made.without_jitter();
        let (_, out) = run(&made, &arrivals, seed, true);
        for packet in &out {
            let left = packet.due.saturating_sub(made.config.delay);
            let dead = made.outages.spans().iter().any(|(from, to)| *from <= left && left < *to);
            prop_assert!(!dead, "{:?} left at {:?}", packet, left);
        }
    }

    #[test]
    fn jitter_compresses_by_a_tenth_at_most(
        made in links(), arrivals in arrivals(), seed: u64,
    ) {
        let made = made.with_fixed_rate().in_order();
        let (_, out) = run(&made, &arrivals, seed, true);
        for pair in out.windows(2) {
            let alone = made.config.rate.time_for(pair[1].bytes);
            prop_assert!(pair[1].due - pair[0].due + Duration::from_nanos(2) >= alone * 9 / 10);
        }
    }

    #[test]
    fn polling_later_changes_no_due_time(
        made in links(), arrivals in arrivals(), seed: u64,
    ) {
        let (eager_link, eager) = run(&made, &arrivals, seed, true);
        let (late_link, late) = run(&made, &arrivals, seed, false);
        let dues = |out: &[Out]| {
            let mut dues: Vec<_> = out.iter().map(|o| (o.number, o.due)).collect();
            dues.sort_unstable();
            dues
        };
        prop_assert_eq!(dues(&eager), dues(&late));
        prop_assert_eq!(eager_link.counters(), late_link.counters());
    }
}

/// A chain whose bad state lasts 8 packets on average loses, over many, what its stationary
/// distribution says, and in bursts that a Bernoulli link of the same loss does not have.
#[test]
fn gilbert_elliott_loses_its_stationary_share_in_bursts() {
    let chain = Loss::GilbertElliott {
        good_to_bad: Ratio::from_ppm(5_000),
        bad_to_good: Ratio::from_ppm(125_000),
        loss_good: Ratio::from_ppm(1_000),
        loss_bad: Ratio::from_percent(60),
    };
    let run = |loss: Loss| {
        const PACKETS: usize = 300_000;
        let config = LinkConfig { loss, ..LinkConfig::new(Rate::from_mbit(120), Duration::ZERO) };
        let mut link = Link::new(config, 21);
        let mut arrived = vec![false; PACKETS];
        for number in 0..PACKETS {
            let now = Instant::from_nanos(number as u64 * 200_000);
            link.send(now, 1500, number);
            while let Some(number) = link.poll(now + Duration::from_micros(199)) {
                arrived[number] = true;
            }
        }
        let lost = link.counters().dropped_loss_packets;
        let bursts = arrived.windows(2).filter(|pair| pair[0] && !pair[1]).count() as u64;
        (lost * 1_000_000 / PACKETS as u64, lost * 100 / bursts)
    };
    let expected_ppm = u64::from(chain.stationary().ppm());
    let (lost_ppm, burst_percent) = run(chain);
    assert!(lost_ppm.abs_diff(expected_ppm) * 20 < expected_ppm, "{lost_ppm} of {expected_ppm}");
    let (alone_ppm, alone_percent) = run(Loss::Bernoulli(chain.stationary()));
    assert!(alone_ppm.abs_diff(expected_ppm) * 20 < expected_ppm, "{alone_ppm} of {expected_ppm}");
    assert!(burst_percent > 180 && alone_percent < 110, "{burst_percent} {alone_percent}");
}

/// Flows clocked by acknowledgements, as one window: it grows by a packet per flow and round trip,
/// and shrinks by half of one flow's share for each loss.
struct Responsive {
    link: Link<usize>,
    /// Acknowledgements by the time they are back, with the packet's time in the queue.
    acks: VecDeque<(Instant, usize, Duration)>,
    sent: BTreeMap<usize, Instant>,
    next: usize,
    window: f64,
}

impl Responsive {
    const FLOWS: f64 = 8.0;
    const BYTES: u64 = 1500;
    const BACK: Duration = Duration::from_millis(20);

    fn fill(&mut self, now: Instant) {
        while self.sent.len() < self.window as usize {
            self.link.send(now, Self::BYTES, self.next);
            self.sent.insert(self.next, now);
            self.next += 1;
        }
    }

    fn acknowledge(&mut self, number: usize) {
        // The link keeps the order, so what was sent before and is still here is lost.
        let behind = self.sent.split_off(&(number + 1));
        let lost = self.sent.len() - 1;
        self.sent = behind;
        self.window += Self::FLOWS / self.window;
        for _ in 0..lost {
            self.window = (self.window * (1.0 - 0.5 / Self::FLOWS)).max(Self::FLOWS);
        }
    }

    /// Runs for `until`; gives the delays in the queue and the transmitter of what arrived after
    /// the first third.
    fn run(config: LinkConfig, until: Instant) -> (Vec<Duration>, Link<usize>) {
        let link = Link::new(config, 1);
        let (acks, sent) = (VecDeque::new(), BTreeMap::new());
        let mut source = Self { link, acks, sent, next: 0, window: Self::FLOWS };
        let mut delays = Vec::new();
        let mut now = Instant::ZERO;
        while now < until {
            source.fill(now);
            while let Some((due, number)) = source.link.poll_due(now) {
                let queued = (due - source.sent[&number]).saturating_sub(config.delay);
                source.acks.push_back((due + Self::BACK, number, queued));
            }
            while source.acks.front().is_some_and(|(at, ..)| *at <= now) {
                let (_, number, queued) = source.acks.pop_front().expect("there is a front");
                source.acknowledge(number);
                if now.as_nanos() > until.as_nanos() / 3 {
                    delays.push(queued);
                }
            }
            let next_ack = source.acks.front().map(|(at, ..)| *at);
            let events = [source.link.next_event(), next_ack];
            let next = events.into_iter().flatten().min().expect("some packet of a window arrives");
            now = now.max(next);
        }
        (delays, source.link)
    }
}

/// Runs [`Responsive`] on a link of 24 Mbit/s for a minute: the median delay in the queue, the
/// share of the rate that was used in percent, and what the link did.
fn with_responsive_flows(config: LinkConfig) -> (Duration, u64, LinkCounters) {
    let config = LinkConfig {
        rate: Rate::from_mbit(24),
        queue: Room::Bytes(750_000),
        delay: Duration::from_millis(20),
        ..config
    };
    let (mut delays, link) = Responsive::run(config, Instant::from_millis(60_000));
    delays.sort_unstable();
    let bytes = delays.len() as u64 * Responsive::BYTES;
    let used_percent = bytes * 100 / config.rate.bytes_in(Duration::from_secs(40));
    (delays[delays.len() / 2], used_percent, link.counters())
}

fn plain() -> LinkConfig {
    LinkConfig::new(Rate::ZERO, Duration::ZERO)
}

#[test]
fn codel_keeps_the_standing_queue_near_its_target() {
    let config = LinkConfig { discipline: Discipline::CoDel, ..plain() };
    let (median, used_percent, counters) = with_responsive_flows(config);
    assert!(counters.dropped_codel_packets > 20, "{counters:?}");
    assert_eq!(counters.dropped_queue_packets, 0, "the queue never fills");
    assert!(median > CODEL_TARGET / 2 && median < CODEL_TARGET * 2, "{median:?}");
    assert!(used_percent >= 95, "{used_percent} % of the rate");
    let (median, ..) = with_responsive_flows(plain());
    assert!(
        median > CODEL_TARGET * 20,
        "without CoDel the same source fills the queue: {median:?}"
    );
}

#[test]
fn pie_keeps_the_standing_queue_near_its_target() {
    let config = LinkConfig { discipline: Discipline::Pie, ..plain() };
    let (median, used_percent, counters) = with_responsive_flows(config);
    assert!(counters.dropped_pie_packets > 20, "{counters:?}");
    assert_eq!(counters.dropped_queue_packets, 0, "the queue never fills");
    assert!(median > PIE_TARGET / 2 && median < PIE_TARGET * 2, "{median:?}");
    assert!(used_percent >= 95, "{used_percent} % of the rate");
}
