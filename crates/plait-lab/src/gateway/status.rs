//! The part of `plait status --json` that the lab reads.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use plait_proto::resequencer::ResequencerStats;
use serde::Deserialize;

/// A gateway.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) peers: Vec<PeerView>,
    #[serde(default)]
    pub(crate) drops: BTreeMap<String, u64>,
    /// Measurements that run.
    #[serde(default)]
    pub(crate) measurements: Vec<serde_json::Value>,
}

/// The bond with one peer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PeerView {
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) inner_delivered_packets: u64,
    #[serde(default)]
    pub(crate) paths: Vec<PathView>,
    /// Printed unchanged.
    #[serde(default)]
    pub(crate) resequencer: serde_json::Value,
}

/// One path of a bond.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PathView {
    pub(crate) state: String,
}

impl Status {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).with_context(|| format!("unknown form of status: {text}"))
    }

    /// Whether every peer is up, with `paths` paths up each.
    pub(crate) fn is_up(&self, paths: usize) -> bool {
        !self.peers.is_empty()
            && self.peers.iter().all(|peer| peer.state == "up" && peer.paths_up() >= paths)
    }

    /// Inner packets given to the host, over all peers.
    pub(crate) fn inner_delivered_packets(&self) -> u64 {
        self.peers.iter().map(|peer| peer.inner_delivered_packets).sum()
    }

    /// Inner packets from datagrams accepted as genuine, over all peers: those given to the host,
    /// waiting ones, late ones and duplicates.
    pub(crate) fn opened_packets(&self) -> Result<u64> {
        let of_peer = |peer: &PeerView| -> Result<u64> {
            let stats: ResequencerStats = serde_json::from_value(peer.resequencer.clone())
                .context("unknown form of the resequencer's counters")?;
            let late = stats.late_dropped + stats.late_delivered;
            Ok(stats.at_once + stats.waited + late + stats.duplicates)
        };
        self.peers.iter().map(of_peer).sum()
    }

    /// Drops of every kind.
    pub(crate) fn drops_total(&self) -> u64 {
        self.drops.values().sum()
    }
}

impl PeerView {
    fn paths_up(&self) -> usize {
        self.paths.iter().filter(|path| path.state == "up").count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{"public_key":"a","peers":[{"public_key":"b","state":"up",
        "scheduler":"min-rtt","paths":[
            {"name":"dsl","id":0,"state":"up","srtt_us":13100,"sent_packets":5,"sent_bytes":7000,
             "weight":12,"reported_lost_packets":2,"received_packets":4,"lost_packets":1},
            {"name":"lte","id":1,"state":"validating","srtt_us":null}],
        "resequencer":{"waited_packets":3}}],"drops":{"bad-tag":2,"replayed":1}}"#;

    #[test]
    fn paths_that_are_up_are_counted() {
        let status = Status::parse(SAMPLE).unwrap();
        assert!(status.is_up(1));
        assert!(!status.is_up(2));
        assert_eq!(status.drops_total(), 3);
    }

    #[test]
    fn a_gateway_without_peers_is_not_up() {
        assert!(!Status::parse(r#"{"peers":[]}"#).unwrap().is_up(0));
        assert!(Status::parse("plait: no such gateway").is_err());
    }
}
