//! Tells a policer's drops from what the path loses of itself.
//!
//! A policer drops what exceeds a rate and leaves no queue, so its losses look like a radio link's.
//! They differ in one thing: where less is sent a policer loses a smaller share, a bad link the
//! same. So a share of loss that is new, without a queue, is put to the test by sending less for a
//! moment. A policer's rate then bounds what is sent until sending a little more, for longer and
//! longer, is seen to arrive. What comes of it is docs/algorithms/gauge.md, "Policers".

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Share of loss above the known one that calls for a test.
const SUSPECT_PERMILLE: u64 = 20;
/// Share above the known one that says that a policer's rate was measured a little too high, and
/// what it is then corrected to, in permille.
const BOUND_PERMILLE: u64 = 10;
const CORRECTION_PERMILLE: u64 = 990;
/// After so many corrections that did not help it is the path's own.
const CORRECTIONS_MAX: u32 = 3;
/// Losses that make a case, in segments.
const SUSPECT_LOSSES: u64 = 16;
/// Standard deviations that chance explains.
const CHANCE_DEVIATIONS: u64 = 3;
/// What is settled within so long is settled at one moment.
const MOMENT: Duration = Duration::from_millis(8);
/// Outcomes, in segments, and time, in round trips too, after which counting begins anew.
const BLOCK_SEGMENTS: u64 = 500;
const BLOCK_TIME: Duration = Duration::from_millis(200);
const BLOCK_RTTS: u32 = 4;
/// Losses not farther apart are of one run.
const RUN_GAP: Duration = Duration::from_millis(30);
/// A policer that loses in runs, since what it is sent comes in bursts, lets no less pass within
/// them than arrives in the mean; a radio link does. In per cent.
const RUN_RATE_PERCENT: u64 = 95;
/// And no less than this part of what the path is believed to carry, in per cent: a burst makes
/// that too much, by so many times at most.
const RUN_BELIEVED_PERCENT: u64 = 30;
/// Losses spread over time are a queue's that overflowed, and no policer's, if far less arrived
/// between them than in the mean: a policer lets no less pass then. In per cent.
const SPREAD_RATE_PERCENT: u64 = 50;
/// So many blocks may pass until a run's rate is known.
const RUN_BLOCKS: u64 = 4;
/// Time between losses over which a policer's rate is measured, at least; and in round trips.
const MEASURED_FOR: Duration = Duration::from_millis(50);
const MEASURED_RTTS: u32 = 2;
/// And for so long where it is less than half of what the path is believed to carry: a radio that
/// pauses while its queue overflows has as little for a while.
const FAR_BELOW_FOR: Duration = Duration::from_millis(150);
/// A test sends so much of what arrived, in permille.
const TRIAL_PERMILLE: u64 = 920;
/// Losses that a test waits for, in segments, if the path lost the same share as before; a policer
/// loses less than this part of them, in per cent. So many losses decide for the path's own
/// before its end.
const TRIAL_LOSSES: u64 = 24;
const OWN_PERCENT: u64 = 45;
const OWN_LOSSES: u64 = 8;
/// What is sent of a policer's rate, in permille; with the margin of pacing its tokens come back.
const BOUND_SENT_PERMILLE: u64 = 995;
/// A test for more sends so much of the rate, in permille, one after the other. Beyond the last
/// there is no policer.
const LIFTS: [u64; 3] = [1060, 1120, 1250];
/// More where twice the burst would not have arrived beyond the rate within this time.
const LIFT_TIME: Duration = Duration::from_secs(1);
/// At most so much.
const LIFT_MAX: u64 = 1500;
/// It goes on until so many times the known burst has arrived beyond the rate.
const LIFT_BURSTS: u64 = 2;
/// The burst that is assumed before one was seen: so much time of the rate, so many bytes at most.
const BURST_TIME: Duration = Duration::from_millis(100);
const BURST_BYTES_MAX: u64 = 64_000;
/// Losses, in segments, that end it.
const LIFT_LOSSES: u64 = 4;
/// Time from one such test to the next; twice as long with each that was lost, so often at most.
const LIFT_INTERVAL: Duration = Duration::from_secs(1);
const LIFT_DOUBLINGS: u32 = 4;
/// A test that shows nothing for so long had too little to send.
const TEST_TIME_MAX: Duration = Duration::from_secs(3);
/// Losses are found so much later than what was sent after them arrives, where packets overtake
/// each other; till then they belong to what was sent before a test.
const LOSSES_LATE: Duration = Duration::from_millis(25);

