//! How this host's resolver is told of name servers: by what runs here.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plait_net::rights::{effective_user, may_write};
use plait_toml::dns::Domain;
use serde::{Deserialize, Serialize};

use super::file::{self, RESOLV_CONF, marked_by};
use super::program::{find, run};

/// What systemd-resolved keeps while it runs.
const RESOLVED: &str = "/run/systemd/resolve";
/// The resolver that it is for other programs.
const RESOLVED_STUB: &str = "127.0.0.53";

/// What is told to a resolver.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::daemon) struct Servers {
    pub(in crate::daemon) servers: Vec<IpAddr>,
    /// As words: `.` stands for all names.
    pub(in crate::daemon) domains: Vec<String>,
}

impl Servers {
    fn is_for_all(&self) -> bool {
        self.domains.iter().any(|domain| domain == ".")
    }
}

/// How the resolver is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// By resolvectl(1).
    SystemdResolved,
    /// By openresolv's resolvconf(8).
    Openresolv,
    /// By the older program of this name.
    Resolvconf,
    /// By the file itself.
    ResolvConf,
}

/// Nobody here can be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoWay {
    #[error("systemd-resolved serves this host, and its program resolvectl is missing")]
    NoResolvectl,
    #[error("{RESOLV_CONF} leads to {}: another program manages it", .0.display())]
    Managed(PathBuf),
    #[error("{RESOLV_CONF} cannot be read: {0}")]
    NoFile(io::Error),
    #[error("{RESOLV_CONF} belongs to the gateway of {0}")]
    Taken(String),
    #[error("the folder of {RESOLV_CONF} may not be written")]
    MayNotWrite,
    #[error("resolvconf needs root")]
    NotRoot,
    #[error("{0} cannot ask some servers for some domains only")]
    CannotSplit(&'static str),
}

impl NoWay {
    /// The remedy.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::NoResolvectl => "install it (it comes with systemd-resolved)".into(),
            Self::Managed(_) => {
                "install systemd-resolved or openresolv, or set the name servers in that program \
                 and remove [dns]"
                    .into()
            }
            Self::NoFile(_) => format!("make it: touch {RESOLV_CONF}"),
            Self::Taken(tun) => format!(
                "stop that gateway, or, if it is gone, `plait unblock {tun}`; a host has one [dns]"
            ),
            Self::MayNotWrite => {
                "run the gateway as root (`plait up`), or install systemd-resolved, which takes \
                 orders from the service, too"
                    .into()
            }
            Self::NotRoot => {
                "run the gateway as root, or install systemd-resolved, which takes orders from \
                 the service, too"
                    .into()
            }
            Self::CannotSplit(_) => {
                "install systemd-resolved or openresolv, or remove `domains`".into()
            }
        }
    }
}

/// Finds the way by which this host can be told; nothing is changed.
///
/// # Errors
/// There is none, with the remedy.
pub(crate) fn find_way(tun: &str, domains: &[Domain]) -> Result<Way, NoWay> {
    let is_for_all = domains.iter().any(Domain::is_root);
    let is_root = effective_user() == 0;
    let leads_to = fs::canonicalize(RESOLV_CONF).ok();
    let text = file::read(Path::new(RESOLV_CONF)).unwrap_or_default();
    let marker = marked_by(&text);
    if is_resolved_asked(leads_to.as_deref(), &text) {
        return find("resolvectl").map(|_| Way::SystemdResolved).ok_or(NoWay::NoResolvectl);
    }
    let resolvconf = find("resolvconf").and_then(|program| fs::canonicalize(program).ok());
    // Another name of resolvectl, which serves nobody here.
    let is_real = |program: &PathBuf| program.file_name().is_none_or(|name| name != "resolvectl");
    if resolvconf.is_some_and(|program| is_real(&program)) {
        return match run("resolvconf", &["--version"], "") {
            _ if !is_root => Err(NoWay::NotRoot),
            Ok(said) if said.contains("openresolv") => Ok(Way::Openresolv),
            _ if !is_for_all => Err(NoWay::CannotSplit("this resolvconf")),
            _ => Ok(Way::Resolvconf),
        };
    }
    let found = fs::symlink_metadata(RESOLV_CONF).map_err(NoWay::NoFile)?;
    match (leads_to, marker) {
        (target, _) if !found.is_file() => {
            Err(NoWay::Managed(target.unwrap_or_else(|| RESOLV_CONF.into())))
        }
        (_, Some(other)) if other != tun => Err(NoWay::Taken(other)),
        _ if !is_for_all => Err(NoWay::CannotSplit(RESOLV_CONF)),
        _ if !is_root || !may_write(Path::new("/etc")) => Err(NoWay::MayNotWrite),
        _ => Ok(Way::ResolvConf),
    }
}

