//! Reads and writes a gateway's file: its sections `[gateway]`, `[[path]]` and `[[peer]]`. The
//! sections for how bonds behave are in [`crate::tuning`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::common;
use crate::form::{Flag, List, Maybe, Parsed, Time, Whole, WholeList, Words, text};
use crate::option::{self, Field, Options};
use crate::problem::Problem;
use crate::section::Section;
use crate::tuning::Tuning;
use crate::value::amount::Amount;
use crate::value::{Cidr, Endpoint, Identity, Nat, NatForm, WhenDown, names};

/// A whole file, to be written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GatewayFile {
    /// `[gateway]`.
    pub gateway: Gateway,
    /// Each `[[path]]`.
    pub paths: Vec<Path>,
    /// Each `[[peer]]`.
    pub peers: Vec<Peer>,
    /// How bonds behave; `None` writes none of its sections.
    pub tuning: Option<Tuning>,
}

impl GatewayFile {
    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        option::write(&mut out, "[gateway]", GATEWAY, &self.gateway);
        for path in &self.paths {
            option::write(&mut out, "[[path]]", PATH, path);
        }
        for peer in &self.peers {
            option::write(&mut out, "[[peer]]", PEER, peer);
        }
        if let Some(tuning) = &self.tuning {
            tuning.write(&mut out, "");
        }
        out
    }
}

/// `[gateway]`: this end of the bond.
#[derive(Clone, PartialEq, Debug)]
pub struct Gateway {
    /// Where the private key is.
    pub private_key_file: String,
    /// UDP port on all addresses, for peers that call.
    pub listen_port: Option<u16>,
    /// More UDP ports of the same kind.
    pub more_ports: Option<Vec<u16>>,
    /// Name of the TUN device.
    pub tun: String,
    /// Inner addresses of this gateway.
    pub address: Vec<Cidr>,
    /// Largest inner packet in bytes.
    pub mtu: Option<u16>,
    /// Whether to add routes for the peers' allowed_ips.
    pub routes: bool,
    /// Unix socket that answers `plait status`.
    pub control_socket: Option<String>,
    /// File for state kept across restarts.
    pub state_file: Option<String>,
    /// The user that the daemon becomes once all is set up.
    pub user: Option<String>,
    /// Whether the daemon enters a sandbox without access to what it does not need.
    pub sandbox: bool,
    /// Whether other users may be able to read or write key files.
    pub allow_open_key_files: bool,
    /// Whether the host is made to forward packets while the gateway runs.
    pub forward: bool,
    /// Where inner addresses are hidden behind the host's own.
    pub nat: Nat,
    /// Whether answers to what came out of the bond go back into it, whatever the routes say.
    pub return_by_bond: Option<bool>,
    /// What becomes of the host's traffic while the bond cannot carry it.
    pub when_down: Option<WhenDown>,
    /// Networks that `block` lets the host reach outside the bond.
    pub block_allows: Vec<Cidr>,
    /// Whether a stop leaves `block` in force.
    pub block_stays: Option<bool>,
    /// Whether peers may measure the bond with this gateway, unless their section says otherwise.
    pub measure: bool,
    /// TCP port of the measuring service, on the TUN device.
    pub measure_port: u16,
    /// Where metrics are served over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Whether hosts outside may read them.
    pub metrics_open: bool,
}

impl Gateway {
    /// The port of the measuring service unless the file says otherwise.
    pub const MEASURE_PORT: u16 = 7789;
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            private_key_file: String::new(),
            listen_port: None,
            more_ports: None,
            tun: "plait0".into(),
            address: Vec::new(),
            mtu: None,
            routes: false,
            control_socket: None,
            state_file: None,
            user: None,
            sandbox: true,
            allow_open_key_files: false,
            forward: false,
            nat: Nat::Off,
            return_by_bond: None,
            when_down: None,
            block_allows: Vec::new(),
            block_stays: None,
            measure: false,
            measure_port: Self::MEASURE_PORT,
            metrics: None,
            metrics_open: false,
        }
    }
}

const TUN: Field<Gateway, Parsed<String>> = common::tun(|gateway| &mut gateway.tun);
const CONTROL_SOCKET: Field<Gateway, Maybe<Parsed<String>>> =
    common::control_socket(|gateway| &mut gateway.control_socket);

/// The options that determine the control socket.
pub const SOCKET: Options<Gateway> = &[&TUN, &CONTROL_SOCKET];

