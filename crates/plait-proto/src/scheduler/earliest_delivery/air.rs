//! Whether a member takes the others' air: radios side by side sense each other's frames and wait
//! for their ends, so what one carries another may lose. No sender is told so; it shows in what the
//! others carry while one of them rests. `docs/algorithms/shared-air.md`, "What the bond makes of
//! it", has the reasons for the figures.

use std::collections::VecDeque;

use super::super::by_path::ByPath;
use super::super::delivery::{base_rtt, smoothed_rtt};
use super::super::{PathId, PathSet, PathView, View};
use super::PathMemory;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use sway::Sway;

mod sway;

/// Rates are compared over so long while no path rests.
const WINDOW: Duration = Duration::from_millis(100);
/// Traffic has to have filled the members for so many windows in a row; what all carry is the mean
/// of these.
const FULL_WINDOWS: usize = 10;
/// What a path carries is a moving mean over so many of them, since radios take turns of a tenth of
/// a second and more.
const MEAN_WINDOWS: u64 = 8;
/// Over longer round trips, without queues, a rest would cost more than it is likely to bring:
/// flows see their queue grow, and slow down.
const RTT_MAX: Duration = Duration::from_millis(30);
/// Queues count as round trips of this at most.
const QUEUED_RTT_MAX: Duration = Duration::from_millis(50);
/// The others may carry so many times as much without a path as they do beside it.
const HOPED: u64 = 4;
/// A path that carries more of all than this, in per cent, does not rest: who is left would carry
/// next to nothing meanwhile.
const OWN_PERCENT_MAX: u64 = 90;
/// So many paths rest, the smallest; where more share their air, each is left in its turn.
const RESTS_MAX: usize = 2;
/// A measurement of a rest lasts so many round trips, in which a controller asks for more and sees
/// the answer, and this.
const ROUNDS: u32 = 3;
const ROUNDS_MORE: Duration = Duration::from_millis(10);
/// The others have to carry so much more than all did before, in per cent, twice.
const WORTH_PERCENT: u64 = 115;
const WORTH_TIMES: u32 = 2;
/// It is in vain when the others have not gained this share of what the path carried, in per cent,
/// in the first of them, or when what the others carry has stood still so often.
const GAIN_PERCENT: u64 = 25;
const STANDS_MAX: u32 = 2;
/// Measurements of one rest.
const MEASURED_MAX: u32 = 8;
/// The rests of two paths are so far apart.
const NEXT_PATH_AFTER: Duration = Duration::from_millis(500);
/// No path rests for so long after all have rested in vain: the first time, and at most.
const AGAIN_AFTER: Duration = Duration::from_secs(20);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(960);
/// A path that comes back is measured for so many windows after the first two. It goes when all
/// then carry less than this share of what they did without it, in per cent: right after a rest,
/// and after a long time, when it has to bring something.
const RETURN_WINDOWS: u32 = 4;
const PROOF_PERCENT: u64 = 95;
const RETURN_PERCENT: u64 = 103;
/// How long a path stays off the air before it is looked whether it may come back: the first time,
/// four times as long each time, and at most.
const OFF_FOR: Duration = Duration::from_secs(8);
const OFF_FOR_MAX: Duration = Duration::from_secs(512);

/// A path's part in the air that others use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Airtime {
    /// Bulk traffic keeps off it.
    is_off: bool,
    /// Until when, when that is not just to measure the others.
    off_until: Instant,
    off_for: Duration,
    /// It has rested in vain in this series of rests.
    has_rested: bool,
    /// Its rate moved against the others' when the series began.
    is_suspect: bool,
    sway: Sway,
    /// What had been delivered when the window began, and the rate in the last whole one, in bit/s.
    delivered_bytes: u64,
    bits_per_second: u64,
    /// The mean of the latest full windows, in bit/s; 0 before the first.
    mean_bits_per_second: u64,
}

impl Airtime {
    #[cfg(test)]
    pub(super) fn off() -> Self {
        Self { is_off: true, off_until: Instant::FAR_FUTURE, ..Self::default() }
    }

