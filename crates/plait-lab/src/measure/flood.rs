//! Sends UDP packets as fast as possible, or at a steady rate, and counts them at the other end.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use plait_net::netns::NetNs;

use crate::worker::Worker;

/// IPv4's header and UDP's, in bytes.
const UDP_HEADERS_BYTES: usize = 28;
/// Within this time a receiver sees that it must stop.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(50);
/// Packets in flight when the sender stops arrive within this time.
const GRACE: Duration = Duration::from_millis(200);
const BUFFER_BYTES: usize = 8 << 20;
/// Time between two bursts of a steady rate.
const TICK: Duration = Duration::from_millis(1);

/// What was sent and what arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FloodFigures {
    pub(crate) sent_packets: u64,
    pub(crate) received_packets: u64,
    /// Duration of sending.
    pub(crate) time: Duration,
}

impl FloodFigures {
    pub(crate) fn lost_packets(&self) -> u64 {
        self.sent_packets.saturating_sub(self.received_packets)
    }

    /// Packets that arrived, per second.
    pub(crate) fn received_per_second(&self) -> f64 {
        self.received_packets as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// The ends of a flood.
#[derive(Debug)]
pub(crate) struct Flood {
    sender: UdpSocket,
    received: Arc<AtomicU64>,
    _counting: Worker,
}

impl Flood {
    /// Opens both ends: the flood goes from an address of one namespace to one of the other.
    pub(crate) fn open(from: (&NetNs, SocketAddr), to: (&NetNs, SocketAddr)) -> Result<Self> {
        let bind = |(netns, address): (&NetNs, SocketAddr)| -> Result<UdpSocket> {
            let socket = netns.run_in(|| UdpSocket::bind(address))??;
            // Without the right, the system's limits apply.
            let _smaller = plait_net::tcp::force_buffers(&socket, BUFFER_BYTES);
            Ok(socket)
        };
        let (sender, receiver) = (bind(from)?, bind(to)?);
        sender.connect(receiver.local_addr()?)?;
        receiver.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let counting = Worker::start("flooded", move |goes_on| {
            let mut buffer = [0; 2048];
            while goes_on() {
                if receiver.recv(&mut buffer).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(Self { sender, received, _counting: counting })
    }

    /// Sends for `time`: packets of `packet_bytes` including headers, `per_second` of them or as
    /// many as possible.
    pub(crate) fn run(
        &self,
        packet_bytes: usize,
        per_second: Option<u64>,
        time: Duration,
    ) -> Result<FloodFigures> {
        let payload = vec![0; packet_bytes.saturating_sub(UDP_HEADERS_BYTES)];
        let received_before = self.received.load(Ordering::Relaxed);
        let start = Instant::now();
        let mut sent_packets = 0;
        while start.elapsed() < time {
            let due = per_second.map_or(sent_packets + 64, |rate| {
                (start.elapsed().as_secs_f64() * rate as f64) as u64
            });
            while sent_packets < due {
                match self.sender.send(&payload) {
                    Ok(_) => {}
                    // The flood itself fills the queue.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) if error.raw_os_error() == Some(ENOBUFS) => {}
                    Err(error) => return Err(error.into()),
                }
                sent_packets += 1;
            }
            if per_second.is_some() {
                std::thread::sleep(TICK);
            }
        }
        let time = start.elapsed();
        std::thread::sleep(GRACE);
        let received_packets = self.received.load(Ordering::Relaxed) - received_before;
        Ok(FloodFigures { sent_packets, received_packets, time })
    }
}

/// No buffer space available, on Linux.
const ENOBUFS: i32 = 105;
