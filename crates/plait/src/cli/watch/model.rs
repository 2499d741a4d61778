//! The state of the gateway: its last answer, and rates from two answers in a row.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_proto::resequencer::Released;
use plait_proto::stats::{PathStatus, PeerStatus};

use super::history::History;
use crate::cli::control::StatusAnswer;
use crate::daemon::ContactStatus;

/// The gateway counts as restarted when its uptime advances by this much less than the time between
/// two answers: it counts whole seconds, and an answer may be late.
const UPTIME_SLACK: Duration = Duration::from_secs(3);

/// The gateway as watched.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Its last answer; `None` before the first.
    pub gateway: Option<Gateway>,
    /// Why it does not answer now, and since when.
    pub failure: Option<Failure>,
    /// Restarts seen.
    pub restarts: u32,
}

/// A gateway that does not answer.
#[derive(Debug)]
pub(super) struct Failure {
    /// What went wrong, in words.
    pub what: String,
    /// Time of the first failed request, since the start of watching.
    pub since: Duration,
}

/// The last answer, with values derived from it and earlier ones.
#[derive(Debug)]
pub(super) struct Gateway {
    /// Time of the answer, since the start of watching.
    pub at: Duration,
    pub tun: String,
    pub uptime_s: u64,
    pub public_key: String,
    pub peers: Vec<Peer>,
    /// Drops since the gateway's start, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Drops at the first answer, or at the gateway's restart.
    pub drops_before: BTreeMap<String, u64>,
}

/// One bond.
#[derive(Debug)]
pub(super) struct Peer {
    pub status: PeerStatus,
    /// How the gateway tries to reach the peer.
    pub contact: Option<ContactStatus>,
    /// All paths together; `None` while no path's rates are known.
    pub rates: Option<Rates>,
    /// Both directions together.
    pub history: History,
    pub paths: Vec<Path>,
    /// Packets that ended their wait since the answer before.
    pub released: Option<Released>,
}

/// One path of a bond.
#[derive(Debug)]
pub(super) struct Path {
    pub status: PathStatus,
    /// `None` when there is nothing to take the difference from.
    pub rates: Option<Rates>,
    /// Share of the bond's bytes in both directions since the answer before, 0 to 1.
    pub share: Option<f64>,
    /// Both directions together.
    pub history: History,
}

/// Rates at the IP layer in bits per second, from differences of counters.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Rates {
    pub out_bps: f64,
    pub in_bps: f64,
}

impl Rates {
    /// `None` when a counter went back or no time passed.
    fn between(before: &PathStatus, after: &PathStatus, elapsed: Duration) -> Option<Self> {
        let out_bytes = after.sent_bytes.checked_sub(before.sent_bytes)?;
        let in_bytes = after.received_bytes.checked_sub(before.received_bytes)?;
        let bps = |bytes: u64| bytes as f64 * 8.0 / elapsed.as_secs_f64();
        (!elapsed.is_zero()).then(|| Self { out_bps: bps(out_bytes), in_bps: bps(in_bytes) })
    }

    /// Both directions together.
    pub(super) fn sum_bps(self) -> f64 {
        self.out_bps + self.in_bps
    }
}

/// The time between two answers, and whether their counters may be compared.
#[derive(Clone, Copy)]
struct Step {
    from: Duration,
    to: Duration,
    comparable: bool,
}

impl Model {
    /// Records an answer that came at `now`, the time since the start of watching.
    pub(super) fn answered(&mut self, now: Duration, answer: StatusAnswer) {
        let old = self.gateway.take();
        let restarted = old.as_ref().is_some_and(|old| has_restarted(old, now, answer.uptime_s));
        self.restarts += u32::from(restarted);
        self.failure = None;
        let from = old.as_ref().map_or(now, |old| old.at);
        let step = Step { from, to: now, comparable: old.is_some() && !restarted };
        let (mut old_peers, old_drops) =
            old.map_or_else(Default::default, |old| (old.peers, old.drops_before));
        let drops = answer.endpoint.drops;
        let mut contacts = answer.contacts;
        let peer = |status: PeerStatus| {
            let place = old_peers.iter().position(|p| p.status.public_key == status.public_key);
            let contact = contacts.iter().position(|c| c.public_key == status.public_key);
            let contact = contact.map(|place| contacts.swap_remove(place));
            let old = place.map(|place| old_peers.swap_remove(place));
            Peer { contact, ..Peer::next(old, status, step) }
        };
        self.gateway = Some(Gateway {
            at: now,
            tun: answer.tun,
            uptime_s: answer.uptime_s,
            public_key: answer.endpoint.public_key,
            peers: answer.endpoint.peers.into_iter().map(peer).collect(),
            drops_before: if step.comparable { old_drops } else { drops.clone() },
            drops,
        });
    }

