//! Processes an acknowledgement, in this order: account → round-trip time → reordering → probe →
//! losses and state → window → timers.

use plait_proto::congestion::{AckSample, Algorithm, PacketState, Phase};
use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::recovery::{LossHint, Mistake};
use super::{Detector, TcpSender};
use crate::tcp::delivery_rate::RateSample;
use crate::tcp::linux_3_2::Advance;
use crate::tcp::prr::Progress;
use crate::tcp::scoreboard::{Passed, Sent};
use crate::tcp::segment::{Segment, SeqRange};
use crate::tcp::timestamp_ms;

/// What the acknowledgement changed.
#[derive(Debug)]
struct Change {
    /// Newly delivered segments, as they were before.
    delivered: Vec<Sent>,
    delivered_bytes: u64,
    /// Delivered bytes as the rate reduction and the controller count them: without SACK a
    /// duplicate counts as a segment, which the acknowledgement that advances does not count again.
    metered_bytes: u64,
    /// Whether the cumulative acknowledgement advanced.
    advanced: bool,
    /// Whether it reports an arrival, and nothing else.
    is_duplicate: bool,
    /// Whether something was selectively acknowledged.
    has_sacked: bool,
    /// What it passed.
    passed: Passed,
    /// Whether everything had come in order before, and no loss was being repaired.
    was_orderly: bool,
    /// The lowest outstanding byte before.
    una_before: u64,
    /// The highest byte known to have arrived before.
    highest_before: u64,
    /// Bytes outstanding before.
    flight_before: u64,
}

/// What an acknowledgement means for the growth of the window.
#[derive(Clone, Copy, Debug)]
struct Counted {
    bytes: u64,
    /// The controller's state in the newest segment.
    newest: PacketState,
    rtt: Option<Duration>,
}

impl Change {
    /// Time since the last segment acknowledged cumulatively was sent, unless one of them was sent
    /// twice.
    fn age_of_last(&self, now: Instant) -> Option<Duration> {
        let last = self.passed.last.filter(|_| !self.passed.any_resent)?;
        Some(now.since(last.at))
    }
}

impl TcpSender {
    /// `raises_window` says whether it offers more than any before.
    pub(super) fn handle_ack(&mut self, now: Instant, segment: &Segment, raises_window: bool) {
        if segment.ack > self.board.nxt() {
            return;
        }
        let change = self.account(segment, raises_window);
        self.sample_rtt(now, segment, &change);
        self.note_reordering(now, segment, &change);
        self.judge_probe(now, segment, change.advanced, change.flight_before);
        let marked = self.advance_state(now, segment, &change);
        let rate = self.sample_rate(now, &change);
        self.adjust_window(now, segment, &change, (marked, rate));
        if change.advanced || (self.board.sacked_segments() > 0 && self.timers.probe.is_some()) {
            self.restart_timers(now);
        }
    }

    fn account(&mut self, segment: &Segment, raises_window: bool) -> Change {
        let una_before = self.board.una();
        let highest_before = self.board.highest_sacked();
        let flight_before = self.board.flight_bytes();
        let was_orderly = self.phase == Phase::Open && self.board.sacked_segments() == 0;
        let mut delivered = Vec::new();
        let mut again_bytes = 0;
        if let Some(range) = segment.sack.dsack() {
            self.counters.dsacks += 1;
            again_bytes = self.delivered_again(range);
            if let Some(undo) = &mut self.undo {
                undo.on_dsack(range, self.config.segment_bytes);
            }
        }
        if !matches!(self.detector, Detector::NewReno(_)) {
            // Upwards, as Linux takes them: what is highest was sent last, mostly.
            let mut blocks = segment.sack.blocks().to_vec();
            blocks.sort_unstable_by_key(|block| block.start);
            for block in blocks {
                self.board.sack(block, &mut delivered);
            }
        }
        let has_sacked = !delivered.is_empty();
        let passed = self.board.acknowledge(segment.ack, &mut delivered);
        self.in_order = passed.last.map(|sent| sent.first_packet).or(self.in_order);
        let advanced = self.board.una() > una_before;
        self.counters.acked_bytes += self.board.una() - una_before;
        // RFC 5681 section 2: one that changes the window is no duplicate.
        let is_duplicate = segment.ack == una_before && !self.board.is_empty() && !raises_window;
        self.counters.duplicate_acks += u64::from(is_duplicate && !advanced);
        let delivered_bytes: u64 = delivered.iter().map(|sent| sent.range.len()).sum();
        let delivered_bytes = delivered_bytes + again_bytes;
        let metered_bytes = match &self.detector {
            Detector::NewReno(_) if advanced => self.presume_advanced(delivered.len() as u64),
            Detector::NewReno(_) if is_duplicate => self.presume_arrived(),
            _ => delivered_bytes,
        };
        Change {
            delivered,
            delivered_bytes,
            metered_bytes,
            advanced,
            is_duplicate: is_duplicate && !advanced && again_bytes == 0,
            has_sacked,
            passed,
            was_orderly,
            una_before,
            highest_before,
            flight_before,
        }
    }

