//! The closed loop of one path: its congestion controller, its pacer, and what they are told.
//!
//! A datagram counts at the IP layer, headers included. A loss opens an episode that lasts until
//! something sent after it was found has arrived (RFC 9002 section 7.3.2).

use super::pacer::Pacer;
use super::rtt::RttEstimator;
use super::sent::{AckOutcome, SentDatagrams};
use crate::congestion::{
    AckSample, Controller, ControllerConfig, Episode, Loss, PacketState, Phase, Rto, Sent, Sibling,
    Start,
};
use crate::time::Instant;
use crate::units::Rate;

/// The unit of growth: a full datagram on most links.
const SEGMENT_BYTES: u64 = 1500;

/// Says how much a path may have in flight, and when the next datagram may leave.
#[derive(Debug)]
pub struct PathCongestion {
    config: ControllerConfig,
    controller: Box<dyn Controller>,
    pacer: Pacer,
    /// What was found lost below this number belongs to the present episode.
    episode_below: u64,
    in_episode: bool,
}

impl PathCongestion {
    /// A new path's.
    pub fn new(config: &ControllerConfig) -> Self {
        Self {
            config: *config,
            controller: config.build(Start::ten_segments(SEGMENT_BYTES)),
            pacer: Pacer::default(),
            episode_below: 0,
            in_episode: false,
        }
    }

    /// The path leads elsewhere: nothing is known of it.
    pub fn begin_anew(&mut self) {
        *self = Self::new(&self.config);
    }

    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        self.controller.window()
    }

    /// From when on the next datagram may leave.
    pub const fn ready_at(&self) -> Instant {
        self.pacer.ready_at()
    }

    /// What the path is believed to carry.
    pub fn bandwidth(&self) -> Option<Rate> {
        self.controller.bandwidth()
    }

    /// Whether the controller has not found yet what the path carries.
    pub fn is_starting(&self) -> bool {
        self.controller.in_slow_start()
    }

    /// Whether the path could have sent for a while and did not.
    pub fn is_starved(&self, now: Instant) -> bool {
        self.pacer.is_starved(now)
    }

    /// The rate at which datagrams leave: the controller's, or a little above what its window
    /// gives in a round trip, twice that in slow start (as Linux paces).
    pub fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        self.controller.pacing_rate().or_else(|| {
            let percent = if self.controller.in_slow_start() { 200 } else { 120 };
            let window = self.controller.window();
            rtt.smoothed().map(|srtt| Rate::from_bytes_over(window * percent / 100, srtt))
        })
    }

    /// The path may carry more than it did a moment ago.
    pub fn look_for_more(&mut self, now: Instant) {
        self.controller.on_relief(now);
    }

    /// All that may leave now has left. `waits` when there is more; only time for which the window
    /// has room is the pacer's.
    pub fn note_rest(&mut self, now: Instant, in_flight_bytes: u64, waits: bool) {
        let has_window =
            in_flight_bytes == 0 || in_flight_bytes + SEGMENT_BYTES <= self.controller.window();
        self.pacer.note_rest(now, waits && has_window);
    }

    /// A datagram left; it is in `in_flight_bytes`. Gives what belongs to it.
    pub fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        in_flight_bytes: u64,
        rtt: &RttEstimator,
    ) -> PacketState {
        self.pacer.on_sent(now, bytes, self.pacing_rate(rtt));
        self.controller.on_sent(&Sent { now, bytes, in_flight_bytes })
    }

    /// Whether the controller needs to know how the bond's other paths stand.
    pub fn is_coupled(&self) -> bool {
        self.controller.is_coupled()
    }

    /// How the path stands, for the controllers of the others.
    pub fn as_sibling(&self, sent: &SentDatagrams, rtt: &RttEstimator) -> Sibling {
        Sibling {
            window_bytes: self.controller.window(),
            in_flight_bytes: sent.in_flight_bytes(),
            srtt: rtt.smoothed(),
            delivery_rate: sent.delivery_rate(),
            loss_gap_bytes: self.controller.loss_gap_bytes(),
        }
    }

    /// Something arrived, or was found lost by what did. `siblings` are the bond's other paths, if
    /// the controller is coupled.
    pub fn on_ack(
        &mut self,
        now: Instant,
        outcome: &AckOutcome,
        sent: &SentDatagrams,
        rtt: &RttEstimator,
        siblings: &[Sibling],
    ) {
        let in_flight_bytes = sent.in_flight_bytes();
        let lost_anew = outcome.lost_bytes > 0 && !self.in_episode;
        if lost_anew {
            let flight_bytes = in_flight_bytes + outcome.lost_bytes;
            self.controller.on_loss(&Loss { now, flight_bytes });
            self.in_episode = true;
            self.episode_below = sent.next_number();
        }
        let Some(newest) = outcome.newest else { return };
        if self.in_episode && newest.number >= self.episode_below {
            self.in_episode = false;
        }
        let was_in_flight = in_flight_bytes + outcome.acked_bytes + outcome.lost_bytes;
        self.controller.on_ack(&AckSample {
            now,
            acked_bytes: outcome.acked_bytes,
            newest: newest.packet,
            in_order: None,
            rtt: outcome.elapsed.and(rtt.latest()),
            way_back_excess: Some(rtt.way_back_excess()),
            srtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            in_flight_bytes,
            lost_bytes: outcome.lost_bytes,
            delivery_rate: newest.delivery_rate(),
            rate_is_app_limited: newest.app_limited,
            app_limited: was_in_flight + 2 * SEGMENT_BYTES < self.controller.window(),
            phase: if self.in_episode { Phase::FastRecovery } else { Phase::Open },
            siblings,
        });
    }

    /// The path fell silent.
    pub fn on_silence(&mut self, now: Instant) {
        self.controller.on_silence(now);
    }

    /// Nothing came back for so long that what was on its way counts as lost.
    pub fn on_timeout(&mut self, now: Instant, lost_bytes: u64, sent: &SentDatagrams) {
        let episode = if self.in_episode { Episode::Continued } else { Episode::New };
        let in_flight_bytes = sent.in_flight_bytes();
        let flight_bytes = in_flight_bytes + lost_bytes;
        self.controller.on_rto(&Rto { now, flight_bytes, in_flight_bytes, episode });
        self.in_episode = true;
        self.episode_below = sent.next_number();
    }
}
