//! Giving up rights that are not needed any more (capabilities(7)).

mod ask;

use std::io;
use std::os::fd::AsFd;

pub use self::ask::{CannotBecome, can_become, may_write};
use crate::sys::process;
use crate::sys::rights as sys;
use crate::sys::socket;

/// Setting up network devices, addresses, routes, packet filters; large socket buffers.
pub const CAP_NET_ADMIN: u32 = 12;
/// Binding sockets to interfaces.
pub const CAP_NET_RAW: u32 = 13;
/// More capabilities than any kernel has.
const CAPABILITIES_MAX: u32 = 64;
const EINVAL: i32 = 22;
const EPERM: i32 = 1;

/// Whom to become: a user and its group, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserId {
    /// The user.
    pub uid: u32,
    /// Its one group.
    pub gid: u32,
}

/// The user as which this process acts.
pub fn effective_user() -> u32 {
    process::effective_uid()
}

/// The user at the other end of a Unix socket (`SO_PEERCRED` of unix(7)).
///
/// # Errors
/// The kernel's.
pub fn user_behind(socket: impl AsFd) -> io::Result<u32> {
    Ok(socket::peer(socket.as_fd())?.uid)
}

/// The process at the other end of a Unix socket; 0 when it has no number in this namespace.
///
/// # Errors
/// The kernel's.
pub fn process_behind(socket: impl AsFd) -> io::Result<u32> {
    Ok(u32::try_from(socket::peer(socket.as_fd())?.pid).unwrap_or(0))
}

/// Keeps this process's memory from core dumps and from other processes of the same user. Call it
/// before there are secrets. It stays so after becoming another user.
///
/// # Errors
/// The kernel's.
pub fn keep_memory_private() -> io::Result<()> {
    sys::set_not_dumpable()?;
    sys::forbid_cores()
}

/// Raises the number of files that this process may have open to `wanted`, or as far as it may, and
/// returns how many that are.
///
/// # Errors
/// The kernel's.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    sys::raise_open_files(wanted)
}

/// The rights that are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Capabilities held, a bit each.
    pub capabilities: u64,
    /// Whether programs started from here can hold no others.
    pub bounded: bool,
    /// Whether programs started from here hold these too, whoever the user is.
    pub inherited: bool,
}

impl Kept {
    /// Whether a capability is left.
    pub const fn holds(&self, capability: u32) -> bool {
        self.capabilities & (1 << capability) != 0
    }
}

/// Keeps those of `capabilities` that the calling thread holds, gives up all others and becomes
/// `user`, if one is given. Programs started later hold the same. Threads started later do too, but
/// not those that run already: call it before there are any.
///
/// # Errors
/// The kernel's. EPERM when becoming the user is not allowed.
pub fn keep_only(capabilities: &[u32], user: Option<UserId>) -> io::Result<Kept> {
    let wanted = capabilities.iter().fold(0, |set, capability| set | 1_u64 << capability);
    let kept = sys::permitted()? & wanted;
    let bounded = bound(kept)?;
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    if let Some(UserId { uid, gid }) = user.filter(|user| !ask::is_already(&status, *user)) {
        sys::become_user(uid, gid)?;
    }
    sys::set_capabilities(kept)?;
    let mut held = capabilities.iter().filter(|capability| kept & (1 << **capability) != 0);
    let inherited = held.all(|capability| sys::raise_ambient(*capability).is_ok());
    sys::set_no_new_privileges()?;
    Ok(Kept { capabilities: kept, bounded, inherited })
}

/// Takes everything beyond `kept` out of the bounding set; says whether that was allowed.
fn bound(kept: u64) -> io::Result<bool> {
    for capability in (0..CAPABILITIES_MAX).filter(|capability| kept & (1 << capability) == 0) {
        match sys::drop_from_bounding_set(capability).map_err(|error| error.raw_os_error()) {
            Ok(()) => {}
            // The kernel has no capability from this number on.
            Err(Some(EINVAL)) => return Ok(true),
            Err(Some(EPERM)) => return Ok(false),
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(true)
}

/// Whether `capability` is in the effective set of a /proc/PID/status text.
pub(crate) fn has_capability(status: &str, capability: u32) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set & (1 << capability) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(status: &str, name: &str) -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn who_is_behind_a_socket_is_told() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(user_behind(&socket).unwrap(), effective_user());
        // Nobody, as the kernel says it.
        let lone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(user_behind(&lone).unwrap(), u32::MAX);
    }

    #[test]
    fn a_thread_keeps_no_more_than_it_asks_for() {
        // Capabilities belong to threads: the others of this process keep theirs.
        std::thread::spawn(|| {
            let before = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let kept = keep_only(&[CAP_NET_RAW], None).unwrap();
            let after = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let expected = field(&before, "CapPrm:") & (1 << CAP_NET_RAW);
            assert_eq!(kept.capabilities, expected);
            assert_eq!(kept.holds(CAP_NET_RAW), expected != 0);
            assert!(!kept.holds(CAP_NET_ADMIN));
            for set in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
                assert_eq!(field(&after, set), expected, "{set}");
            }
            if kept.bounded {
                assert_eq!(field(&after, "CapBnd:") & !expected, 0);
            }
            assert_eq!(field(&after, "NoNewPrivs:"), 1);
        })
        .join()
        .unwrap();
    }
}
