//! Hands the connection's data to the subflows, in this order: what is to be sent again → new data
//! as the scheduler says → what holds the connection up.

use plait_proto::time::Instant;

use super::MptcpConnection;
use crate::tcp::mptcp::scheduler::{ConnectionView, Decision, SubflowView, candidates};
use crate::tcp::segment::SeqRange;

/// The fragments in which Linux keeps an application's data: within one, it does not look whether
/// a subflow's buffer is full.
const FRAGMENT_BYTES: u64 = 32 << 10;

impl MptcpConnection {
    /// Hands over all that may be handed over now.
    pub(super) fn push(&mut self, now: Instant) {
        if self.data.is_finished() {
            return;
        }
        let buffers = self.subflows.iter().map(|subflow| subflow.buffer.bytes());
        if let Some(bytes) = self.send_buffer.fill(self.data.held_bytes(), buffers) {
            self.data.fill_to(bytes);
        }
        self.send_again();
        while self.data.may_send() || self.scheduler.sends_copies() {
            self.look();
            let connection = self.connection_view(now);
            match self.scheduler.pick(&connection, &self.views) {
                Decision::Send { subflow, bytes } => self.send_new(subflow, bytes),
                Decision::Copy { subflow } => self.send_copy(subflow),
                Decision::Wait => break,
            }
        }
        self.data.note_blocked(now);
        if self.config.penalise {
            self.help_the_head(now);
        }
        self.arm(now, false);
    }

    /// Renews the scheduler's views.
    fn look(&mut self) {
        let (una, nxt) = (self.data.una(), self.data.nxt());
        let spares = self.reinjection.spares_timed_out();
        let segment_bytes = self.config.sender.segment_bytes;
        let views = self.subflows.iter_mut().zip(&self.local).map(|(subflow, local)| {
            subflow.cursor = subflow.cursor.max(una);
            let sender = &subflow.sender;
            SubflowView {
                is_usable: subflow.is_usable(spares),
                is_backup: subflow.is_backup,
                srtt: sender.srtt(),
                rtt_variation: sender.rtt_variation(),
                window_bytes: sender.window_bytes(),
                in_flight_bytes: sender.in_flight_bytes(),
                unsent_bytes: sender.unsent_bytes(),
                memory_bytes: subflow.memory_bytes(segment_bytes),
                buffer_bytes: subflow.buffer.bytes(),
                pacing_rate: sender.pacing_estimate(),
                behind_bytes: nxt - subflow.cursor,
                local: *local,
            }
        });
        self.views.clear();
        self.views.extend(views);
    }

    fn connection_view(&self, now: Instant) -> ConnectionView {
        ConnectionView {
            now,
            segment_bytes: self.config.sender.segment_bytes,
            // Without a whole segment, or room for one, there is nothing to send.
            unsent_bytes: if self.data.may_send() { self.data.unsent_bytes() } else { 0 },
            room_bytes: self.data.room_bytes(),
            window_bytes: self.data.window_bytes(),
            reinjections: self.reinjections,
        }
    }

    fn send_new(&mut self, subflow: usize, bytes: u64) {
        let segment_bytes = self.config.sender.segment_bytes;
        let mut handed = 0;
        while handed < bytes
            && let Some(data) = self.data.take()
        {
            self.give(subflow, data);
            let fragments = handed / FRAGMENT_BYTES;
            handed += data.len();
            let ends_fragment = handed / FRAGMENT_BYTES > fragments;
            if ends_fragment && !self.subflows[subflow].has_memory(segment_bytes) {
                break;
            }
        }
    }

    fn send_copy(&mut self, subflow: usize) {
        let start = self.subflows[subflow].cursor;
        let end = self.data.nxt().min(start + self.config.sender.segment_bytes);
        self.give(subflow, SeqRange { start, end });
    }

    fn give(&mut self, subflow: usize, data: SeqRange) {
        self.subflows[subflow].give(data);
        self.local[subflow].packets += 1;
    }

    /// Sends data again over the quickest other subflow that takes it.
    fn send_again(&mut self) {
        self.reinjection.forget_below(self.data.una());
        let mut stuck = Vec::new();
        while let Some((at, data, carrier)) = self.reinjection.next(&stuck) {
            match self.quickest(carrier) {
                Some(subflow) => {
                    self.give_again(subflow, data);
                    self.reinjection.on_sent(at);
                }
                None => stuck.push(carrier),
            }
        }
    }

    /// When nothing new may leave although a subflow has room: the head of the data is what is
    /// missing.
    fn help_the_head(&mut self, now: Instant) {
        let is_window = self.data.is_blocked();
        let is_buffer = !self.data.is_all_written() && !self.data.may_send();
        if !(is_window || is_buffer) || self.data.una() == self.data.nxt() {
            return;
        }
        let Some(quick) = self.quickest(None) else { return };
        let una = self.data.una();
        let again = self.penalty.on_blocked(now, una, &mut self.subflows, quick, is_window);
        if let Some(data) = again {
            self.give_again(quick, data);
        }
    }

    fn give_again(&mut self, subflow: usize, data: SeqRange) {
        self.give(subflow, data);
        self.reinjections += 1;
        self.reinjected_bytes += data.len();
    }

    /// The subflow with the lowest round-trip time that takes a segment now, `except` left out.
    fn quickest(&mut self, except: Option<usize>) -> Option<usize> {
        self.look();
        let (fills_buffers, bytes) =
            (self.scheduler.fills_buffers(), self.config.sender.segment_bytes);
        let others = candidates(&self.views).filter(|(at, _)| Some(*at) != except);
        let open =
            others.filter(
                |(_, view)| {
                    if fills_buffers { view.has_memory() } else { view.has_room(bytes) }
                },
            );
        open.min_by_key(|(_, view)| view.srtt).map(|(at, _)| at)
    }
}
