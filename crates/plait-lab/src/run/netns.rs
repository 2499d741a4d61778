//! The namespaces as a back-end of scenarios.

use std::fmt;

use plait_sim::scenario::{Backend, Scenario};

/// Why the namespaces cannot run a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NetnsError {
    /// The scenario is for other back-ends.
    NotMeant {
        /// The scenario.
        name: String,
    },
    /// The lab cannot set the scenario up in namespaces yet.
    NotYet {
        /// The scenario.
        name: String,
    },
}

impl fmt::Display for NetnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMeant { name } => write!(
                f,
                "{name}: the scenario is meant for the simulator alone; choose --on sim, or add \
                 \"netns\" to its backends"
            ),
            Self::NotYet { name } => write!(
                f,
                "{name}: the lab runs no scenario in namespaces yet; choose --on sim. Real \
                 gateways over emulated links: `plait-lab demo` and `plait-lab verify`"
            ),
        }
    }
}

impl std::error::Error for NetnsError {}

/// Says why the scenario cannot run in namespaces.
pub(super) fn refuse(scenario: &Scenario) -> NetnsError {
    let name = scenario.name.clone();
    if scenario.backends.contains(&Backend::Netns) {
        NetnsError::NotYet { name }
    } else {
        NetnsError::NotMeant { name }
    }
}
