//! What a viewer sees: a player that starts, plays, stalls and ends, and asks for segments as its
//! buffer drains. See `docs/algorithms/video-player.md`.

use plait_proto::time::{Duration, Instant};

/// It stops to play with less than this buffered, or less than half of what it then waits for.
const LOW: Duration = Duration::from_millis(500);
/// How often it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(250);
/// How often it looks whether it may ask again, from the last segment's arrival on.
const ASK_LOOK: Duration = Duration::from_millis(500);

/// A clip and how much of it is kept ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlayerConfig {
    /// Length of the clip; above zero.
    pub(super) clip: Duration,
    /// Length of a segment; the last may be shorter.
    pub(super) segment: Duration,
    /// It begins to play with more than that buffered.
    pub(super) start: Duration,
    /// It plays on after a stall with more than that buffered.
    pub(super) resume: Duration,
    /// It asks for nothing while more is buffered. At least `start` and `resume`.
    pub(super) buffer_max: Duration,
}

impl PlayerConfig {
    /// Segments of the clip.
    pub(super) fn segments(&self) -> u32 {
        let count = self.clip.as_nanos().div_ceil(self.segment.as_nanos());
        u32::try_from(count).expect("a checked clip has fewer segments than 2^32")
    }

    /// Media time up to the end of so many segments.
    pub(super) fn end_of(&self, segments: u32) -> Duration {
        (self.segment * segments).min(self.clip)
    }

    /// It stops to play with less than this.
    fn low(&self) -> Duration {
        LOW.min(self.resume / 2)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The first picture is still to come.
    Loading,
    Playing,
    Stalled,
    Ended,
}

/// What a viewer met up to some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    /// From the wish to see the clip to its first picture, or to the moment.
    pub(super) initial_load: Duration,
    /// Stalls, one that is not over included.
    pub(super) stalls: u32,
    /// Time in them.
    pub(super) stalled: Duration,
    /// Media time that was played.
    pub(super) played: Duration,
    /// Whether the clip came to its end.
    pub(super) is_finished: bool,
}

/// The player. Times given must not decrease.
#[derive(Clone, Debug)]
pub(super) struct Player {
    config: PlayerConfig,
    state: State,
    /// When the viewer wished to see the clip.
    from: Instant,
    /// When the next segment may be asked for.
    asks_at: Instant,
    /// Everything below is counted up to here.
    now: Instant,
    /// Segments that arrived: always the first ones.
    segments: u32,
    played: Duration,
    initial_load: Duration,
    stalls: u32,
    stalled: Duration,
}

impl Player {
    /// A player whose viewer wishes to see the clip from `now` on.
    pub(super) fn new(config: PlayerConfig, now: Instant) -> Self {
        Self {
            config,
            state: State::Loading,
            from: now,
            asks_at: now,
            now,
            segments: 0,
            played: Duration::ZERO,
            initial_load: Duration::ZERO,
            stalls: 0,
            stalled: Duration::ZERO,
        }
    }

    /// Media time that has arrived and is not played.
    pub(super) fn buffered(&self) -> Duration {
        self.config.end_of(self.segments).saturating_sub(self.played)
    }

    /// Segments that arrived.
    pub(super) fn segments(&self) -> u32 {
        self.segments
    }

