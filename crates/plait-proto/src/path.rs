//! A path as its sender sees it: where it leads, how far it can be trusted, what it carries.

pub mod congestion;
pub(crate) mod control;
pub mod gaps;
pub mod kept;
pub(crate) mod map;
pub mod mtu;
pub mod pacer;
pub mod received;
pub(crate) mod route_check;
pub mod rtt;
pub mod sent;
mod way_back;

use core::net::{IpAddr, SocketAddr};

use congestion::PathCongestion;
use control::PathControl;
use mtu::PathMtu;
use route_check::RouteCheck;
use rtt::RttEstimator;
use sent::SentDatagrams;

use crate::config::SocketId;
use crate::congestion::ControllerConfig;
use crate::rng::Rng;
use crate::scheduler::PathView;
use crate::seq::{PacketNumber, PathId};
use crate::session::PathKey;
use crate::stats::PathState;
use crate::time::Instant;
use crate::units::Rate;
use crate::wire::control::PathInfo;
use crate::wire::handshake::SessionIndex;
use crate::wire::sealed::DATA_OVERHEAD_BYTES;

/// So many datagrams are not all lost by chance.
const DATAGRAMS_BEYOND_CHANCE: u32 = 8;
/// So many packet numbers are used, at least and at most, before one is left out.
const LEAVE_OUT_MIN: u64 = 64;
const LEAVE_OUT_MAX: u64 = 2048;
/// Bytes of a UDP header.
const UDP_HEADER_BYTES: u32 = 8;

/// From which socket and address to which address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The owner's socket.
    pub socket: SocketId,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The local address the peer sends to, where the socket has several.
    pub local: Option<IpAddr>,
}

impl Route {
    /// Length at the IP layer of a UDP payload of `bytes`.
    pub const fn ip_bytes(&self, payload_bytes: usize) -> u32 {
        let ip_header = if self.remote.is_ipv4() { 20 } else { 40 };
        payload_bytes as u32 + UDP_HEADER_BYTES + ip_header
    }
}

/// The packet numbers of a path in an epoch that was left, as acknowledgements still name them.
#[derive(Clone, Copy, Debug)]
struct PastEpoch {
    session: SessionIndex,
    base: u64,
    next: PacketNumber,
}

/// The peer's last loss report of a path, to find what is new in the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) received: u64,
    pub(crate) net_lost: u64,
    pub(crate) sent_packets: u64,
}

/// The sending side of a path.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct SendPath {
    /// Id within the bond.
    pub id: PathId,
    /// Whether it may carry data.
    pub state: PathState,
    session: SessionIndex,
    next_number: PacketNumber,
    /// Which packet number is left out next; zero before that is known.
    leave_out_at: PacketNumber,
    /// Since when so many are unanswered that they were not all lost by chance.
    pub beyond_chance_since: Option<Instant>,
    /// Since when something is out that the peer answers, without evidence since that it arrived.
    pub awaiting_since: Option<Instant>,
    /// When data was last sent.
    pub last_data_at: Option<Instant>,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Bytes sent at the IP layer.
    pub sent_bytes: u64,
    key: PathKey,
    /// Where it leads.
    pub route: Route,
    /// Its congestion controller and pacer; `None` in an open loop.
    pub congestion: Option<PathCongestion>,
    /// What is on its way.
    pub sent: SentDatagrams,
    /// How large a datagram it carries.
    pub mtu: PathMtu,
    /// What is known of the link: configured here, or told by the peer that owns it.
    pub info: PathInfo,
    /// What keeps it honest: its checks and probes.
    pub(crate) control: PathControl,
    /// Where its peer may have gone.
    pub(crate) route_check: RouteCheck,
    /// Round-trip time.
    pub rtt: RttEstimator,
    /// Share of what it carries that was lost lately, in thousandths.
    pub loss_permille: u16,
    /// Data packets the peer reported lost.
    pub reported_lost_packets: u64,
    /// The report that says so.
    pub(crate) reported: Reported,
    /// Control datagrams sent.
    pub control_packets: u64,
    /// Data packets sent again over another path because this one did not answer.
    pub rescued_packets: u64,
    /// When something authentic last arrived on it.
    pub heard_at: Instant,
    /// Datagrams that ask for an answer, sent since the last one came.
    unanswered: u32,
    /// Number among all the path's datagrams of this epoch's packet number zero.
    epoch_base: u64,
    past: Option<PastEpoch>,
}

