//! Real traffic and its figures. By default it is a download: the server sends, the customer
//! receives.

use std::time::Duration;

use anyhow::Result;
use plait_net::netns::NetNs;
use serde::Serialize;

mod aggregation;
mod curl;
mod deliveries;
mod fetch;
mod flood;
mod hostile;
mod iperf;
pub(crate) mod over_time;
mod ping;
mod pings;
mod round_trips;
mod stream;
mod tcp_counters;
mod wire;

pub(crate) use aggregation::{aggregation_benefit, aggregation_ratio, median};
pub(crate) use curl::{WebServer, download};
pub(crate) use deliveries::Deliveries;
pub(crate) use fetch::{FETCH_CONGESTION, Fetched, FileServer, SenderView, random_bytes};
pub(crate) use flood::{Flood, FloodFigures};
pub(crate) use hostile::{HostileSender, Hostility, unread_datagrams};
pub(crate) use iperf::{IperfServer, tcp, tcp_at, tcp_over_time, udp};
pub(crate) use ping::{Pings, ping};
pub(crate) use pings::Pinging;
pub(crate) use round_trips::{Echo, RoundTrips};
pub(crate) use stream::{Stream, Transport};
pub(crate) use tcp_counters::{TcpCounters, counters};
pub(crate) use wire::{Wire, WireCapture};

/// How long to send, and how much of the beginning is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) seconds: u32,
    pub(crate) omit_seconds: u32,
}

impl Span {
    pub(crate) fn total(self) -> Duration {
        Duration::from_secs(u64::from(self.seconds + self.omit_seconds))
    }
}

/// The ends of traffic: from the server at `server` to a client in `client`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) client: &'a NetNs,
    pub(crate) server: std::net::IpAddr,
    /// Address that the client must use, if any.
    pub(crate) bind: Option<std::net::IpAddr>,
}

/// One TCP flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct TcpFigures {
    /// Payload only, counted by the receiver.
    pub(crate) throughput_bps: u64,
    /// The sender's retransmits.
    pub(crate) retransmits: u64,
    /// Segments sent, including retransmits: bytes divided by the segment size, plus retransmits.
    pub(crate) segments: u64,
    pub(crate) congestion: String,
}

/// One UDP flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct UdpFigures {
    /// Payload only, counted by the receiver.
    pub(crate) throughput_bps: u64,
    pub(crate) packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) out_of_order_packets: u64,
}

/// One file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct DownloadFigures {
    pub(crate) throughput_bps: u64,
    pub(crate) bytes: u64,
    /// The server's congestion control.
    pub(crate) congestion: String,
}

impl TcpFigures {
    /// Retransmits in parts per million of the segments.
    pub(crate) fn retransmits_ppm(&self) -> u64 {
        share_ppm(self.retransmits, self.segments)
    }
}

impl UdpFigures {
    /// Loss in parts per million of the packets.
    pub(crate) fn loss_ppm(&self) -> u64 {
        share_ppm(self.lost_packets, self.packets)
    }
}

fn share_ppm(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1_000_000).checked_div(whole).unwrap_or(0)
}

/// Megabits per second with one decimal, for people.
pub(crate) fn mbit(bits_per_second: u64) -> String {
    let tenths = (bits_per_second + 50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Per cent with two decimals, for people.
pub(crate) fn percent(ppm: u64) -> String {
    let hundredths = (ppm + 50) / 100;
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// The run with the median throughput.
pub(crate) fn median_tcp(
    runs: usize,
    mut run: impl FnMut() -> Result<TcpFigures>,
) -> Result<TcpFigures> {
    let mut figures = (0..runs).map(|_| run()).collect::<Result<Vec<_>>>()?;
    figures.sort_by_key(|figures| figures.throughput_bps);
    Ok(figures.swap_remove(runs / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded() {
        assert_eq!(mbit(61_949_999), "61.9");
        assert_eq!(mbit(61_950_000), "62.0");
        assert_eq!(percent(12_349), "1.23 %");
        assert_eq!(percent(500), "0.05 %");
    }

    #[test]
    fn nothing_sent_is_nothing_lost() {
        assert_eq!(share_ppm(0, 0), 0);
        assert_eq!(share_ppm(1, 400), 2_500);
    }

    #[test]
    fn the_median_run_is_kept_whole() {
        let mut speeds = [30, 10, 20].into_iter();
        let figures = median_tcp(3, || {
            let speed = speeds.next().unwrap();
            let congestion = "cubic".into();
            Ok(TcpFigures { throughput_bps: speed, retransmits: speed, segments: 0, congestion })
        });
        assert_eq!(figures.unwrap().retransmits, 20);
    }
}
