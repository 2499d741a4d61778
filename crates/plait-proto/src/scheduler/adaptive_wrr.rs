//! Adaptive weighted round robin: 002 section 4, with AWI, IWI and DWD.
//! Equations and deviations: `docs/algorithms/adaptive-wrr.md`.

use super::smooth_wrr::{ONE_PACKET, SmoothWrr};
use super::{Decision, FlowClass, PacketInfo, PathId, PathReport, Scheduler, View};

#[cfg(test)]
mod tests;

/// How often DWD lowers a weight while reports stay free of loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DwdMode {
    /// By 1 per T_dwd: the wait starts again after every decrement. It fits 002's measurements.
    #[default]
    PerTdwd,
    /// By 1 per report once T_dwd has passed: 002's text taken literally.
    PerReport,
}

/// What becomes of the fraction in AWI's increment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WeightRounding {
    /// To the nearest integer, halves up.
    #[default]
    Round,
    /// Cut off.
    Truncate,
    /// Kept: weights are fractional.
    Float,
}

/// What the weights share out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WeightUnit {
    /// Packets, as in 002.
    #[default]
    Packets,
    /// Bytes (002 section 3).
    Bytes,
}

/// Which weights losses change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WeightsAdapt {
    /// Losses of a path raise the next dearer one's, as in 002 section 4.2.
    #[default]
    Dearer,
    /// Those of a dearer path also lower its own, which raises the shares of all others (002
    /// section 3: both may adapt).
    Both,
}

/// Which path the packets of interactive flows take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SmallFlows {
    /// Whichever has its turn, as in 002.
    #[default]
    Share,
    /// The cheapest (002 section 5.3: scheduling by flow, for small ones).
    Cheapest,
}

/// Parameters of the adaptive weighted round robin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptiveWrrConfig {
    /// Constant weight of the cheapest path (002: w_fixed = 50).
    pub w_fixed: u32,
    /// Largest weight of any other path (002: 45 to 50).
    pub w_max: u32,
    /// Weight of other paths at the start, at most `w_max` (002: 0).
    pub w_initial: u32,
    /// AWI's gain (002: 0.1 to 1).
    pub k: f64,
    /// T_dwd: loss-free time before DWD lowers a weight (002: 50 to 1000 ms).
    pub t_dwd_ms: u32,
    /// T_report: the time between loss reports (002: 50 ms). T_dwd is rounded up to its multiple.
    pub t_report_ms: u32,
    /// How often DWD lowers a weight.
    pub dwd_mode: DwdMode,
    /// What becomes of AWI's fractions.
    pub weight_rounding: WeightRounding,
    /// What the weights share out.
    pub weight_unit: WeightUnit,
    /// Which weights losses change.
    pub weights_adapt: WeightsAdapt,
    /// Which path interactive flows take.
    pub small_flows: SmallFlows,
}

impl Default for AdaptiveWrrConfig {
    fn default() -> Self {
        Self {
            w_fixed: 50,
            w_max: 50,
            w_initial: 0,
            k: 0.5,
            t_dwd_ms: 250,
            t_report_ms: 50,
            dwd_mode: DwdMode::default(),
            weight_rounding: WeightRounding::default(),
            weight_unit: WeightUnit::default(),
            weights_adapt: WeightsAdapt::default(),
            small_flows: SmallFlows::default(),
        }
    }
}

impl AdaptiveWrrConfig {
    /// T_dwd in reports, rounded up; at least one.
    fn reports_per_t_dwd(&self) -> u32 {
        self.t_dwd_ms.div_ceil(self.t_report_ms.max(1)).max(1)
    }

    /// AWI's increment (002 section 4.2): k · lost/sent · w_fixed, with lost/sent kept in [0, 1]
    /// and taken as 1 when nothing was sent.
    fn awi_increment(&self, report: &PathReport) -> f64 {
        self.change(report, f64::from(self.w_fixed))
    }

    /// k · lost/sent · `weight`.
    fn change(&self, report: &PathReport, weight: f64) -> f64 {
        let ratio = match report.sent_packets {
            0 => 1.0,
            sent => (report.lost_packets as f64 / sent as f64).min(1.0),
        };
        let increment = self.k * ratio * weight;
        match self.weight_rounding {
            WeightRounding::Round => increment.round(),
            WeightRounding::Truncate => increment.trunc(),
            WeightRounding::Float => increment,
        }
    }
}

/// Credits are earned in 1/1024 of a weight, so that fractional weights count.
const CREDITS_PER_WEIGHT: f64 = 1024.0;

/// The weights of the paths.
#[derive(Debug)]
struct Weights {
    config: AdaptiveWrrConfig,
    /// Paths whose weight has moved. The first path of a view has `w_fixed` whatever stands here.
    moved: Vec<(PathId, f64)>,
}

impl Weights {
    fn get(&self, path: PathId) -> f64 {
        let moved = self.moved.iter().find(|(id, _)| *id == path);
        moved.map_or_else(|| self.clamp(f64::from(self.config.w_initial)), |&(_, weight)| weight)
    }

