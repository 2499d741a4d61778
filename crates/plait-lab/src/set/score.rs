//! The result of a scenario with carriers: medians over the seeds.

use plait_sim::link::Access;
use plait_sim::ratio::Ratio;
use plait_sim::scenario::app::Traffic;
use plait_sim::scenario::link::{Capacity, LossSpec};
use plait_sim::scenario::{AppSpec, Backend, LinkSpec, Scenario};
use serde::Serialize;

use crate::measure::{aggregation_benefit, aggregation_ratio};
use crate::record::{Middle, RunRecord, Samples};

/// A scenario of a set: links, their load, and the real case that they represent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Rung {
    /// Its name without the set's folder: kind and own name, such as `rates/village`.
    pub(crate) rung: String,
    /// The real case behind it.
    pub(crate) stands_for: String,
    pub(crate) links: Vec<String>,
    pub(crate) load: String,
    /// Whether the sum of the links is promised: no loss, no changes, rates up to 1:5, round trips
    /// up to 100 ms and 1:3, and a CUBIC or BBR sender.
    pub(crate) steady: bool,
    /// Whether it also runs in namespaces.
    pub(crate) on_netns: bool,
    /// The largest round-trip time without any queue, in milliseconds.
    #[serde(skip)]
    base_rtt_ms: u32,
    /// Names of the links.
    #[serde(skip)]
    names: Vec<String>,
    /// Names of the applications that are the load, and of the probes.
    #[serde(skip)]
    loads: Vec<String>,
    #[serde(skip)]
    probes: Vec<String>,
}

impl Rung {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let bond = scenario.bond.as_ref().map_or_else(Vec::new, |bond| bond.links.clone());
        let links = || bond.iter().filter_map(|name| scenario.links.get(name));
        let names = |probe: bool| {
            let apps = scenario.apps.iter().filter(move |app| app.probe == probe);
            apps.map(|app| app.name.clone()).collect()
        };
        let rtt_ms = |link: &LinkSpec| (link.up.delay + link.down.delay).as_millis() as u32;
        let rung = scenario.name.split_once('/').map_or(&*scenario.name, |(_, rest)| rest);
        Self {
            rung: rung.to_owned(),
            stands_for: scenario.title.clone(),
            links: bond.iter().zip(links()).map(|(name, link)| told(name, link)).collect(),
            load: load(scenario),
            steady: is_steady(scenario, &links().collect::<Vec<_>>()),
            on_netns: scenario.backends.contains(&Backend::Netns),
            base_rtt_ms: links().map(rtt_ms).max().unwrap_or(0),
            names: bond,
            loads: names(false),
            probes: names(true),
        }
    }
}

/// A link in words: Mbit/s down and up, round trip, and disturbances.
fn told(name: &str, link: &LinkSpec) -> String {
    let mbit = |capacity: &Capacity| capacity.mean_rate().bits_per_second() as f64 / 1e6;
    let (down, up) = (mbit(&link.down.capacity), mbit(&link.up.capacity));
    let short =
        |mbit: f64| format!("{mbit:.4}").trim_end_matches('0').trim_end_matches('.').to_owned();
    let rates = if down == up { short(down) } else { short(down) + "/" + &short(up) };
    let ms = |time: core::time::Duration| time.as_secs_f64() * 1e3;
    let low = ms(link.up.delay + link.down.delay);
    let jitter = ms(link.up.jitter + link.down.jitter);
    let mut words = format!("{name} {rates} {low} ms");
    if jitter > 0.0 {
        words += &format!("..{}", low + jitter);
    }
    match link.down.loss {
        LossSpec::Bernoulli(share) if share == Ratio::ZERO => {}
        LossSpec::Bernoulli(share) => {
            words += &format!(", loses {} %", f64::from(share.ppm()) / 1e4);
        }
        LossSpec::GilbertElliott { bad_to_good, .. } => {
            words += &format!(", loses runs of {:.0}", 1e6 / f64::from(bad_to_good.ppm()));
        }
    }
    let limits = [
        (matches!(link.down.capacity, Capacity::Trace(_)), "trace"),
        (matches!(link.down.capacity, Capacity::Steps { .. }), "rate steps"),
        (link.down.policer.is_some(), "policed"),
        (link.down.shaper.is_some(), "shaped"),
        (matches!(link.down.access, Access::Granted(_)), "grants"),
        (matches!(link.down.access, Access::Contended(_)), "frames"),
    ];
    for (has, word) in limits {
        words += if has { ", " } else { "" };
        words += if has { word } else { "" };
    }
    words
}

