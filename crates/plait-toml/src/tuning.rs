//! `[scheduler]`, `[congestion]` and `[resequencer]`: how bonds behave, in a gateway's file and a
//! scenario's `[bond]` alike.

mod congestion;
mod resequencer;
mod scheduler;
#[cfg(test)]
mod tests;

pub use congestion::{ADV, CONGESTION, DELAY_MS_MAX, Loop, REPAIRS};
pub use resequencer::{Egress, RESEQUENCER};
pub use scheduler::SCHEDULER;

use std::time::Duration;

use plait_proto::config::{LossDetection, Order};
use plait_proto::congestion::ControllerConfig;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::wire::dscp::Dscps;

use crate::Bounds;
use crate::option;
use crate::section::Section;

/// How bonds behave.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuning {
    /// Picks the path of each packet that this gateway sends.
    pub scheduler: SchedulerConfig,
    /// The controller of each path over which this gateway sends; `None`: open loop.
    pub congestion: Option<ControllerConfig>,
    /// Which packets wait for which at the peer's egress.
    pub order: Order,
    /// Classes of packets that wait for none.
    pub unordered: Dscps,
    /// How long they wait at this side's egress, and how many.
    pub resequencer: ResequencerConfig,
    /// How this side's egress finds losses.
    pub loss_detection: LossDetection,
}

impl Tuning {
    /// How often this side's egress reports losses.
    pub fn report_interval(&self) -> Duration {
        Duration::from_millis(self.scheduler.adaptive_wrr.t_report_ms.into())
    }

    /// Writes the sections in full; `outer` stands before their names, as in `bond.`.
    pub fn write(&self, out: &mut String, outer: &str) {
        let header = |name: &str| format!("[{outer}{name}]");
        option::write(out, &header("scheduler"), SCHEDULER, &self.scheduler);
        option::write(out, &header("congestion"), CONGESTION, &Loop::from(self.congestion));
        option::write(out, &header("resequencer"), RESEQUENCER, &Egress::from(self));
    }
}

impl From<SchedulerConfig> for Tuning {
    /// A scheduler with the defaults that belong to it.
    fn from(scheduler: SchedulerConfig) -> Self {
        Self {
            congestion: scheduler.algorithm.default_congestion(),
            order: Order::default(),
            unordered: Dscps::default(),
            resequencer: ResequencerConfig::default(),
            loss_detection: LossDetection::default(),
            scheduler,
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        SchedulerConfig::default().into()
    }
}

/// Reads the sections. Use what it returns only when no problem was noted.
pub fn read(
    mut scheduler: Section<'_>,
    mut congestion: Section<'_>,
    mut resequencer: Section<'_>,
) -> Tuning {
    let mut config = SchedulerConfig::default();
    option::read(SCHEDULER, &mut scheduler, &mut config);
    let [initial, max] = [config.adaptive_wrr.w_initial, config.adaptive_wrr.w_max];
    if initial > max {
        let bounds = Bounds::new(0.0, max.into(), "(w_max)");
        scheduler.problem("initial_weight", bounds.problem(initial.to_string()));
    }
    scheduler.finish();
    let mut tuning = Tuning::from(config);
    let mut controlled = Loop::from(tuning.congestion);
    option::read(CONGESTION, &mut congestion, &mut controlled);
    congestion.finish();
    tuning.congestion = controlled.into();
    let mut egress = Egress::from(&tuning);
    option::read(RESEQUENCER, &mut resequencer, &mut egress);
    resequencer.finish();
    egress.tell(&mut tuning);
    tuning
}
