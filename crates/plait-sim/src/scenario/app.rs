//! `[[app]]`: what the applications do.

pub mod controller;

use plait_proto::congestion::ControllerConfig;
use plait_proto::time::Duration;
use plait_toml::{Bounds, Node, Problem, Section, Value};

use super::error::no_such;
use super::multipath::{self, MptcpSpec};
use super::rate::{self, Framing, Layer, Shape, TUNNEL_BYTES, UDP_HEADER_BYTES};
use super::video::{self, VideoSpec};
use crate::prng::Prng;
use crate::tcp::{ReceiverConfig, SenderConfig};

/// An application: a sender at one end, a receiver at the other.
#[derive(Clone, PartialEq, Debug)]
pub struct AppSpec {
    /// Names it in metrics and series.
    pub name: String,
    /// Which end sends.
    pub direction: Direction,
    /// The carrier of its packets.
    pub via: Via,
    /// The steering node's client that it belongs to, from 0.
    pub client: u16,
    /// When it starts, since the run began; the earliest time where each seed draws its own.
    pub start: Duration,
    /// The latest start; equal to `start` where nothing is drawn.
    pub start_latest: Duration,
    /// If not zero, each seed starts it this much later than the one before, up to `start_latest`,
    /// and then from `start` on again.
    pub start_step: Duration,
    /// When it stops sending, since the run began.
    pub stop: Duration,
    /// Whether it only measures, and is not part of the load.
    pub probe: bool,
    /// The DSCP of its packets (RFC 2474), below 64.
    pub dscp: u8,
    /// What it sends.
    pub traffic: Traffic,
}

impl AppSpec {
    /// The links of its MPTCP connections' subflows; none without MPTCP.
    pub fn subflow_links(&self) -> impl Iterator<Item = &String> {
        let mptcp = match &self.traffic {
            Traffic::Tcp(tcp) => tcp.mptcp.as_ref(),
            Traffic::Video(video) => video.mptcp.as_ref(),
            _ => None,
        };
        mptcp.into_iter().flat_map(|mptcp| &mptcp.subflows)
    }
}

/// Direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Server to customer.
    #[default]
    Down,
    /// Customer to server.
    Up,
}

/// The carrier of an application's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Via {
    /// The bond.
    Bond,
    /// The steering node.
    Steer,
    /// MPTCP over bare links, beside bond and steering node.
    Mptcp,
    /// The bare link of this name, beside bond and steering node.
    Link(String),
}

/// What an application sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// `udp`: packets of one size at a given load.
    Udp(UdpSpec),
    /// `on-off`: the same with pauses.
    OnOff(OnOffSpec),
    /// `voip`: a voice call.
    Voip(VoipSpec),
    /// `web`: pages, one after another.
    Web(WebSpec),
    /// `video`: a clip that is played.
    Video(VideoSpec),
    /// `tcp`: a bulk transfer.
    Tcp(TcpSpec),
}

impl Traffic {
    /// The TCP that carries it; `None` for datagrams.
    pub fn tcp(&self) -> Option<&TcpKind> {
        match self {
            Self::Udp(_) | Self::OnOff(_) | Self::Voip(_) => None,
            Self::Web(web) => Some(&web.tcp),
            Self::Video(video) => Some(&video.tcp),
            Self::Tcp(tcp) => Some(&tcp.tcp),
        }
    }
}

/// Packets of one size at a given load.
#[derive(Clone, PartialEq, Debug)]
pub struct UdpSpec {
    /// UDP payload of each packet.
    pub payload_bytes: u32,
    /// Offered load since the application's start.
    pub shape: Shape,
    /// The layer at which the scenario gives the load, for reports.
    pub told_at: Layer,
}

/// Packets of one size at a given load, with pauses.
#[derive(Clone, PartialEq, Debug)]
pub struct OnOffSpec {
    /// The load while on; its time runs on during the pauses.
    pub udp: UdpSpec,
    /// Time on: fixed, or the mean.
    pub on: Duration,
    /// Time off: fixed, or the mean.
    pub off: Duration,
    /// Whether both are drawn from an exponential distribution.
    pub exponential: bool,
}