/// The options of `[gateway]`.
pub const GATEWAY: Options<Gateway> = &[
    &Field::new(
        "private_key_file",
        "this gateway's private key, as `plait keygen` prints it",
        text("file"),
        |gateway: &mut Gateway| &mut gateway.private_key_file,
    )
    .required("private_key_file = \"gateway.key\""),
    &Field::new(
        "listen_port",
        "UDP port on all addresses, for peers that call",
        Maybe(PORT),
        |gateway: &mut Gateway| &mut gateway.listen_port,
    )
    .absent("not listening"),
    &Field::new(
        "more_ports",
        "more UDP ports to listen on, for peers in networks that block the first ([when a network \
         blocks UDP](blocked.md)); 8 at most",
        Maybe(PORTS),
        |gateway: &mut Gateway| &mut gateway.more_ports,
    ),
    &TUN,
    &Field::new(
        "address",
        "inner addresses with prefix length",
        List { told: "text or list", read: Cidr::of_device },
        |gateway: &mut Gateway| &mut gateway.address,
    ),
    &common::inner_mtu("mtu", |gateway: &mut Gateway| &mut gateway.mtu)
        .absent("1440; 1420 when an endpoint is IPv6"),
    &Field::new(
        "routes",
        "add a route for each of the peers' `allowed_ips`",
        Flag,
        |gateway: &mut Gateway| &mut gateway.routes,
    ),
    &CONTROL_SOCKET,
    &common::state_file(
        "what outlives a restart: bytes counted for quotas, peers' last addresses, what is to be \
         undone after a crash",
        |gateway: &mut Gateway| &mut gateway.state_file,
    ),
    &common::user(|gateway: &mut Gateway| &mut gateway.user),
    &common::sandbox(|gateway: &mut Gateway| &mut gateway.sandbox),
    &Field::new(
        "allow_open_key_files",
        "take key files that others may read or write",
        Flag,
        |gateway: &mut Gateway| &mut gateway.allow_open_key_files,
    ),
    &common::forward(|gateway: &mut Gateway| &mut gateway.forward),
    &Field::new(
        "nat",
        "hide inner addresses behind the host's own on what leaves by these interfaces; `true` \
         for all but the TUN device; needs the program `nft`",
        NatForm,
        |gateway: &mut Gateway| &mut gateway.nat,
    ),
    &Field::new(
        "return_by_bond",
        "answers to what came out of the bond go back into it, whatever the host's routes say \
         ([services behind the bond](services.md)); needs the program `nft`",
        Maybe(Flag),
        |gateway: &mut Gateway| &mut gateway.return_by_bond,
    )
    .absent("false"),
    &Field::new(
        "when_down",
        "what becomes of the host's traffic while the bond cannot carry it: it waits, takes the \
         best bare link, or nothing ever leaves outside the bond ([when the bond is \
         down](when-down.md)); needs the program `nft`, except `hold`",
        Maybe(Words(WhenDown::WORDS)),
        |gateway: &mut Gateway| &mut gateway.when_down,
    )
    .absent("`hold`"),
    &Field::new(
        "block_allows",
        "networks that the host may reach outside the bond with `when_down = \"block\"`",
        List { told: "text or list", read: Cidr::prefix },
        |gateway: &mut Gateway| &mut gateway.block_allows,
    ),
    &Field::new(
        "block_stays",
        "a stop leaves `block` in force; `plait unblock` lifts it",
        Maybe(Flag),
        |gateway: &mut Gateway| &mut gateway.block_stays,
    )
    .absent("false"),
    &Field::new(
        "measure",
        "peers may run `plait measure` against this gateway ([measuring](measure.md))",
        Flag,
        |gateway: &mut Gateway| &mut gateway.measure,
    ),
    &Field::new(
        "measure_port",
        "TCP port of the measuring service, on the TUN device alone",
        PORT,
        |gateway: &mut Gateway| &mut gateway.measure_port,
    ),
    &Field::new(
        "metrics",
        "serves metrics for Prometheus over HTTP ([metrics](metrics.md))",
        Maybe(common::SOCKET_ADDRESS),
        |gateway: &mut Gateway| &mut gateway.metrics,
    )
    .absent("not served"),
    &Field::new(
        "metrics_open",
        "no warning that `metrics` is an address that other hosts may reach",
        Flag,
        |gateway: &mut Gateway| &mut gateway.metrics_open,
    ),
];

const PORT: Whole<u16> = Whole::new(1, 65_535, "");
const PORTS: WholeList = WholeList { low: 1, high: 65_535 };
/// Ports beside the first.
pub const MORE_PORTS_MAX: usize = 8;

