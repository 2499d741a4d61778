//! What all of the daemon's policy routing has in common, and the reverse-path filter, which is in
//! its way.

use std::fs;
use std::io;
use std::net::IpAddr;

use plait_net::netlink::NetlinkError;
use plait_net::netlink::policy::Family;

/// Number of plait's rules and routes (`protocol` of rtnetlink(7)).
pub(super) const PROTOCOL: u8 = 112;
/// Before the table `main`, after what is usually put before it.
pub(super) const PRIORITY: u32 = 30_112;
/// The errors of what is there already, of removing a rule and of removing a route that is not
/// there, and of a route without a device that is up.
const EEXIST: i32 = 17;
const ENOENT: i32 = 2;
const ESRCH: i32 = 3;
/// A reverse-path filter that takes packets whose source has any route (RFC 3704), and one that
/// takes only those that came by the way back.
const LOOSE: &str = "2";
const STRICT: &str = "1";
/// Folder of the interfaces' sysctls.
const INTERFACES: &str = "/proc/sys/net/ipv4/conf";

/// What is there already was added.
///
/// # Errors
/// Any other.
pub(super) fn added(result: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    match result {
        Err(error) if error.errno() == Some(EEXIST) => Ok(()),
        result => result,
    }
}

/// What is not there was removed: somebody else, or the kernel with the link, may have done it.
pub(super) fn removed(result: Result<(), NetlinkError>) {
    match result {
        Err(error) if ![Some(ENOENT), Some(ESRCH)].contains(&error.errno()) => {
            log::warn!("{error}: {}", error.source);
        }
        _ => {}
    }
}

/// The destination of a family's default route.
pub(super) fn everywhere(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([0_u8; 4]),
        Family::V6 => IpAddr::from([0_u8; 16]),
    }
}

/// The family's name.
pub(super) fn name_of(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// Has an interface take packets from everywhere.
pub(super) fn take_from_everywhere(interface: &str) {
    if let Err(error) = set_filter(interface, LOOSE) {
        log::warn!(
            "rp_filter of {interface} is not set to {LOOSE}: {error}; a strict filter drops what \
             comes"
        );
    }
}

/// Whether the interface's filter, or that of all, is strict, as far as its own decides.
pub(super) fn is_filter_strict(interface: &str) -> bool {
    let of = |name: &str| fs::read_to_string(format!("{INTERFACES}/{name}/rp_filter"));
    let is = |name: &str, value| of(name).is_ok_and(|text| text.trim() == value);
    // The kernel obeys the larger of both.
    (is(interface, STRICT) || is("all", STRICT)) && !is(interface, LOOSE) && !is("all", LOOSE)
}

/// The interface's own filter; `None` when there is no such interface any more.
pub(super) fn filter_of(interface: &str) -> Option<String> {
    let text = fs::read_to_string(format!("{INTERFACES}/{interface}/rp_filter")).ok()?;
    Some(text.trim().to_owned())
}

/// Sets it.
///
/// # Errors
/// It may not be set, or there is no such interface.
pub(super) fn set_filter(interface: &str, value: &str) -> io::Result<()> {
    // A name from the state file must not lead elsewhere.
    if interface.contains('/') || interface.starts_with('.') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    fs::write(format!("{INTERFACES}/{interface}/rp_filter"), value)
}
