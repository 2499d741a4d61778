//! What a bond sends that carries nothing.

use plait_proto::stats::PathState;
use plait_proto::time::{Duration, Instant};

use super::check::{Violation, violation};
use super::course::Course;
use super::plan::Plan;
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
/// A checker's, or a bond that does not come up or does not stay up.
pub fn measure(metered: bool, length: Duration) -> Result<Vec<IdlePath>, Violation> {
    const SETTLE: Duration = Duration::from_secs(30);
    let plan = Plan::idle(metered, SETTLE + length);
    let mut course = Course::new(&plan, None);
    course.run_until(Instant::ZERO + SETTLE)?;
    let before: Vec<IdlePath> = (0..plan.links.len()).map(|at| course.wires.carried(at)).collect();
    course.run_until(plan.heal_at)?;
    for side in [CUSTOMER, PROVIDER] {
        let paths = course.status(side).map(|status| status.paths).unwrap_or_default();
        let is_well = |state| matches!(state, PathState::Up | PathState::Asleep);
        if paths.len() != plan.links.len() || !paths.iter().all(|path| is_well(path.state)) {
            return violation(course.now, "recovery", "an idle bond lost a path");
        }
    }
    let since = |(at, before): (usize, &IdlePath)| {
        let after = course.wires.carried(at);
        IdlePath { packets: after.packets - before.packets, bytes: after.bytes - before.bytes }
    };
    Ok(before.iter().enumerate().map(since).collect())
}