/// Notes `more_ports` that are too many or twice there, or that add to none.
fn check_more_ports(
    section: &Section<'_>,
    more: Option<&[u16]>,
    first: Option<u16>,
    needs: (bool, &str, &str),
) {
    let Some(more) = more else { return };
    let (is_there, needed, example) = needs;
    let problem = |text: String, help: String| {
        section.problem("more_ports", Problem::new(text, help));
    };
    let twice = more
        .iter()
        .enumerate()
        .find(|(at, port)| first == Some(**port) || more[..*at].contains(*port));
    if !is_there {
        problem(
            format!("has no effect without {needed}"),
            format!("add `{example}`, or remove it"),
        );
    } else if more.len() > MORE_PORTS_MAX {
        problem(
            format!("{} ports are too many", more.len()),
            format!("keep {MORE_PORTS_MAX} at most"),
        );
    } else if let Some((_, port)) = twice {
        problem(format!("port {port} is there twice"), "leave one of them out".to_owned());
    }
}

/// Notes options of `[gateway]` that contradict each other.
pub fn check_gateway(section: &Section<'_>, gateway: &Gateway) {
    let needs = (gateway.listen_port.is_some(), "listen_port", "listen_port = 7788");
    check_more_ports(section, gateway.more_ports.as_deref(), gateway.listen_port, needs);
    if gateway.when_down == Some(WhenDown::Block) {
        return;
    }
    for option in ["block_allows", "block_stays"] {
        if section.holds_any(&[option]) {
            let help = "add `when_down = \"block\"`, or remove it";
            let text = "has no effect without when_down = \"block\"";
            section.problem(option, Problem::new(text, help));
        }
    }
}

/// `[[path]]`: a link over which this gateway opens a path to each peer that has an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// Interface that the path's socket is bound to; with a final `*`, every interface whose name
    /// begins so.
    pub interface: Option<String>,
    /// What stays of its interface when that gets another name.
    pub link: Option<Identity>,
    /// Local address that the path's socket is bound to.
    pub address: Option<IpAddr>,
    /// Name for status and logs.
    pub name: Option<String>,
    /// Price class; cheapest first.
    pub price: u8,
    /// Static weight for the `fixed` scheduler.
    pub weight: u16,
    /// Carries data only while no other link does.
    pub standby: bool,
    /// Each byte costs money: the link's paths sleep while the bond is idle.
    pub metered: bool,
    /// Bytes that it may carry in a month, both directions together, at the IP layer.
    pub quota: Option<u64>,
    /// First day of the month's count, a day that every month has.
    pub quota_day: Option<u8>,
    /// Whether it is taken out: no socket is opened for it.
    pub down: bool,
}

impl Path {
    /// First day of the month's count unless the file says otherwise.
    pub const QUOTA_DAY: u8 = 1;
}

impl Default for Path {
    fn default() -> Self {
        Self {
            interface: None,
            link: None,
            address: None,
            name: None,
            price: 0,
            weight: 1,
            standby: false,
            metered: false,
            quota: None,
            quota_day: None,
            down: false,
        }
    }
}

/// The options of `[[path]]`.
pub const PATH: Options<Path> = &[
    &Field::new(
        "interface",
        "the link's interface; `wwan*` stands for every interface whose name begins with `wwan`",
        Maybe(Parsed { told: "name", read: names::interfaces }),
        |path: &mut Path| &mut path.interface,
    )
    .absent("one of these three"),
    &Field::new(
        "link",
        "the interface that has this hardware address, as in `mac:02:00:00:00:00:01`, or this \
         place on PCI or USB, as in `bus:0000:00:1f.6` or `bus:1-1.4`, whatever its name is",
        Maybe(Parsed { told: Identity::TOLD, read: Identity::parse }),
        |path: &mut Path| &mut path.link,
    )
    .absent("one of these three"),
    &Field::new(
        "address",
        "the link's local address",
        Maybe(Parsed { told: "IP address", read: address }),
        |path: &mut Path| &mut path.address,
    )
    .absent("one of these three"),
    &Field::new(
        "name",
        "name in status and logs; with a wildcard always the interface's",
        Maybe(Parsed { told: names::NAME_RANGE, read: names::path }),
        |path: &mut Path| &mut path.name,
    )
    .absent("the interface, the link or the address"),
    &common::price(|path: &mut Path| &mut path.price),
    &common::weight(|path: &mut Path| &mut path.weight),
    &Field::new(
        "standby",
        "carries data only while no other link does",
        Flag,
        |path: &mut Path| &mut path.standby,
    ),
    &Field::new(
        "metered",
        "each byte costs: nothing is sent over the link while the bond is idle",
        Flag,
        |path: &mut Path| &mut path.metered,
    ),
    &Field::new(
        "quota",
        "what the link may carry in a month, both directions together",
        Maybe(Amount),
        |path: &mut Path| &mut path.quota,
    ),
    &Field::new(
        "quota_day",
        "first day of the month's count, by UTC",
        Maybe(Whole::new(1, 28, "")),
        |path: &mut Path| &mut path.quota_day,
    )
    .absent("1"),
    &Field::new(
        "down",
        "the path is not used, as after `plait path down` ([while it runs](runtime.md))",
        Flag,
        |path: &mut Path| &mut path.down,
    ),
];

