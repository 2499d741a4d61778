//! Runs iperf3: the client asks for a download (`-R`), so that the server sends.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use serde_json::Value;

use super::{Span, Target, TcpFigures, UdpFigures};
use crate::process::{self, Service, wait_until};
use crate::scratch::Scratch;

const PORT: u16 = 5201;
const LISTEN_LIMIT: Duration = Duration::from_secs(5);
/// Time that a test may take beyond its span.
const GRACE: Duration = Duration::from_secs(15);
/// UDP payload of a packet, in bytes.
const UDP_PAYLOAD_BYTES: u32 = 1388;

/// `iperf3 -s` in a namespace.
#[derive(Debug)]
pub(crate) struct IperfServer {
    _service: Service,
    _scratch: Scratch,
}

impl IperfServer {
    /// Binds to one address: otherwise iperf3 answers UDP from the address that routing chooses,
    /// which the client does not expect.
    pub(crate) fn start(netns: &NetNs, address: IpAddr) -> Result<Self> {
        let scratch = Scratch::in_memory("iperf3")?;
        let mut command = netns.command("iperf3");
        command.args(["-s", "-p", &PORT.to_string(), "-B", &address.to_string()]);
        let service = Service::start(&mut command, &scratch.path().join("log"))?;
        wait_until_listening(netns, PORT)?;
        Ok(Self { _service: service, _scratch: scratch })
    }
}

/// Waits until a TCP socket of the namespace listens on `port`.
pub(super) fn wait_until_listening(netns: &NetNs, port: u16) -> Result<()> {
    wait_until(&format!("a server listening on port {port}"), LISTEN_LIMIT, || {
        let tables = netns.run_in(|| {
            ["tcp", "tcp6"].map(|table| {
                fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default()
            })
        })?;
        Ok(tables.iter().any(|table| listens(table, port)).then_some(()))
    })
}

/// Whether a table as in proc_net_tcp(5) has a socket in state LISTEN (0A) on `port`.
fn listens(table: &str, port: u16) -> bool {
    let local = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|address| address.ends_with(&local))
            && fields.get(3) == Some(&"0A")
    })
}

/// Socket buffers of UDP measurements.
const UDP_BUFFER_BYTES: u64 = 2 << 20;

/// One TCP flow with the given congestion control at the sender.
pub(crate) fn tcp(target: Target<'_>, span: Span, congestion: &str) -> Result<TcpFigures> {
    parse_tcp(&run(target, span, &["-C", congestion])?)
}

/// As [`tcp`], with no more than `rate_bps` bits per second.
pub(crate) fn tcp_at(
    target: Target<'_>,
    span: Span,
    congestion: &str,
    rate_bps: u64,
) -> Result<TcpFigures> {
    parse_tcp(&run(target, span, &["-C", congestion, "-b", &rate_bps.to_string()])?)
}

/// As [`tcp`], and the receiver's throughput in bits per second in each interval, from the start
/// on: the part that the figures omit comes first.
pub(crate) fn tcp_over_time(
    target: Target<'_>,
    span: Span,
    congestion: &str,
    interval: Duration,
) -> Result<(TcpFigures, Vec<u64>)> {
    let interval_s = interval.as_secs_f64().to_string();
    let report = run(target, span, &["-C", congestion, "-i", &interval_s])?;
    Ok((parse_tcp(&report)?, parse_intervals(&report)?))
}

/// One UDP flow of `rate_bps` payload bits per second in packets of 1388 bytes.
pub(crate) fn udp(target: Target<'_>, span: Span, rate_bps: u64) -> Result<UdpFigures> {
    let (rate, length) = (rate_bps.to_string(), UDP_PAYLOAD_BYTES.to_string());
    let buffer = socket_buffer_bytes().map(|bytes| bytes.to_string());
    let mut options = vec!["-u", "-b", &rate, "-l", &length];
    if let Some(buffer) = &buffer {
        options.extend(["-w", buffer]);
    }
    parse_udp(&run(target, span, &options)?)
}

/// When a resequencer gives up a gap it delivers all waiting packets at once: 50 ms at 100 Mbit/s
/// are 625 kB, three times the kernel's default buffer. Losses in the receiving program would not
/// be the bond's, so it gets a larger buffer, as far as the machine allows. Older kernels do not
/// show their limit in a namespace; there the default buffer stays.
fn socket_buffer_bytes() -> Option<u64> {
    let limit = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
    };
    Some(UDP_BUFFER_BYTES.min(limit("rmem_max")?).min(limit("wmem_max")?))
}

