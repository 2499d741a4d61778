//! What an endpoint tells about itself: the content of `plait status --json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::congestion::Algorithm;
use crate::resequencer::ResequencerStats;

/// State of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// Its return routability is being checked.
    Validating,
    /// It carries data.
    Up,
    /// Nothing has come back for a while: it is probed and carries no data.
    Silent,
    /// It loses too much: it is probed and carries no data.
    Lossy,
    /// Metered and not needed now: nothing is sent over it; it is checked again before use.
    Asleep,
}

impl PathState {
    /// The state's name in `status` and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Up => "up",
            Self::Silent => "silent",
            Self::Lossy => "lossy",
            Self::Asleep => "asleep",
        }
    }
}

/// One path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathStatus {
    /// Id within the bond.
    pub id: u8,
    /// The link's name, as its owner configured it.
    pub name: String,
    /// State.
    pub state: PathState,
    /// Why it is in this state, in words.
    pub reason: String,
    /// The peer's address.
    pub remote: String,
    /// Other ports of the peer that did not answer when they were last asked over this link.
    #[serde(default)]
    pub tried_ports: Vec<u16>,
    /// Price class.
    pub price: u8,
    /// The scheduler's weight or share, where it has one.
    pub weight: Option<u32>,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: Option<u64>,
    /// Smallest round-trip time of the last ten seconds in microseconds.
    pub min_rtt_us: Option<u64>,
    /// Mean deviation of the round-trip time in microseconds (RFC 6298's RTTVAR).
    pub jitter_us: Option<u64>,
    /// How much longer the way from the peer is than over the bond's quickest path, in
    /// microseconds.
    pub delay_excess_us: Option<u64>,
    /// Share of this side's datagrams that were lost of late, 0 to 1.
    pub loss_ratio: f64,
    /// Largest datagram that passed at the IP layer, in bytes; `None` before it was probed.
    pub mtu_bytes: Option<u32>,
    /// Carries data only while no other path does.
    pub standby: bool,
    /// Sleeps while the bond is idle.
    pub metered: bool,
    /// Whether packets may be scheduled on it now.
    pub in_use: bool,
    /// Bytes on their way.
    pub in_flight_bytes: u64,
    /// Control datagrams sent.
    pub control_packets: u64,
    /// Data packets that were sent again over another path because this one did not answer.
    pub rescued_packets: u64,
    /// Bytes that its congestion controller allows on their way; `None` in an open loop.
    pub window_bytes: Option<u64>,
    /// Rate at which it sends while there is something to send, in bits per second.
    pub pacing_rate_bps: Option<u64>,
    /// What it is believed to carry in bits per second at the IP layer; 0 when unknown.
    pub capacity_bps: u64,
    /// Highest recent delivery rate in bits per second at the IP layer.
    pub delivery_rate_bps: u64,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Bytes sent at the IP layer, control included.
    pub sent_bytes: u64,
    /// Data packets received.
    pub received_packets: u64,
    /// Bytes received at the IP layer, control included.
    pub received_bytes: u64,
    /// Inner bytes that came over it, each packet counted at the path over which it came first.
    #[serde(default)]
    pub delivered_bytes: u64,
    /// Data packets of the peer that this side counted lost on this path.
    pub lost_packets: u64,
    /// Data packets that arrived after they had been counted lost.
    pub late_packets: u64,
    /// Data packets of this side that the peer reported lost on this path.
    pub reported_lost_packets: u64,
}

impl PathStatus {
    /// Bytes at the IP layer that the peer spent on this path: those that arrived, and those of
    /// lost packets, each taken to be as long as one that arrived.
    pub fn spent_bytes(&self) -> f64 {
        let received = self.received_bytes as f64;
        let lost = self.lost_packets.saturating_sub(self.late_packets) as f64;
        received + lost * received / (self.received_packets.max(1)) as f64
    }

    /// What the peer spent on this path for each inner byte that came of it: framing, copies, what
    /// was sent again or lost, probes and acknowledgements. `None` where too little came to tell.
    pub fn overhead(&self) -> Option<f64> {
        let delivered = self.delivered_bytes;
        (delivered >= OVERHEAD_TOLD_FROM).then(|| self.spent_bytes() / delivered as f64)
    }
}

/// With fewer inner bytes than these, acknowledgements and probes are most of what is sent.
const OVERHEAD_TOLD_FROM: u64 = 1_000_000;

