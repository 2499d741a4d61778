//! What a longer round trip costs the flows that are there before it gains them anything: their
//! windows have to grow, and until they have, less arrives than before.

use super::super::BulkLoad;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A set of paths has to have carried more after this time than fewer paths would have. Nobody
/// knows how long a flow will go on; what takes longer to pay off is seldom paid off.
const HORIZON_S: u64 = 20;
/// The same for flows without a loss yet: what is young is soon over, and the first loss ends their
/// quick growth.
const HORIZON_FRESH_S: u64 = 7;
/// The growth is added up in steps of this many to the second.
const STEPS_PER_S: u64 = 2;
/// CUBIC's window grows by C·t³ segments (RFC 9438 section 5.1): 0.4 segments of 1448 bytes.
const GROWTH_BYTES_PER_S3: u64 = 579;
/// What a window holds beyond its paths: the ingress queue keeps so much of their time, fq-codel's
/// target.
const QUEUED: Duration = Duration::from_millis(30);

/// A rate of the last whole second is of this time at most.
const MEASURED_AFTER: Duration = Duration::from_secs(2);
/// Before its first loss CUBIC grows by a twentieth with each round trip at least (Linux; slow
/// start has ended, since the round trip rose).
const FRESH_PARTS: u64 = 20;
/// Beyond this nothing grows faster any more.
const STEPS_MAX: u64 = 1000;

const MILLION: u64 = 1_000_000;

/// What flows have in flight over a set of paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) bits_per_second: u64,
    pub(super) round_trip: Duration,
}

impl Filled {
    fn bytes_in(&self, time: Duration) -> u64 {
        Rate::from_bits_per_second(self.bits_per_second).bytes_in(time)
    }
}

/// How windows that fill `from` would grow to fill `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) from: Filled,
    pub(super) to: Filled,
    /// For so long they have grown already.
    pub(super) elapsed: Duration,
    /// So much was sent in the last second, if the paths of `to` have been used for longer.
    pub(super) sent: Rate,
    pub(super) load: BulkLoad,
}

impl Growth {
    /// How much of what the paths of `to` carry in the horizon arrives, in millionths.
    pub(super) fn share(&self) -> u64 {
        let flows = u64::from(self.load.flows.max(1));
        let first = self.from.bytes_in(self.from.round_trip.saturating_add(QUEUED));
        let first = first.max(self.sent.bytes_in(self.to.round_trip)) / flows;
        let needed = self.to.bytes_in(self.to.round_trip) / flows;
        if self.load.is_unresponsive || first >= needed {
            return MILLION;
        }
        let by_cube = self.share_in(HORIZON_S * STEPS_PER_S, None, first, needed);
        if !self.load.is_fresh {
            return by_cube;
        }
        let round = self.to.round_trip.as_millis().max(1) as u64;
        let steps = HORIZON_FRESH_S * STEPS_PER_S;
        by_cube.max(self.share_in(steps, Some(round), first, needed))
    }

    fn share_in(&self, steps: u64, round_millis: Option<u64>, first: u64, needed: u64) -> u64 {
        let mut window = Window::new(self.elapsed, round_millis, first);
        let arrived: u64 = (0..steps).fold(0, |arrived, _| {
            window.advance(needed);
            arrived.saturating_add(window.bytes)
        });
        arrived / steps.max(1) * MILLION / needed
    }
}

/// A window that grows step by step.
struct Window {
    bytes: u64,
    steps: u64,
    /// Of the cube.
    grown: u64,
    step_millis: u64,
    /// While no loss is known it grows by a share with each of these.
    round_millis: Option<u64>,
    spare_millis: u64,
}

impl Window {
    fn new(elapsed: Duration, round_millis: Option<u64>, bytes: u64) -> Self {
        let steps = elapsed.as_millis() as u64 * STEPS_PER_S / 1000;
        let mut window = Self {
            bytes,
            steps: steps.min(STEPS_MAX),
            grown: 0,
            step_millis: 1000 / STEPS_PER_S,
            round_millis,
            spare_millis: 0,
        };
        window.grown = window.cube();
        window
    }

