//! The network of the search: links with a fixed delay, on which single datagrams can be dropped,
//! delayed or overtaken.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use plait_proto::time::{Duration, Instant};
use plait_proto::wire::Kind;
use plait_proto::wire::ecn::Ecn;

/// Where the provider is.
pub(super) const PROVIDER_AT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7788);
/// The first link's one-way delay, and the extra delay of each further link.
const DELAY: Duration = Duration::from_millis(10);

/// A process of the search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Has the links, and initiates.
    Customer,
    /// Has one address, and responds.
    Provider,
    /// Has the customer's key, and another address.
    Clone,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Customer => "customer",
            Self::Provider => "provider",
            Self::Clone => "clone",
        })
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub(super) at: Instant,
    /// Of two due at the same time, the one with the lower number comes first.
    pub(super) count: u64,
    pub(super) from: Side,
    pub(super) to: Side,
    /// The address that the provider sees as source, or sends to.
    pub(super) outside: SocketAddr,
    pub(super) link: usize,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

impl Flying {
    pub(super) fn kind(&self) -> Option<Kind> {
        self.bytes.first().and_then(|first| Kind::of(*first))
    }

    /// The receiver's index; for an initiation, the sender's.
    pub(super) fn index(&self) -> u32 {
        let index = self.bytes.get(1..5).and_then(|bytes| bytes.try_into().ok());
        index.map_or(0, u32::from_be_bytes) >> 8
    }
}

/// Datagrams in flight, unordered.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    pub(super) flying: Vec<Flying>,
    /// Nothing arrives at the customer, or at the provider.
    pub(super) cut: [bool; 2],
    /// The customer's NAT port, counted from the first.
    pub(super) moved: u16,
    count: u64,
    /// Sessions of which something has arrived at a side.
    used: Vec<(Side, u32)>,
}

impl Network {
    /// The outer address of a side's link.
    pub(super) fn outside(&self, side: Side, link: usize) -> SocketAddr {
        let link = link as u8;
        match side {
            Side::Customer => ([10, 1 + link, 0, 1], 1000 + self.moved).into(),
            Side::Clone => ([10, 1 + link, 0, 77], 1000).into(),
            Side::Provider => PROVIDER_AT,
        }
    }

    /// The side and link with this outer address.
    fn behind(&self, address: SocketAddr, links: usize) -> Option<(Side, usize)> {
        let all = (0..links).flat_map(|link| [(Side::Customer, link), (Side::Clone, link)]);
        all.into_iter().find(|(side, link)| self.outside(*side, *link) == address)
    }

    /// Takes a datagram from a side's socket. A datagram to an address that nobody has is lost.
    #[expect(clippy::too_many_arguments, reason = "a datagram, and where and when it is sent")]
    pub(super) fn send(
        &mut self,
        now: Instant,
        from: Side,
        socket: usize,
        remote: SocketAddr,
        ecn: Ecn,
        bytes: &[u8],
        links: usize,
    ) {
        let (to, link, outside) = if from == Side::Provider {
            let Some((side, link)) = self.behind(remote, links) else { return };
            (side, link, remote)
        } else {
            (Side::Provider, socket, self.outside(from, socket))
        };
        if self.is_cut(to, from) {
            return;
        }
        self.count += 1;
        let at = now + DELAY * (1 + 2 * link as u32);
        let (count, bytes) = (self.count, bytes.to_vec());
        self.flying.push(Flying { at, count, from, to, outside, link, ecn, bytes });
    }

    /// The clone's link is its own.
    fn is_cut(&self, to: Side, from: Side) -> bool {
        to != Side::Clone && from != Side::Clone && self.cut[to as usize]
    }

    /// Index of the next datagram to arrive that satisfies `that`.
    pub(super) fn first(&self, that: impl Fn(&Flying) -> bool) -> Option<usize> {
        let found = self.flying.iter().enumerate().filter(|(_, flying)| that(flying));
        found.min_by_key(|(_, flying)| (flying.at, flying.count)).map(|(place, _)| place)
    }

    /// When the next one arrives.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.flying.iter().map(|flying| flying.at).min()
    }

    /// Whether it may change a state: a handshake message, or the first datagram of a session.
    pub(super) fn is_milestone(&self, flying: &Flying) -> bool {
        match flying.kind() {
            Some(Kind::Data | Kind::Control) => !self.used.contains(&(flying.to, flying.index())),
            _ => true,
        }
    }

    /// The second milestone in flight, if it goes to another side than the first.
    pub(super) fn overtaking(&self) -> Option<usize> {
        let first = self.first(|flying| self.is_milestone(flying))?;
        let (at, to) = (self.flying[first].at, self.flying[first].to);
        let soon = at + DELAY * 5;
        self.first(|flying| flying.to != to && flying.at <= soon && self.is_milestone(flying))
    }

    /// Takes out an arriving datagram; says whether it is a milestone.
    pub(super) fn take(&mut self, place: usize) -> (Flying, bool) {
        let flying = self.flying.swap_remove(place);
        let is_milestone = self.is_milestone(&flying);
        if is_milestone && matches!(flying.kind(), Some(Kind::Data | Kind::Control)) {
            self.used.push((flying.to, flying.index()));
        }
        (flying, is_milestone)
    }

    /// Adds a copy of a datagram that arrives this much later.
    pub(super) fn copy(&mut self, place: usize, later: Duration) {
        self.count += 1;
        let mut copy = self.flying[place].clone();
        copy.at += later;
        copy.count = self.count;
        self.flying.push(copy);
    }
}
