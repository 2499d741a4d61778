//! What the node has sent of one TCP flow: which segment over which attachment, and when; and what
//! an acknowledgement of the client says of it.
//!
//! An acknowledgement is a stranger's word. One that acknowledges what was never sent is passed
//! over whole, and so is a block outside what is outstanding.

use std::collections::VecDeque;

use crate::time::Instant;
use crate::wire::tcp::{SackBlock, TcpPacket, TcpSeq};

/// Segments of a flow that are remembered at the same time: a window of 12 MB.
const SEGMENTS_MAX: usize = 8192;
/// Sequence numbers further apart belong to another connection (RFC 7323 §2.3).
const WINDOW_BYTES_MAX: u32 = 1 << 30;
/// So many duplicate ACKs in a row without a block show that the client has no SACK.
const BARE_DUPLICATES: u32 = 3;

/// A segment on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    seq: TcpSeq,
    end: TcpSeq,
    pub(super) sent_at: Instant,
    /// Of its packet.
    pub(super) bytes: u32,
    pub(super) attachment: u8,
    /// Nothing more is to be learned from it: it has arrived, or was sent twice, so that nobody
    /// knows which of both was acknowledged.
    is_done: bool,
}

/// What a packet of the client says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    ack: TcpSeq,
    window: u16,
    is_pure: bool,
    has_sack: bool,
    blocks: [SackBlock; 4],
    count: usize,
}

impl Answer {
    pub(super) fn of(tcp: &TcpPacket<'_>) -> Self {
        let mut blocks = [SackBlock::default(); 4];
        let mut count = 0;
        for (place, block) in blocks.iter_mut().zip(tcp.sack_blocks()) {
            *place = block;
            count += 1;
        }
        let (ack, window, has_sack) = (tcp.ack(), tcp.window(), tcp.has_sack());
        Self { ack, window, is_pure: tcp.payload_bytes() == 0, has_sack, blocks, count }
    }
}

/// A flow's segments, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Everything before it has arrived.
    acked: TcpSeq,
    /// One past the highest byte sent.
    next: TcpSeq,
    segments: VecDeque<Segment>,
    last_at: Instant,
    /// The window of the client's latest packet: with another one a number that comes again is no
    /// duplicate.
    window: u16,
    bare_duplicates: u32,
    has_sack: bool,
}

impl Ledger {
    /// A flow of which nothing before `first` is known.
    pub(super) const fn new(first: TcpSeq) -> Self {
        Self {
            acked: first,
            next: first,
            segments: VecDeque::new(),
            last_at: Instant::ZERO,
            window: 0,
            bare_duplicates: 0,
            has_sack: false,
        }
    }

    /// Segments remembered.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// When its last segment was sent.
    pub(super) const fn last_at(&self) -> Instant {
        self.last_at
    }

    /// Whether arrivals can be told apart: without SACK a hole hides what arrived above it.
    pub(super) const fn teaches(&self) -> bool {
        self.has_sack || self.bare_duplicates < BARE_DUPLICATES
    }

    /// Takes a segment with data on its way to the client, in a packet of so many bytes; `room` is
    /// for how many more there is memory. Returns whether it is remembered.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        attachment: u8,
        tcp: &TcpPacket<'_>,
        bytes: u32,
        room: usize,
    ) -> bool {
        let (seq, end) = (tcp.seq(), tcp.seq().plus(tcp.payload_bytes()));
        if seq.since(self.next).min(self.next.since(seq)) > WINDOW_BYTES_MAX {
            *self = Self::new(seq);
        }
        self.last_at = now;
        if seq.is_before(self.next) {
            self.sent_again(seq, end);
        }
        if !end.is_after(self.next) || !self.teaches() {
            return false;
        }
        self.next = end;
        let has_room = room > 0 && self.segments.len() < SEGMENTS_MAX;
        if seq.is_before(self.segments.back().map_or(self.acked, |last| last.end)) || !has_room {
            return false;
        }
        let sent_at = now;
        self.segments.push_back(Segment { seq, end, sent_at, bytes, attachment, is_done: false });
        true
    }

    fn sent_again(&mut self, seq: TcpSeq, end: TcpSeq) {
        let from = self.place(seq);
        for segment in self.segments.range_mut(from..) {
            if !segment.seq.is_before(end) {
                break;
            }
            segment.is_done = true;
        }
    }

    /// The first segment that ends after `seq`.
    fn place(&self, seq: TcpSeq) -> usize {
        self.segments.partition_point(|segment| !segment.end.is_after(seq))
    }

    /// Takes what the client says, and gives each segment to `arrived` that has come to it.
    pub(super) fn answered(&mut self, answer: &Answer, mut arrived: impl FnMut(&Segment)) {
        if answer.ack.since(self.acked) > self.next.since(self.acked) {
            return;
        }
        let is_again = answer.ack == self.acked && answer.window == self.window;
        let is_duplicate = is_again && answer.ack != self.next && answer.is_pure;
        if answer.has_sack {
            self.has_sack = true;
        } else if is_duplicate {
            self.bare_duplicates = self.bare_duplicates.saturating_add(1);
        } else if self.bare_duplicates < BARE_DUPLICATES {
            self.bare_duplicates = 0;
        }
        (self.acked, self.window) = (answer.ack, answer.window);
        let teaches = self.teaches();
        while let Some(first) = self.segments.front()
            && !first.end.is_after(answer.ack)
        {
            if !first.is_done && teaches {
                arrived(first);
            }
            self.segments.pop_front();
        }
        for block in &answer.blocks[..answer.count] {
            let is_outstanding = !block.left.is_before(self.acked)
                && block.left.is_before(block.right)
                && !block.right.is_after(self.next);
            if !is_outstanding {
                continue;
            }
            let from = self.place(block.left);
            for segment in self.segments.range_mut(from..) {
                if segment.end.is_after(block.right) {
                    break;
                }
                if !segment.is_done && !segment.seq.is_before(block.left) {
                    segment.is_done = true;
                    arrived(segment);
                }
            }
        }
    }
}
