//! What a node between sender and receiver learns of a flow by watching: round-trip time, window,
//! time since the last congestion event.
//!
//! The round-trip time is the sum of two legs. The client's leg, from the node to the client and
//! back, is timed by data and its acknowledgement. The server's leg is timed by what goes up and is
//! answered: a timestamp by its echo, data by its acknowledgement. Neither needs a SYN.

use crate::time::{Duration, Instant};
use crate::wire::tcp::TcpSeq;

use super::holding_time::Timeout;

/// Round-trip time before anything was timed.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// How long the server's quickest answer counts, at the least.
const MIN_WINDOW: Duration = Duration::from_secs(5);

/// The smoothed round-trip time of the client's leg (RFC 6298 §2).
#[derive(Clone, Copy, Debug)]
struct Smoothed {
    mean: Duration,
    variation: Duration,
    latest: Duration,
}

/// The smallest sample of the last five to ten seconds: a server that had nothing to send answers
/// late.
#[derive(Clone, Copy, Debug)]
struct Smallest {
    current: Duration,
    since: Instant,
    previous: Option<Duration>,
}

/// What was learned of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimator {
    client_leg: Option<Smoothed>,
    server_leg: Option<Smallest>,
    /// Data on its way to the client that is being timed: its end, and when it passed.
    timed_data: Option<(TcpSeq, Instant)>,
    /// A client's timestamp whose echo is awaited, and when it passed.
    timed_echo: Option<(u32, Instant)>,
    /// A client's data whose acknowledgement is awaited: its end, and when it passed.
    timed_request: Option<(TcpSeq, Instant)>,
    /// Largest payload seen: the segment size.
    segment_bytes: u32,
    /// The last congestion event; at first when the flow was first seen.
    epoch: Instant,
}

