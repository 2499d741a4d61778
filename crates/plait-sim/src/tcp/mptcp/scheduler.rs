//! Which subflow carries the next data. A scheduler decides over read-only views and owns its own
//! state, never the subflows. One algorithm per file in `scheduler/`, each with a page in
//! `docs/algorithms/`. Four of them are the bond's own, asked about subflows (`of_bond.rs`).

use core::fmt;
use core::str::FromStr;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

mod blest;
mod ecf;
mod min_rtt;
mod of_bond;
mod otias;
mod qaware;
mod redundant;
mod round_robin;
mod shortest_flush;
#[cfg(test)]
mod testing;

/// The queue of the sender's own device, before the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LocalQueue {
    /// Packets that wait.
    pub packets: u64,
    /// What the device sends; zero when unknown.
    pub rate: Rate,
}

/// What a scheduler may know about a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SubflowView {
    /// Whether it may carry data: established, and not given up for the time being.
    pub(super) is_usable: bool,
    /// Whether it is for times when no other can carry data.
    pub(super) is_backup: bool,
    /// Smoothed round-trip time and its mean deviation; `None` before the first sample.
    pub(super) srtt: Option<Duration>,
    pub(super) rtt_variation: Option<Duration>,
    /// Congestion window.
    pub(super) window_bytes: u64,
    /// Sent and taken to be under way.
    pub(super) in_flight_bytes: u64,
    /// Handed to the subflow and not sent yet.
    pub(super) unsent_bytes: u64,
    /// What its send buffer holds, as the kernel counts memory, and its size.
    pub(super) memory_bytes: u64,
    pub(super) buffer_bytes: u64,
    /// The rate at which it would pace.
    pub(super) pacing_rate: Rate,
    /// Bytes that other subflows have carried and this one has not.
    pub(super) behind_bytes: u64,
    /// The sender's device of this subflow's link.
    pub(super) local: LocalQueue,
}

impl SubflowView {
    /// Whether another segment could leave at once. A window with nothing in flight takes a
    /// segment of any length.
    pub(super) fn has_room(&self, segment_bytes: u64) -> bool {
        let out = self.in_flight_bytes + self.unsent_bytes;
        out == 0 || out + segment_bytes <= self.window_bytes
    }

    /// Whether its send buffer takes more.
    pub(super) fn has_memory(&self) -> bool {
        self.memory_bytes < self.buffer_bytes
    }
}

/// What a scheduler may know about the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ConnectionView {
    /// Now.
    pub(super) now: Instant,
    /// Data bytes of a full segment.
    pub(super) segment_bytes: u64,
    /// Written and never sent.
    pub(super) unsent_bytes: u64,
    /// What the receiver has room for beyond what was sent.
    pub(super) room_bytes: u64,
    /// The receiver's window: what may be outstanding.
    pub(super) window_bytes: u64,
    /// How often data was sent again over another subflow.
    pub(super) reinjections: u64,
}

impl ConnectionView {
    /// New bytes that may leave.
    pub(super) fn sendable_bytes(&self) -> u64 {
        self.unsent_bytes.min(self.room_bytes)
    }
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// Hand so many new bytes to this subflow, fewer if its buffer is full before.
    Send { subflow: usize, bytes: u64 },
    /// Send the first segment over it that others have carried and it has not.
    Copy { subflow: usize },
    /// Nothing, until something changes.
    Wait,
}

/// Picks subflows.
pub(super) trait Scheduler: fmt::Debug + Send {
    /// Decides about the next data. A `Send` is carried out.
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision;

    /// Whether it is to be asked although nothing new may leave.
    fn sends_copies(&self) -> bool {
        false
    }

    /// Whether it hands a subflow more than fits its window.
    fn fills_buffers(&self) -> bool {
        false
    }

    /// Whether it looks at the sender's devices.
    fn sees_local_queues(&self) -> bool {
        false
    }
}

/// The subflows that may carry data: backups only where there is no other.
pub(super) fn candidates(
    subflows: &[SubflowView],
) -> impl Iterator<Item = (usize, &SubflowView)> + Clone {
    let usable = subflows.iter().enumerate().filter(|(_, subflow)| subflow.is_usable);
    let has_active = usable.clone().any(|(_, subflow)| !subflow.is_backup);
    usable.filter(move |(_, subflow)| !subflow.is_backup || !has_active)
}

