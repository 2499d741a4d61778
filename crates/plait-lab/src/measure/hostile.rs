//! Sends hostile datagrams at a steady rate from a separate thread.

use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;

use self::datagrams::Datagrams;
use crate::gateway::{LISTEN_PORT, endpoint_v4};
use crate::process;
use crate::topology::SERVER_BARE_V4;
use crate::worker::Worker;

mod datagrams;

/// Source ports.
const SOCKETS: usize = 16;
/// Time between two bursts.
const TICK: Duration = Duration::from_millis(1);
/// Most datagrams of a burst, when the thread has fallen behind.
const BURST_MAX: u64 = 512;

/// The material for hostile datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Hostility {
    /// Payloads that the gateways sent.
    pub(crate) captures: Vec<Vec<u8>>,
    pub(crate) seed: u64,
}

/// A sender's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) datagrams: u64,
    pub(crate) reply_bytes: u64,
    pub(crate) cpu: Duration,
    pub(crate) elapsed: Duration,
}

impl Sent {
    /// Share of one core, in parts per million.
    pub(crate) fn cpu_ppm(&self) -> u64 {
        (self.cpu.as_secs_f64() / self.elapsed.as_secs_f64() * 1e6) as u64
    }

    pub(crate) fn reply_bps(&self) -> u64 {
        (self.reply_bytes as f64 * 8.0 / self.elapsed.as_secs_f64()) as u64
    }
}

/// A running sender of hostile datagrams.
#[derive(Debug)]
pub(crate) struct HostileSender {
    shared: Arc<Shared>,
    worker: Worker<Result<Sent>>,
}

#[derive(Debug, Default)]
struct Shared {
    sent: AtomicU64,
    /// Captures to use from now on, besides the first ones.
    fresh: Mutex<Option<Vec<Vec<u8>>>>,
}

impl Shared {
    fn fresh(&self) -> MutexGuard<'_, Option<Vec<Vec<u8>>>> {
        self.fresh.lock().expect("no thread panics while it holds the captures' lock")
    }
}

impl HostileSender {
    /// Sends up to `count` datagrams from `netns` to the listening gateway, `per_second` of them.
    pub(crate) fn start(
        netns: &NetNs,
        hostility: &Hostility,
        per_second: u64,
        count: u64,
    ) -> Result<Self> {
        ensure!(!hostility.captures.is_empty(), "no datagram of the gateways was captured");
        let open = || (0..SOCKETS).map(|_| UdpSocket::bind((SERVER_BARE_V4, 0))).collect();
        let sockets: std::io::Result<Vec<_>> = netns.run_in(open)?;
        let sockets = sockets.context("cannot open the generator's sockets")?;
        sockets.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
        let shared = Arc::new(Shared::default());
        let (for_thread, hostility) = (Arc::clone(&shared), hostility.clone());
        let worker = Worker::start("hostile", move |goes_on| {
            let pace = (per_second, count);
            generate(&sockets, &hostility, pace, &for_thread, goes_on)
        })?;
        Ok(Self { shared, worker })
    }

    /// Datagrams sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Replaces the captures of the last renewal; the initial ones stay.
    pub(crate) fn renew(&self, captures: Vec<Vec<u8>>) {
        *self.shared.fresh() = Some(captures);
    }

    /// Whether it still runs: it has neither sent all nor failed.
    pub(crate) fn runs(&self) -> bool {
        self.worker.runs()
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Result<Sent> {
        self.worker.stop()
    }
}

fn generate(
    sockets: &[UdpSocket],
    hostility: &Hostility,
    (per_second, count): (u64, u64),
    shared: &Shared,
    goes_on: &dyn Fn() -> bool,
) -> Result<Sent> {
    let mut datagrams = Datagrams::new(&hostility.captures, hostility.seed);
    let (mut datagram, start) = (Vec::new(), Instant::now());
    let mut sent = Sent::default();
    while sent.datagrams < count && goes_on() {
        if let Some(fresh) = shared.fresh().take() {
            datagrams.renew(fresh);
        }
        let due = u128::from(per_second) * start.elapsed().as_micros() / 1_000_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX).min(count);
        for _ in 0..due.saturating_sub(sent.datagrams).min(BURST_MAX) {
            datagrams.next_into(&mut datagram);
            let socket = &sockets[sent.datagrams as usize % sockets.len()];
            // A full queue loses datagrams as the gateway's socket does.
            let _lost = socket.send_to(&datagram, endpoint_v4());
            sent.datagrams += 1;
        }
        shared.sent.store(sent.datagrams, Ordering::Relaxed);
        sent.reply_bytes += sockets.iter().map(drain).sum::<u64>();
        if due.saturating_sub(sent.datagrams) == 0 {
            std::thread::sleep(TICK);
        }
    }
    sent.elapsed = start.elapsed();
    sent.cpu = process::cpu_time("thread-self")?;
    Ok(sent)
}

/// Reads what came back, and returns its bytes.
fn drain(socket: &UdpSocket) -> u64 {
    let mut buffer = [0; 2048];
    let mut bytes = 0;
    while let Ok(length) = socket.recv(&mut buffer) {
        bytes += length as u64;
    }
    bytes
}

/// Datagrams that the listening gateway's sockets had no room for.
pub(crate) fn unread_datagrams(netns: &NetNs) -> Result<u64> {
    let tables = netns.run_in(|| {
        ["udp", "udp6"].map(|table| {
            fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default()
        })
    })?;
    Ok(tables.iter().map(|table| drops_on(table, LISTEN_PORT)).sum())
}

/// The last column, `drops`, of the sockets on `port`.
fn drops_on(table: &str, port: u16) -> u64 {
    let local = format!(":{port:04X}");
    let of_port = |line: &&str| {
        line.split_whitespace().nth(1).is_some_and(|address| address.ends_with(&local))
    };
    let drops = |line: &str| line.split_whitespace().last()?.parse::<u64>().ok();
    table.lines().skip(1).filter(of_port).filter_map(drops).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_port_are_summed() {
        let table = "sl local_address rem_address st queues tr tm retrnsmt uid timeout inode ref \
                     pointer drops\n\
                     1: 00000000:1E6C 00000000:0000 07 0:0 00:0 0 0 0 1 2 0 41\n\
                     2: 00000000:1E6D 00000000:0000 07 0:0 00:0 0 0 0 1 2 0 7\n";
        assert_eq!(drops_on(table, 7788), 41);
    }
}
