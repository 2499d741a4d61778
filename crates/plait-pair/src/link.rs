//! Links of a pair, and what happens to datagrams on them.

use plait_proto::time::Duration;
use plait_proto::wire::ecn::Ecn;

/// A datagram as it was put on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The side it goes to.
    pub to: usize,
    /// The link it is on.
    pub link: usize,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Its bytes, without IP and UDP headers.
    pub bytes: Vec<u8>,
}

/// What happens to one datagram when it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is lost.
    Drop,
    /// It arrives twice, the second time this much later.
    Duplicate(Duration),
    /// It arrives this much later than the link alone would make it.
    Delay(Duration),
    /// The byte at this place, modulo the length, is changed by this pattern, which is not zero.
    Corrupt(usize, u8),
}

/// A link between the two sides: without a rate limit, with a fixed delay.
#[derive(Clone, Debug)]
pub struct Link {
    /// One way.
    pub delay: Duration,
    /// Whether it carries anything.
    pub up: bool,
    /// Whether anything arrives at each side.
    pub up_to: [bool; 2],
    /// Percentage of datagrams that are lost.
    pub loss_percent: u64,
    /// Longer datagrams are lost; bytes at the IP layer.
    pub mtu: usize,
    /// What a router on it writes into the ECN fields of datagrams.
    pub rewrites: Option<Ecn>,
    /// The port of the customer as seen outside the NAT. Datagrams to any other port are dropped.
    pub port: u16,
    /// Whether the customer has a socket on it.
    pub(crate) plugged: bool,
}

impl Link {
    /// Link number `at` of a pair: 5 ms one way for the first, 10 ms more for each further one.
    pub(crate) fn new(at: usize) -> Self {
        Self {
            delay: Duration::from_millis(5 + 10 * at as u64),
            up: true,
            up_to: [true; 2],
            loss_percent: 0,
            mtu: usize::MAX,
            rewrites: None,
            port: 1000,
            plugged: true,
        }
    }

    /// Whether a datagram of this length at the IP layer reaches a side, apart from random loss.
    pub(crate) fn carries(&self, to: usize, ip_bytes: usize) -> bool {
        self.up && self.up_to[to] && ip_bytes <= self.mtu
    }
}
