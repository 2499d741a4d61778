//! A drop-tail link that may also lose, repeat and delay segments. The tables and the properties of
//! this module must not change with the link model, so they have their own channel.

use std::collections::{BTreeMap, VecDeque};

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use crate::prng::Prng;
use crate::ratio::Ratio;
use crate::tcp::Segment;

/// One direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelConfig {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) queue_bytes: u64,
    pub(crate) loss: Ratio,
    pub(crate) duplication: Ratio,
    /// Share of segments that are delayed, and for how long at most.
    pub(crate) lateness: Ratio,
    pub(crate) late_by: Duration,
}

impl ChannelConfig {
    /// A clean channel with half of `rtt` and a queue of 50 ms.
    pub(crate) fn clean(rate: Rate, rtt: Duration) -> Self {
        Self {
            rate,
            delay: rtt / 2,
            queue_bytes: rate.bytes_in(Duration::from_millis(50)),
            loss: Ratio::ZERO,
            duplication: Ratio::ZERO,
            lateness: Ratio::ZERO,
            late_by: Duration::ZERO,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Channel<S = Segment> {
    config: ChannelConfig,
    prng: Prng,
    /// When the transmitter is free.
    free_at: Instant,
    /// Segments that have not left the transmitter: when they will leave, and their length.
    waiting: VecDeque<(Instant, u64)>,
    waiting_bytes: u64,
    /// By the time of arrival and the order of sending.
    flying: BTreeMap<(Instant, u64), S>,
    count: u64,
}

impl Channel {
    pub(crate) fn send(&mut self, now: Instant, segment: Segment) {
        self.send_bytes(now, segment.ip_bytes(), segment);
    }
}

impl<S: Copy> Channel<S> {
    pub(crate) fn new(config: ChannelConfig, seed: u64) -> Self {
        Self {
            config,
            prng: Prng::new(seed),
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    pub(crate) fn send_bytes(&mut self, now: Instant, bytes: u64, segment: S) {
        while let Some((_, left)) = self.waiting.front().filter(|(at, _)| *at <= now) {
            self.waiting_bytes -= left;
            self.waiting.pop_front();
        }
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > self.config.queue_bytes {
            return;
        }
        self.free_at = self.free_at.max(now) + self.config.rate.time_for(bytes);
        self.waiting.push_back((self.free_at, bytes));
        self.waiting_bytes += bytes;
        if self.config.loss.happens(&mut self.prng) {
            return;
        }
        let copies = 1 + u32::from(self.config.duplication.happens(&mut self.prng));
        for _ in 0..copies {
            let mut due = self.free_at + self.config.delay;
            if self.config.lateness.happens(&mut self.prng) {
                let micros = u64::try_from(self.config.late_by.as_micros()).unwrap();
                due += Duration::from_micros(self.prng.up_to(micros));
            }
            self.flying.insert((due, self.count), segment);
            self.count += 1;
        }
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<S> {
        let first = self.flying.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.flying.first_key_value().map(|((due, _), _)| *due)
    }
}
