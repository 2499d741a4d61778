//! Lets connections in, within bounds.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::{Connection, Counted, Registry};
use crate::config::WayIn;
use crate::refusal::Refusal;

/// Connections at a time that are only told why they are refused; those beyond are closed at once,
/// so that whoever may not use the proxy cannot keep others from it.
const REFUSED_MAX: usize = 64;

/// A connection that was let in; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    connection: Arc<Connection>,
    /// Why it is to be refused, once it has said what it wants.
    pub(crate) refusal: Option<Refusal>,
}

impl Registry {
    /// Lets a connection in. One that is to be refused is let in to be told why, as long as there
    /// are few of them; else there is none.
    pub(crate) fn admit(
        self: &Arc<Self>,
        client: SocketAddr,
        way: WayIn,
        refusal: Option<Refusal>,
    ) -> Option<Admission> {
        self.totals.accepted.fetch_add(1, Ordering::Relaxed);
        let limits = *self.limits();
        let mut open = self.open();
        let of_client = open.per_client.get(&client.ip()).copied().unwrap_or_default();
        let refusal = refusal.or_else(|| {
            if open.connections.len() >= limits.connections_max {
                Some(Refusal::TooManyConnections)
            } else if of_client >= limits.connections_per_client_max {
                Some(Refusal::ClientTooMany)
            } else {
                None
            }
        });
        if let Some(refusal) = refusal {
            self.refusals.count(refusal);
            if open.refused >= REFUSED_MAX {
                self.totals.dropped.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            open.refused += 1;
        }
        let id = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            registry: Arc::clone(self),
            id,
            client,
            way,
            opened: Instant::now(),
            target: OnceLock::new(),
            streams: OnceLock::new(),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            moved_ms: AtomicU64::new(self.now_ms()),
        });
        if refusal.is_none() {
            open.connections.insert(id, Arc::clone(&connection));
            open.per_client.insert(client.ip(), of_client + 1);
        }
        Some(Admission { connection, refusal })
    }
}

impl Admission {
    /// Counts on behalf of the connection.
    pub(crate) fn counted(&self) -> Counted {
        Counted(Arc::clone(&self.connection))
    }
}

impl Deref for Admission {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let registry = &self.connection.registry;
        registry.accesses().end(&self.connection);
        let mut open = registry.open();
        if self.refusal.is_some() {
            open.refused -= 1;
            return;
        }
        open.connections.remove(&self.connection.id);
        let client = self.connection.client.ip();
        if let Some(count) = open.per_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                open.per_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    fn client(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 1000))
    }

    #[test]
    fn bounds_hold_and_are_free_again_when_a_connection_ends() {
        let limits =
            Limits { connections_max: 3, connections_per_client_max: 2, ..Limits::default() };
        let registry = Arc::new(Registry::new(limits, &[]));
        let admit =
            |last| registry.admit(client(last), WayIn::Http, None).expect("few are refused");
        let first = admit(1);
        let _second = admit(1);
        assert_eq!((first.refusal, admit(1).refusal), (None, Some(Refusal::ClientTooMany)));
        let _third = admit(2);
        assert_eq!(admit(3).refusal, Some(Refusal::TooManyConnections));
        drop(first);
        assert_eq!(registry.count(), 2);
        assert_eq!(admit(1).refusal, None);
    }

    /// A look at a connection that had ended counted all of it again, and was kept for ever.
    #[tokio::test]
    async fn regression_a_look_after_the_last_one_counts_nothing() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let server = listener.accept().await.unwrap().0;
        let networks = vec!["127.0.0.0/8".parse().expect("a network")];
        let access = crate::config::Access { name: "loopback".into(), networks };
        let registry = Arc::new(Registry::new(Limits::default(), &[access]));
        let admission = registry.admit(self::client(1), WayIn::Http, None).expect("it is let in");
        admission.relays(&Arc::new(client), &Arc::new(server));
        admission.count_up(1000);
        let late = registry.connections();
        drop(admission);
        let counted = registry.access_totals();
        // The kernel counts the handshake, too.
        assert!((2000..2010).contains(&(counted[0].received + counted[0].sent)), "{counted:?}");
        late[0].count_up(1);
        late[0].look();
        assert_eq!(registry.access_totals(), counted);
    }

    #[test]
    fn a_flood_of_those_who_may_not_leaves_room_for_those_who_may() {
        let limits = Limits { connections_max: 1, ..Limits::default() };
        let registry = Arc::new(Registry::new(limits, &[]));
        let refused = Some(Refusal::ClientNotAllowed);
        let flood = (0..200).filter_map(|_| registry.admit(client(9), WayIn::Http, refused));
        let flood: Vec<_> = flood.collect();
        assert_eq!(flood.len(), REFUSED_MAX);
        assert_eq!(registry.totals.dropped.load(Ordering::Relaxed), 200 - REFUSED_MAX as u64);
        assert!(registry.admit(client(1), WayIn::Http, None).is_some_and(|a| a.refusal.is_none()));
    }
}
