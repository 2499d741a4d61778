//! Runs `plait measure` at a customer's gateway, and reads the part of its answer that the lab
//! uses.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use serde::Deserialize;

use super::{Gateway, plait_program};
use crate::process::{self, Finished};

/// Extra time that a measurement may take beyond its announcement, for requests and start-up.
const GRACE: Duration = Duration::from_secs(30);

/// The whole answer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MeasuredView {
    pub(crate) announced: CostView,
    pub(crate) used: CostView,
    pub(crate) cut_phases: usize,
    pub(crate) directions: Vec<DirectionView>,
    pub(crate) advice: Vec<String>,
}

/// Seconds and bytes over all links.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct CostView {
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
}

/// One direction.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DirectionView {
    pub(crate) direction: String,
    pub(crate) paths: Vec<MeasuredPath>,
    pub(crate) bond: MeasuredBond,
    pub(crate) aggregation_ratio: Option<f64>,
    pub(crate) aggregation_benefit: Option<f64>,
    pub(crate) bounds: Vec<BoundView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MeasuredPath {
    pub(crate) name: String,
    pub(crate) idle: Option<LatencyView>,
    pub(crate) individual: Option<FlowView>,
    pub(crate) simultaneous: Option<FlowView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MeasuredBond {
    pub(crate) idle: Option<LatencyView>,
    pub(crate) bonded: FlowView,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct FlowView {
    pub(crate) throughput_bps: u64,
    pub(crate) latency: Option<LatencyView>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct LatencyView {
    pub(crate) median_us: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BoundView {
    pub(crate) equation: String,
    pub(crate) holds: bool,
}

impl DirectionView {
    /// The sum of a column over the paths.
    pub(crate) fn sum_bps(&self, column: fn(&MeasuredPath) -> Option<FlowView>) -> Option<u64> {
        self.paths.iter().map(|path| Some(column(path)?.throughput_bps)).sum()
    }
}

/// A `plait measure` that has ended, successfully or not.
#[derive(Debug)]
pub(crate) struct Measurement {
    finished: Finished,
    /// How long it ran.
    pub(crate) took: Duration,
}

impl Measurement {
    /// Its answer.
    pub(crate) fn view(&self) -> Result<MeasuredView> {
        let Finished { status, stdout, stderr } = &self.finished;
        if !status.success() {
            bail!("plait measure failed ({status}): {}", stderr.trim());
        }
        serde_json::from_str(stdout).with_context(|| format!("unknown form: {stdout}"))
    }

    /// Its error message.
    pub(crate) fn complaint(&self) -> Result<&str> {
        let Finished { status, stdout, stderr } = &self.finished;
        if status.code() != Some(2) {
            bail!("plait measure did not fail ({status}): {stdout}");
        }
        Ok(stderr)
    }

    /// Its progress output.
    pub(crate) fn told(&self) -> &str {
        &self.finished.stderr
    }
}

impl Gateway {
    /// Measures the bond with this gateway's only peer; `limit` is the time it may take.
    pub(crate) fn measure(
        &self,
        netns: &NetNs,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Measurement> {
        let mut command = netns.command(plait_program()?);
        command.args(["measure", "--json"]).arg(&self.config).args(arguments);
        let start = Instant::now();
        let finished = process::run_any(&mut command, "", limit + GRACE)?;
        Ok(Measurement { finished, took: start.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_figure_has_no_sum() {
        let path = |bps: Option<u64>| MeasuredPath {
            name: "dsl".into(),
            idle: None,
            individual: bps.map(|throughput_bps| FlowView { throughput_bps, latency: None }),
            simultaneous: None,
        };
        let flow = FlowView { throughput_bps: 3, latency: None };
        let mut view = DirectionView {
            direction: "down".into(),
            paths: vec![path(Some(1)), path(Some(2))],
            bond: MeasuredBond { idle: None, bonded: flow },
            aggregation_ratio: None,
            aggregation_benefit: None,
            bounds: Vec::new(),
        };
        assert_eq!(view.sum_bps(|path| path.individual), Some(3));
        view.paths.push(path(None));
        assert_eq!(view.sum_bps(|path| path.individual), None);
    }
}
