//! `[gateway]` and `[[path]]`: this end of the bond.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use plait_proto::config::LinkConfig;
use plait_proto::session::{PrivateKey, PublicKey};
use plait_toml::{Problem, Section};

use super::error::{Conflict, ValueProblem};
use super::key::{self, Secret};
use super::located::{Located, line_of};
use super::nat::{self, Nat};
use super::prefix::Cidr;
use super::quota::{self, Quota};

/// Longest name of an interface (Linux: IFNAMSIZ less the final zero) and of a path, in bytes.
const NAME_BYTES_MAX: usize = LinkConfig::NAME_BYTES_MAX;

/// `[gateway]`.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// The section's line.
    pub(crate) line: usize,
    /// This gateway's identity.
    pub(crate) private_key: PrivateKey,
    /// The public half of it.
    pub(crate) public_key: PublicKey,
    /// Where the private key was read.
    pub(crate) private_key_file: Located<PathBuf>,
    /// UDP port on all addresses, for peers that call.
    pub(crate) listen_port: Option<Located<u16>>,
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
    /// What outlives the daemon: quotas, addresses, what is to be undone.
    pub(crate) state_file: PathBuf,
    /// Whom the daemon becomes once all is set up.
    pub(crate) user: Option<Located<String>>,
    /// Whether the daemon puts files and system calls that it does not need out of its reach.
    pub(crate) sandbox: bool,
    /// Whether key files may be such as others can read or write.
    pub(crate) allow_open_key_files: bool,
    /// Whether the host is made to forward packets while the gateway runs.
    pub(crate) forward: bool,
    /// Where inner addresses are hidden behind the host's own.
    pub(crate) nat: Nat,
    /// Whether peers may measure the bond with this gateway, unless their section says otherwise.
    pub(crate) measure: bool,
    /// TCP port of the measuring service, on the TUN device.
    pub(crate) measure_port: u16,
}

/// One `[[path]]`: a link over which this gateway opens a path to each peer that has an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PathConfig {
    /// The section's line.
    pub(crate) line: usize,
    /// Name for status and logs, at most 15 bytes.
    pub(crate) name: String,
    /// Interface that the path's socket is bound to; ends in `*` when it stands for every interface
    /// whose name begins so.
    pub(crate) interface: Option<Located<String>>,
    /// Local address that the path's socket is bound to.
    pub(crate) address: Option<Located<IpAddr>>,
    /// Price class; cheapest first.
    pub(crate) price: u8,
    /// Static weight for the `fixed` scheduler.
    pub(crate) weight: u16,
    /// Carries data only while no other link does.
    pub(crate) standby: bool,
    /// Each byte costs: the link's paths sleep while the bond is idle.
    pub(crate) metered: bool,
    /// Its monthly allowance; a link that has spent it stands by.
    pub(crate) quota: Option<Quota>,
}

/// Reads `[gateway]`; `folder` is where relative file names start.
pub(super) fn read(mut section: Section<'_>, folder: &Path) -> Option<Gateway> {
    let line = line_of(section.place());
    let private_key = read_key(&mut section, "private_key_file", folder);
    if !section.holds_any(&["private_key_file"]) {
        section.missing("private_key_file", "private_key_file = \"gateway.key\"");
    }
    let listen_port = section.integer("listen_port", (1, 65_535), "");
    let listen_port = listen_port.map(|port| Located::option(&section, "listen_port", port));
    let tun = tun_name(&mut section);
    let addresses = section.parsed_texts("address", cidr);
    let mtu = section.integer("mtu", (516, 9000), "bytes");
    let routes = section.boolean("routes").unwrap_or(false);
    let control_socket = control_socket(&mut section, &tun);
    let state_file = match section.text("state_file") {
        Some(file) => folder.join(file),
        None => Path::new("/var/lib/plait").join(format!("{tun}.json")),
    };
    let user = section.parsed("user", user_name);
    let user = user.map(|user| Located::option(&section, "user", user));
    let sandbox = section.boolean("sandbox").unwrap_or(true);
    let allow_open_key_files = section.boolean("allow_open_key_files").unwrap_or(false);
    let forward = section.boolean("forward").unwrap_or(false);
    let nat = nat::read(&mut section);
    let measure = section.boolean("measure").unwrap_or(false);
    let measure_port = section.integer("measure_port", (1, 65_535), "");
    section.finish();
    let (private_key_file, private_key) = private_key?;
    let private_key = PrivateKey::from_bytes(*private_key);
    Some(Gateway {
        line,
        public_key: private_key.public_key(),
        private_key,
        private_key_file,
        listen_port,
        tun,
        addresses: addresses.into_iter().map(|(address, _)| address).collect(),
        mtu,
        routes,
        control_socket,
        state_file,
        user,
        sandbox,
        allow_open_key_files,
        forward,
        nat,
        measure,
        measure_port: measure_port.unwrap_or(crate::measure::PORT),
    })
}

/// The TUN device's name.
pub(super) fn tun_name(section: &mut Section<'_>) -> String {
    section.parsed("tun", device_name).unwrap_or_else(|| "plait0".into())
}

