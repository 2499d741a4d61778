//! Round trips of small UDP packets, one after the other, at a steady rate: the latency that a
//! route adds in a quiet network.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;
use plait_net::netns::NetNs;

use crate::worker::Worker;

/// A later answer counts as lost.
const ANSWER_MAX: Duration = Duration::from_millis(200);
/// Payload of a packet in bytes: its number.
const PAYLOAD_BYTES: usize = 8;

/// An echo server at one end and a client at the other.
#[derive(Debug)]
pub(crate) struct Echo {
    asker: UdpSocket,
    _echo: Worker,
}

impl Echo {
    /// Opens both ends: requests go from an address of one namespace to one of the other.
    pub(crate) fn open(from: (&NetNs, SocketAddr), to: (&NetNs, SocketAddr)) -> Result<Self> {
        let bind = |(netns, address): (&NetNs, SocketAddr)| -> Result<UdpSocket> {
            let socket = netns.run_in(|| UdpSocket::bind(address))??;
            socket.set_read_timeout(Some(ANSWER_MAX))?;
            Ok(socket)
        };
        let (asker, echo) = (bind(from)?, bind(to)?);
        asker.connect(echo.local_addr()?)?;
        let echo = Worker::start("echo", move |goes_on| {
            let mut buffer = [0; 64];
            while goes_on() {
                if let Ok((length, whence)) = echo.recv_from(&mut buffer) {
                    // A route that drops packets shows as missing answers.
                    let _lost = echo.send_to(&buffer[..length], whence);
                }
            }
        })?;
        Ok(Self { asker, _echo: echo })
    }

    /// Sends `count` requests, one each `interval`, and adds the results.
    pub(crate) fn ask(&self, count: u32, interval: Duration, into: &mut RoundTrips) -> Result<()> {
        for number in 0..count {
            let start = Instant::now();
            let number = u64::from(number).to_be_bytes();
            self.asker.send(&number)?;
            into.add(self.answer(number, start)?);
            std::thread::sleep(interval.saturating_sub(start.elapsed()));
        }
        Ok(())
    }

    /// The time to this number's answer; late answers to others are skipped.
    fn answer(&self, number: [u8; PAYLOAD_BYTES], start: Instant) -> Result<Option<Duration>> {
        let mut buffer = [0; 64];
        while start.elapsed() < ANSWER_MAX {
            match self.asker.recv(&mut buffer) {
                Ok(length) if buffer[..length] == number => return Ok(Some(start.elapsed())),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

/// Round-trip times.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    times: Vec<Duration>,
    pub(crate) unanswered: u64,
}

impl RoundTrips {
    fn add(&mut self, time: Option<Duration>) {
        match time {
            Some(time) => self.times.push(time),
            None => self.unanswered += 1,
        }
    }

    /// The `percent`-th percentile of the answered requests' times, in microseconds.
    pub(crate) fn percentile_us(&self, percent: usize) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_answered() {
        let mut trips = RoundTrips::default();
        (1..=100).rev().for_each(|us| trips.add(Some(Duration::from_micros(us))));
        trips.add(None);
        let percentiles = [50, 99, 100].map(|percent| trips.percentile_us(percent).round());
        assert_eq!((percentiles, trips.unanswered), ([51.0, 100.0, 100.0], 1));
        assert!(RoundTrips::default().percentile_us(50).is_nan());
    }
}
