//! A link with a drop-tail queue, an endless or sparing source before it that is paced as a path
//! is, and a receiver that acknowledges now and then.

use std::collections::{BTreeMap, VecDeque};

use super::super::*;

const PACKET: u64 = 1000;
/// A packet is lost when this many later ones arrived.
const THRESHOLD: u64 = 3;
const ACK_DELAY_MIN: Duration = Duration::from_millis(5);
/// Missed time that the pacer makes up for while packets wait, as a path's does.
const CATCH_UP: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    /// Length of the queue at the first rate.
    pub(super) queue: Duration,
    pub(super) loss_ppm: u64,
    /// Packets that are lost in one run.
    pub(super) loss_run: u64,
    /// When neither the sender's process runs nor the receiver's.
    pub(super) sender_stalls: Option<Stalls>,
    pub(super) receiver_stalls: Option<Stalls>,
    /// Packets are held up by at most so long, in order.
    pub(super) jitter: Duration,
    /// A queue on the acknowledgements' way.
    pub(super) way_back: Option<WayBack>,
    /// A token bucket before the queue: its rate and bytes.
    pub(super) policer: Option<(Rate, u64)>,
    /// Later rates.
    pub(super) changes: Vec<(Instant, Rate)>,
}

impl Spec {
    pub(super) fn new(rate: Rate, rtt: Duration, queue: Duration) -> Self {
        Self {
            rate,
            rtt,
            queue,
            loss_ppm: 0,
            loss_run: 1,
            sender_stalls: None,
            receiver_stalls: None,
            jitter: Duration::ZERO,
            way_back: None,
            policer: None,
            changes: Vec::new(),
        }
    }
}

/// Somebody else's queue: it grows steadily from one length to another, is drained and grows again.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayBack {
    pub(super) every: Duration,
    pub(super) shortest: Duration,
    pub(super) longest: Duration,
    /// From when on.
    pub(super) from: Instant,
}

impl WayBack {
    fn queue(self, now: Instant) -> Duration {
        if now < self.from {
            return Duration::ZERO;
        }
        let into = now.since(self.from).as_nanos() % self.every.as_nanos();
        let permille = u32::try_from(into * 1000 / self.every.as_nanos()).unwrap();
        self.shortest + (self.longest - self.shortest) * permille / 1000
    }
}

/// A process that is not scheduled now and then: what comes meanwhile waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalls {
    pub(super) every: Duration,
    pub(super) lasting: Duration,
    pub(super) phase: Duration,
}

impl Stalls {
    /// When the present stall ends.
    fn end(self, now: Instant) -> Option<Instant> {
        let since = now.since(Instant::ZERO) + self.phase;
        let into = since.as_nanos() % self.every.as_nanos();
        let into = Duration::from_nanos(u64::try_from(into).unwrap());
        (into < self.lasting).then(|| now + (self.lasting - into))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    Endless,
    Steady(Rate),
    /// Another packet when so many bytes are not in flight.
    InFlight(u64),
    Bursts {
        bytes: u64,
        every: Duration,
    },
}

/// What happened over some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// Bytes that arrived, of what the link could carry.
    pub(super) used_permille: u32,
    pub(super) lost_permille: u32,
    pub(super) dropped: u64,
    /// Of the packets that left the queue.
    pub(super) queue_mean: Duration,
    pub(super) queue_median: Duration,
    pub(super) queue_max: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Serve,
    Arrive(u64),
    AckDue,
    Ack { count: usize, late_by: Duration },
    Rate(Rate),
    Burst,
    Send,
    Check,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Instant,
    state: PacketState,
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    is_app_limited: bool,
}

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) controller: Box<dyn Controller>,
    /// Whether samples say that there was too little to send.
    pub(super) marks_app_limited: bool,
    spec: Spec,
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    prng: u64,
    // The link.
    rate: Rate,
    queue: VecDeque<(u64, Instant)>,
    queue_bytes_max: u64,
    is_serving: bool,
    tokens_bytes: u64,
    tokens_at: Instant,
    last_arrival: Instant,
    /// Packets still to be lost of the present run.
    loss_run_left: u64,
    // The receiver.
    arrived: VecDeque<u64>,
    acks_under_way: VecDeque<u64>,
    ack_due: bool,
    last_ack_at: Instant,
    // The sender.
    demand: Demand,
    supply_bytes: u64,
    supplied_at: Instant,
    burst_set: bool,
    next: u64,
    flight: BTreeMap<u64, Packet>,
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited_until: Option<u64>,
    srtt: Option<Duration>,
    ready_at: Instant,
    send_set: Option<Instant>,
    progress_at: Instant,
    check_set: bool,
    // Measuring.
    capacity_bytes: u64,
    capacity_since: Instant,
    arrived_bytes: u64,
    sent: u64,
    lost: u64,
    dropped: u64,
    queued: Vec<Duration>,
}