/// Whether programs here ask systemd-resolved.
fn is_resolved_asked(leads_to: Option<&Path>, text: &[u8]) -> bool {
    let asks_stub = String::from_utf8_lossy(text).lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("nameserver") && words.next() == Some(RESOLVED_STUB)
    });
    Path::new(RESOLVED).is_dir()
        && (asks_stub || leads_to.is_some_and(|target| target.starts_with(RESOLVED)))
}

impl Way {
    const ALL: [Self; 4] =
        [Self::SystemdResolved, Self::Openresolv, Self::Resolvconf, Self::ResolvConf];

    /// A word for programs.
    pub(super) fn word(self) -> String {
        let word = match self {
            Self::SystemdResolved => "systemd-resolved",
            Self::Openresolv => "openresolv",
            Self::Resolvconf => "resolvconf",
            Self::ResolvConf => "file",
        };
        word.to_owned()
    }

    /// The way of this word.
    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.word() == word)
    }

    /// In words.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::SystemdResolved => "systemd-resolved",
            Self::Openresolv => "openresolv",
            Self::Resolvconf => "resolvconf",
            Self::ResolvConf => RESOLV_CONF,
        }
    }

    /// Has the host ask these servers through the device.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(super) fn tell(self, tun: &str, told: &Servers) -> Result<(), String> {
        let servers: Vec<String> = told.servers.iter().map(ToString::to_string).collect();
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        match self {
            Self::SystemdResolved => {
                let routes = told.domains.iter().map(|domain| format!("~{domain}"));
                let routes: Vec<String> = routes.collect();
                let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
                let is_default = if told.is_for_all() { "yes" } else { "no" };
                run("resolvectl", &[&["dns", tun], &servers[..]].concat(), "")?;
                run("resolvectl", &[&["domain", tun], &routes[..]].concat(), "")?;
                run("resolvectl", &["default-route", tun, is_default], "")?;
            }
            Self::Openresolv | Self::Resolvconf => {
                let mut text: String =
                    servers.iter().map(|server| format!("nameserver {server}\n")).collect();
                let name = entry_of(tun);
                let mut arguments = vec!["-a", &name];
                if self == Self::Openresolv && told.is_for_all() {
                    // Before all others, and these alone.
                    arguments.extend(["-m", "0", "-x"]);
                } else if self == Self::Openresolv {
                    // For these domains only.
                    text.push_str(&format!("domain {}\n", told.domains.join(" ")));
                    arguments.push("-p");
                }
                run("resolvconf", &arguments, &text)?;
            }
            Self::ResolvConf => {
                file::replace(Path::new(RESOLV_CONF), tun, &told.servers)
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Has the host ask whom it asked before.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(super) fn take_back(self, tun: &str) -> Result<(), String> {
        match self {
            Self::SystemdResolved => run("resolvectl", &["revert", tun], "").map(drop),
            Self::Openresolv | Self::Resolvconf => {
                run("resolvconf", &["-d", &entry_of(tun)], "").map(drop)
            }
            Self::ResolvConf => file::restore(Path::new(RESOLV_CONF), tun)
                .map(drop)
                .map_err(|error| error.to_string()),
        }
    }

    /// Whether what was told outlives the device.
    pub(super) fn outlives_device(self) -> bool {
        self != Self::SystemdResolved
    }
}

/// The name under which resolvconf knows a device's servers.
pub(super) fn entry_of(tun: &str) -> String {
    format!("{tun}{ENTRY}")
}

/// Ends the names of plait's entries.
pub(super) const ENTRY: &str = ".plait";
