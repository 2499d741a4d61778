//! How large a packet the bond carries: sends the paths' MTU probes, and follows what they find
//! with the bond's inner MTU.

use super::{Bond, BondEvent};
use crate::path::SendPath;
use crate::path::mtu::{Circumstances, MtuProbe};
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::{Duration, Instant, earlier};
use crate::wire::control::{Frame, MTU_PROBE_BYTES};
use crate::wire::sealed::{CONTROL_PREFIX_BYTES, HEADER_BYTES, TAG_BYTES};

/// Every link that carries IPv6 carries this much (RFC 8200 §5): a path that does not is left to
/// small packets as long as there are others.
pub(super) const INNER_MTU_FULL: usize = 1280;
/// The smallest inner MTU ever announced: it must hold IP's and TCP's headers and some data.
const INNER_MTU_MIN: usize = 256;
/// A larger inner MTU is announced when it stood this long; a smaller one at once.
const RAISE_DELAY: Duration = Duration::from_secs(5);

/// The largest inner packet that both hosts take.
pub(super) fn agreed(own: u16, peer: u16) -> u16 {
    own.min(peer.max(INNER_MTU_MIN as u16))
}

/// The inner MTU that the bond announces.
#[derive(Clone, Copy, Debug)]
pub(super) struct InnerMtu {
    announced: u16,
    max: u16,
    /// When a larger one is announced, if it still stands then.
    raise_at: Option<Instant>,
}

impl InnerMtu {
    /// Nothing is known yet: `max` is announced.
    pub(super) fn new(max: u16) -> Self {
        Self { announced: max, max, raise_at: None }
    }

    /// When [`Self::follow`] is to be called again.
    fn poll_timeout(&self, now: Instant, found: u16) -> Option<Instant> {
        match found.cmp(&self.announced) {
            core::cmp::Ordering::Equal => self.raise_at.map(|_| now),
            core::cmp::Ordering::Less => Some(now),
            core::cmp::Ordering::Greater => Some(self.raise_at.unwrap_or(now)),
        }
    }

    /// Goes down at once and up late; says whether it changed.
    fn follow(&mut self, now: Instant, found: u16) -> bool {
        if found > self.announced && *self.raise_at.get_or_insert(now + RAISE_DELAY) > now {
            return false;
        }
        self.raise_at = None;
        let changed = found != self.announced;
        self.announced = found;
        changed
    }
}

impl Bond {
    /// The largest inner packet that the host should send, in bytes.
    pub fn inner_mtu(&self) -> u16 {
        self.inner_mtu.announced
    }

    /// Starts from what the host was told last, so that a new bond does not change it twice.
    pub fn start_from_inner_mtu(&mut self, told: u16) {
        self.inner_mtu.announced = self.inner_mtu.announced.min(told);
        self.egress.set_mss_limit(self.inner_mtu.announced);
    }

    /// When a probe, or a change of the inner MTU, is due.
    pub(super) fn mtu_due(&self, now: Instant) -> Option<Instant> {
        let probes = self.ingress.paths().fold(None, |next, path| {
            earlier(next, path.mtu.poll_timeout(now, circumstances(path)))
        });
        let follow = self.found_inner_mtu().map(|found| self.inner_mtu.poll_timeout(now, found));
        earlier(probes, follow.flatten())
    }

    /// Sends the probes that are due and follows what was found.
    pub(super) fn mind_mtu(&mut self, now: Instant) {
        if self.mtu_due(now).is_none_or(|due| due > now) {
            return;
        }
        for id in self.ingress.path_ids() {
            let Some(path) = self.ingress.path(id) else { continue };
            let with = circumstances(path);
            if path.mtu.poll_timeout(now, with).is_none_or(|due| due > now) {
                continue;
            }
            let Some(path) = self.ingress.path_mut(id) else { continue };
            if let Some(probe) = path.mtu.due(now, with) {
                let frame = probe_frame(path, probe);
                self.ingress.send_control(now, id, &[frame]);
                if probe.repeated {
                    self.probe(now, id);
                }
            }
        }
        self.follow_mtu(now);
    }

