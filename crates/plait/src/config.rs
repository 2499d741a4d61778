//! The configuration of a gateway: read from a TOML file, checked, ready to use.
//!
//! [`Config::load`] checks everything that can be checked from the file alone, and finds all errors
//! in one pass. What depends on the machine is checked by [`crate::machine`]. The options, their
//! units and defaults are described in `docs/guide/configuration.md`.

mod beside;
mod convert;
mod dns;
mod error;
mod forwards;
mod gateway;
pub(crate) mod identity;
mod key;
mod lan;
mod located;
mod peer;
mod user;
mod when_down;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plait_net::netlink::Interface;
use plait_toml::hook::{self, Hook};
use plait_toml::{Place, Problem, Problems, Section, Table, option, tuning};

pub(crate) use beside::Beside;
pub(crate) use dns::Dns;
pub(crate) use error::{Unreadable, Unresolved};
pub(crate) use forwards::Forward;
pub(crate) use gateway::{Down, Gateway, PathConfig, Quota};
pub(crate) use key::{check_secrecy, parse as parse_key, read_file as read_key_file};
pub(crate) use lan::Lan;
pub(crate) use located::{Located, line_of};
pub(crate) use peer::{Peer, resolve};
pub(crate) use plait_toml::tuning::Tuning;
pub(crate) use plait_toml::value::{Cidr, Endpoint, Identity, LinkName, Nat, WhenDown};
pub(crate) use plait_toml::{Error as ConfigError, Errors as ConfigErrors};
pub(crate) use user::{find_user, user_of};

use crate::control::message::fingerprint;
use error::Conflict;

/// IPv4 and UDP headers and plait's framing around one inner packet, in bytes.
const OVERHEAD_IPV4_BYTES: u16 = 20 + 8 + 32;
/// The same over IPv6.
const OVERHEAD_IPV6_BYTES: u16 = 40 + 8 + 32;
/// The MTU assumed for access links by default, in bytes.
const LINK_MTU_BYTES: u16 = 1500;
/// Paths and peers that one gateway may have.
const PATHS_MAX: usize = 32;
const HOOKS_MAX: usize = 16;
pub(crate) const PEERS_MAX: usize = 16_384;

/// A checked configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file it came from, as the user named it.
    pub(crate) file: PathBuf,
    /// `[gateway]`.
    pub(crate) gateway: Gateway,
    /// Each `[[path]]`, in the order of the file.
    pub(crate) paths: Vec<PathConfig>,
    /// Each `[[peer]]`, in the order of the file.
    pub(crate) peers: Vec<Peer>,
    /// Each `[[hook]]`, in the order of the file.
    pub(crate) hooks: Vec<Hook>,
    /// Each `[[forward]]`, in the order of the file.
    pub(crate) forwards: Vec<Forward>,
    /// Each `[[lan]]`, in the order of the file.
    pub(crate) lans: Vec<Lan>,
    /// `[dns]`.
    pub(crate) dns: Option<Dns>,
    /// Each `[[beside]]`, in the order of the file.
    pub(crate) beside: Vec<Beside>,
    /// `[scheduler]` and `[resequencer]`.
    pub(crate) tuning: Tuning,
    /// What is allowed but looks unintended.
    pub(crate) warnings: Vec<Warning>,
    /// Tells the file's text from others.
    pub(crate) fingerprint: String,
}

/// Something that is allowed but looks unintended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Warning {
    /// Where: line in the file, counted from 1.
    pub(crate) line: usize,
    /// The option with its section.
    pub(crate) option: String,
    /// What looks unintended, and its consequence.
    pub(crate) text: String,
    /// What to do.
    pub(crate) help: String,
}

impl Config {
    /// The mark of plait's own datagrams, by which the kill switch knows them.
    pub(crate) const SOCKET_MARK: u32 = 0x706c_6169;

    /// What the marks begin with that packets of `[[beside]]` have, by which the kill switch knows
    /// them; and the bits of that beginning.
    pub(crate) const BESIDE_MARK: u32 = 0x7063_0000;
    pub(crate) const BESIDE_MARK_BITS: u32 = 0xffff_0000;

    /// Whether forwarding and NAT need a table of the packet filter.
    pub(crate) fn needs_table(&self) -> bool {
        let gateway = &self.gateway;
        gateway.nat != Nat::Off || gateway.return_by_bond || !self.forwards.is_empty()
    }

