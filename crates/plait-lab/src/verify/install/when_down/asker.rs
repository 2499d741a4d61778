//! Streams of questions to a server that answers with the address that it sees.

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;
use plait_net::netns::NetNs;

use crate::worker::Worker;

/// Time between two questions.
const PAUSE: Duration = Duration::from_millis(20);
/// A TCP connection without an answer is given up after this.
const PATIENCE: Duration = Duration::from_millis(500);

/// In place of a time that never ends: no run takes as long.
const NEVER_MS: f64 = 60_000.0;

/// How a stream asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// From one socket.
    Udp,
    /// By one connection after the other.
    Tcp,
}

/// A server of both kinds.
#[derive(Debug)]
pub(super) struct Server {
    _workers: [Worker; 2],
}

impl Server {
    pub(super) fn start(netns: &NetNs, port: u16) -> Result<Self> {
        let any = (Ipv4Addr::UNSPECIFIED, port);
        let socket = netns.run_in(|| UdpSocket::bind(any))??;
        socket.set_read_timeout(Some(PAUSE))?;
        let listener = netns.run_in(|| TcpListener::bind(any))??;
        listener.set_nonblocking(true)?;
        let udp = Worker::start("udp server", move |goes_on| {
            let mut buffer = [0; 64];
            while goes_on() {
                if let Ok((_, from)) = socket.recv_from(&mut buffer) {
                    // What is lost shows as a silence.
                    let _lost = socket.send_to(from.ip().to_string().as_bytes(), from);
                }
            }
        })?;
        let tcp = Worker::start("tcp server", move |goes_on| {
            while goes_on() {
                match listener.accept() {
                    Ok((mut stream, from)) => {
                        let text = from.ip().to_string();
                        let _lost = std::io::Write::write_all(&mut stream, text.as_bytes());
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        })?;
        Ok(Self { _workers: [udp, tcp] })
    }
}

/// A running stream.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) name: &'static str,
    pub(super) by: By,
    begun: Instant,
    worker: Worker<Seen>,
}

/// Answers: when each came, and under which address the server saw its question.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Seen(Vec<(Duration, IpAddr)>);

impl Asker {
    /// Starts one from the namespace of this name.
    pub(super) fn start(
        name: &'static str,
        by: By,
        from: &str,
        server: SocketAddr,
    ) -> Result<Self> {
        let begun = Instant::now();
        let netns = NetNs::open(from)?;
        let socket = netns.run_in(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PAUSE))?;
        let worker = Worker::start("asker", move |goes_on| {
            let mut seen = Seen::default();
            while goes_on() {
                let asked = Instant::now();
                let answer = match by {
                    By::Udp => ask(&socket),
                    By::Tcp => netns.run_in(|| connect(server)).ok().flatten(),
                };
                seen.0.extend(answer.map(|source| (begun.elapsed(), source)));
                std::thread::sleep(PAUSE.saturating_sub(asked.elapsed()));
            }
            seen
        })?;
        Ok(Self { name, by, begun, worker })
    }

    /// The time on its clock.
    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn stop(self) -> Seen {
        self.worker.stop()
    }
}

fn ask(socket: &UdpSocket) -> Option<IpAddr> {
    let mut buffer = [0; 64];
    // Errors of earlier questions are reported to later ones.
    let _refused = socket.send(b"?");
    let length = socket.recv(&mut buffer).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()?.parse().ok()
}

fn connect(server: SocketAddr) -> Option<IpAddr> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.parse().ok()
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round()
}

impl Seen {
    /// The longest time without an answer that began in this span, in milliseconds.
    pub(super) fn longest_silence(&self, from: Duration, to: Duration) -> f64 {
        let before = self.0.iter().rev().find(|(at, _)| *at <= from);
        let within = self.0.iter().filter(|(at, _)| *at > from && *at < to).map(|(at, _)| *at);
        let start = before.map_or(from, |(at, _)| *at);
        let mut times: Vec<Duration> = [start].into_iter().chain(within).collect();
        times.push(to.max(start));
        let gaps = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        millis(gaps.max().unwrap_or(Duration::MAX))
    }

    /// The same to the last answer; without any since `from` it is endless.
    pub(super) fn longest_silence_to_end(&self, from: Duration) -> f64 {
        match self.0.last() {
            Some((last, _)) if *last > from => self.longest_silence(from, *last),
            _ => NEVER_MS,
        }
    }

    /// Milliseconds from `from` to the first answer to a question with such a source.
    pub(super) fn first_from(&self, is_such: impl Fn(IpAddr) -> bool, from: Duration) -> f64 {
        let mut later = self.0.iter().filter(|(at, _)| *at > from);
        let first = later.find(|(_, source)| is_such(*source));
        first.map_or(NEVER_MS, |(at, _)| millis(*at - from))
    }

    /// Answers after `from` to questions with such a source.
    pub(super) fn count_after(&self, is_such: impl Fn(IpAddr) -> bool, from: Duration) -> u64 {
        let later = self.0.iter().filter(|(at, source)| *at > from && is_such(*source));
        later.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_and_moves_are_found() {
        let (inside, outside): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let at = |ms| Duration::from_millis(ms);
        let seen = Seen(vec![
            (at(0), inside),
            (at(100), inside),
            (at(900), outside),
            (at(1000), outside),
            (at(1300), inside),
        ]);
        assert_eq!(seen.longest_silence(at(150), at(1000)), 800.0);
        assert_eq!(seen.longest_silence(at(950), at(1250)), 250.0);
        assert_eq!(seen.longest_silence_to_end(at(950)), 300.0);
        assert_eq!(seen.longest_silence_to_end(at(1300)), NEVER_MS);
        assert_eq!(seen.first_from(|source| source == outside, at(150)), 750.0);
        assert_eq!(seen.first_from(|source| source == outside, at(1000)), NEVER_MS);
        assert_eq!(seen.count_after(|source| source == outside, at(950)), 1);
    }
}