/// A scheduler by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchedulerName {
    /// `shortest-flush`: the one that would be through first with what it was given, at its pacing
    /// rate; in bursts of 64 kB, into buffers. What upstream Linux calls `default`.
    #[default]
    ShortestFlush,
    /// `min-rtt`: the lowest smoothed round-trip time among those with room. The default of
    /// multipath-tcp.org.
    MinRtt,
    /// `round-robin`: those with room in turn, a segment each.
    RoundRobin,
    /// `redundant`: everything over each of them.
    Redundant,
    /// `blest`: a slower one only where that will not block the window.
    Blest,
    /// `ecf`: a slower one only where waiting for the quickest is not earlier.
    Ecf,
    /// `otias`: the one on which the segment would arrive first, if need be behind others in its
    /// queue.
    Otias,
    /// `qaware`: the lowest round-trip time with the queue of the sender's own device added.
    Qaware,
}

impl SchedulerName {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ShortestFlush,
        Self::MinRtt,
        Self::RoundRobin,
        Self::Redundant,
        Self::Blest,
        Self::Ecf,
        Self::Otias,
        Self::Qaware,
    ];

    /// The name in scenarios and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShortestFlush => "shortest-flush",
            Self::MinRtt => "min-rtt",
            Self::RoundRobin => "round-robin",
            Self::Redundant => "redundant",
            Self::Blest => "blest",
            Self::Ecf => "ecf",
            Self::Otias => "otias",
            Self::Qaware => "qaware",
        }
    }

    /// A new scheduler.
    pub(super) fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::ShortestFlush => Box::new(shortest_flush::ShortestFlush::default()),
            Self::MinRtt => Box::new(min_rtt::MinRtt::default()),
            Self::RoundRobin => Box::new(round_robin::RoundRobin::default()),
            Self::Redundant => Box::new(redundant::Redundant),
            Self::Blest => Box::new(blest::Blest::default()),
            Self::Ecf => Box::new(ecf::Ecf::default()),
            Self::Otias => Box::new(otias::Otias),
            Self::Qaware => Box::new(qaware::Qaware),
        }
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of no scheduler.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "unknown scheduler `{0}`: use one of shortest-flush, min-rtt, round-robin, redundant, blest, \
     ecf, otias and qaware"
)]
pub struct UnknownScheduler(pub String);

impl FromStr for SchedulerName {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Self, UnknownScheduler> {
        let known = Self::ALL.into_iter().find(|scheduler| scheduler.name() == name);
        known.ok_or_else(|| UnknownScheduler(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{connection, subflow};
    use super::*;

    #[test]
    fn names_parse_to_what_they_name() {
        for scheduler in SchedulerName::ALL {
            assert_eq!(scheduler.to_string().parse(), Ok(scheduler));
        }
        let error = "default".parse::<SchedulerName>().unwrap_err().to_string();
        assert!(SchedulerName::ALL.iter().all(|known| error.contains(known.name())), "{error}");
    }

    #[test]
    fn a_backup_is_taken_only_where_no_other_is_usable() {
        for name in SchedulerName::ALL {
            let mut scheduler = name.build();
            let slow = subflow(90, 50);
            let backup = SubflowView { is_backup: true, ..subflow(10, 50) };
            let takes = |scheduler: &mut dyn Scheduler, subflows: &[SubflowView]| match scheduler
                .pick(&connection(100), subflows)
            {
                Decision::Send { subflow, .. } | Decision::Copy { subflow } => Some(subflow),
                Decision::Wait => None,
            };
            assert_eq!(takes(&mut *scheduler, &[backup, slow]), Some(1), "{name}");
            let full = SubflowView {
                in_flight_bytes: slow.window_bytes,
                memory_bytes: slow.buffer_bytes,
                ..slow
            };
            assert_eq!(takes(&mut *scheduler, &[backup, full]), None, "{name}: full is no failure");
            let gone = SubflowView { is_usable: false, ..slow };
            assert_eq!(takes(&mut *scheduler, &[backup, gone]), Some(0), "{name}");
            let gone_too = SubflowView { is_usable: false, ..backup };
            assert_eq!(takes(&mut *scheduler, &[gone_too, gone]), None, "{name}");
        }
    }
}
