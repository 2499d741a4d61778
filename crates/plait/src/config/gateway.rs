//! `[gateway]` and `[[path]]`: this end of the bond.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use plait_proto::config::LinkConfig;
use plait_proto::session::{PrivateKey, PublicKey};
use plait_toml::gateway::{self as file, GATEWAY, PATH, SOCKET};
use plait_toml::value::{Cidr, Identity, Nat, WhenDown};
use plait_toml::{Section, common, option};

use super::key::{self, Secret};
use super::located::{Located, line_of};

/// `[gateway]`.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// The section's line.
    pub(crate) line: usize,
    /// This gateway's identity.
    pub(crate) private_key: PrivateKey,
    /// Its public key.
    pub(crate) public_key: PublicKey,
    /// The file that the private key was read from.
    pub(crate) private_key_file: Located<PathBuf>,
    /// UDP port on all addresses, for peers that call.
    pub(crate) listen_port: Option<Located<u16>>,
    /// More UDP ports, for peers whose networks block that one.
    pub(crate) more_ports: Vec<u16>,
    /// Name of the TUN device.
    pub(crate) tun: String,
    /// Inner addresses of this gateway.
    pub(crate) addresses: Vec<Cidr>,
    /// Largest inner packet in bytes, when the file says so.
    pub(crate) mtu: Option<u16>,
    /// Whether to add routes for the peers' allowed_ips.
    pub(crate) routes: bool,
    /// Unix socket that answers `plait status`.
    pub(crate) control_socket: PathBuf,
    /// File for state kept across restarts: quotas, addresses, host changes to undo.
    pub(crate) state_file: PathBuf,
    /// The user that the daemon becomes once all is set up.
    pub(crate) user: Option<Located<String>>,
    /// Whether the daemon enters a sandbox without the files and system calls that it does not
    /// need.
    pub(crate) sandbox: bool,
    /// Whether other users may be able to read or write key files.
    pub(crate) allow_open_key_files: bool,
    /// Whether the host is made to forward packets while the gateway runs.
    pub(crate) forward: bool,
    /// Where inner addresses are translated to the host's own.
    pub(crate) nat: Nat,
    /// Whether answers to what came out of the bond go back into it, whatever the routes say.
    pub(crate) return_by_bond: bool,
    /// What becomes of the host's traffic while the bond cannot carry it.
    pub(crate) when_down: WhenDown,
    /// Networks that `block` lets the host reach outside the bond.
    pub(crate) block_allows: Vec<Cidr>,
    /// Whether a stop leaves `block` in force.
    pub(crate) block_stays: bool,
    /// Whether peers may measure the bond with this gateway, unless their section says otherwise.
    pub(crate) measure: bool,
    /// TCP port of the measuring service, on the TUN device.
    pub(crate) measure_port: u16,
    /// Where metrics are served over HTTP.
    pub(crate) metrics: Option<Located<SocketAddr>>,
    /// Whether other hosts may read them, as the file says.
    pub(crate) metrics_open: bool,
}

/// One `[[path]]`: a link over which this gateway opens a path to each peer that has an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PathConfig {
    /// The section's line.
    pub(crate) line: usize,
    /// Name for status and logs, at most 15 bytes.
    pub(crate) name: String,
    /// Interface that the path's socket is bound to; with a final `*`, every interface whose name
    /// begins so.
    pub(crate) interface: Option<Located<String>>,
    /// What stays of its interface when that gets another name.
    pub(crate) link: Option<Located<Identity>>,
    /// Local address that the path's socket is bound to.
    pub(crate) address: Option<Located<IpAddr>>,
    /// Price class; cheapest first.
    pub(crate) price: u8,
    /// Static weight for the `fixed` scheduler.
    pub(crate) weight: u16,
    /// Carries data only while no other link does.
    pub(crate) standby: bool,
    /// Each byte costs money: the link's paths sleep while the bond is idle.
    pub(crate) metered: bool,
    /// Its monthly allowance; a link that has spent it stands by.
    pub(crate) quota: Option<Quota>,
    /// Whether it is taken out.
    pub(crate) down: Down,
}

/// Whether a path is taken out, and by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Down {
    /// It is not.
    #[default]
    No,
    /// Its section says so.
    ByFile,
    /// Somebody asked the running gateway to.
    ByCommand,
}

impl Down {
    /// Why, in words, when it is taken out.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::ByFile => Some("down, as its section says"),
            Self::ByCommand => Some("down by command"),
        }
    }
}

/// Bytes that a link may carry in a month.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quota {
    /// Both directions together, at the IP layer.
    pub(crate) bytes: u64,
    /// First day of the month's count, 1 to 28, so that every month has it.
    pub(crate) first_day: u8,
}

