//! A dense series of pings: which are unanswered, and the round-trip times of the others.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Target;
use crate::process;

/// An answer later than this counts as none.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The result of a series of pings.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PingAnswers {
    sent: u32,
    /// Round-trip times of the answered pings, sorted.
    rtts_ms: Vec<f64>,
}

impl PingAnswers {
    /// The `percent`-th percentile of the round-trip times, in milliseconds. An unanswered ping
    /// counts as at least a second.
    pub(crate) fn percentile_ms(&self, percent: u32) -> f64 {
        let rank = u64::from(self.sent) * u64::from(percent) / 100;
        let rtt_ms = usize::try_from(rank).ok().and_then(|rank| self.rtts_ms.get(rank));
        let slowest_ms = self.rtts_ms.last().copied().unwrap_or_default();
        rtt_ms.copied().unwrap_or_else(|| slowest_ms.max(milliseconds(ANSWER_MAX)))
    }
}

/// A running series of pings, on a separate thread.
#[derive(Debug)]
pub(crate) struct Pinging {
    count: u32,
    thread: std::thread::JoinHandle<Result<String>>,
}

impl Pinging {
    /// Sends `count` pings, one each `interval`.
    pub(crate) fn start(target: Target<'_>, interval: Duration, count: u32) -> Result<Self> {
        Self::start_with(target, interval, count, &[])
    }

    /// The same, in packets with this payload that must not be fragmented.
    pub(crate) fn start_whole(
        target: Target<'_>,
        interval: Duration,
        count: u32,
        payload_bytes: u32,
    ) -> Result<Self> {
        let payload = payload_bytes.to_string();
        Self::start_with(target, interval, count, &["-M", "do", "-s", &payload])
    }

    fn start_with(
        target: Target<'_>,
        interval: Duration,
        count: u32,
        options: &[&str],
    ) -> Result<Self> {
        let mut command = target.client.command("ping");
        let seconds = interval.as_secs_f64().to_string();
        command.args(["-n", "-W", "1", "-i", &seconds, "-c", &count.to_string()]);
        command.args(options);
        if let Some(source) = target.bind {
            command.args(["-I", &source.to_string()]);
        }
        command.arg(target.server.to_string());
        let limit = interval * count + Duration::from_secs(15);
        let thread = std::thread::Builder::new()
            .name("pings".into())
            .spawn(move || Ok(process::run_any(&mut command, "", limit)?.stdout))?;
        Ok(Self { count, thread })
    }

    /// Waits for the last.
    pub(crate) fn answers(self) -> Result<PingAnswers> {
        let (text, count) = self.text()?;
        anyhow::ensure!(text.contains("packets transmitted"), "unknown form of pings: {text}");
        answers(&text, count)
    }

    /// Waits for the last; the share that was answered. Without a route, ping prints nothing.
    pub(crate) fn answered_share(self) -> Result<f64> {
        let (text, count) = self.text()?;
        anyhow::ensure!(count > 0, "a series has pings");
        Ok(answers(&text, count)?.rtts_ms.len() as f64 / f64::from(count))
    }

    fn text(self) -> Result<(String, u32)> {
        let text = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((text, self.count))
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Reads what ping(8) printed of `sent` pings; an answer that came twice counts once.
fn answers(text: &str, sent: u32) -> Result<PingAnswers> {
    let mut rtts_ms = Vec::new();
    let is_first = |line: &&str| line.contains(" icmp_seq=") && !line.ends_with("(DUP!)");
    for line in text.lines().filter(is_first) {
        let Some((_, time)) = line.split_once(" time=") else { continue };
        let ms = time.trim_end_matches(" ms").parse::<f64>();
        rtts_ms.push(ms.with_context(|| format!("unknown form of a ping's answer: {line}"))?);
    }
    rtts_ms.sort_by(f64::total_cmp);
    Ok(PingAnswers { sent, rtts_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_time_count_once() {
        let text = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=13.2 ms\n\
                    64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=14.0 ms (DUP!)\n\
                    64 bytes from 10.0.0.1: icmp_seq=2 ttl=64 time=1200 ms\n\
                    From 10.0.0.9 icmp_seq=3 Destination Net Unreachable\n\
                    64 bytes from 10.0.0.1: icmp_seq=4 ttl=64 time=999 ms\n";
        assert_eq!(answers(text, 4).unwrap().rtts_ms, [13.2, 999.0, 1200.0]);
        assert!(answers("64 bytes: icmp_seq=1 time=soon ms", 1).is_err());
    }

    #[test]
    fn a_ping_without_an_answer_is_a_slow_one() {
        let row = PingAnswers { sent: 4, rtts_ms: vec![10.0, 20.0, 30.0] };
        assert_eq!((row.percentile_ms(50), row.percentile_ms(95)), (30.0, 1000.0));
        let silent = PingAnswers { sent: 4, rtts_ms: Vec::new() };
        assert_eq!(silent.percentile_ms(50), 1000.0);
        let late = PingAnswers { sent: 2, rtts_ms: vec![1500.0] };
        assert_eq!(late.percentile_ms(95), 1500.0);
    }
}
