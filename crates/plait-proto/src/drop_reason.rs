//! Why something from the network was dropped. A drop is counted, never an error, never a panic.

use serde::{Deserialize, Serialize};

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// Why a datagram or a packet was dropped.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum DropReason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order of the enum.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The reason's name in `status` and logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it means, in a sentence or two.
            pub fn meaning(self) -> &'static str {
                let text = match self {
                    $(Self::$variant => concat!($($doc),+),)+
                };
                text.trim_start()
            }

            /// The reason of that name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.name() == name)
            }
        }
    };
}

drop_reasons! {
    /// Shorter than its type requires.
    Truncated => "truncated",
    /// Longer than anything plait sends.
    Oversized => "oversized",
    /// Unknown type in the first byte.
    UnknownType => "unknown-type",
    /// Another version of the protocol, or nothing of plait's at all.
    OtherVersion => "other-version",
    /// mac1 does not fit: the sender does not know this gateway's public key. Or mac2 does not: its
    /// cookie is not, or no longer, that of the address it came from.
    BadMac => "bad-mac",
    /// The handshake message does not decrypt.
    BadHandshake => "bad-handshake",
    /// A valid handshake from a key that is no configured peer.
    UnknownPeer => "unknown-peer",
    /// An initiation whose timestamp is not newer than the newest accepted one, or the refusal that
    /// the peer sent for such a one.
    StaleTimestamp => "stale-timestamp",
    /// Initiations of one peer faster than the limit.
    TooManyInitiations => "too-many-initiations",
    /// Initiations of one source address faster than the limit, under load.
    SourceTooFast => "source-too-fast",
    /// More handshakes that show a cookie than this gateway works on, under load.
    HandshakeBudget => "handshake-budget",
    /// A handshake message without a cookie, under load; a cookie went back.
    CookieAsked => "cookie-asked",
    /// A cookie reply that answers no handshake message under way.
    UnexpectedCookie => "unexpected-cookie",
    /// A response that answers no initiation under way.
    UnexpectedResponse => "unexpected-response",
    /// One more copy of a response that was used; one comes over every further path.
    RepeatedResponse => "repeated-response",
    /// It belongs to a bond that the peer began when this side began one, which stays.
    CrossedBond => "crossed-bond",
    /// The receiver index names no session.
    UnknownIndex => "unknown-index",
    /// The session is too old to be used.
    ExpiredSession => "expired-session",
    /// The datagram does not authenticate.
    BadTag => "bad-tag",
    /// The packet number was seen before.
    Replayed => "replayed",
    /// The packet number lies below the replay window.
    TooOld => "too-old",
    /// An authenticated control datagram does not parse.
    BadControl => "bad-control",
    /// An acknowledgement of what was never sent.
    ForgedAck => "forged-ack",
    /// Data on a path that has not joined the bond.
    UnknownPath => "unknown-path",
    /// An inner packet that is neither IPv4 nor IPv6, or whose length does not fit.
    BadInnerPacket => "bad-inner-packet",
    /// The inner source is outside the peer's allowed_ips.
    SourceNotAllowed => "source-not-allowed",
    /// A router met congestion and marked the datagram, but the inner packet's transport does not
    /// understand marks: it is told by the loss (RFC 6040 §4.2).
    MarkedNotEct => "marked-not-ect",
    /// No peer's allowed_ips hold the inner destination.
    NoPeer => "no-peer",
    /// Multicast or broadcast of the host, such as the kernel's own router solicitations on every
    /// device with IPv6: harmless, and for no peer.
    HostMulticast => "host-multicast",
    /// The peer has no session yet, and the waiting room is full or the packet waited too long.
    NoSession => "no-session",
    /// No path can carry the packet now.
    NoUsablePath => "no-usable-path",
    /// The queue at the ingress was full, and the packet's flow held most of it.
    QueueFull => "queue-full",
    /// The queue at the ingress delayed the packet's flow too long: it is to send slower.
    QueueDelay => "queue-delay",
    /// What its path lost could not be sent again within a second: nobody waits for it any more.
    TooOldToRepair => "too-old-to-repair",
    /// The inner packet is larger than the path can carry.
    TooBigForPath => "too-big-for-path",
    /// No path carries the 1280 bytes that IPv6 asks of a link.
    NoIpv6 => "no-ipv6",
    /// The peer opened a path over a link on which this side had opened one.
    RepeatedPath => "repeated-path",
    /// A datagram of a path that was removed.
    ClosedPath => "closed-path",
    /// Path limit of the bond reached.
    TooManyPaths => "too-many-paths",
}

/// A counter per [`DropReason`].
#[derive(Clone, Debug)]
pub struct DropCounters([u64; DropReason::ALL.len()]);

impl Default for DropCounters {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()])
    }
}

impl DropCounters {
    /// Counts one drop.
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Counts several drops.
    pub fn count_many(&mut self, reason: DropReason, count: usize) {
        self.0[reason as usize] += count as u64;
    }

    /// The count of one reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons counted at least once.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|r| (*r, self.get(*r))).filter(|(_, n)| *n > 0)
    }
}
