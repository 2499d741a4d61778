//! Slots for connections to the measuring service. No peer can take them all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections of all peers that are served at a time.
pub(super) const CONNECTIONS_MAX: usize = 400;

/// How many slots each client holds: peers by key; all clients that are not peers together.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Mutex<BTreeMap<Option<String>, usize>>>);

/// A slot, released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    holder: Option<String>,
}

impl Slots {
    /// The guarded data is always consistent.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<String>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one more slot, if allowed: each client may hold half of what the others leave.
    pub(super) fn take(&self, holder: Option<String>) -> Option<Slot> {
        let mut held = self.lock();
        let own = held.get(&holder).copied().unwrap_or_default();
        let others = held.values().sum::<usize>() - own;
        if own >= (CONNECTIONS_MAX - others).div_ceil(2) {
            return None;
        }
        held.insert(holder.clone(), own + 1);
        drop(held);
        Some(Slot { slots: self.clone(), holder })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.slots.lock();
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_no_peer_takes_all_places() {
        let slots = Slots::default();
        let all_of = |name: &str| -> Vec<Slot> {
            std::iter::from_fn(|| slots.take(Some(name.into()))).collect()
        };
        let mut held: Vec<Vec<Slot>> = vec![all_of("a"), all_of("b"), all_of("c")];
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [200, 100, 50]);
        assert!(slots.take(None).is_some());
        held.remove(0);
        assert_eq!(all_of("d").len(), 125, "half of what b and c leave");
        drop(held);
        assert!(slots.lock().is_empty());
    }
}