    /// A full window in which all paths together carried `all` bit/s.
    fn note(&mut self, all: u64) {
        self.sway.note(self.bits_per_second, all - self.bits_per_second);
        let (mean, latest) = (self.mean_bits_per_second, self.bits_per_second);
        let next = (mean * (MEAN_WINDOWS - 1) + latest) / MEAN_WINDOWS;
        self.mean_bits_per_second = if mean == 0 { latest } else { next };
    }

    /// The first of several paths is about to rest: the changes after that tell less.
    fn begin_series(&mut self) {
        self.is_suspect |= self.sway.is_opposed();
    }

    /// Whether it may take the others' air, and has not rested in vain.
    fn may_rest(&self) -> bool {
        !self.has_rested && (self.is_suspect || self.sway.is_opposed())
    }

    /// Whether bulk traffic keeps off the path, so that the others carry more.
    pub(super) fn is_off(&self) -> bool {
        self.is_off
    }
}

/// What is going on.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Watching,
    /// A path rests, and the others are measured.
    Resting(Rest),
    /// A path came back, and all are measured.
    Returning(Return),
}

/// A path is used again, after a rest that was worth it, or a long time. Rates are in bit/s.
#[derive(Clone, Copy, Debug)]
struct Return {
    path: PathId,
    /// What the others carried without it.
    without: u64,
    /// What all carried since, in the mean.
    all: u64,
    windows: u32,
    /// What grew by itself during a rest shows now.
    is_proof: bool,
}

impl Return {
    /// After a rest that was worth it.
    fn of(path: PathId, without: u64) -> Self {
        Self { path, without, all: 0, windows: 0, is_proof: true }
    }
}

/// A rest of one path. Rates are in bit/s.
#[derive(Clone, Copy, Debug)]
struct Rest {
    path: PathId,
    /// What it carried before, and what all did.
    own: u64,
    all: u64,
    /// The most that the others carried, and measurements in which that grew by no twentieth.
    others: u64,
    stands: u32,
    measured: u32,
    /// Measurements that were worth it.
    worth: u32,
}

/// Finds the members without which the others carry more.
#[derive(Debug, Default)]
pub(super) struct Air {
    state: State,
    window_began: Instant,
    window_ends: Instant,
    /// Traffic was too little to fill the members at some time of the window.
    was_short: bool,
    /// What all carried in the latest windows that were full, in bit/s, from the oldest on.
    recent: VecDeque<u64>,
    next_rest: Instant,
    again_after: Duration,
    relieved: PathSet,
}

impl Air {
    /// Follows the traffic; `is_full` while more waits than the members carry. Returns whether bulk
    /// traffic is to leave a path, or to come back to it.
    pub(super) fn follow(
        &mut self,
        view: &View<'_>,
        paths: &mut ByPath<PathMemory>,
        is_full: bool,
    ) -> bool {
        self.was_short |= !is_full;
        if view.now < self.window_ends {
            return false;
        }
        let is_whole = view.now.since(self.window_ends) < WINDOW && !self.was_short;
        let all = self.measure(view, paths);
        for path in view.paths {
            let air = &mut paths.touch(path.id).air;
            match self.state {
                State::Watching if is_whole => air.note(all),
                _ => air.sway.interrupt(),
            }
        }
        let changed = match self.state {
            State::Watching if is_whole => self.watch(view, paths, all),
            State::Watching => false,
            State::Resting(rest) => {
                let changed = self.end_measurement(paths, rest, (view.now, is_whole), all);
                if let State::Resting(rest) = self.state {
                    let others = view.paths.iter().filter(|path| path.id != rest.path);
                    others.for_each(|path| self.relieved.insert(path.id));
                }
                changed
            }
            State::Returning(back) if is_whole => {
                // What was seen before tells nothing of now.
                view.paths.iter().for_each(|path| paths.touch(path.id).air.sway = Sway::default());
                self.judge_return(view.now, &mut paths.touch(back.path).air, back, all)
            }
            State::Returning(_) => {
                self.state = State::Watching;
                false
            }
        };
        if !is_whole || !matches!(self.state, State::Watching) {
            self.recent.clear();
        }
        self.begin_window(view);
        changed
    }

