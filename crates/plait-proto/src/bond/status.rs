//! What a bond tells of itself.

use core::net::SocketAddr;

use super::Bond;
use super::path_mtu::remark;
use crate::config::SocketId;
use crate::path::SendPath;
use crate::path::congestion::PathCongestion;
use crate::seq::PathId;
use crate::stats::{PathState, PathStatus, PeerStatus};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::wire::VERSION;
use crate::wire::control::Discards;

impl Bond {
    /// Whether nothing comes back over one of its paths.
    pub fn has_silent_path(&self) -> bool {
        self.ingress.paths().any(|path| path.state == PathState::Silent)
    }

    /// The peer's addresses at which it answers.
    pub fn remotes_up(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let up = self.ingress.paths().filter(|path| path.state == PathState::Up);
        up.map(|path| path.route.remote)
    }

    /// The sockets of its paths, each with the path's state.
    pub fn socket_states(&self) -> impl Iterator<Item = (SocketId, PathState)> + '_ {
        self.ingress.paths().map(|path| (path.route.socket, path.state))
    }

    /// The name of a path's link, as its owner configured it.
    pub fn path_name(&self, id: PathId) -> Option<&str> {
        self.ingress.path(id).map(|path| path.info.name.as_str())
    }

    fn path_status(&self, now: Instant, path: &SendPath, weights: &[(PathId, u32)]) -> PathStatus {
        let received = self.egress.counters(path.id);
        let micros = |time: Option<Duration>| time.map(|time| time.as_micros() as u64);
        PathStatus {
            id: path.id.0,
            name: path.info.name.clone(),
            state: path.state,
            reason: self.reason(now, path),
            remote: path.route.remote.to_string(),
            tried_ports: Vec::new(),
            price: path.info.price,
            weight: weights.iter().find(|(id, _)| *id == path.id).map(|(_, w)| *w),
            srtt_us: micros(path.rtt.smoothed()),
            min_rtt_us: micros(path.rtt.min()),
            jitter_us: micros(path.rtt.variation()),
            delay_excess_us: micros(self.egress.delay_excess(now, path.id)),
            loss_ratio: path.control.loss.ratio(),
            mtu_bytes: path.mtu.known(),
            standby: path.info.standby,
            metered: path.info.metered,
            in_use: path.state == PathState::Up,
            in_flight_bytes: path.sent.in_flight_bytes(),
            control_packets: path.control_packets,
            rescued_packets: path.rescued_packets,
            window_bytes: path.congestion.as_ref().map(PathCongestion::window),
            pacing_rate_bps: path.pacing_rate().map(Rate::bits_per_second),
            capacity_bps: path.view().capacity.bits_per_second(),
            delivery_rate_bps: path.sent.delivery_rate().bits_per_second(),
            sent_packets: path.sent_packets,
            sent_bytes: path.sent_bytes,
            received_packets: received.received_packets,
            received_bytes: received.received_bytes,
            delivered_bytes: received.delivered_bytes,
            lost_packets: received.lost_packets,
            late_packets: received.late_packets,
            reported_lost_packets: path.reported_lost_packets,
        }
    }

    /// Fills in what the bond knows of itself.
    pub fn status(&mut self, now: Instant, public_key: String) -> PeerStatus {
        let weights = self.ingress.weights(now);
        let mut paths: Vec<_> = self.ingress.paths().collect();
        paths.sort_by_key(|path| (path.info.price, path.info.order, path.id));
        let paths = paths.into_iter().map(|path| self.path_status(now, path, &weights)).collect();
        let trouble = self.trouble(now);
        let state = match &trouble {
            _ if !self.is_up() => "connecting",
            Some(_) => "stuck",
            None => "up",
        };
        PeerStatus {
            public_key,
            state: state.to_owned(),
            trouble,
            scheduler: self.scheduler.to_owned(),
            session_age_s: None,
            handshakes: 0,
            cipher: Some(self.cipher.name().to_owned()),
            wire: Some(format!("{VERSION}.{}", self.revision)),
            release: self.peer_release.map(|release| release.to_string()),
            inner_mtu_bytes: Some(self.inner_mtu()),
            backlog: self.ingress.backlog_status(),
            attempts: None,
            inner_sent_packets: self.ingress.sent_packets,
            inner_sent_bytes: self.ingress.sent_bytes,
            inner_delivered_packets: self.egress.delivered_packets,
            inner_delivered_bytes: self.egress.delivered_bytes,
            paths,
            resequencer: self.egress.resequencer_stats(),
        }
    }
}

/// What the peer last said of its discards is old after this: it repeats it every second.
const PEER_DISCARDS_TIME: Duration = Duration::from_secs(5);

impl Bond {
    /// Why the bond is of no use although its paths answer, in words.
    fn trouble(&self, now: Instant) -> Option<String> {
        let told = self.peer_discards.filter(|(at, _)| now.since(*at) < PEER_DISCARDS_TIME);
        let words = |who: &str, Discards { arrived, discarded }: Discards| {
            format!("{who} away {discarded} of {arrived} packets; the bond is made anew")
        };
        let own = self.egress.discards(now).map(|own| words("this end throws", own));
        own.or_else(|| told.map(|(_, peers)| words("the peer throws", peers)))
    }
}

impl Bond {
    /// Why a path is in its state, what the scheduler makes of it, and what is odd about it.
    fn reason(&self, now: Instant, path: &SendPath) -> String {
        let part = self.ingress.part(now, path.id).filter(|_| path.state == PathState::Up);
        let part = part.map_or_else(String::new, |part| format!(", {part}"));
        state_reason(path.state, path.route.remote) + &part + &remark(path)
    }
}

fn state_reason(state: PathState, remote: SocketAddr) -> String {
    match state {
        PathState::Validating => format!("waiting for an answer from {remote}"),
        PathState::Up => "answers".to_owned(),
        PathState::Silent => "what was sent has no answer; probed until one comes".to_owned(),
        PathState::Lossy => "its link loses too much; probed until nothing is lost".to_owned(),
        PathState::Asleep => "metered, and not needed now; checked again before use".to_owned(),
    }
}