    fn add(&mut self, path: PathId, increment: f64) {
        let weight = self.clamp(self.get(path) + increment);
        match self.moved.iter_mut().find(|(id, _)| *id == path) {
            Some((_, moved)) => *moved = weight,
            None => self.moved.push((path, weight)),
        }
    }

    fn clamp(&self, weight: f64) -> f64 {
        weight.clamp(0.0, f64::from(self.config.w_max))
    }

    /// The weights in the view's order, in `scale` of a weight.
    fn shares<'a>(
        &'a self,
        view: &View<'a>,
        scale: f64,
    ) -> impl Iterator<Item = (PathId, u32)> + Clone + use<'a> {
        view.paths.iter().enumerate().map(move |(index, path)| {
            let weight =
                if index == 0 { f64::from(self.config.w_fixed) } else { self.get(path.id) };
            (path.id, (weight * scale).round() as u32)
        })
    }
}

/// Paper 002's scheduler. The first path of the view is the fixed one.
#[derive(Debug)]
pub struct AdaptiveWrr {
    weights: Weights,
    loss_free_reports: u32,
    wrr: SmoothWrr,
}

impl AdaptiveWrr {
    /// A scheduler that has seen no report.
    pub fn new(config: AdaptiveWrrConfig) -> Self {
        Self {
            weights: Weights { config, moved: Vec::new() },
            loss_free_reports: 0,
            wrr: SmoothWrr::default(),
        }
    }

    /// AWI, or IWI from weight 0: losses of path `index` raise the next dearer path that has room.
    fn raise(&mut self, view: &View<'_>, index: usize, report: &PathReport) {
        let config = self.weights.config;
        let room = |path: &&super::PathView| self.weights.get(path.id) < f64::from(config.w_max);
        let Some(target) = view.paths[index + 1..].iter().find(room) else {
            return;
        };
        let increment = if self.weights.get(target.id) == 0.0 {
            report.lost_packets as f64
        } else {
            config.awi_increment(report)
        };
        self.weights.add(target.id, increment);
    }

    /// Lowers the weights of dearer paths that lost packets, each by what AWI would raise another
    /// by, but at least 1.
    fn lower(&mut self, view: &View<'_>, reports: &[PathReport]) {
        for path in view.paths.iter().skip(1) {
            let report = reports.iter().find(|report| report.path == path.id);
            if let Some(report) = report.filter(|report| report.lost_packets > 0) {
                let change = self.weights.config.change(report, self.weights.get(path.id));
                self.weights.add(path.id, -change.max(1.0));
            }
        }
    }

    /// What a packet of so many bytes counts for.
    fn amount(&self, bytes: u64) -> i64 {
        match self.weights.config.weight_unit {
            WeightUnit::Packets => ONE_PACKET,
            WeightUnit::Bytes => bytes as i64,
        }
    }

    /// DWD: a further report was free of loss.
    fn decay(&mut self, view: &View<'_>) {
        let config = self.weights.config;
        self.loss_free_reports = self.loss_free_reports.saturating_add(1);
        if self.loss_free_reports < config.reports_per_t_dwd() {
            return;
        }
        let dearest = view.paths.iter().skip(1).rfind(|path| self.weights.get(path.id) > 0.0);
        if let Some(dearest) = dearest {
            self.weights.add(dearest.id, -1.0);
        }
        if config.dwd_mode == DwdMode::PerTdwd {
            self.loss_free_reports = 0;
        }
    }
}

impl Scheduler for AdaptiveWrr {
    fn tells_flows_apart(&self) -> bool {
        self.weights.config.small_flows == SmallFlows::Cheapest
    }

    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        if self.tells_flows_apart()
            && packet.class == FlowClass::Interactive
            && let Some(cheapest) = view.paths.first()
        {
            self.on_run(view, cheapest.id, packet.bytes);
            return Decision::Send(cheapest.id);
        }
        self.wrr.pick(self.weights.shares(view, CREDITS_PER_WEIGHT), self.amount(packet.bytes))
    }

    fn on_run(&mut self, view: &View<'_>, path: PathId, bytes: u64) {
        let amount = self.amount(bytes);
        self.wrr.charge(self.weights.shares(view, CREDITS_PER_WEIGHT), path, amount);
    }

    fn on_report(&mut self, view: &View<'_>, reports: &[PathReport]) {
        // The dearest path's losses have nowhere to go, so they count for nothing (002 section
        // 4.2).
        let raising = view.paths.len().saturating_sub(1);
        let mut any_lost = false;
        for (index, path) in view.paths[..raising].iter().enumerate() {
            let report = reports.iter().find(|report| report.path == path.id);
            if let Some(report) = report.filter(|report| report.lost_packets > 0) {
                any_lost = true;
                self.raise(view, index, report);
            }
        }
        if self.weights.config.weights_adapt == WeightsAdapt::Both {
            self.lower(view, reports);
        }
        if any_lost {
            self.loss_free_reports = 0;
        } else {
            self.decay(view);
        }
    }

    fn on_path_gone(&mut self, path: PathId) {
        self.weights.moved.retain(|(id, _)| *id != path);
    }

    fn weights(&self, view: &View<'_>) -> Vec<(PathId, u32)> {
        self.weights.shares(view, 1.0).collect()
    }
}
