//! Decides when two states are the same: by how names, sessions and sequence numbers of the ends
//! relate, what is in flight, and ages in coarse classes. The random numbers behind names, and the
//! absolute time, make no difference.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use plait_proto::bond::PathShape;
use plait_proto::endpoint::{Endpoint, NamedBondShape, PeerShape};
use plait_proto::time::Duration;

use super::network::{Flying, PROVIDER_AT, Side};
use super::world::World;

/// Age bounds between which the core behaves the same: a session that one more long wait makes too
/// old, one that is to be renewed, and one that is refused; a metered path that sleeps.
const SESSION_AGES_S: [u64; 4] = [1, 60, 120, 180];
const IDLE_S: [u64; 1] = [10];
/// Initiations closer together are dropped.
const ACCEPTED_MS: [u64; 2] = [20, 250];
/// A datagram that arrives later than this was delayed.
const LATE_MS: [u64; 1] = [100];
/// More attempts than this count as this many.
const ATTEMPTS_MAX: usize = 3;
/// A sequence number so far behind does not catch up while a state is watched.
const FAR: i64 = 10;

/// How many of the bounds have been reached.
fn class_ms(time: Duration, bounds_ms: &[u64]) -> u8 {
    let ms = time.as_millis() as u64;
    bounds_ms.iter().filter(|bound| ms >= **bound).count() as u8
}

fn class_s(time: Duration, bounds_s: &[u64]) -> u8 {
    bounds_s.iter().filter(|bound| time.as_secs() >= **bound).count() as u8
}

/// Random names, numbered in order of first appearance.
#[derive(Default)]
struct Names {
    known: BTreeMap<u64, u8>,
}

impl Names {
    fn of(&mut self, name: u64) -> u8 {
        let next = self.known.len() as u8;
        *self.known.entry(name).or_insert(next)
    }
}

struct Fingerprint {
    hasher: DefaultHasher,
    ends: Names,
    sessions: Names,
}

impl World {
    /// Equal for states that are the same.
    pub fn fingerprint(&self) -> u64 {
        let shapes: [Option<PeerShape>; 3] = [0, 1, 2].map(|at| {
            let gateway: Option<&Endpoint> = self.gateways[at].as_ref();
            gateway.and_then(|gateway| gateway.shape(self.now).pop())
        });
        let mut print = Fingerprint {
            hasher: DefaultHasher::new(),
            ends: Names::default(),
            sessions: Names::default(),
        };
        (self.faults, self.network.cut).hash(&mut print.hasher);
        for side in [Side::Provider, Side::Customer, Side::Clone] {
            let Some(shape) = &shapes[side as usize] else {
                0_u8.hash(&mut print.hasher);
                continue;
            };
            let others = match side {
                Side::Provider => [&shapes[0], &shapes[2]],
                Side::Customer | Side::Clone => [&shapes[1], &None],
            };
            print.add_peer(self, shape, others);
        }
        print.add_flying(self);
        print.hasher.finish()
    }
}

impl Fingerprint {
    fn add(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    fn add_peer(&mut self, world: &World, shape: &PeerShape, others: [&Option<PeerShape>; 2]) {
        for named in [&shape.bond, &shape.next_bond] {
            match named {
                Some(named) => self.add_bond(world, named, others),
                None => self.add(0_u8),
            }
        }
        let own_end = self.ends.of(shape.own_end.0);
        let session = shape.session.map(|(age, began)| (class_s(age, &SESSION_AGES_S), began));
        let initiation = shape.initiation.map(|(index, end)| {
            (self.sessions.of(u64::from(index.wire() >> 8)), self.ends.of(end.0))
        });
        let answered = shape.answered.map(|index| self.sessions.of(u64::from(index.wire() >> 8)));
        self.add((own_end, session, initiation, answered));
        let accepted = shape.accepted_before.map(|time| class_ms(time, &ACCEPTED_MS));
        self.add((shape.attempts.min(ATTEMPTS_MAX), shape.next_attempt_in.is_some(), accepted));
        self.add((shape.has_waiting, shape.can_be_called));
        for other in others.into_iter().flatten() {
            self.add(shape.own_timestamp.cmp(&other.newest_timestamp));
        }
    }

    fn add_bond(&mut self, world: &World, named: &NamedBondShape, others: [&Option<PeerShape>; 2]) {
        let bond = &named.bond;
        let ends = (self.ends.of(named.own.0), self.ends.of(named.peer.0));
        let sends_to = self.sessions.of(u64::from(bond.sends_to.wire() >> 8));
        let of = |sessions: &mut Names, index: &plait_proto::wire::handshake::SessionIndex| {
            sessions.of(u64::from(index.wire() >> 8))
        };
        let unconfirmed = bond.unconfirmed.map(|index| of(&mut self.sessions, &index));
        // Of the remaining ones only the two newest can matter.
        let accepts: Vec<u8> =
            bond.accepts.iter().rev().take(2).map(|index| of(&mut self.sessions, index)).collect();
        self.add((1_u8, ends, sends_to, unconfirmed, accepts));
        let sleeps_soon = world.setup.metered.then(|| class_s(bond.idle_for, &IDLE_S));
        self.add((sleeps_soon, bond.told_silent));
        for other in others.into_iter().flatten() {
            for theirs in [&other.bond, &other.next_bond].into_iter().flatten() {
                let same = theirs.own == named.peer && theirs.peer == named.own;
                let ahead = bond.next_seq.0 as i64 - theirs.bond.floor.0 as i64;
                self.add(same.then_some((ahead < 0, ahead <= -FAR)));
            }
        }
        for path in &bond.paths {
            self.add_path(world, path);
        }
    }

    fn add_path(&mut self, world: &World, path: &PathShape) {
        let remote = if path.remote == PROVIDER_AT {
            0
        } else if path.remote == world.network.outside(Side::Customer, 0) {
            1
        } else if path.remote == world.network.outside(Side::Clone, 0) {
            2
        } else if world.setup.links > 1 && path.remote == world.network.outside(Side::Customer, 1) {
            3
        } else {
            4
        };
        self.add((path.id.0 & 1, path.state as u8, remote));
        self.add((path.validated, path.ignored));
    }

    /// Datagrams in flight, except ordinary traffic of a session in use, in the order of arrival;
    /// several equal ones in a row count as one.
    fn add_flying(&mut self, world: &World) {
        let mut flying: Vec<&Flying> = world.network.flying.iter().collect();
        flying.sort_by_key(|flying| (flying.at, flying.count));
        let mut before = None;
        for flying in flying {
            let due = class_ms(flying.at.since(world.now.min(flying.at)), &LATE_MS);
            if due == 0 && !world.network.is_milestone(flying) {
                continue;
            }
            let kind = flying.kind().map(|kind| kind as u8);
            let index = self.sessions.of(u64::from(flying.index()));
            let this = (flying.from, flying.to, kind, index, due);
            if before != Some(this) {
                self.add(this);
                before = Some(this);
            }
        }
    }
}
