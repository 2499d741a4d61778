//! Answers of a gateway, for tests.

use std::collections::BTreeMap;

use plait_proto::resequencer::{Released, ResequencerStats};
use plait_proto::stats::{EndpointStatus, PathState, PathStatus, PeerStatus};

use crate::cli::control::StatusAnswer;

/// A path that is up.
pub(in crate::cli) fn path(name: &str, id: u8, sent_bytes: u64, received_bytes: u64) -> PathStatus {
    PathStatus {
        id,
        name: name.into(),
        state: PathState::Up,
        reason: "answers".into(),
        remote: "192.0.2.1:7788".into(),
        tried_ports: Vec::new(),
        price: 0,
        weight: None,
        srtt_us: Some(13_270),
        min_rtt_us: Some(12_900),
        jitter_us: Some(840),
        delay_excess_us: None,
        loss_ratio: 0.005,
        mtu_bytes: Some(1500),
        standby: false,
        metered: false,
        in_use: true,
        in_flight_bytes: 0,
        control_packets: 0,
        rescued_packets: 0,
        window_bytes: None,
        pacing_rate_bps: None,
        capacity_bps: 0,
        delivery_rate_bps: 0,
        sent_packets: 0,
        sent_bytes,
        received_packets: 0,
        received_bytes,
        delivered_bytes: received_bytes / 17 * 16,
        lost_packets: 0,
        late_packets: 0,
        reported_lost_packets: 0,
    }
}

/// A bond that is up, with twelve packets waiting.
pub(in crate::cli) fn peer(paths: Vec<PathStatus>) -> PeerStatus {
    PeerStatus {
        backlog: None,
        attempts: None,
        public_key: "peer-key-in-base64-of-forty-four-characters=".into(),
        state: "up".into(),
        trouble: None,
        scheduler: "earliest-delivery".into(),
        session_age_s: Some(75),
        handshakes: 2,
        cipher: Some("AES-256-GCM".into()),
        wire: Some("1.1".into()),
        release: Some("0.2.0".into()),
        inner_mtu_bytes: Some(1440),
        inner_sent_packets: 0,
        inner_sent_bytes: 0,
        inner_delivered_packets: 0,
        inner_delivered_bytes: 0,
        paths,
        resequencer: ResequencerStats {
            waiting_now_packets: 12,
            waiting_now_bytes: 14_400,
            released: Released { in_order: 70, known_lost: 0, timer: 3, overflow: 0 },
            given_up: 2,
            ..ResequencerStats::default()
        },
    }
}

pub(super) fn answer(peers: Vec<PeerStatus>, uptime_s: u64) -> StatusAnswer {
    StatusAnswer {
        key_log: None,
        tun: "plait0".into(),
        uptime_s,
        contacts: Vec::new(),
        links: Vec::new(),
        outage: None,
        lans: Vec::new(),
        dns: None,
        beside: Vec::new(),
        listening: None,
        device: None,
        measurements: Vec::new(),
        hooks: Vec::new(),
        endpoint: EndpointStatus {
            public_key: "own-key-in-base64-of-forty-four-characters==".into(),
            peers,
            drops: BTreeMap::from([("bad-tag".to_owned(), uptime_s)]),
        },
    }
}
