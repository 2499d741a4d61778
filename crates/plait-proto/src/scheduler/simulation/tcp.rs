//! A sender limited by a window that grows like CUBIC's (RFC 9438) and backs off to 0.7.

use std::collections::VecDeque;

use super::*;

const C: f64 = 0.4;
const BETA: f64 = 0.7;

#[derive(Debug)]
pub(super) struct Tcp {
    return_delay: Duration,
    window: f64,
    window_max: f64,
    /// When the current growth began; `None` in slow start.
    epoch: Option<Instant>,
    /// Losses of packets below belong to the last back-off.
    recovery: u64,
    sent: u64,
    acked: u64,
    /// The receiver's next expected number.
    expected: u64,
    /// Acknowledgements under way: when they arrive, up to what, and whether packets are missing.
    acks: VecDeque<(Instant, u64, bool)>,
    delivered: Vec<(Instant, u64)>,
    delivered_count: u64,
}

impl Tcp {
    pub(super) fn new(return_delay: Duration) -> Self {
        Self {
            return_delay,
            window: 10.0,
            window_max: 0.0,
            epoch: None,
            recovery: 0,
            sent: 0,
            acked: 0,
            expected: 0,
            acks: VecDeque::new(),
            delivered: Vec::new(),
            delivered_count: 0,
        }
    }

    pub(super) fn may_send(&self) -> bool {
        ((self.sent - self.acked) as f64) < self.window
    }

    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    pub(super) fn on_delivered(&mut self, now: Instant, seq: u64) {
        self.delivered_count += 1;
        self.delivered.push((now, self.delivered_count));
        self.acks.push_back((now + self.return_delay, seq + 1, seq > self.expected));
        self.expected = seq + 1;
    }

    pub(super) fn receive_acks(&mut self, now: Instant) {
        while let Some((_, upto, missing)) = self.acks.pop_front_if(|(at, ..)| *at <= now) {
            if missing && upto > self.recovery {
                self.window_max = self.window;
                self.window *= BETA;
                self.epoch = Some(now);
                self.recovery = self.sent;
            }
            let newly = (upto - self.acked) as f64;
            self.acked = upto;
            self.window = match self.epoch {
                None => self.window + newly,
                Some(epoch) => self.window.max(self.cubic(now.since(epoch))),
            };
        }
    }

    fn cubic(&self, time: Duration) -> f64 {
        let k = (self.window_max * (1.0 - BETA) / C).cbrt();
        C * (time.as_secs_f64() - k).powi(3) + self.window_max
    }

    /// Packets delivered from `start` on.
    pub(super) fn delivered_since(&self, start: Instant) -> u64 {
        let before = self.delivered.partition_point(|&(at, _)| at < start);
        (self.delivered.len() - before) as u64
    }
}
