//! Data that is sent again over another subflow because its own does not bring it through.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};

use super::subflow::Subflow;
use crate::tcp::segment::SeqRange;

/// When data is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// All that a subflow has outstanding, when its retransmission timer fires; it gets nothing
    /// new until it has recovered (multipath-tcp.org).
    AtTimeout,
    /// By a timer of the connection's: the first bytes, over a subflow that has nothing to do; and
    /// everything once a subflow was silent for five of them while another was not (upstream
    /// Linux).
    Linux,
}

/// TCP_RTO_MIN: the timer where no subflow waits for its first timeout.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// What is sent again at a time: the fragment in which the application's data is kept.
const FRAGMENT_BYTES: u64 = 32 << 10;
/// `net.mptcp.stale_loss_cnt`.
const SILENCES_MAX: u32 = 4;

/// A subflow's silence, in intervals of the timer.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    una: u64,
    count: u32,
}

#[derive(Debug)]
pub(super) struct Reinjection {
    rule: Rule,
    /// What is to be sent again, and over which subflow it was sent before, if over one alone.
    queue: VecDeque<(SeqRange, Option<usize>)>,
    /// When the connection's timer fires, with [`Rule::Linux`].
    timer: Option<Instant>,
    silences: Vec<Silence>,
}

impl Reinjection {
    pub(super) fn new(rule: Rule, subflows: usize) -> Self {
        let silences = vec![Silence::default(); subflows];
        Self { rule, queue: VecDeque::new(), timer: None, silences }
    }

    /// Whether a subflow gets nothing new while it recovers from a timeout.
    pub(super) fn spares_timed_out(&self) -> bool {
        self.rule == Rule::AtTimeout
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// A subflow's retransmission timer fired.
    pub(super) fn on_timeout(&mut self, at: usize, subflow: &mut Subflow, una: u64) {
        if self.rule == Rule::AtTimeout {
            let again = subflow.sent.reinject(una).into_iter().map(|data| (data, Some(at)));
            self.queue.extend(again);
        }
    }

    /// Sets the connection's timer, anew after data was acknowledged.
    pub(super) fn arm(&mut self, now: Instant, subflows: &[Subflow], is_idle: bool, anew: bool) {
        if self.rule == Rule::AtTimeout {
            return;
        }
        if is_idle {
            self.timer = None;
        } else if self.timer.is_none() || anew {
            self.timer = Some(now + interval(now, subflows));
        }
    }

    /// Does what is due: a subflow that brings nothing through is given up, or an idle one helps.
    /// `una` and `nxt` are the connection's.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        subflows: &mut [Subflow],
        (una, nxt): (u64, u64),
        segment_bytes: u64,
    ) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timer = Some(now + interval(now, subflows));
        self.queue.clear();
        self.count_silences(subflows);
        if self.give_up(subflows) {
            self.again(SeqRange { start: una, end: nxt }, segment_bytes);
        } else if subflows.iter().any(|subflow| is_idle(subflow) && !subflow.is_backup) {
            let end = nxt.min(una + FRAGMENT_BYTES);
            self.again(SeqRange { start: una, end }, segment_bytes);
        }
    }

    /// Subflows that get something through again are no longer given up.
    pub(super) fn revive(&mut self, subflows: &mut [Subflow]) {
        for (subflow, silence) in subflows.iter_mut().zip(&mut self.silences) {
            if subflow.is_stale && subflow.sender.una() > silence.una {
                subflow.is_stale = false;
                silence.count = 0;
            }
        }
    }

    /// Forgets what was acknowledged meanwhile.
    pub(super) fn forget_below(&mut self, una: u64) {
        self.queue.retain(|(data, _)| data.end > una);
    }

    /// The next data to be sent again, its place, and the subflow that is not to carry it. Data of
    /// the `stuck` subflows, which no other takes now, is passed over: it must not keep back what
    /// they could carry for others.
    pub(super) fn next(&self, stuck: &[Option<usize>]) -> Option<(usize, SeqRange, Option<usize>)> {
        let open = self.queue.iter().enumerate().find(|(_, (_, carrier))| !stuck.contains(carrier));
        open.map(|(at, (data, carrier))| (at, *data, *carrier))
    }

    /// What had this place is sent.
    pub(super) fn on_sent(&mut self, at: usize) {
        self.queue.remove(at);
    }

    fn again(&mut self, range: SeqRange, segment_bytes: u64) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + segment_bytes);
            self.queue.push_back((SeqRange { start, end }, None));
            start = end;
        }
    }

    fn count_silences(&mut self, subflows: &[Subflow]) {
        for (subflow, silence) in subflows.iter().zip(&mut self.silences) {
            let una = subflow.sender.una();
            if una > silence.una || subflow.sender.queued_bytes() == 0 {
                *silence = Silence { una, count: 0 };
            } else {
                silence.count += 1;
            }
        }
    }

    /// Gives up subflows that were silent for too long while another usable one was not.
    fn give_up(&mut self, subflows: &mut [Subflow]) -> bool {
        let counts: Vec<u32> = self.silences.iter().map(|silence| silence.count).collect();
        let mut any = false;
        for at in 0..subflows.len() {
            let is_silent = counts[at] > SILENCES_MAX && subflows[at].is_usable(false);
            let is_other = |(other, subflow): (usize, &Subflow)| {
                other != at && subflow.is_usable(false) && counts[other] < SILENCES_MAX
            };
            if is_silent && subflows.iter().enumerate().any(is_other) {
                subflows[at].is_stale = true;
                any = true;
            }
        }
        any
    }
}

fn is_idle(subflow: &Subflow) -> bool {
    subflow.is_usable(false) && subflow.sender.queued_bytes() == 0
}

/// The longest time until a subflow's first timeout.
fn interval(now: Instant, subflows: &[Subflow]) -> Duration {
    let usable = subflows.iter().filter(|subflow| subflow.is_usable(false));
    let left = usable.filter_map(|subflow| subflow.sender.first_timeout());
    let longest = left.map(|at| at.since(now)).max().unwrap_or_default();
    if longest.is_zero() { INTERVAL_MIN } else { longest }
}