impl SendPath {
    /// A path that is to be validated; inner packets of up to `inner_mtu` bytes may come.
    pub(crate) fn new(
        id: PathId,
        route: Route,
        info: PathInfo,
        control: PathControl,
        session: SessionIndex,
        key: PathKey,
        inner_mtu: u16,
    ) -> Self {
        let mtu = PathMtu::new(route.ip_bytes(usize::from(inner_mtu) + DATA_OVERHEAD_BYTES));
        Self {
            id,
            route,
            info,
            state: PathState::Validating,
            control,
            route_check: RouteCheck::default(),
            rtt: RttEstimator::default(),
            sent: SentDatagrams::default(),
            congestion: None,
            loss_permille: 0,
            mtu,
            sent_packets: 0,
            sent_bytes: 0,
            reported_lost_packets: 0,
            reported: Reported::default(),
            control_packets: 0,
            rescued_packets: 0,
            last_data_at: None,
            awaiting_since: None,
            heard_at: Instant::ZERO,
            unanswered: 0,
            beyond_chance_since: None,
            key,
            session,
            next_number: PacketNumber(0),
            leave_out_at: PacketNumber(0),
            epoch_base: 0,
            past: None,
        }
    }

    /// The path leads elsewhere from now on; says whether that is another way. Another address is,
    /// another port of a NAT is not: what was learned of the way's size and rate counts no more
    /// (RFC 9000 section 9.4).
    pub fn move_to(&mut self, route: Route) -> bool {
        let same_way = route.remote.ip() == self.route.remote.ip()
            && route.socket == self.route.socket
            && route.local == self.route.local;
        self.route = route;
        if !same_way {
            self.mtu.forget();
            self.mtu.on_use(matches!(self.state, PathState::Up | PathState::Lossy));
            self.rtt = RttEstimator::default();
            if let Some(congestion) = &mut self.congestion {
                congestion.begin_anew();
            }
        }
        !same_way
    }

    /// Evidence came that the path carries what is sent. Whatever else is out counts from now on.
    pub fn answered(&mut self, now: Instant) {
        self.settle();
        self.awaiting_since = (self.sent.in_flight_bytes() > 0).then_some(now);
    }

    /// Something was sent that the peer answers.
    pub fn await_answer(&mut self, now: Instant) {
        self.awaiting_since.get_or_insert(now);
        self.unanswered += 1;
        if self.unanswered >= DATAGRAMS_BEYOND_CHANCE {
            self.beyond_chance_since.get_or_insert(now);
        }
    }

    /// Evidence came that no data tells of, or nothing is out any more: no answer is owed.
    pub fn settle(&mut self) {
        self.awaiting_since = None;
        self.unanswered = 0;
        self.beyond_chance_since = None;
    }

    /// Goes on under another session's key. What is on its way stays known.
    pub fn enter_epoch(&mut self, session: SessionIndex, key: PathKey) {
        self.past = Some(PastEpoch {
            session: self.session,
            base: self.epoch_base,
            next: self.next_number,
        });
        self.session = session;
        self.key = key;
        self.epoch_base = self.sent.next_number();
        self.next_number = PacketNumber(0);
        self.leave_out_at = PacketNumber(0);
    }

    /// Another key in place of one that is too old to be used.
    pub fn forget_key(&mut self, key: PathKey) {
        self.key = key;
    }

    /// Leaves a packet number out now and then, where acknowledgements decide how much is sent: who
    /// acknowledges one acknowledges what never arrived (spec K-5, RFC 9000 section 21.4).
    pub fn leave_out_numbers(&mut self, rng: &mut Rng) {
        if self.congestion.is_none() || self.next_number < self.leave_out_at {
            return;
        }
        if self.leave_out_at > PacketNumber(0) {
            self.next_number = self.next_number.next();
            self.sent.leave_out();
        }
        let after = LEAVE_OUT_MIN + rng.u64() % (LEAVE_OUT_MAX - LEAVE_OUT_MIN);
        self.leave_out_at = PacketNumber(self.next_number.0 + after);
    }

    /// The session and packet number for the next datagram; the number is used up.
    pub fn take_number(&mut self) -> (SessionIndex, PacketNumber) {
        let number = self.next_number;
        self.next_number = number.next();
        (self.session, number)
    }

