//! A congestion controller says how much a path (or a TCP connection) may have in flight. It is
//! told what happens, one struct per event, and owns its own state, never the path. One algorithm
//! per file in `congestion/`, each with a page in `docs/algorithms/`.
//!
//! It does not find losses, repair them or smooth a reduction over a round trip; that is its
//! owner's work. What a byte is, payload or the whole packet, is also the owner's choice, as long
//! as the segment size, the events and the window are counted alike.

mod balia;
mod config;
mod coupled;
mod cubic;
mod cubic_linux;
mod edinburgh;
mod fixed;
mod gauge;
mod hystart;
mod hystart_plus_plus;
mod illinois;
mod lia;
mod new_reno;
mod olia;
mod recent;
mod rounds;
mod slow_start;
#[cfg(test)]
mod tests;
mod whitehaul;
mod whole_window;
mod window;

pub use balia::Balia;
pub use config::{Algorithm, ControllerConfig, SlowStart, UnknownAlgorithm, UnknownSlowStart};
pub use cubic::Cubic;
pub use cubic_linux::CubicLinux;
pub use edinburgh::{Backoff, Edinburgh, EdinburghConfig};
pub use fixed::Fixed;
pub use gauge::Gauge;
pub use illinois::Illinois;
pub use lia::Lia;
pub use new_reno::NewReno;
pub use olia::Olia;
pub use whitehaul::{Adv, Repair, Repairs, UnknownRepair, WhiteHaul, WhiteHaulConfig};

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// What a controller starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The largest segment, in the owner's bytes: the unit of growth. At least 1.
    pub segment_bytes: u64,
    /// The initial window (RFC 6928: ten segments).
    pub initial_window_bytes: u64,
}

impl Start {
    /// Ten segments of `segment_bytes` (RFC 6928 section 2).
    pub const fn ten_segments(segment_bytes: u64) -> Self {
        Self { segment_bytes, initial_window_bytes: 10 * segment_bytes }
    }
}

/// A packet left, new or sent again.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Its length.
    pub bytes: u64,
    /// In flight, this packet included.
    pub in_flight_bytes: u64,
}

/// What the controller wants to know again when the packet is acknowledged. The owner keeps it with
/// the packet and reads nothing from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketState {
    /// Bytes sent since the start, this packet included: its place in the order of sending.
    pub sent_bytes_total: u64,
    /// In flight when it left, itself included.
    pub in_flight_bytes: u64,
    /// The controller held the rate below what it believes the path to carry when it left, or when
    /// what was then on its way did: its sample shows no more than that.
    pub is_restrained: bool,
}

/// What the owner is busy with when an acknowledgement arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// No known loss is being repaired.
    #[default]
    Open,
    /// Losses of one window are being repaired, and the owner meters what it sends; loss-based
    /// controllers stand still.
    FastRecovery,
    /// A retransmission timeout fired and what was then in flight is not yet acknowledged.
    RtoRecovery,
}

/// How a sibling path or subflow of the same bond stands; coupled controllers need it.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    /// Its window.
    pub window_bytes: u64,
    /// Its bytes in flight.
    pub in_flight_bytes: u64,
    /// Its smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Its delivery rate; zero when unknown.
    pub delivery_rate: Rate,
    /// [`Controller::loss_gap_bytes`] of its controller.
    pub loss_gap_bytes: u64,
}

