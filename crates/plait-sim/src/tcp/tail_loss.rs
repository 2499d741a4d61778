//! The tail loss probe (RFC 8985 section 7).

use plait_proto::time::Duration;

use super::segment::SeqRange;

/// WCDelAckT as Linux has it: the receiver may delay the acknowledgement of a lone segment.
const LONE_SEGMENT_EXTRA: Duration = Duration::from_millis(200);
/// Timers of Linux are at least two jiffies long, here at 1000 per second.
const EXTRA: Duration = Duration::from_millis(2);
const WITHOUT_SRTT: Duration = Duration::from_secs(1);

/// The state of one probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// The end of the data sent when the probe left.
    end: u64,
    /// The probe's range if it was a retransmission.
    resent: Option<SeqRange>,
}

/// The outcome of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Not known yet.
    Open,
    /// Nothing had been lost.
    NoLoss,
    /// The probe repaired a loss, to which the controller must react.
    Repaired,
}

impl Probe {
    pub(super) fn new(end: u64, resent: Option<SeqRange>) -> Self {
        Self { end, resent }
    }

    /// Judges an acknowledgement (section 7.4.2).
    pub(super) fn judge(&self, ack: u64, dsack: Option<SeqRange>, is_plain_dup: bool) -> Verdict {
        if ack < self.end {
            return Verdict::Open;
        }
        match self.resent {
            None => Verdict::NoLoss,
            Some(resent) if dsack.is_some_and(|range| range.contains(resent)) => Verdict::NoLoss,
            Some(_) if ack > self.end => Verdict::Repaired,
            Some(_) if is_plain_dup => Verdict::NoLoss,
            Some(_) => Verdict::Open,
        }
    }
}

/// Probe timeout (section 7.2).
pub(super) fn timeout(srtt: Option<Duration>, outstanding_segments: usize) -> Duration {
    let extra = if outstanding_segments == 1 { LONE_SEGMENT_EXTRA } else { EXTRA };
    srtt.map_or(WITHOUT_SRTT, |srtt| srtt * 2 + extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_of_new_data_never_shows_a_loss() {
        let probe = Probe::new(3000, None);
        assert_eq!(probe.judge(2999, None, false), Verdict::Open);
        assert_eq!(probe.judge(3000, None, false), Verdict::NoLoss);
    }

    #[test]
    fn a_resent_probe_shows_a_loss_unless_it_was_a_duplicate() {
        let probe = Probe::new(3000, Some(SeqRange::new(2000, 1000)));
        assert_eq!(probe.judge(3000, None, false), Verdict::Open);
        assert_eq!(probe.judge(3000, Some(SeqRange::new(2000, 1000)), false), Verdict::NoLoss);
        assert_eq!(probe.judge(3000, None, true), Verdict::NoLoss);
        assert_eq!(probe.judge(4000, None, false), Verdict::Repaired);
    }

    #[test]
    fn a_lone_segment_waits_for_the_delayed_acknowledgement() {
        let srtt = Some(Duration::from_millis(20));
        assert_eq!(timeout(srtt, 5), Duration::from_millis(42));
        assert_eq!(timeout(srtt, 1), Duration::from_millis(240));
        assert_eq!(timeout(None, 5), Duration::from_secs(1));
    }
}
