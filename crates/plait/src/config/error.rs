//! Errors of a configuration beyond the form of its options, and what to do about them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use plait_toml::Problem;
use plait_toml::value::Cidr;

/// The configuration cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the configuration: {0}")]
pub(crate) struct Unreadable(pub(crate) io::Error);

impl Unreadable {
    fn help(&self) -> String {
        match self.0.kind() {
            io::ErrorKind::NotFound => {
                "give the path of an existing file; docs/guide/quickstart.md has one to start from"
            }
            _ => "make the file readable for the user who runs plait",
        }
        .into()
    }
}

macro_rules! into_problem {
    ($($type:ty,)+) => {
        $(impl From<$type> for Problem {
            fn from(problem: $type) -> Self {
                Self::new(problem.to_string(), problem.help())
            }
        })+
    };
}

into_problem! {
    Unreadable,
    KeyProblem,
    Conflict,
}

/// The name of an endpoint that does not resolve now.
#[derive(Debug, thiserror::Error)]
#[error("cannot resolve \"{name}\": {cause}")]
pub(crate) struct Unresolved {
    pub(crate) name: String,
    pub(crate) cause: io::Error,
}

impl Unresolved {
    /// The remedy.
    pub(crate) const HELP: &str = "check the name and this machine's DNS, or write the IP address";
}

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyProblem {
    #[error("not a key: {0}")]
    Malformed(Malformed),
    #[error("no private key has this public key: there is no secret to be agreed with it")]
    OfSmallOrder,
    #[error("cannot read the key file {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "others than its owner may read or write the key file {} (mode {mode:o})",
        path.display()
    )]
    Mode { path: PathBuf, mode: u32 },
    #[error(
        "the key file {} belongs to user {uid}, who can read it and replace it",
        path.display()
    )]
    Owner { path: PathBuf, uid: u32 },
    #[error("the key file {} does not hold a key: {cause}", path.display())]
    FileContent { path: PathBuf, cause: Malformed },
}

impl KeyProblem {
    fn help(&self) -> String {
        match self {
            Self::OfSmallOrder => {
                "write the key that the other gateway's `plait pubkey` prints".into()
            }
            Self::Malformed(_) => {
                "a key is 32 bytes in base64: 44 characters ending in `=`, as `plait pubkey` prints"
                    .into()
            }
            Self::File { path, cause } if cause.kind() == io::ErrorKind::NotFound => {
                format!("make one: (umask 077; plait keygen > {})", path.display())
            }
            Self::File { .. } => "run plait as the file's owner, or as root".into(),
            Self::Mode { path, .. } => format!(
                "chmod 600 {}; who can read it by now knows the key (`allow_open_key_files = true` \
                 under [gateway] lets it pass)",
                path.display()
            ),
            Self::Owner { path, .. } => format!(
                "chown root {}, or name its owner as `user` under [gateway]",
                path.display()
            ),
            Self::FileContent { path, .. } => {
                format!("the file holds one line from `plait keygen`; look at {}", path.display())
            }
        }
    }
}

/// Why some text is not a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("empty")]
    Empty,
    #[error("not base64")]
    NotBase64,
    #[error("{0} bytes instead of 32")]
    Length(usize),
}