    /// Ends a window: what all paths carried in it.
    fn measure(&self, view: &View<'_>, paths: &mut ByPath<PathMemory>) -> u64 {
        let elapsed = view.now.since(self.window_began);
        let rate = |path: &PathView| {
            let air = &mut paths.touch(path.id).air;
            let bytes = path.delivered_bytes.saturating_sub(air.delivered_bytes);
            air.delivered_bytes = path.delivered_bytes;
            air.bits_per_second = Rate::from_bytes_over(bytes, elapsed).bits_per_second();
            air.bits_per_second
        };
        view.paths.iter().map(rate).sum()
    }

    fn begin_window(&mut self, view: &View<'_>) {
        self.was_short = false;
        self.window_began = view.now;
        let longest = view.paths.iter().map(smoothed_rtt).max().unwrap_or_default();
        let longest = longest.min(QUEUED_RTT_MAX);
        let time = match self.state {
            // What the path had in flight arrives first.
            State::Resting(Rest { measured: 0, .. }) => longest + ROUNDS_MORE,
            State::Resting(_) => longest * ROUNDS + ROUNDS_MORE,
            _ => WINDOW,
        };
        self.window_ends = view.now + time;
    }

    /// Traffic has filled the members for a window.
    fn watch(&mut self, view: &View<'_>, paths: &mut ByPath<PathMemory>, all: u64) -> bool {
        let now = view.now;
        let ends = view.paths.iter().find(|path| {
            let air = &paths.touch(path.id).air;
            air.is_off && air.off_until <= now
        });
        if let Some(path) = ends {
            paths.touch(path.id).air.is_off = false;
            self.state = State::Returning(Return { is_proof: false, ..Return::of(path.id, all) });
            return true;
        }
        if self.recent.len() == FULL_WINDOWS {
            self.recent.pop_front();
        }
        self.recent.push_back(all);
        if self.recent.len() < FULL_WINDOWS || now < self.next_rest || all == 0 {
            return false;
        }
        let all = self.recent.iter().sum::<u64>() / FULL_WINDOWS as u64;
        self.begin_rest(view, paths, all)
    }

    /// The smallest member that has not rested yet, against whose rate those of the others move,
    /// and without which they might carry more.
    fn begin_rest(&mut self, view: &View<'_>, paths: &mut ByPath<PathMemory>, all: u64) -> bool {
        let is_off = |path: &PathView| paths.get(path.id).is_some_and(|it| it.air.is_off);
        let on = view.paths.iter().filter(|path| !is_off(path));
        let hoped = |path: &PathView| {
            paths
                .get(path.id)
                .map_or(0, |it| it.turns.remembered().max(HOPED * it.air.mean_bits_per_second))
        };
        let hoped_of_all: u64 = on.clone().map(hoped).fold(0, u64::saturating_add);
        let own = |path: &PathView| paths.get(path.id).map_or(0, |it| it.air.mean_bits_per_second);
        let resting = on.clone().filter(|path| {
            let hoped_of_others = hoped_of_all.saturating_sub(hoped(path));
            paths.get(path.id).is_some_and(|it| it.air.may_rest())
                && own(path) < all / 100 * OWN_PERCENT_MAX
                && hoped_of_others > all / 100 * WORTH_PERCENT
        });
        let has_rested = |path: &&PathView| paths.get(path.id).is_some_and(|it| it.air.has_rested);
        let rests = view.paths.iter().filter(has_rested).count();
        let Some(path) = resting.min_by_key(|path| own(path)).filter(|_| rests < RESTS_MAX) else {
            if rests > 0 {
                self.put_off_rests(view, paths);
            }
            return false;
        };
        // A path that is bad, or not known, would say nothing and might be the only one left.
        let is_settled = |path: &PathView| {
            paths.get(path.id).is_some_and(|it| it.is_member && !it.trial.is_on())
                && base_rtt(path) <= RTT_MAX
        };
        if !on.clone().all(is_settled) {
            return false;
        }
        let own = own(path);
        if rests == 0 {
            view.paths.iter().for_each(|path| paths.touch(path.id).air.begin_series());
        }
        let rest = Rest {
            path: path.id,
            own,
            all,
            others: all.saturating_sub(own),
            stands: 0,
            measured: 0,
            worth: 0,
        };
        paths.touch(path.id).air.is_off = true;
        self.state = State::Resting(rest);
        true
    }

