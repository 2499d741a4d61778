//! Whether a member takes the others' air: radios side by side sense each other's frames and wait
//! for their ends, so what one carries another may lose. No sender is told so; it shows in what the
//! others carry while one of them rests. `docs/algorithms/shared-air.md`, "What the bond makes of
//! it", has the reasons for the figures.

use super::super::by_path::ByPath;
use super::super::delivery::smoothed_rtt;
use super::super::{PathId, PathSet, PathView, View};
use super::PathMemory;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The others may carry so many times as much without it as they do beside it.
const HOPED: u64 = 4;
/// A path that carries more of all than this, in per cent, does not rest: who is left would carry
/// next to nothing meanwhile.
const OWN_PERCENT_MAX: u64 = 90;
/// Rates are compared over so long while no path rests.
const WINDOW: Duration = Duration::from_millis(200);
/// Traffic has to have filled the members for so many windows in a row.
const FULL_WINDOWS: u32 = 5;
/// Over longer round trips a rest would cost more than it is likely to bring.
const RTT_MAX: Duration = Duration::from_millis(100);
/// A measurement of a rest lasts so many round trips, in which a controller asks for more and sees
/// the answer, and this.
const ROUNDS: u32 = 3;
const ROUNDS_MORE: Duration = Duration::from_millis(10);
/// A rest in which the others have not gained this share of what the path carried, in per cent,
/// ends with its first measurement.
const GAIN_PERCENT: u64 = 25;
/// The others have to carry so much more than all did before, in per cent, twice.
const WORTH_PERCENT: u64 = 105;
const WORTH_TIMES: u32 = 2;
/// Measurements of one rest.
const MEASURED_MAX: u32 = 8;
/// No path rests for so long after all have rested in vain: the first time, and at most.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(960);
/// The rests of two paths are so far apart.
const NEXT_PATH_AFTER: Duration = Duration::from_millis(500);
/// When all carry less than this share of what they carried, in per cent, something has changed.
const FALLEN_PERCENT: u64 = 85;
/// For so many windows.
const FALLEN_WINDOWS: u32 = 3;
/// Two falls count when they are so far apart.
const FALLS_APART: Duration = Duration::from_secs(5);
/// How long a path stays off the air before it is looked whether it may come back: the first time,
/// and at most.
const OFF_FOR: Duration = Duration::from_secs(30);
const OFF_FOR_MAX: Duration = Duration::from_secs(480);

/// A path's part in the air that others use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Airtime {
    /// Bulk traffic keeps off it.
    is_off: bool,
    /// Until when, when that is not just to measure the others.
    off_until: Instant,
    off_for: Duration,
    /// It has rested in vain since something changed last.
    has_rested: bool,
    /// What had been delivered when the window began, and the rate in the last whole one, in bit/s.
    delivered_bytes: u64,
    bits_per_second: u64,
}