    /// Whether the running gateway needs the program nft.
    pub(crate) fn needs_nft(&self) -> bool {
        let is_away = !self.beside.is_empty() || self.gateway.when_down != WhenDown::Hold;
        is_away || self.needs_table()
    }

    /// The mark that the gateway's sockets have.
    pub(crate) fn socket_mark(&self) -> Option<u32> {
        (self.gateway.when_down == WhenDown::Block).then_some(Self::SOCKET_MARK)
    }

    /// Reads and checks a file and the key files that it names.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, each with file, line, option and remedy.
    pub(crate) fn load(file: &Path) -> Result<Self, ConfigErrors> {
        Self::parse(file, &read_text(file)?)
    }

    /// The same for a text that may be `file`'s, now or later.
    ///
    /// # Errors
    ///
    /// As those of [`Self::load`].
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ConfigErrors> {
        let document = plait_toml::tree::parse(file, text)?;
        Kind::Gateway.expect(file, &document)?;
        let problems = Problems::default();
        let config = sections(&problems, file, &document);
        problems.finish(config.map(|config| Self { fingerprint: fingerprint(text), ..config }))
    }

    /// The path of the control socket that a file names, without reading any key.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML, or names the socket wrongly.
    pub(crate) fn control_socket_of(file: &Path) -> Result<PathBuf, ConfigErrors> {
        let document = read(file)?;
        let problems = Problems::default();
        let folder = file.parent().unwrap_or(Path::new(""));
        let section = top(&problems, file, &document).single("gateway");
        let socket = gateway::read_control_socket(section, folder);
        problems.finish(Some(socket))
    }

    /// The largest inner packet in bytes: the file's value, or what fits a link of 1500 bytes.
    /// `any_ipv6` tells whether any endpoint of a peer is an IPv6 address.
    pub(crate) fn inner_mtu(&self, any_ipv6: bool) -> u16 {
        self.gateway.mtu.unwrap_or(LINK_MTU_BYTES - Self::overhead_bytes(any_ipv6))
    }

    /// Overhead of an outer packet around the inner one, in bytes.
    pub(crate) fn overhead_bytes(is_ipv6: bool) -> u16 {
        if is_ipv6 { OVERHEAD_IPV6_BYTES } else { OVERHEAD_IPV4_BYTES }
    }

    /// Whether one of the paths may use an interface.
    pub(crate) fn may_use(&self, interface: &Interface) -> bool {
        let sysfs = Path::new(identity::SYSFS);
        self.paths.iter().any(|path| {
            let has = |wanted: &Located<IpAddr>| interface.addresses.contains(&wanted.value);
            let is = |link: &Located<Identity>| identity::is_of(&link.value, interface, sysfs);
            path.takes_interface(&interface.name)
                && path.link.as_ref().is_none_or(is)
                && path.address.as_ref().is_none_or(has)
        })
    }

    /// Whether any peer may measure the bond with this gateway.
    pub(crate) fn serves_measurements(&self) -> bool {
        self.peers.iter().any(|peer| peer.measure.unwrap_or(self.gateway.measure))
    }

    /// The programs of its hooks.
    pub(crate) fn hook_programs(&self) -> impl Iterator<Item = &Path> {
        self.hooks.iter().filter_map(|hook| hook.command.first()).map(Path::new)
    }

    /// The files that hold secrets.
    pub(crate) fn key_files(&self) -> impl Iterator<Item = &Located<PathBuf>> {
        let preshared = self.peers.iter().filter_map(|peer| peer.preshared_key_file.as_ref());
        std::iter::once(&self.gateway.private_key_file).chain(preshared)
    }

    /// Notes a conflict in a line of the file.
    fn add(&self, problems: &Problems, line: usize, option: &str, conflict: Conflict) {
        let place = Place::Line(self.file.as_path().into(), line);
        problems.add(&place, option, conflict);
    }
}

/// The kind of program that a configuration is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A gateway.
    Gateway,
    /// A steering node.
    Node,
    /// A proxy.
    Proxy,
}

impl Kind {
    /// Determined by the section that only one of them has; `None` when it has none of these, or
    /// several.
    pub(crate) fn of(document: &Table) -> Option<Self> {
        match ["gateway", "node", "proxy"].map(|name| document.contains_key(name)) {
            [true, false, false] => Some(Self::Gateway),
            [false, true, false] => Some(Self::Node),
            [false, false, true] => Some(Self::Proxy),
            _ => None,
        }
    }

