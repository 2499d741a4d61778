//! UDP packets of constant size at a given load, with or without pauses.

use plait_proto::time::{Duration, Instant};

use super::shape::Pacer;
use super::tally::Tally;
use super::{App, Observation, Outbox, Place};
use crate::packet::{Packet, Protocol};
use crate::prng::Prng;
use crate::scenario::app::{OnOffSpec, UdpSpec};

const HEADERS_BYTES: u32 = 28;

/// A sender of packets of one size, and its receiver.
#[derive(Debug)]
pub(super) struct Cbr {
    place: Place,
    payload_bytes: u32,
    pacer: Pacer,
    pauses: Option<Pauses>,
    next_number: u32,
    arrivals: Arrivals,
    tally: Tally,
}

impl Cbr {
    pub(super) fn new(place: Place, spec: &UdpSpec) -> Self {
        let pacer = Pacer::new(spec.shape.clone(), place.start, spec.payload_bytes);
        Self {
            payload_bytes: spec.payload_bytes,
            pacer,
            pauses: None,
            next_number: 0,
            arrivals: Arrivals::default(),
            tally: Tally::new(place.span),
            place,
        }
    }

    pub(super) fn on_off(place: Place, spec: &OnOffSpec, seed: u64) -> Self {
        let pauses = Pauses::new(spec, place.start, seed);
        let mut cbr = Self { pauses: Some(pauses), ..Self::new(place, &spec.udp) };
        cbr.skip_pauses();
        cbr
    }

    /// Moves the next packet out of a pause.
    fn skip_pauses(&mut self) {
        let Some(pauses) = &mut self.pauses else { return };
        while let Some(at) = self.pacer.next_at().filter(|at| *at < self.place.stop) {
            let on_again = pauses.on_again(at);
            if on_again <= at {
                return;
            }
            self.pacer.skip_to(on_again);
        }
    }
}

impl App for Cbr {
    fn poll_timeout(&self) -> Option<Instant> {
        self.pacer.next_at().filter(|at| *at < self.place.stop)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        while self.poll_timeout().is_some_and(|at| at <= now) {
            self.pacer.advance();
            self.skip_pauses();
            out.push(udp_packet(&self.place, self.next_number, self.payload_bytes, now));
            self.tally.on_sent(now, self.payload_bytes.into());
            self.next_number += 1;
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &Packet, _out: &mut Outbox) {
        self.arrivals.take(now, packet, &mut self.tally);
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        Observation::default()
    }
}

/// A UDP packet of an application's only stream.
pub(super) fn udp_packet(place: &Place, number: u32, payload_bytes: u32, now: Instant) -> Packet {
    let bytes = u16::try_from(payload_bytes + HEADERS_BYTES);
    Packet {
        app: place.app,
        stream: 0,
        number,
        sent_at: now,
        bytes: bytes.expect("a checked scenario's payload fits an IP packet"),
        protocol: Protocol::Udp,
        dscp: place.dscp,
        to: place.data_to,
    }
}

/// Which packets of a stream have arrived.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// A bit for each number.
    seen: Vec<u64>,
    /// The number after the highest that arrived.
    next: u32,
}

impl Arrivals {
    /// Counts a packet; `false` for one that had arrived before. A packet overtaken by a later one
    /// is not goodput.
    pub(super) fn take(&mut self, now: Instant, packet: &Packet, tally: &mut Tally) -> bool {
        let (word, bit) = (packet.number as usize / 64, packet.number % 64);
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] >> bit & 1 == 1 {
            tally.repeated_packets += 1;
            return false;
        }
        self.seen[word] |= 1 << bit;
        tally.on_received(now, packet.sent_at);
        if packet.number >= self.next {
            self.next = packet.number + 1;
            tally.on_goodput(now, u64::from(packet.bytes) - u64::from(HEADERS_BYTES));
        } else {
            tally.reordered_packets += 1;
        }
        true
    }
}

