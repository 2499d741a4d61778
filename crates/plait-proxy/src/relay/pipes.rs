//! Pipes that bytes pass on their way between two sockets. A connection has one only while it has
//! bytes on the way: thousands of idle ones need none.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// What a pipe holds: a full window of a fast connection in few calls. The kernel's default is a
/// quarter of it.
pub(super) const PIPE_BYTES: usize = 256 * 1024;
/// Empty pipes that are kept for the next connection that needs one.
const KEPT_MAX: usize = 64;

/// Both ends of a pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) from: OwnedFd,
    pub(super) into: OwnedFd,
}

impl Pipe {
    fn open() -> io::Result<Self> {
        let (from, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Users other than root may have only so many pages in all pipes (pipe(7)): then it stays
        // as it is.
        let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(Self { from, into })
    }
}

/// Empty pipes.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Mutex<Vec<Pipe>>);

impl Pipes {
    /// An empty pipe.
    pub(super) fn take(&self) -> io::Result<Pipe> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(Pipe::open, Ok)
    }

    /// Takes back an empty pipe.
    pub(super) fn put_back(&self, pipe: Pipe) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(pipe);
        }
    }
}