    /// What arrived a second time was delivered, too, unless no retransmission can have been it
    /// (Linux: `tcp_dsack_seen`).
    fn delivered_again(&mut self, range: SeqRange) -> u64 {
        if self.is_quic() || matches!(self.detector, Detector::Linux32(_)) {
            return 0;
        }
        let segments = range.len().div_ceil(self.config.segment_bytes);
        self.duplicate_segments += segments;
        let is_ours = self.duplicate_segments <= self.counters.retransmits;
        if is_ours { segments * self.config.segment_bytes } else { 0 }
    }

    /// Without SACK: a duplicate means that some segment arrived. Returns its bytes.
    fn presume_arrived(&mut self) -> u64 {
        let Detector::NewReno(reno) = &mut self.detector else { return 0 };
        let mut counts = match self.phase {
            Phase::Open => reno.on_duplicate(self.board.una()),
            Phase::FastRecovery => {
                reno.on_duplicate_in_recovery();
                true
            }
            Phase::RtoRecovery => false,
        };
        counts &= reno.limit(self.board.outstanding(), self.board.len() as u64);
        self.board.presume_arrived(reno.arrived_segments() * self.config.segment_bytes);
        if counts { self.config.segment_bytes } else { 0 }
    }

    /// Without SACK: `segments` were cumulatively acknowledged. Returns the bytes of those that no
    /// duplicate had reported.
    fn presume_advanced(&mut self, segments: u64) -> u64 {
        let Detector::NewReno(reno) = &mut self.detector else { return 0 };
        let new = reno.on_advance(segments, self.phase == Phase::FastRecovery);
        reno.limit(self.board.outstanding(), self.board.len() as u64);
        self.board.presume_arrived(reno.arrived_segments() * self.config.segment_bytes);
        new * self.config.segment_bytes
    }

    /// Samples of segments sent once (Karn): the earliest sent, whose acknowledgement may have been
    /// delayed, for the timeout; the latest sent for the minimum.
    fn sample_rtt(&mut self, now: Instant, segment: &Segment, change: &Change) {
        if change.advanced || (self.is_quic() && !change.delivered.is_empty()) {
            self.rtt.end_backoff();
        }
        if matches!(self.detector, Detector::Linux32(_)) {
            return self.sample_rtt_by_timestamp(now, segment, change);
        }
        let Some((first, latest)) = self.round_trips(now, segment, change) else { return };
        // QUIC leaves the acknowledgement's delay out (RFC 9002 section 5.3).
        self.rtt.on_sample(if self.is_quic() { latest } else { first });
        if let Detector::Quic(quic) = &mut self.detector {
            quic.on_rtt(latest);
        }
        self.rtt.on_min_sample(now, latest);
    }

