//! The scheduler picks the path of a packet. It decides over a read-only view and owns its own
//! state, never the paths. One algorithm per file in `scheduler/`, each with a page in
//! `docs/algorithms/`.

mod adaptive_wrr;
mod blest;
mod by_path;
mod cheapest_first;
mod config;
mod delivery;
mod earliest_delivery;
mod ecf;
mod fixed;
mod inverse_rtt;
mod min_rtt;
mod part;
#[cfg(test)]
mod random_views;
mod redundant;
mod round_robin;
mod smooth_wrr;
mod stall;
#[cfg(test)]
pub(crate) mod testing;

pub use adaptive_wrr::{
    AdaptiveWrr, AdaptiveWrrConfig, DwdMode, SmallFlows, WeightRounding, WeightUnit, WeightsAdapt,
};
pub use blest::{Blest, BlestConfig};
pub use cheapest_first::CheapestFirst;
pub use config::{Algorithm, SchedulerConfig, UnknownAlgorithm};
pub use earliest_delivery::{EarliestDelivery, EarliestDeliveryConfig};
pub use ecf::{Ecf, EcfConfig};
pub use fixed::Fixed;
pub use inverse_rtt::InverseRtt;
pub use min_rtt::MinRtt;
pub use part::Part;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;

use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A path that loses so many of a thousand datagrams is bad: interactive packets get a copy on
/// another one while there is any.
pub const COPIES_LOSS_PERMILLE: u16 = 10;

/// What a scheduler may know about one usable path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Price class of the path's link; cheapest first. Paths in a [`View`] are sorted by
    /// (`price`, `order`).
    pub price: u8,
    /// Place of the path in its owner's configuration; breaks ties between equal prices.
    pub order: u8,
    /// Configured static weight; 1 unless configured.
    pub weight: u16,
    /// Smoothed round-trip time (RFC 6298); `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The latest round-trip sample.
    pub latest_rtt: Option<Duration>,
    /// The smallest round-trip time over the last ten seconds: the path without its queue.
    pub min_rtt: Option<Duration>,
    /// Bytes sent at the IP layer that no acknowledgement has passed yet.
    pub in_flight_bytes: u64,
    /// Highest recent delivery rate at the IP layer, as the peer's acknowledgements show it; zero
    /// when unknown.
    pub delivery_rate: Rate,
    /// Bytes at the IP layer that the peer acknowledged since the bond began.
    pub delivered_bytes: u64,
    /// Data packets handed to the path since the bond began.
    pub sent_packets: u64,
    /// Mean deviation of the round-trip time (RFC 6298); `None` before the first sample.
    pub rtt_variation: Option<Duration>,
    /// How many bytes its congestion controller allows in flight; `None` in an open loop.
    pub window_bytes: Option<u64>,
    /// What the path is believed to carry: its controller's estimate where that has one, else the
    /// delivery rate; zero when unknown.
    pub capacity: Rate,
    /// Whether its controller is still in slow start: `capacity` is then what little was sent, and
    /// no more is known.
    pub is_starting: bool,
    /// From when on its pacer lets a packet go.
    pub ready_at: Instant,
    /// Of the datagrams whose fate became known lately, those lost, in thousandths.
    pub loss_permille: u16,
}

impl PathView {
    /// Whether controller and pacer let `bytes` go now. Always, in an open loop.
    pub fn has_room(&self, now: Instant, bytes: u64) -> bool {
        self.ready_at <= now && self.has_window(bytes)
    }

    /// Whether `bytes` more fit the congestion window. A window with nothing in flight takes a
    /// packet of any length.
    pub fn has_window(&self, bytes: u64) -> bool {
        self.in_flight_bytes == 0
            || self.window_bytes.is_none_or(|window| self.in_flight_bytes + bytes <= window)
    }
}

/// A read-only view of the bond at the moment of a decision.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Now.
    pub now: Instant,
    /// The usable paths, cheapest first; never empty when a scheduler is asked.
    pub paths: &'a [PathView],
}

