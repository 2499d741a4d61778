//! Makes the kernel's MPTCP use all links of this host: path-manager endpoints (RFC 8684 §3.2,
//! ip-mptcp(8)), limits, and routes by source address, for as long as it runs.
//!
//! - [`links`]: which addresses the links have now, and how one leaves from them
//! - [`wanted`]: what there should be
//! - [`found`]: what there is
//! - [`plan`]: the changes from one to the other, and what of them is to be undone; changes nothing
//! - [`change`]: one change, as a command of ip(8)
//! - [`follow`]: makes the changes, and again whenever links come and go

mod change;
mod follow;
mod found;
mod links;
mod plan;
mod wanted;

#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod plan_tests;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use plait_net::entry::open_file;
use plait_net::netlink::Netlink;
use serde::{Deserialize, Serialize};

use self::follow::Follower;
use self::found::Found;
use self::plan::Owned;
use self::wanted::Wanted;
use super::ip;
use super::kept::Kept;
use crate::advice::Advised;

/// Endpoints that the kernel takes, and subflows of a connection besides its first
/// (MPTCP_PM_ADDR_MAX of net/mptcp/protocol.h).
const KERNEL_MAX: u8 = 8;
/// Where the kernel tells of its MPTCP.
const SYSCTLS: &str = "/proc/sys/net/mptcp";

/// A link that connections may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EndpointLink {
    /// Its name, for logs.
    pub(crate) name: String,
    /// Its interface; with a final `*` every interface whose name begins so.
    pub(crate) interface: Option<String>,
    /// Its local address; otherwise one address of each family that the interface has.
    pub(crate) address: Option<IpAddr>,
    /// Carries data only while no other link does.
    pub(crate) backup: bool,
}

impl EndpointLink {
    /// The link of a `[[path]]`. `standby` is MPTCP's backup: both carry data only while no other
    /// link does. `price`, `weight`, `metered` and `quota` have no counterpart in the kernel.
    pub(crate) fn of(path: &plait_toml::gateway::Path) -> Self {
        let address = path.address.map(|address| address.to_string());
        let name = path.name.clone().or_else(|| path.interface.clone()).or(address);
        Self {
            name: name.unwrap_or_default(),
            interface: path.interface.clone(),
            address: path.address,
            backup: path.standby,
        }
    }
}

/// What this host is to MPTCP connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It opens them, and adds a subflow over each link.
    Client,
    /// Others open them and add subflows, as many as the kernel takes.
    Server {
        /// Whether clients are told the links' addresses, so that they add subflows to these.
        signal: bool,
    },
}

/// What is to be set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EndpointsConfig {
    /// The links. The first is the primary: connections should begin over it.
    pub(crate) links: Vec<EndpointLink>,
    /// What this host is.
    pub(crate) role: Role,
    /// First of the routing tables and of the rules' priorities.
    pub(crate) table: u32,
    /// Where it is written what a crash leaves to undo. Nothing else may use the file.
    pub(crate) state_file: PathBuf,
}

/// What is to be undone; in the state file.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct State {
    /// The first routing table of the run that wrote this.
    table: u32,
    owned: Owned,
}

/// Sets everything up and follows the links, until something can be read from `stop` or its other
/// end is closed. Then, and on every error, what was found before is put back.
///
/// # Errors
/// The kernel lacks MPTCP, or a program or a right is missing.
pub(crate) fn run(config: EndpointsConfig, stop: &UnixStream) -> Result<(), Advised> {
    check_kernel(Path::new(SYSCTLS))?;
    let _one_run_only = lock(&config.state_file)?;
    Follower::open(config)?.run(stop)
}

/// The commands that [`run`] would give now, as shell lines; nothing is changed.
///
/// # Errors
/// As [`run`].
pub(crate) fn dry_run(config: &EndpointsConfig) -> Result<String, Advised> {
    check_kernel(Path::new(SYSCTLS))?;
    let mut netlink = open_netlink()?;
    let mut kept: Kept<State> = Kept::open(&config.state_file);
    let found = Found::read(&mut netlink, config.table)?;
    kept.value.owned.begin(&found);
    let links = links::now(&config.links, &mut netlink, &found, &kept.value.owned)?;
    let wanted = Wanted::of(config, &links.ways, &found);
    let plan = plan::plan(&found, &wanted, &kept.value.owned);
    let mut text = String::new();
    for note in links.notes.iter().chain(&plan.notes) {
        let _ = writeln!(text, "# {note}");
    }
    for change in &plan.changes {
        let _ = writeln!(text, "{}", ip::shell(&change.arguments()));
    }
    Ok(text)
}