    /// The key under which datagrams are sealed.
    pub const fn key(&self) -> &PathKey {
        &self.key
    }

    /// Datagrams sealed under the key in use.
    pub const fn sealed_in_epoch(&self) -> u64 {
        self.next_number.0
    }

    /// For an acknowledgement of an epoch: the number that counts as its zero, and the number that
    /// would have been sent next. `None` when the epoch is too long ago.
    pub fn epoch_of(&self, session: SessionIndex) -> Option<(u64, PacketNumber)> {
        if session == self.session {
            return Some((self.epoch_base, self.next_number));
        }
        let past = self.past.as_ref().filter(|past| past.session == session)?;
        Some((past.base, past.next))
    }

    /// The largest inner packet that datagrams of `outer_bytes` at the IP layer hold.
    pub fn inner_room(&self, outer_bytes: u32) -> usize {
        let overhead = self.route.ip_bytes(DATA_OVERHEAD_BYTES);
        outer_bytes.saturating_sub(overhead) as usize
    }

    /// The largest inner packet that the path is known to carry.
    pub fn inner_max(&self) -> usize {
        self.inner_room(self.mtu.size())
    }

    /// What there is reason to hope that it carries.
    pub fn inner_hoped(&self) -> usize {
        self.inner_room(self.mtu.hoped())
    }

    /// What a scheduler may see.
    pub fn view(&self) -> PathView {
        let congestion = self.congestion.as_ref();
        PathView {
            id: self.id,
            price: self.info.price,
            order: self.info.order,
            weight: self.info.weight.max(1),
            srtt: self.rtt.smoothed(),
            latest_rtt: self.rtt.latest(),
            min_rtt: self.rtt.min(),
            in_flight_bytes: self.sent.in_flight_bytes(),
            delivery_rate: self.sent.delivery_rate(),
            delivered_bytes: self.sent.delivered_bytes(),
            sent_packets: self.sent_packets,
            rtt_variation: self.rtt.variation(),
            window_bytes: congestion.map(PathCongestion::window),
            capacity: congestion
                .and_then(PathCongestion::bandwidth)
                .unwrap_or_else(|| self.sent.delivery_rate()),
            is_starting: congestion.is_some_and(PathCongestion::is_starting),
            ready_at: congestion.map_or(Instant::ZERO, PathCongestion::ready_at),
            loss_permille: self.loss_permille,
        }
    }

    /// Whether a flow that is pinned to it goes over it. A path that does not answer is the
    /// scheduler's last resort, and no place to be pinned to.
    pub const fn carries_pinned(&self) -> bool {
        matches!(self.state, PathState::Up | PathState::Lossy)
    }

    /// From now on a congestion controller and a pacer decide what may leave, and what is lost is
    /// to be sent again.
    pub fn close_loop(&mut self, controller: &ControllerConfig) {
        self.congestion = Some(PathCongestion::new(controller));
        self.sent.collect_lost();
    }

    /// From now on the scheduler alone decides.
    pub fn open_loop(&mut self) {
        self.congestion = None;
        self.sent.leave_lost();
    }

    /// The rate at which it sends while there is something to send; `None` in an open loop.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.congestion.as_ref()?.pacing_rate(&self.rtt)
    }

    /// All that may leave now has left; `waits` when more is there.
    pub fn note_rest(&mut self, now: Instant, waits: bool) {
        if let Some(congestion) = &mut self.congestion {
            congestion.note_rest(now, self.sent.in_flight_bytes(), waits);
        }
    }

    /// Notes a datagram of data that left, `bytes` long at the IP layer.
    pub fn on_sent(&mut self, now: Instant, bytes: u32, queue_is_empty: bool) {
        if let Some(congestion) = &self.congestion
            && queue_is_empty
            && congestion.is_starved(now)
        {
            self.sent.note_app_limited();
        }
        self.sent.sent(now, bytes);
        if let Some(congestion) = &mut self.congestion {
            let in_flight = self.sent.in_flight_bytes();
            let packet = congestion.on_sent(now, bytes.into(), in_flight, &self.rtt);
            self.sent.note_packet_state(packet);
        }
        self.mtu.on_data(now);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(bytes);
        self.last_data_at = Some(now);
        self.await_answer(now);
    }
}
