//! What the owner of an [`Endpoint`](crate::endpoint::Endpoint) decides.
//!
//! These are checked values; reading them from a file, with its errors, is the program's business.

use core::net::IpAddr;
use core::net::SocketAddr;

use crate::congestion::ControllerConfig;
use crate::resequencer::ResequencerConfig;
use crate::scheduler::SchedulerConfig;
use crate::session::{PresharedKey, PrivateKey, PublicKey};
use crate::time::Duration;
use crate::wire::control::Release;
use crate::wire::dscp::Dscps;

/// A prefix of inner addresses that belong to a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix {
    /// The network address; bits beyond `length` are zero.
    pub address: IpAddr,
    /// Prefix length in bits.
    pub length: u8,
}

/// Which packets wait for which at the egress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Packets of one inner flow are delivered in order; flows do not wait for each other.
    #[default]
    Flow,
    /// One lane for the whole bond, as in 002.
    Bond,
    /// No packet waits.
    None,
}

/// How the egress finds the losses that it reports to open-loop schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossDetection {
    /// A gap counts as lost, and is given up, when every live path has passed it; the timer is the
    /// backstop.
    #[default]
    Known,
    /// The timer alone, as in 002.
    Timer,
}

/// Everything a bond is told at its start.
#[derive(Clone, PartialEq, Debug)]
pub struct BondConfig {
    /// The scheduler of this side's ingress.
    pub scheduler: SchedulerConfig,
    /// The controller of each path over which this side sends. With it the loop is closed: packets
    /// wait at the ingress for a path with room, and what is lost is sent again. `None`: the
    /// scheduler alone decides, as in 002 and 000.
    pub congestion: Option<ControllerConfig>,
    /// Ordering that this side's ingress asks of the peer's egress.
    pub order: Order,
    /// Classes of this side's packets that wait for none before them, whatever the order (002
    /// section 4.3).
    pub unordered: Dscps,
    /// Timer, late policy and bounds of this side's egress.
    pub resequencer: ResequencerConfig,
    /// How this side's egress finds losses.
    pub loss_detection: LossDetection,
    /// T_report of 002: the egress reports what arrived and what was lost this often while data
    /// arrives.
    pub report_interval: Duration,
    /// Largest inner packet this side's TUN carries, in bytes; announced to the peer.
    pub inner_mtu: u16,
    /// When a session is renewed.
    pub rekey: RekeyLimits,
    /// What this side runs, which peers that can read it are told; `None`: nobody is told.
    pub release: Option<Release>,
}

/// When keys are renewed and refused (WireGuard §6.1, with the packet limit of the spec's
/// K-clauses).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RekeyLimits {
    /// The initiator renews a session this long after it was made.
    pub rekey_after: Duration,
    /// Either side renews a session when a path key has sealed this many datagrams.
    pub rekey_after_packets: u64,
    /// A session older than this neither sends nor receives.
    pub reject_after: Duration,
}

impl Default for RekeyLimits {
    fn default() -> Self {
        Self {
            rekey_after: Duration::from_secs(120),
            rekey_after_packets: 1 << 27,
            reject_after: Duration::from_secs(180),
        }
    }
}

/// How many handshake messages a gateway works on before it asks their senders for a cookie (spec
/// H-10). Each costs four Diffie-Hellman operations.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeLimits {
    /// Messages a second, of all senders.
    pub per_second: u32,
    /// Messages at once, after a rest.
    pub burst: u32,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        Self { per_second: 100, burst: 100 }
    }
}

/// Identifies one of the owner's sockets. The driver chooses the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SocketId(pub u16);

/// One of this side's links, as its owner describes it. The peer is told all but the socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// The socket bound to the link.
    pub socket: SocketId,
    /// A name for status and logs, at most [`LinkConfig::NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// Price class; cheapest first.
    pub price: u8,
    /// Static weight for the `fixed` scheduler.
    pub weight: u16,
    /// Carries data only while no other link does.
    pub standby: bool,
    /// Each byte costs: its paths sleep while the bond is idle.
    pub metered: bool,
}

impl LinkConfig {
    /// Longest name in bytes.
    pub const NAME_BYTES_MAX: usize = 15;
}

/// A gateway that this one may bond with.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The peer's identity.
    pub public_key: PublicKey,
    /// Symmetric key mixed into the handshake; all zero for none (Noise psk2).
    pub preshared_key: PresharedKey,
    /// Where the peer listens; empty when it is the peer that initiates.
    pub endpoints: Vec<SocketAddr>,
    /// Inner sources accepted from, and inner destinations routed to, this peer.
    pub allowed_ips: Vec<Prefix>,
    /// An idle path sends a datagram this often to keep NAT bindings.
    pub keepalive: Duration,
}

/// Everything an endpoint is told at its start.
#[derive(Debug)]
pub struct EndpointConfig {
    /// This gateway's identity.
    pub private_key: PrivateKey,
    /// Wall-clock time since the Unix epoch at the owner's instant zero, for the timestamp that
    /// guards initiations against replay.
    pub wall_clock_at_zero: Duration,
    /// Links on which this gateway opens paths to peers that have an endpoint.
    pub links: Vec<LinkConfig>,
    /// How bonds behave.
    pub bond: BondConfig,
}