    /// Times since the first and the last of what was acknowledged were sent. Where a
    /// retransmission was among what was passed, all of that tells nothing, but the echo does
    /// (Linux: `tcp_ack_update_rtt`).
    fn round_trips(
        &self,
        now: Instant,
        segment: &Segment,
        change: &Change,
    ) -> Option<(Duration, Duration)> {
        let una = if change.passed.any_resent && !self.is_quic() { self.board.una() } else { 0 };
        let clean = || {
            let known = change.delivered.iter().filter(|sent| sent.transmissions == 1);
            known.filter(|sent| sent.range.end > una).map(|sent| now.since(sent.at))
        };
        if let (Some(first), Some(latest)) = (clean().max(), clean().min()) {
            return Some((first, latest));
        }
        let has_echo = change.advanced && segment.ts_echo_ms > 0 && !self.is_quic();
        let millis = timestamp_ms(now).saturating_sub(segment.ts_echo_ms).max(1);
        let echo = Duration::from_millis(millis);
        has_echo.then_some((echo, echo))
    }

    /// Linux before 3.12: only an acknowledgement that advances gives samples. The echo, of the
    /// segment that filled the gap, is for the timeout; the age of the last segment acknowledged
    /// for the minimum.
    fn sample_rtt_by_timestamp(&mut self, now: Instant, segment: &Segment, change: &Change) {
        if change.advanced && segment.ts_echo_ms > 0 {
            let millis = timestamp_ms(now).saturating_sub(segment.ts_echo_ms).max(1);
            self.rtt.on_sample(Duration::from_millis(millis));
        }
        if let Some(age) = change.age_of_last(now) {
            self.rtt.on_min_sample(now, age);
        }
    }

    /// Tells the loss detector what arrived, and what arrived late.
    fn note_reordering(&mut self, now: Instant, segment: &Segment, change: &Change) {
        let min_rtt = self.rtt.min_rtt();
        let end = change.highest_before;
        // A retransmission that proved spurious although its gap is not yet the first one.
        let dsack = segment.sack.dsack().map(|range| range.start).filter(|start| {
            self.board.get(*start).is_some_and(|sent| sent.is_sacked && *start < end)
        });
        match &mut self.detector {
            Detector::Sack(_) | Detector::Linux32(_) => {
                let clean = change.delivered.iter().filter(|sent| sent.transmissions == 1);
                let late = clean.map(|sent| sent.range.start).filter(|start| *start < end);
                if let Some(start) = late.chain(dsack).min() {
                    self.detector.on_reordered(SeqRange { start, end });
                }
            }
            Detector::NewReno(_) => {}
            Detector::Quic(quic) => quic.on_ack(segment.number),
            Detector::Rack(rack) => {
                if segment.sack.dsack().is_some() {
                    rack.on_dsack(self.board.una(), self.board.nxt());
                }
                if dsack.is_some() {
                    rack.on_reordered();
                }
                rack.on_ack(now, &change.delivered, end, min_rtt);
            }
        }
    }

    /// Finds losses and moves between the phases; returns whether a loss was newly found.
    fn advance_state(&mut self, now: Instant, segment: &Segment, change: &Change) -> bool {
        let was_repairing = self.phase == Phase::FastRecovery;
        let mistake = self.try_undo(now, segment, change.advanced);
        if matches!(mistake, Some(Mistake::LateOriginal | Mistake::OthersUnderWay)) {
            self.learn_from_late_original(change);
        }
        self.resends_nothing = mistake == Some(Mistake::OthersUnderWay);
        if self.resends_nothing {
            return false;
        }
        if self.phase != Phase::Open && self.is_recovered() {
            self.end_recovery();
        }
        let is_partial = was_repairing && self.phase == Phase::FastRecovery && change.advanced;
        let hint = LossHint {
            is_duplicate: change.is_duplicate,
            may_be_far: change.has_sacked || is_partial,
            flight_before: change.flight_before,
        };
        let marked = self.find_losses_by_sack(now, hint) | self.detect_losses(now, change.advanced);
        if self.begins_episode() {
            self.enter_fast_recovery(now, change.flight_before);
        }
        if self.phase == Phase::Open {
            self.forget_resending();
        }
        marked
    }

