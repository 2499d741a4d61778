//! In-order delivery at a client, as in PDCP for split bearers: one timer, t-Reordering (3GPP TS
//! 38.323 section 5.2.2.2; ALGORITHMS section 6).

use std::collections::BTreeMap;

use plait_proto::time::{Duration, Instant};

use crate::packet::Packet;

/// One client's packets, numbered by the node.
#[derive(Debug)]
pub(super) struct InOrder {
    t_reordering: Duration,
    /// The number of the next packet that the node sends.
    next_sent: u64,
    /// The first number not delivered (RX_DELIV).
    deliver: u64,
    /// The number after the highest that arrived (RX_NEXT).
    next: u64,
    /// Packets that arrived beyond a gap.
    waiting: BTreeMap<u64, Packet>,
    /// The timer, and the number after the highest that had arrived when it started (RX_REORD).
    timer: Option<(Instant, u64)>,
}

impl InOrder {
    pub(super) fn new(t_reordering: Duration) -> Self {
        Self {
            t_reordering,
            next_sent: 0,
            deliver: 0,
            next: 0,
            waiting: BTreeMap::new(),
            timer: None,
        }
    }

    /// Numbers a packet that the node sends.
    pub(super) fn number(&mut self) -> u64 {
        self.next_sent += 1;
        self.next_sent - 1
    }

    /// A packet arrived. Packets that are now in order go to `out`; one that was given up is
    /// discarded.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        number: u64,
        packet: Packet,
        out: &mut Vec<Packet>,
    ) {
        if number < self.deliver {
            return;
        }
        self.waiting.insert(number, packet);
        self.next = self.next.max(number + 1);
        self.deliver_row(out);
        if self.timer.is_some_and(|(_, reorder)| self.deliver >= reorder) {
            self.timer = None;
        }
        self.start_timer(now);
    }

    /// When to call [`InOrder::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// Gives up missing packets below the number that the timer was started for.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Packet>) {
        let Some((_, reorder)) = self.timer.filter(|(at, _)| *at <= now) else { return };
        self.timer = None;
        let beyond = self.waiting.split_off(&reorder);
        out.extend(core::mem::replace(&mut self.waiting, beyond).into_values());
        self.deliver = reorder;
        self.deliver_row(out);
        self.start_timer(now);
    }

    fn deliver_row(&mut self, out: &mut Vec<Packet>) {
        while let Some(packet) = self.waiting.remove(&self.deliver) {
            out.push(packet);
            self.deliver += 1;
        }
    }

    fn start_timer(&mut self, now: Instant) {
        if self.timer.is_none() && self.deliver < self.next {
            self.timer = Some((now + self.t_reordering, self.next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{End, Protocol};

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn packet(number: u32) -> Packet {
        Packet {
            app: 0,
            stream: 0,
            number,
            sent_at: Instant::ZERO,
            bytes: 1500,
            protocol: Protocol::Tcp,
            dscp: 0,
            to: End::Customer,
        }
    }

    /// Lets a packet arrive, and returns the numbers that come out.
    fn arrive(order: &mut InOrder, millis: u64, number: u32) -> Vec<u32> {
        let mut out = Vec::new();
        order.arrive(at(millis), number.into(), packet(number), &mut out);
        out.iter().map(|packet| packet.number).collect()
    }

    fn time_out(order: &mut InOrder, millis: u64) -> Vec<u32> {
        let mut out = Vec::new();
        order.handle_timeout(at(millis), &mut out);
        out.iter().map(|packet| packet.number).collect()
    }

    #[test]
    fn what_overtakes_waits_for_what_was_overtaken() {
        let mut order = InOrder::new(Duration::from_millis(100));
        assert_eq!(arrive(&mut order, 0, 0), [0]);
        assert!(arrive(&mut order, 1, 2).is_empty());
        assert!(arrive(&mut order, 2, 3).is_empty());
        assert_eq!(order.poll_timeout(), Some(at(101)));
        assert_eq!(arrive(&mut order, 3, 1), [1, 2, 3]);
        assert_eq!(order.poll_timeout(), None);
    }

    #[test]
    fn the_timer_gives_up_what_was_missing_when_it_started_and_no_more() {
        let mut order = InOrder::new(Duration::from_millis(100));
        assert!(arrive(&mut order, 0, 1).is_empty());
        assert!(arrive(&mut order, 50, 3).is_empty(), "another gap, at 2");
        assert!(time_out(&mut order, 99).is_empty());
        assert_eq!(time_out(&mut order, 100), [1]);
        assert_eq!(order.poll_timeout(), Some(at(200)), "the gap at 2 has a time of its own");
        assert!(arrive(&mut order, 110, 0).is_empty(), "given up: discarded");
        assert_eq!(arrive(&mut order, 120, 2), [2, 3]);
    }
}
