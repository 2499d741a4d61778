//! Status of the gateway's own ports: counters of its sockets and its TUN device, and failed sends.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use plait_net::tun::TunCounters;
use plait_net::udp::UdpCounters;
use plait_proto::config::SocketId;
use plait_proto::stats::AttemptsStatus;
use plait_proto::time::Instant;
use serde::{Deserialize, Serialize};

/// Failed sends over one link are logged at most this often.
const TELL_INTERVAL: Duration = Duration::from_secs(60);
/// An older error says nothing about current attempts.
const FRESH: Duration = Duration::from_secs(30);
/// The error of sending a datagram longer than the interface's MTU.
const EMSGSIZE: i32 = 90;

/// What happened on a socket since it was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct SocketStatus {
    /// System calls that sent something.
    pub(crate) sends: u64,
    /// Datagrams sent.
    pub(crate) sent_datagrams: u64,
    /// Payload bytes of the datagrams sent.
    pub(crate) sent_bytes: u64,
    /// Buffers received, each with one datagram or several.
    pub(crate) received_buffers: u64,
    /// Datagrams received.
    pub(crate) received_datagrams: u64,
    /// Sends of several datagrams that the kernel refused; they were sent singly.
    pub(crate) refused_segmentation: u64,
    /// Datagrams longer than the interface's MTU: lost, as probes of the path's MTU may be.
    pub(crate) too_long_datagrams: u64,
    /// Sends for which the kernel had no room: lost, as on a full link.
    pub(crate) full_sends: u64,
    /// Sends that failed otherwise.
    pub(crate) failed_sends: u64,
    /// Error of the last failed send.
    pub(crate) last_error: Option<String>,
    /// Milliseconds since the last failed send.
    pub(crate) last_error_ms_ago: Option<u64>,
}

impl SocketStatus {
    /// What happened on two sockets together, with the latest error of both.
    pub(super) fn plus(self, other: Self) -> Self {
        let age = |status: &Self| status.last_error_ms_ago.unwrap_or(u64::MAX);
        let latest = if age(&other) < age(&self) { &other } else { &self };
        let (last_error, last_error_ms_ago) = (latest.last_error.clone(), latest.last_error_ms_ago);
        Self {
            sends: self.sends + other.sends,
            sent_datagrams: self.sent_datagrams + other.sent_datagrams,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_buffers: self.received_buffers + other.received_buffers,
            received_datagrams: self.received_datagrams + other.received_datagrams,
            refused_segmentation: self.refused_segmentation + other.refused_segmentation,
            too_long_datagrams: self.too_long_datagrams + other.too_long_datagrams,
            full_sends: self.full_sends + other.full_sends,
            failed_sends: self.failed_sends + other.failed_sends,
            last_error,
            last_error_ms_ago,
        }
    }
}

/// What happened on the TUN device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TunStatus {
    /// Reads that brought something.
    pub(crate) reads: u64,
    /// Packets from the host, super-packets split.
    pub(crate) read_packets: u64,
    /// Packets from the host whose headers were inconsistent.
    pub(crate) dropped_malformed: u64,
    /// Packets for the host.
    pub(crate) written_packets: u64,
    /// Writes that carried several packets.
    pub(crate) written_aggregates: u64,
    /// Those that the kernel refused; the packets were written singly.
    pub(crate) refused_aggregates: u64,
    /// Packets for which the kernel had no room.
    pub(crate) dropped_full: u64,
    /// Packets that the kernel did not take for IP packets.
    pub(crate) dropped_invalid: u64,
}

impl From<TunCounters> for TunStatus {
    fn from(counters: TunCounters) -> Self {
        Self {
            reads: counters.reads,
            read_packets: counters.read_packets,
            dropped_malformed: counters.dropped_malformed,
            written_packets: counters.written_packets,
            written_aggregates: counters.written_aggregates,
            refused_aggregates: counters.refused_aggregates,
            dropped_full: counters.dropped_full,
            dropped_invalid: counters.dropped_invalid,
        }
    }
}

/// Sends that failed, by socket.
#[derive(Debug, Default)]
pub(super) struct SendErrors(Vec<Failures>);

#[derive(Debug, Default)]
struct Failures {
    link: String,
    full: u64,
    failed: u64,
    last: Option<(Instant, String)>,
    told_at: Option<Instant>,
    /// Failures since the last line in the log.
    untold: u64,
}