/// Something was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct AckSample<'a> {
    /// When.
    pub now: Instant,
    /// Bytes newly known to have arrived, cumulatively or selectively acknowledged.
    pub acked_bytes: u64,
    /// State of that packet among them that was sent last.
    pub newest: PacketState,
    /// State of the last packet that is acknowledged together with all before it, by this or an
    /// earlier acknowledgement: behind `newest` while a gap is open. `None` before the first, and
    /// where packets are acknowledged one by one.
    pub in_order: Option<PacketState>,
    /// Round-trip time of the last-sent of them; `None` when only packets that were sent more than
    /// once were acknowledged (Karn).
    pub rtt: Option<Duration>,
    /// How much longer than at best its way back took: this part of the round-trip time is no queue
    /// that the owner's packets stood in. `None` where acknowledgements do not tell.
    pub way_back_excess: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298); `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The smallest recent round-trip time.
    pub min_rtt: Option<Duration>,
    /// In flight after this acknowledgement.
    pub in_flight_bytes: u64,
    /// Bytes found lost since the sample before.
    pub lost_bytes: u64,
    /// Delivery rate that this acknowledgement shows; zero when unknown.
    pub delivery_rate: Rate,
    /// Whether too little was there to send when `newest` left, so that the delivery rate may be
    /// less than the path can carry.
    pub rate_is_app_limited: bool,
    /// Whether the application or the receiver, rather than the window, limits what is in flight.
    pub app_limited: bool,
    /// What the owner is busy with.
    pub phase: Phase,
    /// The other paths of the bond, or subflows of the connection; empty for a lone one, and for a
    /// controller that is not coupled ([`Controller::is_coupled`]).
    pub siblings: &'a [Sibling],
}

/// Packets were found lost: once per episode, when its first loss is found.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When.
    pub now: Instant,
    /// Bytes sent and not yet cumulatively acknowledged (`FlightSize` of RFC 5681).
    pub flight_bytes: u64,
}

/// Whether a retransmission timeout opens an episode of loss or falls into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Episode {
    /// The controller has not yet answered this loss.
    New,
    /// It has, to an event before; only the window shrinks further.
    Continued,
}

/// The retransmission timer fired.
#[derive(Clone, Copy, Debug)]
pub struct Rto {
    /// When.
    pub now: Instant,
    /// Bytes sent and not yet cumulatively acknowledged.
    pub flight_bytes: u64,
    /// Bytes that are still taken to be under way; zero when all are taken to be lost.
    pub in_flight_bytes: u64,
    /// Whether the episode is new.
    pub episode: Episode,
}

/// The latest [`Loss`] or [`Rto`] episode was a mistake: nothing had been lost.
#[derive(Clone, Copy, Debug)]
pub struct Spurious {
    /// When that was found.
    pub now: Instant,
    /// The window then in use, as the owner had metered it: a controller that does not meter
    /// recovery itself goes on with no smaller one (Linux: `tcp_reno_undo_cwnd`).
    pub window_bytes: u64,
}

/// Decides how much may be in flight.
pub trait Controller: core::fmt::Debug + Send {
    /// A packet left; what is returned comes back in [`AckSample::newest`].
    fn on_sent(&mut self, sent: &Sent) -> PacketState;

    /// Something was acknowledged.
    fn on_ack(&mut self, sample: &AckSample<'_>);

    /// An episode of loss begins.
    fn on_loss(&mut self, loss: &Loss);

    /// The retransmission timer fired.
    fn on_rto(&mut self, rto: &Rto);

    /// The path gives no answer any more: all that was on its way is taken to be lost.
    fn on_silence(&mut self, _now: Instant) {}

    /// There is reason to think that the path carries more from now on. A controller that always
    /// asks for more need not do anything.
    fn on_relief(&mut self, _now: Instant) {}

    /// Takes back the answer to the latest episode.
    fn on_spurious(&mut self, spurious: &Spurious);

    /// The connection suffers from this subflow: its window is halved although nothing was lost
    /// (MPTCP's penalty; `docs/algorithms/mptcp.md`). A controller that does not know better
    /// answers as to a loss.
    fn on_penalty(&mut self, now: Instant) {
        self.on_loss(&Loss { now, flight_bytes: self.window() });
    }

    /// How many bytes may be in flight.
    fn window(&self) -> u64;

    /// The window at which slow start ends; `u64::MAX` while unknown.
    fn ssthresh(&self) -> u64;

    /// The rate at which packets should leave; `None` when the controller does not pace.
    fn pacing_rate(&self) -> Option<Rate>;

    /// What the path is believed to carry; `None` when the controller does not estimate it.
    fn bandwidth(&self) -> Option<Rate> {
        None
    }

    /// Whether [`Controller::window`] holds during recovery as well, so that the owner is not to
    /// meter what it sends then (by the rate reduction of RFC 6937, for one).
    fn meters_recovery(&self) -> bool {
        false
    }

    /// Whether it needs to know [`AckSample::siblings`]; the owner may leave them out otherwise.
    fn is_coupled(&self) -> bool {
        false
    }

    /// Bytes that arrived between the last two losses, or since the last one if those are more:
    /// what OLIA judges a path by. Zero where the controller does not count them.
    fn loss_gap_bytes(&self) -> u64 {
        0
    }

    /// Whether the window grows by slow start.
    fn in_slow_start(&self) -> bool {
        self.window() < self.ssthresh()
    }
}