fn run(target: Target<'_>, span: Span, options: &[&str]) -> Result<String> {
    let mut command = target.client.command("iperf3");
    command.args(["-c", &target.server.to_string(), "-p", &PORT.to_string(), "-R", "--json"]);
    command.args(["-t", &span.seconds.to_string(), "-O", &span.omit_seconds.to_string()]);
    command.args(["--connect-timeout", "5000"]).args(options);
    if let Some(address) = target.bind {
        command.args(["-B", &address.to_string()]);
    }
    // iperf3 reports an error in its JSON and by its status; the text says more.
    let finished = process::run_any(&mut command, "", span.total() + GRACE)?;
    if !finished.status.success() && finished.stdout.trim().is_empty() {
        bail!("iperf3 failed ({}): {}", finished.status, finished.stderr.trim());
    }
    Ok(finished.stdout)
}

fn parse(text: &str) -> Result<Value> {
    let report: Value = serde_json::from_str(text).context("iperf3 did not print JSON")?;
    if let Some(error) = report["error"].as_str() {
        bail!("iperf3: {error}");
    }
    Ok(report)
}

fn number(report: &Value, pointer: &str) -> Result<u64> {
    let value = report.pointer(pointer);
    let number = value.and_then(|value| {
        value.as_u64().or_else(|| value.as_f64().map(|float| float.round().max(0.0) as u64))
    });
    number.with_context(|| format!("iperf3's report lacks {pointer}"))
}

fn parse_tcp(text: &str) -> Result<TcpFigures> {
    let report = parse(text)?;
    let retransmits = number(&report, "/end/sum_sent/retransmits")?;
    let sent_bytes = number(&report, "/end/sum_sent/bytes")?;
    let segment_bytes = number(&report, "/start/tcp_mss_default")?.max(1);
    Ok(TcpFigures {
        throughput_bps: number(&report, "/end/sum_received/bits_per_second")?,
        retransmits,
        segments: sent_bytes.div_ceil(segment_bytes) + retransmits,
        congestion: report["end"]["sender_tcp_congestion"].as_str().unwrap_or("unknown").into(),
    })
}

fn parse_intervals(text: &str) -> Result<Vec<u64>> {
    let report = parse(text)?;
    let intervals = report["intervals"].as_array().context("iperf3's report lacks /intervals")?;
    intervals.iter().map(|interval| number(interval, "/sum/bits_per_second")).collect()
}

fn parse_udp(text: &str) -> Result<UdpFigures> {
    let report = parse(text)?;
    Ok(UdpFigures {
        throughput_bps: number(&report, "/end/sum_received/bits_per_second")?,
        packets: number(&report, "/end/sum_received/packets")?,
        lost_packets: number(&report, "/end/sum_received/lost_packets")?,
        out_of_order_packets: number(&report, "/end/streams/0/udp/out_of_order")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_report_is_read() {
        let figures = parse_tcp(include_str!("samples/iperf3-tcp.json")).unwrap();
        let expected = TcpFigures {
            throughput_bps: 27_187_148_204,
            retransmits: 1,
            segments: 207_320 + 1,
            congestion: "cubic".into(),
        };
        assert_eq!(figures, expected);
        let intervals = parse_intervals(include_str!("samples/iperf3-tcp.json")).unwrap();
        assert_eq!(intervals, [26_991_204_977]);
    }

    #[test]
    fn udp_report_is_read() {
        let figures = parse_udp(include_str!("samples/iperf3-udp.json")).unwrap();
        let expected = UdpFigures {
            throughput_bps: 20_003_436,
            packets: 3_603,
            lost_packets: 7,
            out_of_order_packets: 2,
        };
        assert_eq!(figures, expected);
    }

    #[test]
    fn an_error_in_the_report_is_an_error() {
        let error = parse_tcp(r#"{"start":{},"end":{},"error":"the server is busy"}"#).unwrap_err();
        assert_eq!(error.to_string(), "iperf3: the server is busy");
        let error = parse_tcp(r#"{"start":{},"end":{}}"#).unwrap_err();
        assert!(error.to_string().contains("/end/sum_sent/retransmits"), "{error}");
    }

    #[test]
    fn a_listening_socket_is_found() {
        let table = "  sl  local_address rem_address   st\n   \
                     0: 0100007F:1451 00000000:0000 0A 00000000\n   \
                     1: 0100007F:1F90 0100007F:9C40 01 00000000\n";
        assert!(listens(table, 5201));
        assert!(!listens(table, 8080), "connected, not listening");
    }
}