    /// All that might have brought something have rested in vain.
    fn put_off_rests(&mut self, view: &View<'_>, paths: &mut ByPath<PathMemory>) {
        for path in view.paths {
            let air = &mut paths.touch(path.id).air;
            (air.has_rested, air.is_suspect) = (false, false);
        }
        self.again_after = (self.again_after * 2).clamp(AGAIN_AFTER, AGAIN_AFTER_MAX);
        self.next_rest = view.now + self.again_after;
    }

    fn end_measurement(
        &mut self,
        paths: &mut ByPath<PathMemory>,
        rest: Rest,
        (now, is_whole): (Instant, bool),
        all: u64,
    ) -> bool {
        let air = &mut paths.touch(rest.path).air;
        let others = all.saturating_sub(air.bits_per_second);
        let is_worth_it = others > rest.all / 100 * WORTH_PERCENT;
        let stands = rest.stands + u32::from(others <= rest.others + rest.others / 20);
        let is_vain = match rest.measured {
            0 => false,
            MEASURED_MAX.. => true,
            _ if is_worth_it => false,
            1 if others.saturating_sub(rest.others) < rest.own / 100 * GAIN_PERCENT => true,
            _ => stands >= STANDS_MAX,
        };
        if is_vain || !is_whole {
            air.is_off = false;
            air.has_rested = is_vain;
            self.next_rest = now + NEXT_PATH_AFTER;
            self.state = State::Watching;
            return true;
        }
        let worth = rest.worth + u32::from(rest.measured > 0 && is_worth_it);
        if worth >= WORTH_TIMES {
            air.is_off = false;
            self.state = State::Returning(Return::of(rest.path, others));
            return true;
        }
        let others = if rest.measured == 0 { rest.others } else { others };
        self.state = State::Resting(Rest {
            others: others.max(rest.others),
            stands: if rest.measured == 0 { 0 } else { stands },
            measured: rest.measured + 1,
            worth,
            ..rest
        });
        false
    }

    /// Whether all carry less now that a path is back.
    fn judge_return(
        &mut self,
        now: Instant,
        air: &mut Airtime,
        mut back: Return,
        all: u64,
    ) -> bool {
        if back.windows > 1 {
            back.all += all / u64::from(RETURN_WINDOWS);
        }
        back.windows += 1;
        if back.windows < 2 + RETURN_WINDOWS {
            self.state = State::Returning(back);
            return false;
        }
        self.state = State::Watching;
        self.next_rest = now + NEXT_PATH_AFTER;
        air.has_rested = true;
        let percent = if back.is_proof { PROOF_PERCENT } else { RETURN_PERCENT };
        air.is_off = back.all < back.without / 100 * percent;
        if !air.is_off {
            air.off_for = Duration::ZERO;
            return false;
        }
        air.off_for = (air.off_for * 4).clamp(OFF_FOR, OFF_FOR_MAX);
        air.off_until = now + air.off_for;
        self.again_after = Duration::ZERO;
        true
    }

    /// Paths whose controllers are to look for more.
    pub(super) fn take_relieved(&mut self) -> PathSet {
        core::mem::take(&mut self.relieved)
    }

    /// The path will not come back under this id.
    pub(super) fn forget(&mut self, path: PathId) {
        let is_about = match self.state {
            State::Watching => false,
            State::Resting(rest) => rest.path == path,
            State::Returning(back) => back.path == path,
        };
        if is_about {
            self.state = State::Watching;
        }
    }
}