/// What an acknowledgement settles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) now: Instant,
    pub(super) acked_bytes: u64,
    pub(super) lost_bytes: u64,
    /// Place of the newest that arrived in the order of sending, and of what was sent last.
    pub(super) newest: u64,
    pub(super) sent_last: u64,
    /// The controller cruises, and no queue stands.
    pub(super) is_steady: bool,
    pub(super) has_queue: bool,
    /// Too little was there to send.
    pub(super) is_app_limited: bool,
    pub(super) segment_bytes: u64,
    pub(super) min_rtt: Duration,
    /// What the path is known to lose of itself.
    pub(super) floor_permille: u64,
    /// What it is believed to carry.
    pub(super) bandwidth: Rate,
}

/// What a test found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// The path loses this share of itself, whatever is sent.
    Own { permille: u64 },
    /// A policer lets this rate pass; the path loses the share of itself.
    Policed { rate: Rate, permille: u64 },
    /// There is no policer any more, and this rate arrives.
    Free(Rate),
}

/// Outcomes since counting began.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    since: Option<Instant>,
    acked_bytes: u64,
    lost_bytes: u64,
    /// Moments at which something was settled, and those at which there was a loss.
    moments: u64,
    moment_at: Option<Instant>,
    lossy_moments: u64,
    lossy_at: Option<Instant>,
    /// What arrived from one loss to a later one, and in what time: a policer has no tokens left at
    /// either.
    between_bytes: u64,
    between: Duration,
    /// The same within runs of losses.
    run_bytes: u64,
    run_time: Duration,
    /// The latest loss of this stretch, and what arrived since.
    last_loss: Option<(Instant, u64)>,
}

impl Count {
    fn add(&mut self, settled: &Settled) {
        self.since.get_or_insert(settled.now);
        self.acked_bytes += settled.acked_bytes;
        self.lost_bytes += settled.lost_bytes;
        if let Some((_, bytes)) = &mut self.last_loss {
            *bytes += settled.acked_bytes;
        }
        let is_another = |at: Option<Instant>| at.is_none_or(|at| settled.now.since(at) >= MOMENT);
        if is_another(self.moment_at) {
            self.moment_at = Some(settled.now);
            self.moments += 1;
        }
        if settled.lost_bytes > 0 && is_another(self.lossy_at) {
            self.lossy_at = Some(settled.now);
            self.lossy_moments += 1;
            if let Some((at, bytes)) = self.last_loss.replace((settled.now, 0)) {
                let elapsed = settled.now.since(at);
                self.between_bytes += bytes;
                self.between += elapsed;
                if elapsed <= RUN_GAP {
                    self.run_bytes += bytes;
                    self.run_time += elapsed;
                }
            }
        }
    }

    /// What comes next does not follow what came last.
    fn break_off(&mut self) {
        self.last_loss = None;
    }

    fn bytes(&self) -> u64 {
        self.acked_bytes + self.lost_bytes
    }

    fn permille(&self) -> u64 {
        super::model::permille(self.lost_bytes, self.acked_bytes)
    }

    /// Whether more was lost than `permille` and chance explain, by `above`.
    fn exceeds(&self, permille: u64, above: u64, segment_bytes: u64) -> bool {
        let segments = self.bytes() / segment_bytes;
        let lost = self.lost_bytes * 1000 / segment_bytes;
        let chance = CHANCE_DEVIATIONS * (segments * permille * 1000).isqrt();
        lost > segments * (permille + above) + chance
    }