    /// Plays up to `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        let plays = self.plays_for();
        let passed = now.since(self.now);
        self.now = now;
        match self.state {
            State::Loading => self.initial_load += passed,
            State::Stalled => self.stalled += passed,
            State::Playing => {
                self.played += passed.min(plays);
                if self.played == self.config.clip {
                    self.state = State::Ended;
                } else if passed >= plays {
                    self.state = State::Stalled;
                    self.stalls += 1;
                    self.stalled += passed - plays;
                }
            }
            State::Ended => {}
        }
    }

    /// For how long it plays on if nothing arrives: until it sees how little is left, until nothing
    /// is, or, with all of the clip there, until its end.
    fn plays_for(&self) -> Duration {
        let buffered = self.buffered();
        if self.segments == self.config.segments() {
            return buffered;
        }
        let just_enough = self.now + buffered.saturating_sub(self.config.low());
        let looks = just_enough.since(self.from).as_nanos() / LOOK.as_nanos() + 1;
        let looks = u32::try_from(looks).expect("a run has fewer looks than 2^32");
        (self.from + LOOK * looks).since(self.now).min(buffered)
    }

    /// The next segment has arrived, whole.
    pub(super) fn take_segment(&mut self, now: Instant) {
        self.advance(now);
        self.segments += 1;
        self.asks_at = now + self.asks_in();
        let enough = match self.state {
            State::Loading => self.config.start,
            State::Stalled => self.config.resume,
            State::Playing | State::Ended => return,
        };
        // At the clip's end there may be less than that left to wait for.
        let is_whole = self.segments == self.config.segments();
        // Just enough is too little: times of frames are rounded down, so a browser's segments are
        // a hair shorter than they say.
        if self.buffered() > enough || is_whole {
            self.state = State::Playing;
        }
    }

    /// How long after a segment's arrival it finds that it may ask for another one. With more than
    /// it may have it plays, and drains what is too much.
    fn asks_in(&self) -> Duration {
        let excess = self.buffered().saturating_sub(self.config.buffer_max);
        let looks = excess.as_nanos().div_ceil(ASK_LOOK.as_nanos());
        ASK_LOOK * u32::try_from(looks).expect("a buffer is drained in fewer looks than 2^32")
    }

    /// When the next segment may be asked for: now, or at a look once the buffer has drained.
    /// `None` when there is none.
    pub(super) fn next_request(&self) -> Option<Instant> {
        if self.segments == self.config.segments() {
            return None;
        }
        Some(self.asks_at.max(self.now))
    }

    /// What the viewer met up to now.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            initial_load: self.initial_load,
            stalls: self.stalls,
            stalled: self.stalled,
            played: self.played,
            is_finished: self.state == State::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Prng;

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + s(seconds)
    }

    /// 10 s in segments of 4 s: the last has 2 s.
    fn config() -> PlayerConfig {
        let (clip, segment) = (s(10.0), s(4.0));
        PlayerConfig { clip, segment, start: s(3.0), resume: s(3.0), buffer_max: s(6.0) }
    }

    fn seen(initial_load: f64, stalls: u32, stalled: f64, played: f64, is_finished: bool) -> Seen {
        let (initial_load, stalled, played) = (s(initial_load), s(stalled), s(played));
        Seen { initial_load, stalls, stalled, played, is_finished }
    }

    #[test]
    fn a_clip_in_time_loads_once_and_plays_to_its_end() {
        let mut player = Player::new(config(), at(5.0));
        player.take_segment(at(6.0));
        player.take_segment(at(7.0));
        player.take_segment(at(8.0));
        player.advance(at(15.999));
        assert_eq!(player.seen(), seen(1.0, 0, 0.0, 9.999, false));
        player.advance(at(40.0));
        assert_eq!(player.seen(), seen(1.0, 0, 0.0, 10.0, true));
    }

    #[test]
    fn a_late_segment_is_a_stall_from_the_look_that_sees_little_left() {
        let mut player = Player::new(config(), at(0.0));
        player.take_segment(at(1.0));
        // 0.5 s are left at 4.5 s, which is enough at that look.
        player.take_segment(at(7.5));
        assert_eq!(player.seen(), seen(1.0, 1, 2.75, 3.75, false));
        // The last segment is short: with everything there it plays on, and to the end.
        player.take_segment(at(12.0));
        assert_eq!(player.seen(), seen(1.0, 2, 3.25, 7.75, false));
        player.advance(at(14.25));
        assert_eq!(player.seen(), seen(1.0, 2, 3.25, 10.0, true));
    }

    #[test]
    fn segments_as_long_as_the_goal_start_it_in_pairs_and_resume_it_alone() {
        let goal = s(2.0);
        let config = PlayerConfig { segment: goal, start: goal, resume: goal, ..config() };
        let mut player = Player::new(config, at(0.0));
        player.take_segment(at(1.0));
        player.take_segment(at(2.0));
        assert_eq!(player.seen(), seen(2.0, 0, 0.0, 0.0, false));
        // A quarter of a second is left when it stops, and counts when it goes on.
        player.take_segment(at(8.0));
        player.advance(at(9.0));
        assert_eq!(player.seen(), seen(2.0, 1, 2.25, 4.75, false));
    }

    #[test]
    fn a_small_goal_is_halved_and_without_one_it_plays_all_that_there_is() {
        let standing = |goal: f64| {
            let config = PlayerConfig { start: s(goal), resume: s(goal), ..config() };
            let mut player = Player::new(config, at(0.0));
            player.take_segment(at(1.0));
            player.advance(at(10.0));
            player.seen()
        };
        // Less than 0.3 s is left after 4.7 s.
        assert_eq!(standing(0.6), seen(1.0, 1, 5.25, 3.75, false));
        assert_eq!(standing(0.4), seen(1.0, 1, 5.0, 4.0, false));
        assert_eq!(standing(0.0), seen(1.0, 1, 5.0, 4.0, false));
    }

    #[test]
    fn what_is_not_over_counts_up_to_now() {
        let mut player = Player::new(config(), at(0.0));
        player.advance(at(3.0));
        assert_eq!(player.seen(), seen(3.0, 0, 0.0, 0.0, false));
        player.take_segment(at(4.0));
        player.advance(at(20.0));
        assert_eq!(player.seen(), seen(4.0, 1, 12.25, 3.75, false));
    }

    #[test]
    fn it_starts_and_plays_on_only_with_more_than_enough() {
        let config = PlayerConfig { segment: s(1.0), start: s(2.0), resume: s(3.0), ..config() };
        let mut player = Player::new(config, at(0.0));
        player.take_segment(at(1.0));
        player.take_segment(at(2.0));
        player.take_segment(at(3.0));
        assert_eq!(player.seen().initial_load, s(3.0));
        for second in [6.0, 7.0, 8.0] {
            player.take_segment(at(second));
        }
        assert_eq!(player.seen(), seen(3.0, 1, 2.25, 2.75, false));
        player.advance(at(8.5));
        assert_eq!(player.seen(), seen(3.0, 1, 2.25, 3.25, false));
    }

    #[test]
    fn it_asks_again_at_a_look_after_the_buffer_has_drained() {
        let mut player = Player::new(PlayerConfig { buffer_max: s(5.7), ..config() }, at(0.0));
        assert_eq!(player.next_request(), Some(at(0.0)));
        player.take_segment(at(1.1));
        assert_eq!(player.next_request(), Some(at(1.1)));
        player.take_segment(at(2.1));
        // 7 s are buffered, 5.7 allowed: at 3.4 s, and it looks at 3.1 and 3.6 s.
        assert_eq!(player.next_request(), Some(at(3.6)));
        player.advance(at(3.5));
        assert_eq!(player.next_request(), Some(at(3.6)));
        player.take_segment(at(4.0));
        assert_eq!(player.next_request(), None);
    }

    /// A player and arrivals by chance: fetched one after another, at once or after a wait.
    fn run_by_chance(seed: u64) {
        let mut prng = Prng::new(seed);
        let mut tenths = |low: u64, high: u64| s((low + prng.up_to(high - low)) as f64 / 10.0);
        let buffer_max = tenths(5, 300);
        let config = PlayerConfig {
            clip: tenths(1, 900),
            segment: tenths(5, 100),
            start: tenths(0, 1000).min(buffer_max),
            resume: tenths(0, 1000).min(buffer_max),
            buffer_max,
        };
        let (from, mut now) = (at(2.0), at(2.0));
        let mut player = Player::new(config, from);
        let mut fetched = 0;
        while let Some(request) = player.next_request() {
            assert!(request >= now && player.segments() == fetched, "seed {seed}");
            now = request;
            player.advance(now);
            let before = player.buffered();
            assert!(before <= config.buffer_max, "seed {seed}: asked with {before:?}");
            // To be advanced in between must change nothing.
            let mut other = player.clone();
            let arrives = now + tenths(0, 120);
            while now < arrives {
                now = (now + tenths(1, 20)).min(arrives);
                player.advance(now);
                check(&player, from, now, seed);
            }
            other.advance(now);
            assert_eq!(other.seen(), player.seen(), "seed {seed}");
            player.take_segment(now);
            fetched += 1;
            assert!(player.buffered() <= config.buffer_max + config.segment, "seed {seed}");
        }
        assert_eq!(fetched, config.segments(), "seed {seed}");
        player.advance(now + config.clip);
        let end = player.seen();
        assert!(end.is_finished && end.played == config.clip, "seed {seed}: {end:?}");
    }

    /// Every moment is loading, playing or stalling.
    fn check(player: &Player, from: Instant, now: Instant, seed: u64) {
        let seen = player.seen();
        let sum = seen.initial_load + seen.stalled + seen.played;
        let wall = now.since(from);
        assert!(sum == wall || (seen.is_finished && sum < wall), "seed {seed}: {seen:?}, {wall:?}");
        assert!(seen.stalls > 0 || seen.stalled.is_zero(), "seed {seed}: {seen:?}");
    }

    #[test]
    fn whatever_arrives_when_every_moment_is_counted_once() {
        (0..2000).for_each(run_by_chance);
    }
}
