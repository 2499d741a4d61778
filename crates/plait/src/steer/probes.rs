//! The node's probes on the wire: ICMP echo requests to the clients' addresses, led over their
//! attachments by the same routes as the packets.
//!
//! The client's rule turns a request to an attachment's address into one to the primary's, and the
//! answer comes from there, over the primary. So an answer is known by what it carries: a number
//! that only the node knows, and the attachment. One that comes from the attachment's address tells
//! that the client has no rule, and that packets there would be lost on it.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use plait_net::icmp::EchoSocket;
use plait_proto::steer::{AttachmentId, Probe};

/// The node's secret, the count of configurations, client and attachment.
const PAYLOAD_BYTES: usize = 8 + 4 + 2 + 1;

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
    secret: u64,
    /// Attachments are numbered anew with each configuration.
    generation: u32,
}

impl Probes {
    /// Opens a socket for each family; `secret` is random.
    ///
    /// # Errors
    /// The kernel's; a family that it does not have is left out.
    pub(super) fn open(secret: u64) -> io::Result<Self> {
        let identifier = (secret >> 48) as u16;
        let v4 = unless_absent(EchoSocket::open(false, identifier))?;
        let v6 = unless_absent(EchoSocket::open(true, identifier))?;
        Ok(Self { v4, v6, secret, generation: 0 })
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
        let payload = self.payload(probe.attachment);
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
                        let attachment = self.attachment(&reply.payload);
                        answers.extend(attachment.map(|attachment| Answer {
                            attachment,
                            number: reply.sequence,
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

    fn payload(&self, attachment: AttachmentId) -> [u8; PAYLOAD_BYTES] {
        let mut payload = [0; PAYLOAD_BYTES];
        payload[..8].copy_from_slice(&self.secret.to_be_bytes());
        payload[8..12].copy_from_slice(&self.generation.to_be_bytes());
        payload[12..14].copy_from_slice(&attachment.client.to_be_bytes());
        payload[14] = attachment.attachment;
        payload
    }

    fn attachment(&self, payload: &[u8]) -> Option<AttachmentId> {
        let [.., high, low, attachment] = *payload.first_chunk::<PAYLOAD_BYTES>()?;
        let id = AttachmentId { client: u16::from_be_bytes([high, low]), attachment };
        (payload == self.payload(id)).then_some(id)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_the_secret_and_the_configuration() {
        let mut probes = Probes { v4: None, v6: None, secret: 7, generation: 0 };
        let id = AttachmentId { client: 300, attachment: 2 };
        let payload = probes.payload(id);
        assert_eq!(probes.attachment(&payload), Some(id));
        for at in 0..12 {
            let mut forged = payload;
            forged[at] ^= 1;
            assert_eq!(probes.attachment(&forged), None, "byte {at}");
        }
        assert_eq!(probes.attachment(&payload[..14]), None);
        assert_eq!(probes.attachment(&[&payload[..], &[0]].concat()), None);
        probes.renumber();
        assert_eq!(probes.attachment(&payload), None);
    }
}
