//! Router advertisements on a host that forwards.
//!
//! A host that forwards IPv6 ignores router advertisements (RFC 4861 section 6.2.1), and Linux
//! drops the default routes learned from them as soon as forwarding is switched on, unless
//! `accept_ra` of the interface is 2. Links that depend on advertisements would be lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plait_net::netlink::{Netlink, NetlinkError};

use super::state::StateFile;
use crate::config::Config;

/// Folder of the interfaces' sysctls.
const INTERFACES: &str = "/proc/sys/net/ipv6/conf";
const ACCEPT_RA: &str = "accept_ra";
/// Values of `accept_ra`: accept unless the host forwards, and always accept.
const AS_HOST: &str = "1";
const ALWAYS: &str = "2";

/// Makes the host keep accepting advertisements although it forwards: on these interfaces, and on
/// those with an advertised default route. Call it before forwarding is switched on. A failure is
/// logged: the host forwards nevertheless.
pub(super) fn keep(file: &mut StateFile, links: &[String]) {
    let mut names = by_advertised_default().unwrap_or_else(|error| {
        log::warn!("{error}: {}; a default route by advertisement may be lost", error.source);
        Vec::new()
    });
    names.extend(links.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    keep_on(file, names.iter().map(String::as_str));
}

/// The same for these interfaces only, such as for a link that has just appeared.
pub(super) fn keep_on<'a>(file: &mut StateFile, interfaces: impl Iterator<Item = &'a str>) {
    for name in interfaces {
        let sysctl = sysctl(name);
        if !fs::read_to_string(&sysctl).is_ok_and(|value| value.trim() == AS_HOST) {
            continue;
        }
        file.state.sysctls.insert(sysctl.clone(), AS_HOST.into());
        file.save();
        match fs::write(&sysctl, ALWAYS) {
            Ok(()) => log::info!("{} is set to {ALWAYS}", sysctl.display()),
            Err(error) => log::warn!(
                "{} stays {AS_HOST}: {error}; {name} loses what router advertisements give it \
                 (set it to {ALWAYS} outside of plait)",
                sysctl.display()
            ),
        }
    }
}

/// Whether a file is such a sysctl of an interface.
pub(super) fn is_known(file: &Path) -> bool {
    let name = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.is_some_and(|name| name != ".." && file == sysctl(name))
}

fn sysctl(interface: &str) -> PathBuf {
    Path::new(INTERFACES).join(interface).join(ACCEPT_RA)
}

fn by_advertised_default() -> Result<Vec<String>, NetlinkError> {
    let mut netlink = Netlink::open()?;
    let indexes = netlink.advertised_defaults()?;
    let links = netlink.links()?.into_iter();
    Ok(links.filter(|link| indexes.contains(&link.index)).map(|link| link.name).collect())
}

/// The interfaces that the configured paths may use now.
pub(super) fn links_of(config: &Config) -> Vec<String> {
    let interfaces = Netlink::open().and_then(|mut netlink| netlink.interfaces());
    let all = interfaces.unwrap_or_else(|error| {
        log::warn!("{error}: {}; links may lose their router advertisements", error.source);
        Vec::new()
    });
    let links = all.into_iter().filter(|known| config.may_use(known));
    links.map(|link| link.name).collect()
}

/// Whether a sysctl could not be put back only because its interface is gone.
pub(super) fn is_gone(file: &Path, error: &io::Error) -> bool {
    is_known(file) && error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sysctls_of_this_kind_are_known() {
        assert!(is_known(&sysctl("eth0.7")));
        for other in [
            "/proc/sys/net/ipv6/conf/eth0/forwarding",
            "/proc/sys/net/ipv6/conf/../accept_ra",
            "/proc/sys/net/ipv6/conf/a/../accept_ra",
            "/proc/sys/net/ipv6/conf/accept_ra",
            "/tmp/eth0/accept_ra",
            "accept_ra",
        ] {
            assert!(!is_known(Path::new(other)), "{other}");
        }
    }
}
