//! Facts about this machine that decide what plait can do here. Only reads, changes nothing.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::str::FromStr;

use crate::rights::{CAP_NET_ADMIN, has_capability};
use crate::sys;
use crate::tun::TUN_DEVICE;

/// The device node that TUN interfaces are made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunDevice {
    /// There is no node.
    Missing,
    /// There is one.
    Present {
        /// Its permission bits.
        mode: u32,
        /// Whether this process may open it and a driver answers.
        openable: bool,
    },
}

/// Whether an unprivileged process may make a user namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UserNamespaces {
    /// Nothing forbids it.
    Allowed,
    /// The kernel has none.
    Missing,
    /// A sysctl forbids it.
    Forbidden {
        /// The sysctl's file.
        sysctl: &'static str,
    },
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The TUN device node.
    pub tun: TunDevice,
    /// User namespaces.
    pub user_namespaces: UserNamespaces,
    /// Effective user id.
    pub uid: u32,
    /// Whether CAP_NET_ADMIN is effective.
    pub net_admin: bool,
    /// Whether the processor does AES; without it ChaCha20 is faster.
    pub aes: bool,
    /// The kernel's release, such as `6.18.0`.
    pub kernel_release: String,
    /// net.core.rmem_max: bytes of receive buffer for an unprivileged process.
    pub rmem_max: Option<u64>,
    /// net.core.wmem_max: bytes of send buffer for an unprivileged process.
    pub wmem_max: Option<u64>,
}

impl Machine {
    /// Looks at this machine.
    pub fn inspect() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            tun: tun_device(),
            user_namespaces: user_namespaces(read_number),
            uid: sys::process::effective_uid(),
            net_admin: has_capability(&status, CAP_NET_ADMIN),
            aes: has_aes(),
            kernel_release: sys::process::kernel_release(),
            rmem_max: read_number("/proc/sys/net/core/rmem_max"),
            wmem_max: read_number("/proc/sys/net/core/wmem_max"),
        }
    }
}

/// Fills `bytes` from the kernel's generator (getrandom(2)).
///
/// # Errors
/// The kernel has none; `WouldBlock` when it has none yet, which may be so while a machine starts.
pub fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    sys::process::fill_random(bytes)
}

/// Blocks until the kernel's generator has gathered enough, maybe for ever; by that the kernel sets
/// about it (getrandom(2)).
pub fn await_random() {
    sys::process::await_random();
}

/// Whether an interface has this name, or has it as an alternative one, in the calling thread's
/// network namespace.
pub fn is_interface_name(name: &str) -> bool {
    CString::new(name).is_ok_and(|name| sys::process::has_interface(&name))
}

fn tun_device() -> TunDevice {
    match fs::metadata(TUN_DEVICE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => TunDevice::Missing,
        metadata => {
            let mode = metadata.map_or(0, |data| data.permissions().mode() & 0o7777);
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(TUN_DEVICE);
            TunDevice::Present { mode, openable: opened.is_ok() }
        }
    }
}

/// Reads the sysctls of the kernel and of distributions; `read` gives a file's number.
fn user_namespaces(read: impl Fn(&str) -> Option<u64>) -> UserNamespaces {
    const LIMIT: &str = "/proc/sys/user/max_user_namespaces";
    const DEBIAN: &str = "/proc/sys/kernel/unprivileged_userns_clone";
    const APPARMOR: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    match read(LIMIT) {
        None => return UserNamespaces::Missing,
        Some(0) => return UserNamespaces::Forbidden { sysctl: LIMIT },
        Some(_) => {}
    }
    if read(DEBIAN) == Some(0) {
        return UserNamespaces::Forbidden { sysctl: DEBIAN };
    }
    if read(APPARMOR) == Some(1) {
        return UserNamespaces::Forbidden { sysctl: APPARMOR };
    }
    UserNamespaces::Allowed
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

fn read_number<T: FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_effective_set() {
        let status = "CapPrm:\tffffffffffffffff\nCapEff:\t0000000000001000\nCapBnd:\t0\n";
        assert!(has_capability(status, 12));
        assert!(!has_capability(status, 13));
        assert!(!has_capability("", 12));
        assert!(!has_capability("CapEff:\tnonsense", 12));
    }

    #[test]
    fn the_sysctl_that_forbids_is_named() {
        let allowed = [("/proc/sys/user/max_user_namespaces", 9)];
        let with = |more: &[(&'static str, u64)]| {
            let all: Vec<_> = more.iter().chain(&allowed).copied().collect();
            user_namespaces(|path| {
                all.iter().find(|(name, _)| *name == path).map(|(_, value)| *value)
            })
        };
        assert_eq!(with(&[]), UserNamespaces::Allowed);
        for (sysctl, value) in [
            ("/proc/sys/user/max_user_namespaces", 0),
            ("/proc/sys/kernel/unprivileged_userns_clone", 0),
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1),
        ] {
            assert_eq!(with(&[(sysctl, value)]), UserNamespaces::Forbidden { sysctl });
        }
        assert_eq!(user_namespaces(|_| None), UserNamespaces::Missing);
    }

    #[test]
    fn this_machine_agrees_with_proc() {
        let machine = Machine::inspect();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(machine.kernel_release, release.trim());
        assert!(machine.rmem_max.is_none_or(|bytes| bytes >= 4096));
    }
}
