//! Synthetic views for tests of schedulers.

use super::{BulkLoad, FlowClass, PacketInfo, PathView, Scheduler, View};
use crate::scheduler::Decision;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A path that is usable and about which nothing is known yet.
pub(crate) struct PathBuilder(PathView);

/// Starts a path with this id, which is also its place in the configuration.
pub(crate) fn path(id: u8) -> PathBuilder {
    PathBuilder(PathView {
        id: PathId(id),
        price: 0,
        order: id,
        weight: 1,
        srtt: None,
        latest_rtt: None,
        min_rtt: None,
        in_flight_bytes: 0,
        delivery_rate: Rate::ZERO,
        delivered_bytes: 0,
        sent_packets: 0,
        rtt_variation: None,
        window_bytes: None,
        capacity: Rate::ZERO,
        ready_at: Instant::ZERO,
        is_starting: false,
        loss_permille: 0,
    })
}

impl PathBuilder {
    pub(crate) fn weight(mut self, weight: u16) -> Self {
        self.0.weight = weight;
        self
    }

    /// All round-trip times alike: no queue.
    pub(crate) fn rtt_ms(mut self, ms: u64) -> Self {
        let rtt = Some(Duration::from_millis(ms));
        (self.0.srtt, self.0.latest_rtt, self.0.min_rtt) = (rtt, rtt, rtt);
        self
    }

    pub(crate) fn srtt_ms(mut self, ms: u64) -> Self {
        self.0.srtt = Some(Duration::from_millis(ms));
        self
    }

    pub(crate) fn rate_mbit(mut self, mbit: u64) -> Self {
        self.0.delivery_rate = Rate::from_mbit(mbit);
        self
    }

    pub(crate) fn in_flight(mut self, bytes: u64) -> Self {
        self.0.in_flight_bytes = bytes;
        self
    }

    /// The path carries so much, and its controller allows so many bytes in flight.
    pub(crate) fn closed(mut self, mbit: u64, window_bytes: u64) -> Self {
        self.0.delivery_rate = Rate::from_mbit(mbit);
        self.0.capacity = Rate::from_mbit(mbit);
        self.0.window_bytes = Some(window_bytes);
        self
    }

    /// The window is full.
    pub(crate) fn full(mut self) -> Self {
        self.0.in_flight_bytes = self.0.window_bytes.expect("a closed-loop path has a window");
        self
    }

    /// When the pacer lets the next packet go, from time zero.
    pub(crate) fn ready_in_us(mut self, us: u64) -> Self {
        self.0.ready_at = Instant::ZERO + Duration::from_micros(us);
        self
    }

    pub(crate) fn variation_ms(mut self, ms: u64) -> Self {
        self.0.rtt_variation = Some(Duration::from_millis(ms));
        self
    }

    pub(crate) fn latest_rtt_ms(mut self, ms: u64) -> Self {
        self.0.latest_rtt = Some(Duration::from_millis(ms));
        self
    }

    pub(crate) fn price(mut self, price: u8) -> Self {
        self.0.price = price;
        self
    }

    pub(crate) fn loss_permille(mut self, permille: u16) -> Self {
        self.0.loss_permille = permille;
        self
    }

    pub(crate) fn build(self) -> PathView {
        self.0
    }
}

/// Plain paths with the ids 0 to `count`.
pub(crate) fn plain_paths(count: u8) -> Vec<PathView> {
    (0..count).map(|id| path(id).build()).collect()
}

/// A view at time zero.
pub(crate) fn view(paths: &[PathView]) -> View<'_> {
    View { now: Instant::ZERO, paths }
}

/// One flow with a congestion controller.
pub(crate) const ONE_FLOW: BulkLoad =
    BulkLoad { flows: 1, is_unresponsive: false, is_fresh: false };

/// A full-sized packet.
pub(crate) const PACKET: PacketInfo =
    PacketInfo { bytes: 1500, class: FlowClass::Bulk, queued_bytes: 0, load: ONE_FLOW };

/// A full-sized bulk packet with so many bytes behind it.
pub(crate) fn bulk(queued_bytes: u64) -> PacketInfo {
    PacketInfo { queued_bytes, ..PACKET }
}

/// A full-sized packet of an interactive flow.
pub(crate) const INTERACTIVE: PacketInfo =
    PacketInfo { bytes: 1500, class: FlowClass::Interactive, queued_bytes: 0, load: ONE_FLOW };

/// A decision in words, as tables hold it: `0`, `0+1`, `wait 200` in microseconds, `blocked`.
pub(crate) fn words(decision: Decision) -> String {
    match decision {
        Decision::Send(path) => path.0.to_string(),
        Decision::Copies(paths) => {
            paths.iter().map(|path| path.0.to_string()).collect::<Vec<_>>().join("+")
        }
        Decision::Wait { until } => format!("wait {}", until.as_nanos() / 1000),
        Decision::Blocked => "blocked".into(),
    }
}

/// A decision at time zero, in words.
pub(crate) fn decide(
    scheduler: &mut dyn Scheduler,
    paths: &[PathView],
    packet: PacketInfo,
) -> String {
    words(scheduler.pick(&view(paths), &packet))
}

/// Fills the last column of a table again and compares: the first line names the columns, each
/// other line has numbers up to a `|` and then the expected result.
pub(crate) fn check_table(table: &str, result: impl Fn(&[f64]) -> String) {
    let mut lines = table.trim().lines();
    let names = lines.next().expect("a table has a line of names");
    for line in lines {
        let (numbers, expected) = line.split_once('|').expect("a line has a result");
        let numbers: Vec<f64> = numbers
            .split_whitespace()
            .map(|number| number.parse().expect("columns hold numbers"))
            .collect();
        assert_eq!(result(&numbers), expected.trim(), "\n{names}\n{line}");
    }
}

/// The path of the next packet.
pub(crate) fn pick(scheduler: &mut dyn Scheduler, paths: &[PathView]) -> u8 {
    match scheduler.pick(&view(paths), &PACKET) {
        Decision::Send(path) => path.0,
        other => panic!("expected one path, got {other:?}"),
    }
}

/// The paths of the next `count` packets.
pub(crate) fn picks(scheduler: &mut dyn Scheduler, paths: &[PathView], count: usize) -> Vec<u8> {
    (0..count).map(|_| pick(scheduler, paths)).collect()
}

/// How often each of the first `N` ids occurs.
pub(crate) fn tally<const N: usize>(picks: &[u8]) -> [usize; N] {
    core::array::from_fn(|id| picks.iter().filter(|&&pick| usize::from(pick) == id).count())
}