/// The load in words.
fn load(scenario: &Scenario) -> String {
    let of = |app: &AppSpec| match &app.traffic {
        Traffic::Tcp(tcp) => {
            let paced = if tcp.tcp.paced { " paced" } else { "" };
            format!("{} {}{paced} {}", tcp.flows, tcp.tcp.controller, app.name)
        }
        Traffic::Udp(_) => format!("UDP {}", app.name),
        Traffic::OnOff(_) => format!("on-off {}", app.name),
        Traffic::Voip(_) => format!("call {}", app.name),
        Traffic::Web(_) => format!("web {}", app.name),
        Traffic::Video(_) => format!("video {}", app.name),
    };
    let loads = scenario.apps.iter().filter(|app| !app.probe).map(of);
    loads.collect::<Vec<_>>().join(", ")
}

fn is_steady(scenario: &Scenario, links: &[&LinkSpec]) -> bool {
    let calm = |link: &&LinkSpec| {
        [&link.up, &link.down].into_iter().all(|way| {
            let plain = matches!(way.capacity, Capacity::Fixed(_))
                && way.access == Access::Always
                && way.policer.is_none()
                && way.shaper.is_none();
            let lossless = way.loss == LossSpec::Bernoulli(Ratio::ZERO);
            plain && lossless && way.jitter.is_zero() && way.outages.is_empty()
        })
    };
    let span = |of: &dyn Fn(&LinkSpec) -> u64| {
        let values = || links.iter().map(|link| of(link));
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    };
    let (slowest, fastest) = span(&|link| link.down.mean_rate().bits_per_second());
    let (nearest, farthest) = span(&|link| (link.up.delay + link.down.delay).as_micros() as u64);
    let sender = scenario.apps.iter().find(|app| !app.probe).map(|app| &app.traffic);
    let usual = match sender {
        Some(Traffic::Tcp(tcp)) => ["cubic-linux", "bbr"].contains(&&*tcp.tcp.controller),
        _ => false,
    };
    links.iter().all(calm)
        && scenario.events.is_empty()
        && fastest <= 5 * slowest
        && farthest <= 100_000
        && farthest <= 3 * nearest
        && usual
}

/// The result of a scenario.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Score {
    pub(crate) rung: String,
    pub(crate) stands_for: String,
    pub(crate) steady: bool,
    /// Runs of the bond that count.
    pub(crate) runs: usize,
    /// Goodput of the bond.
    pub(crate) mbit: f64,
    /// Slowest and fastest seed of the bond.
    pub(crate) mbit_range: (f64, f64),
    /// Each link alone through plait.
    pub(crate) alone_mbit: Vec<f64>,
    /// Each link alone, bare.
    pub(crate) bare_mbit: Vec<Option<f64>>,
    /// Median round trip of small packets during the load.
    pub(crate) ping_ms: Option<f64>,
    /// The largest round trip without a queue.
    pub(crate) base_rtt_ms: u32,
    /// Longest time without a delivery.
    pub(crate) standstill_ms: f64,
    /// Retransmissions of the load's own TCP, if it has any.
    pub(crate) resent_percent: Option<f64>,
    /// Wait at the egress, 95th percentile.
    pub(crate) wait_p95_ms: Option<f64>,
    /// Each link's percentage of the bond's bytes.
    pub(crate) shares: Vec<f64>,
    /// Percentage of its packets that each link lost or dropped.
    pub(crate) lost: Vec<f64>,
    /// Mean queue of each link.
    pub(crate) queue_ms: Vec<f64>,
}