impl Airtime {
    #[cfg(test)]
    pub(super) fn off() -> Self {
        Self { is_off: true, off_until: Instant::FAR_FUTURE, ..Self::default() }
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
    /// A path came back after a long time, and all are measured.
    Returning { path: PathId, before: u64, windows: u32 },
}

/// A rest of one path. Rates are in bit/s.
#[derive(Clone, Copy, Debug)]
struct Rest {
    path: PathId,
    /// What it carried, and what all did.
    own: u64,
    all: u64,
    /// What the others carried at the latest measurement.
    others: u64,
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
    full_windows: u32,
    next_rest: Instant,
    again_after: Duration,
    /// The highest rate of all since something changed, in bit/s; how many windows in a row were
    /// far below it, and when that counted last.
    highest: u64,
    fallen_windows: u32,
    fell_at: Instant,
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
        self.full_windows = if is_whole { self.full_windows + 1 } else { 0 };
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
            State::Returning { path, before, windows } if is_whole => {
                self.judge_return(view.now, paths.touch(path), (path, before, windows), all)
            }
            State::Returning { .. } => {
                self.state = State::Watching;
                false
            }
        };
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
        let longest = view.paths.iter().map(smoothed_rtt).max().unwrap_or_default().min(RTT_MAX);
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
        let is_fallen = all < self.highest / 100 * FALLEN_PERCENT;
        self.fallen_windows = if is_fallen { self.fallen_windows + 1 } else { 0 };
        let has_fallen = self.fallen_windows >= FALLEN_WINDOWS
            && now.since(self.fell_at) >= FALLS_APART;
        if has_fallen {
            (self.fell_at, self.highest, self.next_rest) = (now, all, now);
            view.paths.iter().for_each(|path| paths.touch(path.id).air.has_rested = false);
        }
        self.highest = self.highest.max(all);
        let ends = view.paths.iter().find(|path| {
            let air = &paths.touch(path.id).air;
            air.is_off && (has_fallen || air.off_until <= now)
        });
        if let Some(path) = ends {
            paths.touch(path.id).air.is_off = false;
            self.state = State::Returning { path: path.id, before: all, windows: 0 };
            return true;
        }
        if self.full_windows < FULL_WINDOWS || now < self.next_rest || all == 0 {
            return false;
        }
        self.begin_rest(view, paths, all)
    }

    /// The smallest member that has not rested yet, and without which the others might carry more.
    fn begin_rest(&mut self, view: &View<'_>, paths: &mut ByPath<PathMemory>, all: u64) -> bool {
        let is_off = |path: &PathView| paths.get(path.id).is_some_and(|it| it.air.is_off);
        let on = view.paths.iter().filter(|path| !is_off(path));
        let hoped = |path: &PathView| {
            paths.get(path.id).map_or(0, |it| it.turns.remembered().max(HOPED * it.air.bits_per_second))
        };
        let hoped_of_all: u64 = on.clone().map(hoped).fold(0, u64::saturating_add);
        let own = |path: &PathView| paths.get(path.id).map_or(0, |it| it.air.bits_per_second);
        let resting = on.clone().filter(|path| {
            let hoped_of_others = hoped_of_all.saturating_sub(hoped(path));
            paths.get(path.id).is_some_and(|it| !it.air.has_rested)
                && own(path) < all / 100 * OWN_PERCENT_MAX
                && hoped_of_others > all / 100 * WORTH_PERCENT
        });
        let Some(path) = resting.min_by_key(|path| own(path)) else {
            return self.put_off_rests(view, paths);
        };
        // A path that is bad, or not known, would say nothing and might be the only one left.
        let is_settled = |path: &PathView| {
            paths.get(path.id).is_some_and(|it| it.is_member && !it.trial.is_on())
                && smoothed_rtt(path) <= RTT_MAX
        };
        if !on.clone().all(is_settled) {
            return false;
        }
        let own = own(path);
        let rest = Rest { path: path.id, own, all, others: all - own, measured: 0, worth: 0 };
        paths.touch(path.id).air.is_off = true;
        self.state = State::Resting(rest);
        true
    }

    /// All have rested.
    fn put_off_rests(&mut self, view: &View<'_>, paths: &mut ByPath<PathMemory>) -> bool {
        view.paths.iter().for_each(|path| paths.touch(path.id).air.has_rested = false);
        self.again_after = (self.again_after * 2).clamp(AGAIN_AFTER, AGAIN_AFTER_MAX);
        self.next_rest = view.now + self.again_after;
        false
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
        let is_first = rest.measured == 1;
        let gained = others.saturating_sub(rest.all - rest.own);
        let is_worth_it = others > rest.all / 100 * WORTH_PERCENT;
        let grows = others > rest.others + rest.others / 20;
        let is_vain = match rest.measured {
            0 => false,
            MEASURED_MAX.. => true,
            _ if is_worth_it => false,
            _ => !grows || (is_first && gained < rest.own * GAIN_PERCENT / 100),
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
            air.off_for = OFF_FOR;
            air.off_until = now + OFF_FOR;
            (self.highest, self.next_rest) = (others, now + NEXT_PATH_AFTER);
            self.state = State::Watching;
            return false;
        }
        let others = if rest.measured == 0 { rest.others } else { others };
        self.state = State::Resting(Rest { others, measured: rest.measured + 1, worth, ..rest });
        false
    }

    /// Whether a path that came back brings anything.
    fn judge_return(
        &mut self,
        now: Instant,
        state: &mut PathMemory,
        (path, before, windows): (PathId, u64, u32),
        all: u64,
    ) -> bool {
        const WINDOWS: u32 = 3;
        if windows < WINDOWS {
            self.state = State::Returning { path, before, windows: windows + 1 };
            return false;
        }
        self.state = State::Watching;
        self.next_rest = now + NEXT_PATH_AFTER;
        if all > before / 100 * 102 {
            state.air.off_for = OFF_FOR;
            self.highest = all;
            return false;
        }
        state.air.is_off = true;
        state.air.off_for = (state.air.off_for * 2).clamp(OFF_FOR, OFF_FOR_MAX);
        state.air.off_until = now + state.air.off_for;
        self.highest = before;
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
            State::Returning { path: returning, .. } => returning == path,
        };
        if is_about {
            self.state = State::Watching;
        }
    }
}