pub(crate) fn address(text: &str) -> Result<IpAddr, Problem> {
    text.parse().map_err(|_| {
        let text = format!("\"{text}\" is not an IP address");
        Problem::new(text, "write it as in \"10.1.0.1\"")
    })
}

/// Notes options of a `[[path]]` that contradict each other.
pub fn check_path(section: &Section<'_>, path: &Path) {
    if path.quota_day.is_some() && !section.holds_any(&["quota"]) {
        let help = "add `quota = \"20 GB\"`, or remove it";
        section.problem("quota_day", Problem::new("has no effect without quota", help));
    }
    if section.holds_any(&["interface"]) && section.holds_any(&["link"]) {
        let help = "keep one of them: `link` names the interface, too";
        section.problem("link", Problem::new("there is an `interface` already", help));
    }
    if !section.holds_any(&["interface", "link", "address"]) {
        let text = "the path names neither an interface nor an address";
        let help = "add `interface = \"eth0\"` or `address = \"10.1.0.1\"`";
        section.problem("", Problem::new(text, help));
    }
}

/// `[[peer]]`: a gateway to bond with.
#[derive(Clone, PartialEq, Debug)]
pub struct Peer {
    /// The peer's identity.
    pub public_key: String,
    /// File of the key mixed into the handshake.
    pub preshared_key_file: Option<String>,
    /// Where the peer listens; empty when the peer calls.
    pub endpoint: Vec<Endpoint>,
    /// More ports at which it listens there.
    pub more_ports: Option<Vec<u16>>,
    /// Inner networks behind the peer; host bits may be set.
    pub allowed_ips: Vec<Cidr>,
    /// An idle path sends a datagram this often.
    pub keepalive: Duration,
    /// Whether the peer may measure the bond; `None` when its section does not say.
    pub measure: Option<bool>,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            public_key: String::new(),
            preshared_key_file: None,
            endpoint: Vec::new(),
            more_ports: None,
            allowed_ips: Vec::new(),
            keepalive: Duration::from_secs(25),
            measure: None,
        }
    }
}

/// The options of `[[peer]]`.
pub const PEER: Options<Peer> = &[
    &Field::new(
        "public_key",
        "the peer's identity, as its `plait pubkey` prints it",
        text("base64"),
        |peer: &mut Peer| &mut peer.public_key,
    )
    .required("public_key = \"…\""),
    &Field::new(
        "preshared_key_file",
        "a secret that both gateways mix into the handshake",
        Maybe(text("file")),
        |peer: &mut Peer| &mut peer.preshared_key_file,
    ),
    &Field::new(
        "endpoint",
        "where the peer listens: `IP:port`, `[IPv6]:port` or `name:port`",
        List { told: "text or list", read: Endpoint::parse },
        |peer: &mut Peer| &mut peer.endpoint,
    )
    .absent("the peer calls"),
    &Field::new(
        "more_ports",
        "more ports at which it listens, tried on each link where nothing comes back from the one \
         before ([when a network blocks UDP](blocked.md)); 8 at most",
        Maybe(PORTS),
        |peer: &mut Peer| &mut peer.more_ports,
    ),
    &Field::new(
        "allowed_ips",
        "inner networks behind the peer: what is sent to it, and accepted from it",
        List { told: "text or list", read: Cidr::prefix },
        |peer: &mut Peer| &mut peer.allowed_ips,
    ),
    &Field::new(
        "keepalive_s",
        "an idle path sends a datagram this often, to keep NAT bindings",
        Time::seconds(1, 65_535),
        |peer: &mut Peer| &mut peer.keepalive,
    ),
    &Field::new(
        "measure",
        "this peer may, or may not, run `plait measure` against this gateway",
        Maybe(Flag),
        |peer: &mut Peer| &mut peer.measure,
    )
    .absent("that of `[gateway]`"),
];

/// Notes options of a `[[peer]]` that contradict each other.
pub fn check_peer(section: &Section<'_>, peer: &Peer) {
    let needs = (!peer.endpoint.is_empty(), "endpoint", "endpoint = \"gw.example.net:7788\"");
    check_more_ports(section, peer.more_ports.as_deref(), None, needs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, GATEWAY, Gateway::default());
            round_trip(seed, PATH, Path::default());
            round_trip(seed, PEER, Peer::default());
        }
    }
}
