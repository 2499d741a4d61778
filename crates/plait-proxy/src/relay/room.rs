//! Room in the send buffer of an MPTCP connection.
//!
//! MPTCP's acknowledgement travels with TCP's (RFC 8684, section 3.3.2). Linux sends that of a
//! segment before it has passed the segment's bytes on, where the program reads at that moment:
//! then those bytes are only acknowledged with the next ones, or when the sender repeats them,
//! after 200 ms. Over a link that takes a whole send buffer in one burst, nothing is left that
//! could follow. So the last part of the buffer is filled a moment later.

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

    /// How many of these bytes to write now; the pause is over. All where the kernel does not tell
    /// what waits, as before Linux 5.17.
    pub(super) async fn wait_for(&self, bytes: usize) -> usize {
        match self.below_mark() {
            None => bytes,
            Some(room @ 1..) => bytes.min(room),
            Some(0) => {
                sleep(PAUSE).await;
                bytes
            }
        }
    }

    /// Room that is left below three quarters of the buffer.
    fn below_mark(&self) -> Option<usize> {
        let to = self.multipath?;
        let mark = SockRef::from(to).send_buffer_size().ok()? / 4 * 3;
        Some(mark.saturating_sub(unacknowledged(to).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use plait_net::mptcp;
    use socket2::Domain;

    use super::*;

    const MORE: usize = 64 << 20;

    /// A connection whose other end, which is given too, reads nothing.
    fn connection(multipath: bool) -> Option<(TcpStream, socket2::Socket)> {
        let listener = mptcp::stream_socket(Domain::IPV4, multipath).ok()?;
        listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(1).unwrap();
        let near = mptcp::stream_socket(Domain::IPV4, multipath).unwrap();
        near.connect(&listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let (far, _) = listener.accept().unwrap();
        Some((TcpStream::from_std(near.into()).unwrap(), far))
    }

    /// The end of a burst that filled the whole buffer was acknowledged after 200 ms only.
    #[tokio::test]
    async fn regression_the_last_quarter_of_mptcps_buffer_is_filled_after_a_pause() {
        let Some((near, _far)) = connection(true) else { return };
        let room = Room::of(&near);
        let some = vec![0; MORE];
        loop {
            near.writable().await.unwrap();
            let mark = SockRef::from(&near).send_buffer_size().unwrap() / 4 * 3;
            let queued = unacknowledged(&near).unwrap();
            let begun = std::time::Instant::now();
            let granted = room.wait_for(MORE).await;
            if queued >= mark {
                assert_eq!((granted, begun.elapsed() >= PAUSE), (MORE, true));
                return;
            }
            assert!(granted <= mark, "{granted} of {mark} with {queued} on the way");
            let _ = near.try_write(&some[..granted]);
        }
    }

    #[tokio::test]
    async fn tcp_needs_no_room() {
        let (near, _far) = connection(false).expect("there is TCP everywhere");
        let _ = near.try_write(&vec![0; MORE]);
        assert_eq!(Room::of(&near).wait_for(MORE).await, MORE);
    }
}