impl SendErrors {
    fn of(&mut self, socket: SocketId) -> &mut Failures {
        let at = usize::from(socket.0);
        if at >= self.0.len() {
            self.0.resize_with(at + 1, Failures::default);
        }
        &mut self.0[at]
    }

    /// A socket is opened for a link.
    pub(super) fn open(&mut self, socket: SocketId, link: &str) {
        *self.of(socket) = Failures { link: link.to_owned(), ..Failures::default() };
    }

    /// Notes a failed send. Returns a line for the log, when one is due.
    pub(super) fn note(
        &mut self,
        now: Instant,
        socket: SocketId,
        remote: SocketAddr,
        error: &io::Error,
    ) -> Option<String> {
        let failures = self.of(socket);
        if error.kind() == io::ErrorKind::WouldBlock {
            // A full socket drops like a full link; the peer reports the loss.
            failures.full += 1;
            return None;
        }
        if error.raw_os_error() == Some(EMSGSIZE) {
            // The socket counts datagrams too long for its link, such as probes of the path's MTU.
            return None;
        }
        failures.failed += 1;
        failures.untold += 1;
        failures.last = Some((now, format!("to {remote}: {error}")));
        if failures.told_at.is_some_and(|told| now.since(told) < TELL_INTERVAL) {
            return None;
        }
        failures.told_at = Some(now);
        let count = std::mem::take(&mut failures.untold);
        let link = if failures.link.is_empty() { "the listening socket" } else { &failures.link };
        let several =
            if count > 1 { format!(" ({count} since the last word)") } else { String::new() };
        Some(format!("link {link}: cannot send to {remote}: {error}{several}"))
    }

    /// The newest error on the links over which attempts went, if it is recent.
    pub(super) fn latest(&self, now: Instant, attempts: &AttemptsStatus) -> Option<String> {
        let asked =
            |failures: &&Failures| attempts.asked.iter().any(|asked| asked.link == failures.link);
        let fresh = self.0.iter().filter(asked).filter_map(|failures| {
            let (at, text) = failures.last.as_ref()?;
            (now.since(*at) <= FRESH).then_some((*at, &failures.link, text))
        });
        fresh
            .max_by_key(|(at, ..)| *at)
            .map(|(_, link, text)| format!("sending over {link} fails {text}"))
    }

    /// What happened on a socket.
    pub(super) fn status(
        &self,
        now: Instant,
        socket: SocketId,
        counters: UdpCounters,
    ) -> SocketStatus {
        let failures = self.0.get(usize::from(socket.0));
        let last = failures.and_then(|failures| failures.last.as_ref());
        SocketStatus {
            sends: counters.sends,
            sent_datagrams: counters.sent_datagrams,
            sent_bytes: counters.sent_bytes,
            received_buffers: counters.received_buffers,
            received_datagrams: counters.received_datagrams,
            refused_segmentation: counters.refused_segmentation,
            too_long_datagrams: counters.too_long_datagrams,
            full_sends: failures.map_or(0, |failures| failures.full),
            failed_sends: failures.map_or(0, |failures| failures.failed),
            last_error: last.map(|(_, text)| text.clone()),
            last_error_ms_ago: last.map(|(at, _)| now.since(*at).as_millis() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_fails_on_and_on_is_a_line_a_minute() {
        let mut errors = SendErrors::default();
        errors.open(SocketId(2), "lte");
        let remote = SocketAddr::from(([192, 0, 2, 1], 7788));
        let unreachable = io::Error::from_raw_os_error(101);
        let mut lines = Vec::new();
        for second in 0..180 {
            let now = Instant::ZERO + Duration::from_secs(second);
            lines.extend(errors.note(now, SocketId(2), remote, &unreachable));
            for silent in [11, EMSGSIZE] {
                let error = io::Error::from_raw_os_error(silent);
                assert_eq!(errors.note(now, SocketId(2), remote, &error), None);
            }
        }
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("link lte: cannot send to 192.0.2.1:7788: Network is unr"));
        assert!(lines[1].ends_with("(60 since the last word)"), "{lines:?}");
        let now = Instant::ZERO + Duration::from_secs(180);
        let status = errors.status(now, SocketId(2), UdpCounters::default());
        assert_eq!((status.failed_sends, status.full_sends), (180, 180));
        assert_eq!(status.last_error_ms_ago, Some(1000));
    }
}
