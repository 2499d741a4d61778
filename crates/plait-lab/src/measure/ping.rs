//! ping.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;

use crate::process;

/// The result of a series of pings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pings {
    pub(crate) received: u32,
    /// Mean round-trip time in microseconds; `None` without an answer.
    pub(crate) mean_rtt_us: Option<u64>,
}

/// Sends `count` pings, five a second.
pub(crate) fn ping(
    netns: &NetNs,
    to: impl Into<IpAddr>,
    from: Option<IpAddr>,
    count: u32,
) -> Result<Pings> {
    let mut command = netns.command("ping");
    command.args(["-n", "-q", "-i", "0.2", "-W", "2", "-c", &count.to_string()]);
    if let Some(from) = from {
        command.args(["-I", &from.to_string()]);
    }
    let limit = Duration::from_secs(10 + u64::from(count));
    let finished = process::run_any(command.arg(to.into().to_string()), "", limit)?;
    parse(&finished.stdout).with_context(|| format!("ping: {}", finished.stderr.trim()))
}

fn parse(text: &str) -> Result<Pings> {
    let received = text.lines().find(|line| line.contains("packets transmitted"));
    let received = received
        .and_then(|line| line.split(", ").find_map(|part| part.strip_suffix(" received")))
        .and_then(|count| count.parse().ok())
        .with_context(|| format!("unknown form: {text}"))?;
    let rtts = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let mean_ms = rtts.and_then(|rtts| rtts.split('/').nth(1)).and_then(|ms| ms.parse().ok());
    Ok(Pings { received, mean_rtt_us: mean_ms.map(|ms: f64| (ms * 1000.0).round() as u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_read() {
        let text = "\n--- 10.1.0.2 ping statistics ---\n\
                    5 packets transmitted, 4 received, 20% packet loss, time 801ms\n\
                    rtt min/avg/max/mdev = 20.112/20.534/21.001/0.301 ms\n";
        assert_eq!(parse(text).unwrap(), Pings { received: 4, mean_rtt_us: Some(20_534) });
    }

    #[test]
    fn silence_is_no_error() {
        let text = "5 packets transmitted, 0 received, 100% packet loss, time 801ms\n";
        assert_eq!(parse(text).unwrap(), Pings { received: 0, mean_rtt_us: None });
        assert!(parse("").is_err());
    }
}