/// Options that contradict each other.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Conflict {
    #[error("{prefix} belongs to the peer of line {other_line} too")]
    SamePrefix { prefix: String, other_line: usize },
    #[error("{address} is there twice")]
    SameAddress { address: IpAddr },
    #[error("this is the gateway's own key")]
    OwnKey,
    #[error("the peer of line {other_line} has the same key")]
    SamePeer { other_line: usize },
    #[error("the path of line {other_line} is called \"{name}\" too")]
    SamePathName { name: String, other_line: usize },
    #[error("no way to send: neither listen_port nor a [[path]]")]
    NoSocket,
    #[error("the peer has no endpoint and the gateway does not listen")]
    NobodyCalls,
    #[error("{mtu} bytes are too few for IPv6 inside the bond")]
    MtuTooSmallForIpv6 { mtu: u16 },
    #[error("without `routes` nothing of the host's traffic is led into the bond by plait")]
    BypassWithoutRoutes,
    #[error("no peer has 0.0.0.0/0 or ::/0: there is nothing to lead past the bond")]
    NothingToBypass,
    #[error("{address} is not behind the bond: no peer has it in `allowed_ips`")]
    ForwardToNobody { address: IpAddr },
    #[error("UDP port {port} is plait's own: peers call there")]
    ForwardsOwnPort { port: u16 },
    #[error("the forward of line {other_line} takes some of it already")]
    ForwardedTwice { other_line: usize },
    #[error("the path of line {other_line} takes the same interface")]
    LanIsLink { other_line: usize },
    #[error("{name} is not an interface into a network of hosts")]
    LanIsNone { name: String },
    #[error("the network of line {other_line} has the same interface")]
    SameLan { other_line: usize },
    #[error("{own} overlaps with {other}")]
    LanOverlaps { own: Cidr, other: Cidr },
    #[error("it takes the bond's own datagrams to {endpoint}")]
    BondBeside { endpoint: SocketAddr },
    #[error("no peer to bond with")]
    NoPeer,
    #[error("more than {limit} of them")]
    TooMany { limit: usize },
}

impl Conflict {
    fn help(&self) -> String {
        match self {
            Self::SamePrefix { .. } => {
                "give the prefix to one peer, or split it into longer prefixes".into()
            }
            Self::SameAddress { .. } => "write each address once".into(),
            Self::OwnKey => "put the other gateway's public key here".into(),
            Self::SamePeer { .. } => {
                "merge the two [[peer]] sections; a peer may have several endpoints".into()
            }
            Self::SamePathName { .. } => "give each path its own `name`".into(),
            Self::NoSocket => {
                "add a [[path]] per link to call a peer, or `listen_port = 7788` to be called"
                    .into()
            }
            Self::NobodyCalls => {
                "add `endpoint = \"192.0.2.1:7788\"` to the peer, or `listen_port = 7788` to \
                 [gateway]"
                    .into()
            }
            Self::MtuTooSmallForIpv6 { .. } => {
                "set mtu to 1280 or more, or remove the IPv6 addresses and prefixes".into()
            }
            Self::BypassWithoutRoutes => {
                "add `routes = true`, or remove `when_down = \"bypass\"`".into()
            }
            Self::NothingToBypass => {
                "add `0.0.0.0/0` to the `allowed_ips` of a peer, or remove `when_down = \
                 \"bypass\"`"
                    .into()
            }
            Self::ForwardToNobody { address } => {
                format!("add it, or its network, to the peer's: `allowed_ips = [\"{address}\"]`")
            }
            Self::ForwardsOwnPort { .. } => {
                "leave it out of `ports`, or choose another `listen_port`".into()
            }
            Self::ForwardedTwice { .. } => {
                "keep one of them, or give each its own `ports`, `protocol` or `address`".into()
            }
            Self::LanIsLink { .. } => {
                "name the interface to the LAN here, and in [[path]] only those to providers".into()
            }
            Self::LanIsNone { .. } => "name the interface to the LAN, as in \"eth1\"".into(),
            Self::SameLan { .. } => "write all its `prefixes` in one [[lan]]".into(),
            Self::LanOverlaps { .. } => {
                "give each network, and the bond's inner addresses, a prefix of their own".into()
            }
            Self::BondBeside { endpoint } => {
                format!(
                    "leave {} out of `destinations`, or add `protocol = \"tcp\"` or other `ports`",
                    endpoint.ip()
                )
            }
            Self::NoPeer => "add a [[peer]] with the other gateway's `public_key`".into(),
            Self::TooMany { limit } => format!("keep at most {limit}"),
        }
    }
}
