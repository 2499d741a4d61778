//! A status as OpenMetrics text.

use std::fmt::Error;
use std::sync::Arc;
use std::time::Duration;

use plait_proto::drop_reason::DropReason;
use plait_proto::resequencer::WAITING_BUCKETS_MS;
use plait_proto::stats::{PathState, PathStatus, PeerStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::figures::{DEVICE, Figure, PATH, PEER, SOCKET, Value};
use super::labels::{self, PEERS_MAX, PathNames};
use crate::daemon::links::LinkState;
use crate::daemon::ports::SocketStatus;
use crate::daemon::requests::Snapshot;

/// The label of the socket for peers that call, among those of the links.
const LISTENING: &str = "(listening)";
const PATH_STATES: [PathState; 5] =
    [PathState::Validating, PathState::Up, PathState::Silent, PathState::Lossy, PathState::Asleep];
const PEER_STATES: [&str; 4] = ["up", "stuck", "connecting", "down"];

/// What the server of metrics tells of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    pub(super) scrapes: u64,
    /// Connections closed unheard.
    pub(super) refused: u64,
    /// How long the loop took to gather the status.
    pub(super) gathered_in: Duration,
}

/// A status, with the labels of what it has several of.
#[derive(Debug)]
pub(super) struct Exposition {
    snapshot: Snapshot,
    served: Served,
    peers: Vec<String>,
    /// Of each peer that has a label.
    paths: Vec<Vec<String>>,
}

impl Exposition {
    pub(super) fn new(snapshot: Snapshot, served: Served, names: &mut PathNames) -> Self {
        let told = &snapshot.endpoint.peers;
        let peers = labels::of_peers(&told[..told.len().min(PEERS_MAX)]);
        let of_paths = |(label, peer): (&String, &PeerStatus)| names.of(label, &peer.paths);
        let paths = peers.iter().zip(told).map(of_paths).collect();
        Self { snapshot, served, peers, paths }
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        /// A peer with a path is about so long.
        const BYTES_PER_PEER: usize = 7000;
        let mut text = String::with_capacity((self.peers.len() + 2) * BYTES_PER_PEER);
        let mut registry = Registry::with_prefix("plait");
        registry.register_collector(Box::new(Arc::new(self)));
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }

    /// The peers that have labels.
    fn peers(&self) -> impl Iterator<Item = (&str, &PeerStatus)> + Clone {
        self.peers.iter().map(String::as_str).zip(&self.snapshot.endpoint.peers)
    }

    fn gateway(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        out.encode_descriptor("build", "The program.", None, MetricType::Info)?
            .encode_info(&version)?;
        let up = self.snapshot.uptime_s;
        gauge(out, "uptime", "Time since the start.", Some(Unit::Seconds), |out| {
            out.encode_gauge(&up)
        })?;
        gauge(out, "peers", "Configured peers, by the state of the bond.", None, |out| {
            for state in PEER_STATES {
                let all = self.snapshot.endpoint.peers.iter();
                let count = all.filter(|peer| peer.state == state).count();
                out.encode_family(&[("state", state)])?.encode_gauge(&count)?;
            }
            Ok(())
        })?;
        let left_out = self.snapshot.endpoint.peers.len() - self.peers.len();
        let help = "Peers beyond the first 1000, which have no metrics of their own.";
        gauge(out, "peers_left_out", help, None, |out| out.encode_gauge(&left_out))?;
        let help = "Packets and datagrams dropped, by reason: docs/guide/drops.md.";
        counter(out, "drops", help, None, |out| {
            for reason in DropReason::ALL {
                let count = self.snapshot.endpoint.drops.get(reason.name()).copied();
                count_one(out, &[("reason", reason.name())], count.unwrap_or(0))?;
            }
            Ok(())
        })?;
        let Served { scrapes, refused, gathered_in } = self.served;
        counter(out, "metrics_scrapes", "Requests for metrics.", None, |out| {
            out.encode_counter::<NoLabelSet, u64, f64>(&scrapes, None)
        })?;
        let help = "Connections closed unheard, because there were too many.";
        counter(out, "metrics_refused_connections", help, None, |out| {
            out.encode_counter::<NoLabelSet, u64, f64>(&refused, None)
        })?;
        let help = "How long gathering these metrics took.";
        gauge(out, "metrics_gathering", help, Some(Unit::Seconds), |out| {
            out.encode_gauge(&gathered_in.as_secs_f64())
        })
    }

