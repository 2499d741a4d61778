//! Metrics of the measured time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plait_proto::dida::DidaStats;
use plait_proto::resequencer::{ResequencerStats, WAITING_BUCKETS_MS};
use plait_proto::stats::{PathStatus, PeerStatus};

use super::{Testbed, mbit, own_time};
use crate::app::{Observation, Tally, Transfer, VideoView};
use crate::scenario::app::{Direction, Traffic, Via};
use crate::scenario::metric;
use crate::scenario::rate::TUNNEL_BYTES;
use crate::scenario::{LinkSpec, Scenario};
use crate::world::{LinkView, Way, World};

type Metrics = BTreeMap<String, f64>;

/// Counts of links and bond at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    links: Vec<LinkView>,
    lost_packets: u64,
    late_packets: u64,
    resequencer: ResequencerStats,
    spent: Spent,
}

/// Bytes that the bond sent in this direction, and what was delivered, by link name.
#[derive(Clone, Debug, Default)]
struct Spent {
    /// Bytes at the IP layer that were sent.
    sent: BTreeMap<String, u64>,
    /// Inner bytes that were delivered.
    delivered: BTreeMap<String, u64>,
}

impl Snapshot {
    pub(super) fn take(scenario: &Scenario, way: Way, testbed: &mut impl Testbed) -> Self {
        let sender = testbed.bond_sender(way);
        let status = testbed.bond_receiver(way);
        let paths = || status.iter().flat_map(|status| &status.paths);
        Self {
            links: (0..scenario.links.len()).map(|at| testbed.link(at, way)).collect(),
            lost_packets: paths().map(|path| path.lost_packets).sum(),
            late_packets: paths().map(|path| path.late_packets).sum(),
            resequencer: status.as_ref().map(|s| s.resequencer).unwrap_or_default(),
            spent: Spent {
                sent: by_link(sender.as_ref(), |path| path.sent_bytes),
                delivered: by_link(status.as_ref(), |path| path.delivered_bytes),
            },
        }
    }
}

/// All metrics of a run that has ended. `before` and `after` are the ends of the measured time.
pub(super) fn compute(
    scenario: &Scenario,
    way: Way,
    testbed: &mut impl Testbed,
    before: &Snapshot,
    after: &Snapshot,
) -> Metrics {
    let mut metrics = Metrics::new();
    for (at, spec) in scenario.apps.iter().enumerate() {
        let time = own_time(scenario, at, testbed.zero());
        let tally = testbed.tally(at);
        of_app(&mut metrics, &spec.name, &tally, &testbed.observe(at), time);
        if testbed.tells_arrivals(at) {
            of_arrivals(&mut metrics, &spec.name, &tally);
        }
    }
    of_run(&mut metrics, scenario, testbed);
    of_links(&mut metrics, scenario, before, after);
    if let Some(stats) = testbed.dida() {
        of_dida(&mut metrics, &stats);
    }
    if scenario.bond.is_some() {
        let late = after.late_packets.saturating_sub(before.late_packets);
        let lost = after.lost_packets.saturating_sub(before.lost_packets);
        metrics.insert("late_packets".into(), late as f64);
        metrics.insert("lost_packets".into(), lost as f64);
        if let Some(wait) = wait_p95_ms(&before.resequencer, &after.resequencer) {
            metrics.insert("wait_p95_ms".into(), wait);
        }
        of_overhead(&mut metrics, &before.spent, &after.spent);
        of_aggregation(&mut metrics, scenario, way, testbed);
    }
    metrics
}

