//! What the service manager is told (sd_notify(3)): ready, what goes on, still alive. Without one
//! nothing happens.

use std::collections::BTreeSet;
use std::time::Duration;

use plait_proto::endpoint::Event;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use sd_notify::NotifyState;

use crate::config::Config;

/// How often the bonds are looked at until the gateway is ready, and afterwards.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const TELL_INTERVAL: Duration = Duration::from_secs(5);

/// Which peers' bonds can carry data.
#[derive(Debug, Default)]
pub(super) struct Carrying {
    peers: BTreeSet<PublicKey>,
}

impl Carrying {
    /// Follows an event.
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::PathUp(peer, _) => {
                self.peers.insert(*peer);
            }
            Event::BondDown(peer) => {
                self.peers.remove(peer);
            }
            _ => {}
        }
    }

    fn count(&self) -> usize {
        self.peers.len()
    }
}

/// Speaks to the service manager.
#[derive(Debug)]
pub(super) struct Service {
    /// Half the time after which a silent gateway is taken for dead.
    watchdog_interval: Option<Duration>,
    alive_at: Instant,
    tell_at: Instant,
    calls_peers: bool,
    is_ready: bool,
    told: String,
}

impl Service {
    /// Whoever calls nobody is ready once its loop runs; others are once a bond can carry data.
    pub(super) fn new(config: &Config) -> Self {
        let is_managed = std::env::var_os("NOTIFY_SOCKET").is_some();
        let watchdog_interval = sd_notify::watchdog_enabled().map(|timeout| timeout / 2);
        Self {
            watchdog_interval: watchdog_interval.filter(|_| is_managed),
            alive_at: Instant::ZERO,
            tell_at: if is_managed { Instant::ZERO } else { Instant::FAR_FUTURE },
            calls_peers: config.peers.iter().any(|peer| !peer.endpoints.is_empty()),
            is_ready: false,
            told: String::new(),
        }
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let alive_at = self.watchdog_interval.map(|_| self.alive_at);
        let tell_at = (self.tell_at < Instant::FAR_FUTURE).then_some(self.tell_at);
        alive_at.into_iter().chain(tell_at).min()
    }

    /// Tells what is due.
    pub(super) fn run_due(&mut self, now: Instant, carrying: &Carrying, peers: usize) {
        if let Some(interval) = self.watchdog_interval
            && self.alive_at <= now
        {
            notify(&[NotifyState::Watchdog]);
            self.alive_at = now + interval;
        }
        if self.tell_at > now {
            return;
        }
        let status = format!("bonds that carry data: {} of {peers}", carrying.count());
        let becomes_ready = !self.is_ready && (carrying.count() > 0 || !self.calls_peers);
        if becomes_ready {
            self.is_ready = true;
            notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        } else if status != self.told {
            notify(&[NotifyState::Status(&status)]);
        }
        self.told = status;
        self.tell_at = now + if self.is_ready { TELL_INTERVAL } else { LOOK_INTERVAL };
    }

    /// Tells that the end has begun.
    pub(super) fn end(&self) {
        if self.tell_at < Instant::FAR_FUTURE {
            notify(&[NotifyState::Stopping]);
        }
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        log::debug!("the service manager cannot be told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use plait_proto::seq::PathId;

    use super::*;

    #[test]
    fn a_bond_carries_from_its_first_path_to_its_end() {
        let peer = PublicKey::from_bytes([7; 32]);
        let mut carrying = Carrying::default();
        carrying.note(&Event::BondUp(peer));
        assert_eq!(carrying.count(), 0);
        carrying.note(&Event::PathUp(peer, PathId(0)));
        carrying.note(&Event::PathUp(peer, PathId(1)));
        carrying.note(&Event::PathSilent(peer, PathId(1)));
        assert_eq!(carrying.count(), 1);
        carrying.note(&Event::BondDown(peer));
        assert_eq!(carrying.count(), 0);
    }
}
