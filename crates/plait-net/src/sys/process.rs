//! Calls that ask about or change the calling thread or process.

use std::ffi::CStr;
use std::io;
use std::time::Duration;

/// Reads a clock.
pub(crate) fn clock(id: libc::clockid_t) -> Duration {
    // SAFETY: `timespec` is plain data for which all zeroes is a valid value.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `clock_gettime` writes one `timespec`, which lives until the call returns.
    let result = unsafe { libc::clock_gettime(id, &raw mut time) };
    assert_eq!(result, 0, "invariant: the clock exists on every supported kernel");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Sets the calling thread's timer slack.
pub(crate) fn set_timer_slack(nanos: u64) -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes its argument by value.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos as libc::c_ulong) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs the calling thread before all ordinary ones.
pub(crate) fn set_realtime_priority() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters live until the call returns; 0 names the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets other threads run before the calling one: by so many steps of "nice", from 0 to 19.
pub(crate) fn lower_priority(steps: i32) -> io::Result<()> {
    // SAFETY: all arguments are passed by value; 0 names the calling thread (setpriority(2)).
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, steps) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Fills `bytes` from the kernel's generator, without waiting until it has gathered enough.
pub(crate) fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let flags = libc::GRND_NONBLOCK;
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the kernel writes at most as many bytes as the slice has.
        let result = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), flags) };
        match usize::try_from(result) {
            Ok(written) => rest = &mut rest[written..],
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Waits until the kernel's generator has gathered enough, or refuses.
pub(crate) fn await_random() {
    let mut byte = 0_u8;
    // SAFETY: the kernel writes at most one byte, which lives on until it answers.
    let _unused = unsafe { libc::getrandom((&raw mut byte).cast(), 1, 0) };
}

/// The effective user id.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: `geteuid` has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The kernel's release, such as `6.18.0`.
pub(crate) fn kernel_release() -> String {
    // SAFETY: `utsname` is plain data for which all zeroes is a valid value.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `uname` writes one `utsname`, which lives until the call returns.
    let result = unsafe { libc::uname(&raw mut name) };
    assert_eq!(result, 0, "invariant: uname fails only for a bad pointer");
    // SAFETY: `uname` ends each field with a zero byte.
    unsafe { CStr::from_ptr(name.release.as_ptr()) }.to_string_lossy().into_owned()
}

/// Whether an interface of the calling thread's network namespace has this name, of whatever kind.
pub(crate) fn has_interface(name: &CStr) -> bool {
    // SAFETY: the name ends in a zero byte and lives until the call returns.
    unsafe { libc::if_nametoindex(name.as_ptr()) != 0 }
}