    /// # Errors
    /// The file is for another program than this.
    pub(crate) fn expect(self, file: &Path, document: &Table) -> Result<(), ConfigErrors> {
        let Some(other) = Self::of(document).filter(|kind| *kind != self) else { return Ok(()) };
        let problem = Problem::new(
            format!("this describes {}, not {}", other.told(), self.told()),
            format!("run it with `plait {} {}`", other.command(), file.display()),
        );
        Err(ConfigError::new(Place::File(file.into()), "", problem).into())
    }

    /// What it is, in words.
    fn told(self) -> &'static str {
        match self {
            Self::Gateway => "a gateway",
            Self::Node => "a steering node",
            Self::Proxy => "a proxy",
        }
    }

    /// The command that runs it.
    fn command(self) -> &'static str {
        match self {
            Self::Gateway => "up",
            Self::Node => "steer",
            Self::Proxy => "proxy run",
        }
    }
}

/// Reads a file as TOML.
///
/// # Errors
///
/// It cannot be read, or is not TOML.
pub(crate) fn read(file: &Path) -> Result<Table, ConfigErrors> {
    Ok(plait_toml::tree::parse(file, &read_text(file)?)?)
}

fn read_text(file: &Path) -> Result<String, ConfigErrors> {
    let text = fs::read_to_string(file);
    text.map_err(|cause| ConfigError::new(Place::File(file.into()), "", Unreadable(cause)).into())
}

/// The peers of a text with nothing but sections `[[peer]]`; relative file names start at `folder`.
///
/// # Errors
///
/// Everything that is wrong with one of them alone; `file` is where.
pub(crate) fn parse_peers(
    file: &Path,
    text: &str,
    folder: &Path,
) -> Result<Vec<Peer>, ConfigErrors> {
    let document = plait_toml::tree::parse(file, text)?;
    peers_of(file, &document, folder)
}

/// The same for a document that was read, or made.
///
/// # Errors
///
/// As those of [`parse_peers`].
pub(crate) fn peers_of(
    file: &Path,
    document: &Table,
    folder: &Path,
) -> Result<Vec<Peer>, ConfigErrors> {
    let problems = Problems::default();
    let mut top = top(&problems, file, document);
    let peers: Vec<_> = top.many("peer").into_iter().map(|s| peer::read(s, folder)).collect();
    top.finish();
    let read = problems.none_found().then(|| peers.into_iter().collect()).flatten();
    problems.finish(read)
}

pub(crate) fn top<'a>(problems: &'a Problems, file: &Path, document: &'a Table) -> Section<'a> {
    Section::top(problems, Place::Line(file.into(), 1), document)
}

/// Reads all sections, then checks them against each other. `None` when a problem was noted.
fn sections(problems: &Problems, file: &Path, document: &Table) -> Option<Config> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut top = top(problems, file, document);
    let gateway = gateway::read(top.single("gateway"), folder);
    let paths: Vec<_> = top.many("path").into_iter().enumerate().map(gateway::read_path).collect();
    let peers: Vec<_> = top.many("peer").into_iter().map(|s| peer::read(s, folder)).collect();
    let hooks: Vec<_> = top.many("hook").into_iter().map(read_hook).collect();
    let forwards: Vec<_> = top.many("forward").into_iter().map(forwards::read).collect();
    let lans: Vec<_> = top.many("lan").into_iter().map(lan::read).collect();
    let dns = dns::read(top.single("dns"));
    let beside: Vec<_> = top.many("beside").into_iter().map(beside::read).collect();
    let scheduler = top.single("scheduler");
    let resequencer = top.single("resequencer");
    let tuning = tuning::read(scheduler, top.single("congestion"), resequencer);
    top.finish();
    if !problems.none_found() {
        return None;
    }
    let config = Config {
        file: file.to_owned(),
        gateway: gateway?,
        paths,
        peers: peers.into_iter().collect::<Option<_>>()?,
        hooks,
        forwards,
        lans,
        dns,
        beside,
        tuning,
        warnings: Vec::new(),
        fingerprint: String::new(),
    };
    check_paths(problems, &config);
    check_peers(problems, &config);
    check_addresses(problems, &config);
    check_key_files(problems, &config);
    when_down::check(problems, &config);
    forwards::check(problems, &config);
    lan::check(problems, &config);
    beside::check(problems, &config);
    let warnings = warnings(&config);
    problems.none_found().then_some(Config { warnings, ..config })
}

