//! Series: one sample per interval, of the changes since the one before.

use std::collections::BTreeMap;

use plait_proto::stats::PeerStatus;
use plait_proto::time::Duration;

use super::{Testbed, mbit};
use crate::app::MultipathView;
use crate::scenario::{Scenario, metric};
use crate::world::Way;

/// Counts at the end of an interval, from the start on.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// For each application: payload offered, payload in order, packets arrived, their delays,
    /// duplicate acknowledgements.
    apps: Vec<[u64; 5]>,
    /// For each link: bytes that came out, packets dropped.
    links: Vec<[u64; 2]>,
    /// Packets that the receiving gateway counted as lost, and those of them that arrived after
    /// all.
    lost_packets: u64,
    late_packets: u64,
    /// Packets that wait in the resequencer; `None` without a bond.
    waiting_packets: Option<u64>,
}

/// The series of a run in progress.
#[derive(Debug)]
pub(super) struct Captures {
    way: Way,
    kinds: Vec<String>,
    last: Totals,
    /// Payload that had come into order at the last sample, by the owner of subflows.
    subflow_bytes: BTreeMap<String, u64>,
    series: BTreeMap<String, Vec<f64>>,
}

impl Captures {
    pub(super) fn new(scenario: &Scenario, way: Way, testbed: &mut impl Testbed) -> Self {
        let kinds = scenario.capture.series.clone();
        let (subflow_bytes, series) = (BTreeMap::new(), BTreeMap::new());
        let mut captures = Self { way, kinds, last: Totals::default(), subflow_bytes, series };
        captures.last = captures.totals(scenario, testbed);
        captures
    }

    pub(super) fn finish(self) -> BTreeMap<String, Vec<f64>> {
        self.series
    }

    /// Takes a sample of everything that is captured.
    pub(super) fn sample(&mut self, scenario: &Scenario, testbed: &mut impl Testbed) {
        if self.kinds.is_empty() {
            return;
        }
        let totals = self.totals(scenario, testbed);
        let last = core::mem::replace(&mut self.last, totals);
        self.sample_apps(scenario, testbed, &last);
        self.sample_links(scenario, testbed, &last);
        // A packet counted as lost in one interval may still arrive in a later one.
        let lost = self.last.lost_packets.saturating_sub(last.lost_packets) as f64;
        let late = self.last.late_packets.saturating_sub(last.late_packets) as f64;
        self.put("losses", None, lost - late);
        if let Some(waiting) = self.last.waiting_packets {
            self.put("waiting", None, waiting as f64);
        }
        if self.holds_any(&["weight", "rtt_ms", "capacity"])
            && let Some(status) = testbed.bond_sender(self.way)
        {
            self.sample_paths(scenario, &status);
        }
    }

    fn sample_apps(&mut self, scenario: &Scenario, testbed: &impl Testbed, last: &Totals) {
        let interval = scenario.capture.interval;
        for (at, spec) in scenario.apps.iter().enumerate() {
            let grown = |what: usize| self.last.apps[at][what] - last.apps[at][what];
            let (offered, goodput) = (mbit(grown(0), interval), mbit(grown(1), interval));
            let (arrived, delay_us, duplicates) = (grown(2), grown(3), grown(4));
            self.put("offered", Some(&spec.name), offered);
            self.put("goodput", Some(&spec.name), goodput);
            let delay_ms = if arrived > 0 { delay_us as f64 / arrived as f64 / 1e3 } else { 0.0 };
            if testbed.tells_arrivals(at) {
                self.put("delay_ms", Some(&spec.name), delay_ms);
            }
            let observation = testbed.observe(at);
            if let Some(segments) = observation.cwnd_segments {
                self.put("cwnd", Some(&spec.name), segments);
            }
            if let Some(multipath) = &observation.multipath {
                self.sample_subflows(&spec.name, multipath, interval);
            }
            if let Some(recovery) = observation.recovery {
                self.put("rto_ms", Some(&spec.name), recovery.rto.as_secs_f64() * 1e3);
                self.put("duplicate_acks", Some(&spec.name), duplicates as f64);
            }
        }
    }