    /// An original filled the first gap after its retransmission: it was reordered by as much as
    /// arrived before it.
    fn learn_from_late_original(&mut self, change: &Change) {
        let start = change.una_before;
        match &mut self.detector {
            Detector::NewReno(reno) if self.config.undo => {
                // What Linux has for the highest byte that arrived is the first outstanding one.
                reno.on_undo(SeqRange { start, end: self.board.una() });
            }
            detector => detector.on_reordered(SeqRange { start, end: change.highest_before }),
        }
    }

    fn sample_rate(&mut self, now: Instant, change: &Change) -> RateSample {
        let latest = change.delivered.iter().max_by_key(|sent| (sent.at, sent.range.end));
        let min_rtt = self.rtt.min_rtt().unwrap_or_default();
        let Some(sent) = latest else { return RateSample::default() };
        let sample =
            self.rate.on_delivered(now, change.delivered_bytes, (sent.at, sent.rate), min_rtt);
        if sample.rate > Rate::ZERO {
            self.delivery_rate = sample.rate;
        }
        sample
    }

    fn adjust_window(
        &mut self,
        now: Instant,
        segment: &Segment,
        change: &Change,
        (marked, rate): (bool, RateSample),
    ) {
        let in_flight_bytes = self.board.in_flight_bytes();
        if let Some(prr) = &mut self.prr {
            prr.on_ack(Progress {
                delivered_bytes: change.metered_bytes,
                in_flight_bytes,
                is_safe: change.advanced && !marked,
            });
        }
        let Some(newest) = change.delivered.iter().max_by_key(|sent| (sent.at, sent.range.end))
        else {
            return;
        };
        let Some(counted) = self.counted(now, segment, change, newest) else { return };
        let window = self.controller.window();
        let is_used = self.window_use.is_used(window, self.controller.in_slow_start());
        self.controller.on_ack(&AckSample {
            now,
            acked_bytes: counted.bytes,
            newest: counted.newest,
            in_order: self.in_order.filter(|_| !self.is_quic()),
            rtt: counted.rtt,
            way_back_excess: None,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            in_flight_bytes,
            lost_bytes: self.board.take_newly_lost_bytes(),
            delivery_rate: rate.rate,
            rate_is_app_limited: rate.is_app_limited,
            app_limited: !is_used,
            phase: self.phase,
            siblings: &self.siblings,
        });
    }

    /// What the controller is told, if anything. Linux 3.2 counts acknowledgements that advance.
    fn counted(
        &mut self,
        now: Instant,
        segment: &Segment,
        change: &Change,
        newest: &Sent,
    ) -> Option<Counted> {
        let Detector::Linux32(linux) = &mut self.detector else {
            let round_trips = self.round_trips(now, segment, change);
            let grows = change.advanced || self.grows_out_of_order();
            return Some(Counted {
                bytes: if grows { change.metered_bytes } else { 0 },
                newest: newest.packet,
                rtt: round_trips.map(|(_, latest)| latest),
            });
        };
        let last = change.passed.last?;
        let segments = linux.counted_segments(Advance {
            segments: change.passed.segments,
            is_orderly: change.was_orderly,
            in_slow_start: self.controller.in_slow_start(),
        });
        let bytes = segments * self.config.segment_bytes;
        Some(Counted { bytes, newest: last.packet, rtt: change.age_of_last(now) })
    }

    /// Whether what arrives beyond a gap grows the window: in Linux only once reordering was seen
    /// that the initial threshold of three does not bear. Controllers that measure rates are told
    /// of all.
    fn grows_out_of_order(&self) -> bool {
        let measures_rate = self.config.controller.algorithm == Algorithm::Gauge;
        measures_rate
            || match &self.detector {
                Detector::Sack(reordering) => reordering.has_risen(),
                Detector::Rack(rack) => rack.reordering_seen(),
                Detector::NewReno(_) | Detector::Quic(_) | Detector::Linux32(_) => true,
            }
    }
}
