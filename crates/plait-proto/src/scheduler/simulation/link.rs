//! A link with a FIFO drop-tail queue, and what the two ends of the path over it know.

use std::collections::VecDeque;

use super::super::testing::PACKET;
use super::*;

/// Delivery rates are measured over this, and their maximum is kept this long.
const RATE_WINDOW: Duration = Duration::from_millis(20);
const RATE_MEMORY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct LinkSpec {
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    pub(super) queue: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) seq: u64,
    pub(super) number: u64,
    sent_at: Instant,
    /// Bytes sent on the path up to and with this packet.
    sent_bytes: u64,
}

impl Arrival {
    pub(super) fn send_ts(&self) -> u16 {
        (self.sent_at.as_nanos() / 64_000) as u16
    }
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    at: Instant,
    written_at: Instant,
    passed_bytes: u64,
    delivered_bytes: u64,
    rtt: Duration,
}

/// What a link did since measuring began.
pub(super) struct Measured {
    pub(super) bytes: u64,
    pub(super) used_percent: u64,
    pub(super) drops_per_10000: u64,
    pub(super) mean_queue_ms: u64,
}

#[derive(Debug)]
pub(super) struct Link {
    spec: LinkSpec,
    busy_until: Instant,
    arrivals: VecDeque<Arrival>,
    acks: VecDeque<Ack>,
    // Ingress.
    sent_packets: u64,
    sent_bytes: u64,
    passed_bytes: u64,
    srtt: Duration,
    latest_rtt: Duration,
    delivered: VecDeque<(Instant, u64)>,
    rates: VecDeque<(Instant, Rate)>,
    // Egress.
    last_arrival: Option<Arrival>,
    delivered_bytes: u64,
    // Measuring.
    measured_from: (u64, u64),
    drops: u64,
    queued: Duration,
}

impl Link {
    pub(super) fn new(spec: LinkSpec) -> Self {
        Self {
            spec,
            busy_until: Instant::ZERO,
            arrivals: VecDeque::new(),
            acks: VecDeque::new(),
            sent_packets: 0,
            sent_bytes: 0,
            passed_bytes: 0,
            srtt: spec.rtt,
            latest_rtt: spec.rtt,
            delivered: VecDeque::new(),
            rates: VecDeque::new(),
            last_arrival: None,
            delivered_bytes: 0,
            measured_from: (0, 0),
            drops: 0,
            queued: Duration::ZERO,
        }
    }

    /// The link carries so much from the next packet on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.spec.rate = rate;
    }

    pub(super) fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    pub(super) fn send(&mut self, now: Instant, seq: u64) {
        let number = self.sent_packets;
        self.sent_packets += 1;
        self.sent_bytes += PACKET.bytes;
        let queue = self.busy_until.since(now);
        if queue > self.spec.queue {
            self.drops += 1;
            return;
        }
        self.queued += queue;
        self.busy_until = self.busy_until.max(now) + self.spec.rate.time_for(PACKET.bytes);
        self.arrivals.push_back(Arrival {
            at: self.busy_until + self.spec.rtt / 2,
            seq,
            number,
            sent_at: now,
            sent_bytes: self.sent_bytes,
        });
    }

    pub(super) fn pop_arrival(&mut self, now: Instant) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front_if(|arrival| arrival.at <= now)?;
        self.delivered_bytes += PACKET.bytes;
        self.last_arrival = Some(arrival);
        Some(arrival)
    }

    /// The egress acknowledges what is new.
    pub(super) fn send_ack(&mut self, now: Instant) {
        let Some(last) = self.last_arrival.take() else {
            return;
        };
        self.acks.push_back(Ack {
            at: now + self.spec.rtt / 2,
            written_at: now,
            passed_bytes: last.sent_bytes,
            delivered_bytes: self.delivered_bytes,
            rtt: last.at.since(last.sent_at) + self.spec.rtt / 2,
        });
    }

    pub(super) fn receive_acks(&mut self, now: Instant) {
        while let Some(ack) = self.acks.pop_front_if(|ack| ack.at <= now) {
            self.passed_bytes = ack.passed_bytes;
            self.latest_rtt = ack.rtt;
            self.srtt = (self.srtt * 7 + ack.rtt) / 8;
            self.delivered.push_back((ack.written_at, ack.delivered_bytes));
            while self.delivered.len() > 1
                && ack.written_at.since(self.delivered[1].0) >= RATE_WINDOW
            {
                self.delivered.pop_front();
            }
            let (since, bytes) = self.delivered[0];
            if ack.written_at.since(since) >= RATE_WINDOW {
                let rate =
                    Rate::from_bytes_over(ack.delivered_bytes - bytes, ack.written_at.since(since));
                self.rates.push_back((now, rate));
            }
        }
        while self.rates.pop_front_if(|(at, _)| now.since(*at) > RATE_MEMORY).is_some() {}
    }

    pub(super) fn view(&self, id: u8) -> PathView {
        PathView {
            id: PathId(id),
            price: id,
            order: id,
            // Fixed shares are told the rates.
            weight: u16::try_from(self.spec.rate.bits_per_second() / 1_000_000)
                .expect("test links are slow"),
            srtt: Some(self.srtt),
            latest_rtt: Some(self.latest_rtt),
            min_rtt: Some(self.spec.rtt),
            in_flight_bytes: self.sent_bytes - self.passed_bytes,
            delivery_rate: self.rates.iter().map(|&(_, rate)| rate).max().unwrap_or(Rate::ZERO),
            sent_packets: self.sent_packets,
            rtt_variation: None,
            window_bytes: None,
            capacity: self.spec.rate,
            ready_at: Instant::ZERO,
            is_starting: false,
            loss_permille: 0,
        }
    }

    pub(super) fn start_measuring(&mut self) {
        self.measured_from = (self.delivered_bytes, self.sent_packets);
        self.drops = 0;
        self.queued = Duration::ZERO;
    }

    pub(super) fn measured(&self, time: Duration) -> Measured {
        let bytes = self.delivered_bytes - self.measured_from.0;
        let sent = (self.sent_packets - self.measured_from.1).max(1);
        let capacity = self.spec.rate.bytes_in(time);
        Measured {
            bytes,
            used_percent: (bytes * 100 + capacity / 2) / capacity,
            drops_per_10000: (self.drops * 10_000 + sent / 2) / sent,
            mean_queue_ms: self.queued.as_millis() as u64 / sent,
        }
    }
}
