//! The sending half's paths: all that is known of each, and what schedulers see of them.
//!
//! Whoever changes a path asks for it here, and says by the way of asking what the change touches.
//! So the view, and the time at which a path's control has something due, are made anew when they
//! have to be, and nobody has to remember that.

use core::cell::Cell;

use crate::congestion::{ControllerConfig, Sibling};
use crate::path::SendPath;
use crate::path::congestion::PathCongestion;
use crate::path::control::MARK_DELAY;
use crate::path::kept::KeptPacket;
use crate::path::map::PathMap;
use crate::scheduler::{PathSet, PathView};
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::{Duration, Instant};

/// A datagram counts as lost when it stays without an acknowledgement for this long, or three probe
/// timeouts if longer.
const UNACKNOWLEDGED_MIN: Duration = Duration::from_millis(250);

/// The paths of a bond, by id.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Paths {
    view_is_stale: bool,
    /// No path's control has anything due before this. It may be too early: every packet of data
    /// puts timers off, and few of them ever come. `None` when it is to be found anew.
    control_due: Cell<Option<Instant>>,
    /// Every path of the view carries inner packets of this many bytes.
    view_inner_max: usize,
    /// Every path's controller; `None` in an open loop.
    controller: Option<ControllerConfig>,
    /// Cheapest path first. It follows what sending a packet changes; after any other change it is
    /// stale, and made anew before the next decision.
    view: Vec<PathView>,
    map: PathMap<SendPath>,
    /// The paths beside one that got an acknowledgement, for its coupled controller. Kept, so that
    /// an acknowledgement allocates nothing.
    siblings: Vec<Sibling>,
}

impl Paths {
    pub(super) fn new(controller: Option<ControllerConfig>) -> Self {
        Self {
            map: PathMap::default(),
            controller,
            view: Vec::new(),
            view_is_stale: true,
            view_inner_max: 0,
            control_due: Cell::new(None),
            siblings: Vec::new(),
        }
    }

    /// Every path's controller; `None` in an open loop, where the scheduler alone decides.
    pub(super) const fn controller(&self) -> Option<&ControllerConfig> {
        self.controller.as_ref()
    }

    /// Whether controllers decide how much is sent, and what is lost is sent again.
    pub(super) const fn is_closed_loop(&self) -> bool {
        self.controller.is_some()
    }

    /// Goes on with other controllers, or without.
    pub(super) fn set_controller(&mut self, controller: Option<ControllerConfig>) {
        for path in self.map.values_mut() {
            match &controller {
                Some(controller) => path.close_loop(controller),
                None => path.open_loop(),
            }
        }
        self.controller = controller;
        self.note_change();
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = PathId> + '_ {
        self.map.ids()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SendPath> {
        self.map.values()
    }

    pub(super) fn get(&self, id: PathId) -> Option<&SendPath> {
        self.map.get(id)
    }

    /// A path, to change whatever there is of it.
    pub(super) fn get_mut(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.note_change();
        self.map.get_mut(id)
    }

    /// A path that got an acknowledgement, to change whatever there is of it, and how those beside
    /// it stand: the paths as good to use as it is. Empty unless its controller is coupled.
    pub(super) fn get_mut_with_siblings(
        &mut self,
        id: PathId,
    ) -> Option<(&mut SendPath, &[Sibling])> {
        self.note_change();
        self.siblings.clear();
        let path = self.map.get(id)?;
        if path.congestion.as_ref().is_some_and(PathCongestion::is_coupled) {
            let own = standing(path);
            let beside = |other: &&SendPath| other.id != id && standing(other) == own;
            self.siblings.extend(self.map.values().filter(beside).filter_map(|other| {
                Some(other.congestion.as_ref()?.as_sibling(&other.sent, &other.rtt))
            }));
        }
        Some((self.map.get_mut(id)?, &self.siblings))
    }

    /// A path, to change what its control has due and no scheduler sees.
    pub(super) fn get_for_control(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.control_due.set(None);
        self.map.get_mut(id)
    }

    /// A path, to change what schedulers see, and of what its control waits for nothing or to a
    /// later time.
    pub(super) fn get_for_view(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.view_is_stale = true;
        self.map.get_mut(id)
    }

    /// A path, to change what neither a scheduler sees nor its control waits for.
    pub(super) fn get_unseen(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.map.get_mut(id)
    }

    /// The same, of all paths.
    pub(super) fn iter_unseen(&mut self) -> impl Iterator<Item = &mut SendPath> {
        self.map.values_mut()
    }

    pub(super) fn insert(&mut self, mut path: SendPath) {
        if let Some(controller) = &self.controller {
            path.close_loop(controller);
        }
        self.map.insert(path.id, path);
        self.note_change();
    }

    pub(super) fn remove(&mut self, id: PathId) {
        self.map.remove(id);
        self.note_change();
    }

    fn note_change(&mut self) {
        self.view_is_stale = true;
        self.control_due.set(None);
    }

    /// Whether a path can carry data.
    pub(super) fn any_up(&self) -> bool {
        self.map.values().any(|path| path.state == PathState::Up)
    }

    /// Bytes of packets kept in case they have to be sent again.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.map.values().map(|path| path.sent.kept_bytes()).sum()
    }

