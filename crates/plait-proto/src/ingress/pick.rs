//! Stage 3, pick: over which path a packet leaves, or that it is to wait. The scheduler is asked
//! once for a run of packets, which keeps to its path.

use super::paths::Paths;
use super::redundancy::Redundancy;
use crate::drop_reason::DropReason;
use crate::scheduler::{
    Decision, FlowClass, PacketInfo, Part, PathReport, PathSet, PathView, Scheduler, View,
};
use crate::seq::PathId;
use crate::time::{Duration, Instant};

/// A run of packets stays on one path for at most this much of the path's rate, so that slow links
/// still see fine interleaving.
const RUN_TIME: Duration = Duration::from_millis(1);

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pick {
    One(PathId),
    /// The only path that its flow may take.
    Pinned(PathId),
    Copies(PathSet),
    /// No path has room before then, or before an acknowledgement comes.
    Later(Option<Instant>),
}

/// A contiguous run under way.
#[derive(Clone, Copy, Debug)]
struct Run {
    path: PathId,
    class: FlowClass,
    bytes_left: u64,
}

/// The scheduler, and the run it began.
#[derive(Debug)]
pub(super) struct Picker {
    scheduler: Box<dyn Scheduler>,
    run: Option<Run>,
}

impl Picker {
    pub(super) fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self { scheduler, run: None }
    }

    /// The next packet begins a run of its own.
    pub(super) fn end_run(&mut self) {
        self.run = None;
    }

    /// Whether the scheduler is to know flows' classes in an open loop, too.
    pub(super) fn tells_flows_apart(&self) -> bool {
        self.scheduler.tells_flows_apart()
    }

    /// The path of the run under way, if a packet of `bytes` may join it that needs `room` inside.
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        paths: &Paths,
        room: usize,
        (bytes, class): (u64, FlowClass),
    ) -> Option<PathId> {
        let run = self.run.as_mut()?;
        if run.bytes_left < bytes || !paths.all_carry(room) {
            return None;
        }
        if run.class != class && self.scheduler.tells_flows_apart() {
            return None;
        }
        if paths.is_closed_loop() && !paths.viewed(run.path)?.has_room(now, bytes) {
            return None;
        }
        run.bytes_left -= bytes;
        self.scheduler.on_run(&View { now, paths: paths.view() }, run.path, bytes);
        Some(run.path)
    }

    /// Asks the scheduler. The view has been made anew; `room` is what the packet needs inside a
    /// path's datagrams.
    ///
    /// # Errors
    /// No path may carry the packet.
    pub(super) fn pick(
        &mut self,
        now: Instant,
        paths: &Paths,
        room: usize,
        packet: &PacketInfo,
        redundancy: &mut Redundancy,
    ) -> Result<Pick, DropReason> {
        if paths.view().is_empty() {
            return Err(DropReason::NoUsablePath);
        }
        let fitting;
        let view = if paths.all_carry(room) {
            View { now, paths: paths.view() }
        } else {
            fitting = paths.view_for(room).ok_or(DropReason::TooBigForPath)?;
            View { now, paths: &fitting }
        };
        let is_closed = paths.is_closed_loop();
        let respects_windows = self.scheduler.respects_windows();
        let decision = if is_closed && !respects_windows {
            self.pick_with_room(&view, packet)
        } else {
            self.scheduler.pick(&view, packet)
        };
        match decision {
            Decision::Send(path) => {
                self.begin_run(paths, path, packet);
                Ok(Pick::One(path))
            }
            Decision::Copies(set) if is_closed && respects_windows => {
                Ok(redundancy.allow_copies(set, quickest_of(paths.view(), set), packet.bytes))
            }
            Decision::Copies(set) => Ok(Pick::Copies(set)),
            // Without a queue there is nothing to wait in.
            Decision::Wait { .. } | Decision::Blocked if !is_closed => {
                Err(DropReason::NoUsablePath)
            }
            Decision::Wait { until } => Ok(Pick::Later(Some(until))),
            Decision::Blocked => Ok(Pick::Later(room_at(&view, packet.bytes))),
        }
    }

    /// Asks a scheduler that knows no windows: it sees only paths with room.
    fn pick_with_room(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let has_room = |path: &&PathView| path.has_room(view.now, packet.bytes);
        let paths: Vec<PathView> = view.paths.iter().filter(has_room).copied().collect();
        if paths.is_empty() {
            return Decision::Blocked;
        }
        self.scheduler.pick(&View { now: view.now, paths: &paths }, packet)
    }

    fn begin_run(&mut self, paths: &Paths, path: PathId, first: &PacketInfo) {
        let bytes = paths.viewed(path).map_or(0, |view| view.delivery_rate.bytes_in(RUN_TIME));
        let bytes_left = bytes.saturating_sub(first.bytes);
        self.run = Some(Run { path, class: first.class, bytes_left });
    }

    /// Paths whose controllers are to look for more.
    pub(super) fn take_relieved(&mut self) -> PathSet {
        self.scheduler.take_relieved()
    }

    /// A path is gone.
    pub(super) fn on_path_gone(&mut self, path: PathId) {
        self.scheduler.on_path_gone(path);
        self.run = None;
    }

    /// The peer reported what arrived; the view has been made anew.
    pub(super) fn on_report(&mut self, now: Instant, paths: &Paths, news: &[PathReport]) {
        self.scheduler.on_report(&View { now, paths: paths.view() }, news);
    }

    /// The scheduler's weights by path, where it has them.
    pub(super) fn weights(&self, now: Instant, paths: &Paths) -> Vec<(PathId, u32)> {
        self.scheduler.weights(&View { now, paths: paths.view() })
    }

    /// What the scheduler makes of a path that is up.
    pub(super) fn part(&self, now: Instant, paths: &Paths, path: PathId) -> Option<Part> {
        self.scheduler.part(&View { now, paths: paths.view() }, path)
    }
}

/// When a pacer next lets a packet go whose window is open; `None` when all windows are full.
fn room_at(view: &View<'_>, bytes: u64) -> Option<Instant> {
    view.paths.iter().filter(|path| path.has_window(bytes)).map(|path| path.ready_at).min()
}

/// The member of `set` with the shortest round trip.
pub(super) fn quickest_of(view: &[PathView], set: PathSet) -> Option<PathId> {
    let members = view.iter().filter(|path| set.contains(path.id));
    members.min_by_key(|path| path.srtt.unwrap_or(Duration::MAX)).map(|path| path.id)
}
