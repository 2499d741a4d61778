//! A node's start, and its going on under another configuration.

use super::client::Client;
use super::{AttachmentId, Node, NodeConfig, Timer};
use crate::dida::{Dida, DidaConfig};
use crate::time::Instant;

/// A configuration that cannot be is its reader's business.
pub(super) fn assert_checked(config: &NodeConfig) {
    if let Err(error) = config.check() {
        panic!("the owner has checked the configuration: {error}");
    }
}

impl Node {
    /// Goes on under another configuration. A client of the same name and primary addresses stays,
    /// with its flows and counters; so do its attachments of the same name and address, with their
    /// round-trip times. DIDA goes on; when it is switched off, what it holds is released.
    ///
    /// Attachments have the ids of the new configuration from now on, and probes that were not
    /// fetched are gone.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    pub fn reconfigure(&mut self, now: Instant, config: NodeConfig) {
        assert_checked(&config);
        self.reconfigure_dida(now, config.dida);
        self.config = config;
        let old = core::mem::take(&mut self.clients);
        self.set_up(now, old);
    }

    fn reconfigure_dida(&mut self, now: Instant, config: Option<DidaConfig>) {
        match (&mut self.dida, config) {
            (Some(dida), Some(config)) => dida.reconfigure(now, config),
            (Some(dida), None) => {
                dida.release_all();
                while let Some(packet) = dida.poll_transmit() {
                    self.released.push_back(packet);
                }
                self.dida = None;
            }
            (None, config) => self.dida = config.map(Dida::new),
        }
    }

    /// Makes clients of the configuration, which go on where those in `old` were, and sets their
    /// timers.
    pub(super) fn set_up(&mut self, now: Instant, old: Vec<Client>) {
        let count = self.config.clients.len();
        self.clients =
            (0..count).map(|at| Client::new(&self.config, at, self.first_number(at))).collect();
        self.take_over(old);
        self.places.clear();
        for (client, of) in (0..).zip(&self.clients) {
            let primary = AttachmentId { client, attachment: 0 };
            self.places.extend(of.config().address.iter().map(|address| (address, primary)));
            for (attachment, config) in (0..).zip(&of.config().attachments) {
                let id = AttachmentId { client, attachment };
                self.places.extend(config.address.iter().map(|address| (address, id)));
            }
        }
        self.probes.clear();
        self.timers.retain(|(_, timer)| *timer == Timer::Sweep);
        for client in (0..).take(count) {
            self.follow_attachments(now, client);
            self.arm_client(now, client);
        }
    }

    /// Numbers of probes begin elsewhere for each client and after each start, so that no answer is
    /// taken for another's.
    fn first_number(&self, client: usize) -> u16 {
        (self.seed >> 16) as u16 ^ (client as u16).wrapping_mul(0x9e37)
    }

    /// Gives the clients that stay what they had, and their flows their new places.
    fn take_over(&mut self, old: Vec<Client>) {
        let place = |old: &Client| self.clients.iter().position(|new| new.is_same_as(old));
        let new_clients: Vec<Option<usize>> = old.iter().map(place).collect();
        let new_place = |at: u16| new_clients[usize::from(at)].and_then(|at| at.try_into().ok());
        let new_attachment = |at: u16, attachment: u8| {
            let new = new_clients[usize::from(at)]?;
            self.clients[new].place_of(&old[usize::from(at)], attachment)
        };
        if !old.is_empty() {
            self.flows.move_clients(self.clients.len(), new_place, new_attachment);
        }
        for (new, client) in new_clients.into_iter().zip(old) {
            if let Some(new) = new {
                self.clients[new].take_over(client);
            }
        }
    }
}
