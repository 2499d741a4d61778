//! What each access carried, by the kernel's counts for subflows.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;

use plait_net::mptcp::{self, Subflow};
use plait_net::tcp::{self, TcpInfo};
use tokio::net::TcpStream;

use super::Connection;
use crate::config::Access;

/// What an access carried.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AccessTotals {
    pub(crate) name: String,
    /// Bytes that came in over it.
    pub(crate) received: u64,
    /// Bytes that went out over it and were acknowledged.
    pub(crate) sent: u64,
}

/// What a subflow carried at the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    received: u64,
    sent: u64,
}

/// Adds up what subflows carried.
#[derive(Debug)]
pub(crate) struct Accesses {
    named: Vec<Access>,
    totals: Vec<AccessTotals>,
    /// The last look at each connection.
    looks: HashMap<u64, Look>,
}

/// The last look at a connection.
#[derive(Debug, Default)]
struct Look {
    /// What had been carried then, in both directions; `None` before the first look.
    bytes: Option<u64>,
    /// The subflows on the client's side and on the server's, those that have gone among them.
    sides: [BTreeMap<(SocketAddr, SocketAddr), Seen>; 2],
}

impl Accesses {
    pub(super) fn new(named: &[Access]) -> Self {
        let total = |access: &Access| AccessTotals { name: access.name.clone(), ..<_>::default() };
        let totals = named.iter().map(total).collect();
        Self { named: named.to_vec(), totals, looks: HashMap::new() }
    }

    /// Looks at a connection's subflows, if it carried anything since the last look.
    pub(super) fn look(&mut self, connection: &Connection) {
        // One that has ended may still be in the list of who looks at all of them.
        if self.named.is_empty() || connection.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Some(streams) = connection.streams() else { return };
        let look = self.looks.entry(connection.id).or_default();
        let bytes = Some(connection.up() + connection.down());
        if bytes == look.bytes {
            return;
        }
        look.bytes = bytes;
        for (side, stream) in look.sides.iter_mut().zip(streams) {
            for subflow in subflows(stream) {
                let seen = side.entry((subflow.local, subflow.remote)).or_default();
                let TcpInfo { bytes_received, bytes_acked, .. } = subflow.info;
                let now = Seen { received: bytes_received, sent: bytes_acked };
                let new = Seen {
                    received: now.received.saturating_sub(seen.received),
                    sent: now.sent.saturating_sub(seen.sent),
                };
                *seen = now;
                add(&self.named, &mut self.totals, (subflow.local, subflow.remote), new);
            }
        }
    }

    /// Counts what a connection carried since the last look, now that it has ended and its subflows
    /// tell nothing more: in the proportions up to then.
    pub(super) fn end(&mut self, connection: &Connection) {
        connection.is_over.store(true, Ordering::Relaxed);
        let Some(look) = self.looks.remove(&connection.id) else { return };
        let (up, down) = (connection.up(), connection.down());
        let carried = [Seen { received: up, sent: down }, Seen { received: down, sent: up }];
        for (side, carried) in look.sides.iter().zip(carried) {
            for (ends, rest) in rest_of(side, carried) {
                add(&self.named, &mut self.totals, ends, rest);
            }
        }
    }

    pub(super) fn totals(&self) -> Vec<AccessTotals> {
        self.totals.clone()
    }
}

/// Adds to the access that a subflow between these ends belongs to.
fn add(
    named: &[Access],
    totals: &mut [AccessTotals],
    (local, remote): (SocketAddr, SocketAddr),
    bytes: Seen,
) {
    if let Some(index) = access_of(named, local.ip(), remote.ip()) {
        totals[index].received += bytes.received;
        totals[index].sent += bytes.sent;
    }
}

/// What of all that a side carried the looks did not see, by subflow.
fn rest_of(
    side: &BTreeMap<(SocketAddr, SocketAddr), Seen>,
    carried: Seen,
) -> Vec<((SocketAddr, SocketAddr), Seen)> {
    let seen: Seen = side.values().fold(Seen::default(), |sum, one| Seen {
        received: sum.received + one.received,
        sent: sum.sent + one.sent,
    });
    let weight = |one: &Seen| one.received + one.sent;
    let whole = weight(&seen);
    let part = |one: &Seen, rest: u64| {
        // Nothing seen yet: the subflows there are share alike.
        let share = match whole {
            0 => 1.0 / side.len() as f64,
            _ => weight(one) as f64 / whole as f64,
        };
        (rest as f64 * share).round() as u64
    };
    let rest = Seen {
        received: carried.received.saturating_sub(seen.received),
        sent: carried.sent.saturating_sub(seen.sent),
    };
    let of = |one: &Seen| Seen { received: part(one, rest.received), sent: part(one, rest.sent) };
    side.iter().map(|(ends, one)| (*ends, of(one))).collect()
}

/// The first access that a subflow may belong to.
fn access_of(named: &[Access], local: IpAddr, remote: IpAddr) -> Option<usize> {
    named.iter().position(|access| access.carries(local.to_canonical(), remote.to_canonical()))
}

/// A connection's subflows; plain TCP is one. A connection that is gone has none.
pub(crate) fn subflows(stream: &TcpStream) -> Vec<Subflow> {
    match mptcp::subflows(stream) {
        Ok(Some(subflows)) => subflows,
        Ok(None) => plain(stream).into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

fn plain(stream: &TcpStream) -> Option<Subflow> {
    let (local, remote) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    Some(Subflow { local, remote, info: tcp::info(stream).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_look_saw_is_shared_in_the_proportions_that_were_seen() {
        let ends = |last: u8| {
            let local = SocketAddr::from(([192, 0, 2, 1], 80));
            (local, SocketAddr::from(([10, 0, 0, last], 1000)))
        };
        let side = |seen: [u64; 2]| {
            let seen = seen.map(|sent| Seen { received: 0, sent });
            [(ends(1), seen[0]), (ends(2), seen[1])].into()
        };
        let rest = |seen, sent| {
            let rest = rest_of(&side(seen), Seen { received: 0, sent });
            rest.into_iter().map(|(_, rest)| rest.sent).collect::<Vec<_>>()
        };
        assert_eq!(rest([300, 100], 800), [300, 100]);
        assert_eq!(rest([0, 0], 800), [400, 400]);
        // Bytes that were sent twice may have been seen more often than they were carried.
        assert_eq!(rest([500, 400], 800), [0, 0]);
        assert_eq!(rest_of(&BTreeMap::new(), Seen { received: 5, sent: 5 }), []);
    }

    #[test]
    fn a_subflow_belongs_to_the_first_access_that_has_an_end_of_it() {
        let access = |name: &str, network: &str| Access {
            name: name.into(),
            networks: vec![network.parse().expect("a network")],
        };
        let named = [access("wifi", "10.1.0.0/16"), access("lte", "10.0.0.0/8")];
        let of = |local: &str, remote: &str| {
            let [local, remote] = [local, remote].map(|text| text.parse().expect("an address"));
            access_of(&named, local, remote)
        };
        assert_eq!(of("192.0.2.1", "10.1.0.7"), Some(0));
        assert_eq!(of("192.0.2.1", "::ffff:10.1.0.7"), Some(0));
        assert_eq!(of("10.2.0.7", "192.0.2.1"), Some(1));
        assert_eq!(of("192.0.2.1", "192.0.2.2"), None);
    }
}
