//! One attachment of a client: what it can carry, whether it is in use, what it has carried.

use core::net::IpAddr;

use super::config::{AttachmentConfig, ClientConfig, ProbeConfig};
use super::packet::Rewrite;
use super::prober::Prober;
use super::status::{AttachmentState, AttachmentStatus};
use crate::scheduler::PathView;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Over how long the load counts while the round-trip time is unknown.
const LOAD_SPAN: Duration = Duration::from_millis(100);

/// Address families, as places of what a client has once for each.
pub(super) const FAMILIES: usize = 2;

/// The place of an address's family.
pub(super) const fn family(address: IpAddr) -> usize {
    if address.is_ipv4() { 0 } else { 1 }
}

/// How packets of one family reach the client over an attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carriage {
    /// It has no address of the family: not at all.
    None,
    /// As they are.
    AsIs,
    /// With another destination.
    Rewritten(Rewrite),
}

/// An attachment.
#[derive(Debug)]
pub(super) struct Attachment {
    config: AttachmentConfig,
    is_primary: bool,
    pub(super) carriage: [Carriage; FAMILIES],
    /// Where probes go.
    pub(super) probe_address: IpAddr,
    /// The owner's word.
    owner_up: bool,
    pub(super) prober: Option<Prober>,
    /// When its timer is set to.
    pub(super) armed: Option<Instant>,
    load: Load,
    outages: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Attachment {
    /// The attachment at this place of a client's configuration.
    pub(super) fn new(client: &ClientConfig, place: usize, probe: Option<u16>) -> Self {
        let config = client.attachments[place].clone();
        let rewritten = |from: IpAddr| match config.address.like(from) {
            _ if config.address.is_empty() => Carriage::AsIs,
            Some(to) => Rewrite::new(from, to).map_or(Carriage::None, Carriage::Rewritten),
            None => Carriage::None,
        };
        let mut carriage = [Carriage::None; FAMILIES];
        for address in client.address.iter() {
            carriage[family(address)] = rewritten(address);
        }
        let address = config.address.iter().chain(client.address.iter()).next();
        let probe_address = address.expect("a checked client has an address");
        let is_primary = place == 0;
        Self {
            config,
            is_primary,
            carriage,
            probe_address,
            owner_up: true,
            prober: probe.map(|number| Prober::new(is_primary, number)),
            armed: None,
            load: Load::default(),
            outages: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// Goes on where `old` was: the same attachment under another configuration of the node.
    pub(super) fn take_over(&mut self, old: Self) {
        if self.prober.is_some()
            && let Some(prober) = old.prober
        {
            self.prober = Some(prober);
        }
        if let Some(prober) = &mut self.prober {
            prober.fetched();
        }
        self.owner_up = old.owner_up;
        self.load = old.load;
        (self.outages, self.packets, self.bytes) = (old.outages, old.packets, old.bytes);
    }

    pub(super) const fn config(&self) -> &AttachmentConfig {
        &self.config
    }

    /// Whether it may be given packets.
    pub(super) fn is_in_use(&self) -> bool {
        self.owner_up && self.prober.as_ref().is_none_or(Prober::is_answering)
    }

    /// Whether it can carry a packet of this family, which can be rewritten or not.
    pub(super) fn can_carry(&self, family: usize, rewritable: bool) -> bool {
        match self.carriage[family] {
            Carriage::None => false,
            Carriage::AsIs => true,
            Carriage::Rewritten(_) => rewritable,
        }
    }

    /// Takes the owner's word. What comes back must answer a probe before it is used.
    pub(super) fn set_owner_up(&mut self, up: bool) {
        if self.owner_up && !up && self.is_in_use() {
            self.outages += 1;
        }
        if up
            && !self.owner_up
            && let Some(prober) = &mut self.prober
        {
            prober.restart(self.is_primary);
        }
        self.owner_up = up;
    }

    /// When its timer is due; `None` while there is nothing to probe.
    pub(super) fn poll_timeout(&self, config: Option<&ProbeConfig>, busy: bool) -> Option<Instant> {
        let prober = self.prober.as_ref().filter(|_| self.owner_up)?;
        Some(prober.poll_timeout(config?, busy))
    }

    /// Gives up overdue probes and sends the next. Returns the number of the probe to send.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        config: &ProbeConfig,
        busy: bool,
    ) -> Option<u16> {
        let prober = self.prober.as_mut().filter(|_| self.owner_up)?;
        self.outages += u64::from(prober.expire(now, config));
        prober.send(now, config, busy)
    }

    /// Counts a packet sent over it.
    pub(super) fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Notes a packet's bytes as on their way for about a round trip.
    pub(super) fn add_load(&mut self, now: Instant, bytes: u64) {
        let span = self.smoothed_rtt().unwrap_or(LOAD_SPAN);
        self.load.add(now, span, bytes);
    }

    /// Bytes sent within the last round trip.
    pub(super) fn load(&self, now: Instant) -> u64 {
        self.load.bytes(now, self.smoothed_rtt().unwrap_or(LOAD_SPAN))
    }

    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.prober.as_ref()?.rtt.smoothed()
    }

    /// [`Prober::reckoned_rtt`].
    pub(super) fn reckoned_rtt(&self, now: Instant) -> Option<Duration> {
        self.prober.as_ref()?.reckoned_rtt(now)
    }

    pub(super) fn rtt_variation(&self) -> Option<Duration> {
        self.prober.as_ref()?.rtt.variation()
    }

    /// What a scheduler sees of it: an attachment has neither window nor pacer, and nobody tells
    /// what arrived.
    pub(super) fn view(&self, now: Instant, id: u8) -> PathView {
        let rtt = self.prober.as_ref().map(|prober| prober.rtt).unwrap_or_default();
        PathView {
            id: PathId(id),
            price: self.config.price,
            order: id,
            weight: self.config.weight,
            srtt: self.reckoned_rtt(now),
            latest_rtt: rtt.latest(),
            min_rtt: rtt.min(),
            in_flight_bytes: 0,
            delivery_rate: Rate::ZERO,
            delivered_bytes: 0,
            sent_packets: self.packets,
            rtt_variation: rtt.variation(),
            window_bytes: None,
            capacity: Rate::ZERO,
            ready_at: Instant::ZERO,
            is_starting: false,
            loss_permille: 0,
        }
    }

    fn state(&self) -> (AttachmentState, String) {
        let prober = self.prober.as_ref();
        let missed = prober.map_or(0, Prober::unanswered_in_a_row);
        if !self.owner_up {
            (AttachmentState::Down, "its interface or route is gone".into())
        } else if !prober.is_none_or(Prober::is_proven) {
            (AttachmentState::Unproven, "no probe has been answered yet".into())
        } else if self.is_in_use() {
            let reason = match prober {
                None => "not probed",
                Some(prober) if prober.counters.answered == 0 => "the primary, not measured yet",
                Some(_) => "its probes are answered",
            };
            (AttachmentState::Up, reason.into())
        } else {
            (AttachmentState::Silent, format!("{missed} probes in a row stayed unanswered"))
        }
    }

    /// What it tells about itself; `packets` are those of the client over all its attachments.
    pub(super) fn status(&self, weight: Option<u32>, packets: u64) -> AttachmentStatus {
        let (state, reason) = self.state();
        let micros =
            |time: Option<Duration>| time.map(|t| u64::try_from(t.as_micros()).unwrap_or(u64::MAX));
        AttachmentStatus {
            name: self.config.name.clone(),
            addresses: self.config.address.iter().map(|address| address.to_string()).collect(),
            state,
            reason,
            outages: self.outages,
            packets: self.packets,
            bytes: self.bytes,
            share: if packets == 0 { 0.0 } else { self.packets as f64 / packets as f64 },
            weight,
            price: self.config.price,
            rtt_us: micros(self.smoothed_rtt()),
            rtt_variation_us: micros(self.rtt_variation()),
            rtt_min_us: micros(self.prober.as_ref().and_then(|prober| prober.rtt.min())),
            probes: self.prober.as_ref().map(|prober| prober.counters).unwrap_or_default(),
        }
    }
}

/// Bytes sent over the last span of time: those of the span under way, and of the one before the
/// part that is not past yet.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    began_at: Instant,
    current_bytes: u64,
    previous_bytes: u64,
}

