//! Waiting for one file.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sleeps until the other end of `file` has hung up, or the file is of no use.
pub(crate) fn wait_for_hangup(file: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        // POLLHUP, POLLERR and POLLNVAL are reported without being asked for.
        let mut wanted = libc::pollfd { fd: file.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: `poll` reads and writes one `pollfd`, which lives until the call returns.
        let result = unsafe { libc::poll(&raw mut wanted, 1, -1) };
        if result > 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if result < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
