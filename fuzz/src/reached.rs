//! What the targets have reached: in which state of a peer which message was dropped for which
//! reason, or taken. `make fuzz` prints it, and samples are chosen by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Endpoint;
use plait_proto::stats::{PathState, PeerStatus};
use plait_proto::time::Instant;
use plait_proto::wire::Kind;

/// What happened to a message that was not dropped.
const TAKEN: &str = "taken";

#[derive(Debug, Default)]
struct Reached {
    /// By state and message: how often each outcome was.
    cells: BTreeMap<(&'static str, &'static str), BTreeMap<&'static str, u64>>,
    /// What else the targets came to: counters, each with its magnitude, and the like.
    others: BTreeSet<String>,
}

impl Reached {
    fn merge(&mut self, other: Self) {
        for (place, outcomes) in other.cells {
            let cell = self.cells.entry(place).or_default();
            for (outcome, count) in outcomes {
                *cell.entry(outcome).or_default() += count;
            }
        }
        self.others.extend(other.others);
    }
}

static REACHED: Mutex<Reached> =
    Mutex::new(Reached { cells: BTreeMap::new(), others: BTreeSet::new() });

fn reached() -> MutexGuard<'static, Reached> {
    // A target that panics elsewhere leaves whole counts behind.
    REACHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a datagram with this first byte is, as far as it can be seen from outside.
pub fn message(first: u8) -> &'static str {
    match Kind::of(first) {
        Some(Kind::Initiation) => "initiation",
        Some(Kind::Response) => "response",
        Some(Kind::CookieReply) => "cookie reply",
        Some(Kind::Data) => "data",
        Some(Kind::Control) => "control",
        None => "unknown type",
    }
}

fn state(peer: Option<&PeerStatus>) -> &'static str {
    let Some(peer) = peer else { return "no peer" };
    if peer.cipher.is_none() {
        return if peer.state == "connecting" { "handshaking" } else { "no session" };
    }
    // The best of its paths is the bond's state.
    let states = [
        (PathState::Up, "up"),
        (PathState::Validating, "validating"),
        (PathState::Lossy, "lossy"),
        (PathState::Silent, "silent"),
        (PathState::Asleep, "asleep"),
    ];
    let has = |state| peer.paths.iter().any(|path| path.state == state);
    states.into_iter().find(|(state, _)| has(*state)).map_or("no path", |(_, name)| name)
}

/// Does something to an endpoint on behalf of its peer of this number, and notes what came of it.
pub fn around(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: usize,
    message: &'static str,
    act: impl FnOnce(&mut Endpoint),
) {
    let state = state(endpoint.status(now).peers.get(peer));
    let before: Vec<u64> = counts(endpoint).collect();
    act(endpoint);
    let after: Vec<u64> = counts(endpoint).collect();
    let risen = before.iter().zip(&after).map(|(before, after)| after > before);
    let reasons = DropReason::ALL.iter().zip(risen).filter(|(_, risen)| *risen);
    let mut outcomes: Vec<_> = reasons.map(|(reason, _)| reason.name()).collect();
    if outcomes.is_empty() {
        outcomes.push(TAKEN);
    }
    let mut reached = reached();
    let cell = reached.cells.entry((state, message)).or_default();
    outcomes.into_iter().for_each(|outcome| *cell.entry(outcome).or_default() += 1);
}

fn counts(endpoint: &Endpoint) -> impl Iterator<Item = u64> + '_ {
    DropReason::ALL.iter().map(|reason| endpoint.drop_count(*reason))
}

/// Notes the counters in the `Debug` form of statistics, each with its magnitude.
pub fn statistics(target: &str, debug: &str) {
    let mut reached = reached();
    for field in debug.split([',', '{', '}']) {
        let Some((name, value)) = field.split_once(':') else { continue };
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        let magnitude = (u64::BITS - value.leading_zeros()).min(8);
        reached.others.insert(format!("{target} {} {magnitude}", name.trim()));
    }
}

/// Notes something else that a target came to.
pub fn feature(text: String) {
    reached().others.insert(text);
}

/// Everything that `act` alone reaches.
pub fn features_of(act: impl FnOnce()) -> BTreeSet<String> {
    let before = core::mem::take(&mut *reached());
    act();
    let found = core::mem::take(&mut *reached());
    let cells = found.cells.iter().flat_map(|((state, message), outcomes)| {
        outcomes.keys().map(move |outcome| format!("{state}, {message}: {outcome}"))
    });
    let features = cells.chain(found.others.iter().cloned()).collect();
    let mut reached = reached();
    reached.merge(before);
    reached.merge(found);
    features
}

/// A line for each state and message: outcomes, and how often each was.
pub fn table() -> Vec<String> {
    let reached = reached();
    let mut lines = vec![format!("{:<12} {:<28} outcomes", "state", "message")];
    for ((state, message), outcomes) in &reached.cells {
        let outcomes: Vec<_> =
            outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        lines.push(format!("{state:<12} {message:<28} {}", outcomes.join(", ")));
    }
    lines
}

/// Reasons for a drop that nothing led to.
pub fn never() -> Vec<&'static str> {
    let reached = reached();
    let is_reached = |name| reached.cells.values().any(|outcomes| outcomes.contains_key(name));
    let names = DropReason::ALL.iter().map(|reason| reason.name());
    names.filter(|name| !is_reached(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_noted_by_magnitude() {
        let text =
            |held: u64| format!("Stats {{ held: {held}, ends: Ends {{ gap: 70000 }}, x: y }}");
        let features = |held| features_of(|| statistics("test", &text(held)));
        assert_eq!(features(5).len(), 2);
        assert_eq!(features(5), features(6));
        assert_ne!(features(5), features(500));
    }
}
