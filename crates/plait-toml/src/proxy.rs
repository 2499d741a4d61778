//! Reads and writes a proxy's file: its sections `[proxy]`, `[[listen]]`, `[upstream]`,
//! `[[access]]`, `[endpoints]` and `[rules]`. `[[path]]` is the gateway's
//! ([`crate::gateway::PATH`]).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::common;
use crate::form::{Flag, List, Maybe, Parsed, Time, Whole, Words, text};
use crate::gateway::{PATH, Path};
use crate::option::{self, Field, Only, Options};
use crate::problem::Problem;
use crate::value::{Cidr, names};

/// A whole file, to be written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProxyFile {
    /// `[proxy]`.
    pub proxy: Proxy,
    /// Each `[[listen]]`.
    pub listeners: Vec<Listen>,
    /// `[upstream]`.
    pub upstream: Option<Upstream>,
    /// Each `[[access]]`.
    pub accesses: Vec<Access>,
    /// Each `[[path]]`.
    pub paths: Vec<Path>,
}

impl ProxyFile {
    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        option::write(&mut out, "[proxy]", PROXY, &self.proxy);
        for listen in &self.listeners {
            option::write(&mut out, "[[listen]]", LISTEN, listen);
        }
        if let Some(upstream) = &self.upstream {
            option::write(&mut out, "[upstream]", UPSTREAM, upstream);
        }
        for access in &self.accesses {
            option::write(&mut out, "[[access]]", ACCESS, access);
        }
        for path in &self.paths {
            option::write(&mut out, "[[path]]", PATH, path);
        }
        out
    }
}

/// `[proxy]`: the proxy itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Proxy {
    /// Name of its files, for status and logs.
    pub name: String,
    /// Networks whose hosts may use it.
    pub allow: Vec<Cidr>,
    /// Names and passwords.
    pub users_file: Option<String>,
    /// Networks that are never connected to.
    pub deny_to: Vec<Cidr>,
    /// Exceptions.
    pub allow_to: Vec<Cidr>,
    /// Ports that are connected to.
    pub ports_to: Vec<Ports>,
    /// Whether connections to servers offer MPTCP.
    pub mptcp: bool,
    /// Congestion control of what the proxy sends.
    pub congestion: Option<String>,
    /// Connections of all clients.
    pub connections_max: u32,
    /// Connections of one client.
    pub connections_per_client_max: u32,
    /// From a connection's start to the end of its request.
    pub request_timeout: Duration,
    /// For a server to accept a connection.
    pub connect_timeout: Duration,
    /// Without a byte for so long a connection ends.
    pub idle_timeout: Duration,
    /// How long open connections may go on at the end.
    pub drain: Duration,
    /// The user that the proxy becomes.
    pub user: Option<String>,
    /// Whether the daemon enters a sandbox without access to what it does not need.
    pub sandbox: bool,
    /// Whether other users may be able to read files with passwords.
    pub allow_open_key_files: bool,
    /// Unix socket that answers `plait status`.
    pub control_socket: Option<String>,
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            name: "proxy0".into(),
            allow: Vec::new(),
            users_file: None,
            deny_to: Vec::new(),
            allow_to: Vec::new(),
            ports_to: Vec::new(),
            mptcp: true,
            congestion: None,
            connections_max: 20_000,
            connections_per_client_max: 2_000,
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(7440),
            drain: Duration::from_secs(30),
            user: None,
            sandbox: true,
            allow_open_key_files: false,
            control_socket: None,
        }
    }
}

const NAME: Field<Proxy, Parsed<String>> = Field::new(
    "name",
    "name of the proxy in status, and of its files",
    Parsed { told: names::NAME_RANGE, read: names::device },
    |proxy: &mut Proxy| &mut proxy.name,
);
const CONTROL_SOCKET: Field<Proxy, Maybe<Parsed<String>>> =
    common::control_socket(|proxy: &mut Proxy| &mut proxy.control_socket)
        .absent("`/run/plait/NAME.sock`");

/// The options that determine the control socket.
pub const SOCKET: Options<Proxy> = &[&NAME, &CONTROL_SOCKET];

const NETWORKS: List<Cidr> = List { told: "text or list", read: Cidr::prefix };

