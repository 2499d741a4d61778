//! What `when_down` needs of the rest of the configuration.

use plait_toml::Problems;

use super::error::Conflict;
use super::{Config, Endpoint, WhenDown};

/// Notes what makes it useless.
pub(super) fn check(problems: &Problems, config: &Config) {
    let gateway = &config.gateway;
    if gateway.when_down != WhenDown::Bypass {
        return;
    }
    let add = |conflict| config.add(problems, gateway.line, "[gateway] when_down", conflict);
    if !gateway.routes {
        add(Conflict::BypassWithoutRoutes);
    } else if config.allowed_prefixes().iter().all(|prefix| prefix.length > 1) {
        add(Conflict::NothingToBypass);
    }
}

/// Warns of what the kill switch keeps in or lets out against expectation.
pub(super) fn warnings(config: &Config, warn: &mut impl FnMut(usize, &str, String, String)) {
    let gateway = &config.gateway;
    if gateway.when_down != WhenDown::Block {
        return;
    }
    let mut endpoints = config.peers.iter().flat_map(|peer| &peer.endpoints);
    let named = endpoints.find(|endpoint| matches!(endpoint.value, Endpoint::Name(..)));
    if let Some(endpoint) = named {
        let text = format!(
            "to find {}, questions to the host's name servers leave outside the bond",
            endpoint.value
        );
        warn(endpoint.line, "[[peer]] endpoint", text, "write the endpoint's IP address".into());
    }
    if gateway.block_allows.is_empty() {
        let text = "nobody in the networks around this host is answered any more, by ssh neither";
        let help = "add the networks that may be reached, as in `block_allows = \
                    [\"192.168.7.0/24\"]`";
        warn(gateway.line, "[gateway] when_down", text.into(), help.into());
    }
}