/// A voice call: one packet every 20 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VoipSpec {
    /// The codec.
    pub codec: Codec,
    /// A packet that arrives later than this after it was sent is of no use.
    pub playout: Duration,
}

/// A voice codec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// `g711`: 160 bytes per packet.
    G711,
    /// `g729`: 20 bytes per packet.
    G729,
}

impl Codec {
    /// Payload of 20 ms of voice.
    pub const fn payload_bytes(self) -> u32 {
        match self {
            Self::G711 => 160,
            Self::G729 => 20,
        }
    }
}

/// Pages, one after another, each of a number of objects.
#[derive(Clone, PartialEq, Debug)]
pub struct WebSpec {
    /// Objects of a page.
    pub objects: u32,
    /// Smallest and largest object in bytes; sizes are uniform on a logarithmic scale.
    pub object_bytes: (u64, u64),
    /// Connections that fetch a page.
    pub connections: u32,
    /// Pause after a page.
    pub think: Duration,
    /// The senders' TCP.
    pub tcp: TcpKind,
}

impl WebSpec {
    /// A browser's request for an object: a request line and its headers.
    pub const REQUEST_BYTES: usize = 400;

    /// The size of an object: its logarithm is uniform between those of the bounds.
    pub fn draw_object(&self, prng: &mut Prng) -> u64 {
        let (low, high) = self.object_bytes;
        let share = (prng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (low as f64 * (high as f64 / low as f64).powf(share)).round() as u64
    }
}

/// A bulk transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpSpec {
    /// Number of identical connections.
    pub flows: u32,
    /// What each connection sends before it ends; `None` for as much as it can until it stops.
    pub transfer_bytes: Option<u64>,
    /// The sender's TCP; with MPTCP that of each subflow.
    pub tcp: TcpKind,
    /// With MPTCP what that has beside.
    pub mptcp: Option<MptcpSpec>,
}

/// A TCP sender's behaviour, by names that the TCP model knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpKind {
    /// Congestion controller.
    pub controller: String,
    /// The same with what it is told, for the TCP model.
    pub congestion: ControllerConfig,
    /// Loss recovery: one of [`RECOVERIES`].
    pub recovery: String,
    /// The largest window that the receiver offers; with MPTCP the connection's.
    pub window_bytes_max: u64,
    /// Whether both ends use selective acknowledgements; without them the loss recovery is
    /// NewReno's (RFC 6582), called `rfc6675` here for its three duplicates.
    pub sack: bool,
    /// The most segments to which a duplicate-ACK threshold that adapts may rise.
    pub reordering_max: u32,
    /// Whether a reduction that proves spurious is undone.
    pub undo: bool,
    /// Whether segments are paced even if the controller sets no rate.
    pub paced: bool,
}

impl TcpKind {
    /// Whether it is QUIC rather than TCP.
    pub fn is_quic(&self) -> bool {
        self.recovery == "quic"
    }
}

/// Kinds of loss recovery: RFC 6675 with a duplicate-ACK threshold of three; the same with a
/// threshold that adapts to reordering; that of Linux 3.2 with its growth of the window; RACK-TLP
/// (RFC 8985); QUIC's (RFC 9002).
pub const RECOVERIES: [&str; 5] = ["rfc6675", "rfc6675-adaptive", "linux-3.2", "rack-tlp", "quic"];

/// The context for reading an application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) duration: Duration,
    pub(super) inner_mtu: Option<u16>,
    /// The steering node's MTU and clients.
    pub(super) steer: Option<(u16, u16)>,
    /// Each link's name, with its MTU where the link is right.
    pub(super) links: &'a [(&'a str, Option<u16>)],
}

/// Reads every application; wrong ones are left out. Also returns the names of all, so that
/// references to a wrong one are not errors too.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    around: Around<'_>,
) -> (Vec<AppSpec>, Vec<String>) {
    let mut apps: Vec<AppSpec> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for mut section in sections {
        let name = section.text("name").unwrap_or_default();
        if !name.is_empty() && names.contains(&name) {
            let text = format!("another [[app]] is called \"{name}\" too");
            section.problem("name", Problem::new(text, "give each application its own name"));
        }
        names.push(name);
        apps.extend(read(section, around));
    }
    (apps, names)
}

