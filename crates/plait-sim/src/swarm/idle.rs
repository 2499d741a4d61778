//! Measures what an idle bond sends.

use plait_proto::stats::PathState;
use plait_proto::time::{Duration, Instant};

use super::check::{Violation, violation};
use super::plan::SwarmPlan;
use super::swarm_run::SwarmRun;
use super::{CUSTOMER, PROVIDER};

/// What an idle path sent, both sides together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdlePath {
    /// Datagrams.
    pub packets: u64,
    /// Bytes at the IP layer.
    pub bytes: u64,
}

/// An idle bond of two links, plain or metered: what each of its paths sends in `length`, after
/// half a minute in which the bond comes up.
///
/// # Errors
///
/// A checker's violation, or a bond that does not come up or stay up.
pub fn measure(metered: bool, length: Duration) -> Result<Vec<IdlePath>, Violation> {
    const SETTLE: Duration = Duration::from_secs(30);
    let plan = SwarmPlan::idle(metered, SETTLE + length);
    let mut run = SwarmRun::new(&plan, None);
    run.run_until(Instant::ZERO + SETTLE)?;
    let before: Vec<IdlePath> = (0..plan.links.len()).map(|at| run.wires.carried(at)).collect();
    run.run_until(plan.heal_at)?;
    for side in [CUSTOMER, PROVIDER] {
        let paths = run.status(side).map(|status| status.paths).unwrap_or_default();
        let is_well = |state| matches!(state, PathState::Up | PathState::Asleep);
        if paths.len() != plan.links.len() || !paths.iter().all(|path| is_well(path.state)) {
            return violation(run.now, "recovery", "an idle bond lost a path");
        }
    }
    let since = |(at, before): (usize, &IdlePath)| {
        let after = run.wires.carried(at);
        IdlePath { packets: after.packets - before.packets, bytes: after.bytes - before.bytes }
    };
    Ok(before.iter().enumerate().map(since).collect())
}
