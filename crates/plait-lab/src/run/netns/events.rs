//! Events of gateways, interfaces, addresses and links while a scenario runs.

use std::collections::VecDeque;

use anyhow::{Context, Result};
use plait_proto::time::Instant;
use plait_sim::link::{LinkConfig, Loss};
use plait_sim::scenario::event::Gateway;
use plait_sim::scenario::{Action, Scenario};

use super::site::Site;
use super::testbed::Carriers;
use crate::emulator::Way;

/// The port mask of a NAT after rebinding.
const OTHER_PORTS: u16 = 0x0155;

/// Events that have not happened yet, by their times.
#[derive(Debug)]
pub(super) struct Events {
    left: VecDeque<(Instant, Action)>,
}

impl Events {
    /// The events of a scenario that starts at `zero`; each has one time.
    pub(super) fn new(scenario: &Scenario, zero: Instant) -> Self {
        let known = |action: &Action| match action.link() {
            Some(link) => scenario.links.contains_key(link),
            None => scenario.bond.is_some() || !action.needs_bond(),
        };
        let events = scenario.events.iter().filter(|event| known(&event.action));
        Self { left: events.map(|event| (zero + event.at, event.action.clone())).collect() }
    }

    /// When the next one happens.
    pub(super) fn next(&self) -> Option<Instant> {
        self.left.front().map(|(at, _)| *at)
    }

    /// Performs due events.
    pub(super) fn happen(
        &mut self,
        now: Instant,
        scenario: &Scenario,
        site: &Site,
        carriers: &mut Carriers<'_>,
    ) -> Result<()> {
        while let Some((at, action)) = self.left.pop_front() {
            if at > now {
                self.left.push_front((at, action));
                break;
            }
            let happened = happen(&action, scenario, site, carriers);
            happened.with_context(|| format!("while it should happen: {action:?}"))?;
        }
        Ok(())
    }
}

fn happen(
    action: &Action,
    scenario: &Scenario,
    site: &Site,
    carriers: &mut Carriers<'_>,
) -> Result<()> {
    match action {
        Action::Loss(link, share) => {
            let loss = Loss::Bernoulli(*share);
            for way in [Way::Down, Way::Up] {
                site.change(scenario, link, way, |config| LinkConfig { loss, ..config });
            }
        }
        Action::Power(..) | Action::Coupling(..) | Action::Interferer(..) => {
            site.happen_on_air(action);
        }
        Action::Unplug(link) => {
            site.interface(scenario, link, |interface| interface.remove(&site.customer))?
        }
        Action::Plug(link) => site.interface(scenario, link, |interface| {
            interface.bring_back(&site.server, &site.customer, "plait-customer")
        })?,
        Action::Readdress(link) => site.interface(scenario, link, |interface| {
            interface.readdress(&site.customer, &site.provider)
        })?,
        Action::Rebind(link) => site.emulator(scenario, link).rebind_ports(OTHER_PORTS),
        Action::Kill(gateway) => carriers.kill(*gateway)?,
        Action::Restart(Gateway::Customer) => {
            carriers.restart(Gateway::Customer, &site.customer)?;
        }
        Action::Restart(Gateway::Provider) => {
            carriers.restart(Gateway::Provider, &site.provider)?;
        }
        Action::Reload(gateway) => carriers.reload(*gateway)?,
        Action::Cut(..)
        | Action::Heal(_)
        | Action::Rate(..)
        | Action::Start(_)
        | Action::Stop(_) => {
            unreachable!("these are part of a link's or an application's course")
        }
    }
    Ok(())
}