#[derive(Clone, Copy)]
enum Kind {
    Udp,
    OnOff,
    Voip,
    Web,
    Video,
    Tcp,
}

const KINDS: [(&str, Kind); 6] = [
    ("udp", Kind::Udp),
    ("on-off", Kind::OnOff),
    ("voip", Kind::Voip),
    ("web", Kind::Web),
    ("video", Kind::Video),
    ("tcp", Kind::Tcp),
];

fn read(mut section: Section<'_>, around: Around<'_>) -> Option<AppSpec> {
    let name = section.required_text("name", "name = \"flow\"");
    if name.as_ref().is_some_and(|name| name.contains(['.', '=', ',', ' '])) {
        let problem = Problem::new("no name for an application", "use no `.`, `=`, `,`, space");
        section.problem("name", problem);
    }
    let directions = [("down", Direction::Down), ("up", Direction::Up)];
    let direction = section.choice("direction", &directions).unwrap_or_default();
    let via = read_via(&mut section, around);
    let client = read_client(&mut section, via.as_ref(), around);
    let (start, start_latest, start_step) = read_start(&mut section);
    let probe = section.boolean("probe").unwrap_or(false);
    let stop = section.seconds("stop_s").unwrap_or(around.duration);
    if stop <= start_latest || stop > around.duration {
        let (from, to) = (start_latest.as_secs_f64(), stop.as_secs_f64());
        let text = format!("it runs from {from} to {to} s");
        let duration_s = around.duration.as_secs_f64();
        let help =
            format!("let it stop after its start, and at {duration_s} s (duration_s) at most");
        let key = if section.holds_any(&["stop_s"]) { "stop_s" } else { "start_s" };
        section.problem(key, Problem::new(text, help));
    }
    let is_absent = !section.holds_any(&["kind"]);
    let kind = section.choice("kind", &KINDS);
    if is_absent {
        section.missing("kind", "kind = \"udp\"");
    }
    // Without a kind nothing can be said about the options that belong to one.
    let traffic = read_traffic(kind?, &mut section, via.as_ref(), around);
    if traffic.as_ref().is_some_and(|traffic| traffic.tcp().is_some()) {
        section.no_effect(&["dscp"], "TCP", "kind = \"udp\", \"on-off\" or \"voip\"");
    }
    let dscp = section.integer("dscp", (0, 63), "").unwrap_or(0);
    section.finish();
    let (name, mut via, traffic) = (name?, via?, traffic?);
    if via == Via::Mptcp && !matches!(traffic, Traffic::Tcp(_) | Traffic::Video(_)) {
        // Other traffic takes the route of an ordinary program: the first link.
        via = Via::Link(around.links.first()?.0.to_owned());
    }
    Some(AppSpec {
        name,
        direction,
        via,
        client,
        start,
        start_latest,
        start_step,
        stop,
        probe,
        dscp,
        traffic,
    })
}

/// A time, a pair between which each seed draws one, or `{ step_s, steps }`: each seed starts
/// `step_s` later than the one before, and after `steps` steps from the beginning again.
fn read_start(section: &mut Section<'_>) -> (Duration, Duration, Duration) {
    if !matches!(section.get("start_s"), Some(Node { value: Value::Table(_), .. })) {
        let (start, latest) = section.seconds_range("start_s").unwrap_or_default();
        return (start, latest, Duration::ZERO);
    }
    let mut steps = section.single("start_s");
    for (key, example) in [("step_s", "step_s = 0.037"), ("steps", "steps = 16")] {
        if !steps.holds_any(&[key]) {
            steps.missing(key, example);
        }
    }
    let step = steps.seconds("step_s").unwrap_or_default();
    let count: u32 = steps.integer("steps", (1, 1000), "").unwrap_or(1);
    steps.finish();
    (Duration::ZERO, step * (count - 1), step)
}

