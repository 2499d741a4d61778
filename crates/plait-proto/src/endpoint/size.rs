//! Inner packets larger than what the bond with their peer carries (spec M-4).
//!
//! The host has one TUN device and many peers, and a peer's path must not decide what the others
//! may send. So the device keeps its MTU, and who sends too large a packet to one peer is told so.

use super::limits::Rate;
use super::{Endpoint, Event};
use crate::bond::Bond;
use crate::drop_reason::DropReason;
use crate::session::PublicKey;
use crate::time::{Duration, Instant};
use crate::wire::fragment;
use crate::wire::icmp;
use crate::wire::ip::{IPV6_MTU_MIN, Inner, room_needed};

/// Messages about sizes to senders of packets for one peer.
pub(super) const TELL_RATE: Rate = Rate { interval: Duration::from_millis(20), burst: 20 };

impl Endpoint {
    /// Gives a packet to the bond with the peer, if there is one.
    pub(super) fn give_to_bond(
        &mut self,
        now: Instant,
        at: usize,
        inner: &Inner,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let bond = self.peers[at].used_bond_mut().ok_or(DropReason::NoSession)?;
        if room_needed(packet) <= usize::from(bond.inner_mtu()) || !bond.is_up() {
            return bond.handle_packet(now, inner, packet);
        }
        self.give_large(now, at, inner, packet)
    }

    /// A packet that may be cut is. Of any other its sender is told what fits, and it still goes
    /// over a path that carries it, if there is one.
    fn give_large(
        &mut self,
        now: Instant,
        at: usize,
        inner: &Inner,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let Some(mtu) = self.peers[at].used_bond().map(Bond::inner_mtu) else {
            return Err(DropReason::NoSession);
        };
        if inner.source.is_ipv6() && usize::from(mtu) < IPV6_MTU_MIN {
            self.tell_sender(now, at, || icmp::no_ipv6(packet, inner));
            return Err(DropReason::NoIpv6);
        }
        let parts = fragment::fragments(packet, mtu.into());
        if parts.is_none() {
            self.tell_sender(now, at, || icmp::too_big(packet, inner, mtu));
        }
        let Some(bond) = self.peers[at].used_bond_mut() else { return Err(DropReason::NoSession) };
        let Some(parts) = parts else { return bond.handle_packet(now, inner, packet) };
        let mut outcome = Ok(());
        for part in &parts {
            let inner = Inner::read(part).expect("a fragment of a packet is a packet");
            outcome = outcome.and(bond.handle_packet(now, &inner, part));
        }
        outcome
    }

    fn tell_sender(&mut self, now: Instant, at: usize, message: impl FnOnce() -> Option<Vec<u8>>) {
        if self.peers[at].told_size.take(now, TELL_RATE)
            && let Some(message) = message()
        {
            self.told.push(&message);
        }
    }

    /// The largest inner packet that the bond with a peer carries, in bytes; `None` without a bond.
    pub fn inner_mtu_to(&self, peer: &PublicKey) -> Option<u16> {
        let peer = &self.peers[*self.places.get(peer)?];
        peer.used_bond().map(Bond::inner_mtu)
    }

    /// The largest inner packet that the bond carries has changed.
    pub(super) fn note_inner_mtu(&mut self, at: usize, mtu: u16) {
        let peer = &mut self.peers[at];
        peer.inner_mtu = Some(mtu);
        self.events.push_back(Event::InnerMtu(peer.config.public_key, mtu));
    }
}
