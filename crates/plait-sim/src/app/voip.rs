//! One direction of a voice call: a packet every 20 ms.

use plait_proto::time::{Duration, Instant};

use super::cbr::{Arrivals, udp_packet};
use super::e_model;
use super::tally::Tally;
use super::{App, Observation, Outbox, Place};
use crate::packet::Packet;
use crate::scenario::app::VoipSpec;

const PACKET_TIME: Duration = Duration::from_millis(20);

/// A voice call, without pauses in speech.
#[derive(Debug)]
pub(super) struct Voip {
    place: Place,
    spec: VoipSpec,
    next_at: Instant,
    next_number: u32,
    arrivals: Arrivals,
    tally: Tally,
}

impl Voip {
    pub(super) fn new(place: Place, spec: VoipSpec) -> Self {
        Self {
            spec,
            next_at: place.start,
            next_number: 0,
            arrivals: Arrivals::default(),
            tally: Tally::new(place.span),
            place,
        }
    }

    /// Computed from the share lost or too late, and from the 95th percentile of the others' delay.
    fn mos(&self) -> Option<f64> {
        let sent = self.tally.measured_sent_packets;
        let late = self.tally.delays.above(self.spec.playout);
        let useful = self.tally.measured_received_packets - late;
        let p95_ms = self.tally.delays.quantile_ms(0.95);
        let playout_ms = self.spec.playout.as_secs_f64() * 1e3;
        if sent == 0 {
            return None;
        }
        let loss = 1.0 - useful as f64 / sent as f64;
        let delay_ms = p95_ms.unwrap_or(playout_ms).min(playout_ms);
        let delay_ms = delay_ms + e_model::codec_delay_ms(self.spec.codec);
        Some(e_model::mos(e_model::rating(self.spec.codec, delay_ms, loss)))
    }
}

impl App for Voip {
    fn poll_timeout(&self) -> Option<Instant> {
        (self.next_at < self.place.stop).then_some(self.next_at)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        while self.poll_timeout().is_some_and(|at| at <= now) {
            self.next_at += PACKET_TIME;
            let payload_bytes = self.spec.codec.payload_bytes();
            out.push(udp_packet(&self.place, self.next_number, payload_bytes, now));
            self.tally.on_sent(now, payload_bytes.into());
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
        Observation { mos: self.mos(), ..Observation::default() }
    }
}