/// The options of `[proxy]`.
pub const PROXY: Options<Proxy> = &[
    &Field::new(
        "allow",
        "networks whose hosts may use the proxy; with `users_file` they must prove who they are, \
         too",
        NETWORKS,
        |proxy: &mut Proxy| &mut proxy.allow,
    )
    .absent("nobody may, and the proxy does not start"),
    &Field::new(
        "users_file",
        "file with a line `name:password` for each user; for the ways `http` and `socks`",
        Maybe(text("file")),
        |proxy: &mut Proxy| &mut proxy.users_file,
    )
    .absent("nobody is asked"),
    &Field::new(
        "deny_to",
        "networks that the proxy does not connect to; it never connects to loopback, link-local \
         and multicast addresses",
        NETWORKS,
        |proxy: &mut Proxy| &mut proxy.deny_to,
    ),
    &Field::new(
        "allow_to",
        "exceptions from `deny_to`, and from the addresses that the proxy never connects to",
        NETWORKS,
        |proxy: &mut Proxy| &mut proxy.allow_to,
    ),
    &Field::new(
        "ports_to",
        "ports that the proxy connects to, as in [\"443\", \"8000-8100\"]",
        List { told: "text or list", read: Ports::parse },
        |proxy: &mut Proxy| &mut proxy.ports_to,
    )
    .absent("all"),
    &Field::new(
        "mptcp",
        "offer MPTCP to servers; one that does not speak it gets TCP",
        Flag,
        |proxy: &mut Proxy| &mut proxy.mptcp,
    ),
    &Field::new(
        "congestion",
        "congestion control of what the proxy sends, by the kernel's name: `cubic`, `bbr`, …; \
         `bbr` gets far less out of unequal links than `cubic`",
        Maybe(text("name")),
        |proxy: &mut Proxy| &mut proxy.congestion,
    )
    .absent("the system's"),
    &Field::new(
        "connections_max",
        "open connections of all clients together",
        Whole::new(1, 1_000_000, "connections"),
        |proxy: &mut Proxy| &mut proxy.connections_max,
    ),
    &Field::new(
        "connections_per_client_max",
        "open connections of one client's address",
        Whole::new(1, 1_000_000, "connections"),
        |proxy: &mut Proxy| &mut proxy.connections_per_client_max,
    ),
    &Field::new(
        "request_timeout_s",
        "from a connection's start to the end of its request",
        Time::seconds(1, 600),
        |proxy: &mut Proxy| &mut proxy.request_timeout,
    ),
    &Field::new(
        "connect_timeout_s",
        "for a server, or the next proxy, to accept a connection",
        Time::seconds(1, 600),
        |proxy: &mut Proxy| &mut proxy.connect_timeout,
    ),
    &Field::new(
        "idle_timeout_s",
        "a connection without a byte in either direction for so long ends",
        Time::seconds(10, 604_800),
        |proxy: &mut Proxy| &mut proxy.idle_timeout,
    ),
    &Field::new(
        "drain_s",
        "how long open connections may go on once the proxy was told to end",
        Time::seconds(0, 86_400),
        |proxy: &mut Proxy| &mut proxy.drain,
    ),
    &NAME,
    &common::user(|proxy: &mut Proxy| &mut proxy.user),
    &common::sandbox(|proxy: &mut Proxy| &mut proxy.sandbox),
    &Field::new(
        "allow_open_key_files",
        "accept files with passwords that other users may read or write",
        Flag,
        |proxy: &mut Proxy| &mut proxy.allow_open_key_files,
    ),
    &CONTROL_SOCKET,
];

/// How clients say where they want to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WayIn {
    /// HTTP: CONNECT, and requests with a whole URL.
    #[default]
    Http,
    /// SOCKS 5.
    Socks,
    /// The 0-RTT TCP Convert Protocol.
    Convert,
    /// The kernel redirects their connections.
    Redirect,
    /// The kernel hands their connections over.
    Tproxy,
}

/// `[[listen]]`: a place where clients come in.
#[derive(Clone, PartialEq, Debug)]
pub struct Listen {
    /// Address and port.
    pub address: SocketAddr,
    /// How clients say where they want to go.
    pub way: WayIn,
    /// Whether MPTCP is accepted beside TCP; `None` when the section does not say.
    pub mptcp: Option<bool>,
}

const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const SOCKET_ADDRESS: Parsed<SocketAddr> = common::SOCKET_ADDRESS;

impl Default for Listen {
    fn default() -> Self {
        Self { address: NO_ADDRESS, way: WayIn::default(), mptcp: None }
    }
}

