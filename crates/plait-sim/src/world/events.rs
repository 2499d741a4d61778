//! Events of gateways, interfaces, addresses and links during a scenario, except those in a link's
//! own timeline.

use super::queue::Event;
use super::{CUSTOMER, PROVIDER, World};
use crate::prng::Prng;
use crate::scenario::event::Gateway;
use crate::scenario::{Action, Scenario};

impl World {
    /// Queues the scenario's events, which have one time each.
    pub(super) fn add_events(&mut self, scenario: &Scenario) {
        for event in &scenario.events {
            let of = |name: &str| scenario.links.keys().position(|known| known == name);
            // Without this link, or without the bond, the carrier is not affected by its events.
            let link = match event.action.link() {
                Some(name) => of(name),
                None if event.action.is_on_air() => Some(0),
                None => Some(0).filter(|_| self.gateways.is_some()),
            };
            let Some(link) = link else { continue };
            self.timeline.queue.push(self.zero + event.at, Event::Scenario(self.events.len()));
            self.events.push((event.action.clone(), link));
        }
    }

    /// Performs the event of this number.
    pub(super) fn happen(&mut self, number: usize) {
        let now = self.timeline.now;
        let (action, link) = self.events[number].clone();
        if let Action::Loss(_, share) = action {
            return self.network.lose(now, link, share);
        }
        if action.is_on_air() {
            return self.network.happen_on_air(&mut self.timeline, &action);
        }
        let Some(gateways) = &mut self.gateways else { return };
        let side = |gateway| if gateway == Gateway::Customer { CUSTOMER } else { PROVIDER };
        match action {
            Action::Kill(gateway) => gateways.kill(side(gateway)),
            Action::Restart(gateway) => {
                // A new process draws its keys from another seed than the one before.
                let mut prng = Prng::new(now.as_nanos() ^ number as u64);
                gateways.restart(now, side(gateway), &mut prng);
            }
            Action::Reload(gateway) => gateways.reload(now, side(gateway)),
            Action::Unplug(_) => gateways.plug(now, link, false),
            Action::Plug(_) => gateways.plug(now, link, true),
            Action::Rebind(_) => gateways.rebind(link),
            Action::Readdress(_) => gateways.readdress(now, link),
            Action::Loss(..)
            | Action::Power(..)
            | Action::Coupling(..)
            | Action::Interferer(..)
            | Action::Cut(..)
            | Action::Heal(_)
            | Action::Rate(..)
            | Action::Start(_)
            | Action::Stop(_) => unreachable!("these are part of a timeline or done above"),
        }
        self.undrained = [true; 2];
    }
}
