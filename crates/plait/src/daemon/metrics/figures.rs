//! The figures of a peer, of a path, of a socket and of the TUN device: names, units, and the
//! field of `plait status --json` that each shows.

use plait_proto::stats::{BacklogStatus, PathStatus, PeerStatus};
use prometheus_client::registry::Unit;

use crate::daemon::ports::{SocketStatus, TunStatus};

/// What a figure counts, or measures, and its value for a `T`.
pub(super) enum Value<T> {
    /// Only grows while what it counts in lives.
    Counter(fn(&T) -> Option<u64>),
    /// A whole number.
    Whole(fn(&T) -> Option<u64>),
    /// Any other number.
    Real(fn(&T) -> Option<f64>),
}

/// A unit, which the name ends in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum In {
    /// Things.
    Count,
    Seconds,
    Bytes,
    BytesPerSecond,
    Ratio,
}

impl In {
    pub(super) fn unit(self) -> Option<Unit> {
        match self {
            Self::Count => None,
            Self::Seconds => Some(Unit::Seconds),
            Self::Bytes => Some(Unit::Bytes),
            Self::BytesPerSecond => Some(Unit::Other("bytes_per_second".into())),
            Self::Ratio => Some(Unit::Other("ratio".into())),
        }
    }
}

/// A figure of a `T`.
pub(super) struct Figure<T> {
    /// Without `plait_`, unit and `_total`.
    pub(super) name: &'static str,
    pub(super) unit: In,
    /// Where the status has it, as a JSON pointer; empty where it is computed.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares the two"))]
    pub(super) field: &'static str,
    pub(super) help: &'static str,
    pub(super) value: Value<T>,
}

const fn counter<T>(
    name: &'static str,
    unit: In,
    field: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<u64>,
) -> Figure<T> {
    Figure { name, unit, field, help, value: Value::Counter(value) }
}

const fn whole<T>(
    name: &'static str,
    unit: In,
    field: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<u64>,
) -> Figure<T> {
    Figure { name, unit, field, help, value: Value::Whole(value) }
}

const fn real<T>(
    name: &'static str,
    unit: In,
    field: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
) -> Figure<T> {
    Figure { name, unit, field, help, value: Value::Real(value) }
}

fn micros(us: u64) -> Option<f64> {
    Some(us as f64 / 1e6)
}

fn millis(ms: u64) -> Option<f64> {
    Some(ms as f64 / 1e3)
}

/// Bytes per second.
fn bits(bps: u64) -> Option<f64> {
    Some(bps as f64 / 8.0)
}

fn backlog(peer: &PeerStatus) -> Option<&BacklogStatus> {
    peer.backlog.as_ref()
}

use In::{Bytes, BytesPerSecond, Count, Ratio, Seconds};

/// Of a path.
#[rustfmt::skip]
pub(super) const PATH: &[Figure<PathStatus>] = &[
    whole("path_up", Count, "/in_use", "1 when packets may be sent over the path.",
        |path| Some(path.in_use.into())),
    whole("path_standby", Count, "/standby", "1 when it carries data only while no other does.",
        |path| Some(path.standby.into())),
    whole("path_metered", Count, "/metered", "1 when it sleeps while the bond is idle.",
        |path| Some(path.metered.into())),
    whole("path_price_class", Count, "/price", "Price class; cheaper paths are used first.",
        |path| Some(path.price.into())),
    whole("path_weight", Count, "/weight", "The scheduler's weight or share, where it has one.",
        |path| path.weight.map(u64::from)),
    real("path_rtt", Seconds, "/srtt_us", "Smoothed round-trip time.",
        |path| path.srtt_us.and_then(micros)),
    real("path_rtt_min", Seconds, "/min_rtt_us", "Smallest round-trip time of the last 10 s.",
        |path| path.min_rtt_us.and_then(micros)),
    real("path_rtt_variation", Seconds, "/jitter_us", "Mean deviation of the round-trip time.",
        |path| path.jitter_us.and_then(micros)),
    real("path_delay_excess", Seconds, "/delay_excess_us",
        "How much longer the way from the peer is than over the quickest path.",
        |path| path.delay_excess_us.and_then(micros)),
    real("path_loss", Ratio, "/loss_ratio", "Share of the datagrams sent that were lost of late.",
        |path| Some(path.loss_ratio)),
    whole("path_mtu", Bytes, "/mtu_bytes", "Largest datagram that passed, at the IP layer.",
        |path| path.mtu_bytes.map(u64::from)),
    whole("path_in_flight", Bytes, "/in_flight_bytes", "Sent and not acknowledged.",
        |path| Some(path.in_flight_bytes)),
    whole("path_window", Bytes, "/window_bytes", "What congestion control lets be in flight.",
        |path| path.window_bytes),
    real("path_pacing", BytesPerSecond, "/pacing_rate_bps", "Rate at which it sends when it may.",
        |path| path.pacing_rate_bps.and_then(bits)),
    real("path_capacity", BytesPerSecond, "/capacity_bps",
        "What it is believed to carry, at the IP layer; 0 when unknown.",
        |path| bits(path.capacity_bps)),
    real("path_delivery", BytesPerSecond, "/delivery_rate_bps",
        "Highest recent rate of delivery, at the IP layer.",
        |path| bits(path.delivery_rate_bps)),
    counter("path_sent_packets", Count, "/sent_packets", "Data packets sent.",
        |path| Some(path.sent_packets)),
    counter("path_sent", Bytes, "/sent_bytes", "Sent at the IP layer, control included.",
        |path| Some(path.sent_bytes)),
    counter("path_control_packets", Count, "/control_packets", "Control datagrams sent.",
        |path| Some(path.control_packets)),
    counter("path_rescued_packets", Count, "/rescued_packets",
        "Data packets sent again over another path because this one did not answer.",
        |path| Some(path.rescued_packets)),
    counter("path_received_packets", Count, "/received_packets", "Data packets received.",
        |path| Some(path.received_packets)),
    counter("path_received", Bytes, "/received_bytes", "Received at the IP layer, with control.",
        |path| Some(path.received_bytes)),
    counter("path_delivered", Bytes, "/delivered_bytes",
        "Inner bytes that came over it first.",
        |path| Some(path.delivered_bytes)),
    counter("path_lost_packets", Count, "/lost_packets", "Packets of the peer lost on it.",
        |path| Some(path.lost_packets)),
    counter("path_late_packets", Count, "/late_packets",
        "Packets that arrived after they had been counted lost.",
        |path| Some(path.late_packets)),
    counter("path_reported_lost_packets", Count, "/reported_lost_packets",
        "Packets of this side that the peer reported lost.",
        |path| Some(path.reported_lost_packets)),
    real("path_overhead", Ratio, "",
        "What the peer spent on it for each inner byte, framing, copies and losses included.",
        PathStatus::overhead),
];

