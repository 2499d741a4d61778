//! The host behind a gateway: compares what the bond delivers with what was sent.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};

use anyhow::Result;
use plait_net::netns::NetNs;

use super::{MARKER, MARKER_PORT};

/// A marked payload with a unique number.
pub(super) fn numbered(number: u32) -> Vec<u8> {
    [MARKER, &number.to_be_bytes()].concat()
}

/// Receives marked packets and distinguishes those that were sent from forged ones.
#[derive(Debug)]
pub(super) struct Host {
    socket: UdpSocket,
    deliveries: Deliveries,
}

impl Host {
    pub(super) fn new(netns: &NetNs, address: IpAddr) -> Result<Self> {
        let socket = netns.run_in(|| UdpSocket::bind((address, MARKER_PORT)))??;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, deliveries: Deliveries::default() })
    }

    /// Notes numbers that are sent into the bond.
    pub(super) fn expect(&mut self, numbers: impl IntoIterator<Item = u32>) {
        self.deliveries.expected.extend(numbers);
    }

    /// Deliveries so far.
    pub(super) fn deliveries(&mut self) -> &Deliveries {
        let mut buffer = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.deliveries.note(&buffer[..length]);
        }
        &self.deliveries
    }
}

/// Packets that came out of the bond.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// Sent, but not arrived yet.
    expected: BTreeSet<u32>,
    /// Sent, and arrived for the first time.
    pub(super) genuine: u64,
    /// Packets that nobody sent, changed ones and duplicates.
    pub(super) unexplained: u64,
}

impl Deliveries {
    fn note(&mut self, payload: &[u8]) {
        let number = payload.strip_prefix(MARKER).and_then(|rest| rest.try_into().ok());
        let number = number.map(u32::from_be_bytes);
        match number.is_some_and(|number| self.expected.remove(&number)) {
            true => self.genuine += 1,
            false => self.unexplained += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sent_and_what_comes_twice_is_unexplained() {
        let mut deliveries = Deliveries { expected: [1, 2, 3].into(), ..Deliveries::default() };
        let mut after = |payload: &[u8]| {
            deliveries.note(payload);
            (deliveries.genuine, deliveries.unexplained)
        };
        assert_eq!(after(&numbered(2)), (1, 0));
        assert_eq!(after(&numbered(2)), (1, 1), "a second copy");
        assert_eq!(after(&numbered(4)), (1, 2), "never sent");
        assert_eq!(after(MARKER), (1, 3), "without a number");
        let mut changed = numbered(1);
        changed[0] ^= 1;
        assert_eq!(after(&changed), (1, 4));
        assert_eq!(after(&[numbered(1), vec![0]].concat()), (1, 5), "too long");
        assert_eq!(after(&numbered(1)), (2, 5));
    }
}
