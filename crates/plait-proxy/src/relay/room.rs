//! Room in the send buffer of an MPTCP connection.
//!
//! MPTCP's acknowledgement travels with TCP's (RFC 8684, section 3.3.2). Linux sends that of a
//! segment before it has passed the segment's bytes on, where the program reads at that moment:
//! then those bytes are only acknowledged with the next ones, or when the sender repeats them,
//! after 200 ms. Over a link that takes a whole send buffer in one burst, nothing is left that
//! could follow. So the last part of the buffer is filled a moment later.

use std::io;
use std::time::Duration;

use plait_net::tcp::unacknowledged;
use socket2::{Protocol, SockRef};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// How long the last part of the buffer is held back: until what was sent has arrived over a link
/// as fast as that. Over slower ones the buffer is not empty by then.
const PAUSE: Duration = Duration::from_millis(1);

/// Gives room in a connection's send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room<'a> {
    /// `None` for TCP, which acknowledges what has arrived.
    multipath: Option<&'a TcpStream>,
}

impl<'a> Room<'a> {
    pub(super) fn of(to: &'a TcpStream) -> Self {
        let protocol = SockRef::from(to).protocol().ok().flatten();
        Self { multipath: (protocol == Some(Protocol::MPTCP)).then_some(to) }
    }

    /// How many of these bytes to write now; the pause is over.
    ///
    /// # Errors
    /// No connection.
    pub(super) async fn wait_for(&self, bytes: usize) -> io::Result<usize> {
        let Some(to) = self.multipath else { return Ok(bytes) };
        let mark = SockRef::from(to).send_buffer_size()? / 4 * 3;
        match mark.checked_sub(unacknowledged(to)?) {
            Some(room @ 1..) => Ok(bytes.min(room)),
            _ => {
                sleep(PAUSE).await;
                Ok(bytes)
            }
        }
    }
}