/// The control socket's path.
pub(super) fn control_socket(section: &mut Section<'_>, tun: &str) -> PathBuf {
    match section.text("control_socket") {
        Some(path) => path.into(),
        None => Path::new("/run/plait").join(format!("{tun}.sock")),
    }
}

/// Reads one `[[path]]`; `index` counts them from 0.
pub(super) fn read_path((index, mut section): (usize, Section<'_>)) -> Option<PathConfig> {
    let line = line_of(section.place());
    let interface = section.parsed("interface", interface_pattern);
    let interface = interface.map(|name| Located::option(&section, "interface", name));
    let address = section.parsed("address", |text| {
        let problem = || ValueProblem::Address { value: text.into(), cidr: false };
        text.parse::<IpAddr>().map_err(|_| problem().into())
    });
    let address = address.map(|address| Located::option(&section, "address", address));
    let name = section.parsed("name", |text| {
        let too_long = || ValueProblem::NameTooLong { value: text.into() };
        if text.len() > NAME_BYTES_MAX { Err(too_long().into()) } else { Ok(text.to_owned()) }
    });
    let price = section.integer("price", (0, 255), "").unwrap_or(0);
    let weight = section.integer("weight", (1, 65_535), "").unwrap_or(1);
    let standby = section.boolean("standby").unwrap_or(false);
    let metered = section.boolean("metered").unwrap_or(false);
    let quota = quota::read(&mut section);
    if section.is_present() && !section.holds_any(&["interface", "address"]) {
        section.problem("", Conflict::UnboundPath);
    }
    section.finish();
    let by_address = || address.as_ref().map(|address| address.value.to_string());
    let name = name
        .or_else(|| interface.as_ref().map(|interface| interface.value.clone()))
        .or_else(|| by_address().filter(|text| text.len() <= NAME_BYTES_MAX))
        .unwrap_or_else(|| format!("path{}", index + 1));
    Some(PathConfig { line, name, interface, address, price, weight, standby, metered, quota })
}

/// Reads the key file that an option names.
pub(super) fn read_key(
    section: &mut Section<'_>,
    option: &'static str,
    folder: &Path,
) -> Option<(Located<PathBuf>, Secret)> {
    let name = section.text(option)?;
    let file = Located::option(section, option, folder.join(name));
    match key::read_file(&file.value) {
        Ok(key) => Some((file, key)),
        Err(problem) => {
            section.problem(option, problem);
            None
        }
    }
}

/// An address that a device can have with its prefix length, both written out.
fn cidr(text: &str) -> Result<Cidr, Problem> {
    let problem = || ValueProblem::Address { value: text.into(), cidr: true };
    let written_out = text.contains('/');
    let value = Cidr::parse(text).filter(|_| written_out).ok_or_else(problem)?;
    let address = value.address;
    let unusable = address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address == IpAddr::V4(Ipv4Addr::BROADCAST)
        || address != address.to_canonical();
    if unusable { Err(ValueProblem::NoHostAddress { value }.into()) } else { Ok(value) }
}

/// A name, or the beginning of names followed by `*`.
fn interface_pattern(text: &str) -> Result<String, Problem> {
    match text.split_once('*') {
        None => interface_name(text),
        Some((start, "")) if !start.is_empty() => {
            interface_name(start)?;
            Ok(text.to_owned())
        }
        Some(_) => Err(ValueProblem::BadPattern { value: text.into() }.into()),
    }
}

/// A name as `useradd` takes it.
pub(crate) fn user_name(text: &str) -> Result<String, Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > 32 || text.starts_with('-') || !text.chars().all(allowed) {
        let help = "write the name of a user of this machine, as in \"plait\"";
        return Err(Problem::new(format!("\"{text}\" is not a user's name"), help));
    }
    Ok(text.to_owned())
}

/// A name that a new device can have. A colon is for the labels of addresses, and two names for
/// what the sysctls of all devices are called (`/proc/sys/net/ipv4/conf/all`).
pub(crate) fn device_name(text: &str) -> Result<String, Problem> {
    let name = interface_name(text)?;
    match name.as_str() {
        "all" | "default" => Err(ValueProblem::ReservedName { value: name }.into()),
        _ if name.contains(':') => Err(ValueProblem::BadName { value: name }.into()),
        _ => Ok(name),
    }
}

/// A name that an interface can have.
pub(crate) fn interface_name(text: &str) -> Result<String, Problem> {
    if text.len() > NAME_BYTES_MAX {
        return Err(ValueProblem::NameTooLong { value: text.into() }.into());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(allowed) {
        return Err(ValueProblem::BadName { value: text.into() }.into());
    }
    Ok(text.to_owned())
}

impl PathConfig {
    /// Whether it stands for every interface whose name begins alike.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.value.ends_with('*'))
    }

    /// Whether an interface of that name may serve the path.
    pub(crate) fn takes_interface(&self, name: &str) -> bool {
        let Some(interface) = &self.interface else { return true };
        match interface.value.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == interface.value,
        }
    }
}
