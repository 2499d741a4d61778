//! Detects whether the congestion window, and nothing else, limits the sender; only then may it
//! grow (the idea of RFC 7661, the details of Linux's `is_cwnd_limited`).

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    is_limited: bool,
    /// Largest flight of the current round.
    flight_bytes_max: u64,
    /// The round ends when this byte is acknowledged.
    stretch_end: u64,
}

impl WindowUse {
    /// The sender sent all it could; `is_limited` says that the window stopped it.
    pub(super) fn on_stop(&mut self, is_limited: bool, flight_bytes: u64, una: u64, nxt: u64) {
        let rose = !self.is_limited && flight_bytes > self.flight_bytes_max;
        if una >= self.stretch_end || is_limited || rose {
            *self = Self { is_limited, flight_bytes_max: flight_bytes, stretch_end: nxt };
        }
    }

    /// Whether the window was used: fully, or more than half of it in slow start, where it may
    /// double before its use is seen.
    pub(super) fn is_used(&self, window_bytes: u64, in_slow_start: bool) -> bool {
        self.is_limited || (in_slow_start && window_bytes < 2 * self.flight_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_stopped_the_sender_counts_for_a_round() {
        let mut window = WindowUse::default();
        window.on_stop(true, 10_000, 0, 10_000);
        window.on_stop(false, 8_000, 5_000, 13_000);
        assert!(window.is_used(10_000, false));
        window.on_stop(false, 3_000, 10_000, 13_000);
        assert!(!window.is_used(10_000, false));
        assert!(!window.is_used(10_000, true));
        assert!(window.is_used(5_999, true), "more than half is enough in slow start");
    }
}
