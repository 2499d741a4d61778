//! Flows towards clients: which ones are known, how many packets of each have passed, and which
//! attachment it keeps to.
//!
//! One table for all clients, so that a packet of a known flow takes one look-up; a client's flows
//! are bounded in number, and the one idle longest makes room. Memory grows with the flows up to
//! their bound and is reused from then on.

use crate::flow::flow_hash;
use crate::time::{Duration, Instant};
use crate::wire::ip::Inner;

/// No slot.
const NONE: u32 = u32::MAX;

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Place of its client.
    pub(super) client: u16,
    /// Packets since its SYN, or since it was first seen, as far as they count.
    pub(super) packets: u32,
    /// The attachment of all its packets, where flows are not split.
    pub(super) attachment: Option<u8>,
}

#[derive(Clone, Debug)]
struct Slot {
    key: Inner,
    hash: u32,
    flow: Flow,
    last_at: Instant,
    /// Next slot of the same bucket, or the next free one.
    next: u32,
    /// Neighbours in the client's list, by the time of the last packet.
    older: u32,
    newer: u32,
}

/// A client's flows, the one idle longest first.
#[derive(Clone, Copy, Debug)]
struct List {
    oldest: u32,
    newest: u32,
    length: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, length: 0 }
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Flows {
    seed: u64,
    /// First slot of each bucket; a power of two of them.
    buckets: Vec<u32>,
    slots: Vec<Slot>,
    free: u32,
    lists: Vec<List>,
    /// Slot of the packet before: flows send trains, and a hash costs more than a comparison.
    latest: u32,
}

/// A flow's place in the table, until another one is inserted or removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowSlot(u32);

impl Flows {
    /// An empty table for so many clients; `seed` is random.
    pub(super) fn new(seed: u64, clients: usize) -> Self {
        Self {
            seed,
            buckets: vec![NONE; 16],
            slots: Vec::new(),
            free: NONE,
            lists: vec![List::default(); clients],
            latest: NONE,
        }
    }