impl Channel {
    pub(super) fn new(spec: Spec, demand: Demand) -> Self {
        let controller =
            ControllerConfig::from(Algorithm::Gauge).build(Start::ten_segments(PACKET));
        let mut channel = Self {
            controller,
            marks_app_limited: true,
            now: Instant::ZERO,
            events: BTreeMap::new(),
            order: 0,
            prng: 0x9e37_79b9_7f4a_7c15,
            rate: spec.rate,
            queue: VecDeque::new(),
            queue_bytes_max: spec.rate.bytes_in(spec.queue),
            is_serving: false,
            tokens_bytes: 0,
            tokens_at: Instant::ZERO,
            last_arrival: Instant::ZERO,
            loss_run_left: 0,
            arrived: VecDeque::new(),
            acks_under_way: VecDeque::new(),
            ack_due: false,
            last_ack_at: Instant::ZERO,
            demand,
            supply_bytes: 0,
            supplied_at: Instant::ZERO,
            burst_set: false,
            next: 0,
            flight: BTreeMap::new(),
            delivered_bytes: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited_until: None,
            srtt: None,
            ready_at: Instant::ZERO,
            send_set: None,
            progress_at: Instant::ZERO,
            check_set: false,
            capacity_bytes: 0,
            capacity_since: Instant::ZERO,
            arrived_bytes: 0,
            sent: 0,
            lost: 0,
            dropped: 0,
            queued: Vec::new(),
            spec,
        };
        for (at, rate) in channel.spec.changes.clone() {
            channel.schedule(at, Event::Rate(rate));
        }
        channel.demand(demand);
        channel
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn end_stalls(&mut self) {
        (self.spec.sender_stalls, self.spec.receiver_stalls) = (None, None);
    }

    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        self.spec.rtt = rtt;
    }

    /// How long the queue takes at the present rate.
    pub(super) fn queue(&self) -> Duration {
        self.rate.time_for(PACKET * self.queue.len() as u64)
    }

    pub(super) fn demand(&mut self, demand: Demand) {
        self.demand = demand;
        self.supply_bytes = 0;
        self.supplied_at = self.now;
        if matches!(demand, Demand::Bursts { .. }) && !self.burst_set {
            self.burst_set = true;
            self.schedule(self.now, Event::Burst);
        }
        self.send();
    }

    pub(super) fn measure_until(&mut self, end: Instant) -> Stretch {
        self.begin_measuring();
        self.run_until(end);
        self.measured()
    }

    pub(super) fn begin_measuring(&mut self) {
        (self.capacity_bytes, self.capacity_since) = (0, self.now);
        (self.arrived_bytes, self.sent, self.lost, self.dropped) = (0, 0, 0, 0);
        self.queued.clear();
    }

    /// What happened since then.
    pub(super) fn measured(&mut self) -> Stretch {
        self.count_capacity();
        self.queued.sort_unstable();
        let count = self.queued.len().max(1);
        let sum: Duration = self.queued.iter().sum();
        Stretch {
            used_permille: u32::try_from(self.arrived_bytes * 1000 / self.capacity_bytes).unwrap(),
            lost_permille: u32::try_from(self.lost * 1000 / self.sent.max(1)).unwrap(),
            dropped: self.dropped,
            queue_mean: sum / u32::try_from(count).unwrap(),
            queue_median: self.queued.get(count / 2).copied().unwrap_or_default(),
            queue_max: self.queued.last().copied().unwrap_or_default(),
        }
    }