fn read_via(section: &mut Section<'_>, around: Around<'_>) -> Option<Via> {
    let given = section.holds_any(&["via"]);
    let name = section.text("via");
    match name.as_deref() {
        None if given => None,
        None | Some("bond") if around.inner_mtu.is_some() => Some(Via::Bond),
        None | Some("steer") if around.steer.is_some() => Some(Via::Steer),
        Some("mptcp") => Some(Via::Mptcp),
        None => {
            section.missing("via", "via = \"a link's name\"");
            None
        }
        Some(name) if around.links.iter().any(|(known, _)| *known == name) => {
            Some(Via::Link(name.to_owned()))
        }
        Some(name) => {
            let bond = around.inner_mtu.map(|_| "bond");
            let steer = around.steer.map(|_| "steer");
            let links = around.links.iter().map(|(name, _)| *name);
            let known = bond.into_iter().chain(steer).chain(["mptcp"]).chain(links);
            let known = known.map(str::to_owned).collect();
            section.problem("via", no_such("link", name, known));
            None
        }
    }
}

/// Clients are counted from 1 in the file.
fn read_client(section: &mut Section<'_>, via: Option<&Via>, around: Around<'_>) -> u16 {
    let clients = around.steer.map_or(1, |(_, clients)| clients);
    let other = match via {
        Some(Via::Bond) => Some("bond"),
        Some(Via::Mptcp) => Some("mptcp"),
        Some(Via::Link(name)) => Some(name.as_str()),
        Some(Via::Steer) | None => None,
    };
    if let Some(other) = other {
        section.no_effect(&["client"], &format!("via = \"{other}\""), "via = \"steer\"");
        return 0;
    }
    let client: Option<u16> = section.integer("client", (1, i64::from(clients)), "");
    client.map_or(0, |client| client - 1)
}

fn read_traffic(
    kind: Kind,
    section: &mut Section<'_>,
    via: Option<&Via>,
    around: Around<'_>,
) -> Option<Traffic> {
    Some(match kind {
        Kind::Udp => Traffic::Udp(read_udp(section, via, around)?),
        Kind::OnOff => Traffic::OnOff(read_on_off(section, via, around)?),
        Kind::Voip => Traffic::Voip(read_voip(section)),
        Kind::Web => Traffic::Web(read_web(section)),
        Kind::Tcp => Traffic::Tcp(TcpSpec {
            flows: section.integer("flows", (1, 1000), "").unwrap_or(1),
            transfer_bytes: section.integer("transfer_bytes", (1, 1 << 40), "bytes"),
            tcp: read_tcp(section),
            mptcp: read_mptcp(section, via, around),
        }),
        Kind::Video => {
            let (tcp, mptcp) = (read_tcp(section), read_mptcp(section, via, around));
            Traffic::Video(video::read(section, tcp, mptcp)?)
        }
    })
}

fn read_mptcp(
    section: &mut Section<'_>,
    via: Option<&Via>,
    around: Around<'_>,
) -> Option<MptcpSpec> {
    let links: Vec<&str> = around.links.iter().map(|(name, _)| *name).collect();
    multipath::read(section, via, &links)
}

fn read_udp(section: &mut Section<'_>, via: Option<&Via>, around: Around<'_>) -> Option<UdpSpec> {
    const PAYLOAD_BYTES: u32 = 1400;
    let payload_bytes =
        section.integer("payload_bytes", (16, 8900), "bytes").unwrap_or(PAYLOAD_BYTES);
    let mtu = match via {
        Some(Via::Bond) => around.inner_mtu,
        Some(Via::Steer) => around.steer.map(|(mtu, _)| mtu),
        Some(Via::Link(name)) => {
            around.links.iter().find(|(known, _)| known == name).and_then(|(_, mtu)| *mtu)
        }
        Some(Via::Mptcp) => around.links.first().and_then(|(_, mtu)| *mtu),
        None => None,
    };
    if let Some(mtu) = mtu.map(u32::from).filter(|mtu| payload_bytes + UDP_HEADER_BYTES > *mtu) {
        let text = format!("a packet of {payload_bytes} + {UDP_HEADER_BYTES} bytes does not fit");
        let framing = match via {
            Some(Via::Bond) => {
                format!(" (inside the bond, {TUNNEL_BYTES} less than the links' mtu)")
            }
            _ => String::new(),
        };
        let help = format!("write at most {}: the MTU is {mtu}{framing}", mtu - UDP_HEADER_BYTES);
        section.problem("payload_bytes", Problem::new(text, help));
    }
    let framing = Framing::udp(payload_bytes, via == Some(&Via::Bond));
    if !section.holds_any(&["rate"]) {
        section.know(&["rate"]);
        section.missing("rate", "rate = { mbit = 10, layer = \"offered\" }");
        return None;
    }
    let rate = section.single("rate");
    if !rate.is_present() {
        return None;
    }
    let (shape, told_at) = rate::read(rate, framing)?;
    Some(UdpSpec { payload_bytes, shape, told_at })
}

