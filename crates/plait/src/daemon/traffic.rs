//! Counts the bytes of each path's sockets, as the links' owners are charged for them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use plait_proto::config::SocketId;

const UDP_HEADER_BYTES: u64 = 8;

/// Bytes by configured path since they were last taken. The links of a wildcard count for one path.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    sockets: Vec<Account>,
    /// Bytes of sockets that are closed, or count for another path now.
    settled: BTreeMap<String, u64>,
}

/// A socket's bytes.
#[derive(Clone, Debug, Default)]
struct Account {
    bytes: u64,
    /// Name of the path that the socket counts for.
    path: Option<String>,
}

impl Traffic {
    /// Notes datagrams that passed, `bytes` of payload together.
    pub(super) fn note(
        &mut self,
        socket: SocketId,
        remote: SocketAddr,
        bytes: u64,
        datagrams: u64,
    ) {
        let ip_header: u64 = if remote.ip().to_canonical().is_ipv4() { 20 } else { 40 };
        self.account(socket).bytes += bytes + datagrams * (ip_header + UDP_HEADER_BYTES);
    }

    fn account(&mut self, socket: SocketId) -> &mut Account {
        let at = usize::from(socket.0);
        if at >= self.sockets.len() {
            self.sockets.resize_with(at + 1, Account::default);
        }
        &mut self.sockets[at]
    }

    /// A socket counts for a path from now on; its earlier bytes too, if it counted for none
    /// before.
    pub(super) fn assign(&mut self, socket: SocketId, path: &str) {
        let account = self.account(socket);
        if account.path.as_deref() == Some(path) {
            return;
        }
        if account.path.is_some() {
            self.close(socket);
        }
        self.account(socket).path = Some(path.to_owned());
    }

    /// A socket is closed. Its number may be another's later.
    pub(super) fn close(&mut self, socket: SocketId) {
        let account = std::mem::take(self.account(socket));
        if let Some(path) = account.path {
            *self.settled.entry(path).or_default() += account.bytes;
        }
    }

    /// The bytes of a path since the last call.
    pub(super) fn take(&mut self, path: &str) -> u64 {
        let mut bytes = self.settled.remove(path).unwrap_or_default();
        for account in
            self.sockets.iter_mut().filter(|account| account.path.as_deref() == Some(path))
        {
            bytes += std::mem::take(&mut account.bytes);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> SocketAddr {
        ([192, 0, 2, 1], 1).into()
    }

    #[test]
    fn every_datagram_of_a_run_has_its_headers() {
        let v6 = "[2001:db8::1]:1".parse().unwrap();
        let mut traffic = Traffic::default();
        traffic.note(SocketId(3), v4(), 2500, 3);
        traffic.assign(SocketId(3), "lte");
        traffic.note(SocketId(3), v6, 100, 1);
        traffic.note(SocketId(1), v4(), 0, 0);
        assert_eq!(traffic.take("lte"), 2500 + 3 * 28 + 100 + 48);
        assert_eq!([traffic.take("lte"), traffic.take("dsl")], [0, 0]);
    }

    #[test]
    fn the_sockets_of_a_path_count_together_and_closed_ones_are_not_forgotten() {
        let mut traffic = Traffic::default();
        for socket in [1, 2] {
            traffic.assign(SocketId(socket), "lte");
            traffic.note(SocketId(socket), v4(), 72, 1);
        }
        traffic.close(SocketId(1));
        traffic.assign(SocketId(1), "dsl");
        traffic.note(SocketId(1), v4(), 972, 1);
        assert_eq!(traffic.take("lte"), 200);
        traffic.assign(SocketId(1), "lte");
        assert_eq!([traffic.take("lte"), traffic.take("dsl")], [0, 1000], "that was dsl's");
    }
}