/// Puts back what a crashed run left changed, as its state file says. What other programs changed
/// meanwhile stays as they made it.
///
/// # Errors
/// A program or a right is missing.
pub(crate) fn undo_leftovers(state_file: &Path) -> Result<(), Advised> {
    let _one_run_only = lock(state_file)?;
    let mut kept: Kept<State> = Kept::open(state_file);
    if kept.value == State::default() {
        return Ok(());
    }
    follow::undo(&mut open_netlink()?, &mut kept)
}

fn open_netlink() -> Result<Netlink, Advised> {
    Netlink::open().map_err(|error| {
        Advised::new("cannot ask the kernel for its interfaces", "look at the cause")
            .caused_by(error)
    })
}

/// Keeps a second run from undoing what the first has set. The lock goes with the process.
fn lock(state_file: &Path) -> Result<fs::File, Advised> {
    let mut path = state_file.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let failed = |error: io::Error| {
        let help = "choose a `state_file` in a folder that this user may write";
        Advised::new(format!("cannot write {}", path.display()), help).caused_by(error)
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    // The folder may belong to a user with fewer rights: no link there is followed.
    let made = fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let file = match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_file(&path),
        made => made,
    };
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        Err(fs::TryLockError::WouldBlock) => {
            let message = format!("another run has {}", state_file.display());
            Err(Advised::new(message, "stop it, or give each its own `state_file` and `table`"))
        }
    }
}

/// Whether this kernel's own path manager can be told of endpoints.
fn check_kernel(folder: &Path) -> Result<(), Advised> {
    let read = |name| fs::read_to_string(folder.join(name)).ok();
    let Some(enabled) = read("enabled") else {
        let message = "the kernel has no MPTCP";
        let help = "use Linux 5.18 or later, built with CONFIG_MPTCP and CONFIG_MPTCP_IPV6";
        return Err(Advised::new(message, help));
    };
    if enabled.trim() == "0" {
        let help = "`sysctl -w net.mptcp.enabled=1`";
        return Err(Advised::new("net.mptcp.enabled is 0: the kernel's MPTCP is off", help));
    }
    if read("pm_type").is_some_and(|kind| kind.trim() == "1") {
        let message = "net.mptcp.pm_type is 1: a program manages the paths, not the kernel";
        let help = "stop that program (such as mptcpd) and `sysctl -w net.mptcp.pm_type=0`";
        return Err(Advised::new(message, help));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_mptcp_is_refused_with_a_remedy() {
        let name = format!("plait-mptcp-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let help = || check_kernel(&folder).err().map(|error| error.help().to_owned());
        assert!(help().unwrap().contains("CONFIG_MPTCP"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("enabled"), "0\n").unwrap();
        assert!(help().unwrap().contains("net.mptcp.enabled=1"));
        fs::write(folder.join("enabled"), "1\n").unwrap();
        assert_eq!(help(), None);
        fs::write(folder.join("pm_type"), "1\n").unwrap();
        assert!(help().unwrap().contains("pm_type=0"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_on_standby_is_a_backup() {
        let path = plait_toml::gateway::Path {
            interface: Some("wwan*".into()),
            standby: true,
            ..plait_toml::gateway::Path::default()
        };
        let link = EndpointLink::of(&path);
        assert_eq!((link.name.as_str(), link.backup), ("wwan*", true));
    }

    #[test]
    fn a_state_file_serves_one_run() {
        let name = format!("plait-endpoints-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        let first = lock(&path).unwrap();
        assert!(lock(&path).unwrap_err().to_string().contains("another run"));
        drop(first);
        assert!(lock(&path).is_ok());
        fs::remove_file(format!("{}.lock", path.display())).unwrap();
    }
}