/// The options of `[[listen]]`.
pub const LISTEN: Options<Listen> = &[
    &Field::new("address", "where to listen", SOCKET_ADDRESS, |listen: &mut Listen| {
        &mut listen.address
    })
    .required("address = \"192.168.1.1:3128\""),
    &Field::new(
        "way",
        "how clients say where they want to go: HTTP, SOCKS 5, the 0-RTT TCP Convert Protocol, or \
         not at all, where the kernel leads them here",
        Words(&[
            ("http", WayIn::Http),
            ("socks", WayIn::Socks),
            ("convert", WayIn::Convert),
            ("redirect", WayIn::Redirect),
            ("tproxy", WayIn::Tproxy),
        ]),
        |listen: &mut Listen| &mut listen.way,
    ),
    &Field::new("mptcp", "accept MPTCP beside TCP", Maybe(Flag), |listen: &mut Listen| {
        &mut listen.mptcp
    })
    .absent("true; false for `redirect` and `tproxy`"),
];

/// How the next proxy is told where to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WayOut {
    /// The 0-RTT TCP Convert Protocol.
    #[default]
    Convert,
    /// HTTP CONNECT.
    Http,
    /// SOCKS 5.
    Socks,
}

/// `[upstream]`: the next proxy.
#[derive(Clone, PartialEq, Debug)]
pub struct Upstream {
    /// Its address.
    pub address: SocketAddr,
    /// How it is told where to go.
    pub way: WayOut,
    /// Whether connections to it offer MPTCP.
    pub mptcp: bool,
    /// The name that it knows.
    pub user: Option<String>,
    /// The file of the password to it.
    pub password_file: Option<String>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            address: NO_ADDRESS,
            way: WayOut::default(),
            mptcp: true,
            user: None,
            password_file: None,
        }
    }
}

/// The options of `[upstream]`.
pub const UPSTREAM: Options<Upstream> = &[
    &Field::new(
        "address",
        "where the next proxy listens",
        SOCKET_ADDRESS,
        |next: &mut Upstream| &mut next.address,
    )
    .required("address = \"203.0.113.1:5124\""),
    &Field::new(
        "way",
        "how it is told where to go",
        Words(&[("convert", WayOut::Convert), ("http", WayOut::Http), ("socks", WayOut::Socks)]),
        |next: &mut Upstream| &mut next.way,
    ),
    &Field::new("mptcp", "offer it MPTCP", Flag, |next: &mut Upstream| &mut next.mptcp),
    &Field::new("user", "the name that it knows", Maybe(text("text")), |next: &mut Upstream| {
        &mut next.user
    }),
    &Field::new(
        "password_file",
        "file of the password that belongs to `user`",
        Maybe(text("file")),
        |next: &mut Upstream| &mut next.password_file,
    ),
];

/// `[[access]]`: an access whose share of the bytes is told.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Access {
    /// Name for status and metrics.
    pub name: String,
    /// Networks that one end of its subflows belongs to.
    pub networks: Vec<Cidr>,
}

/// The options of `[[access]]`.
pub const ACCESS: Options<Access> = &[
    &Field::new(
        "name",
        "name in status and metrics",
        Parsed { told: names::LABEL_RANGE, read: names::label },
        |access: &mut Access| &mut access.name,
    )
    .required("name = \"lte\""),
    &Field::new(
        "networks",
        "what comes from, or leaves by, an address in one of these came over this access",
        NETWORKS,
        |access: &mut Access| &mut access.networks,
    ),
];

/// What this host is to MPTCP connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// It opens them.
    #[default]
    Client,
    /// Others open them.
    Server,
    /// Others open them, and are told of its links.
    Announcer,
}

/// `[endpoints]`: what the kernel's MPTCP makes of the links.
#[derive(Clone, PartialEq, Debug)]
pub struct Endpoints {
    /// What this host is to MPTCP connections.
    pub role: Role,
    /// First of the routing tables and priorities.
    pub table: u32,
    /// File with what is to be undone after a crash.
    pub state_file: Option<String>,
}

/// The first routing table of `[endpoints]` unless the section says otherwise: clear of those of
/// steering nodes (5200 to 5209) and of their clients (5210 to 5213).
pub const ENDPOINTS_TABLE: u32 = 5300;

