//! A dense row of pings: which stay unanswered.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;

use crate::process;

/// An answer later than this counts as none.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A row of pings under way, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Pinging {
    count: u32,
    thread: std::thread::JoinHandle<Result<String>>,
}

impl Pinging {
    /// Sends `count` pings, one each `interval`.
    pub(crate) fn start(netns: &NetNs, to: IpAddr, interval: Duration, count: u32) -> Result<Self> {
        let mut command = netns.command("ping");
        let seconds = interval.as_secs_f64().to_string();
        command.args(["-n", "-W", "1", "-i", &seconds, "-c", &count.to_string()]);
        command.arg(to.to_string());
        let limit = interval * count + Duration::from_secs(15);
        let thread = std::thread::Builder::new()
            .name("pings".into())
            .spawn(move || Ok(process::run_any(&mut command, "", limit)?.stdout))?;
        Ok(Self { count, thread })
    }

    /// Waits for the last; returns how many stayed unanswered after a second.
    pub(crate) fn unanswered(self) -> Result<u32> {
        let text = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        anyhow::ensure!(text.contains("packets transmitted"), "unknown form of pings: {text}");
        let answered = answered_in_time(&text)?;
        Ok(self.count.saturating_sub(answered))
    }
}

/// Pings answered in time, each once.
fn answered_in_time(text: &str) -> Result<u32> {
    let mut answered = 0;
    let is_first = |line: &&str| line.contains(" icmp_seq=") && !line.ends_with("(DUP!)");
    for line in text.lines().filter(is_first) {
        let Some((_, time)) = line.split_once(" time=") else { continue };
        let ms = time.trim_end_matches(" ms").parse::<f64>();
        let ms = ms.with_context(|| format!("unknown form of a ping's answer: {line}"))?;
        answered += u32::from(ms <= ANSWER_MAX.as_secs_f64() * 1000.0);
    }
    Ok(answered)
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
        assert_eq!(answered_in_time(text).unwrap(), 2);
        assert!(answered_in_time("64 bytes: icmp_seq=1 time=soon ms").is_err());
    }
}