    /// Whether enough was counted to begin anew.
    fn is_full(&self, settled: &Settled) -> bool {
        let time = BLOCK_TIME.max(settled.min_rtt * BLOCK_RTTS);
        self.bytes() >= BLOCK_SEGMENTS * settled.segment_bytes
            && self.since.is_some_and(|since| settled.now.since(since) >= time)
    }

    /// Whether losses are spread over time as those of a policer are, which drops whatever exceeds
    /// its rate; half as much as single losses are by chance will do.
    fn is_spread(&self, segment_bytes: u64) -> bool {
        let lost = self.lost_bytes / segment_bytes;
        2 * self.lossy_moments >= self.moments.min(lost)
    }

    /// The rate of what arrived within runs of losses, if a policer lets as much pass.
    fn run_rate(&self, settled: &Settled) -> Option<Rate> {
        if self.run_time.is_zero() {
            return None;
        }
        let rate = Rate::from_bytes_over(self.run_bytes, self.run_time);
        let least = self.mean(settled)?.bits_per_second() / 100 * RUN_RATE_PERCENT;
        let least = least.max(settled.bandwidth.bits_per_second() / 100 * RUN_BELIEVED_PERCENT);
        Some(rate).filter(|rate| rate.bits_per_second() >= least)
    }

    /// The rate of all that arrived.
    fn mean(&self, settled: &Settled) -> Option<Rate> {
        let elapsed = settled.now.since(self.since?);
        (!elapsed.is_zero()).then(|| Rate::from_bytes_over(self.acked_bytes, elapsed))
    }

    /// The rate of what arrived between losses.
    fn rate(&self, min_rtt: Duration) -> Option<Rate> {
        let enough = MEASURED_FOR.max(min_rtt * MEASURED_RTTS);
        (self.between >= enough).then(|| Rate::from_bytes_over(self.between_bytes, self.between))
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    /// Nothing is known of a policer.
    #[default]
    Watch,
    /// Less is sent, to see whether a smaller share is lost.
    Trial { rate: Rate, before: Count },
    /// A policer lets this rate pass.
    Bound { rate: Rate },
    /// More than that is sent; outcomes count since the time given.
    Lift { rate: Rate, step: usize, counts_since: Option<Instant> },
}

fn share(rate: Rate, permille: u64) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second().saturating_mul(permille) / 1000)
}

/// Watches for a policer and bounds the rate to its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    phase: Phase,
    /// When the phase began, and what had been sent then.
    since: Instant,
    sent_before: u64,
    /// When outcomes of what was sent in it began to arrive.
    seen_since: Option<Instant>,
    /// Corrections of a policer's rate since it was measured.
    corrections: u32,
    count: Count,
    /// Share that was seen not to depend on what is sent.
    own_permille: u64,
    /// The longest burst that was seen to pass.
    burst_bytes: u64,
    /// Tests for more that were lost in a row.
    lifts_lost: u32,
}