fn read_hook(mut section: Section<'_>) -> Hook {
    let mut said = Hook::default();
    option::read(hook::HOOK, &mut section, &mut said);
    hook::check(&section, &said);
    section.finish();
    said
}

fn check_paths(problems: &Problems, config: &Config) {
    if config.hooks.len() > HOOKS_MAX {
        let too_many = Conflict::TooMany { limit: HOOKS_MAX };
        config.add(problems, config.gateway.line, "[[hook]]", too_many);
    }
    let add = |line, option, conflict| config.add(problems, line, option, conflict);
    if config.paths.is_empty() && config.gateway.listen_port.is_none() {
        add(config.gateway.line, "[gateway]", Conflict::NoSocket);
    }
    if let Some(path) = config.paths.get(PATHS_MAX) {
        add(path.line, "[[path]]", Conflict::TooMany { limit: PATHS_MAX });
    }
    for (i, path) in config.paths.iter().enumerate() {
        if let Some(other) = config.paths[..i].iter().find(|other| other.name == path.name) {
            let problem =
                Conflict::SamePathName { name: path.name.clone(), other_line: other.line };
            add(path.line, "[[path]] name", problem);
        }
    }
}

fn check_peers(problems: &Problems, config: &Config) {
    let add = |line, option, conflict| config.add(problems, line, option, conflict);
    if config.peers.is_empty() {
        add(config.gateway.line, "[[peer]]", Conflict::NoPeer);
    }
    if let Some(peer) = config.peers.get(PEERS_MAX) {
        add(peer.line, "[[peer]]", Conflict::TooMany { limit: PEERS_MAX });
    }
    // The first peer with each key and each prefix.
    let (mut keys, mut prefixes) = (BTreeMap::new(), BTreeMap::new());
    for (at, peer) in config.peers.iter().enumerate() {
        let key = &peer.public_key;
        if key.value == config.gateway.public_key {
            add(key.line, "[[peer]] public_key", Conflict::OwnKey);
        }
        let first = *keys.entry(key.value).or_insert(at);
        if first != at {
            let other_line = config.peers[first].line;
            add(key.line, "[[peer]] public_key", Conflict::SamePeer { other_line });
        }
        if peer.endpoints.is_empty() && config.gateway.listen_port.is_none() {
            add(peer.line, "[[peer]]", Conflict::NobodyCalls);
        }
        for prefix in &peer.allowed_ips {
            let Cidr { address, length } = prefix.value;
            let first = *prefixes.entry((address, length)).or_insert(at);
            if first != at {
                let other_line = config.peers[first].line;
                let problem = Conflict::SamePrefix { prefix: prefix.value.to_string(), other_line };
                add(prefix.line, "[[peer]] allowed_ips", problem);
            }
        }
    }
}

/// RFC 8200 §5: every link that carries IPv6 carries 1280 bytes. Also, a device has each address
/// once.
fn check_addresses(problems: &Problems, config: &Config) {
    let add = |line, option, conflict| config.add(problems, line, option, conflict);
    const IPV6_MTU_MIN: u16 = 1280;
    let allowed = config.peers.iter().flat_map(|peer| &peer.allowed_ips).map(|p| p.value);
    let any_ipv6 = config
        .gateway
        .addresses
        .iter()
        .chain(config.lans.iter().flat_map(|lan| &lan.addresses))
        .copied()
        .chain(allowed)
        .any(|cidr| matches!(cidr.address, IpAddr::V6(_)));
    if let Some(mtu) = config.gateway.mtu.filter(|mtu| *mtu < IPV6_MTU_MIN && any_ipv6) {
        add(config.gateway.line, "[gateway] mtu", Conflict::MtuTooSmallForIpv6 { mtu });
    }
    let addresses = &config.gateway.addresses;
    for (i, Cidr { address, .. }) in addresses.iter().enumerate() {
        if addresses[..i].iter().any(|other| other.address == *address) {
            let problem = Conflict::SameAddress { address: *address };
            add(config.gateway.line, "[gateway] address", problem);
        }
    }
}