impl Default for Endpoints {
    fn default() -> Self {
        Self { role: Role::default(), table: ENDPOINTS_TABLE, state_file: None }
    }
}

/// The options of `[endpoints]`.
pub const ENDPOINTS: Options<Endpoints> = &[
    &Field::new(
        "role",
        "`client` opens connections, and a subflow over each link; to `server` they are opened; \
         `announcer` tells clients of its links, too",
        Words(&[
            ("client", Role::Client),
            ("server", Role::Server),
            ("announcer", Role::Announcer),
        ]),
        |endpoints: &mut Endpoints| &mut endpoints.role,
    ),
    &Field::new(
        "table",
        "first of the routing tables, of which each link has one, and of the rules' priorities",
        Whole::new(256, 32_000, ""),
        |endpoints: &mut Endpoints| &mut endpoints.table,
    ),
    &common::state_file("what is to be undone after a crash", |endpoints: &mut Endpoints| {
        &mut endpoints.state_file
    })
    .absent("`/var/lib/plait/NAME-endpoints.json`"),
];

/// `[rules]`: which connections the kernel leads to the listeners `redirect` and `tproxy`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rules {
    /// Where clients' packets come in.
    pub interfaces: Vec<String>,
    /// Ports of servers.
    pub ports: Vec<Ports>,
    /// Servers that are reached without the proxy.
    pub exempt: Vec<Cidr>,
    /// Whether this host's own programs are led in as well.
    pub own_programs: bool,
    /// The mark of programs that are not.
    pub own_mark: Option<u32>,
}

/// The options of `[rules]`.
pub const RULES: Options<Rules> = &[
    &Field::new(
        "interfaces",
        "interfaces that clients' packets come in by",
        List { told: "text or list", read: names::interface },
        |rules: &mut Rules| &mut rules.interfaces,
    )
    .absent("all"),
    &Field::new(
        "ports",
        "ports of servers, as in [\"80\", \"443\", \"8000-8100\"]",
        List { told: "text or list", read: Ports::parse },
        |rules: &mut Rules| &mut rules.ports,
    )
    .absent("all"),
    &Field::new(
        "exempt",
        "servers that are reached without the proxy",
        NETWORKS,
        |rules: &mut Rules| &mut rules.exempt,
    ),
    &Field::new(
        "own_programs",
        "lead this host's own programs to `redirect`, too, but for the proxy itself: it is told by \
         its `user`, or by `own_mark`",
        Flag,
        |rules: &mut Rules| &mut rules.own_programs,
    ),
    &Field::new(
        "own_mark",
        "mark of sockets (SO_MARK) that `own_programs` leaves alone, for a proxy without a `user`",
        Maybe(Whole::new(1, 0xffff_ffff, "")),
        |rules: &mut Rules| &mut rules.own_mark,
    )
    .only(Only {
        decided_by: "own_programs",
        against: |rules| (!rules.own_programs).then(|| "`own_programs = false`".to_owned()),
        belongs_to: "rules for own programs",
    }),
];

/// A port, or a range of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ports(pub RangeInclusive<u16>);

impl Ports {
    /// Reads `443` or `8000-8100`.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        let range = match text.split_once('-') {
            Some((low, high)) => port(low).zip(port(high)),
            None => port(text).map(|port| (port, port)),
        };
        range.filter(|(low, high)| low <= high).map(|(low, high)| Self(low..=high)).ok_or_else(
            || {
                let help = "write it as in \"443\" or \"8000-8100\", from 1 to 65535";
                Problem::new(format!("\"{text}\" is no port and no range of ports"), help)
            },
        )
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.0.start(), self.0.end());
        if low == high { low.fmt(f) } else { write!(f, "{low}-{high}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, PROXY, Proxy::default());
            round_trip(seed, LISTEN, Listen::default());
            round_trip(seed, UPSTREAM, Upstream::default());
            round_trip(seed, ACCESS, Access::default());
            round_trip(seed, ENDPOINTS, Endpoints::default());
            round_trip(seed, RULES, Rules::default());
        }
    }

    #[test]
    fn ports_are_read_and_written() {
        let read = |text| Ports::parse(text).map(|ports| ports.to_string()).ok();
        assert_eq!(read("443").as_deref(), Some("443"));
        assert_eq!(read("8000-8100").as_deref(), Some("8000-8100"));
        for wrong in ["0", "65536", "x", "9-8", "1-", "-1", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