    /// A threshold that is not known yet and a round-trip time without a sample are zero.
    fn sample_subflows(&mut self, app: &str, multipath: &MultipathView, interval: Duration) {
        for subflow in &multipath.subflows {
            let owner = metric::subflow_owner(app, &subflow.link);
            let counted = self.subflow_bytes.entry(owner.clone()).or_default();
            let grown =
                subflow.throughput_bytes - core::mem::replace(counted, subflow.throughput_bytes);
            let srtt = subflow.srtt.unwrap_or_default();
            for (kind, value) in [
                ("subflow_throughput", mbit(grown, interval)),
                ("subflow_cwnd", subflow.cwnd_segments),
                ("subflow_ssthresh", subflow.ssthresh_segments.unwrap_or_default()),
                ("subflow_srtt_ms", srtt.as_secs_f64() * 1e3),
            ] {
                self.put(kind, Some(&owner), value);
            }
        }
    }

    fn sample_links(&mut self, scenario: &Scenario, testbed: &impl Testbed, last: &Totals) {
        for (at, name) in scenario.links.keys().enumerate() {
            let grown = |what: usize| self.last.links[at][what] - last.links[at][what];
            let (throughput, drops) = (mbit(grown(0), scenario.capture.interval), grown(1));
            let view = testbed.link(at, self.way);
            let queueing = view.mean_rate.time_for(view.queue_bytes);
            self.put("link_throughput", Some(name), throughput);
            self.put("drops", Some(name), drops as f64);
            self.put("queue_ms", Some(name), queueing.as_secs_f64() * 1e3);
        }
    }

    /// A path that does not exist has zero weight, round-trip time and capacity.
    fn sample_paths(&mut self, scenario: &Scenario, status: &PeerStatus) {
        let names = scenario.bond.iter().flat_map(|bond| &bond.links);
        for name in names {
            let path = status.paths.iter().find(|path| path.name == *name);
            let weight = path.and_then(|path| path.weight).unwrap_or(0);
            let rtt_us = path.and_then(|path| path.srtt_us).unwrap_or(0);
            self.put("weight", Some(name), f64::from(weight));
            let capacity_bps = path.map_or(0, |path| path.capacity_bps);
            self.put("rtt_ms", Some(name), rtt_us as f64 / 1e3);
            self.put("capacity", Some(name), capacity_bps as f64 / 1e6);
        }
    }

    fn put(&mut self, kind: &str, owner: Option<&str>, value: f64) {
        if !self.holds_any(&[kind]) {
            return;
        }
        let name = owner.map_or(kind.to_owned(), |owner| format!("{kind}.{owner}"));
        self.series.entry(name).or_default().push(value);
    }

    fn holds_any(&self, kinds: &[&str]) -> bool {
        self.kinds.iter().any(|known| kinds.contains(&known.as_str()))
    }

    /// Asks the gateways only for what is captured: asking a real one costs time.
    fn totals(&self, scenario: &Scenario, testbed: &mut impl Testbed) -> Totals {
        let counts = self.holds_any(&["duplicate_acks"]);
        let apps = (0..scenario.apps.len()).map(|at| {
            let tally = testbed.tally(at);
            let arrived = [tally.received_packets, tally.delay_total_us];
            let recovery = if counts { testbed.observe(at).recovery } else { None };
            let duplicates = recovery.map_or(0, |recovery| recovery.duplicate_acks);
            [tally.offered_bytes, tally.goodput_bytes, arrived[0], arrived[1], duplicates]
        });
        let apps = apps.collect();
        let links = (0..scenario.links.len()).map(|at| {
            let counters = testbed.link(at, self.way).counters;
            [counters.out_bytes, counters.dropped_packets()]
        });
        let links = links.collect();
        let asked = self.holds_any(&["losses", "waiting"]);
        let status = asked.then(|| testbed.bond_receiver(self.way)).flatten();
        let paths = || status.iter().flat_map(|status| &status.paths);
        Totals {
            apps,
            links,
            lost_packets: paths().map(|path| path.lost_packets).sum(),
            late_packets: paths().map(|path| path.late_packets).sum(),
            waiting_packets: status.as_ref().map(|s| s.resequencer.waiting_now_packets),
        }
    }
}