impl Score {
    /// `None` without runs of the bond and of each link alone.
    pub(super) fn new(rung: &Rung, runs: &[RunRecord]) -> Option<Self> {
        let of = |carrier: &str| -> Vec<&RunRecord> {
            let is_its = |run: &&RunRecord| {
                run.settings.get("carrier").and_then(|value| value.as_str()) == Some(carrier)
            };
            runs.iter().filter(is_its).collect()
        };
        let mbit = |runs: &[&RunRecord]| median(runs, |run| metric(run, "load_mbit"));
        let each = |kind: &str| -> Vec<Option<f64>> {
            rung.names.iter().map(|link| mbit(&of(&format!("{kind}:{link}")))).collect()
        };
        let bond = of("bond");
        let alone: Option<Vec<f64>> = each("alone").into_iter().collect();
        let of_links = |name: &str, absent: f64| -> Vec<f64> {
            let of_link = |link: &String| {
                median(&bond, |run| metric(run, &format!("{name}.{link}"))).unwrap_or(absent)
            };
            rung.names.iter().map(of_link).collect()
        };
        let ping = |run: &RunRecord| -> Option<f64> {
            let delays = rung.probes.iter().map(|app| metric(run, &format!("delay_p50_ms.{app}")));
            let delays: Option<Vec<f64>> = delays.collect();
            delays.filter(|delays| !delays.is_empty()).map(|delays| delays.iter().sum())
        };
        let standstill = |run: &RunRecord| {
            let all = rung.loads.iter().map(|app| metric(run, &format!("standstill_ms.{app}")));
            all.flatten().reduce(f64::max)
        };
        let resent = |run: &RunRecord| {
            metric(run, &format!("retransmitted_percent.{}", rung.loads.first()?))
        };
        let all = Samples::new(bond.iter().filter_map(|run| metric(run, "load_mbit")).collect())?;
        Some(Self {
            rung: rung.rung.clone(),
            stands_for: rung.stands_for.clone(),
            steady: rung.steady,
            runs: bond.len(),
            mbit: all.middle(Middle::Median),
            mbit_range: (all.low(), all.high()),
            alone_mbit: alone?,
            bare_mbit: each("bare"),
            ping_ms: median(&bond, ping),
            base_rtt_ms: rung.base_rtt_ms,
            standstill_ms: median(&bond, standstill).unwrap_or(0.0),
            resent_percent: median(&bond, resent),
            wait_p95_ms: median(&bond, |run| metric(run, "wait_p95_ms")),
            shares: of_links("bond_path_percent", 100.0),
            lost: of_links("link_loss_percent", 0.0),
            queue_ms: of_links("link_queue_ms", 0.0),
        })
    }

    /// A_r of 003, with the links alone through plait.
    pub(crate) fn ratio(&self) -> f64 {
        aggregation_ratio(bps(self.mbit), &self.alone_bps()) as f64 / 1000.0
    }

    /// A_b of 003.
    pub(crate) fn benefit(&self) -> f64 {
        aggregation_benefit(bps(self.mbit), &self.alone_bps()) as f64 / 1000.0
    }

    /// The bond over its best link alone.
    pub(crate) fn against_best(&self) -> f64 {
        let best = self.alone_mbit.iter().copied().fold(0.0, f64::max);
        if best > 0.0 { self.mbit / best } else { 0.0 }
    }

    /// Other measurements, which show why a rung fails.
    pub(crate) fn reason(&self) -> String {
        let sum: f64 = self.alone_mbit.iter().sum();
        let due = self.alone_mbit.iter().map(|mbit| mbit * 100.0 / sum).collect::<Vec<_>>();
        format!(
            "shares {} % (due {}), links lost {} %, queues {} ms, re-sent {} %, \
             egress waits {} ms, standstill {:.0} ms",
            joined(&self.shares, 0),
            joined(&due, 0),
            joined(&self.lost, 1),
            joined(&self.queue_ms, 0),
            known(self.resent_percent, 1),
            known(self.wait_p95_ms, 0),
            self.standstill_ms,
        )
    }

