//! The node's probes on the wire: ICMP echo requests to the clients' addresses, led over their
//! attachments by the same routes as the packets.
//!
//! The client's rule turns a request to an attachment's address into one to the primary's, and the
//! answer comes from there, over the primary. So an answer is known by what it carries: the
//! attachment, and a mark that only the node can make, another for each probe. One that comes from
//! the attachment's address tells that the client has no rule, and that packets there would be lost
//! on it.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use plait_net::icmp::EchoSocket;
use plait_proto::steer::{AttachmentId, Probe, ProbeKey};

/// An answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    /// The attachment that was probed.
    pub(super) attachment: AttachmentId,
    /// The probe's number.
    pub(super) number: u16,
    /// Who answered.
    pub(super) source: IpAddr,
}

/// The sockets and what makes their requests the node's own.
#[derive(Debug)]
pub(super) struct Probes {
    v4: Option<EchoSocket>,
    v6: Option<EchoSocket>,
    key: ProbeKey,
    /// Attachments are numbered anew with each configuration.
    generation: u32,
}

impl Probes {
    /// Opens a socket for each family; identifier and key are random.
    ///
    /// # Errors
    /// The kernel's; a family that it does not have is left out.
    pub(super) fn open(identifier: u16, key: ProbeKey) -> io::Result<Self> {
        let v4 = unless_absent(EchoSocket::open(false, identifier))?;
        let v6 = unless_absent(EchoSocket::open(true, identifier))?;
        Ok(Self { v4, v6, key, generation: 0 })
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = RawFd> {
        use std::os::fd::AsRawFd as _;
        [&self.v4, &self.v6].into_iter().flatten().map(|socket| socket.as_raw_fd())
    }

    /// Sends a probe. One that cannot leave goes unanswered, which says all.
    pub(super) fn send(&self, probe: Probe) {
        let socket = if probe.address.is_ipv4() { &self.v4 } else { &self.v6 };
        let Some(socket) = socket else { return };
        let payload = self.key.payload(self.generation, probe.attachment, probe.number);
        if let Err(error) = socket.request(probe.address, probe.number, &payload) {
            log::debug!("a probe to {}: {error}", probe.address);
        }
    }

    /// The answers that have come.
    pub(super) fn receive(&self) -> Vec<Answer> {
        let mut answers = Vec::new();
        for socket in [&self.v4, &self.v6].into_iter().flatten() {
            loop {
                match socket.reply() {
                    Ok(Some(reply)) => {
                        let (number, payload) = (reply.sequence, &reply.payload);
                        let attachment = self.key.attachment(self.generation, number, payload);
                        answers.extend(attachment.map(|attachment| Answer {
                            attachment,
                            number,
                            source: reply.source,
                        }));
                    }
                    Ok(None) => break,
                    Err(error) => {
                        log::debug!("receiving answers to probes: {error}");
                        break;
                    }
                }
            }
        }
        answers
    }

    /// Answers to earlier probes count no more.
    pub(super) fn renumber(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }
}

/// A kernel may have been built without IPv6.
fn unless_absent(opened: io::Result<EchoSocket>) -> io::Result<Option<EchoSocket>> {
    const EAFNOSUPPORT: i32 = 97;
    match opened {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.raw_os_error() == Some(EAFNOSUPPORT) => Ok(None),
        Err(error) => Err(error),
    }
}
