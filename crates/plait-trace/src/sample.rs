//! What a sender's TCP was like at one moment, whichever source tells it.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One look at one TCP connection or MPTCP subflow. It holds neither payload nor keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the trace began.
    pub at_s: f64,
    /// Which socket, while the machine runs (SO_COOKIE): ports may be used again.
    pub socket: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Of a subflow: this end's token, which all subflows of the connection share.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex")]
    pub token: Option<u32>,
    /// Of a subflow: its number at this end, 0 for the first (RFC 8684 section 3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u8>,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; none before the first reduction.
    pub ssthresh: Option<u32>,
    /// Window that the receiver offers, in bytes.
    pub send_window_bytes: u32,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: u32,
    /// Delivery rate as the sender measures it, in bit/s.
    pub rate_bps: u64,
    /// Segments retransmitted since the connection's start.
    pub retransmits: u32,
    /// Sender's maximum segment size in bytes.
    pub mss_bytes: u32,
    /// Payload bytes that the other end acknowledged.
    pub acked_bytes: u64,
}

/// The kernel's slow-start threshold before there is one (TCP_INFINITE_SSTHRESH).
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

/// The threshold as a sample has it.
pub fn ssthresh(kernel: u32) -> Option<u32> {
    (kernel < SSTHRESH_INFINITE).then_some(kernel)
}

/// Tokens are printed as the kernel's tools print them.
mod hex {
    use super::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        token: &Option<u32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match token {
            Some(token) => serializer.collect_str(&format_args!("{token:08x}")),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<u32>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let read = |text: String| crate::filter::parse_token(&text);
        text.map(read).transpose().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(at_s: f64, socket: u64, token: Option<u32>) -> Sample {
        Sample {
            at_s,
            socket,
            local: "10.0.0.1:5000".parse().unwrap(),
            remote: "10.0.0.2:80".parse().unwrap(),
            token,
            subflow: token.map(|_| 1),
            cwnd: 10,
            ssthresh: None,
            send_window_bytes: 65_535,
            srtt_us: 20_000,
            rate_bps: 5_000_000,
            retransmits: 0,
            mss_bytes: 1448,
            acked_bytes: 7,
        }
    }

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        for token in [Some(0xa1b2), None] {
            let sample = sample(1.5, 7, token);
            let text = serde_json::to_string(&sample).unwrap();
            assert_eq!(text.contains("\"token\":\"0000a1b2\""), token.is_some(), "{text}");
            assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        }
        assert_eq!((ssthresh(7), ssthresh(SSTHRESH_INFINITE)), (Some(7), None));
    }
}
