//! What a proxy does, as its owner wants it. Times and bounds have the defaults that `Limits`
//! gives.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::IpNet;

use crate::users::Users;

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients come in; at least one.
    pub listeners: Vec<Listener>,
    /// Who may come in.
    pub clients: Clients,
    /// Where they may go.
    pub reach: Reach,
    /// The next proxy; without one, connections go to the servers themselves.
    pub upstream: Option<Upstream>,
    /// Whether connections to servers offer MPTCP; one that does not speak it gets TCP.
    pub multipath_out: bool,
    /// Congestion control of what the proxy sends, by the kernel's name; `None` takes the system's.
    pub congestion: Option<String>,
    /// Names for the accesses that clients' subflows come over.
    pub accesses: Vec<Access>,
    /// Times and bounds.
    pub limits: Limits,
}

/// How clients say where they want to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WayIn {
    /// HTTP: CONNECT, and requests with a whole URL.
    Http,
    /// SOCKS 5 (RFC 1928).
    Socks,
    /// The 0-RTT TCP Convert Protocol (RFC 8803).
    Convert,
    /// They do not: the kernel redirects their connections here (nft `redirect`).
    Redirect,
    /// They do not: the kernel hands their connections over as they are (nft `tproxy`).
    Tproxy,
}

impl WayIn {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Http, Self::Socks, Self::Convert, Self::Redirect, Self::Tproxy];

    /// Its name in configuration, status and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socks => "socks",
            Self::Convert => "convert",
            Self::Redirect => "redirect",
            Self::Tproxy => "tproxy",
        }
    }

    /// Whether the kernel leads connections here without the client's knowledge.
    pub const fn is_transparent(self) -> bool {
        matches!(self, Self::Redirect | Self::Tproxy)
    }
}

/// A place where clients come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// Address and port.
    pub address: SocketAddr,
    /// How they say where they want to go.
    pub way: WayIn,
    /// Whether MPTCP is accepted; plain TCP always is.
    pub multipath: bool,
}

/// Who may use the proxy: whoever comes from one of the networks, or, where there are users, proves
/// to be one of them as well.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// Networks; an empty list lets nobody in.
    pub allow: Vec<IpNet>,
    /// Names and passwords; `None` asks for none. Transparent ways in cannot ask.
    pub users: Option<Users>,
}

/// Where clients may go.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Networks that are never connected to, unless `allow` holds them, too.
    pub deny: Vec<IpNet>,
    /// Exceptions.
    pub allow: Vec<IpNet>,
    /// Ports; an empty list means all.
    pub ports: Vec<RangeInclusive<u16>>,
}

/// The next proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upstream {
    /// Its address.
    pub address: SocketAddr,
    /// How it is told where to go.
    pub way: WayOut,
    /// Whether connections to it offer MPTCP.
    pub multipath: bool,
    /// Name and password, where it wants them.
    pub user: Option<(String, String)>,
}

/// How the next proxy is told where to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WayOut {
    /// The 0-RTT TCP Convert Protocol (RFC 8803).
    Convert,
    /// HTTP CONNECT.
    Http,
    /// SOCKS 5 (RFC 1928).
    Socks,
}

impl WayOut {
    /// All of them, the quickest first.
    pub const ALL: [Self; 3] = [Self::Convert, Self::Http, Self::Socks];

    /// Its name in configuration, status and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Convert => "convert",
            Self::Http => "http",
            Self::Socks => "socks",
        }
    }
}

/// An access that subflows come over, told by the addresses that their ends have on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Name for status and metrics.
    pub name: String,
    /// Networks of either end's addresses.
    pub networks: Vec<IpNet>,
}

impl Access {
    /// Whether a subflow between these addresses uses it.
    pub(crate) fn carries(&self, local: IpAddr, remote: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&remote) || network.contains(&local))
    }
}

/// Times and bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections of all clients together.
    pub connections_max: usize,
    /// Connections of one client's address.
    pub connections_per_client_max: usize,
    /// From a connection's start to the end of its request.
    pub request_timeout: Duration,
    /// For a server, or the next proxy, to accept a connection.
    pub connect_timeout: Duration,
    /// A connection without a byte in either direction for so long ends.
    pub idle_timeout: Duration,
    /// How long open connections may go on once the proxy was told to end.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            connections_per_client_max: 2_000,
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(15),
            // RFC 5382, REQ-5: an established connection is kept for two hours and four minutes.
            idle_timeout: Duration::from_secs(7440),
            drain: Duration::from_secs(30),
        }
    }
}