/// What a scheduler may know about the packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// Length at the path's IP layer, framing included.
    pub bytes: u64,
    /// What kind of flow it belongs to.
    pub class: FlowClass,
    /// Bytes of the same kind that wait behind it at the ingress.
    pub queued_bytes: u64,
    /// What the bulk flows of the last seconds are like.
    pub load: BulkLoad,
}

/// Who would use a longer round trip, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkLoad {
    /// How many flows there are, 1 at least.
    pub flows: u16,
    /// They send on whatever is dropped of theirs: no window has to grow for a longer round trip.
    pub is_unresponsive: bool,
    /// None was told to slow down since it began: their windows grow by a share with each round
    /// trip, not yet by what a congestion controller remembers of a loss.
    pub is_fresh: bool,
}

impl Default for BulkLoad {
    /// One flow with a congestion controller.
    fn default() -> Self {
        Self { flows: 1, is_unresponsive: false, is_fresh: false }
    }
}

/// Kinds of flows, told apart by what they do: a flow that never has to wait is interactive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlowClass {
    /// It fills a queue: rate counts.
    #[default]
    Bulk,
    /// It sends little: delay counts.
    Interactive,
}

/// A set of path ids; at most 256 exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathSet([u64; 4]);

impl PathSet {
    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Adds a path.
    pub fn insert(&mut self, path: PathId) {
        self.0[usize::from(path.0 >> 6)] |= 1 << (path.0 & 63);
    }

    /// The members, lowest id first.
    pub fn iter(&self) -> impl Iterator<Item = PathId> + '_ {
        (0..4).filter(|&word| self.0[usize::from(word)] != 0).flat_map(|word: u8| {
            let ids = (word * 64..=word * 64 + 63).map(PathId);
            ids.filter(|&path| self.contains(path))
        })
    }

    /// Whether the path is a member.
    pub fn contains(&self, path: PathId) -> bool {
        self.0[usize::from(path.0 >> 6)] & (1 << (path.0 & 63)) != 0
    }
}

/// What to do with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Send it over this path.
    Send(PathId),
    /// Send one copy over each of these paths.
    Copies(PathSet),
    /// Keep it until then and ask again: a better path is about to have room.
    Wait {
        /// When to ask again at the latest.
        until: Instant,
    },
    /// No path may carry it.
    Blocked,
}

/// One path's line of a loss report: what happened since the report before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathReport {
    /// The path.
    pub path: PathId,
    /// Data packets that the egress counted lost, less those that arrived late after all.
    pub lost_packets: u64,
    /// Data packets handed to the path since the previous report arrived.
    pub sent_packets: u64,
}

/// Picks paths. Implementations keep their state by path id; paths come and go between calls.
pub trait Scheduler: core::fmt::Debug + Send {
    /// Whether it looks at windows and pacers by itself. One that does not is shown only paths that
    /// have room.
    fn respects_windows(&self) -> bool {
        false
    }

    /// Decides about `packet`. `Send` and `Copies` mean that it will be sent so.
    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision;

    /// Whether it treats interactive flows otherwise although nothing waits: in an open loop flows
    /// are told apart only for such a scheduler.
    fn tells_flows_apart(&self) -> bool {
        false
    }

    /// A further packet of `bytes` of the same contiguous run was sent on `path` without asking:
    /// accounts for it.
    fn on_run(&mut self, view: &View<'_>, path: PathId, bytes: u64);

    /// Paths that may carry more than they did, since another one has just fallen silent whose
    /// signal they may have waited for: their controllers are to look. Each is named once.
    fn take_relieved(&mut self) -> PathSet {
        PathSet::default()
    }

    /// A loss report arrived, with a line for each path it knows of.
    fn on_report(&mut self, _view: &View<'_>, _reports: &[PathReport]) {}

    /// The path will not come back under this id.
    fn on_path_gone(&mut self, _path: PathId) {}

    /// The weight of each path of the view, for status; empty when the algorithm has none.
    fn weights(&self, _view: &View<'_>) -> Vec<(PathId, u32)> {
        Vec::new()
    }

    /// What it makes of a path of the view for bulk traffic, for status; `None` when there was no
    /// traffic yet, or the algorithm leaves no path out.
    fn part(&self, _view: &View<'_>, _path: PathId) -> Option<Part> {
        None
    }
}
