//! One end of a radio link as a sender: its queue, the window of packets that a block
//! acknowledgement may name, and what the receiver gives on in order.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};

use super::aggregate::{ACCESS_MEAN, WINDOW_MAX_SLOTS, WINDOW_MIN_SLOTS, exchange, subframe};
use super::counters::AirCounters;
use super::mcs::{Mcs, PACKET_BYTES, preamble_success, success};
use super::radio::{Fates, RadioConfig};
use super::rate_control::RateControl;
use crate::packet::Way;

/// A frame on the air: the first packets of the window that have not arrived.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) way: Way,
    pub(super) scheme: Mcs,
    pub(super) packets: u32,
    /// Time before the subframes, and of them.
    preamble: Duration,
    air: Duration,
    pub(super) exchange: Duration,
    /// Whether packets were left that it had no room for.
    is_full: bool,
}

impl Frame {
    /// The time that its packets take as part of full frames, over its own. A radio that has little
    /// to send sends short frames, each with its turn and its preamble: it uses more of the air
    /// than what it carries is worth.
    pub(super) fn worth(&self, config: &RadioConfig) -> f64 {
        if self.is_full {
            return 1.0;
        }
        let each = subframe(PACKET_BYTES, self.scheme.rate_bps);
        let fitting = config.aggregate.fitting(each);
        let whole = ACCESS_MEAN + exchange(self.preamble, each * fitting);
        let full = self.air.as_secs_f64() / (each * fitting).as_secs_f64() * whole.as_secs_f64();
        (full / (ACCESS_MEAN + self.exchange).as_secs_f64()).min(1.0)
    }
}

#[derive(Debug)]
struct Packet<P> {
    bytes: u64,
    payload: P,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Waits,
    Arrived,
    GivenUp,
}

#[derive(Debug)]
struct Slot<P> {
    packet: Packet<P>,
    /// How often it was sent.
    sent: u32,
    fate: Fate,
}

/// What came out of a medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<P> {
    /// When it arrived.
    pub due: Instant,
    /// The radio that carried it.
    pub radio: usize,
    /// Length at the IP layer.
    pub bytes: u64,
    /// The packet.
    pub payload: P,
}

/// Counts of one direction of a radio link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// Packets given to it.
    pub in_packets: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Packets that found no room.
    pub dropped_queue_packets: u64,
    /// Packets sent too often in vain.
    pub given_up_packets: u64,
    /// Bytes of both.
    pub dropped_bytes: u64,
}

#[derive(Debug)]
pub(super) struct Sender<P> {
    queue: VecDeque<Packet<P>>,
    /// From the oldest packet that has neither arrived nor been given up.
    window: VecDeque<Slot<P>>,
    /// Bytes that neither arrived nor were given up.
    waiting_bytes: u64,
    /// Packets of the window that are done.
    done: u64,
    pub(super) control: RateControl,
    /// Largest number of slots of the next draw.
    pub(super) window_slots: u32,
    pub(super) counters: SenderCounters,
    pub(super) arrived: VecDeque<(Instant, u64, P)>,
}