fn of_app(
    metrics: &mut Metrics,
    name: &str,
    tally: &Tally,
    observation: &Observation,
    time: core::time::Duration,
) {
    let mut put = |metric: &str, value: f64| metrics.insert(format!("{metric}.{name}"), value);
    put("offered_mbit", mbit(tally.measured_offered_bytes, time));
    put("goodput_mbit", mbit(tally.measured_goodput_bytes, time));
    put("standstill_ms", tally.standstill().as_secs_f64() * 1e3);
    if observation.cwnd_segments.is_some() {
        put("retransmitted_percent", percent(observation.retransmits, observation.segments));
        put("timeouts", observation.timeouts as f64);
        put("retransmits", observation.retransmits as f64);
    }
    if let Some(recovery) = observation.recovery {
        put("duplicate_acks", recovery.duplicate_acks as f64);
        put("fast_recoveries", recovery.fast_recoveries as f64);
        put("undone_recoveries", recovery.undone_recoveries as f64);
    }
    if let Some(Transfer { bytes, time }) = observation.transfer {
        put("transfer_s", time.as_secs_f64());
        put("transfer_mbit", mbit(bytes, time));
    }
    if let Some(multipath) = &observation.multipath {
        if let Some(inside) = multipath.inside {
            put("reinjected_percent", percent(inside.reinjected_bytes, tally.goodput_bytes));
            put("penalties", inside.penalties as f64);
            put("window_blocked_ms", inside.blocked.as_secs_f64() * 1e3);
            if let Some(join) = inside.join {
                put("join_ms", join.as_secs_f64() * 1e3);
            }
        }
        for subflow in &multipath.subflows {
            let owner = metric::subflow_owner(name, &subflow.link);
            let throughput = mbit(subflow.measured_throughput_bytes, time);
            metrics.insert(format!("subflow_throughput_mbit.{owner}"), throughput);
        }
    }
    let mut put = |metric: &str, value: f64| metrics.insert(format!("{metric}.{name}"), value);
    if let Some(mos) = observation.mos {
        put("mos", mos);
    }
    if let Some(load) = median(&observation.page_loads_s) {
        put("page_load_p50_s", load);
    }
    if let Some(load) = p95(&observation.page_loads_s) {
        put("page_load_p95_s", load);
    }
    if let Some(video) = &observation.video {
        of_video(metrics, name, video);
    }
}

/// Of the whole run: a viewer does not leave the warm-up out.
fn of_video(metrics: &mut Metrics, name: &str, video: &VideoView) {
    let VideoView { viewing, buffered_s, quality_mbit, switches, is_finished } = video;
    for (metric, value) in [
        ("initial_load_s", Some(viewing.initial_load_s)),
        ("stalls", Some(f64::from(viewing.stalls))),
        ("stalled_s", Some(viewing.stalled_s)),
        ("stall_mean_s", Some(viewing.mean_stall_s())),
        ("viewer_score", Some(viewing.mos())),
        ("buffered_s", *buffered_s),
        ("quality_mbit", *quality_mbit),
        ("switches", Some(f64::from(*switches))),
        ("finished", Some(f64::from(u8::from(*is_finished)))),
    ] {
        metrics.extend(value.map(|value| (format!("{metric}.{name}"), value)));
    }
}

