//! One direction of a connection.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;

use plait_net::tcp::at_urgent_mark;
use rustix::pipe::{SpliceFlags, splice};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::task::consume_budget;

use super::pipes::{PIPE_BYTES, Pipe, Pipes};
use super::room::Room;

/// Carries what `from` sends to `to`, until it says that it will send no more; then calls `at_end`
/// and tells `to`. `count` gets to know what has arrived in `to`.
///
/// # Errors
/// One of the two is gone.
pub(crate) async fn carry(
    from: &TcpStream,
    to: &TcpStream,
    pipes: &Pipes,
    count: impl Fn(usize),
    at_end: impl FnOnce(),
) -> io::Result<()> {
    let room = Room::of(to);
    loop {
        from.readable().await?;
        let pipe = pipes.take()?;
        // While bytes come, the connection keeps its pipe. With an error in between the pipe may
        // hold some, and is closed with them.
        let next = carry_what_is_there(from, (to, room), &pipe, &count).await?;
        pipes.put_back(pipe);
        match next {
            Next::Wait => {}
            Next::Urgent => carry_urgent_byte(from, to, &count).await?,
            Next::End => {
                at_end();
                return end(to);
            }
        }
    }
}

/// What follows once a socket has no more bytes for now.
enum Next {
    /// More will come.
    Wait,
    /// The next byte is the urgent one.
    Urgent,
    /// No more will come.
    End,
}

/// Carries until `from` has nothing more; the pipe is empty then.
async fn carry_what_is_there(
    from: &TcpStream,
    (to, room): (&TcpStream, Room<'_>),
    pipe: &Pipe,
    count: &impl Fn(usize),
) -> io::Result<Next> {
    loop {
        let read = from.try_io(Interest::READABLE, || move_bytes(from, &pipe.into, PIPE_BYTES));
        let mut held = match read {
            // The kernel does not move the urgent byte with others: before it, it says that there
            // is nothing.
            Ok(0) => {
                let is_urgent = at_urgent_mark(from).unwrap_or(false);
                return Ok(if is_urgent { Next::Urgent } else { Next::End });
            }
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Next::Wait),
            Err(error) => return Err(error),
        };
        while held > 0 {
            let now = room.wait_for(held).await;
            match to.try_io(Interest::WRITABLE, || move_bytes(&pipe.from, to, now)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    held -= bytes;
                    count(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
                Err(error) => return Err(error),
            }
        }
        // Others want their turn, too.
        consume_budget().await;
    }
}

fn move_bytes(from: impl AsFd, to: impl AsFd, bytes: usize) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(splice(from, None, to, None, bytes, flags)?)
}

/// Carries one urgent byte (RFC 6093). MPTCP has none: there it is a byte like others.
async fn carry_urgent_byte(
    from: &TcpStream,
    to: &TcpStream,
    count: &impl Fn(usize),
) -> io::Result<()> {
    let mut byte = [0];
    // The kernel just said that it is there; no byte means that the connection is gone.
    if from.try_read(&mut byte)? == 0 {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    let mut is_urgent = true;
    loop {
        let sent = to.try_io(Interest::WRITABLE, || {
            let to = SockRef::from(to);
            if is_urgent { to.send_out_of_band(&byte) } else { to.send(&byte) }
        });
        match sent {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            Err(error) if error.kind() == io::ErrorKind::Unsupported && is_urgent => {
                is_urgent = false;
            }
            Err(error) => return Err(error),
        }
    }
    count(1);
    Ok(())
}

/// Tells an end that no more will come.
fn end(to: &TcpStream) -> io::Result<()> {
    match SockRef::from(to).shutdown(Shutdown::Write) {
        // It is gone by itself.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}
