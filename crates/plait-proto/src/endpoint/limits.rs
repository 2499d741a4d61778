//! How much work strangers may make: all handshakes together, and each source address.

use core::net::IpAddr;
use std::collections::BTreeMap;

use crate::config::HandshakeLimits;
use crate::session::CookieSecrets;
use crate::time::{Duration, Instant};

/// Initiations of one source address under load, as WireGuard has it.
const SOURCE_RATE: Rate = Rate { interval: Duration::from_millis(50), burst: 5 };
/// Sources that are remembered. Each has shown that it receives at its address.
const SOURCES_MAX: usize = 4096;
/// A sweep costs as much as there are sources.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// So many at once, and then one every interval.
#[derive(Clone, Copy, Debug)]
struct Rate {
    interval: Duration,
    burst: u32,
}

/// A token bucket, told by the time when it will be full again (the virtual scheduling of GCRA,
/// ITU-T I.371).
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: Instant,
}

impl Bucket {
    /// Takes a token, if there is one.
    fn take(&mut self, now: Instant, rate: Rate) -> bool {
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

fn rate(limits: HandshakeLimits) -> Rate {
    Rate { interval: Duration::from_secs(1) / limits.per_second.max(1), burst: limits.burst }
}

/// What stands before the costly part of handshakes (spec H-10, H-11).
#[derive(Debug)]
pub(super) struct Guard {
    rate: Rate,
    all: Bucket,
    sources: Sources,
    pub(super) cookies: CookieSecrets,
}

impl Guard {
    pub(super) fn new(limits: HandshakeLimits) -> Self {
        Self {
            rate: rate(limits),
            all: Bucket::default(),
            sources: Sources::default(),
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

    /// Whether one more of a source that showed its cookie is within the source's limit.
    pub(super) fn source_has_room(&mut self, now: Instant, address: IpAddr) -> bool {
        self.sources.take(now, address)
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
