//! Applications: each models both of its ends, without I/O and without a clock.
//!
//! Contract: [`App::handle_packet`] and [`App::handle_timeout`] are the input and may put packets
//! into the outbox; [`App::poll_timeout`] gives the time of the next call. Times given must not
//! decrease. A world carries each packet of the outbox to the end that it names, or loses it.

use core::fmt::Debug;

use plait_proto::time::{Duration, Instant};

use crate::error::WorldError;
use crate::packet::{End, Packet};
use crate::scenario::app::{Direction, Traffic, Via};
use crate::scenario::{AppSpec, Scenario};
use crate::tcp::Segment;
use crate::tcp::mptcp::LocalQueue;

mod bulk;
mod cbr;
mod connection;
mod delays;
pub mod e_model;
mod exchange;
mod multipath;
mod shape;
mod tally;
mod video;
pub mod viewer_score;
mod voip;
mod web;

pub use delays::Delays;
pub(crate) use multipath::subflow_of;
pub use multipath::{MultipathInside, MultipathView, SubflowView};
pub use tally::{Span, Tally};
pub use video::VideoView;

/// Packets on their way out of an application.
pub type Outbox = Vec<Packet>;

/// An application's own figures.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Its TCP senders' windows together, in full segments; `None` without TCP.
    pub cwnd_segments: Option<f64>,
    /// Data segments sent by its TCP senders, retransmissions included.
    pub segments: u64,
    /// Those of them that are retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Figures that only a modelled TCP sender has.
    pub recovery: Option<RecoveryView>,
    /// Time that all transfers of limited length took together, once they are complete.
    pub transfer: Option<Transfer>,
    /// Figures that only a modelled MPTCP connection has.
    pub multipath: Option<MultipathView>,
    /// A call's quality on a scale from 1 to 4.5 (ITU-T G.107).
    pub mos: Option<f64>,
    /// Load times in seconds of the pages that were finished within the measured span.
    pub page_loads_s: Vec<f64>,
    /// What a viewer of a video met.
    pub video: Option<VideoView>,
}

/// How loss recovery went, all TCP senders together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecoveryView {
    /// Acknowledgements at a sender that advanced nothing while data was outstanding.
    pub duplicate_acks: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Loss recoveries that proved spurious and were undone.
    pub undone_recoveries: u64,
    /// The longest of the senders' retransmission timeouts now.
    pub rto: Duration,
}

/// A transfer that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Payload that the receiver was given.
    pub bytes: u64,
    /// From the first SYN to the last byte at the receiver.
    pub time: Duration,
}

/// An application.
pub trait App: Debug + Send {
    /// When to call [`App::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox);

    /// Takes a packet that arrived at the end that it names.
    fn handle_packet(&mut self, now: Instant, packet: &Packet, out: &mut Outbox);

    /// The segment that one of its packets in flight carries; `None` without TCP.
    fn segment(&self, _packet: &Packet) -> Option<Segment> {
        None
    }

    /// Sends a segment that replaces one that was read and changed between the ends. `None` when
    /// its connection is gone.
    fn replace(&mut self, _now: Instant, _stream: u32, _segment: Segment) -> Option<Packet> {
        None
    }

    /// Whether [`App::see_link`] has an effect.
    fn sees_links(&self) -> bool {
        false
    }

    /// The queue of the sender's device of the link that carries its subflow of this number, before
    /// anything else is handled.
    fn see_link(&mut self, _subflow: usize, _queue: LocalQueue) {}

    /// What was sent and what arrived.
    fn tally(&self) -> &Tally;

    /// Its other figures.
    fn observe(&self) -> Observation;
}

/// Makes the scenario's application number `at`. `zero` is the scenario's start, `span` the time
/// that metrics cover.
///
/// # Errors
///
/// A TCP controller or a loss recovery that the model does not know.
pub fn build(
    scenario: &Scenario,
    at: usize,
    zero: Instant,
    span: Span,
    seed: u64,
) -> Result<Box<dyn App>, WorldError> {
    let spec = &scenario.apps[at];
    let place = Place::new(scenario, spec, at, zero, span);
    Ok(match &spec.traffic {
        Traffic::Udp(udp) => Box::new(cbr::Cbr::new(place, udp)),
        Traffic::OnOff(on_off) => Box::new(cbr::Cbr::on_off(place, on_off, seed)),
        Traffic::Voip(voip) => Box::new(voip::Voip::new(place, *voip)),
        Traffic::Web(web) => Box::new(web::Web::new(place, web, seed)?),
        Traffic::Video(video) => Box::new(video::Video::new(place, video, seed)?),
        Traffic::Tcp(tcp) => match &tcp.mptcp {
            Some(mptcp) => Box::new(multipath::Multipath::new(place, tcp, mptcp)?),
            None => Box::new(bulk::Bulk::new(place, tcp)?),
        },
    })
}

/// Parameters that every application gets.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    name: String,
    app: usize,
    /// Where its data goes.
    data_to: End,
    /// The scenario's start.
    zero: Instant,
    start: Instant,
    stop: Instant,
    /// Longest packet that its route carries.
    mtu: u16,
    /// The DSCP of its packets.
    dscp: u8,
    span: Span,
}

impl Place {
    fn new(scenario: &Scenario, spec: &AppSpec, app: usize, zero: Instant, span: Span) -> Self {
        let mtu = match (&spec.via, &scenario.bond) {
            (Via::Link(name), _) => scenario.links[name].mtu,
            (Via::Steer, _) => {
                scenario.steer.as_ref().expect("a checked scenario steers where it says so").mtu
            }
            (Via::Mptcp, _) => multipath::mtu(scenario, spec),
            (Via::Bond, bond) => {
                bond.as_ref().expect("a checked scenario's bond exists when it is used").inner_mtu
            }
        };
        Self {
            name: spec.name.clone(),
            app,
            data_to: match spec.direction {
                Direction::Down => End::Customer,
                Direction::Up => End::Server,
            },
            zero,
            start: zero + spec.start,
            stop: zero + spec.stop,
            mtu: mtu.min(ETHERNET_MTU_BYTES),
            dscp: spec.dscp,
            span,
        }
    }
}

/// Hosts are on Ethernet, whatever the links take.
pub(crate) const ETHERNET_MTU_BYTES: u16 = 1500;
