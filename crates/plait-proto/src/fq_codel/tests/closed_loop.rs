//! One sender whose window grows like CUBIC's (RFC 9438) and backs off to 0.7, behind the queue of
//! a link: does the queue keep the link busy, and short?

use std::collections::VecDeque;

use super::*;

const C: f64 = 0.4;
const BETA: f64 = 0.7;
const RATE_MBIT: u64 = 30;
const LENGTH: usize = 1500;
const SLOT: Duration = Duration::from_micros(LENGTH as u64 * 8 / RATE_MBIT);
const WARM: Instant = Instant::from_millis(10_000);
const END: Instant = Instant::from_millis(40_000);

#[derive(Debug)]
struct Sender {
    window: f64,
    window_max: f64,
    /// When the current growth began; `None` in slow start.
    epoch: Option<Instant>,
    sent: u32,
    acked: u32,
    /// Signals for packets below belong to the last back-off.
    recovery: u32,
}

impl Sender {
    fn may_send(&self) -> bool {
        f64::from(self.sent - self.acked) < self.window
    }

    fn on_ack(&mut self, now: Instant, number: u32, marked: bool) {
        if (marked || number > self.acked) && number >= self.recovery {
            self.window_max = self.window;
            self.window *= BETA;
            self.epoch = Some(now);
            self.recovery = self.sent;
        }
        let newly = f64::from(number + 1 - self.acked);
        self.acked = number + 1;
        self.window = match self.epoch {
            None => self.window + newly,
            Some(epoch) => self.window.max(self.cubic(now.since(epoch))),
        };
    }

    fn cubic(&self, time: Duration) -> f64 {
        let k = (self.window_max * (1.0 - BETA) / C).cbrt();
        C * (time.as_secs_f64() - k).powi(3) + self.window_max
    }
}

/// The share of the link used, the mean time in the queue, and the queue at the end.
fn run(rtt: Duration, ecn: Ecn) -> (f64, Duration, FqCodel) {
    let mut queue = FqCodel::new(FqCodelConfig::default(), 1);
    queue.set_round_trip(rtt);
    let mut sender =
        Sender { window: 10.0, window_max: 0.0, epoch: None, sent: 0, acked: 0, recovery: 0 };
    let mut acks: VecDeque<(Instant, u32, bool)> = VecDeque::new();
    let (mut now, mut slots, mut used, mut waited) = (Instant::ZERO, 0, 0, Duration::ZERO);
    let mut bytes = packet(1, 0, LENGTH);
    ecn.write(&mut bytes);
    while now < END {
        while let Some((_, number, marked)) = acks.pop_front_if(|(at, ..)| *at <= now) {
            sender.on_ack(now, number, marked);
        }
        while sender.may_send() {
            bytes[28..32].copy_from_slice(&sender.sent.to_be_bytes());
            queue.push(now, &inner(1), &bytes, FlowClass::Bulk);
            sender.sent += 1;
        }
        let popped = queue.pop(now);
        if now >= WARM {
            slots += 1;
            used += u32::from(popped.is_some());
            waited += popped.as_ref().map_or(Duration::ZERO, |_| queue.sojourn());
        }
        if let Some(popped) = popped {
            let marked = Ecn::of(&popped.bytes) == Ecn::Ce;
            acks.push_back((now + SLOT + rtt, number(&popped.bytes), marked));
            queue.recycle(popped.bytes);
        }
        now += SLOT;
    }
    (f64::from(used) / f64::from(slots), waited / used, queue)
}

#[test]
fn one_cubic_flow_fills_the_link_and_the_queue_stays_short() {
    for (rtt_ms, share_min, wait_max_ms) in [(10, 0.99, 25), (60, 0.98, 20), (100, 0.96, 20)] {
        for ecn in [Ecn::NotEct, Ecn::Ect0] {
            let (share, waited, queue) = run(Duration::from_millis(rtt_ms), ecn);
            let counters = queue.counters();
            let what = format!("RTT {rtt_ms} ms, {ecn:?}: {share:.3}, {waited:?}, {counters:?}");
            assert!(share >= share_min, "{what}");
            assert!(waited <= Duration::from_millis(wait_max_ms), "{what}");
            assert_eq!(counters.dropped_full, 0, "{what}");
            assert_eq!(counters.dropped_codel == 0, ecn == Ecn::Ect0, "{what}");
        }
    }
}

#[test]
fn long_round_trips_are_given_time() {
    let (share, waited, queue) = run(Duration::from_millis(300), Ecn::NotEct);
    let what = format!("{share:.3}, {waited:?}, {:?}", queue.counters());
    assert!(share >= 0.9 && waited <= Duration::from_millis(60), "{what}");
}
