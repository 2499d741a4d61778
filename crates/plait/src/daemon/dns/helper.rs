//! The process that tells the host's resolver, with the rights that the gateway was started with.
//!
//! A running gateway is in a sandbox and may be another user than root, so it cannot write below
//! /etc or run programs that need root. This process is started before, reads one order a line, and
//! answers each. When the gateway ends, however it ends, this end of the pipe closes, and the
//! process takes back what it told.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plait_net::rights::{effective_user, keep_only};
use plait_toml::dns::Domain;
use plait_toml::value::names;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::way::{Servers, Way};

/// The hidden command.
pub(crate) const COMMAND: &str = "tell-resolver";
/// A longer order is not of a gateway.
const LINE_BYTES_MAX: u64 = 65_536;
/// How long a gateway that ends waits for its helper.
const END_TIME_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// What a gateway orders.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Tell the resolver of these.
    Tell(Servers),
    /// Take back what was told.
    TakeBack,
}

impl Order {
    /// Reads an order; `None` when it is no gateway's. Who gives it may have been taken over.
    fn read(line: &str) -> Option<Self> {
        let order: Self = serde_json::from_str(line).ok()?;
        let is_plain = |domain: &String| {
            Domain::parse(domain).is_ok_and(|domain_read| domain_read.to_string() == *domain)
        };
        match &order {
            Self::Tell(told) => told.domains.iter().all(is_plain).then_some(order),
            Self::TakeBack => Some(order),
        }
    }
}

/// The body of the hidden command.
pub(crate) fn serve(tun: &str, way: &str) -> anyhow::Result<()> {
    let way = Way::named(way).context("there is no such way")?;
    anyhow::ensure!(names::device(tun).is_ok(), "no device can be called so");
    // The gateway decides when this ends: signals to a terminal's or a service's processes do not.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    if effective_user() != 0 {
        keep_only(&[], None)?;
    }
    let mut orders = BufReader::new(io::stdin().lock());
    let mut told = false;
    loop {
        let mut line = String::new();
        let read = orders.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        let Some(order) = read.ok().and_then(|_| Order::read(&line)) else { break };
        let done = match order {
            Order::Tell(servers) => {
                told = true;
                way.tell(tun, &servers)
            }
            Order::TakeBack => {
                told = false;
                way.take_back(tun)
            }
        };
        // A gateway that is gone is noticed by the next reading.
        let _ = writeln!(io::stdout(), "{}", serde_json::to_string(&done.err())?);
    }
    // With its gateway a device has gone, and what systemd-resolved knew of it.
    if told
        && let Err(error) = way.take_back(tun)
        && way.outlives_device()
    {
        log::error!("[dns]: {error}; `plait unblock {tun}` tries again");
    }
    Ok(())
}

/// The helper of a gateway.
#[derive(Debug)]
pub(super) struct Helper {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts it: before rights are given up.
    ///
    /// # Errors
    /// This program cannot be started once more.
    pub(super) fn start(tun: &str, way: Way) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .args([COMMAND, tun, &way.word()])
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("PLAIT_KEYLOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().map(BufReader::new).expect("a pipe was asked for");
        Ok(Self { child, orders, answers })
    }

    /// Gives an order and waits for what came of it.
    pub(super) fn order(&mut self, order: &Order) -> Result<(), String> {
        let gone = |error: io::Error| format!("the process that tells the resolver fails: {error}");
        let text = serde_json::to_string(order).map_err(|error| gone(error.into()))?;
        let orders = self.orders.as_mut().ok_or_else(|| gone(io::ErrorKind::BrokenPipe.into()))?;
        writeln!(orders, "{text}").map_err(gone)?;
        let mut line = String::new();
        self.answers.by_ref().take(LINE_BYTES_MAX).read_line(&mut line).map_err(gone)?;
        match serde_json::from_str::<Option<String>>(&line) {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(error),
            Err(_) => Err(gone(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for Helper {
    /// Waits until it has taken back what it told.
    fn drop(&mut self) {
        self.orders = None;
        let until = Instant::now() + END_TIME_MAX;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                log::warn!("[dns]: the host's resolver does not answer; it is left to itself");
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_hold_addresses_and_plain_domains_only() {
        let told = |servers: &[&str], domains: &[&str]| {
            serde_json::json!({ "Tell": { "servers": servers, "domains": domains } }).to_string()
        };
        assert!(Order::read("\"TakeBack\"").is_some());
        assert!(Order::read(&told(&["1.1.1.1", "::2"], &[".", "corp.example"])).is_some());
        for odd in [
            told(&["1.1.1.1\nnameserver 2.2.2.2"], &["."]),
            told(&["-x"], &["."]),
            told(&["1.1.1.1"], &["a\nnameserver 2.2.2.2"]),
            told(&["1.1.1.1"], &["--reset"]),
            told(&["1.1.1.1"], &["a b"]),
            "\"Run\"".into(),
            String::new(),
        ] {
            assert!(Order::read(&odd).is_none(), "{odd}");
        }
    }
}