    fn links(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let names: Vec<String> =
            self.snapshot.links.iter().map(|link| labels::escaped(&link.name)).collect();
        let links = || names.iter().zip(&self.snapshot.links);
        gauge(out, "link_up", "1 when the configured path has a link.", None, |out| {
            for (name, link) in links() {
                let is_up = u64::from(link.state == LinkState::Up);
                out.encode_family(&[("link", name.as_str())])?.encode_gauge(&is_up)?;
            }
            Ok(())
        })?;
        let listening = self.snapshot.listening.as_ref().map(|socket| (LISTENING, socket));
        let own = links().filter_map(|(name, link)| Some((name.as_str(), link.socket.as_ref()?)));
        let sockets: Vec<(&str, &SocketStatus)> = own.chain(listening).collect();
        let sockets = || sockets.iter().map(|(name, socket)| ([("link", *name)], *socket));
        SOCKET.iter().try_for_each(|figure| all(out, figure, sockets()))?;
        let device = std::iter::once(([("", ""); 0], &self.snapshot.device));
        DEVICE.iter().try_for_each(|figure| all(out, figure, device.clone()))?;
        for (name, help, is_limit) in [
            ("quota_used", "Bytes of the month so far; counted every 5 s.", false),
            ("quota_limit", "Bytes that the path may carry in a month.", true),
        ] {
            gauge(out, name, help, Some(Unit::Bytes), |out| {
                for quota in &self.snapshot.quotas {
                    let bytes = if is_limit { quota.limit_bytes } else { quota.used_bytes };
                    let path = labels::escaped(&quota.path);
                    out.encode_family(&[("path", path.as_str())])?.encode_gauge(&bytes)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn of_peers(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut info = out.encode_descriptor("peer", "The peer.", None, MetricType::Info)?;
        for (label, peer) in self.peers() {
            let cipher = peer.cipher.as_deref().unwrap_or_default();
            let key = labels::escaped(&peer.public_key);
            let labels = [
                ("peer", label),
                ("public_key", &key),
                ("scheduler", &peer.scheduler),
                ("cipher", cipher),
            ];
            info.encode_info(&labels)?;
        }
        gauge(out, "peer_state", "1 for the state that the bond is in.", None, |out| {
            for (label, peer) in self.peers() {
                let labels = [("peer", label), ("state", peer.state.as_str())];
                out.encode_family(&labels)?.encode_gauge(&1_u64)?;
            }
            Ok(())
        })?;
        let peers = self.peers().map(|(label, peer)| ([("peer", label)], peer));
        PEER.iter().try_for_each(|figure| all(out, figure, peers.clone()))?;
        let help = "Packets that waited, by what ended it.";
        counter(out, "resequencer_released_packets", help, None, |out| {
            for (label, peer) in self.peers() {
                let released = &peer.resequencer.released;
                for (reason, count) in [
                    ("in-order", released.in_order),
                    ("known-lost", released.known_lost),
                    ("timer", released.timer),
                    ("overflow", released.overflow),
                ] {
                    count_one(out, &[("peer", label), ("reason", reason)], count)?;
                }
            }
            Ok(())
        })?;
        self.waits(out)
    }

    fn waits(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let (help, unit) = ("How long packets waited in the resequencer.", Unit::Seconds);
        let name = "resequencer_wait";
        let mut out = out.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        let bounds = WAITING_BUCKETS_MS.iter().map(|ms| *ms as f64 / 1e3);
        let bounds: Vec<f64> = bounds.chain([f64::MAX]).collect();
        for (label, peer) in self.peers() {
            let counts = peer.resequencer.waiting_histogram;
            let buckets: Vec<(f64, u64)> = bounds.iter().copied().zip(counts).collect();
            let sum = peer.resequencer.waiting_total_us as f64 / 1e6;
            let count = counts.iter().sum();
            out.encode_family(&[("peer", label)])?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn of_paths(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let all_paths = self.peers().zip(&self.paths).flat_map(|((peer, status), labels)| {
            let named = labels.iter().zip(&status.paths);
            named.map(move |(path, status)| ([("peer", peer), ("path", path.as_str())], status))
        });
        gauge(out, "path_state", "1 for the state that the path is in.", None, |out| {
            for ([peer, path], status) in all_paths.clone() {
                for state in PATH_STATES.iter().filter(|state| **state == status.state) {
                    let labels = [peer, path, ("state", state.name())];
                    out.encode_family(&labels)?.encode_gauge(&1_u64)?;
                }
            }
            Ok(())
        })?;
        let figures: &[Figure<PathStatus>] = PATH;
        figures.iter().try_for_each(|figure| all(out, figure, all_paths.clone()))
    }
}

impl Collector for Exposition {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.gateway(&mut out)?;
        self.links(&mut out)?;
        self.of_peers(&mut out)?;
        self.of_paths(&mut out)
    }
}

fn gauge(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    values: impl FnOnce(&mut MetricEncoder<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    values(&mut out.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?)
}

fn counter(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    values: impl FnOnce(&mut MetricEncoder<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    values(&mut out.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?)
}

fn count_one(
    out: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    count: u64,
) -> Result<(), Error> {
    out.encode_family(labels)?.encode_counter::<NoLabelSet, u64, f64>(&count, None)
}

/// A figure of everything that has it.
fn all<'a, T: 'a, L: EncodeLabelSet>(
    out: &mut DescriptorEncoder<'_>,
    figure: &Figure<T>,
    of: impl Iterator<Item = (L, &'a T)>,
) -> Result<(), Error> {
    let kind = match figure.value {
        Value::Counter(_) => MetricType::Counter,
        Value::Whole(_) | Value::Real(_) => MetricType::Gauge,
    };
    let unit = figure.unit.unit();
    let mut out = out.encode_descriptor(figure.name, figure.help, unit.as_ref(), kind)?;
    for (labels, status) in of {
        match figure.value {
            Value::Counter(count) => {
                if let Some(count) = count(status) {
                    count_one(&mut out, &labels, count)?;
                }
            }
            Value::Whole(number) => {
                if let Some(number) = number(status) {
                    out.encode_family(&labels)?.encode_gauge(&number)?;
                }
            }
            Value::Real(number) => {
                if let Some(number) = number(status) {
                    out.encode_family(&labels)?.encode_gauge(&number)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