/// Of a peer.
#[rustfmt::skip]
pub(super) const PEER: &[Figure<PeerStatus>] = &[
    whole("peer_up", Count, "", "1 when the bond with the peer is up.",
        |peer| Some((peer.state == "up").into())),
    whole("peer_session_age", Seconds, "/session_age_s", "Age of the session in use.",
        |peer| peer.session_age_s),
    counter("peer_handshakes", Count, "/handshakes", "Handshakes completed.",
        |peer| Some(peer.handshakes)),
    whole("peer_inner_mtu", Bytes, "/inner_mtu_bytes", "Largest inner packet of the bond.",
        |peer| peer.inner_mtu_bytes.map(u64::from)),
    counter("peer_inner_sent_packets", Count, "/inner_sent_packets", "Packets from the host.",
        |peer| Some(peer.inner_sent_packets)),
    counter("peer_inner_sent", Bytes, "/inner_sent_bytes", "Bytes of packets from the host.",
        |peer| Some(peer.inner_sent_bytes)),
    counter("peer_inner_delivered_packets", Count, "/inner_delivered_packets",
        "Packets given to the host.",
        |peer| Some(peer.inner_delivered_packets)),
    counter("peer_inner_delivered", Bytes, "/inner_delivered_bytes",
        "Bytes of packets given to the host.",
        |peer| Some(peer.inner_delivered_bytes)),
    whole("peer_backlog_packets", Count, "/backlog/packets", "Packets that wait for a path.",
        |peer| backlog(peer).map(|backlog| backlog.packets)),
    whole("peer_backlog", Bytes, "/backlog/bytes", "Bytes that wait for a path.",
        |peer| backlog(peer).map(|backlog| backlog.bytes)),
    real("peer_backlog_wait", Seconds, "/backlog/waited_us", "Wait of the packet that left last.",
        |peer| backlog(peer).and_then(|backlog| micros(backlog.waited_us))),
    counter("peer_repaired_packets", Count, "/backlog/repaired_packets",
        "Packets sent again because their path lost them, kept them too long or died.",
        |peer| backlog(peer).map(|backlog| backlog.repaired_packets)),
    counter("peer_copied", Bytes, "/backlog/copied_bytes", "Copies sent beside the first.",
        |peer| backlog(peer).map(|backlog| backlog.copied_bytes)),
    whole("peer_attempts", Count, "/attempts/count", "Attempts to reach it since it last was.",
        |peer| peer.attempts.as_ref().map(|attempts| attempts.count)),
    real("peer_unanswered", Seconds, "/attempts/since_ms", "Since the first of those attempts.",
        |peer| peer.attempts.as_ref().and_then(|attempts| millis(attempts.since_ms))),
    real("peer_overhead", Ratio, "",
        "What the peer spent for each inner byte, framing, copies and losses included.",
        PeerStatus::overhead),
    counter("resequencer_at_once_packets", Count, "/resequencer/at_once",
        "Packets handed on at their arrival.",
        |peer| Some(peer.resequencer.at_once)),
    counter("resequencer_waited_packets", Count, "/resequencer/waited", "Packets that had to wait.",
        |peer| Some(peer.resequencer.waited)),
    real("resequencer_wait_longest", Seconds, "/resequencer/waiting_max_us",
        "Longest wait of a packet.",
        |peer| micros(peer.resequencer.waiting_max_us)),
    real("resequencer_timeout_longest", Seconds, "/resequencer/timeout_max_us",
        "Longest timeout that was in force.",
        |peer| micros(peer.resequencer.timeout_max_us)),
    whole("resequencer_waiting_packets", Count, "/resequencer/waiting_now_packets",
        "Packets that wait now.",
        |peer| Some(peer.resequencer.waiting_now_packets)),
    whole("resequencer_waiting", Bytes, "/resequencer/waiting_now_bytes", "Bytes that wait now.",
        |peer| Some(peer.resequencer.waiting_now_bytes)),
    whole("resequencer_peak_packets", Count, "/resequencer/peak_packets",
        "Most packets that ever waited.",
        |peer| Some(peer.resequencer.peak_packets)),
    whole("resequencer_peak", Bytes, "/resequencer/peak_bytes", "Most bytes that ever waited.",
        |peer| Some(peer.resequencer.peak_bytes)),
    counter("resequencer_given_up", Count, "/resequencer/given_up", "Missing packets given up.",
        |peer| Some(peer.resequencer.given_up)),
    counter("resequencer_known_lost", Count, "/resequencer/known_lost",
        "Missing packets that every path had passed.",
        |peer| Some(peer.resequencer.known_lost)),
    counter("resequencer_late_dropped_packets", Count, "/resequencer/late_dropped",
        "Packets that came after they were given up, and were dropped.",
        |peer| Some(peer.resequencer.late_dropped)),
    counter("resequencer_late_delivered_packets", Count, "/resequencer/late_delivered",
        "Packets that came after they were given up, and were handed on.",
        |peer| Some(peer.resequencer.late_delivered)),
    counter("resequencer_duplicate_packets", Count, "/resequencer/duplicates",
        "Second copies of packets.",
        |peer| Some(peer.resequencer.duplicates)),
];

