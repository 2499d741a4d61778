//! The loop of a running gateway: sockets and TUN on one side, the protocol on the other.
//!
//! A packet's way out: TUN read → [`Endpoint::handle_packet`] → [`Endpoint::poll_transmit`] → socket.
//! The way in: socket read → [`Endpoint::handle_datagrams`] → [`Endpoint::poll_deliver`] → TUN write.
//! One thread does it all; batches are the unit, from one end to the other.

use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::mpsc::Receiver;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use plait_net::batch::PacketBatch;
use plait_net::clock::Clock;
use plait_net::tun::{Tun, TunPort as _};
use plait_net::udp::{Transmit, UdpPort as _, UdpSocket};
use plait_proto::config::SocketId;
use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::path::Route;
use plait_proto::time::Instant;

use super::requests::Request;

const WAKER: Token = Token(usize::MAX);
const TUN: Token = Token(usize::MAX - 1);

/// Packets from the host that are handled before their datagrams are sent: a super-packet at least.
const PACKETS_PER_SEND: usize = 64;
/// Reads from one source before the others get their turn.
const READS_PER_TURN: usize = 32;

/// What the loop lost at its edges.
#[derive(Debug, Default)]
struct Lost {
    transmits_full: u64,
    transmits_failed: u64,
}

/// A running gateway.
pub(super) struct Driver {
    endpoint: Endpoint,
    tun: Tun,
    sockets: Vec<UdpSocket>,
    clock: Clock,
    poll: Poll,
    requests: Receiver<Request>,
    batch: PacketBatch,
    /// Sources that may have more to read: the sockets, then the TUN.
    ready: Vec<bool>,
    lost: Lost,
}

impl Driver {
    /// Registers everything; the waker is for whoever sends requests.
    pub(super) fn new(
        endpoint: Endpoint,
        tun: Tun,
        sockets: Vec<UdpSocket>,
        clock: Clock,
        requests: Receiver<Request>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let registry = poll.registry();
        registry.register(&mut SourceFd(&tun.as_raw_fd()), TUN, Interest::READABLE)?;
        for (at, socket) in sockets.iter().enumerate() {
            let mut source = SourceFd(&socket.as_raw_fd());
            registry.register(&mut source, Token(at), Interest::READABLE)?;
        }
        let ready = vec![true; sockets.len() + 1];
        let batch = PacketBatch::new();
        let lost = Lost::default();
        let driver = Self { endpoint, tun, sockets, clock, poll, requests, batch, ready, lost };
        Ok((driver, waker))
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.clock.elapsed()
    }

    /// Runs until asked to stop.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        self.endpoint.start(self.now());
        self.flush();
        loop {
            self.wait(&mut events)?;
            if self.answer_requests() {
                break;
            }
            for at in 0..self.sockets.len() {
                if self.ready[at] {
                    self.ready[at] = self.read_socket(at)?;
                }
            }
            if self.ready[self.sockets.len()] {
                let at = self.sockets.len();
                self.ready[at] = self.read_tun()?;
            }
            let now = self.now();
            if self.endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
                self.endpoint.handle_timeout(now);
                self.flush();
            }
        }
        self.endpoint.close(self.now());
        self.flush();
        Ok(())
    }

    /// Sleeps until something is to be read or a timer is due; not at all while a source may have
    /// more.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let now = self.now();
        let timeout = if self.ready.contains(&true) {
            Some(std::time::Duration::ZERO)
        } else {
            self.endpoint.poll_timeout(now).map(|due| due.since(now))
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                TUN => *self.ready.last_mut().expect("the TUN has the last place") = true,
                Token(at) => self.ready[at] = true,
            }
        }
        Ok(())
    }

    /// Says whether the gateway is to stop.
    fn answer_requests(&mut self) -> bool {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Stop => return true,
                Request::Status(reply) => {
                    let status = self.endpoint.status(self.now());
                    // Whoever asked may have gone away.
                    let _ = reply.send((status, self.clock.elapsed()));
                }
            }
        }
        false
    }

    /// Reads from the host; says whether there may be more.
    fn read_tun(&mut self) -> io::Result<bool> {
        self.batch.clear();
        for _ in 0..READS_PER_TURN {
            let more = match self.tun.recv(&mut self.batch) {
                Ok(more) => more,
                // The device is down; its packets are gone.
                Err(error) if error.raw_os_error() == Some(EIO) => false,
                Err(error) => return Err(error),
            };
            if !more || self.batch.len() >= PACKETS_PER_SEND {
                self.send_batch();
            }
            if !more {
                return Ok(false);
            }
        }
        self.send_batch();
        Ok(true)
    }

    fn send_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let now = self.now();
        for packet in self.batch.iter() {
            self.endpoint.handle_packet(now, packet);
        }
        self.batch.clear();
        self.flush();
    }

    /// Reads from a socket; says whether there may be more.
    fn read_socket(&mut self, at: usize) -> io::Result<bool> {
        for _ in 0..READS_PER_TURN {
            let now = Instant::ZERO + self.clock.elapsed();
            let endpoint = &mut self.endpoint;
            let read = self.sockets[at].recv(&mut |meta, datagrams| {
                let route = Route {
                    socket: SocketId(at as u16),
                    remote: meta.source,
                    local: meta.destination,
                };
                endpoint.handle_datagrams(now, route, meta.stride, datagrams);
            });
            match read {
                Ok(0) => return Ok(false),
                Ok(_) => self.flush(),
                // An ICMP error of an earlier send: the paths' own checks notice what matters.
                Err(error) => log::debug!("receiving on socket {at}: {error}"),
            }
        }
        Ok(true)
    }

    /// Sends, delivers and tells what the protocol has ready.
    fn flush(&mut self) {
        while let Some(out) = self.endpoint.poll_transmit() {
            let transmit = Transmit {
                destination: out.remote,
                source: out.local,
                ecn: 0,
                contents: out.contents,
                segment_size: out.segment_size,
            };
            let socket = &mut self.sockets[usize::from(out.socket.0)];
            match socket.send(&transmit) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.lost.transmits_full += 1;
                }
                Err(error) => {
                    self.lost.transmits_failed += 1;
                    log::debug!("sending to {}: {error}", out.remote);
                }
            }
        }
        let mut failed = None;
        while let Some(packet) = self.endpoint.poll_deliver() {
            failed = self.tun.send(packet).err().or(failed);
        }
        if let Some(error) = self.tun.flush().err().or(failed) {
            log::debug!("writing to {}: {error}", self.tun.name());
        }
        while let Some(event) = self.endpoint.poll_event() {
            tell(&event);
        }
    }
}

const EIO: i32 = 5;

fn tell(event: &Event) {
    match event {
        Event::BondUp(peer) => log::info!("bond with {peer} is made"),
        Event::BondDown(peer) => log::warn!("bond with {peer} is gone"),
        Event::PathUp(peer, path) => log::info!("path {path} to {peer} carries data"),
        Event::PathSilent(peer, path) => {
            log::warn!("path {path} to {peer} is silent: left out, probed every second");
        }
    }
}
