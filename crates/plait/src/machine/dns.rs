//! What `[dns]` needs of the machine: a way to tell its resolver.

use super::{Finding, option_at};
use crate::config::Config;
use crate::daemon::find_way;

/// The way that will be used.
pub(super) fn way(config: &Config) -> Option<Finding> {
    let dns = config.dns.as_ref()?;
    let subject = option_at(config, dns.line, "[dns]");
    Some(match find_way(&config.gateway.tun, &dns.domains) {
        Ok(way) => Finding::ok(subject, format!("the host's resolver is told by {}", way.told())),
        Err(error) => Finding::error(subject, error.to_string(), error.help()),
    })
}