/// Of a socket.
#[rustfmt::skip]
pub(super) const SOCKET: &[Figure<SocketStatus>] = &[
    counter("link_sends", Count, "/sends", "System calls that sent something.",
        |socket| Some(socket.sends)),
    counter("link_sent_datagrams", Count, "/sent_datagrams", "Datagrams sent.",
        |socket| Some(socket.sent_datagrams)),
    counter("link_sent", Bytes, "/sent_bytes", "Payload bytes of the datagrams sent.",
        |socket| Some(socket.sent_bytes)),
    counter("link_received_buffers", Count, "/received_buffers", "Buffers received.",
        |socket| Some(socket.received_buffers)),
    counter("link_received_datagrams", Count, "/received_datagrams", "Datagrams received.",
        |socket| Some(socket.received_datagrams)),
    counter("link_refused_segmentation", Count, "/refused_segmentation",
        "Sends of several datagrams that the kernel refused.",
        |socket| Some(socket.refused_segmentation)),
    counter("link_too_long_datagrams", Count, "/too_long_datagrams",
        "Datagrams longer than the interface's MTU, such as probes.",
        |socket| Some(socket.too_long_datagrams)),
    counter("link_full_sends", Count, "/full_sends", "Sends for which the kernel had no room.",
        |socket| Some(socket.full_sends)),
    counter("link_failed_sends", Count, "/failed_sends", "Sends that failed otherwise.",
        |socket| Some(socket.failed_sends)),
];

/// Of the TUN device.
#[rustfmt::skip]
pub(super) const DEVICE: &[Figure<TunStatus>] = &[
    counter("device_reads", Count, "/reads", "Reads that brought something.",
        |device| Some(device.reads)),
    counter("device_read_packets", Count, "/read_packets", "Packets from the host.",
        |device| Some(device.read_packets)),
    counter("device_malformed_packets", Count, "/dropped_malformed",
        "Packets from the host whose headers were inconsistent.",
        |device| Some(device.dropped_malformed)),
    counter("device_written_packets", Count, "/written_packets", "Packets for the host.",
        |device| Some(device.written_packets)),
    counter("device_written_aggregates", Count, "/written_aggregates",
        "Writes that carried several packets.",
        |device| Some(device.written_aggregates)),
    counter("device_refused_aggregates", Count, "/refused_aggregates",
        "Writes of several packets that the kernel refused.",
        |device| Some(device.refused_aggregates)),
    counter("device_full_packets", Count, "/dropped_full",
        "Packets for which the kernel had no room.",
        |device| Some(device.dropped_full)),
    counter("device_invalid_packets", Count, "/dropped_invalid",
        "Packets that the kernel did not take for IP packets.",
        |device| Some(device.dropped_invalid)),
];
