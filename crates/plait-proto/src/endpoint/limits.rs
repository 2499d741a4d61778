//! How much work strangers may make: all handshakes together, and each source address.

use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

use crate::config::HandshakeLimits;
use crate::drop_reason::DropReason;
use crate::session::CookieSecrets;
use crate::time::{Duration, Instant};

/// Initiations of one source address under load, as WireGuard has it.
const SOURCE_RATE: Rate = Rate { interval: Duration::from_millis(50), burst: 5 };
/// Handshake messages that show a cookie, of all sources together, beyond what is worked on without
/// one: of addresses where a peer was reached before, and of all others. Each message costs half a
/// millisecond, so that no more than an eighth of a core goes into handshakes.
const KNOWN_RATE: Rate = Rate { interval: Duration::from_millis(10), burst: 50 };
const STRANGERS_RATE: Rate = Rate { interval: Duration::from_millis(20), burst: 20 };
/// Addresses where a peer was reached that are remembered.
const REACHED_MAX: usize = 8;
/// Sources that are remembered. Each has shown that it receives at its address.
const SOURCES_MAX: usize = 4096;
/// A sweep costs as much as there are sources.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// So many at once, and then one every interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) interval: Duration,
    pub(super) burst: u32,
}

/// A token bucket, told by the time when it will be full again (the virtual scheduling of GCRA,
/// ITU-T I.371).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full_at: Instant,
}

impl Bucket {
    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        let full_at = self.full_at.max(now);
        let takes = full_at.since(now) <= rate.interval * rate.burst.saturating_sub(1);
        self.full_at = if takes { full_at + rate.interval } else { full_at };
        takes
    }
}

/// What counts as one source: an IPv4 address, or the /64 that one IPv6 subscriber has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Source {
    V4([u8; 4]),
    V6([u8; 8]),
}

impl Source {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                let octets = ip.octets();
                Self::V6(core::array::from_fn(|at| octets[at]))
            }
        }
    }
}

/// A bucket per source, of a bounded number of sources.
#[derive(Debug, Default)]
struct Sources {
    buckets: BTreeMap<Source, Bucket>,
    swept_at: Instant,
}

impl Sources {
    /// Whether one more of this source is within its limit. Strangers are refused while there are
    /// too many of them.
    fn take(&mut self, now: Instant, address: IpAddr) -> bool {
        if now >= self.swept_at + SWEEP_INTERVAL {
            // A full bucket is as good as none.
            self.buckets.retain(|_, bucket| bucket.full_at > now);
            self.swept_at = now;
        }
        let source = Source::of(address);
        if self.buckets.len() >= SOURCES_MAX && !self.buckets.contains_key(&source) {
            return false;
        }
        self.buckets.entry(source).or_default().take(now, SOURCE_RATE)
    }
}

/// Where a peer answered from on its paths, the latest last.
#[derive(Debug, Default)]
pub(super) struct Reached(VecDeque<Source>);

fn rate(limits: HandshakeLimits) -> Rate {
    Rate { interval: Duration::from_secs(1) / limits.per_second.max(1), burst: limits.burst }
}

/// What stands before the costly part of handshakes (spec H-10, H-11).
#[derive(Debug)]
pub(super) struct Guard {
    rate: Rate,
    all: Bucket,
    sources: Sources,
    known: Bucket,
    strangers: Bucket,
    /// How many peers were reached at each source.
    reached: BTreeMap<Source, u32>,
    pub(super) cookies: CookieSecrets,
}

impl Guard {
    pub(super) fn new(limits: HandshakeLimits) -> Self {
        Self {
            rate: rate(limits),
            all: Bucket::default(),
            sources: Sources::default(),
            known: Bucket::default(),
            strangers: Bucket::default(),
            reached: BTreeMap::new(),
            cookies: CookieSecrets::default(),
        }
    }

    pub(super) fn set_limits(&mut self, limits: HandshakeLimits) {
        self.rate = rate(limits);
    }

