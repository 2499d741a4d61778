//! Carries bytes between a client and its server until both are done, or one is gone.
//!
//! Bytes go from one socket into a pipe and from there into the other (splice(2)), and never
//! through this program's memory. What an end can say to the other besides bytes is carried, too:
//! that it will send no more (half-close), that it is gone (reset), that a byte is urgent, and, by
//! not reading, that it should send more slowly.

mod direction;
mod pipes;
mod room;

use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use plait_net::tcp::reset_on_close;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::registry::{Connection, End};

pub(crate) use direction::carry;
pub(crate) use pipes::Pipes;

/// Bytes that were read before the relay began, and go first. They are given up once they are
/// sent: they may be the last part of a buffer of kilobytes, which an idle connection must not
/// keep.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Of the client.
    pub(crate) up: Bytes,
    /// Of the server.
    pub(crate) down: Bytes,
}

/// Carries all there is between the two ends, client and server; the server's bytes once it is
/// `ready`. Both are closed afterwards.
pub(crate) async fn relay(
    connection: &Connection,
    [client, server]: [&TcpStream; 2],
    opening: Opening,
    pipes: &Pipes,
    idle_timeout: Duration,
    ready: impl Future<Output = io::Result<()>>,
) -> End {
    // Once both ends are done, MPTCP no longer tells what its subflows carried.
    let look = || connection.look();
    let up = async {
        connection.count_up(write_all(server, opening.up).await?);
        carry(client, server, pipes, |bytes| connection.count_up(bytes), look).await
    };
    let down = async {
        ready.await?;
        connection.count_down(write_all(client, opening.down).await?);
        carry(server, client, pipes, |bytes| connection.count_down(bytes), look).await
    };
    let end = tokio::select! {
        both = async { tokio::try_join!(up, down) } => match both {
            Ok(((), ())) => End::Complete,
            Err(error) => reset(&error),
        },
        error = failure_of(client) => reset(&error),
        error = failure_of(server) => reset(&error),
        () = connection.idle(idle_timeout) => End::Idle,
    };
    if end != End::Complete {
        // An end that waits for the rest must learn that there is none: a mere close would look
        // like the end of the stream. One that is gone cannot be told, which is no error.
        for stream in [client, server] {
            let _ = reset_on_close(stream);
        }
    }
    end
}

fn reset(error: &io::Error) -> End {
    log::debug!("an end is gone: {error}");
    End::Reset
}

/// Waits until a connection has failed. Reading would tell as well, but a direction does not read
/// while it waits for the other end.
async fn failure_of(stream: &TcpStream) -> io::Error {
    loop {
        if let Err(error) = stream.ready(Interest::ERROR).await {
            return error;
        }
        let failed = stream.try_io(Interest::ERROR, || match stream.take_error()? {
            Some(error) => Ok(error),
            None => Err(io::ErrorKind::WouldBlock.into()),
        });
        match failed {
            Ok(error) => return error,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return error,
        }
    }
}

/// Writes to a stream that is shared; how many bytes it were.
async fn write_all(stream: &TcpStream, mut bytes: Bytes) -> io::Result<usize> {
    let length = bytes.len();
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(&bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes.advance(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
