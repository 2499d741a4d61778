//! The loop of a running gateway: waits for sockets, TUN device, timers and requests, and lets the
//! [pump](super::pump) do the rest. One thread runs it all.

use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use plait_net::clock::Clock;
use plait_net::tun::Tun;
use plait_net::udp::UdpSocket;
use plait_proto::time::Instant;

use super::pump::Pump;
use super::requests::Request;

const WAKER: Token = Token(usize::MAX);
const TUN: Token = Token(usize::MAX - 1);

/// A running gateway.
pub(super) struct Driver {
    pump: Pump<Tun, UdpSocket>,
    clock: Clock,
    poll: Poll,
    requests: Receiver<Request>,
    tun_ready: bool,
    /// Sockets that may have more to read.
    sockets_ready: Vec<bool>,
}

impl Driver {
    /// Registers everything; the waker is for whoever sends requests.
    pub(super) fn new(
        pump: Pump<Tun, UdpSocket>,
        clock: Clock,
        requests: Receiver<Request>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let waker = Waker::new(registry, WAKER)?;
        registry.register(&mut SourceFd(&pump.tun.as_raw_fd()), TUN, Interest::READABLE)?;
        for (at, socket) in pump.sockets.iter().enumerate() {
            let mut source = SourceFd(&socket.as_raw_fd());
            registry.register(&mut source, Token(at), Interest::READABLE)?;
        }
        let sockets_ready = vec![true; pump.sockets.len()];
        Ok((Self { pump, clock, poll, requests, tun_ready: true, sockets_ready }, waker))
    }

    /// Runs until asked to stop.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let clock = self.clock;
        let now = move || Instant::ZERO + clock.elapsed();
        let mut events = Events::with_capacity(64);
        self.pump.endpoint.start(now());
        self.pump.flush();
        loop {
            self.wait(&mut events, now())?;
            if self.answer_requests(now()) {
                break;
            }
            for at in 0..self.sockets_ready.len() {
                if self.sockets_ready[at] {
                    self.sockets_ready[at] = self.pump.read_socket(at, now);
                }
            }
            if self.tun_ready {
                self.tun_ready = self.pump.read_tun(now)?;
            }
            let now = now();
            if self.pump.endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
                self.pump.endpoint.handle_timeout(now);
                self.pump.flush();
            }
        }
        self.pump.endpoint.close(now());
        self.pump.flush();
        Ok(())
    }

    /// Sleeps until something is to be read or a timer is due; not at all while a port may have
    /// more.
    fn wait(&mut self, events: &mut Events, now: Instant) -> io::Result<()> {
        let timeout = if self.tun_ready || self.sockets_ready.contains(&true) {
            Some(Duration::ZERO)
        } else {
            self.pump.endpoint.poll_timeout(now).map(|due| due.since(now))
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                TUN => self.tun_ready = true,
                Token(at) => self.sockets_ready[at] = true,
            }
        }
        Ok(())
    }

    /// Says whether the gateway is to stop.
    fn answer_requests(&mut self, now: Instant) -> bool {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Stop => return true,
                Request::Status(reply) => {
                    // Whoever asked may have gone away.
                    let _ = reply.send((self.pump.endpoint.status(now), self.clock.elapsed()));
                }
            }
        }
        false
    }
}
