//! Policies: how a bond spreads its packets and how much it lets each path carry, by name.

use std::fmt;
use std::str::FromStr;

use plait_proto::scheduler::{self, SchedulerConfig};
use plait_sim::scenario::BondSpec;
use thiserror::Error;

/// A scheduler with what controls the paths.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Policy {
    name: String,
    /// `None` for the bond's default.
    scheduler: Option<SchedulerConfig>,
    /// `None` for the bond's default.
    control: Option<Control>,
}

/// What controls the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Control {
    /// Nothing: an open loop.
    Open,
}

impl Policy {
    /// What bonds do that are told nothing.
    pub(crate) fn default_policy() -> Self {
        Self { name: DEFAULT.to_owned(), scheduler: None, control: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells a bond that knows the defaults.
    pub(super) fn apply(&self, bond: &mut BondSpec) {
        if let Some(scheduler) = &self.scheduler {
            bond.scheduler = scheduler.clone();
        }
        match self.control {
            None | Some(Control::Open) => {}
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

const DEFAULT: &str = "default";
const OPEN: &str = "open";

/// The name of no policy.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum UnknownPolicy {
    #[error(
        "{name}: {cause}; a policy is `default`, SCHEDULER, SCHEDULER/CONTROLLER or open/SCHEDULER"
    )]
    Scheduler { name: String, cause: scheduler::UnknownAlgorithm },
    #[error("{name}: the paths of this build have no congestion control; use open/{scheduler}")]
    Controller { name: String, scheduler: String },
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        if name == DEFAULT {
            return Ok(Self::default_policy());
        }
        let (scheduler, control) = match name.split_once('/') {
            Some((OPEN, scheduler)) => (scheduler, Some(Control::Open)),
            Some((scheduler, controller)) => {
                (scheduler, Some(read_control(name, scheduler, controller)?))
            }
            None => (name, None),
        };
        let scheduler = scheduler
            .parse()
            .map_err(|cause| UnknownPolicy::Scheduler { name: name.to_owned(), cause })?;
        Ok(Self { name: name.to_owned(), scheduler: Some(scheduler), control })
    }
}

fn read_control(name: &str, scheduler: &str, controller: &str) -> Result<Control, UnknownPolicy> {
    if controller == "none" {
        return Ok(Control::Open);
    }
    Err(UnknownPolicy::Controller { name: name.to_owned(), scheduler: scheduler.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_by_name() {
        for name in ["default", "min-rtt", "open/adaptive-wrr", "round-robin/none"] {
            assert_eq!(name.parse::<Policy>().unwrap().name(), name);
        }
        let open: Policy = "open/adaptive-wrr".parse().unwrap();
        let scheduler = open.scheduler.unwrap().algorithm;
        assert_eq!(scheduler, scheduler::Algorithm::AdaptiveWrr);
    }

    #[test]
    fn what_is_no_policy_says_what_would_be() {
        let error = |name: &str| name.parse::<Policy>().unwrap_err().to_string();
        assert!(error("open/fastest").contains("unknown scheduler `fastest`"));
        assert!(error("min-rtt/best").contains("min-rtt"));
    }
}
