//! Network namespaces: a process that isolates itself before it touches anything, and named
//! namespaces to put devices and processes into.
//!
//! [`isolate`] comes first in `main`. What a process makes after it (namespaces, devices, routes,
//! processes, files below `/run`) is gone when the process is gone, however it ended.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Where named namespaces live; `ip netns` uses the same place.
const NETNS_DIR: &str = "/run/netns";
const TUN_DEVICE: &str = "/dev/net/tun";

/// Set for the process that [`isolate`] starts, and so for all that it starts: the identity of the
/// process outside, as [`ProcessIdentity`] prints it. It counts only together with process id 1:
/// setting it by hand must not lead to work on the host's own interfaces.
pub const INSIDE_ENV: &str = "PLAIT_NETNS_INSIDE";

/// Why a process cannot have namespaces of its own.
#[derive(Debug, Error)]
pub enum IsolationError {
    /// A user without rights may not make a user namespace here.
    #[error(
        "this system lets no ordinary user make namespaces; run as root, or allow it with \
         sysctl user.max_user_namespaces=15000, kernel.unprivileged_userns_clone=1 (Debian), \
         kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)"
    )]
    UserNamespaces {
        /// What the kernel said.
        source: io::Error,
    },
    /// Root may not make namespaces here.
    #[error(
        "namespaces cannot be made although this is root; a container needs \
         CAP_SYS_ADMIN (docker run --privileged)"
    )]
    Namespaces {
        /// What the kernel said.
        source: io::Error,
    },
    /// The TUN device does not exist.
    #[error(
        "{TUN_DEVICE} does not exist; load the driver with modprobe tun (in a container: \
         --device {TUN_DEVICE})"
    )]
    TunMissing,
    /// The TUN device may not be opened.
    #[error(
        "{TUN_DEVICE} (mode {mode:04o}) may not be opened; run as root, or open it to \
         all users with chmod 0666 {TUN_DEVICE}"
    )]
    TunDenied {
        /// Permission bits of the device.
        mode: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// A step after the namespaces were made.
    #[error("cannot {step} in the new namespaces")]
    Setup {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Which of the two processes that [`isolate`] makes of one is running.
#[derive(Debug)]
pub enum Isolation {
    /// The process inside the new namespaces, process id 1 there. It does the work.
    Inside,
    /// The process outside, after the one inside has ended. It returns this status and does
    /// nothing.
    Finished {
        /// Exit status of the process inside, or 128 and the number of the signal that ended it.
        code: u8,
    },
}

/// Moves the program into network, mount and process-id namespaces of its own (and a user namespace
/// unless it is root): the program starts itself again inside, as process id 1, and this process
/// only waits for it.
///
/// Inside, `lo` is up, `/run` is an empty tmpfs, `/proc` shows the new namespace where the system
/// allows that, and no mount reaches the host. The kernel ends everything inside with process id
/// 1, and process id 1 with this process. Ctrl-C and SIGTERM end both.
///
/// # Errors
///
/// [`IsolationError`], each with its remedy. After an error no change outlives the process. Must be
/// called while the process has one thread.
pub fn isolate() -> Result<Isolation, IsolationError> {
    if std::process::id() == 1 && std::env::var_os(INSIDE_ENV).is_some() {
        settle_inside()?;
        return Ok(Isolation::Inside);
    }
    check_tun_device(Path::new(TUN_DEVICE))?;
    sys::unshare_all().map_err(|source| {
        if sys::is_root() {
            IsolationError::Namespaces { source }
        } else {
            IsolationError::UserNamespaces { source }
        }
    })?;
    let code = run_inside().map_err(|source| IsolationError::Setup { step: "run", source })?;
    Ok(Isolation::Finished { code })
}

/// A process, told from a later one with the same id by its start time. Prints as `id:start` and
/// parses from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot (proc(5), `starttime`).
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// Identity of the running process `pid`, as `/proc` shows it.
    ///
    /// # Errors
    ///
    /// No such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        const FIELDS_FROM_STATE_TO_START_TIME: usize = 19;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold anything, so fields are counted from its end.
        let fields = stat.rsplit_once(')').map_or("", |(_, after)| after);
        fields
            .split_whitespace()
            .nth(FIELDS_FROM_STATE_TO_START_TIME)
            .and_then(|field| field.parse().ok())
            .map(|start_ticks| Self { pid, start_ticks })
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has an unknown form")))
    }

    /// The process that called [`isolate`], for the one inside; `None` outside.
    pub fn outside() -> Option<Self> {
        std::env::var(INSIDE_ENV).ok()?.parse().ok()
    }

    /// Whether the process still runs. Asked outside, where `/proc` shows it.
    pub fn runs(self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == self)
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.start_ticks)
    }
}