fn read_on_off(
    section: &mut Section<'_>,
    via: Option<&Via>,
    around: Around<'_>,
) -> Option<OnOffSpec> {
    const TIME: Bounds = Bounds::new(0.001, 86_400.0, "seconds");
    let udp = read_udp(section, via, around);
    let time = |section: &mut Section<'_>, key| {
        Duration::from_secs_f64(section.number(key, TIME).unwrap_or(1.0))
    };
    let (on, off) = (time(section, "on_s"), time(section, "off_s"));
    let times = section.choice("times", &[("fixed", false), ("exponential", true)]);
    Some(OnOffSpec { udp: udp?, on, off, exponential: times.unwrap_or(false) })
}

fn read_voip(section: &mut Section<'_>) -> VoipSpec {
    let codecs = [("g711", Codec::G711), ("g729", Codec::G729)];
    let codec = section.choice("codec", &codecs).unwrap_or(Codec::G711);
    let playout = section.integer("playout_ms", (1, 2000), "milliseconds").unwrap_or(200);
    VoipSpec { codec, playout: Duration::from_millis(playout) }
}

fn read_web(section: &mut Section<'_>) -> WebSpec {
    let sizes = Bounds::new(1.0, 1e9, "bytes");
    let (low, high) = section.range("object_bytes", sizes).unwrap_or((1e3, 1e6));
    WebSpec {
        objects: section.integer("objects", (1, 1000), "").unwrap_or(30),
        object_bytes: (low as u64, high as u64),
        connections: section.integer("connections", (1, 100), "").unwrap_or(6),
        think: Duration::from_secs_f64(section.number("think_s", Bounds::SECONDS).unwrap_or(2.0)),
        tcp: read_tcp(section),
    }
}

/// Without SACK there is only one loss recovery.
fn recovery_without_sack(section: &Section<'_>, recovery: String) -> String {
    const ONLY: &str = RECOVERIES[0];
    if section.holds_any(&["recovery"]) && recovery != ONLY {
        let text = format!("\"{recovery}\" needs selective acknowledgements");
        let help = format!("write \"{ONLY}\", or nothing, with sack = false");
        section.problem("recovery", Problem::new(text, help));
    }
    ONLY.to_owned()
}

fn read_tcp(section: &mut Section<'_>) -> TcpKind {
    let (controller, congestion) = controller::read(section);
    let recoveries = RECOVERIES.map(|recovery| (recovery, recovery));
    let recovery = section.choice("recovery", &recoveries).unwrap_or("rack-tlp").to_owned();
    let sack = section.boolean("sack").unwrap_or(true);
    TcpKind {
        controller,
        congestion,
        recovery: if sack { recovery } else { recovery_without_sack(section, recovery) },
        sack,
        reordering_max: section
            .integer("reordering_max", (3, 300), "segments")
            .unwrap_or(if sack { SenderConfig::REORDERING_MAX } else { 3 }),
        undo: section.boolean("undo").unwrap_or(true),
        window_bytes_max: section
            .integer("window_bytes_max", (4096, 1 << 30), "bytes")
            .unwrap_or(ReceiverConfig::WINDOW_BYTES_MAX),
        paced: section.boolean("paced").unwrap_or(false),
    }
}
