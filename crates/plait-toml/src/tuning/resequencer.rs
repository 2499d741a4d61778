//! `[resequencer]`: how long packets wait for those before them.

use std::time::Duration;

use plait_proto::config::{LossDetection, Order};
use plait_proto::resequencer::{LatePolicy, ResequencerConfig, Timer};
use plait_proto::wire::dscp::Dscps;

use super::Tuning;
use crate::form::{Maybe, Time, Whole, WholeList, Words};
use crate::option::{Field, Only, Options};

/// `[resequencer]`, as it stands in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Egress {
    order: Order,
    unordered_dscp: Option<Vec<u16>>,
    is_fixed: bool,
    timeout: Duration,
    timeout_max: Duration,
    late: LatePolicy,
    loss_detection: LossDetection,
    buffer_bytes_max: u64,
}

impl From<&Tuning> for Egress {
    fn from(tuning: &Tuning) -> Self {
        const T_LTO_002: Duration = Duration::from_millis(50);
        let both = |timer| match timer {
            Timer::Fixed(timeout) => (Some(timeout), None),
            Timer::Adaptive { max, .. } => (None, Some(max)),
        };
        let (timeout, timeout_max) = both(tuning.resequencer.timer);
        let unordered: Vec<u16> = tuning.unordered.iter().collect();
        Self {
            order: tuning.order,
            unordered_dscp: (!unordered.is_empty()).then_some(unordered),
            is_fixed: timeout.is_some(),
            timeout: timeout.unwrap_or(T_LTO_002),
            timeout_max: timeout_max.or(both(Timer::ADAPTIVE).1).unwrap_or_default(),
            late: tuning.resequencer.late,
            loss_detection: tuning.loss_detection,
            buffer_bytes_max: tuning.resequencer.bytes_max,
        }
    }
}

impl Egress {
    pub(super) fn tell(self, tuning: &mut Tuning) {
        tuning.order = self.order;
        tuning.unordered = self.unordered_dscp.iter().flatten().copied().collect();
        tuning.loss_detection = self.loss_detection;
        let is_known = self.loss_detection == LossDetection::Known;
        tuning.resequencer = ResequencerConfig {
            timer: self.timer(),
            late: self.late,
            count_known_lost: is_known,
            release_known_lost: is_known,
            bytes_max: self.buffer_bytes_max,
            ..tuning.resequencer
        };
    }

    fn timer(&self) -> Timer {
        match Timer::ADAPTIVE {
            Timer::Adaptive { min, .. } if !self.is_fixed => {
                Timer::Adaptive { min: min.min(self.timeout_max), max: self.timeout_max }
            }
            _ => Timer::Fixed(self.timeout),
        }
    }
}

impl Default for Egress {
    fn default() -> Self {
        (&Tuning::default()).into()
    }
}

/// The options of `[resequencer]`.
pub const RESEQUENCER: Options<Egress> = &[
    &Field::new(
        "order",
        "what this side asks of the peer's egress: order per `flow`, for the whole `bond`, or \
         `none`",
        Words(&[("flow", Order::Flow), ("bond", Order::Bond), ("none", Order::None)]),
        |config: &mut Egress| &mut config.order,
    ),
    &Field::new(
        "unordered_dscp",
        "DSCP codepoints whose packets wait for none before them: for flows that mind delay more \
         than order",
        Maybe(WholeList { low: 0, high: Dscps::COUNT - 1 }),
        |config: &mut Egress| &mut config.unordered_dscp,
    ),
    &Field::new(
        "timer",
        "how long a packet waits for a missing one: `adaptive` follows the measured delay spread",
        Words(&[("adaptive", false), ("fixed", true)]),
        |config: &mut Egress| &mut config.is_fixed,
    ),
    &Field::new("timeout_ms", "the time", Time::millis(1, 10_000), |config: &mut Egress| {
        &mut config.timeout
    })
    .only(Only {
        decided_by: "timer",
        against: |config| (!config.is_fixed).then(|| "timer = \"adaptive\"".to_owned()),
        belongs_to: "timer = \"fixed\"",
    }),
    &Field::new(
        "timeout_max_ms",
        "the longest time; but the first repair over a far path is waited for, 2 s at most",
        Time::millis(1, 10_000),
        |config: &mut Egress| &mut config.timeout_max,
    )
    .only(Only {
        decided_by: "timer",
        against: |config| config.is_fixed.then(|| "timer = \"fixed\"".to_owned()),
        belongs_to: "timer = \"adaptive\"",
    }),
    &Field::new(
        "late",
        "what becomes of a packet that arrives after it was given up",
        Words(&[("drop", LatePolicy::Drop), ("deliver", LatePolicy::Deliver)]),
        |config: &mut Egress| &mut config.late,
    ),
    &Field::new(
        "loss_detection",
        "a loss is `known` once every live path has passed the gap; or by the `timer` alone, as \
         in 002",
        Words(&[("known", LossDetection::Known), ("timer", LossDetection::Timer)]),
        |config: &mut Egress| &mut config.loss_detection,
    ),
    &Field::new(
        "buffer_bytes_max",
        "bytes that may wait, per bond",
        Whole::new(65_536, 1 << 30, "bytes"),
        |config: &mut Egress| &mut config.buffer_bytes_max,
    ),
];