impl FromStr for ProcessIdentity {
    type Err = io::Error;
    fn from_str(text: &str) -> io::Result<Self> {
        text.split_once(':')
            .and_then(|(pid, start)| {
                Some(Self { pid: pid.parse().ok()?, start_ticks: start.parse().ok()? })
            })
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "expected id:start"))
    }
}

/// Starts this program again as process id 1 of the new namespace and waits for its end.
fn run_inside() -> io::Result<u8> {
    let signals = sys::SignalSet::block_terminating_and_child()?;
    let (alive_read, alive_write) = io::pipe()?;
    let outside = ProcessIdentity::of(std::process::id())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(INSIDE_ENV, outside.to_string());
    sys::before_exec_of_init(&mut command, signals.clone(), alive_read, alive_write.as_fd())?;
    let mut child = command.spawn()?;
    loop {
        let signal = signals.wait()?;
        if signal != sys::SIGCHLD {
            child.kill()?;
            child.wait()?;
            return Ok(exit_code_of_signal(signal));
        }
        if let Some(status) = child.try_wait()? {
            drop(alive_write);
            return Ok(exit_code(status));
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => exit_code_of_signal(signal.unwrap_or(0)),
    }
}

fn exit_code_of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// The first steps of the process inside.
fn settle_inside() -> Result<(), IsolationError> {
    let setup = |step| move |source| IsolationError::Setup { step, source };
    sys::make_mounts_private().map_err(setup("make the mounts private"))?;
    sys::mount(c"tmpfs", c"/run").map_err(setup("mount a tmpfs on /run"))?;
    // A container may forbid this. The old /proc still serves: it only shows too many processes.
    let _shows_other_processes = sys::mount(c"proc", c"/proc");
    sys::set_loopback_up().map_err(setup("set lo up"))
}

/// Opens the TUN device for a moment, so that a missing right is reported before anything is made.
fn check_tun_device(path: &Path) -> Result<(), IsolationError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(IsolationError::TunMissing),
        Err(source) => {
            let mode = path.metadata().map_or(0, |metadata| metadata.permissions().mode());
            Err(IsolationError::TunDenied { mode: mode & 0o7777, source })
        }
    }
}

/// A network namespace, held open. One made by [`NetNs::create`] loses its name when it is dropped;
/// the kernel removes it with its last process and device.
#[derive(Debug)]
pub struct NetNs {
    handle: Arc<OwnedFd>,
    /// The name's file when this value made it.
    owned_path: Option<PathBuf>,
}

impl NetNs {
    /// Makes a namespace called `name`, with `lo` up, that `ip netns exec` finds too.
    ///
    /// # Errors
    ///
    /// An invalid or used name, or no right to make namespaces and mounts.
    pub fn create(name: &str) -> io::Result<Self> {
        let path = path_of(name)?;
        std::fs::create_dir_all(NETNS_DIR)?;
        let handle = make_namespace()?;
        File::create_new(&path)?;
        let mounted = sys::bind_mount_fd(handle.as_fd(), &path);
        if let Err(error) = mounted {
            let _best_effort = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { handle: Arc::new(handle), owned_path: Some(path) })
    }

    /// Makes a namespace without a name, with `lo` up. It lasts as long as this value and what runs
    /// in it.
    ///
    /// # Errors
    ///
    /// No right to make namespaces.
    pub fn anonymous() -> io::Result<Self> {
        Ok(Self { handle: Arc::new(make_namespace()?), owned_path: None })
    }