    /// A datagram of data, `length` bytes long without UDP and IP, leaves over a path, which
    /// `number` gives its number. The view follows.
    pub(super) fn send<Numbered>(
        &mut self,
        now: Instant,
        id: PathId,
        length: usize,
        queue_is_empty: bool,
        number: impl FnOnce(&mut SendPath) -> Numbered,
    ) -> Option<(&SendPath, Numbered)> {
        let path = self.map.get_mut(id)?;
        let numbered = number(path);
        path.on_sent(now, path.route.ip_bytes(length), queue_is_empty);
        if let Some(view) = self.view.iter_mut().find(|view| view.id == id) {
            view.in_flight_bytes = path.sent.in_flight_bytes();
            view.sent_packets = path.sent_packets;
            if let Some(congestion) = &path.congestion {
                view.ready_at = congestion.ready_at();
            }
        }
        Some((path, numbered))
    }

    /// Another path fell silent whose signal these may have waited for.
    pub(super) fn look_for_more(&mut self, now: Instant, relieved: PathSet) {
        for path in self.map.values_mut().filter(|path| relieved.contains(path.id)) {
            if let Some(congestion) = &mut path.congestion {
                congestion.look_for_more(now);
            }
        }
        self.view_is_stale = true;
    }

    /// All that may leave now has left; `waits` says for which paths there is more.
    pub(super) fn note_rest(&mut self, now: Instant, waits: impl Fn(PathId) -> bool) {
        for path in self.map.values_mut() {
            path.note_rest(now, waits(path.id));
        }
    }

    /// What was lost last on a path must not count as in flight for ever. Gives `lost` what is to
    /// be sent again.
    pub(super) fn expire(&mut self, now: Instant, mut lost: impl FnMut(Vec<KeptPacket>)) {
        for path in self.map.values_mut() {
            // Hardly ever is anything as old as that.
            if path.sent.oldest_at().is_some_and(|oldest| oldest + UNACKNOWLEDGED_MIN < now) {
                let patience = path.rtt.patience().max(UNACKNOWLEDGED_MIN);
                let lost_bytes = path.sent.expire(now.saturating_sub(patience));
                if let Some(congestion) = &mut path.congestion
                    && lost_bytes > 0
                {
                    congestion.on_timeout(now, lost_bytes, &path.sent);
                }
                lost(path.sent.take_lost());
                path.mtu.on_large_loss(now, path.sent.large_lost());
                self.view_is_stale = true;
            }
        }
    }
}

/// What schedulers see.
impl Paths {
    /// The view as it was made last: cheapest path first.
    pub(super) fn view(&self) -> &[PathView] {
        &self.view
    }

    /// A path of the view, as long as that is not stale.
    pub(super) fn viewed(&self, id: PathId) -> Option<&PathView> {
        self.view.iter().find(|view| view.id == id).filter(|_| !self.view_is_stale)
    }

    /// Whether every path of the view carries inner packets that need so much room.
    pub(super) fn all_carry(&self, room: usize) -> bool {
        room <= self.view_inner_max
    }

    /// Makes the view anew if it is stale; says whether it was.
    pub(super) fn refresh_view(&mut self) -> bool {
        let was_stale = self.view_is_stale;
        if was_stale {
            self.view = self.usable();
            let paths = self.view.iter().filter_map(|view| self.map.get(view.id));
            self.view_inner_max = paths.map(SendPath::inner_max).min().unwrap_or(0);
            self.view_is_stale = false;
        }
        debug_assert_eq!(self.view, self.usable(), "the view follows the paths");
        was_stale
    }

    /// Usable paths, cheapest first: those of the best standing there is.
    fn usable(&self) -> Vec<PathView> {
        let best = self.map.values().filter_map(standing).min();
        let usable = self.map.values().filter(|path| best.is_some() && standing(path) == best);
        let mut view: Vec<PathView> = usable.map(SendPath::view).collect();
        view.sort_by_key(|view| (view.price, view.order, view.id));
        view
    }

    /// The paths of the view that carry inner packets of so many bytes, or may, as long as it was
    /// not tried.
    pub(super) fn view_for(&self, room: usize) -> Option<Vec<PathView>> {
        let that = |fits: &dyn Fn(&SendPath) -> bool| {
            let fits = |view: &&PathView| self.map.get(view.id).is_some_and(fits);
            let paths: Vec<_> = self.view.iter().filter(fits).copied().collect();
            (!paths.is_empty()).then_some(paths)
        };
        that(&|path| room <= path.inner_max()).or_else(|| that(&|path| room <= path.inner_hoped()))
    }
}

/// When paths have something due.
impl Paths {
    /// When a path's control may have something due, which `find` finds. Looked for when somebody
    /// asks, not after each of the datagrams that change it.
    pub(super) fn control_due(
        &self,
        now: Instant,
        find: impl FnOnce() -> Option<Instant>,
    ) -> Option<Instant> {
        if self.control_due.get().is_none_or(|due| due <= now) {
            self.control_due.set(find());
        }
        self.control_due.get()
    }

    /// What is known of it without looking.
    pub(super) fn known_control_due(&self) -> Option<Instant> {
        self.control_due.get()
    }

    /// Something changed that all paths' control waits for.
    pub(super) fn forget_control_due(&self) {
        self.control_due.set(None);
    }

    /// Data may leave: a mark is due so long after it; all else that data makes due comes later.
    pub(super) fn data_may_leave(&self, now: Instant) {
        self.control_due.update(|due| due.map(|due| due.min(now + MARK_DELAY)));
    }
}

/// The lower, the better a path is to be used; `None` when it is not to be used at all.
fn standing(path: &SendPath) -> Option<u8> {
    match path.state {
        PathState::Up if !path.info.standby => Some(0),
        PathState::Up => Some(1),
        PathState::Lossy => Some(2),
        // Better than none.
        PathState::Silent => Some(3),
        PathState::Validating | PathState::Asleep => None,
    }
}
