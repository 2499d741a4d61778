//! Values of labels: short, different from each other, and never more than so many.

use std::collections::{BTreeMap, BTreeSet};

use plait_proto::stats::{PathStatus, PeerStatus};

/// Peers with labels of their own: each costs Prometheus a hundred series.
pub(super) const PEERS_MAX: usize = 1000;
/// Characters of a key that name its peer, as in the log.
const KEY_CHARS: usize = 8;
/// Names of paths that one peer may bring up while the gateway runs: it chooses those of its own
/// links, and each makes series that Prometheus keeps.
const NAMES_MAX: usize = 16;

/// The peers' labels: the beginnings of their keys; whole keys where two begin alike.
pub(super) fn of_peers(peers: &[PeerStatus]) -> Vec<String> {
    let short = |peer: &PeerStatus| peer.public_key.chars().take(KEY_CHARS).collect::<String>();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for peer in peers {
        *seen.entry(short(peer)).or_default() += 1;
    }
    let label = |peer: &PeerStatus| {
        let short = short(peer);
        if seen[&short] == 1 { short } else { escaped(&peer.public_key) }
    };
    peers.iter().map(label).collect()
}

/// The names of paths that each peer has brought up so far.
#[derive(Debug, Default)]
pub(super) struct PathNames(BTreeMap<String, BTreeSet<String>>);

impl PathNames {
    /// The labels of a peer's paths: their names; with the id where several have the same.
    pub(super) fn of(&mut self, peer: &str, paths: &[PathStatus]) -> Vec<String> {
        if !self.0.contains_key(peer) && self.0.len() >= PEERS_MAX {
            // Peers of earlier configurations.
            self.0.clear();
        }
        let known = self.0.entry(peer.to_owned()).or_default();
        let mut given = BTreeSet::new();
        let mut label = |path: &PathStatus| {
            let is_known = known.contains(&path.name);
            if !is_known && known.len() < NAMES_MAX {
                known.insert(path.name.clone());
            }
            let name = if known.contains(&path.name) { &path.name } else { "other" };
            let label = escaped(name);
            if given.insert(label.clone()) { label } else { format!("{label}#{}", path.id) }
        };
        paths.iter().map(&mut label).collect()
    }
}

/// A label's value as the text format has it.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