    /// Opens the namespace called `name`.
    ///
    /// # Errors
    ///
    /// An invalid or unknown name.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = File::open(path_of(name)?)?;
        Ok(Self { handle: Arc::new(file.into()), owned_path: None })
    }

    /// Runs `work` on a thread of its own inside the namespace and gives back what it gives.
    /// Sockets and devices opened there stay in the namespace and may be used anywhere. Start no
    /// process there: it would end with the thread; use [`NetNs::command`].
    ///
    /// # Errors
    ///
    /// The thread could not be started or not enter the namespace.
    ///
    /// # Panics
    ///
    /// When `work` does.
    pub fn run_in<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("netns".into()).spawn_scoped(
                scope,
                || -> io::Result<T> {
                    sys::enter_netns(self.handle.as_fd())?;
                    Ok(work())
                },
            )?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A command that runs inside the namespace and is killed when the thread that spawned it ends.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        sys::before_exec_in_netns(&mut command, Arc::clone(&self.handle));
        command
    }

    /// Sets a kernel parameter of the namespace, named as `sysctl` does: `net.ipv4.ip_forward`.
    ///
    /// # Errors
    ///
    /// An unknown parameter or value, or one that may not be set in a namespace.
    pub fn set_sysctl(&self, key: &str, value: &str) -> io::Result<()> {
        let path = Path::new("/proc/sys").join(key.replace('.', "/"));
        self.run_in(|| std::fs::write(path, value))?
    }
}

impl Drop for NetNs {
    fn drop(&mut self) {
        if let Some(path) = self.owned_path.take() {
            // Both fail only when someone else removed the name already.
            let _unmounted = sys::unmount(&path);
            let _removed = std::fs::remove_file(path);
        }
    }
}

fn path_of(name: &str) -> io::Result<PathBuf> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(valid) {
        let message = format!("{name:?} is no name for a namespace; use letters, digits, - and _");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(Path::new(NETNS_DIR).join(name))
}

/// A new namespace with `lo` up, made on a thread that ends in it.
fn make_namespace() -> io::Result<OwnedFd> {
    let maker = std::thread::Builder::new().name("netns".into()).spawn(|| {
        sys::unshare_netns()?;
        sys::set_loopback_up()?;
        File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
    })?;
    maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Asks a child to end (SIGTERM).
///
/// # Errors
///
/// The child has been waited for and is gone.
pub fn terminate(child: &Child) -> io::Result<()> {
    sys::send_sigterm(child.id())
}

/// Kills a child and whatever belongs to its process group, which it must lead.
///
/// # Errors
///
/// The child has been waited for and is gone.
pub fn kill_group(child: &Child) -> io::Result<()> {
    sys::kill_group(child.id())
}

/// Waits until `fd` can be read or `timeout` has passed, to the nanosecond as far as the thread's
/// timer slack allows. True when it can be read (or has failed, which a read will tell).
///
/// # Errors
///
/// An interrupted wait is not an error; it counts as a timeout.
pub fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    sys::ppoll_in(fd, timeout)
}

/// As [`wait_readable`], for any of several descriptors, at most [`WAIT_MAX`].
///
/// # Errors
///
/// As there.
///
/// # Panics
///
/// When there are too many.
pub fn wait_any_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    assert!(fds.len() <= WAIT_MAX, "invariant: the caller keeps to WAIT_MAX descriptors");
    sys::ppoll_any_in(fds, timeout)
}

/// Descriptors that [`wait_any_readable`] takes.
pub const WAIT_MAX: usize = 64;

/// All of this module's calls into libc.
mod sys {
    #![allow(unsafe_code, reason = "system calls without a safe wrapper in the standard library")]

    use std::ffi::{CStr, CString};
    use std::io::{self, PipeReader};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;
    use std::ptr;
    use std::sync::Arc;
    use std::time::Duration;

    pub(super) use libc::SIGCHLD;

    fn check(result: libc::c_int) -> io::Result<()> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn is_root() -> bool {
        // SAFETY: no argument, cannot fail.
        unsafe { libc::geteuid() == 0 }
    }

    fn unshare(flags: libc::c_int) -> io::Result<()> {
        // SAFETY: takes flags only; no memory is shared with the kernel.
        check(unsafe { libc::unshare(flags) })
    }

