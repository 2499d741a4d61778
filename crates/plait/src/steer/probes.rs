//! The node's probes on the wire: ICMP echo requests to the clients' addresses, routed over their
//! attachments like the packets.
//!
//! The client's rule rewrites a request to an attachment's address to the primary address, and the
//! answer comes from there, over the primary. So an answer is recognised by its payload: the
//! attachment, and a mark that only the node can make, different for each probe. An answer from the
//! attachment's address shows that the client lacks its rule, and that packets sent there would be
//! lost.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use plait_net::icmp::EchoSocket;
use plait_proto::steer::{AttachmentId, Probe, ProbeKey};

/// An answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProbeAnswer {
    /// The attachment that was probed.
    pub(super) attachment: AttachmentId,
    /// The probe's number.
    pub(super) number: u16,
    /// Who answered.
    pub(super) source: IpAddr,
}

/// The sockets, and the key that marks their requests as the node's own.
#[derive(Debug)]
pub(super) struct Probes {
    v4: Option<EchoSocket>,
    v6: Option<EchoSocket>,
    key: ProbeKey,
    /// Attachments get new numbers with each configuration.
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

    /// The descriptors to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = RawFd> {
        use std::os::fd::AsRawFd as _;
        [&self.v4, &self.v6].into_iter().flatten().map(|socket| socket.as_raw_fd())
    }

    /// Sends a probe. A probe that cannot be sent goes unanswered, which is enough.
    pub(super) fn send(&self, probe: Probe) {
        let socket = if probe.address.is_ipv4() { &self.v4 } else { &self.v6 };
        let Some(socket) = socket else { return };
        let payload = self.key.payload(self.generation, probe.attachment, probe.number);
        if let Err(error) = socket.request(probe.address, probe.number, &payload) {
            log::debug!("a probe to {}: {error}", probe.address);
        }
    }

    /// The answers that have come.
    pub(super) fn receive(&self) -> Vec<ProbeAnswer> {
        let mut answers = Vec::new();
        for socket in [&self.v4, &self.v6].into_iter().flatten() {
            loop {
                match socket.reply() {
                    Ok(Some(reply)) => {
                        let (number, payload) = (reply.sequence, &reply.payload);
                        let attachment = self.key.attachment(self.generation, number, payload);
                        answers.extend(attachment.map(|attachment| ProbeAnswer {
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

    /// Makes answers to earlier probes invalid.
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
