//! Fast recoveries of a run's TCP sender. The kernel counts them for a namespace and not for a
//! socket, so only a scenario in which one application sends by TCP has them.

use std::collections::BTreeMap;

use anyhow::Result;
use plait_net::netns::NetNs;
use plait_sim::scenario::Scenario;
use plait_sim::scenario::app::{AppSpec, Traffic, Via};

use super::site::Site;
use crate::measure::TcpCounters;

/// Counts for an application whose sender has a namespace's TCP to itself.
#[derive(Debug)]
pub(super) struct Recoveries<'a> {
    app: &'a AppSpec,
    sender: &'a NetNs,
    before: TcpCounters,
}

impl<'a> Recoveries<'a> {
    /// Begins to count; `None` where more than one sender would be counted.
    pub(super) fn begin(scenario: &'a Scenario, site: &'a Site) -> Result<Option<Self>> {
        let Some(app) = only_sender(scenario) else { return Ok(None) };
        let sender = site.ends(scenario, app).sender.0;
        Ok(Some(Self { app, sender, before: TcpCounters::of(sender)? }))
    }

    pub(super) fn put(&self, metrics: &mut BTreeMap<String, f64>) -> Result<()> {
        let counted = TcpCounters::of(self.sender)?.since(self.before);
        metrics.insert(format!("fast_recoveries.{}", self.app.name), counted.recoveries as f64);
        Ok(())
    }
}

/// The application that alone sends by the kernel's TCP, over a bare link.
fn only_sender(scenario: &Scenario) -> Option<&AppSpec> {
    let sends_tcp = |app: &&AppSpec| match &app.traffic {
        Traffic::Tcp(tcp) => !tcp.tcp.is_quic(),
        Traffic::Web(_) | Traffic::Video(_) => true,
        Traffic::Udp(_) | Traffic::OnOff(_) | Traffic::Voip(_) => false,
    };
    let mut senders = scenario.apps.iter().filter(sends_tcp);
    let app = senders.next()?;
    let is_bulk = matches!(app.traffic, Traffic::Tcp(_)) && matches!(app.via, Via::Link(_));
    (is_bulk && senders.next().is_none()).then_some(app)
}