    pub(super) fn unshare_netns() -> io::Result<()> {
        unshare(libc::CLONE_NEWNET)
    }

    /// Network, mount and process-id namespaces; a user that is not root becomes root of a user
    /// namespace first.
    pub(super) fn unshare_all() -> io::Result<()> {
        let mut flags = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWPID;
        if is_root() {
            return unshare(flags);
        }
        // SAFETY: no arguments, cannot fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        flags |= libc::CLONE_NEWUSER;
        unshare(flags)?;
        std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
    }

    pub(super) fn enter_netns(netns: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: the descriptor is open for the length of the call.
        check(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) })
    }

    fn mount_call(source: &CStr, target: &CStr, kind: &CStr, flags: u64) -> io::Result<()> {
        // SAFETY: three C strings that live through the call; no data argument.
        check(unsafe {
            libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, ptr::null())
        })
    }

    pub(super) fn make_mounts_private() -> io::Result<()> {
        mount_call(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE)
    }

    /// Mounts a new file system of `kind` on `target`.
    pub(super) fn mount(kind: &CStr, target: &CStr) -> io::Result<()> {
        mount_call(kind, target, kind, libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
    }

    fn c_path(path: &Path) -> io::Result<CString> {
        CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
    }

    pub(super) fn bind_mount_fd(source: BorrowedFd<'_>, target: &Path) -> io::Result<()> {
        let source = CString::new(format!("/proc/self/fd/{}", source.as_raw_fd()))?;
        mount_call(&source, &c_path(target)?, c"", libc::MS_BIND)
    }

    pub(super) fn unmount(path: &Path) -> io::Result<()> {
        let path = c_path(path)?;
        // SAFETY: a C string that lives through the call.
        check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) })
    }

    /// Sets `lo` of the calling thread's namespace up.
    pub(super) fn set_loopback_up() -> io::Result<()> {
        // SAFETY: the result is checked before it is taken as a descriptor nobody else owns.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            check(fd)?;
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: ifreq is plain data for which zero is valid.
        let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
        request.ifr_name[0] = b'l'.cast_signed() as libc::c_char;
        request.ifr_name[1] = b'o'.cast_signed() as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        // SAFETY: SIOCSIFFLAGS reads an ifreq; it lives through the call.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) })
    }

    pub(super) fn send_sigterm(pid: u32) -> io::Result<()> {
        let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
        // SAFETY: takes numbers only.
        check(unsafe { libc::kill(pid, libc::SIGTERM) })
    }

    pub(super) fn kill_group(leader: u32) -> io::Result<()> {
        let leader = libc::pid_t::try_from(leader).map_err(io::Error::other)?;
        // SAFETY: takes numbers only.
        check(unsafe { libc::kill(-leader, libc::SIGKILL) })
    }

    pub(super) fn ppoll_in(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
        ppoll_any_in(&[fd], timeout)
    }

    /// Async-signal-safe.
    pub(super) fn ppoll_any_in(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
        let none = libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 };
        let mut entries = [none; super::WAIT_MAX];
        for (entry, fd) in entries.iter_mut().zip(fds) {
            entry.fd = fd.as_raw_fd();
        }
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
        };
        let count = fds.len().min(entries.len()) as libc::nfds_t;
        // SAFETY: `count` entries and a timespec that live through the call; no signal mask.
        let ready =
            unsafe { libc::ppoll(entries.as_mut_ptr(), count, &raw const timeout, ptr::null()) };
        match check(ready) {
            Ok(()) => Ok(ready > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The signals that a supervising process waits for instead of being interrupted by them.
    #[derive(Clone)]
    pub(super) struct SignalSet {
        waited: libc::sigset_t,
        before: libc::sigset_t,
    }

    impl SignalSet {
        /// Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD in the calling thread.
        pub(super) fn block_terminating_and_child() -> io::Result<Self> {
            let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];
            let mut waited = MaybeUninit::uninit();
            let mut before = MaybeUninit::uninit();
            // SAFETY: sigemptyset initialises the set before sigaddset and the mask call read it;
            // the mask call initialises `before`, or its failure is returned.
            unsafe {
                check(libc::sigemptyset(waited.as_mut_ptr()))?;
                for signal in signals {
                    check(libc::sigaddset(waited.as_mut_ptr(), signal))?;
                }
                let waited = waited.assume_init();
                check(libc::sigprocmask(libc::SIG_BLOCK, &raw const waited, before.as_mut_ptr()))?;
                Ok(Self { waited, before: before.assume_init() })
            }
        }

        /// The next of the signals.
        pub(super) fn wait(&self) -> io::Result<i32> {
            let mut signal = 0;
            // SAFETY: an initialised set and an integer that live through the call.
            match unsafe { libc::sigwait(&raw const self.waited, &raw mut signal) } {
                0 => Ok(signal),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }

        /// Gives the thread back the mask it had. Async-signal-safe.
        fn restore(&self) -> io::Result<()> {
            // SAFETY: an initialised set; the old mask is not asked for.
            check(unsafe {
                libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
            })
        }
    }

    /// Async-signal-safe.
    fn die_with_parent() -> io::Result<()> {
        // SAFETY: takes numbers only.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
    }

    /// Makes `command` a process that dies with this thread. Process id 1 of a new namespace cannot
    /// see its parent's id, so the parent's end of a pipe shows that the parent lived when the
    /// request was made.
    pub(super) fn before_exec_of_init(
        command: &mut Command,
        signals: SignalSet,
        alive_read: PipeReader,
        alive_write: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let alive_write = alive_write.as_raw_fd();
        let work = move || {
            signals.restore()?;
            die_with_parent()?;
            // SAFETY: closes the child's own copy of a descriptor that only the parent uses.
            check(unsafe { libc::close(alive_write) })?;
            if ppoll_in(alive_read.as_fd(), Duration::ZERO)? {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        };
        // SAFETY: between fork and exec only async-signal-safe calls are made: sigprocmask, prctl,
        // close, ppoll; errors carry a number and allocate nothing.
        unsafe { command.pre_exec(work) };
        Ok(())
    }

    /// Lets `command` enter the namespace and die with the thread that spawns it.
    pub(super) fn before_exec_in_netns(command: &mut Command, netns: Arc<OwnedFd>) {
        let parent = std::process::id();
        let work = move || {
            enter_netns(netns.as_fd())?;
            die_with_parent()?;
            // SAFETY: no argument, cannot fail.
            if unsafe { libc::getppid() }.cast_unsigned() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        };
        // SAFETY: between fork and exec only async-signal-safe calls are made: setns, prctl,
        // getppid; errors carry a number and allocate nothing.
        unsafe { command.pre_exec(work) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for name in ["", "a/b", "..", "a b", &"x".repeat(65)] {
            let error = path_of(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(path_of("plait-a_1").unwrap(), Path::new("/run/netns/plait-a_1"));
    }

    #[test]
    fn missing_and_forbidden_devices_are_told_apart() {
        let missing = check_tun_device(Path::new("/dev/net/no-such-device")).unwrap_err();
        assert!(matches!(missing, IsolationError::TunMissing), "{missing}");
        // A directory cannot be opened for writing, not even by root.
        let denied = check_tun_device(Path::new("/")).unwrap_err();
        assert!(matches!(denied, IsolationError::TunDenied { mode, .. } if mode & 0o500 != 0));
        assert!(denied.to_string().contains("chmod 0666"), "{denied}");
    }

    #[test]
    fn a_process_is_told_from_another_with_its_id() {
        let this = ProcessIdentity::of(std::process::id()).unwrap();
        assert!(this.runs());
        assert_eq!(this.to_string().parse::<ProcessIdentity>().unwrap(), this);
        assert!(!ProcessIdentity { start_ticks: this.start_ticks + 1, ..this }.runs());
        assert!("12".parse::<ProcessIdentity>().is_err());
    }

    #[test]
    fn exit_codes_are_the_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(2 << 8)), 2);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }

    #[test]
    fn readable_pipe_is_told_from_an_empty_one() {
        use std::io::Write;
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!wait_readable(reader.as_fd(), Duration::from_micros(10)).unwrap());
        writer.write_all(b"x").unwrap();
        assert!(wait_readable(reader.as_fd(), Duration::from_secs(60)).unwrap());
    }
}