impl Load {
    fn add(&mut self, now: Instant, span: Duration, bytes: u64) {
        let elapsed = now.since(self.began_at);
        if elapsed >= span {
            let recent = elapsed < span * 2;
            self.previous_bytes = if recent { self.current_bytes } else { 0 };
            self.began_at = if recent { self.began_at + span } else { now };
            self.current_bytes = 0;
        }
        self.current_bytes += bytes;
    }

    fn bytes(&self, now: Instant, span: Duration) -> u64 {
        let elapsed = now.since(self.began_at);
        let part = |bytes: u64, left: Duration| {
            let product = u128::from(bytes) * left.as_nanos();
            u64::try_from(product / span.as_nanos().max(1)).unwrap_or(u64::MAX)
        };
        if elapsed < span {
            self.current_bytes + part(self.previous_bytes, span - elapsed)
        } else {
            part(self.current_bytes, (span * 2).saturating_sub(elapsed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_what_was_sent_within_the_span() {
        let span = Duration::from_millis(100);
        let at = Instant::from_millis;
        let mut load = Load::default();
        for ms in 1000..1200 {
            load.add(at(ms), span, 1000);
        }
        let now = load.bytes(at(1199), span);
        assert!((100_000..=101_000).contains(&now), "{now}");
        assert_eq!(load.bytes(at(1250), span), 50_000, "half of it is past");
        assert_eq!(load.bytes(at(1300), span), 0);
    }
}