/// The queue at the ingress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BacklogStatus {
    /// The paths' congestion controller.
    pub congestion: Algorithm,
    /// Packets that wait.
    pub packets: u64,
    /// Bytes that wait.
    pub bytes: u64,
    /// How long the packet that left last had waited, in microseconds.
    pub waited_us: u64,
    /// Packets sent again because their path had lost them, kept them too long or died.
    pub repaired_packets: u64,
    /// Bytes of copies sent beside the first over another path.
    pub copied_bytes: u64,
}

/// Attempts to make a session with a peer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AttemptsStatus {
    /// Attempts since the peer was last reached, or since the first link came.
    pub count: u64,
    /// Milliseconds since the first of them.
    pub since_ms: u64,
    /// Milliseconds since the last one.
    pub last_ms_ago: u64,
    /// Milliseconds until the next one; `None` when the peer is called no more.
    pub next_in_ms: Option<u64>,
    /// Where the last one went; empty when there is no link to send it over.
    pub asked: Vec<AskedStatus>,
}

/// Where an attempt went.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskedStatus {
    /// The link's name; empty for one that is gone, and for the listening socket of a gateway with
    /// configured paths.
    pub link: String,
    /// The peer's address.
    pub remote: String,
}

/// The bond with one peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerStatus {
    /// The peer's key in base64.
    pub public_key: String,
    /// `up` when a session exists and a path carries data, `stuck` when one end throws away nearly
    /// all that arrives all the same, else `down` or `connecting`.
    pub state: String,
    /// Why it is stuck, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The scheduler's name.
    pub scheduler: String,
    /// Seconds since the session in use was made.
    pub session_age_s: Option<u64>,
    /// Handshakes completed since the start.
    pub handshakes: u64,
    /// AEAD of the session in use.
    pub cipher: Option<String>,
    /// Version and revision of the protocol that the two ends speak, as `1.0`.
    #[serde(default)]
    pub wire: Option<String>,
    /// What the peer runs, as `0.2.0`; `None` when it did not say.
    #[serde(default)]
    pub release: Option<String>,
    /// The largest inner packet that the bond carries, in bytes; `None` without a bond.
    #[serde(default)]
    pub inner_mtu_bytes: Option<u16>,
    /// Inner packets taken from the host.
    pub inner_sent_packets: u64,
    /// Inner bytes taken from the host.
    pub inner_sent_bytes: u64,
    /// Inner packets given to the host.
    pub inner_delivered_packets: u64,
    /// Inner bytes given to the host.
    pub inner_delivered_bytes: u64,
    /// What waits at the ingress for a path with room; `None` in an open loop.
    pub backlog: Option<BacklogStatus>,
    /// Attempts to reach the peer that are under way.
    #[serde(default)]
    pub attempts: Option<AttemptsStatus>,
    /// The paths, cheapest first.
    pub paths: Vec<PathStatus>,
    /// What waited at the egress, how long, and why it was released.
    pub resequencer: ResequencerStats,
}

impl PeerStatus {
    /// As [`PathStatus::overhead`], of all paths together.
    pub fn overhead(&self) -> Option<f64> {
        let delivered: u64 = self.paths.iter().map(|path| path.delivered_bytes).sum();
        let spent: f64 = self.paths.iter().map(PathStatus::spent_bytes).sum();
        (delivered >= OVERHEAD_TOLD_FROM).then(|| spent / delivered as f64)
    }

    /// A peer without a bond.
    pub(crate) fn down(public_key: String, connecting: bool) -> Self {
        Self {
            public_key,
            state: if connecting { "connecting" } else { "down" }.to_owned(),
            trouble: None,
            scheduler: String::new(),
            session_age_s: None,
            handshakes: 0,
            cipher: None,
            wire: None,
            release: None,
            inner_mtu_bytes: None,
            inner_sent_packets: 0,
            inner_sent_bytes: 0,
            inner_delivered_packets: 0,
            inner_delivered_bytes: 0,
            backlog: None,
            attempts: None,
            paths: Vec::new(),
            resequencer: ResequencerStats::default(),
        }
    }
}

/// An endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointStatus {
    /// This gateway's key in base64.
    pub public_key: String,
    /// Bonds, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// Drops by reason; reasons that never occurred are absent.
    pub drops: BTreeMap<String, u64>,
}
