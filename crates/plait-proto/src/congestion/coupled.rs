//! What the coupled controllers see of a connection: its flows with their windows and round-trip
//! times.

use super::{AckSample, Sibling};

/// A flow, whose round-trip time is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Flow {
    /// In bytes.
    pub(super) window: f64,
    /// In seconds, above zero.
    pub(super) rtt: f64,
    /// Bytes between losses, as [`Sibling::loss_gap_bytes`].
    pub(super) loss_gap: f64,
}

impl Flow {
    fn new(of: &Sibling) -> Option<Self> {
        let rtt = of.srtt?.as_secs_f64();
        let (window, loss_gap) = (of.window_bytes as f64, of.loss_gap_bytes as f64);
        (rtt > 0.0).then_some(Self { window, rtt, loss_gap })
    }

    /// The flow's rate, in bytes per second.
    pub(super) fn rate(self) -> f64 {
        self.window / self.rtt
    }
}

/// A connection of several flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flows<'a> {
    own: Flow,
    siblings: &'a [Sibling],
}

impl<'a> Flows<'a> {
    /// The flow of `sample` and its siblings, as far as their round-trip times are known; `None`
    /// when it is the only one: it then behaves as NewReno.
    pub(super) fn of(
        sample: &AckSample<'a>,
        window_bytes: u64,
        loss_gap_bytes: u64,
    ) -> Option<Self> {
        let own = Flow::new(&Sibling {
            window_bytes,
            in_flight_bytes: sample.in_flight_bytes,
            srtt: sample.srtt,
            delivery_rate: sample.delivery_rate,
            loss_gap_bytes,
        })?;
        let siblings = sample.siblings;
        siblings.iter().find_map(Flow::new).map(|_| Self { own, siblings })
    }

    /// The flow that got the acknowledgement.
    pub(super) const fn own(&self) -> Flow {
        self.own
    }

    /// All flows, the own one first.
    pub(super) fn all(&self) -> impl Iterator<Item = Flow> + Clone + 'a {
        core::iter::once(self.own).chain(self.siblings.iter().filter_map(Flow::new))
    }

    /// The sum of all flows' rates, in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.all().map(Flow::rate).sum()
    }
}
