//! What comes out of the core: datagrams for the sockets and packets for the host.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use crate::config::SocketId;
use crate::path::Route;
use crate::seq::PathId;
use crate::wire::ecn::Ecn;

/// Most datagrams in a run: what every kernel with UDP_SEGMENT takes.
const RUN_DATAGRAMS_MAX: usize = 64;
/// Most bytes in a run: one UDP send.
const RUN_BYTES_MAX: usize = 65_507;
/// Buffers kept for later.
const SPARE_BUFFERS_MAX: usize = 32;

/// One send: a datagram, or a run of equal datagrams of which only the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The socket to send from.
    pub socket: SocketId,
    /// The destination.
    pub remote: SocketAddr,
    /// The source address, where it matters.
    pub local: Option<IpAddr>,
    /// The ECN field of all its IP headers (spec E-1).
    pub ecn: Ecn,
    /// Length of every datagram but the last; `None` for a single one.
    pub segment_size: Option<usize>,
    /// The datagrams, one after the other.
    pub contents: &'a [u8],
}

#[derive(Debug)]
struct Run {
    path: PathId,
    route: Route,
    ecn: Ecn,
    segment: usize,
    /// A shorter datagram ended the run.
    closed: bool,
    bytes: Vec<u8>,
}

impl Run {
    fn takes(&self, route: &Route, ecn: Ecn, length: usize) -> bool {
        !self.closed
            && length <= self.segment
            && self.route == *route
            && self.ecn == ecn
            && self.bytes.len() + length <= RUN_BYTES_MAX
            && self.bytes.len() < self.segment * RUN_DATAGRAMS_MAX
    }
}

/// Datagrams on their way to the sockets, in runs per path. Order is kept within a path.
#[derive(Debug, Default)]
pub struct TransmitQueue {
    open: Vec<Run>,
    finished: VecDeque<Run>,
    /// What the last [`Self::poll`] gave out.
    current: Option<Run>,
    spare: Vec<Vec<u8>>,
}

impl TransmitQueue {
    /// The run of a path, at whose end the caller is to put a datagram of exactly `length` bytes.
    pub fn append(&mut self, path: PathId, route: Route, ecn: Ecn, length: usize) -> &mut Vec<u8> {
        let known = self.open.iter().position(|run| run.path == path);
        let at = match known {
            Some(at) if self.open[at].takes(&route, ecn, length) => at,
            full => {
                self.finished.extend(full.map(|at| self.open.remove(at)));
                let bytes = self.spare.pop().unwrap_or_default();
                self.open.push(Run { path, route, ecn, segment: length, closed: false, bytes });
                self.open.len() - 1
            }
        };
        let run = &mut self.open[at];
        run.closed = length < run.segment;
        &mut run.bytes
    }

    /// A send of its own for a datagram of exactly `length` bytes, which the caller is to put
    /// there: one that may be too long must take no other with it.
    pub fn append_alone(&mut self, path: PathId, route: Route, length: usize) -> &mut Vec<u8> {
        if let Some(at) = self.open.iter().position(|run| run.path == path) {
            self.finished.push_back(self.open.remove(at));
        }
        let bytes = self.spare.pop().unwrap_or_default();
        let ecn = Ecn::NotEct;
        self.finished.push_back(Run { path, route, ecn, segment: length, closed: true, bytes });
        &mut self.finished.back_mut().expect("one was pushed").bytes
    }

    /// A copy of a datagram that belongs to no path.
    pub fn push_single(&mut self, route: Route, datagram: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(datagram);
        let segment = bytes.len();
        let (path, ecn) = (PathId(0), Ecn::NotEct);
        self.finished.push_back(Run { path, route, ecn, segment, closed: true, bytes });
    }

    /// Whether [`Self::poll`] has something.
    pub fn has_more(&self) -> bool {
        !self.finished.is_empty() || !self.open.is_empty()
    }

    /// The next send; valid until the next call.
    pub fn poll(&mut self) -> Option<Transmit<'_>> {
        if let Some(Run { mut bytes, .. }) = self.current.take()
            && self.spare.len() < SPARE_BUFFERS_MAX
        {
            bytes.clear();
            self.spare.push(bytes);
        }
        self.current = match self.finished.pop_front() {
            None if self.open.is_empty() => return None,
            None => Some(self.open.remove(0)),
            finished => finished,
        };
        self.current.as_ref().map(|Run { route, ecn, segment, bytes, .. }| Transmit {
            socket: route.socket,
            remote: route.remote,
            local: route.local,
            ecn: *ecn,
            segment_size: (bytes.len() > *segment).then_some(*segment),
            contents: bytes,
        })
    }

    /// Takes the contents of the last [`Self::poll`] for good, with an empty buffer in exchange;
    /// nothing when that gave nothing.
    pub fn take_contents(&mut self, spare: Vec<u8>) -> Vec<u8> {
        debug_assert!(spare.is_empty(), "a run begins with an empty buffer");
        match &mut self.current {
            Some(run) => core::mem::replace(&mut run.bytes, spare),
            None => spare,
        }
    }
}