    fn cube(&self) -> u64 {
        GROWTH_BYTES_PER_S3 * self.steps.pow(3) / STEPS_PER_S.pow(3)
    }

    fn advance(&mut self, needed: u64) {
        let before = self.grown;
        self.steps = (self.steps + 1).min(STEPS_MAX);
        self.grown = self.cube();
        self.bytes = (self.bytes + self.grown - before).min(needed);
        let Some(round_millis) = self.round_millis else { return };
        self.spare_millis += self.step_millis;
        while self.spare_millis >= round_millis && self.bytes < needed {
            self.spare_millis -= round_millis;
            self.bytes = (self.bytes + self.bytes / FRESH_PARTS).min(needed);
        }
    }
}

/// Since when flows have had the round trip of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined(Option<Instant>);

impl Joined {
    pub(super) fn follow(&mut self, now: Instant, is_member: bool) {
        self.0 = if is_member { self.0.or(Some(now)) } else { None };
    }

    /// Other flows begin.
    pub(super) fn begin_anew(&mut self) {
        self.0 = None;
    }

    /// What was sent in the last second, where the path has been used for so long that windows show
    /// in it.
    pub(super) fn sent(&self, now: Instant, rate: Rate) -> Rate {
        if self.elapsed(now) >= MEASURED_AFTER { rate } else { Rate::ZERO }
    }

    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(mbit: u64, rtt_ms: u64) -> Filled {
        Filled { bits_per_second: mbit * MILLION, round_trip: Duration::from_millis(rtt_ms) }
    }

    fn permille(from: Filled, to: Filled, elapsed_s: u64, flows: u16) -> u64 {
        let load = BulkLoad { flows, ..BulkLoad::default() };
        let elapsed = Duration::from_secs(elapsed_s);
        Growth { from, to, elapsed, sent: Rate::ZERO, load }.share() / 1000
    }

    /// 100 Mbit/s at 10 ms fill 345 segments with the queue; 200 at 305 ms take 5266. A segment
    /// more each 2.5 s³: 23.1 s until then.
    #[test]
    fn a_window_grows_with_the_cube_of_the_time() {
        let (near, far) = (filled(100, 10), filled(200, 305));
        let one = permille(near, far, 0, 1);
        assert!((215..235).contains(&one), "{one}: 66 and the mean of 0.4·t³, 800 of 5266");
        assert!(permille(near, far, 24, 1) > 800, "and most quickly at last");
        let sixteen = permille(near, far, 0, 16);
        assert!((680..700).contains(&sixteen), "{sixteen}: full after 9.2 s");
    }

    /// 5 % each 65 ms: from 966 to 3238 segments takes 25 rounds, 1.6 s; by the cube it is 18 s.
    #[test]
    fn a_fresh_window_grows_by_a_share_each_round() {
        let load = BulkLoad { is_fresh: true, ..BulkLoad::default() };
        let (from, to) = (filled(300, 5), filled(600, 63));
        let growth = Growth { from, to, elapsed: Duration::ZERO, sent: Rate::ZERO, load };
        let share = growth.share() / 1000;
        assert!((880..930).contains(&share), "{share} of 7 s");
        assert!(permille(from, to, 0, 1) < 600);
    }

    #[test]
    fn a_window_that_is_large_enough_and_a_flow_without_one_need_not_grow() {
        assert_eq!(permille(filled(50, 20), filled(60, 40), 0, 1), 1000);
        let (from, to, elapsed) = (filled(100, 10), filled(200, 305), Duration::ZERO);
        let load = BulkLoad { is_unresponsive: true, ..BulkLoad::default() };
        assert_eq!(Growth { from, to, elapsed, sent: Rate::ZERO, load }.share(), MILLION);
        let (sent, load) = (Rate::from_mbit(200), BulkLoad::default());
        assert_eq!(Growth { from, to, elapsed, sent, load }.share(), MILLION, "it has grown");
    }
}
