//! Calls that give up rights permanently.

use std::ffi::CStr;
use std::io;

use libc::{c_int, c_ulong};

/// _LINUX_CAPABILITY_VERSION_3: sets of 64 bits in two halves.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: c_int,
}

/// One half of the three sets of a thread.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The calling thread's permitted capabilities.
pub(crate) fn permitted() -> io::Result<u64> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: version 3 writes two halves; both they and the header live until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    check(result)?;
    Ok(u64::from(halves[0].permitted) | u64::from(halves[1].permitted) << 32)
}

/// Sets the calling thread's permitted, effective and inheritable capabilities.
pub(crate) fn set_capabilities(set: u64) -> io::Result<()> {
    let mut header = Header { version: VERSION, pid: 0 };
    let half = |bits: u32| Half { effective: bits, permitted: bits, inheritable: bits };
    let halves = [half(set as u32), half((set >> 32) as u32)];
    // SAFETY: version 3 reads two halves; both they and the header live until the call returns.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) })
}

fn prctl(option: c_int, first: c_ulong, second: c_ulong) -> io::Result<()> {
    let zero: c_ulong = 0;
    // SAFETY: the options used in this file take their arguments by value.
    check(unsafe { libc::prctl(option, first, second, zero, zero) }.into())
}

/// Drops a capability from the bounding set: programs started from here can never gain it.
pub(crate) fn drop_from_bounding_set(capability: u32) -> io::Result<()> {
    prctl(libc::PR_CAPBSET_DROP, capability.into(), 0)
}

/// Lets programs started from here keep an inheritable capability.
pub(crate) fn raise_ambient(capability: u32) -> io::Result<()> {
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as c_ulong, capability.into())
}

/// Forbids core dumps; only root can then read this process's memory or trace its calls.
pub(crate) fn set_not_dumpable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0, 0)
}

/// Limits core dumps of this process, and of programs started from here, to zero bytes.
pub(crate) fn forbid_cores() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives until the call returns.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) }.into())
}

/// Programs started from here gain no rights from their files (setuid, file capabilities).
pub(crate) fn set_no_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)
}

/// Becomes a user of one group; permitted capabilities are kept, effective ones are not.
pub(crate) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    prctl(libc::PR_SET_KEEPCAPS, 1, 0)?;
    // SAFETY: the one group lives until the call returns.
    check(unsafe { libc::setgroups(1, &raw const gid) }.into())?;
    // SAFETY: takes its argument by value.
    check(unsafe { libc::setgid(gid) }.into())?;
    // SAFETY: takes its argument by value.
    check(unsafe { libc::setuid(uid) }.into())
}

/// Whether the effective user may write the file or folder, by access(2).
pub(crate) fn may_write(path: &CStr) -> bool {
    let flags = libc::AT_EACCESS;
    // SAFETY: the path ends in a zero byte and lives until the call returns.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, flags) == 0 }
}

/// Raises the number of files that may be open to `wanted`, or as far as it goes, and returns it.
pub(crate) fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `getrlimit` writes one rlimit, which lives until the call returns.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }.into())?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let beyond = libc::rlimit { rlim_cur: wanted, rlim_max: wanted.max(limit.rlim_max) };
    let most = libc::rlimit { rlim_cur: limit.rlim_max.min(wanted), ..limit };
    // Only who may raise limits goes beyond the most that is set.
    if set_open_files(&beyond).is_ok() {
        return Ok(wanted);
    }
    set_open_files(&most)?;
    Ok(most.rlim_cur)
}

fn set_open_files(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: `setrlimit` reads one rlimit, which lives until the call returns.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }.into())
}