impl Policer {
    /// Whether a policer's rate is known: it is then what the path carries.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.phase, Phase::Bound { .. } | Phase::Lift { .. })
    }

    /// What may arrive, at most; `None` when nothing bounds it.
    pub(super) fn bound(&self) -> Option<Rate> {
        match self.phase {
            Phase::Watch => None,
            Phase::Trial { rate, .. } => Some(share(rate, TRIAL_PERMILLE)),
            Phase::Bound { rate } => Some(share(rate, BOUND_SENT_PERMILLE)),
            Phase::Lift { rate, step, .. } => Some(share(rate, self.lift(rate, step))),
        }
    }

    /// What a test for more sends of the rate, in permille.
    fn lift(&self, rate: Rate, step: usize) -> u64 {
        let enough = LIFT_BURSTS * self.burst_bytes * 1000 / rate.bytes_in(LIFT_TIME).max(1);
        LIFTS[step].max((1000 + enough).min(LIFT_MAX))
    }

    /// What the losses of a steady round may teach at most, in permille.
    pub(super) fn teaches_permille(&self) -> u64 {
        match self.phase {
            Phase::Watch => (self.own_permille * 5 / 4).max(SUSPECT_PERMILLE),
            _ => self.own_permille,
        }
    }

    /// The path is another, or its rate is.
    pub(super) fn forget(&mut self) {
        *self = Self { own_permille: self.own_permille, ..Self::default() };
    }

    fn begin(&mut self, settled: &Settled, phase: Phase) {
        self.phase = phase;
        self.since = settled.now;
        self.sent_before = settled.sent_last;
        self.seen_since = None;
        self.count = Count::default();
    }

    pub(super) fn on_ack(&mut self, settled: &Settled) -> Option<Finding> {
        if settled.newest > self.sent_before {
            self.seen_since.get_or_insert(settled.now);
        }
        let is_seen = self.seen_since.is_some_and(|at| settled.now.since(at) >= LOSSES_LATE);
        let counts = settled.is_steady && is_seen;
        if !counts {
            self.count.break_off();
        }
        match self.phase {
            Phase::Watch => {
                if counts {
                    self.watch(settled);
                }
                None
            }
            Phase::Trial { rate, before } => self.on_trial(settled, counts, rate, before),
            Phase::Bound { rate } => {
                self.on_bound(settled, counts, rate);
                None
            }
            Phase::Lift { rate, step, counts_since } => {
                if settled.has_queue {
                    // Before a policer there is none.
                    self.begin(settled, Phase::Watch);
                    return Some(Finding::Free(rate));
                }
                let Some(since) = counts_since.filter(|_| counts) else {
                    if is_seen {
                        let counts_since = Some(settled.now);
                        self.phase = Phase::Lift { rate, step, counts_since };
                    }
                    return self.give_up_lift(settled, rate);
                };
                self.on_lift(settled, rate, step, since)
            }
        }
    }

    /// Whether losses so far are more than the path's own, by `above`.
    fn are_more(&self, settled: &Settled, above: u64) -> bool {
        let own = self.own_permille.max(settled.floor_permille);
        self.count.lost_bytes >= SUSPECT_LOSSES * settled.segment_bytes
            && self.count.exceeds(own, above, settled.segment_bytes)
    }

    /// The rate that a policer lets pass, if there is one: losses are more than the path's own.
    fn suspected_rate(&self, settled: &Settled) -> Option<Rate> {
        if !self.are_more(settled, SUSPECT_PERMILLE) {
            return None;
        }
        let run_rate = self.count.run_rate(settled);
        let run_rate = run_rate.filter(|_| self.count.run_time >= MEASURED_FOR);
        if !self.count.is_spread(settled.segment_bytes) {
            return run_rate;
        }
        // From one run to the next the bucket may have been full.
        let rate = self.count.rate(settled.min_rtt)?;
        let rate = rate.max(run_rate.unwrap_or(rate));
        let least = self.count.mean(settled)?.bits_per_second() / 100 * SPREAD_RATE_PERCENT;
        let is_far_below = rate.bits_per_second() < settled.bandwidth.bits_per_second() / 2;
        let is_long = !is_far_below || self.count.between >= FAR_BELOW_FOR;
        (rate.bits_per_second() >= least && is_long).then_some(rate)
    }

    fn watch(&mut self, settled: &Settled) {
        self.count.add(settled);
        if let Some(rate) = self.suspected_rate(settled) {
            let trial = Phase::Trial { rate, before: self.count };
            return self.begin(settled, trial);
        }
        let is_open = self.count.run_rate(settled).is_some()
            && self.count.bytes() < RUN_BLOCKS * BLOCK_SEGMENTS * settled.segment_bytes;
        if self.count.is_full(settled) && !is_open {
            let share = self.count.permille();
            // Runs of losses are the path's own: no policer loses in runs what comes evenly.
            let is_in_runs = !self.count.is_spread(settled.segment_bytes);
            if share < self.own_permille / 2 || (is_in_runs && share > self.own_permille) {
                self.own_permille = (self.own_permille * 3 + share) / 4;
            }
            self.count = Count::default();
        }
    }

    fn on_trial(
        &mut self,
        settled: &Settled,
        counts: bool,
        rate: Rate,
        before: Count,
    ) -> Option<Finding> {
        if settled.now.since(self.since) > TEST_TIME_MAX {
            self.begin(settled, Phase::Watch);
            return None;
        }
        if !counts {
            return None;
        }
        self.count.add(settled);
        let lost = self.count.lost_bytes / settled.segment_bytes;
        let expected = self.count.bytes() * before.permille() / 1000 / settled.segment_bytes;
        let is_over = expected >= TRIAL_LOSSES;
        let is_own = lost * 100 >= expected * OWN_PERCENT;
        if is_own && (is_over || lost >= OWN_LOSSES) {
            let lost_bytes = before.lost_bytes + self.count.lost_bytes;
            let acked_bytes = before.acked_bytes + self.count.acked_bytes;
            self.own_permille = super::model::permille(lost_bytes, acked_bytes);
            self.begin(settled, Phase::Watch);
            return Some(Finding::Own { permille: self.own_permille });
        }
        if !is_over {
            return None;
        }
        let is_certain = lost >= OWN_LOSSES;
        self.own_permille = if is_certain { self.count.permille() } else { 0 };
        self.corrections = 0;
        if self.burst_bytes == 0 {
            self.burst_bytes = rate.bytes_in(BURST_TIME).min(BURST_BYTES_MAX);
        }
        self.lifts_lost = 0;
        self.begin(settled, Phase::Bound { rate });
        Some(Finding::Policed { rate, permille: self.own_permille })
    }

    fn on_bound(&mut self, settled: &Settled, counts: bool, rate: Rate) {
        if counts {
            self.count.add(settled);
            if let Some(measured) = self.suspected_rate(settled) {
                let trial = Phase::Trial { rate: measured.min(rate), before: self.count };
                return self.begin(settled, trial);
            }
            if self.count.is_full(settled) {
                self.correct(settled, rate);
                self.count = Count::default();
            }
        }
        let wait = LIFT_INTERVAL * (1 << self.lifts_lost.min(LIFT_DOUBLINGS));
        if settled.now.since(self.since) >= wait && !settled.is_app_limited {
            self.begin(settled, Phase::Lift { rate, step: 0, counts_since: None });
        }
    }

    /// A block's losses may say that the policer's rate is a little less, or what the path loses of
    /// itself beside.
    fn correct(&mut self, settled: &Settled, rate: Rate) {
        if !self.are_more(settled, BOUND_PERMILLE) || !self.count.is_spread(settled.segment_bytes) {
            return;
        }
        if self.corrections == CORRECTIONS_MAX {
            self.own_permille = self.count.permille();
            return;
        }
        self.corrections += 1;
        self.phase = Phase::Bound { rate: share(rate, CORRECTION_PERMILLE) };
    }

    fn give_up_lift(&mut self, settled: &Settled, rate: Rate) -> Option<Finding> {
        if settled.now.since(self.since) > TEST_TIME_MAX {
            self.begin(settled, Phase::Bound { rate });
        }
        None
    }

    fn on_lift(
        &mut self,
        settled: &Settled,
        rate: Rate,
        step: usize,
        since: Instant,
    ) -> Option<Finding> {
        self.count.add(settled);
        let beyond = self.count.bytes().saturating_sub(rate.bytes_in(settled.now.since(since)));
        let is_lossy = self.count.lost_bytes >= LIFT_LOSSES * settled.segment_bytes
            && self.count.exceeds(self.own_permille, BOUND_PERMILLE, settled.segment_bytes);
        if is_lossy {
            self.burst_bytes = self.burst_bytes.max(beyond);
            self.lifts_lost += 1;
            self.begin(settled, Phase::Bound { rate });
            return None;
        }
        if beyond < LIFT_BURSTS * self.burst_bytes {
            return self.give_up_lift(settled, rate);
        }
        let rate = share(rate, self.lift(rate, step));
        self.lifts_lost = 0;
        if step + 1 == LIFTS.len() {
            // Should there be one after all, it lets longer bursts pass.
            self.burst_bytes *= 2;
            self.begin(settled, Phase::Watch);
            return Some(Finding::Free(rate));
        }
        self.begin(settled, Phase::Lift { rate, step: step + 1, counts_since: None });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1500;
    const STEP: Duration = Duration::from_millis(5);
    /// What is sent while nothing bounds it.
    const SENT: Rate = Rate::from_mbit(35);

    /// A sender that obeys, and a path that drops.
    #[derive(Default)]
    struct Path {
        policer: Policer,
        now: Instant,
        sent_bytes: u64,
        sent_exactly: u64,
        tokens: u64,
        random: u64,
        findings: Vec<Finding>,
    }

    impl Path {
        /// One segment; `policed` with its bucket, and a share of random loss in runs.
        fn is_lost(&mut self, policed: Option<(Rate, u64)>, loss_permille: u64, run: u64) -> bool {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = self.sent_bytes / SEGMENT / run;
            let draw = match run {
                1 => (self.random >> 33) % 1000,
                _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1000,
            };
            if policed.is_some() {
                if self.tokens < SEGMENT {
                    return true;
                }
                self.tokens -= SEGMENT;
            }
            draw < loss_permille
        }

        /// Gives the share that was lost, in permille.
        fn run(&mut self, ms: u64, policed: Option<(Rate, u64)>, loss: u64, run: u64) -> u64 {
            let end = self.now + Duration::from_millis(ms);
            let (mut acked, mut lost) = (0, 0);
            while self.now < end {
                self.now += STEP;
                if let Some((rate, bucket)) = policed {
                    self.tokens = (self.tokens + rate.bytes_in(STEP)).min(bucket);
                }
                let rate = self.policer.bound().map_or(SENT, |bound| bound.min(SENT));
                self.sent_exactly += share(rate, 990).bytes_in(STEP);
                let (mut acked_bytes, mut lost_bytes) = (0, 0);
                while self.sent_bytes + SEGMENT <= self.sent_exactly {
                    self.sent_bytes += SEGMENT;
                    match self.is_lost(policed, loss, run) {
                        true => lost_bytes += SEGMENT,
                        false => acked_bytes += SEGMENT,
                    }
                }
                (acked, lost) = (acked + acked_bytes, lost + lost_bytes);
                let finding = self.policer.on_ack(&Settled {
                    now: self.now,
                    acked_bytes,
                    lost_bytes,
                    newest: self.sent_bytes,
                    sent_last: self.sent_bytes,
                    is_steady: true,
                    has_queue: false,
                    is_app_limited: false,
                    segment_bytes: SEGMENT,
                    min_rtt: Duration::from_millis(20),
                    floor_permille: 0,
                    bandwidth: SENT,
                });
                self.findings.extend(finding);
            }
            lost * 1000 / (acked + lost)
        }
    }

    #[test]
    fn a_policers_rate_is_found_and_kept() {
        for (mbit, bucket) in [(30, 32_000), (20, 64_000), (8, 32_000), (30, 256_000)] {
            let (mut path, policed) = (Path::default(), Some((Rate::from_mbit(mbit), bucket)));
            path.run(3_000, policed, 0, 1);
            let bound = path.policer.bound().unwrap();
            let low = Rate::from_bits_per_second(mbit * 960_000);
            let high = Rate::from_bits_per_second(mbit * 1_080_000);
            assert!((low..=high).contains(&bound), "{mbit} Mbit/s, {bucket}: {bound}");
            let lost = path.run(20_000, policed, 0, 1);
            assert!(lost <= 15, "{mbit} Mbit/s, {bucket}: {lost} permille");
        }
    }

    #[test]
    fn what_is_lost_whatever_is_sent_is_the_paths_own() {
        for loss in [30, 50, 100, 150] {
            let mut path = Path::default();
            path.run(10_000, None, loss, 1);
            let own = |finding: &Finding| matches!(finding, Finding::Own { .. });
            assert!(path.findings.iter().all(own), "{loss}: {:?}", path.findings);
            let teaches = path.policer.teaches_permille();
            assert!(teaches >= loss, "{loss} permille: {teaches}");
        }
    }

    #[test]
    fn a_policer_beside_random_loss_is_told_from_it() {
        let (mut path, policed) = (Path::default(), Some((Rate::from_mbit(25), 64_000)));
        path.run(3_000, policed, 10, 1);
        let lost = path.run(20_000, policed, 10, 1);
        assert!((8..=30).contains(&lost), "{lost} permille");
    }

    #[test]
    fn runs_of_losses_are_no_policer() {
        let mut path = Path::default();
        path.run(20_000, None, 30, 30);
        assert!(!path.findings.iter().any(|one| matches!(one, Finding::Policed { .. })));
        assert!(path.policer.teaches_permille() >= 20);
    }

    /// What is counted of steps of 8 ms, each with bytes that arrived and bytes that were lost.
    fn count(steps: impl IntoIterator<Item = (u64, u64)>) -> (Settled, Count) {
        let mut count = Count::default();
        let mut settled = Settled {
            now: Instant::ZERO,
            acked_bytes: 0,
            lost_bytes: 0,
            newest: 0,
            sent_last: 0,
            is_steady: true,
            has_queue: false,
            is_app_limited: true,
            segment_bytes: SEGMENT,
            min_rtt: Duration::from_millis(40),
            floor_permille: 0,
            bandwidth: Rate::from_mbit(60),
        };
        for (acked_bytes, lost_bytes) in steps {
            let now = settled.now + MOMENT;
            settled = Settled { now, acked_bytes, lost_bytes, ..settled };
            count.add(&settled);
        }
        (settled, count)
    }

    #[test]
    fn regression_a_rate_far_below_what_arrived_is_no_policers() {
        let suspected = |before: usize, lossy: usize| {
            let spread = core::iter::repeat_n((15_000, 15_000), lossy);
            let (settled, count) = count(core::iter::repeat_n((200_000, 0), before).chain(spread));
            assert!(count.is_spread(SEGMENT));
            Policer { count, ..Policer::default() }.suspected_rate(&settled)
        };
        assert_eq!(suspected(0, 40), Some(Rate::from_mbit(15)));
        assert_eq!(suspected(12, 40), None, "a radio that others held back for a while");
        assert_eq!(suspected(0, 15), None, "a quarter of what it is believed to carry");
    }

    /// An inner flow whose window is less than the path takes in a round trip sends bursts, and the
    /// bucket is full at the beginning of each.
    #[test]
    fn the_rate_within_runs_of_losses_is_the_policers() {
        // 60 Mbit/s for 40 ms of 80, of which 30 pass once the bucket is empty.
        let burst = [(60_000, 0); 2].into_iter().chain([(30_000, 30_000); 3]);
        let cycle = burst.chain([(0, 0); 5]);
        let (settled, counted) = count(core::iter::repeat_n(cycle, 6).flatten());
        assert!(!counted.is_spread(SEGMENT));
        assert_eq!(counted.run_rate(&settled), Some(Rate::from_mbit(30)));
        let far_more = Settled { bandwidth: Rate::from_mbit(150), ..settled };
        assert_eq!(counted.run_rate(&far_more), None, "hardly anything was sent");
    }

    #[test]
    fn a_radio_link_lets_less_pass_within_runs_than_in_the_mean() {
        let cycle = [(40_000, 0); 20].into_iter().chain([(10_000, 30_000); 3]);
        let (settled, counted) = count(core::iter::repeat_n(cycle, 6).flatten());
        assert!(!counted.is_spread(SEGMENT));
        assert_eq!(counted.run_rate(&settled), None);
    }

    #[test]
    fn a_policer_that_is_gone_bounds_nothing_soon() {
        let mut path = Path::default();
        path.run(3_000, Some((Rate::from_mbit(20), 64_000)), 0, 1);
        assert!(path.policer.is_known());
        path.run(5_000, None, 0, 1);
        assert_eq!(path.policer.bound(), None);
    }
}