    /// Whether there is room for one more message of anybody. While there is none, this side is
    /// under load.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        self.all.take(now, self.rate)
    }

    /// Whether there is room, under load, for one more of a source that showed its cookie: within
    /// the source's limit, and within that of all such sources together. Those where peers were
    /// reached before have a share of their own, which strangers cannot use up.
    pub(super) fn source_has_room(
        &mut self,
        now: Instant,
        address: IpAddr,
    ) -> Result<(), DropReason> {
        if !self.sources.take(now, address) {
            return Err(DropReason::SourceTooFast);
        }
        let has_room = if self.reached.contains_key(&Source::of(address)) {
            self.known.take(now, KNOWN_RATE)
        } else {
            self.strangers.take(now, STRANGERS_RATE)
        };
        if has_room { Ok(()) } else { Err(DropReason::HandshakeBudget) }
    }

    /// A peer answered from this address under its session.
    pub(super) fn note_reached(&mut self, peer: &mut Reached, address: IpAddr) {
        let source = Source::of(address);
        if peer.0.contains(&source) {
            return;
        }
        if peer.0.len() == REACHED_MAX
            && let Some(oldest) = peer.0.pop_front()
        {
            self.let_go(oldest);
        }
        peer.0.push_back(source);
        *self.reached.entry(source).or_default() += 1;
    }

    /// A peer is gone.
    pub(super) fn forget_reached(&mut self, peer: &Reached) {
        peer.0.iter().for_each(|source| self.let_go(*source));
    }

    fn let_go(&mut self, source: Source) {
        if let Some(peers) = self.reached.get_mut(&source) {
            *peers -= 1;
            if *peers == 0 {
                self.reached.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(times_ms: impl Iterator<Item = u64>, mut take: impl FnMut(Instant) -> bool) -> usize {
        times_ms.filter(|at| take(Instant::from_millis(*at))).count()
    }

    /// Spec H-11: 5 at once and 20 a second.
    #[test]
    fn a_burst_and_then_the_rate() {
        let mut bucket = Bucket::default();
        let mut take = |now| bucket.take(now, SOURCE_RATE);
        assert_eq!(taken([1000; 50].into_iter(), &mut take), 5);
        assert_eq!(taken([1049].into_iter(), &mut take), 0);
        assert_eq!(taken([1050; 3].into_iter(), &mut take), 1);
        assert_eq!(taken(1051..2051, &mut take), 20);
        assert_eq!(taken([9000; 50].into_iter(), &mut take), 5, "full again");
    }

    /// Spec H-10.
    #[test]
    fn all_messages_share_the_endpoints_limit() {
        let mut guard = Guard::new(HandshakeLimits { per_second: 10, burst: 3 });
        assert_eq!(taken(0..1000, |now| guard.has_room(now)), 3 + 9);
        let mut none = Guard::new(HandshakeLimits { per_second: 0, burst: 0 });
        assert_eq!(taken(0..500, |now| none.has_room(now)), 1, "no limit divides by zero");
    }

    /// Spec H-11: without a limit of all, each of thousands of sources had 20 a second.
    #[test]
    fn regression_sources_with_cookies_share_a_budget() {
        let mut guard = Guard::new(HandshakeLimits::default());
        let now = Instant::from_millis(5);
        let address = |at: u32| IpAddr::from((0x0a00_0000 + at).to_be_bytes());
        let served = |guard: &mut Guard, range: core::ops::Range<u32>| {
            range.filter(|at| guard.source_has_room(now, address(*at)).is_ok()).count()
        };
        let mut peer = Reached::default();
        guard.note_reached(&mut peer, address(5000));
        assert_eq!(served(&mut guard, 0..1000), STRANGERS_RATE.burst as usize);
        assert_eq!(guard.source_has_room(now, address(2000)), Err(DropReason::HandshakeBudget));
        assert_eq!(guard.source_has_room(now, address(5000)), Ok(()), "a peer was reached there");
        guard.forget_reached(&peer);
        assert_eq!(guard.source_has_room(now, address(5000)), Err(DropReason::HandshakeBudget));
        assert!(guard.reached.is_empty());
    }

    #[test]
    fn a_peer_makes_only_so_many_addresses_known() {
        let mut guard = Guard::new(HandshakeLimits::default());
        let mut peers = [Reached::default(), Reached::default()];
        for peer in &mut peers {
            for at in 0..100_u32 {
                guard.note_reached(peer, IpAddr::from((0x0a00_0000 + at).to_be_bytes()));
            }
        }
        assert_eq!(guard.reached.len(), REACHED_MAX);
        guard.forget_reached(&peers[0]);
        assert_eq!(guard.reached.len(), REACHED_MAX, "the other one was reached there too");
    }

    /// Spec H-11.
    #[test]
    fn ipv6_sources_are_counted_by_64_bits() {
        let now = Instant::from_millis(5);
        let mut sources = Sources::default();
        for at in 0..5 {
            let address = IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, at]);
            assert!(sources.take(now, address));
        }
        assert!(!sources.take(now, IpAddr::from([0x2001, 0xdb8, 0, 1, 9, 9, 9, 9])));
        assert!(sources.take(now, IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 0])));
        for port_less in 0..5_u8 {
            assert!(sources.take(now, IpAddr::from([192, 0, 2, 1])), "{port_less}");
        }
        assert!(!sources.take(now, IpAddr::from([192, 0, 2, 1])));
        assert!(!sources.take(now, "::ffff:192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn the_table_of_sources_is_bounded_and_forgets() {
        let mut sources = Sources::default();
        let now = Instant::from_millis(5);
        let address = |at: u32| IpAddr::from((0x0a00_0000 + at).to_be_bytes());
        let many = SOURCES_MAX as u32 + 100;
        assert_eq!((0..many).filter(|at| sources.take(now, address(*at))).count(), SOURCES_MAX);
        assert_eq!(sources.buckets.len(), SOURCES_MAX);
        assert!(sources.take(now, address(3)), "who is known stays known");
        assert!(sources.take(now + SWEEP_INTERVAL, address(many)), "there is room again");
        assert_eq!(sources.buckets.len(), 1);
    }
}