impl Estimator {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            client_leg: None,
            server_leg: None,
            timed_data: None,
            timed_echo: None,
            timed_request: None,
            segment_bytes: 1,
            epoch: now,
        }
    }

    /// New data passed on its way to the client.
    pub(super) fn on_new_data(&mut self, now: Instant, end: TcpSeq, payload_bytes: u32) {
        self.segment_bytes = self.segment_bytes.max(payload_bytes);
        self.timed_data.get_or_insert((end, now));
    }

    /// Data passed that had been sent before: the sender saw congestion, and whether the original
    /// or this is acknowledged cannot be told (Karn).
    pub(super) fn on_retransmission(&mut self, now: Instant, seq: TcpSeq) {
        self.epoch = now;
        if self.timed_data.is_some_and(|(end, _)| seq.is_before(end)) {
            self.timed_data = None;
        }
    }

    /// The client acknowledged everything before `ack`.
    pub(super) fn on_acknowledged(&mut self, now: Instant, ack: TcpSeq) {
        if let Some((end, passed)) = self.timed_data
            && !ack.is_before(end)
        {
            self.timed_data = None;
            self.sample_client_leg(now.since(passed));
        }
    }

    /// A packet of the client goes on to the server that lets data out, or asks for an answer.
    pub(super) fn on_forwarded(&mut self, now: Instant, value: Option<u32>, data: Option<TcpSeq>) {
        if self.timed_echo.is_none() {
            self.timed_echo = value.map(|value| (value, now));
        }
        if self.timed_request.is_none() {
            self.timed_request = data.map(|end| (end, now));
        }
    }

    /// A packet of the server passed. Its echo is a sample when it is just the timestamp awaited:
    /// a later one was let out by a later packet.
    pub(super) fn on_server_packet(&mut self, now: Instant, echo: Option<u32>, ack: TcpSeq) {
        if let Some(((value, passed), echo)) = self.timed_echo.zip(echo)
            && !TcpSeq(echo).is_before(TcpSeq(value))
        {
            self.timed_echo = None;
            if echo == value {
                self.sample_server_leg(now, now.since(passed));
            }
        }
        if let Some((end, passed)) = self.timed_request
            && !ack.is_before(end)
        {
            self.timed_request = None;
            self.sample_server_leg(now, now.since(passed));
        }
    }

    fn sample_client_leg(&mut self, sample: Duration) {
        self.client_leg = Some(match self.client_leg {
            None => Smoothed { mean: sample, variation: sample / 2, latest: sample },
            Some(Smoothed { mean, variation, .. }) => Smoothed {
                variation: (variation * 3 + mean.abs_diff(sample)) / 4,
                mean: (mean * 7 + sample) / 8,
                latest: sample,
            },
        });
    }

    fn sample_server_leg(&mut self, now: Instant, sample: Duration) {
        match &mut self.server_leg {
            Some(leg) if now.since(leg.since) < MIN_WINDOW => leg.current = leg.current.min(sample),
            leg => {
                let previous = leg.map(|leg| leg.current);
                *leg = Some(Smallest { current: sample, since: now, previous });
            }
        }
    }

    /// The server's leg; as long as the client's while nothing was answered that could be timed.
    fn server_leg(&self, client_leg: Duration) -> Duration {
        self.server_leg.map_or(client_leg, |leg| {
            leg.previous.map_or(leg.current, |previous| previous.min(leg.current))
        })
    }

    /// Smoothed round-trip time of the connection; 100 ms before anything was timed.
    pub(super) fn rtt(&self) -> Duration {
        self.client_leg.map_or(INITIAL_RTT, |leg| leg.mean + self.server_leg(leg.mean))
    }

    /// What the sender's timer is believed to be made of, with this floor.
    pub(super) fn timeout(&self, floor: Duration) -> Timeout {
        let rtt = self.rtt();
        let (variation, sample) = match self.client_leg {
            Some(leg) => (leg.variation, leg.latest + self.server_leg(leg.mean)),
            None => (rtt / 2, rtt),
        };
        let seconds = |duration: Duration| duration.as_secs_f64();
        Timeout::with_floor(seconds(rtt), seconds(variation), seconds(sample), seconds(floor))
    }

    /// The sender's window in segments, at least 1: what is on its way between node and client and
    /// back, `outstanding_bytes`, and as much more as the server's leg holds.
    pub(super) fn window_segments(&self, outstanding_bytes: u32) -> f64 {
        let segments = f64::from(outstanding_bytes) / f64::from(self.segment_bytes);
        let whole_per_leg = self.client_leg.filter(|leg| !leg.mean.is_zero()).map_or(1.0, |leg| {
            (leg.mean + self.server_leg(leg.mean)).as_secs_f64() / leg.mean.as_secs_f64()
        });
        (segments * whole_per_leg).max(1.0)
    }

    /// T_E: time since the last congestion event.
    pub(super) const fn since_congestion(&self, now: Instant) -> Duration {
        now.since(self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Both legs by timestamps and data.
    #[test]
    fn the_legs_make_the_round_trip() {
        let mut estimator = Estimator::new(at(0));
        assert_eq!(estimator.rtt(), INITIAL_RTT);
        estimator.on_new_data(at(0), TcpSeq(1000), 1000);
        estimator.on_new_data(at(5), TcpSeq(2000), 1000);
        estimator.on_acknowledged(at(30), TcpSeq(1000));
        assert_eq!(estimator.rtt(), 60 * MS, "the other leg is unknown: as long as this one");
        estimator.on_forwarded(at(30), Some(500), None);
        estimator.on_forwarded(at(31), Some(501), None);
        estimator.on_server_packet(at(60), Some(499), TcpSeq(0));
        estimator.on_server_packet(at(100), Some(500), TcpSeq(0));
        assert_eq!(estimator.rtt(), 100 * MS);
        assert!((estimator.window_segments(30_000) - 30.0 * 100.0 / 30.0).abs() < 1e-9);
        let timeout = estimator.timeout(200 * MS);
        assert!((timeout.rto_s - 0.3).abs() < 1e-9 && (timeout.sample_s - 0.1).abs() < 1e-9);
    }

    #[test]
    fn an_answer_to_data_times_the_servers_leg() {
        let mut estimator = Estimator::new(at(0));
        estimator.on_new_data(at(0), TcpSeq(1000), 1000);
        estimator.on_acknowledged(at(30), TcpSeq(1000));
        estimator.on_forwarded(at(40), None, Some(TcpSeq(77)));
        estimator.on_server_packet(at(50), None, TcpSeq(76));
        estimator.on_server_packet(at(60), None, TcpSeq(77));
        assert_eq!(estimator.rtt(), 50 * MS);
    }

    /// A later echo answers a later packet; one that comes late, after a pause, counts only while
    /// there is no better one.
    #[test]
    fn late_answers_do_not_lengthen_the_servers_leg() {
        let mut estimator = Estimator::new(at(0));
        estimator.on_new_data(at(0), TcpSeq(1000), 1000);
        estimator.on_acknowledged(at(30), TcpSeq(1000));
        for (sent, value, echoed, answered) in [(40, 1, 2, 60), (70, 3, 3, 270), (280, 4, 4, 300)] {
            estimator.on_forwarded(at(sent), Some(value), None);
            estimator.on_server_packet(at(answered), Some(echoed), TcpSeq(0));
        }
        assert_eq!(estimator.rtt(), 50 * MS);
        estimator.on_forwarded(at(400), Some(5), None);
        estimator.on_server_packet(at(440), Some(5), TcpSeq(0));
        assert_eq!(estimator.rtt(), 50 * MS, "the smallest of the last seconds");
    }

    #[test]
    fn retransmitted_data_is_no_sample_and_begins_an_epoch() {
        let mut estimator = Estimator::new(at(0));
        estimator.on_new_data(at(0), TcpSeq(1000), 1000);
        assert_eq!(estimator.since_congestion(at(70)), 70 * MS);
        estimator.on_retransmission(at(80), TcpSeq(0));
        estimator.on_acknowledged(at(100), TcpSeq(1000));
        assert_eq!(estimator.rtt(), INITIAL_RTT);
        assert_eq!(estimator.since_congestion(at(100)), 20 * MS);
    }

    #[test]
    fn the_mean_follows_rfc_6298() {
        let mut estimator = Estimator::new(at(0));
        estimator.sample_client_leg(80 * MS);
        estimator.sample_client_leg(160 * MS);
        let leg = estimator.client_leg.expect("two samples");
        assert_eq!((leg.mean, leg.variation, leg.latest), (90 * MS, 50 * MS, 160 * MS));
    }
}