    fn alone_bps(&self) -> Vec<u64> {
        self.alone_mbit.iter().map(|mbit| bps(*mbit)).collect()
    }
}

/// Numbers with a slash between them.
pub(crate) fn joined(values: &[f64], digits: usize) -> String {
    let texts: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
    texts.join("/")
}

/// A number, or a placeholder for none.
pub(crate) fn known(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn bps(mbit: f64) -> u64 {
    (mbit * 1e6).round() as u64
}

fn metric(run: &RunRecord, name: &str) -> Option<f64> {
    run.metrics.get(name).copied()
}

/// The median of the known values.
fn median(runs: &[&RunRecord], value: impl Fn(&RunRecord) -> Option<f64>) -> Option<f64> {
    Samples::median(runs.iter().filter_map(|run| value(run)))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::Origin;

    pub(in crate::set) fn rung(name: &str, steady: bool) -> Rung {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        Rung {
            rung: name.into(),
            stands_for: "a <case> & more".into(),
            links: names(&["dsl 30 20 ms"]),
            load: "1 cubic-linux down".into(),
            steady,
            on_netns: true,
            base_rtt_ms: 60,
            names: names(&["dsl", "lte"]),
            loads: names(&["down"]),
            probes: names(&["ping-down", "ping-up"]),
        }
    }

    pub(in crate::set) fn run(carrier: &str, metrics: &[(&str, f64)]) -> RunRecord {
        RunRecord {
            scenario: "x/y".into(),
            cell: format!("carrier={carrier}"),
            settings: [("carrier".to_owned(), carrier.into())].into(),
            seed: 1,
            command: String::new(),
            origin: Origin::new(String::new()),
            interval_s: 1.0,
            metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            series: BTreeMap::new(),
        }
    }

    /// A score with the links alone at 30 and 10.
    pub(in crate::set) fn score(rung: &Rung, mbit: f64) -> Score {
        let of = |carrier: &str, mbit: f64| run(carrier, &[("load_mbit", mbit)]);
        let runs = [of("bond", mbit), of("alone:dsl", 30.0), of("alone:lte", 10.0)];
        Score::new(rung, &runs).unwrap()
    }

    #[test]
    fn medians_are_compared_with_the_links_alone() {
        let of = |carrier: &str, mbit: f64| run(carrier, &[("load_mbit", mbit)]);
        let runs = [
            of("bond", 10.0),
            of("bond", 54.0),
            of("bond", 55.0),
            of("alone:dsl", 48.0),
            of("alone:lte", 9.6),
            of("bare:dsl", 50.0),
        ];
        let score = Score::new(&rung("rates/x", true), &runs).unwrap();
        assert_eq!((score.mbit, score.mbit_range), (54.0, (10.0, 55.0)));
        assert_eq!((score.ratio(), score.benefit()), (0.937, 0.625));
        assert_eq!(score.against_best(), 54.0 / 48.0);
        assert_eq!(score.bare_mbit, [Some(50.0), None]);
        assert!(score.reason().contains("due 83/17"), "{}", score.reason());
        assert_eq!(Score::new(&rung("rates/x", true), &runs[..4]), None, "lte is missing");
    }

    #[test]
    fn what_is_not_known_is_absent_and_not_zero() {
        let known = [
            ("load_mbit", 12.0),
            ("wait_p95_ms", 20.0),
            ("delay_p50_ms.ping-down", 15.0),
            ("delay_p50_ms.ping-up", 25.0),
        ];
        let alone = [run("alone:dsl", &known[..1]), run("alone:lte", &known[..1])];
        let runs = [&[run("bond", &known[..1]), run("bond", &known)][..], &alone].concat();
        let score = Score::new(&rung("udp/x", false), &runs).unwrap();
        assert_eq!((score.ping_ms, score.wait_p95_ms), (Some(40.0), Some(20.0)));
        assert_eq!((score.runs, score.resent_percent), (2, None));
        assert!(score.reason().contains("re-sent - %, egress waits 20 ms"), "{}", score.reason());
    }
}