impl<P> Sender<P> {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            window: VecDeque::new(),
            waiting_bytes: 0,
            done: 0,
            control: RateControl::new(),
            window_slots: WINDOW_MIN_SLOTS,
            counters: SenderCounters::default(),
            arrived: VecDeque::new(),
        }
    }

    /// Takes a packet in if there is room; says whether there was.
    pub(super) fn take_in(&mut self, bytes: u64, payload: P, room: u64) -> bool {
        self.counters.in_packets += 1;
        self.counters.in_bytes += bytes;
        if self.waiting_packets() >= room {
            self.counters.dropped_queue_packets += 1;
            self.counters.dropped_bytes += bytes;
            return false;
        }
        self.waiting_bytes += bytes;
        self.queue.push_back(Packet { bytes, payload });
        true
    }

    pub(super) fn has_work(&self) -> bool {
        self.waiting_packets() > 0
    }

    /// Packets that wait or are under way.
    pub(super) fn waiting_packets(&self) -> u64 {
        (self.queue.len() + self.window.len()) as u64 - self.done
    }

    /// Their bytes.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Makes the next frame: first what is sent again, then new packets while the window has room.
    pub(super) fn compose(&mut self, way: Way, scheme: Mcs, config: &RadioConfig) -> Frame {
        let aggregate = &config.aggregate;
        let (mut packets, mut air) = (0, Duration::ZERO);
        let waits = self.window.iter().filter(|slot| slot.fate == Fate::Waits);
        let mut is_full = false;
        for slot in waits {
            let more = subframe(slot.packet.bytes, scheme.rate_bps);
            is_full = !aggregate.has_room(packets, air, more);
            if is_full {
                break;
            }
            packets += 1;
            air += more;
        }
        while !is_full && self.window.len() < aggregate.packets_max as usize {
            let Some(next) = self.queue.front() else { break };
            let more = subframe(next.bytes, scheme.rate_bps);
            is_full = !aggregate.has_room(packets, air, more);
            if is_full {
                break;
            }
            let Some(packet) = self.queue.pop_front() else { break };
            self.window.push_back(Slot { packet, sent: 0, fate: Fate::Waits });
            packets += 1;
            air += more;
        }
        let is_full = is_full || !self.queue.is_empty();
        let preamble = config.mode.preamble();
        Frame { way, scheme, packets, preamble, air, exchange: exchange(preamble, air), is_full }
    }

    /// Decides what of a frame arrived, and gives on what is in order.
    pub(super) fn settle(
        &mut self,
        begun: Instant,
        until: Instant,
        frame: &Frame,
        mut fates: Fates<'_>,
        counters: &mut AirCounters,
    ) {
        let at_preamble = fates.met(begun + frame.preamble / 2);
        let recognised = fates.happens(preamble_success(fates.sinr_db(at_preamble)));
        let mut at = begun + frame.preamble;
        let (mut arrived, mut disturbed) = (0_u32, 0_u32);
        let mut worst_db = f64::INFINITY;
        let waits = self.window.iter_mut().filter(|slot| slot.fate == Fate::Waits);
        for slot in waits.take(frame.packets as usize) {
            let time = subframe(slot.packet.bytes, frame.scheme.rate_bps);
            let met = fates.met(at + time / 2);
            at += time;
            let sinr_db = fates.sinr_db(met);
            if met.interference_mw > 0.0 {
                disturbed += 1;
                worst_db = worst_db.min(sinr_db);
            }
            slot.sent += 1;
            let probability = success(sinr_db, frame.scheme.needs_db, slot.packet.bytes);
            let arrives = recognised && !met.destroyed && fates.happens(probability);
            if arrives {
                arrived += 1;
                slot.fate = Fate::Arrived;
            } else if slot.sent > fates.retries_max() {
                slot.fate = Fate::GivenUp;
            } else {
                continue;
            }
            self.done += 1;
            self.waiting_bytes -= slot.packet.bytes;
        }
        counters.lost_subframes += u64::from(frame.packets - arrived);
        self.control.note(f64::from(disturbed) / f64::from(frame.packets), worst_db);
        self.window_slots = match arrived {
            0 => (2 * self.window_slots + 1).min(WINDOW_MAX_SLOTS),
            _ => WINDOW_MIN_SLOTS,
        };
        self.give_on(until);
    }

    /// The receiver gives on what is in order.
    fn give_on(&mut self, now: Instant) {
        while self.window.front().is_some_and(|slot| slot.fate != Fate::Waits) {
            let Some(slot) = self.window.pop_front() else { break };
            self.done -= 1;
            let Packet { bytes, payload } = slot.packet;
            if slot.fate == Fate::Arrived {
                self.arrived.push_back((now, bytes, payload));
            } else {
                self.counters.given_up_packets += 1;
                self.counters.dropped_bytes += bytes;
            }
        }
    }
}
