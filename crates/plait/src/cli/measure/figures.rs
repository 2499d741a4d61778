//! The measurements, and the figures of 003 computed from them: aggregation ratio and benefit, and
//! the bounds (5.1) to (5.3), all on sums over the paths.

use serde::{Deserialize, Serialize};

use super::plan::Direction;

/// A bound holds as long as it is exceeded by no more than this factor: two runs of the same
/// measurement differ by as much.
const BOUND_TOLERANCE: f64 = 1.02;

/// Round-trip times of a small message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Latency {
    /// Median in microseconds.
    pub(super) median_us: u64,
    /// 95th percentile in microseconds.
    pub(super) p95_us: u64,
    /// How many there were.
    pub(super) samples: u64,
}

impl Latency {
    /// From round-trip times in microseconds; `None` without any.
    pub(super) fn of(mut samples_us: Vec<u64>) -> Option<Self> {
        samples_us.sort_unstable();
        let at = |percent: usize| samples_us.get(samples_us.len() * percent / 100).copied();
        Some(Self { median_us: at(50)?, p95_us: at(95)?, samples: samples_us.len() as u64 })
    }
}

/// One flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct FlowFigures {
    /// TCP payload in bits per second, counted by the receiver.
    pub(super) throughput_bps: u64,
    /// Latency over the same path, or the bond, during the flow.
    pub(super) latency: Option<Latency>,
    /// Seconds over which the rate was taken.
    pub(super) seconds: f64,
}

/// A path in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct PathFigures {
    pub(super) name: String,
    /// While nothing is sent.
    pub(super) idle: Option<Latency>,
    /// The path by itself.
    pub(super) individual: Option<FlowFigures>,
    /// The path while all others carry a flow as well.
    pub(super) simultaneous: Option<FlowFigures>,
}

/// The bond in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct BondFigures {
    pub(super) idle: Option<Latency>,
    pub(super) bonded: FlowFigures,
    /// Bytes that this direction used on all links per inner byte: framing, copies, losses,
    /// retransmissions, probes and acknowledgements.
    #[serde(default)]
    pub(super) overhead: Option<f64>,
}

/// All of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct DirectionFigures {
    pub(super) direction: Direction,
    pub(super) paths: Vec<PathFigures>,
    pub(super) bond: BondFigures,
    /// x / ΣC (003): throughput of the bond over its paths' sum.
    pub(super) aggregation_ratio: Option<f64>,
    /// 003: 1 when the bond gives the paths' sum, 0 when it gives the best path, negative below.
    pub(super) aggregation_benefit: Option<f64>,
    pub(super) bounds: Vec<Bound>,
}

/// One condition's three columns of 003, each summed over the paths, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Columns {
    pub(super) individual_bps: u64,
    pub(super) simultaneous_bps: u64,
    pub(super) bonded_bps: u64,
}

/// One inequality of 003.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Bound {
    /// Number in 003.
    pub(super) equation: String,
    /// The inequality in words.
    pub(super) text: String,
    pub(super) value_bps: u64,
    pub(super) limit_bps: u64,
    pub(super) holds: bool,
}

impl Bound {
    fn new(equation: &str, text: &str, value_bps: u64, limit_bps: u64) -> Self {
        let holds = value_bps as f64 <= limit_bps as f64 * BOUND_TOLERANCE;
        let (equation, text) = (equation.to_owned(), text.to_owned());
        Self { equation, text, value_bps, limit_bps, holds }
    }
}

impl DirectionFigures {
    /// Computes the derived figures. `whole` says whether the paths measured are all those of the
    /// bond: otherwise nothing can be compared. `clean` is the same direction of an earlier
    /// measurement without interference.
    pub(super) fn new(
        direction: Direction,
        paths: Vec<PathFigures>,
        bond: BondFigures,
        whole: bool,
        clean: Option<&Self>,
    ) -> Self {
        let (aggregation_ratio, aggregation_benefit) = (None, None);
        let mut figures =
            Self { direction, paths, bond, aggregation_ratio, aggregation_benefit, bounds: vec![] };
        if let Some(columns) = figures.columns().filter(|_| whole) {
            let each = figures.individual_bps();
            figures.aggregation_ratio = aggregation_ratio_of(columns.bonded_bps, &each);
            figures.aggregation_benefit = aggregation_benefit_of(columns.bonded_bps, &each);
            figures.bounds = bounds(columns, clean.and_then(Self::columns));
        }
        figures
    }

    /// Throughput of each path on its own, in bits per second.
    pub(super) fn individual_bps(&self) -> Vec<u64> {
        self.paths.iter().filter_map(|path| Some(path.individual?.throughput_bps)).collect()
    }

    /// The columns' sums, when every path has its figures. For a single path, individual and
    /// simultaneous are the same.
    pub(super) fn columns(&self) -> Option<Columns> {
        let sum = |get: fn(&PathFigures) -> Option<FlowFigures>| {
            let all: Option<Vec<_>> =
                self.paths.iter().map(|path| Some(get(path)?.throughput_bps)).collect();
            all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
        };
        let individual_bps = sum(|path| path.individual)?;
        let simultaneous_bps = match self.paths.len() {
            1 => individual_bps,
            _ => sum(|path| path.simultaneous)?,
        };
        let bonded_bps = self.bond.bonded.throughput_bps;
        Some(Columns { individual_bps, simultaneous_bps, bonded_bps })
    }
}

/// A_r = x / ΣC (003).
fn aggregation_ratio_of(bonded_bps: u64, each_bps: &[u64]) -> Option<f64> {
    let sum: u64 = each_bps.iter().sum();
    (sum > 0).then(|| bonded_bps as f64 / sum as f64)
}

/// A_b = (x − C_max) / (ΣC − C_max) from C_max on, else (x − C_max) / C_max (003). `None` for a
/// single path.
fn aggregation_benefit_of(bonded_bps: u64, each_bps: &[u64]) -> Option<f64> {
    let best = *each_bps.iter().max()? as f64;
    let sum: u64 = each_bps.iter().sum();
    let (bonded, others) = (bonded_bps as f64, sum as f64 - best);
    if bonded < best {
        Some((bonded - best) / best)
    } else {
        (others > 0.0).then(|| (bonded - best) / others)
    }
}

/// The bounds (5.1) to (5.3) of 003 on sums. Without a clean measurement, this one stands in for
/// it.
fn bounds(now: Columns, clean: Option<Columns>) -> Vec<Bound> {
    let limit = |now_bps: u64| clean.map_or(now_bps, |clean| now_bps.min(clean.bonded_bps));
    let bonded = now.bonded_bps;
    let (first, second) = match clean {
        Some(_) => (
            "bonded <= least of individual and clean bonded",
            "bonded <= least of simultaneous and clean bonded",
        ),
        None => ("bonded <= individual", "bonded <= simultaneous"),
    };
    let mut bounds = vec![
        Bound::new("5.1", first, bonded, limit(now.individual_bps)),
        Bound::new("5.2", second, bonded, limit(now.simultaneous_bps)),
    ];
    let mut third = |text: &str, value, limit| bounds.push(Bound::new("5.3", text, value, limit));
    if clean.is_some() {
        third("bonded <= simultaneous", bonded, now.simultaneous_bps);
    }
    third("simultaneous <= individual", now.simultaneous_bps, now.individual_bps);
    if let Some(clean) = clean {
        third("individual <= clean", now.individual_bps, clean.individual_bps);
        third("simultaneous <= clean", now.simultaneous_bps, clean.simultaneous_bps);
        third("bonded <= clean", bonded, clean.bonded_bps);
    }
    bounds
}

#[cfg(test)]
pub(super) mod tests;
