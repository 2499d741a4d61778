//! RACK (RFC 8985 section 6): a segment is lost when one sent enough later has arrived.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};

use super::scoreboard::{Scoreboard, Sent};

/// RFC 8985 section 6.2: recoveries without a duplicate report until the window shrinks back.
const PERSIST_RECOVERIES: u32 = 16;
/// Duplicate-acknowledgement threshold; reaching it closes the window while no reordering was seen.
const DUP_THRESH: u64 = 3;

/// One transmission, kept while it may be the latest of its segment.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Instant,
    end: u64,
    seq: u64,
    /// Which transmission of the segment it is.
    number: u32,
}

#[derive(Debug)]
pub(super) struct Rack {
    /// Sending time and end of the segment sent last among those delivered.
    latest: Option<(Instant, u64)>,
    rtt: Duration,
    reordering_seen: bool,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    /// The end of the round in which a duplicate report was counted.
    dsack_round: Option<u64>,
    /// In the order of sending.
    transmissions: VecDeque<Transmission>,
}

/// Input of loss detection besides the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detection {
    pub(super) now: Instant,
    pub(super) min_rtt: Option<Duration>,
    pub(super) srtt: Option<Duration>,
    /// Whether a recovery is in progress.
    pub(super) in_recovery: bool,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            latest: None,
            rtt: Duration::ZERO,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_round: None,
            transmissions: VecDeque::new(),
        }
    }
}

impl Rack {
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        self.transmissions.push_back(Transmission {
            at: sent.at,
            end: sent.range.end,
            seq: sent.range.start,
            number: sent.transmissions,
        });
    }

    /// An acknowledgement tells of `delivered`; `fack` is the highest end that earlier ones had
    /// told of (section 6.2, steps 1 to 3; RACK.fack).
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        delivered: &[Sent],
        fack: u64,
        min_rtt: Option<Duration>,
    ) {
        for sent in delivered {
            self.reordering_seen |= sent.transmissions == 1 && sent.range.end < fack;
            self.on_delivered(now, sent, min_rtt);
        }
    }

    fn on_delivered(&mut self, now: Instant, sent: &Sent, min_rtt: Option<Duration>) {
        let rtt = now.since(sent.at);
        // Too quick for the retransmission: the original arrived. The echoed timestamp would tell
        // only below the first gap (RFC 7323 section 4.3), so it is not used, as in Linux.
        if sent.transmissions > 1 && min_rtt.is_some_and(|min_rtt| rtt < min_rtt) {
            return;
        }
        self.rtt = rtt;
        self.latest = self.latest.max(Some((sent.at, sent.range.end)));
    }

    /// What had been sent again had only been late: an original filled the first gap, or a
    /// duplicate report says so (Linux: `tcp_check_sack_reordering`).
    pub(super) fn on_reordered(&mut self) {
        self.reordering_seen = true;
    }

    /// Whether segments were seen to arrive in another order than they left in.
    pub(super) const fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// A duplicate report came: once per round it widens the window (section 6.2, step 4).
    pub(super) fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_none_or(|round| una >= round) {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = PERSIST_RECOVERIES;
        }
    }

    /// A recovery ended.
    pub(super) fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// The reordering window (section 6.2, step 4).
    fn reo_wnd(&self, board: &Scoreboard, detection: &Detection) -> Duration {
        let eager = detection.in_recovery || board.sacked_segments() >= DUP_THRESH;
        if !self.reordering_seen && eager {
            return Duration::ZERO;
        }
        let quarter = detection.min_rtt.unwrap_or_default() / 4;
        (quarter * self.reo_wnd_mult).min(detection.srtt.unwrap_or_default())
    }

    /// Marks overdue segments lost (section 6.2, step 5). Returns whether there were any, and when
    /// the next segment will be overdue.
    pub(super) fn detect(
        &mut self,
        board: &mut Scoreboard,
        detection: &Detection,
    ) -> (bool, Option<Instant>) {
        let window = self.rtt + self.reo_wnd(board, detection);
        let mut marked = false;
        while let Some(first) = self.transmissions.front().copied() {
            if is_current(board, &first) {
                if self.latest.is_none_or(|latest| (first.at, first.end) >= latest) {
                    break;
                }
                let due = first.at + window;
                if due > detection.now {
                    return (marked, Some(due));
                }
                board.mark_lost(first.seq);
                marked = true;
            }
            self.transmissions.pop_front();
        }
        (marked, None)
    }

    /// Segments that the retransmission timer declares lost: the first one, and those sent more
    /// than a round trip and the window ago (section 6.3).
    pub(super) fn overdue_at_timeout(&self, board: &Scoreboard, detection: &Detection) -> Vec<u64> {
        let window = self.rtt + self.reo_wnd(board, detection);
        let is_overdue = |seq: &u64| {
            let sent_at = board.get(*seq).map(|sent| sent.at);
            *seq == board.una() || sent_at.is_some_and(|at| at + window <= detection.now)
        };
        board.missing().into_iter().filter(is_overdue).collect()
    }
}

/// Whether a transmission is the latest of a segment that is neither delivered nor lost.
fn is_current(board: &Scoreboard, transmission: &Transmission) -> bool {
    board.get(transmission.seq).is_some_and(|sent| {
        let is_lost = sent.is_lost && !sent.is_resent;
        !sent.is_sacked && !is_lost && sent.transmissions == transmission.number
    })
}

#[cfg(test)]
mod tests;