    pub(super) fn end_policer(&mut self) {
        self.spec.policer = None;
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= end) {
            self.now = entry.key().0;
            let event = entry.remove();
            match self.stalled_until(event) {
                Some(end) => self.schedule(end, event),
                None => self.handle(event),
            }
        }
        self.now = end;
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.insert((at, self.order), event);
        self.order += 1;
    }

    fn stalled_until(&self, event: Event) -> Option<Instant> {
        let stalls = match event {
            Event::Serve | Event::Rate(_) => None,
            Event::Arrive(_) | Event::AckDue => self.spec.receiver_stalls,
            Event::Ack { .. } | Event::Burst | Event::Send | Event::Check => {
                self.spec.sender_stalls
            }
        };
        stalls?.end(self.now)
    }

    fn is_lost(&mut self) -> bool {
        if self.loss_run_left == 0
            && self.random_below(1_000_000) * self.spec.loss_run < self.spec.loss_ppm
        {
            self.loss_run_left = self.spec.loss_run;
        }
        let is_lost = self.loss_run_left > 0;
        self.loss_run_left = self.loss_run_left.saturating_sub(1);
        is_lost
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Serve => self.serve(),
            Event::Arrive(number) => self.arrive(number),
            Event::AckDue => self.acknowledge(),
            Event::Ack { count, late_by } => {
                let numbers: Vec<u64> = self.acks_under_way.drain(..count).collect();
                self.acked(&numbers, late_by);
            }
            Event::Rate(rate) => {
                self.count_capacity();
                self.rate = rate;
            }
            Event::Burst => {
                self.burst_set = false;
                if let Demand::Bursts { bytes, every } = self.demand {
                    self.supply_bytes += bytes;
                    self.burst_set = true;
                    self.schedule(self.now + every, Event::Burst);
                }
            }
            Event::Send => self.send_set = None,
            Event::Check => self.check(),
        }
        self.send();
    }

    fn count_capacity(&mut self) {
        self.capacity_bytes += self.rate.bytes_in(self.now.since(self.capacity_since));
        self.capacity_since = self.now;
    }

    fn random_below(&mut self, limit: u64) -> u64 {
        self.prng ^= self.prng << 13;
        self.prng ^= self.prng >> 7;
        self.prng ^= self.prng << 17;
        (self.prng >> 11) % limit
    }

    fn is_policed(&mut self) -> bool {
        let Some((rate, burst_bytes)) = self.spec.policer else { return false };
        let new_bytes = rate.bytes_in(self.now.since(self.tokens_at));
        if new_bytes > 0 {
            self.tokens_bytes = (self.tokens_bytes + new_bytes).min(burst_bytes);
            self.tokens_at = self.now;
        }
        let is_policed = self.tokens_bytes < PACKET;
        self.tokens_bytes -= if is_policed { 0 } else { PACKET };
        is_policed
    }

    fn enqueue(&mut self, number: u64) {
        if self.is_policed() {
            self.dropped += 1;
            return;
        }
        if self.queue.len() as u64 * PACKET + PACKET > self.queue_bytes_max + PACKET {
            self.dropped += 1;
            return;
        }
        self.queue.push_back((number, self.now));
        if !self.is_serving {
            self.begin_service();
        }
    }

    fn begin_service(&mut self) {
        self.is_serving = true;
        self.schedule(self.now + self.rate.time_for(PACKET), Event::Serve);
    }

    fn serve(&mut self) {
        let (number, since) = self.queue.pop_front().expect("a packet is being served");
        let alone = self.rate.time_for(PACKET);
        self.queued.push(self.now.since(since).saturating_sub(alone));
        self.is_serving = false;
        if !self.queue.is_empty() {
            self.begin_service();
        }
        if self.is_lost() {
            return;
        }
        let jitter = match u64::try_from(self.spec.jitter.as_nanos()).unwrap() {
            0 => 0,
            nanos => self.random_below(nanos),
        };
        let at = self.now + self.spec.rtt / 2 + Duration::from_nanos(jitter);
        self.last_arrival = self.last_arrival.max(at);
        self.schedule(self.last_arrival, Event::Arrive(number));
    }

    fn arrive(&mut self, number: u64) {
        self.arrived_bytes += PACKET;
        self.arrived.push_back(number);
        if !self.ack_due {
            self.ack_due = true;
            let delay = ACK_DELAY_MIN.max(self.srtt.unwrap_or_default() / 8);
            self.schedule(self.now + delay, Event::AckDue);
        }
    }

    fn acknowledge(&mut self) {
        self.ack_due = false;
        let count = self.arrived.len();
        self.acks_under_way.append(&mut self.arrived);
        let best = self.now + self.spec.rtt / 2;
        let queue = self.spec.way_back.map_or(Duration::ZERO, |way| way.queue(self.now));
        // What waits in one queue stays in order.
        self.last_ack_at = self.last_ack_at.max(best + queue);
        let late_by = self.last_ack_at.since(best);
        self.schedule(self.last_ack_at, Event::Ack { count, late_by });
    }

    fn acked(&mut self, numbers: &[u64], late_by: Duration) {
        let mut newest: Option<Packet> = None;
        let mut acked_bytes = 0;
        for number in numbers {
            if let Some(packet) = self.flight.remove(number) {
                acked_bytes += PACKET;
                newest = Some(packet);
            }
        }
        let Some(newest) = newest else { return };
        let highest = numbers.last().copied().unwrap_or_default();
        let kept = self.flight.split_off(&(highest.saturating_sub(THRESHOLD - 1)));
        let lost = core::mem::replace(&mut self.flight, kept).len() as u64;
        self.lost += lost;
        self.delivered_bytes += acked_bytes;
        self.delivered_at = self.now.saturating_sub(late_by).max(self.delivered_at);
        self.first_sent_at = newest.at;
        self.progress_at = self.now;
        if self.app_limited_until.is_some_and(|until| self.delivered_bytes > until) {
            self.app_limited_until = None;
        }
        let sending = newest.at.since(newest.first_sent_at);
        let interval = sending.max(self.delivered_at.since(newest.delivered_at));
        let delivered = self.delivered_bytes - newest.delivered_bytes;
        let rtt = self.now.since(newest.at);
        let srtt = self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8);
        self.srtt = Some(srtt);
        if lost > 0 {
            let flight_bytes = self.in_flight();
            self.controller.on_loss(&Loss { now: self.now, flight_bytes });
        }
        self.controller.on_ack(&AckSample {
            newest: newest.state,
            in_order: None,
            way_back_excess: Some(late_by),
            srtt: Some(srtt),
            in_flight_bytes: self.in_flight(),
            lost_bytes: lost * PACKET,
            delivery_rate: Rate::from_bytes_over(delivered, interval),
            rate_is_app_limited: self.marks_app_limited && newest.is_app_limited,
            ..acked(self.now, acked_bytes, rtt)
        });
    }

    fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * PACKET
    }

    /// The whole flight may be lost.
    fn check(&mut self) {
        self.check_set = false;
        let patience = (self.srtt.unwrap_or(ms(250)) * 4).max(ms(500));
        if !self.flight.is_empty() && self.now.since(self.progress_at) > patience {
            self.lost += self.flight.len() as u64;
            let flight_bytes = self.in_flight();
            self.flight.clear();
            self.progress_at = self.now;
            let rto = Rto { now: self.now, flight_bytes, ..rto(0, Episode::New) };
            self.controller.on_rto(&rto);
        }
    }

    fn has_supply(&mut self) -> bool {
        match self.demand {
            Demand::Endless => true,
            Demand::Steady(rate) => {
                rate.bytes_in(self.now.since(self.supplied_at)) >= self.supply_bytes + PACKET
            }
            Demand::InFlight(bytes) => self.in_flight() < bytes,
            Demand::Bursts { .. } => self.supply_bytes >= PACKET,
        }
    }

    fn take_supply(&mut self) {
        match self.demand {
            Demand::Endless | Demand::InFlight(_) => {}
            Demand::Steady(_) => self.supply_bytes += PACKET,
            Demand::Bursts { .. } => self.supply_bytes -= PACKET,
        }
    }

    fn send(&mut self) {
        if self.spec.sender_stalls.is_some_and(|stalls| stalls.end(self.now).is_some()) {
            self.wake_at(self.now);
            return;
        }
        if !self.check_set {
            self.check_set = true;
            self.schedule(self.now + ms(100), Event::Check);
        }
        while self.in_flight() + PACKET <= self.controller.window() {
            if !self.has_supply() {
                self.app_limited_until = Some(self.delivered_bytes + self.in_flight());
                if let Demand::Steady(rate) = self.demand {
                    let due = self.supplied_at + rate.time_for(self.supply_bytes + PACKET);
                    self.wake_at(due.max(self.now) + Duration::from_nanos(10));
                }
                return;
            }
            if self.ready_at > self.now {
                self.wake_at(self.ready_at);
                return;
            }
            self.send_one();
        }
    }

    fn wake_at(&mut self, at: Instant) {
        if self.send_set.is_none_or(|set| set > at) {
            self.send_set = Some(at);
            self.schedule(at, Event::Send);
        }
    }

    fn send_one(&mut self) {
        self.take_supply();
        if self.flight.is_empty() {
            (self.delivered_at, self.first_sent_at) = (self.now, self.now);
            self.progress_at = self.now;
        }
        let in_flight_bytes = self.in_flight() + PACKET;
        let sent = Sent { now: self.now, bytes: PACKET, in_flight_bytes };
        let packet = Packet {
            at: self.now,
            state: self.controller.on_sent(&sent),
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited_until.is_some(),
        };
        self.flight.insert(self.next, packet);
        self.enqueue(self.next);
        self.next += 1;
        self.sent += 1;
        if let Some(rate) = self.controller.pacing_rate() {
            let is_late = self.spec.sender_stalls.is_some();
            let catch_up = if is_late { CATCH_UP } else { Duration::ZERO };
            let from = self.ready_at.max(self.now.saturating_sub(catch_up));
            self.ready_at = from + rate.time_for(PACKET);
        }
    }
}