/// Alternating on and off times, on first.
#[derive(Debug)]
struct Pauses {
    on: Duration,
    off: Duration,
    exponential: bool,
    prng: Prng,
    /// The current on time ends at `off_at`, the pause after it at `on_at`.
    off_at: Instant,
    on_at: Instant,
}

impl Pauses {
    fn new(spec: &OnOffSpec, start: Instant, seed: u64) -> Self {
        let (on, off, exponential) = (spec.on, spec.off, spec.exponential);
        let prng = Prng::new(seed);
        let mut pauses = Self { on, off, exponential, prng, off_at: start, on_at: start };
        pauses.draw();
        pauses
    }

    /// The first moment from `at` on at which it is on. Times given must not decrease.
    fn on_again(&mut self, at: Instant) -> Instant {
        while at >= self.on_at {
            self.draw();
        }
        if at < self.off_at { at } else { self.on_at }
    }

    fn draw(&mut self) {
        self.off_at = self.on_at + self.length(self.on);
        self.on_at = self.off_at + self.length(self.off);
    }

    /// At least a microsecond, so that a run has a bounded number of them.
    fn length(&mut self, mean: Duration) -> Duration {
        if !self.exponential {
            return mean;
        }
        // From (0, 1], on a grid of 2^53 steps.
        let uniform = ((self.prng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        mean.mul_f64(-uniform.ln()).max(Duration::from_micros(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Span;
    use crate::packet::End;
    use crate::scenario::rate::{Layer, Shape};

    fn place(stop_ms: u64) -> Place {
        let span = Span { start: Instant::ZERO, end: Instant::FAR_FUTURE };
        Place {
            name: "flow".into(),
            app: 3,
            data_to: End::Customer,
            zero: Instant::ZERO,
            start: Instant::ZERO,
            stop: Instant::from_millis(stop_ms),
            mtu: 1500,
            dscp: 0,
            span,
        }
    }

    fn udp(mbit: f64) -> UdpSpec {
        let shape = Shape::Constant(mbit * 1e6);
        UdpSpec { payload_bytes: 125, shape, told_at: Layer::Offered }
    }

    fn run(app: &mut Cbr) -> Outbox {
        let mut out = Outbox::new();
        while let Some(at) = app.poll_timeout() {
            app.handle_timeout(at, &mut out);
        }
        out
    }

    #[test]
    fn sends_at_its_rate_until_it_stops() {
        let out = run(&mut Cbr::new(place(10), &udp(1.0)));
        let times: Vec<u64> = out.iter().map(|p| p.sent_at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, (0..10).collect::<Vec<_>>());
        assert!(out.iter().all(|packet| packet.bytes == 153 && packet.app == 3));
    }

    #[test]
    fn pauses_are_silent() {
        let ms = Duration::from_millis;
        let spec = OnOffSpec { udp: udp(1.0), on: ms(3), off: ms(5), exponential: false };
        let out = run(&mut Cbr::on_off(place(20), &spec, 1));
        let times: Vec<u64> = out.iter().map(|p| p.sent_at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, [0, 1, 2, 8, 9, 10, 16, 17, 18]);
    }

    #[test]
    fn exponential_times_have_their_mean() {
        let ms = Duration::from_millis;
        let spec = OnOffSpec { udp: udp(1.0), on: ms(10), off: ms(30), exponential: true };
        let sent = run(&mut Cbr::on_off(place(200_000), &spec, 7)).len();
        // A quarter of the time; each time on begins with a packet, which adds half of one.
        assert!((48_000..57_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_packet_counts_once_and_late_ones_are_no_goodput() {
        let mut app = Cbr::new(place(10), &udp(1.0));
        let out = run(&mut app);
        let now = Instant::from_millis(20);
        for number in [0, 2, 1, 2] {
            app.handle_packet(now, &out[number], &mut Outbox::new());
        }
        let tally = app.tally();
        assert_eq!((tally.sent_packets, tally.received_packets), (10, 3));
        assert_eq!((tally.repeated_packets, tally.reordered_packets), (1, 1));
        assert_eq!(tally.goodput_bytes, 2 * 125);
    }
}