    /// Flows of a client.
    pub(super) fn count(&self, client: u16) -> u32 {
        self.lists[usize::from(client)].length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.length == 0)
    }

    pub(super) fn get(&mut self, slot: FlowSlot) -> &mut Flow {
        &mut self.slots[slot.0 as usize].flow
    }

    /// The slot of a flow that is known, which has a packet now.
    #[inline]
    pub(super) fn find(&mut self, now: Instant, key: &Inner) -> Option<FlowSlot> {
        let latest = self.slots.get(self.latest as usize);
        if latest.is_none_or(|slot| slot.key != *key) {
            let hash = self.hash(key);
            let mut at = self.buckets[self.bucket(hash)];
            while let Some(slot) = self.slots.get(at as usize) {
                if slot.hash == hash && slot.key == *key {
                    break;
                }
                at = slot.next;
            }
            if at == NONE {
                return None;
            }
            self.latest = at;
        }
        self.touch(self.latest, now);
        Some(FlowSlot(self.latest))
    }

    /// Adds a flow that is not known. Returns its slot, and whether the client's oldest flow had to
    /// go because it had `flows_max`.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        key: &Inner,
        client: u16,
        flows_max: u32,
    ) -> (FlowSlot, bool) {
        let list = self.lists[usize::from(client)];
        let full = list.length >= flows_max;
        if full {
            self.remove(list.oldest);
        }
        let hash = self.hash(key);
        let flow = Flow { client, packets: 0, attachment: None };
        let fresh =
            Slot { key: *key, hash, flow, last_at: now, next: NONE, older: NONE, newer: NONE };
        let at = self.place(fresh);
        self.link(at);
        self.append(at);
        self.latest = at;
        (FlowSlot(at), full)
    }

    /// Forgets a client's flows that have been idle for `idle`. Returns how many.
    pub(super) fn expire(&mut self, now: Instant, client: u16, idle: Duration) -> u64 {
        let mut expired = 0;
        loop {
            let oldest = self.lists[usize::from(client)].oldest;
            let Some(slot) = self.slots.get(oldest as usize) else { break };
            if now.since(slot.last_at) < idle {
                break;
            }
            self.remove(oldest);
            expired += 1;
        }
        expired
    }

    /// Clients have moved: `new_place` gives each old client's new place, and the new place of an
    /// attachment of it, `None` for what is gone.
    pub(super) fn move_clients(
        &mut self,
        clients: usize,
        new_place: impl Fn(u16) -> Option<u16>,
        new_attachment: impl Fn(u16, u8) -> Option<u8>,
    ) {
        let mut lists = vec![List::default(); clients];
        for old in 0..u16::try_from(self.lists.len()).expect("clients are counted with 16 bits") {
            let Some(new) = new_place(old) else {
                while self.lists[usize::from(old)].length > 0 {
                    self.remove(self.lists[usize::from(old)].oldest);
                }
                continue;
            };
            let list = self.lists[usize::from(old)];
            let mut at = list.oldest;
            while let Some(slot) = self.slots.get_mut(at as usize) {
                slot.flow.client = new;
                slot.flow.attachment = slot.flow.attachment.and_then(|at| new_attachment(old, at));
                at = slot.newer;
            }
            lists[usize::from(new)] = list;
        }
        self.lists = lists;
    }

    fn hash(&self, key: &Inner) -> u32 {
        flow_hash(key, self.seed) as u32
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Puts a slot into a free place, or a new one.
    fn place(&mut self, slot: Slot) -> u32 {
        if let Some(place) = self.slots.get_mut(self.free as usize) {
            let at = self.free;
            self.free = place.next;
            *place = slot;
            return at;
        }
        let at = u32::try_from(self.slots.len()).expect("flows are counted with 32 bits");
        self.slots.push(slot);
        if self.slots.len() > self.buckets.len() {
            self.grow(at);
        }
        at
    }

    /// Doubles the buckets and links the slots anew, but for the one at `unlinked`. All others are
    /// in use: a new slot is added only when none is free.
    fn grow(&mut self, unlinked: u32) {
        let buckets = self.buckets.len() * 2;
        self.buckets.clear();
        self.buckets.resize(buckets, NONE);
        for at in 0..unlinked {
            self.link(at);
        }
    }

    fn link(&mut self, at: u32) {
        let bucket = self.bucket(self.slots[at as usize].hash);
        self.slots[at as usize].next = self.buckets[bucket];
        self.buckets[bucket] = at;
    }

    fn unlink(&mut self, at: u32) {
        let bucket = self.bucket(self.slots[at as usize].hash);
        let next = self.slots[at as usize].next;
        let mut before = self.buckets[bucket];
        if before == at {
            self.buckets[bucket] = next;
            return;
        }
        while self.slots[before as usize].next != at {
            before = self.slots[before as usize].next;
        }
        self.slots[before as usize].next = next;
    }

    fn remove(&mut self, at: u32) {
        self.unlink(at);
        self.detach(at);
        self.slots[at as usize].next = self.free;
        self.free = at;
        if self.latest == at {
            self.latest = NONE;
        }
    }

    /// Makes a flow its client's newest.
    fn touch(&mut self, at: u32, now: Instant) {
        let slot = &mut self.slots[at as usize];
        slot.last_at = now;
        if slot.newer != NONE {
            self.detach(at);
            self.append(at);
        }
    }

    fn append(&mut self, at: u32) {
        let client = usize::from(self.slots[at as usize].flow.client);
        let list = &mut self.lists[client];
        let before = list.newest;
        list.newest = at;
        list.length += 1;
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.newer = at,
            None => list.oldest = at,
        }
        let slot = &mut self.slots[at as usize];
        (slot.older, slot.newer) = (before, NONE);
    }

    fn detach(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        let (older, newer) = (slot.older, slot.newer);
        let list = &mut self.lists[usize::from(slot.flow.client)];
        list.length -= 1;
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => list.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => list.newest = older,
        }
    }
}

#[cfg(test)]
mod tests;