    pub(super) fn handle_mtu_echo(&mut self, now: Instant, id: PathId, probe: u32) {
        if let Some(path) = self.ingress.path_mut(id)
            && path.mtu.echo(now, probe)
        {
            path.sent.count_large_above(path.mtu.fallback());
        }
    }

    fn follow_mtu(&mut self, now: Instant) {
        if let Some(found) = self.found_inner_mtu()
            && self.inner_mtu.follow(now, found)
        {
            self.egress.set_mss_limit(found);
            self.events.push_back(BondEvent::InnerMtu(found));
        }
    }

    /// What the paths in use carry; `None` when there are none. Paths below
    /// [`INNER_MTU_FULL`] count only if all are, and then the best does.
    fn found_inner_mtu(&self) -> Option<u16> {
        let up = || self.ingress.paths().filter(|path| path.state == PathState::Up);
        let carried = || up().map(SendPath::inner_hoped);
        let full = carried().filter(|carried| *carried >= INNER_MTU_FULL).min();
        let found = full.or_else(|| carried().max())?.max(INNER_MTU_MIN);
        Some(u16::try_from(found).unwrap_or(u16::MAX).min(self.inner_mtu.max))
    }
}

fn circumstances(path: &SendPath) -> Circumstances {
    Circumstances {
        // A path may seem lossy because large datagrams vanish.
        up: matches!(path.state, PathState::Up | PathState::Lossy),
        metered: path.info.metered,
        probe_timeout: path.rtt.probe_timeout(),
    }
}

/// Padding makes the probe's datagram as long as it has to be.
fn probe_frame(path: &SendPath, probe: MtuProbe) -> Frame {
    let bare = HEADER_BYTES + CONTROL_PREFIX_BYTES + MTU_PROBE_BYTES + TAG_BYTES;
    let padding = probe.size.saturating_sub(path.route.ip_bytes(bare));
    Frame::MtuProbe { id: probe.id, padding: u16::try_from(padding).unwrap_or(u16::MAX) }
}

/// What there is to say of a path's MTU beside its state; empty when it is as it should be.
pub(super) fn remark(path: &SendPath) -> String {
    let (size, room) = (path.mtu.size(), path.inner_max());
    match path.mtu.known() {
        Some(_) if room < INNER_MTU_FULL && path.mtu.is_limited() => {
            format!(
                "; carries only {size} bytes: small packets only, inner ones up to {room} bytes"
            )
        }
        None if path.mtu.is_limited() => {
            format!("; no large datagram was answered: small packets only, up to {room} bytes")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_mtu_falls_at_once_and_rises_late() {
        let at = Instant::from_millis;
        let mut mtu = InnerMtu::new(1440);
        assert!(mtu.follow(at(0), 1400));
        assert_eq!(mtu.announced, 1400);
        assert!(!mtu.follow(at(10), 1440));
        assert_eq!(mtu.poll_timeout(at(10), 1440), Some(at(5010)));
        assert!(!mtu.follow(at(5009), 1440));
        assert!(mtu.follow(at(5010), 1440));
        assert_eq!((mtu.announced, mtu.poll_timeout(at(5010), 1440)), (1440, None));
    }

    #[test]
    fn a_path_that_goes_and_comes_changes_nothing() {
        let at = Instant::from_millis;
        let mut mtu = InnerMtu::new(1440);
        mtu.follow(at(0), 1400);
        assert!(!mtu.follow(at(100), 1440), "the small path went");
        assert!(!mtu.follow(at(3000), 1400), "and came back");
        assert!(!mtu.follow(at(4000), 1440), "and went");
        assert!(!mtu.follow(at(6000), 1440), "the delay began anew");
        assert!(mtu.follow(at(9000), 1440));
    }
}