/// The sum of the median delays of two probes, one in each direction.
fn probe_rtt_ms(scenario: &Scenario, tallies: &[Cow<'_, Tally>]) -> Option<f64> {
    let one_way = |direction: Direction| -> Option<f64> {
        let apps = scenario.apps.iter().zip(tallies);
        let mut probes = apps.filter(|(spec, _)| spec.probe && spec.direction == direction);
        probes.next()?.1.delays.quantile_ms(0.5)
    };
    Some(one_way(Direction::Down)? + one_way(Direction::Up)?)
}

/// The round-trip time of the first probe's route without load, with mean jitter: for a bond that
/// of its quickest link, for MPTCP that of the first link, which carries datagrams.
fn idle_rtt_ms(scenario: &Scenario) -> Option<f64> {
    let probe = scenario.apps.iter().find(|spec| spec.probe)?;
    let idle_ms = |link: &LinkSpec| {
        let idle = link.up.delay + link.down.delay + (link.up.jitter + link.down.jitter) / 2;
        (idle + scenario.server_rtt).as_secs_f64() * 1e3
    };
    match &probe.via {
        Via::Bond => {
            let links = scenario.bond.iter().flat_map(|bond| &bond.links);
            links.filter_map(|link| scenario.links.get(link)).map(idle_ms).reduce(f64::min)
        }
        Via::Mptcp => scenario.links.values().next().map(idle_ms),
        Via::Link(link) => scenario.links.get(link).map(idle_ms),
        Via::Steer => None,
    }
}

/// Metrics of packet arrivals.
fn of_arrivals(metrics: &mut Metrics, name: &str, tally: &Tally) {
    let mut put = |metric: &str, value: f64| metrics.insert(format!("{metric}.{name}"), value);
    let (sent, received) = (tally.measured_sent_packets, tally.measured_received_packets);
    put("loss_percent", percent(sent - received, sent));
    put("reordered_packets", tally.reordered_packets as f64);
    for (metric, share) in [("delay_p50_ms", 0.5), ("delay_p95_ms", 0.95)] {
        if let Some(delay) = tally.delays.quantile_ms(share) {
            put(metric, delay);
        }
    }
}

fn of_run(metrics: &mut Metrics, scenario: &Scenario, testbed: &impl Testbed) {
    let time = crate::world::measured_span(scenario, testbed.zero()).length();
    let tallies: Vec<_> = (0..scenario.apps.len()).map(|at| testbed.tally(at)).collect();
    let apps = || scenario.apps.iter().zip(&tallies);
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(|tally| count(tally)).sum::<u64>();
    let is_tcp = |traffic: &Traffic| traffic.tcp().is_some();
    let goodput = |takes: &dyn Fn(&crate::scenario::AppSpec) -> bool| {
        let taken = apps().filter(|(spec, _)| takes(spec));
        mbit(taken.map(|(_, tally)| tally.measured_goodput_bytes).sum(), time)
    };
    let has_udp = apps().any(|(spec, _)| !is_tcp(&spec.traffic));
    let counted = || apps().enumerate().filter(|(_, (s, _))| !has_udp || !is_tcp(&s.traffic));
    if counted().all(|(at, _)| testbed.tells_arrivals(at)) {
        let (sent, lost) = counted().fold((0, 0), |(sent, lost), (_, (_, tally))| {
            let arrived = tally.measured_received_packets;
            (sent + tally.measured_sent_packets, lost + tally.measured_sent_packets - arrived)
        });
        metrics.insert("loss_percent".into(), percent(lost, sent));
    }
    if let Some(rtt) = probe_rtt_ms(scenario, &tallies) {
        metrics.insert("probe_rtt_ms".into(), rtt);
        metrics.extend(idle_rtt_ms(scenario).map(|idle| ("probe_excess_ms".into(), rtt - idle)));
    }
    let shares: Vec<f64> = tallies
        .iter()
        .enumerate()
        .map(|(at, tally)| {
            mbit(tally.measured_goodput_bytes, own_time(scenario, at, testbed.zero()))
        })
        .collect();
    for (metric, value) in [
        ("offered_mbit", mbit(sum(|tally| tally.measured_offered_bytes), time)),
        ("goodput_mbit", goodput(&|_| true)),
        ("load_mbit", goodput(&|spec| !spec.probe)),
        ("bond_goodput_mbit", goodput(&|spec| spec.via == Via::Bond)),
        ("beside_goodput_mbit", goodput(&|spec| matches!(spec.via, Via::Link(_)))),
        ("tcp_goodput_mbit", goodput(&|spec| is_tcp(&spec.traffic))),
        ("udp_goodput_mbit", goodput(&|spec| !is_tcp(&spec.traffic))),
    ] {
        metrics.insert(metric.into(), value);
    }
    if let Some(jain) = jain_index(&shares) {
        metrics.insert("jain_index".into(), jain);
    }
}

/// A link may have had several paths.
fn by_link(status: Option<&PeerStatus>, count: fn(&PathStatus) -> u64) -> BTreeMap<String, u64> {
    let mut links = BTreeMap::new();
    for path in status.iter().flat_map(|status| &status.paths) {
        *links.entry(path.name.clone()).or_default() += count(path);
    }
    links
}

/// Bytes at the IP layer that the bond sent per inner byte delivered.
fn of_overhead(metrics: &mut Metrics, before: &Spent, after: &Spent) {
    let grown = |after: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>, link: &str| {
        let count = |counts: &BTreeMap<String, u64>| counts.get(link).copied().unwrap_or(0);
        count(after).saturating_sub(count(before))
    };
    let (mut sent_in_all, mut delivered_in_all) = (0, 0);
    for link in after.sent.keys() {
        let sent = grown(&after.sent, &before.sent, link);
        let delivered = grown(&after.delivered, &before.delivered, link);
        sent_in_all += sent;
        delivered_in_all += delivered;
        if delivered > 0 {
            metrics.insert(format!("path_overhead.{link}"), sent as f64 / delivered as f64);
        }
    }
    if delivered_in_all > 0 {
        metrics.insert("overhead".into(), sent_in_all as f64 / delivered_in_all as f64);
    }
}

/// The mean of each captured queue over the measured time.
pub(super) fn of_queues(
    metrics: &mut Metrics,
    scenario: &Scenario,
    series: &BTreeMap<String, Vec<f64>>,
) {
    let interval = scenario.capture.interval;
    let warm = scenario.warmup.as_nanos() / interval.as_nanos().max(1);
    let warm = usize::try_from(warm).unwrap_or(usize::MAX);
    for link in scenario.links.keys() {
        let samples = series.get(&format!("queue_ms.{link}")).map_or(&[][..], Vec::as_slice);
        let counted = &samples[warm.min(samples.len())..];
        if !counted.is_empty() {
            let mean = counted.iter().sum::<f64>() / counted.len() as f64;
            metrics.insert(format!("link_queue_ms.{link}"), mean);
        }
    }
}

fn of_links(metrics: &mut Metrics, scenario: &Scenario, before: &Snapshot, after: &Snapshot) {
    let time = scenario.duration - scenario.warmup;
    let bond_bytes =
        |at: usize| after.links[at].carried.bond_bytes - before.links[at].carried.bond_bytes;
    let in_bond =
        |name: &String| scenario.bond.as_ref().is_some_and(|bond| bond.links.contains(name));
    let paths = scenario.links.keys().enumerate().filter(|(_, name)| in_bond(name));
    let bond_total: u64 = paths.map(|(at, _)| bond_bytes(at)).sum();
    let out = |links: &[LinkView]| links.iter().map(|link| link.counters.out_bytes).sum::<u64>();
    let total = out(&after.links) - out(&before.links);
    let mut capacity_shares = 0.0;
    for (at, (name, spec)) in scenario.links.iter().enumerate() {
        let (then, now) = (&before.links[at], &after.links[at]);
        let bytes = now.counters.out_bytes - then.counters.out_bytes;
        let dropped = now.counters.dropped_packets() - then.counters.dropped_packets();
        let given = now.counters.in_packets - then.counters.in_packets;
        let throughput = mbit(bytes, time);
        let mut put = |metric: &str, value: f64| metrics.insert(format!("{metric}.{name}"), value);
        put("link_throughput_mbit", throughput);
        put("link_loss_percent", percent(dropped, given));
        put("link_share_percent", percent(bytes, total));
        let rate = now.mean_rate.bits_per_second() as f64 / 1e6;
        put("utilisation_percent", throughput / rate * 100.0);
        if spec.air.is_some() {
            capacity_shares += throughput / rate;
        }
        put("bond_share_percent", percent(bond_bytes(at), bytes));
        if let Some((then, now)) = then.air.zip(now.air) {
            let sent = now.subframes - then.subframes;
            let on_air = (now.on_air - then.on_air).as_secs_f64() / time.as_secs_f64();
            put("air_percent", on_air * 100.0);
            put("air_retries_percent", percent(now.lost_subframes - then.lost_subframes, sent));
            put("air_deferrals", (now.deferrals - then.deferrals) as f64);
            if sent > 0 {
                put("mcs_mean", (now.mcs_total - then.mcs_total) as f64 / sent as f64);
            }
        }
        if in_bond(name) {
            put("bond_path_percent", percent(bond_bytes(at), bond_total));
        }
    }
    if !scenario.media.is_empty() {
        metrics.insert("capacity_shares".into(), capacity_shares);
    }
}

/// Counts of duplicate acknowledgements, over the whole run.
fn of_dida(metrics: &mut Metrics, stats: &DidaStats) {
    let ends = &stats.held_ends;
    let ended = stats.gaps_filled + stats.gaps_expired + stats.gaps_given_up;
    let mean_us = if ended == 0 { 0.0 } else { stats.gap_total_us as f64 / ended as f64 };
    for (metric, value) in [
        ("held_acks", stats.held as f64),
        ("discarded_acks", ends.discarded as f64),
        ("released_acks", (ends.total() - ends.discarded) as f64),
        ("masked_acks", stats.masked as f64),
        ("hold_mean_ms", mean_us / 1e3),
        ("hold_max_ms", stats.gap_max_us as f64 / 1e3),
    ] {
        metrics.insert(metric.into(), value);
    }
}

/// 003's A_r and A_b of the applications that send in the main direction through the bond.
fn of_aggregation(metrics: &mut Metrics, scenario: &Scenario, way: Way, testbed: &impl Testbed) {
    let main = if way == Way::Down { Direction::Down } else { Direction::Up };
    let (mut payload, mut wire, mut goodput) = (0, 0, 0);
    for (at, spec) in scenario.apps.iter().enumerate() {
        if spec.via != Via::Bond || spec.direction != main {
            continue;
        }
        let headers = if spec.traffic.tcp().is_some() { 52 } else { 28 };
        let tally = testbed.tally(at);
        let framing = tally.measured_sent_packets * (headers + u64::from(TUNNEL_BYTES));
        payload += tally.measured_offered_bytes;
        wire += tally.measured_offered_bytes + framing;
        goodput += tally.measured_goodput_bytes;
    }
    if wire == 0 {
        return;
    }
    let time = scenario.duration - scenario.warmup;
    let share = payload as f64 / wire as f64;
    let names = scenario.bond.iter().flat_map(|bond| &bond.links);
    let capacities: Vec<f64> = names
        .map(|name| {
            let link = &scenario.links[name];
            let spec = if way == Way::Down { &link.down } else { &link.up };
            spec.mean_rate().bits_per_second() as f64 / 1e6 * share
        })
        .collect();
    let sum: f64 = capacities.iter().sum();
    let best = capacities.iter().copied().fold(0.0, f64::max);
    let x = mbit(goodput, time);
    metrics.insert("aggregation_ratio".into(), x / sum);
    let room = if x >= best { sum - best } else { best };
    if room > 0.0 {
        metrics.insert("aggregation_benefit".into(), (x - best) / room);
    }
}

/// Counts besides the metrics.
pub(super) fn counters(scenario: &Scenario, world: &World) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (at, spec) in scenario.apps.iter().enumerate() {
        let tally = world.app(at).tally();
        for (name, value) in [
            ("sent_packets", tally.sent_packets),
            ("received_packets", tally.received_packets),
            ("repeated_packets", tally.repeated_packets),
            ("reordered_packets", tally.reordered_packets),
            ("standstill_us", u64::try_from(tally.standstill().as_micros()).unwrap_or(u64::MAX)),
        ] {
            counters.insert(format!("{name}.{}", spec.name), value);
        }
    }
    counters.insert("trace_events".into(), world.trace().events());
    counters.insert("gateway_drops".into(), world.gateway_drops());
    counters
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Jain, Chiu, Hawe, "A quantitative measure of fairness", 1984: 1 when all are equal, 1/n when one
/// has all. `None` when nobody has anything.
fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share.powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let high = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + high) / 2.0 } else { high })
}

