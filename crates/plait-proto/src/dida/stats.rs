//! Counters of DIDA: one for every decision.

use serde::{Deserialize, Serialize};

use super::flow::{EARLY_DUPLICATES, Meaning};
use super::micros;
use crate::time::Duration;

/// Packets from clients that were forwarded as they came, or with their SACK option masked, by the
/// reason. Each packet that is forwarded at its arrival counts under exactly one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Forwarded {
    /// Not TCP, or not well formed; fragments.
    pub not_tcp: u64,
    /// Of a flow of which no data was seen on its way to the client.
    pub unknown_flow: u64,
    /// Carries data.
    pub data: u64,
    /// SYN, FIN, RST or URG, or no ACK.
    pub flagged: u64,
    /// A signature covers it.
    pub signed: u64,
    /// Acknowledges what was never sent, or is older than any window; it teaches nothing.
    pub beyond_sent: u64,
    /// Its acknowledgement number advances.
    pub advancing: u64,
    /// Its acknowledgement number is lower than one before.
    pub old: u64,
    /// Nothing is outstanding that it could ask for.
    pub nothing_outstanding: u64,
    /// A window update: same number, another window.
    pub window_update: u64,
    /// It reports data received twice.
    pub dsack: u64,
    /// First or second duplicate of its number.
    pub early_duplicate: u64,
    /// A duplicate of a flow that is left alone after a hold ended without its gap filled.
    pub released_duplicate: u64,
    /// A duplicate while the holding time is 0.
    pub unheld_duplicate: u64,
}

impl Forwarded {
    pub(super) fn count(&mut self, meaning: Meaning, is_released: bool) {
        let counter = match meaning {
            Meaning::Data => &mut self.data,
            Meaning::Flagged => &mut self.flagged,
            Meaning::Signed => &mut self.signed,
            Meaning::BeyondSent => &mut self.beyond_sent,
            Meaning::Advancing => &mut self.advancing,
            Meaning::Old => &mut self.old,
            Meaning::NothingOutstanding => &mut self.nothing_outstanding,
            Meaning::WindowUpdate => &mut self.window_update,
            Meaning::Dsack => &mut self.dsack,
            Meaning::Duplicate(number) if number <= EARLY_DUPLICATES => &mut self.early_duplicate,
            Meaning::Duplicate(_) if is_released => &mut self.released_duplicate,
            Meaning::Duplicate(_) => &mut self.unheld_duplicate,
        };
        *counter += 1;
    }

    /// All together.
    pub const fn total(&self) -> u64 {
        let Self {
            not_tcp,
            unknown_flow,
            data,
            flagged,
            signed,
            beyond_sent,
            advancing,
            old,
            nothing_outstanding,
            window_update,
            dsack,
            early_duplicate,
            released_duplicate,
            unheld_duplicate,
        } = *self;
        let never_duplicates = not_tcp + unknown_flow + data + flagged + signed + beyond_sent;
        let same_number = nothing_outstanding + window_update + dsack;
        let duplicates = early_duplicate + released_duplicate + unheld_duplicate;
        never_duplicates + advancing + old + same_number + duplicates
    }
}

/// Why a hold ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Filled,
    Expired,
    Overflowed,
    Evicted,
    Stopped,
}

/// What became of held ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HeldEnds {
    /// Discarded: their gap was filled.
    pub discarded: u64,
    /// Forwarded after all when their gap was filled, before the ACK that said so.
    pub forwarded: u64,
    /// Forwarded: the hold ended and the gap was still there.
    pub expired: u64,
    /// Forwarded: their flow or the node held too many.
    pub overflowed: u64,
    /// Forwarded: their flow made room for another, was reset, or was replaced.
    pub evicted: u64,
    /// Forwarded: the node stops.
    pub stopped: u64,
}

impl HeldEnds {
    /// All together.
    pub const fn total(&self) -> u64 {
        self.discarded
            + self.forwarded
            + self.expired
            + self.overflowed
            + self.evicted
            + self.stopped
    }
}

/// Counters since the start, in packets unless the name says otherwise.
///
/// Every packet from a client is in `forwarded` or in `held`; `held` is the sum of `held_ends` and
/// `held_now`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DidaStats {
    /// Packets from clients that were forwarded at their arrival, by reason.
    pub forwarded: Forwarded,
    /// Duplicate ACKs that were held.
    pub held: u64,
    /// What became of them.
    pub held_ends: HeldEnds,
    /// Held now.
    pub held_now: u64,
    /// Bytes kept now: held ACKs, and the originals of masked ones.
    pub kept_now_bytes: u64,
    /// Most bytes that were ever kept at a time.
    pub kept_peak_bytes: u64,
    /// ACKs forwarded with SACK blocks left out.
    pub masked: u64,
    /// Originals of masked ACKs that followed because the gap was still there.
    pub unmasked: u64,
    /// Gaps held back: a duplicate was held or a SACK option masked.
    pub gaps: u64,
    /// Of these, filled in time.
    pub gaps_filled: u64,
    /// Of these, still there when the hold ended.
    pub gaps_expired: u64,
    /// Of these, given up early: too much was held, the flow went, or the node stopped.
    pub gaps_given_up: u64,
    /// The latest holding time, in microseconds.
    pub hold_us: u64,
    /// Time from the beginning to the end of all gaps held back, in microseconds.
    pub gap_total_us: u64,
    /// Longest such time, in microseconds.
    pub gap_max_us: u64,
    /// Segments with data on their way to clients.
    pub data_segments: u64,
    /// Of these, retransmissions: they begin below what was sent before.
    pub retransmissions: u64,
    /// Flows known now.
    pub flows: u64,
    /// Flows that were ever known.
    pub flows_total: u64,
    /// Flows that made room for others.
    pub flows_evicted: u64,
    /// Flows forgotten because nothing came of them.
    pub flows_idle: u64,
    /// Flows that were reset, or replaced by a new connection between the same ports.
    pub flows_replaced: u64,
}

impl DidaStats {
    /// Counts the end of a gap's hold and of what was held.
    pub(super) fn count_end(&mut self, end: End, held: u64, is_forwarded: bool, took: Duration) {
        let ends = &mut self.held_ends;
        let (of_gaps, of_held) = match end {
            End::Filled if is_forwarded => (&mut self.gaps_filled, &mut ends.forwarded),
            End::Filled => (&mut self.gaps_filled, &mut ends.discarded),
            End::Expired => (&mut self.gaps_expired, &mut ends.expired),
            End::Overflowed => (&mut self.gaps_given_up, &mut ends.overflowed),
            End::Evicted => (&mut self.gaps_given_up, &mut ends.evicted),
            End::Stopped => (&mut self.gaps_given_up, &mut ends.stopped),
        };
        *of_gaps += 1;
        *of_held += held;
        let us = micros(took);
        self.gap_total_us = self.gap_total_us.saturating_add(us);
        self.gap_max_us = self.gap_max_us.max(us);
    }
}

/// What is believed of one flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowEstimate {
    /// Smoothed round-trip time of the connection, in microseconds.
    pub rtt_us: u64,
    /// The sender's window.
    pub window_segments: f64,
    /// Time since the last congestion event, in microseconds.
    pub since_congestion_us: u64,
    /// How long a gap that began now would be held back, in microseconds.
    pub hold_us: u64,
}
