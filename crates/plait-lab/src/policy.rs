//! Policies: how a bond spreads its packets and how much it lets each path carry, by name.

use std::fmt;
use std::str::FromStr;

use plait_proto::congestion::{self, ControllerConfig};
use plait_proto::scheduler::{self, SchedulerConfig};
use thiserror::Error;

/// A scheduler with the paths' congestion control.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Policy {
    name: String,
    pub(crate) scheduler: SchedulerConfig,
    /// `None`: open loop.
    pub(crate) congestion: Option<ControllerConfig>,
}

impl Policy {
    /// The default policy of bonds.
    pub(crate) fn default_policy() -> Self {
        Self::new(DEFAULT, SchedulerConfig::default())
    }

    /// A scheduler with its default congestion control.
    fn new(name: &str, scheduler: SchedulerConfig) -> Self {
        let congestion = scheduler.algorithm.default_congestion();
        Self { name: name.to_owned(), scheduler, congestion }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The scenario settings for this policy.
    pub(crate) fn settings(&self) -> Vec<String> {
        if self.name == DEFAULT {
            return Vec::new();
        }
        let controller = self.congestion.map_or("none", |config| config.algorithm.name());
        vec![
            format!("bond.scheduler.algorithm={}", self.scheduler.algorithm),
            format!("bond.congestion.algorithm={controller}"),
        ]
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

const DEFAULT: &str = "default";
const OPEN: &str = "open";

/// An unknown policy name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum UnknownPolicy {
    #[error("{0}; a policy is `default`, SCHEDULER, SCHEDULER/CONTROLLER or open/SCHEDULER")]
    Scheduler(scheduler::UnknownAlgorithm),
    #[error("{0}; for paths without one write open/SCHEDULER")]
    Controller(congestion::UnknownAlgorithm),
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        if name == DEFAULT {
            return Ok(Self::default_policy());
        }
        let scheduler = |word: &str| word.parse().map_err(UnknownPolicy::Scheduler);
        match name.split_once('/') {
            None => Ok(Self::new(name, scheduler(name)?)),
            Some((OPEN, word)) => {
                Ok(Self { congestion: None, ..Self::new(name, scheduler(word)?) })
            }
            Some((word, controller)) => {
                let policy = Self::new(name, scheduler(word)?);
                let controller = controller.parse::<congestion::Algorithm>();
                let congestion = controller.map_err(UnknownPolicy::Controller)?.into();
                Ok(Self { congestion: Some(congestion), ..policy })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str) -> Policy {
        name.parse().unwrap()
    }

    #[test]
    fn policies_are_read_by_name() {
        for name in ["default", "min-rtt", "ecf/gauge", "earliest-delivery/cubic", "open/fixed"] {
            assert_eq!(policy(name).name(), name);
        }
        let controller = |name| policy(name).congestion.map(|config| config.algorithm);
        assert_eq!(controller("blest/cubic"), Some(congestion::Algorithm::Cubic));
        assert_eq!(controller("open/min-rtt"), None);
        assert_eq!(controller("adaptive-wrr"), None);
        let default = scheduler::Algorithm::default();
        assert_eq!(controller("default"), default.default_congestion().map(|own| own.algorithm));
        assert_eq!(policy("default").scheduler, default.into());
        assert_eq!(policy("ecf/gauge").scheduler.algorithm, scheduler::Algorithm::Ecf);
    }

    #[test]
    fn what_is_no_policy_says_what_would_be() {
        let error = |name: &str| name.parse::<Policy>().unwrap_err().to_string();
        assert!(error("open/fastest").contains("unknown scheduler `fastest`"));
        assert!(error("min-rtt/best").contains("`best`"));
    }
}
