//! The result of a split, as it is printed and drawn.

use std::net::SocketAddr;

use serde::Serialize;

/// All of a capture.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The capture itself.
    pub capture: CaptureReport,
    /// Its connections, in the order of their first packets.
    pub connections: Vec<ConnectionReport>,
}

/// What a capture held.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CaptureReport {
    /// Packets read.
    pub packets: u64,
    /// Time between the first packet and the last one.
    pub seconds: f64,
    /// Width of the bins of all series.
    pub bin_seconds: f64,
    /// Packets that are not TCP over IP.
    pub not_tcp: u64,
    /// Fragments of IP packets, which are not joined.
    pub fragments: u64,
    /// Packets whose headers cannot be read.
    pub unreadable: u64,
    /// Segments that the filter left out.
    pub filtered: u64,
    /// Segments of connections beyond the bound on their number.
    pub beyond_segments: u64,
    /// Their bytes.
    pub beyond_bytes: u64,
}

/// An MPTCP connection with its subflows, or a TCP connection as its own only one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ConnectionReport {
    /// Whether it is MPTCP.
    pub mptcp: bool,
    /// Tokens of client and server, in hexadecimal, as far as the capture tells them.
    pub client_token: Option<String>,
    /// See [`ConnectionReport::client_token`].
    pub server_token: Option<String>,
    /// Bytes of the stream from the client, each counted once on whatever subflow it came.
    pub data_out_bytes: u64,
    /// Bytes of the stream from the server.
    pub data_back_bytes: u64,
    /// Its subflows in the order of their first packets.
    pub subflows: Vec<SubflowReport>,
}

/// A subflow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SubflowReport {
    /// The end that opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Whether it joined a connection that was there.
    pub joined: bool,
    /// Whether the connection's server opened it.
    pub reversed: bool,
    /// Its first packet, since the capture's.
    pub start_s: f64,
    /// Its last packet.
    pub end_s: f64,
    /// How it ended.
    pub ended: Ended,
    /// From the connection's client.
    pub out: WayReport,
    /// From the connection's server.
    pub back: WayReport,
}

/// How a subflow ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Both directions were closed.
    Whole,
    /// It was reset.
    Reset,
    /// Not within the capture.
    Open,
}

/// One direction of a subflow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WayReport {
    /// Payload, each byte counted once.
    pub bytes: u64,
    /// Payload that was seen before.
    pub repeated_bytes: u64,
    /// Segments of all kinds.
    pub segments: u64,
    /// Payload over the time from its first byte to its last.
    pub mbps: f64,
    /// Part of what all subflows of the connection carried this way.
    pub share: f64,
    /// Where the first bin begins, since the capture's first packet.
    pub first_bin_s: f64,
    /// Payload in each bin.
    pub bins: Vec<u64>,
}

impl ConnectionReport {
    /// What the connection carried, from the client and from the server.
    pub fn data_bytes(&self) -> [u64; 2] {
        [self.data_out_bytes, self.data_back_bytes]
    }

    /// The tokens, for people.
    pub fn tokens(&self) -> String {
        let token = |token: &Option<String>| token.clone().unwrap_or_else(|| "?".into());
        format!("{}/{}", token(&self.client_token), token(&self.server_token))
    }
}
