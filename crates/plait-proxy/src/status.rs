//! What a running proxy tells: a picture of it at one moment, for status and metrics.

mod metrics;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::registry::{Connection, subflows};
use crate::shared::{Current, Shared};

pub use metrics::metrics;

/// Looks at a running proxy, from any thread.
#[derive(Clone, Debug)]
pub struct Observer(Current);

/// A proxy at one moment. Counts are since its start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Seconds since its start.
    pub uptime_s: f64,
    /// Where clients come in.
    pub listeners: Vec<ListenerView>,
    /// The next proxy, `way address`; `None` when it connects to servers itself.
    pub upstream: Option<String>,
    /// Connections that are open.
    pub open: usize,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed unheard, because too many were refused at that time.
    pub dropped: u64,
    /// Bytes from clients.
    pub up_bytes: u64,
    /// Bytes to clients.
    pub down_bytes: u64,
    /// How relayed connections ended.
    pub ended: BTreeMap<String, u64>,
    /// Why connections were refused.
    pub refused: BTreeMap<String, u64>,
    /// What each access carried.
    pub accesses: Vec<AccessView>,
    /// The open connections, the oldest first; at most as many as were asked for.
    pub connections: Vec<ConnectionView>,
}

/// Where clients come in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListenerView {
    /// Address and port.
    pub address: SocketAddr,
    /// How they say where they want to go.
    pub way: String,
    /// Whether it accepts MPTCP.
    pub multipath: bool,
}

/// What an access carried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AccessView {
    /// Its name.
    pub name: String,
    /// Bytes that came in over it.
    pub received_bytes: u64,
    /// Bytes that went out over it and were acknowledged.
    pub sent_bytes: u64,
    /// Its part of all that the accesses carried in both directions, 0 to 1.
    pub share: f64,
}

/// An open connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConnectionView {
    /// A number that no other connection of this run has.
    pub id: u64,
    /// The client.
    pub client: SocketAddr,
    /// How it came in.
    pub way: String,
    /// Where it wanted to go, once that is known.
    pub target: Option<String>,
    /// Seconds since it was accepted.
    pub age_s: f64,
    /// Bytes from the client.
    pub up_bytes: u64,
    /// Bytes to the client.
    pub down_bytes: u64,
    /// Subflows on the client's side, then on the server's; plain TCP is one.
    pub subflows: Vec<SubflowView>,
}

/// A subflow of an open connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SubflowView {
    /// `client` or `server`: which of the two it leads to.
    pub side: String,
    /// The access that it uses, if it is one with a name.
    pub access: Option<String>,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Smoothed round-trip time, milliseconds.
    pub srtt_ms: f64,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// Bytes that went out and were acknowledged.
    pub sent_bytes: u64,
}

fn named(counts: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

impl Observer {
    pub(crate) fn new(current: Current) -> Self {
        Self(current)
    }

    /// The proxy now, with at most so many of its connections.
    pub fn snapshot(&self, connections_max: usize) -> Snapshot {
        let shared = self.0.get();
        let Shared { config, registry, multipath, .. } = &*shared;
        let totals = &registry.totals;
        let listeners =
            config.listeners.iter().zip(multipath).map(|(listener, multipath)| ListenerView {
                address: listener.address,
                way: listener.way.name().into(),
                multipath: *multipath,
            });
        let upstream = config.upstream.as_ref();
        let connections = registry.connections();
        Snapshot {
            uptime_s: registry.started.elapsed().as_secs_f64(),
            listeners: listeners.collect(),
            upstream: upstream.map(|next| format!("{} {}", next.way.name(), next.address)),
            open: connections.len(),
            accepted: totals.accepted.load(Ordering::Relaxed),
            dropped: totals.dropped.load(Ordering::Relaxed),
            up_bytes: totals.up(),
            down_bytes: totals.down(),
            ended: named(totals.ends()),
            refused: named(registry.refusals.given()),
            accesses: self.accesses(),
            connections: connections
                .iter()
                .take(connections_max)
                .map(|connection| self.connection(connection))
                .collect(),
        }
    }

    fn accesses(&self) -> Vec<AccessView> {
        let totals = self.0.get().registry.access_totals();
        let all: u64 = totals.iter().map(|total| total.received + total.sent).sum();
        let view = |total: crate::registry::AccessTotals| AccessView {
            share: (total.received + total.sent) as f64 / all.max(1) as f64,
            name: total.name,
            received_bytes: total.received,
            sent_bytes: total.sent,
        };
        totals.into_iter().map(view).collect()
    }

    fn connection(&self, connection: &Connection) -> ConnectionView {
        let shared = self.0.get();
        let sides = ["client", "server"].into_iter();
        let streams = connection.streams().into_iter().flatten();
        let subflows = sides.zip(streams).flat_map(|(side, stream)| {
            subflows(stream).into_iter().map(move |subflow| (side, subflow))
        });
        let view = |(side, subflow): (&'static str, plait_net::mptcp::Subflow)| {
            let (local, remote) = (subflow.local.ip(), subflow.remote.ip());
            let access = shared.config.accesses.iter().find(|one| one.carries(local, remote));
            SubflowView {
                side: side.into(),
                access: access.map(|access| access.name.clone()),
                local: subflow.local,
                remote: subflow.remote,
                srtt_ms: f64::from(subflow.info.srtt_us) / 1000.0,
                retransmits: subflow.info.total_retrans,
                received_bytes: subflow.info.bytes_received,
                sent_bytes: subflow.info.bytes_acked,
            }
        };
        ConnectionView {
            id: connection.id,
            client: connection.client,
            way: connection.way.name().into(),
            target: connection.target.get().map(ToString::to_string),
            age_s: connection.opened.elapsed().as_secs_f64(),
            up_bytes: connection.up(),
            down_bytes: connection.down(),
            subflows: subflows.map(view).collect(),
        }
    }
}
