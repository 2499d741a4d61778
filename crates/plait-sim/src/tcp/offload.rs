//! Whether new data waits for more of the window, so that a larger burst leaves at once: Linux
//! hands its device many segments in one piece and waits for room for one of full size
//! (`tcp_tso_should_defer`).

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// Waits only so soon after the last segment, and only for acknowledgements as soon as that.
const SOON: Duration = Duration::from_millis(1);
/// Waits only below this part of the window (Linux: `tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;
/// The largest piece (Linux: GSO_MAX_SIZE).
const PIECE_BYTES_MAX: u64 = 65_536;
/// No piece need be larger to leave (Linux: `tcp_min_tso_segs`).
const PIECE_SEGMENTS_MIN: u64 = 2;
/// A piece takes so much of a second at the pacing rate (Linux: `sk_pacing_shift`).
const PIECE_PART: u64 = 1024;

/// How a sender stands that has new data and may send some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub now: Instant,
    pub segment_bytes: u64,
    /// What the windows allow, and what there is to send.
    pub limit_bytes: u64,
    pub unsent_bytes: u64,
    /// The smaller of both windows.
    pub window_bytes: u64,
    /// When the first segment that is outstanding was sent.
    pub first_sent: Option<Instant>,
    pub srtt: Duration,
    pub min_rtt: Duration,
    pub pacing_rate: Rate,
}

/// The pieces that a sender hands over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pieces {
    last_sent: Option<Instant>,
    /// What is left of the piece that leaves now.
    piece: Option<(Instant, u64)>,
}

impl Pieces {
    /// A segment left.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.last_sent = Some(now);
        self.piece = match self.piece {
            Some((at, left)) if at == now && left > bytes => Some((at, left - bytes)),
            _ => None,
        };
    }

    /// Whether the next segment may leave; if so, with others up to a piece.
    pub(super) fn may_leave(&mut self, moment: &Moment) -> bool {
        if self.piece.is_some_and(|(at, _)| at == moment.now) {
            return true;
        }
        if self.waits(moment) {
            return false;
        }
        let whole = moment.limit_bytes / moment.segment_bytes * moment.segment_bytes;
        let most = piece_bytes(moment).min(whole);
        self.piece = (most > 0).then_some((moment.now, most));
        true
    }

    fn waits(&self, moment: &Moment) -> bool {
        let limit = moment.limit_bytes;
        let is_recent = self.last_sent.is_some_and(|at| moment.now.since(at) <= SOON);
        let is_small = limit < piece_bytes(moment)
            && limit < moment.unsent_bytes
            && limit < moment.window_bytes / WINDOW_DIVISOR;
        let Some(first_sent) = moment.first_sent else { return false };
        let expected = first_sent + moment.srtt;
        let is_soon = expected <= moment.now + (moment.srtt / 2).min(SOON);
        is_recent && is_small && is_soon
    }
}

/// What a piece holds that is of full size (Linux: `tcp_tso_autosize`).
fn piece_bytes(moment: &Moment) -> u64 {
    let paced = moment.pacing_rate.bytes_in(Duration::from_secs(1)) / PIECE_PART;
    let near = moment.min_rtt.as_micros() >> 9;
    let near = if near < 32 { PIECE_BYTES_MAX >> near } else { 0 };
    let bytes = (paced + near).min(PIECE_BYTES_MAX);
    (bytes / moment.segment_bytes).max(PIECE_SEGMENTS_MIN) * moment.segment_bytes
}