    /// Records that the gateway did not answer.
    pub(super) fn failed(&mut self, now: Duration, what: String) {
        let since = self.failure.as_ref().map_or(now, |failure| failure.since);
        self.failure = Some(Failure { what, since });
    }

    /// Whether the gateway answers and every bond is up.
    pub(super) fn all_up(&self) -> bool {
        let up = |gateway: &Gateway| gateway.peers.iter().all(|peer| peer.status.state == "up");
        self.failure.is_none() && self.gateway.as_ref().is_some_and(up)
    }
}

/// Whether the gateway's uptime has advanced less than it must have.
fn has_restarted(old: &Gateway, now: Duration, uptime_s: u64) -> bool {
    let advanced = Duration::from_secs(uptime_s) + UPTIME_SLACK;
    uptime_s < old.uptime_s || advanced < Duration::from_secs(old.uptime_s) + (now - old.at)
}

impl Gateway {
    /// Drops for a reason since watching began.
    pub(super) fn new_drops(&self, reason: &str) -> u64 {
        let count = |drops: &BTreeMap<String, u64>| drops.get(reason).copied().unwrap_or(0);
        count(&self.drops).saturating_sub(count(&self.drops_before))
    }
}

impl Peer {
    fn next(old: Option<Self>, mut status: PeerStatus, step: Step) -> Self {
        let before = old.as_ref().map(|old| old.status.resequencer.released);
        let released = before
            .filter(|_| step.comparable)
            .and_then(|before| released_since(before, status.resequencer.released));
        let (mut old_paths, mut history) =
            old.map_or_else(Default::default, |old| (old.paths, old.history));
        let mut paths = next_paths(&mut old_paths, std::mem::take(&mut status.paths), step);
        let known: Vec<Rates> = paths.iter().filter_map(|path| path.rates).collect();
        let rates = (!known.is_empty()).then(|| Rates {
            out_bps: known.iter().map(|rates| rates.out_bps).sum(),
            in_bps: known.iter().map(|rates| rates.in_bps).sum(),
        });
        if let Some(rates) = rates {
            history.push(step.from, step.to, rates.sum_bps());
        }
        let total_bps = rates.map_or(0.0, Rates::sum_bps);
        for path in &mut paths {
            path.share =
                path.rates.filter(|_| total_bps > 0.0).map(|rates| rates.sum_bps() / total_bps);
        }
        Self { status, contact: None, rates, history, paths, released }
    }
}

/// Merges paths with their earlier state. A path that rejoined has a new id and counts from zero,
/// but keeps the history of its name.
fn next_paths(old: &mut Vec<Path>, new: Vec<PathStatus>, step: Step) -> Vec<Path> {
    let mut same: Vec<_> = new.iter().map(|status| take_same(old, status)).collect();
    let next = new.into_iter().zip(&mut same).map(|(status, same)| {
        let rates = same
            .as_ref()
            .filter(|_| step.comparable)
            .and_then(|same| Rates::between(&same.status, &status, step.to - step.from));
        let namesake = || {
            let place = old.iter().position(|path| path.status.name == status.name)?;
            Some(old.swap_remove(place))
        };
        let mut history =
            same.take().or_else(namesake).map_or_else(History::default, |path| path.history);
        if let Some(rates) = rates {
            history.push(step.from, step.to, rates.sum_bps());
        }
        Path { status, rates, share: None, history }
    });
    next.collect()
}

fn take_same(old: &mut Vec<Path>, status: &PathStatus) -> Option<Path> {
    let is_same = |path: &Path| path.status.id == status.id && path.status.name == status.name;
    let place = old.iter().position(is_same)?;
    Some(old.swap_remove(place))
}

/// `None` when a counter went back.
fn released_since(before: Released, after: Released) -> Option<Released> {
    Some(Released {
        in_order: after.in_order.checked_sub(before.in_order)?,
        known_lost: after.known_lost.checked_sub(before.known_lost)?,
        timer: after.timer.checked_sub(before.timer)?,
        overflow: after.overflow.checked_sub(before.overflow)?,
    })
}

#[cfg(test)]
mod tests;