/// The 95th percentile.
fn p95(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * 95).div_ceil(100).checked_sub(1)?;
    sorted.get(place).copied()
}

/// The bound of the bucket in which the 95th percentile lies; waiting beyond the last bound counts
/// as that bound.
fn wait_p95_ms(before: &ResequencerStats, after: &ResequencerStats) -> Option<f64> {
    let at_once = after.at_once.saturating_sub(before.at_once);
    let waited: Vec<u64> = after
        .waiting_histogram
        .iter()
        .zip(before.waiting_histogram)
        .map(|(after, before)| after.saturating_sub(before))
        .collect();
    let total = at_once + waited.iter().sum::<u64>();
    if total == 0 {
        return None;
    }
    let rank = (total as f64 * 0.95).ceil() as u64;
    let mut passed = at_once;
    if passed >= rank {
        return Some(0.0);
    }
    let bucket = waited.iter().position(|count| {
        passed += count;
        passed >= rank
    });
    let last = WAITING_BUCKETS_MS.len() - 1;
    Some(WAITING_BUCKETS_MS[bucket.unwrap_or(last).min(last)] as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_a_share_for_one() {
        assert_eq!(jain_index(&[5.0; 3]), Some(1.0));
        assert_eq!(jain_index(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[0.0; 2]), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn percentiles() {
        assert_eq!((p95(&[]), p95(&[3.0])), (None, Some(3.0)));
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(p95(&hundred), Some(95.0));
    }

    #[test]
    fn waiting_counts_those_that_did_not() {
        let before = ResequencerStats { at_once: 1000, ..Default::default() };
        let mut after = ResequencerStats { at_once: 1090, ..Default::default() };
        after.waiting_histogram[3] = 4;
        after.waiting_histogram[5] = 6;
        assert_eq!(wait_p95_ms(&before, &after), Some(50.0));
        after.at_once = 2000;
        assert_eq!(wait_p95_ms(&before, &after), Some(0.0));
        assert_eq!(wait_p95_ms(&before, &before), None);
    }
}
