//! What a direction does to packets behind its transmitter: delay, loss, outages.

use plait_proto::time::Duration;
use plait_toml::{Bounds, Node, Section, Value};

use super::super::medium::ratio;
use super::super::span::{self, Span, millis};
use super::{DirectionSpec, LossSpec, RTT_MAX_MS, pick};
use crate::ratio::Ratio;

/// What happens to packets behind the transmitter.
pub(super) struct Behind {
    pub(super) delay: Duration,
    jitter: Duration,
    reorder: bool,
    loss: LossSpec,
    outages: Vec<Span>,
}

impl Behind {
    /// A direction that does this to packets.
    pub(super) fn of(self, spec: DirectionSpec) -> DirectionSpec {
        let Self { delay, jitter, reorder, loss, outages } = self;
        DirectionSpec { delay, jitter, reorder, loss, outages, ..spec }
    }
}

/// Reads loss, outages and delay of a direction. `None` without a delay.
pub(super) fn read_behind<'a>(
    own: &mut Section<'a>,
    link: &mut Section<'a>,
    rtt: Option<(f64, f64)>,
) -> Option<Behind> {
    let loss = read_loss(pick(own, link, &["loss"]));
    let reorder = pick(own, link, &["reorder"]).boolean("reorder").unwrap_or(false);
    let outages = span::read_all(pick(own, link, &["outages_s"]), "outages_s").unwrap_or_default();
    let one_way = pick(own, link, &["delay_ms"])
        .range("delay_ms", Bounds::new(0.0, RTT_MAX_MS / 2.0, "milliseconds"));
    let (low, high) = one_way.or(rtt.map(|(low, high)| (low / 2.0, high / 2.0)))?;
    Some(Behind { delay: millis(low), jitter: millis(high - low), reorder, loss, outages })
}

const SHARE: Bounds = Bounds::new(0.0, 1.0, "");

fn read_loss(section: &mut Section<'_>) -> LossSpec {
    let none = LossSpec::Bernoulli(Ratio::ZERO);
    let chain = matches!(section.get("loss"), Some(Node { value: Value::Table(_), .. }));
    if !chain {
        return section.number("loss", SHARE).map_or(none, |p| LossSpec::Bernoulli(ratio(p)));
    }
    let mut section = section.single("loss");
    for (key, example) in [("p_good_bad", "p_good_bad = 0.01"), ("p_bad_good", "p_bad_good = 0.3")]
    {
        if !section.holds_any(&[key]) {
            section.missing(key, example);
        }
    }
    let mut share = |key, default| ratio(section.number(key, SHARE).unwrap_or(default));
    let loss = LossSpec::GilbertElliott {
        good_to_bad: share("p_good_bad", 0.0),
        bad_to_good: share("p_bad_good", 1.0),
        loss_good: share("good", 0.0),
        loss_bad: share("bad", 1.0),
    };
    section.finish();
    loss
}