impl Gateway {
    /// All UDP ports on which it listens, the first one first.
    pub(crate) fn listen_ports(&self) -> impl Iterator<Item = u16> + '_ {
        let first = self.listen_port.iter().map(|port| port.value);
        first.chain(self.more_ports.iter().copied().filter(|_| self.listen_port.is_some()))
    }
}

/// Reads `[gateway]`; `folder` is where relative file names start.
pub(super) fn read(mut section: Section<'_>, folder: &Path) -> Option<Gateway> {
    let mut said = file::Gateway::default();
    let wrong = option::read(GATEWAY, &mut section, &mut said);
    let private_key = if wrong.contains(&"private_key_file") {
        None
    } else {
        read_key(&section, "private_key_file", folder, &said.private_key_file)
    };
    let line = line_of(section.place());
    let listen_port = Located::maybe(&section, "listen_port", said.listen_port);
    let user = Located::maybe(&section, "user", said.user.take());
    let metrics = Located::maybe(&section, "metrics", said.metrics);
    file::check_gateway(&section, &said);
    section.finish();
    let (private_key_file, private_key) = private_key?;
    let private_key = PrivateKey::from_bytes(*private_key);
    Some(Gateway {
        line,
        public_key: private_key.public_key(),
        private_key,
        private_key_file,
        listen_port,
        more_ports: said.more_ports.clone().unwrap_or_default(),
        control_socket: folder.join(control_socket(&said)),
        state_file: folder.join(common::state_file_of(said.state_file.as_deref(), &said.tun)),
        user,
        tun: said.tun,
        addresses: said.address,
        mtu: said.mtu,
        routes: said.routes,
        sandbox: said.sandbox,
        allow_open_key_files: said.allow_open_key_files,
        forward: said.forward,
        nat: said.nat,
        return_by_bond: said.return_by_bond.unwrap_or_default(),
        when_down: said.when_down.unwrap_or_default(),
        block_allows: said.block_allows.into_iter().map(Cidr::network).collect(),
        block_stays: said.block_stays.unwrap_or_default(),
        measure: said.measure,
        measure_port: said.measure_port,
        metrics,
        metrics_open: said.metrics_open,
    })
}

fn control_socket(said: &file::Gateway) -> PathBuf {
    common::control_socket_of(said.control_socket.as_deref(), &said.tun).into()
}

/// The control socket's path, from a `[gateway]` whose other options may be wrong; `folder` is
/// where relative file names start.
pub(super) fn read_control_socket(mut section: Section<'_>, folder: &Path) -> PathBuf {
    let mut said = file::Gateway::default();
    option::read(SOCKET, &mut section, &mut said);
    folder.join(control_socket(&said))
}

/// Reads one `[[path]]`; `index` counts them from 0.
pub(super) fn read_path((index, mut section): (usize, Section<'_>)) -> PathConfig {
    let mut said = file::Path::default();
    option::read(PATH, &mut section, &mut said);
    file::check_path(&section, &said);
    let is_short = |name: &str| name.len() <= LinkConfig::NAME_BYTES_MAX;
    let by_address = || said.address.as_ref().map(IpAddr::to_string);
    let name = said
        .name
        .or_else(|| said.interface.clone())
        .or_else(|| said.link.as_ref().map(Identity::short_name).filter(|name| is_short(name)))
        .or_else(|| by_address().filter(|text| is_short(text)))
        .unwrap_or_else(|| format!("path{}", index + 1));
    let first_day = said.quota_day.unwrap_or(file::Path::QUOTA_DAY);
    let path = PathConfig {
        line: line_of(section.place()),
        name,
        interface: Located::maybe(&section, "interface", said.interface),
        link: Located::maybe(&section, "link", said.link),
        address: Located::maybe(&section, "address", said.address),
        price: said.price,
        weight: said.weight,
        standby: said.standby,
        metered: said.metered,
        quota: said.quota.map(|bytes| Quota { bytes, first_day }),
        down: if said.down { Down::ByFile } else { Down::No },
    };
    section.finish();
    path
}

/// Reads the key file that an option names.
pub(super) fn read_key(
    section: &Section<'_>,
    option: &str,
    folder: &Path,
    name: &str,
) -> Option<(Located<PathBuf>, Secret)> {
    let file = Located::option(section, option, folder.join(name));
    match key::read_file(&file.value) {
        Ok(key) => Some((file, key)),
        Err(problem) => {
            section.problem(option, problem);
            None
        }
    }
}

impl PathConfig {
    /// Whether it is a wildcard for interfaces.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.value.ends_with('*'))
    }

    /// Whether an interface of that name may serve the path, as far as names go.
    pub(crate) fn takes_interface(&self, name: &str) -> bool {
        let Some(interface) = &self.interface else { return true };
        match interface.value.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == interface.value,
        }
    }
}