/// Inner packets on their way to the host.
#[derive(Debug, Default)]
pub struct DeliverQueue {
    bytes: Vec<u8>,
    ends: VecDeque<usize>,
    start: usize,
}

impl DeliverQueue {
    /// Adds a packet.
    pub fn push(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.ends.push_back(self.bytes.len());
    }

    /// Whether [`Self::poll`] has something.
    pub fn has_more(&self) -> bool {
        !self.ends.is_empty()
    }

    /// The next packet; valid until the next call.
    pub fn poll(&mut self) -> Option<&[u8]> {
        let Some(end) = self.ends.pop_front() else {
            self.bytes.clear();
            self.start = 0;
            return None;
        };
        let packet = &self.bytes[self.start..end];
        self.start = end;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Route {
        Route { socket: SocketId(0), remote: ([192, 0, 2, 1], port).into(), local: None }
    }

    fn append(queue: &mut TransmitQueue, path: u8, port: u16, length: usize) {
        let run = queue.append(PathId(path), route(port), Ecn::NotEct, length);
        run.resize(run.len() + length, 0);
    }

    fn sends(queue: &mut TransmitQueue) -> Vec<(Option<usize>, usize)> {
        let mut sends = Vec::new();
        while let Some(transmit) = queue.poll() {
            sends.push((transmit.segment_size, transmit.contents.len()));
        }
        sends
    }

    #[test]
    fn equal_datagrams_form_a_run_that_a_shorter_one_ends() {
        let mut queue = TransmitQueue::default();
        for length in [100, 100, 40, 100] {
            append(&mut queue, 0, 1, length);
        }
        assert_eq!(sends(&mut queue), [(Some(100), 240), (None, 100)]);
    }

    #[test]
    fn paths_have_runs_of_their_own() {
        let mut queue = TransmitQueue::default();
        for path in [0, 1, 0, 1] {
            append(&mut queue, path, path.into(), 100);
        }
        assert_eq!(sends(&mut queue), [(Some(100), 200), (Some(100), 200)]);
    }

    #[test]
    fn a_run_has_one_ecn_field() {
        let mut queue = TransmitQueue::default();
        for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0] {
            let run = queue.append(PathId(0), route(1), ecn, 100);
            run.resize(run.len() + 100, 0);
        }
        let sent = core::iter::from_fn(|| queue.poll().map(|send| (send.ecn, send.contents.len())));
        let sent: Vec<_> = sent.collect();
        assert_eq!(sent, [(Ecn::Ect0, 200), (Ecn::NotEct, 100), (Ecn::Ect0, 100)]);
    }

    #[test]
    fn a_datagram_alone_is_a_send_of_its_own() {
        let mut queue = TransmitQueue::default();
        append(&mut queue, 0, 1, 100);
        queue.append_alone(PathId(0), route(1), 120).resize(120, 0);
        append(&mut queue, 0, 1, 100);
        append(&mut queue, 0, 1, 100);
        assert_eq!(sends(&mut queue), [(None, 100), (None, 120), (Some(100), 200)]);
    }

    #[test]
    fn a_run_fits_one_send() {
        let mut queue = TransmitQueue::default();
        for _ in 0..60 {
            append(&mut queue, 0, 1, 1400);
        }
        assert!(sends(&mut queue).iter().all(|(_, bytes)| *bytes <= RUN_BYTES_MAX));
    }

    #[test]
    fn contents_that_were_taken_are_the_takers() {
        let mut queue = TransmitQueue::default();
        append(&mut queue, 0, 1, 100);
        append(&mut queue, 1, 1, 50);
        assert!(queue.take_contents(Vec::new()).is_empty(), "nothing was given out");
        assert!(queue.poll().is_some());
        assert_eq!(queue.take_contents(Vec::new()).len(), 100);
        assert_eq!(sends(&mut queue), [(None, 50)]);
    }

    #[test]
    fn delivered_packets_come_in_order() {
        let mut queue = DeliverQueue::default();
        queue.push(b"one");
        queue.push(b"three");
        assert_eq!(queue.poll(), Some(&b"one"[..]));
        assert_eq!(queue.poll(), Some(&b"three"[..]));
        assert_eq!(queue.poll(), None);
    }
}