/// Warns of inner addresses that a device can have but cannot work with.
fn inner_address_warnings(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    const ADDRESS: &str = "[gateway] address";
    let line = config.gateway.line;
    for own in &config.gateway.addresses {
        let is_for_none = own.address.is_ipv4() && own.length < 31 && !own.is_host();
        if is_for_none {
            let text = format!("{own} is the address of the whole network, not of one host in it");
            warn(line, ADDRESS, text, "write a host's address, as in \"10.99.0.2/24\"".into());
        }
        for prefix in config.peers.iter().flat_map(|peer| &peer.allowed_ips) {
            let Cidr { address, length } = prefix.value;
            if address == own.address && length == if address.is_ipv4() { 32 } else { 128 } {
                let text = format!("{address} is this gateway's own inner address too");
                let help = "give each gateway its own inner address".into();
                warn(prefix.line, "[[peer]] allowed_ips", text, help);
            }
        }
    }
}

/// Metrics are served without a password: whoever reaches their address reads them.
fn metrics_warning(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    let Some(metrics) = &config.gateway.metrics else { return };
    let address = metrics.value.ip().to_canonical();
    let is_inner = config.gateway.addresses.iter().any(|own| own.address == address);
    if !address.is_loopback() && !is_inner && !config.gateway.metrics_open {
        let text = format!("hosts that reach {} can read how much each peer sends", metrics.value);
        let help = "use a loopback or an inner address, or add `metrics_open = true`";
        warn(metrics.line, "[gateway] metrics", text, help.into());
    }
}

/// Like `ssh`: a secret that others can read is no longer secret.
fn check_key_files(problems: &Problems, config: &Config) {
    if config.gateway.allow_open_key_files {
        return;
    }
    // A missing user is reported elsewhere.
    let user = user_of(config.gateway.user.as_ref()).ok().flatten();
    for file in config.key_files() {
        if let Err(problem) = key::check_secrecy(&file.value, user) {
            let place = Place::Line(config.file.as_path().into(), file.line);
            problems.add(&place, "key file", problem);
        }
    }
}

fn warnings(config: &Config) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |line, option: &str, text: String, help: String| {
        warnings.push(Warning { line, option: option.into(), text, help });
    };
    if config.gateway.addresses.is_empty() {
        let text = format!("{} will have no address", config.gateway.tun);
        let help = "add `address = [\"10.99.0.2/24\"]`, unless another program sets it".into();
        warn(config.gateway.line, "[gateway] address", text, help);
    }
    inner_address_warnings(config, &mut warn);
    when_down::warnings(config, &mut warn);
    forwards::warnings(config, &mut warn);
    lan::warnings(config, &mut warn);
    dns::warnings(config, &mut warn);
    beside::warnings(config, &mut warn);
    let only = config.paths.first().filter(|path| config.paths.len() == 1 && !path.is_wildcard());
    if let Some(only) = only.filter(|_| config.gateway.listen_port.is_none()) {
        let text = "with a single path there is nothing to bond".into();
        warn(only.line, "[[path]]", text, "add a [[path]] for each further link".into());
    }
    if config.gateway.nat != Nat::Off && !config.makes_host_forward() {
        let text = "nat without forward: nothing is forwarded unless the host does it already";
        let help = "add `forward = true`, unless net.ipv4.ip_forward is set elsewhere".into();
        warn(config.gateway.line, "[gateway] nat", text.into(), help);
    }
    metrics_warning(config, &mut warn);
    for peer in &config.peers {
        if peer.allowed_ips.is_empty() {
            let text = "without allowed_ips nothing is sent to the peer or taken from it".into();
            let help = "add `allowed_ips = [\"10.99.0.1/32\"]`".into();
            warn(peer.line, "[[peer]] allowed_ips", text, help);
        }
        for (line, written, network) in &peer.cleared_host_bits {
            let text = format!("{written} is taken as {network}");
            warn(*line, "[[peer]] allowed_ips", text, format!("write \"{network}\""));
        }
    }
    for program in config.hook_programs().filter(|program| !program.exists()) {
        let text = format!("there is no program {}", program.display());
        let help = "install it, or correct `command`".into();
        warn(config.gateway.line, "[[hook]] command", text, help);
    }
    warnings.sort_by_key(|warning| warning.line);
    warnings
}
