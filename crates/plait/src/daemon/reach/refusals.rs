//! Why peers do not answer, according to ICMP messages of routers and hosts on the way. Only shown
//! to people: anybody can forge such messages.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plait_net::icmp::errors::{ErrorSocket, IcmpError};

/// Pause after each message read. The kernel drops those that come faster.
const PAUSE: Duration = Duration::from_millis(10);

/// The last message about each of the peers' addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Addresses whose messages are kept.
    watched: Vec<SocketAddr>,
    last: BTreeMap<SocketAddr, (Instant, IcmpError)>,
}

impl Refusals {
    /// The guarded data is always consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens on separate threads. Without the right to, the status just says less.
    pub(super) fn start(&self) {
        for is_v6 in [false, true] {
            let opened = ErrorSocket::open(is_v6);
            let refusals = self.clone();
            let started = opened.and_then(|socket| {
                let listen = move || refusals.listen(&socket);
                thread::Builder::new().name("icmp".into()).spawn(listen)
            });
            if let Err(error) = started {
                log::debug!("ICMP errors are not read: {error}");
            }
        }
    }

    fn listen(&self, socket: &ErrorSocket) {
        loop {
            match socket.next() {
                Ok(Some(error)) => self.note(error),
                Ok(None) => {}
                Err(error) => log::debug!("reading ICMP errors: {error}"),
            }
            thread::sleep(PAUSE);
        }
    }

    fn note(&self, error: IcmpError) {
        let mut state = self.lock();
        if state.watched.contains(&error.destination) {
            state.last.insert(error.destination, (Instant::now(), error));
        }
    }

    /// Keeps messages about these addresses and no others.
    pub(super) fn watch(&self, addresses: Vec<SocketAddr>) {
        let mut state = self.lock();
        state.last.retain(|address, _| addresses.contains(address));
        state.watched = addresses;
    }

    /// The newest message about one of these addresses, and how long ago it came.
    pub(super) fn about(&self, addresses: &[SocketAddr]) -> Option<(Duration, IcmpError)> {
        let state = self.lock();
        let found = addresses.iter().filter_map(|address| state.last.get(address));
        let (at, error) = found.max_by_key(|(at, _)| *at)?;
        Some((at.elapsed(), *error))
    }
}

#[cfg(test)]
mod tests {
    use plait_net::icmp::errors::Unreachable;

    use super::*;

    #[test]
    fn only_what_is_about_a_peer_is_kept() {
        let refusals = Refusals::default();
        let [peer, other] = [1, 2].map(|last| SocketAddr::from(([192, 0, 2, last], 7788)));
        let about = |destination| IcmpError {
            from: [10, 0, 0, 1].into(),
            destination,
            why: Unreachable::Port,
        };
        refusals.watch(vec![peer]);
        refusals.note(about(other));
        assert_eq!(refusals.about(&[peer, other]), None);
        refusals.note(about(peer));
        assert_eq!(refusals.about(&[peer, other]).map(|(_, error)| error), Some(about(peer)));
        refusals.watch(vec![other]);
        assert_eq!(refusals.about(&[peer]), None);
    }
}
