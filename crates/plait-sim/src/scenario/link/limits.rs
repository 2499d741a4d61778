//! Limits of a direction besides its rate: rate steps, buckets, and access to the medium.

use std::sync::Arc;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;
use plait_toml::{Bounds, Node, Problem, Section, Value};

use super::super::span::millis;
use crate::link::{Access, Aggregation, Bucket, Grants, RateSteps, RateStepsError};

/// Rates of links.
pub(super) const MBIT: Bounds = Bounds::new(0.001, 100_000.0, "Mbit/s");
pub(in crate::scenario) const MBIT_OR_NONE: Bounds = Bounds::new(0.0, 100_000.0, "Mbit/s");
const GAP_MS: Bounds = Bounds::new(1.0, 1000.0, "milliseconds");
const AIR_MS: Bounds = Bounds::new(0.1, 100.0, "milliseconds");
const ACCESS_MS: Bounds = Bounds::new(0.0, 100.0, "milliseconds");
/// Below the lower bound turns would be longer than twenty gaps.
const PEAK: Bounds = Bounds::new(1.05, 1000.0, "times the rate");
const BURST_BYTES: (i64, i64) = (576, 1 << 30);

/// Rate in a turn, in times of the link's rate.
const PEAK_TIMES: f64 = 4.0;
/// The limits of 802.11n with a usual driver.
const FRAME_PACKETS: u32 = 32;
const FRAME_AIR_MS: f64 = 4.0;
/// Contention with few neighbours, preamble and block acknowledgement.
const FRAME_ACCESS_MS: (f64, f64) = (0.1, 0.3);

/// Reads `rate_steps` and `rate_repeat_s`, for a link whose first rate is `base`. `None` without
/// steps, or when a problem was noted.
pub(super) fn read_steps(section: &mut Section<'_>, base: Rate) -> Option<Arc<RateSteps>> {
    let period = section.number("rate_repeat_s", Bounds::new(0.001, 86_400.0, "seconds"));
    if !section.holds_any(&["rate_steps"]) {
        section.know(&["rate_steps"]);
        if period.is_some() {
            section.missing("rate_steps", "rate_steps = [[0, 20], [10, 5]]");
        }
        return None;
    }
    let expected = "a list of pairs [seconds since the start, Mbit/s]";
    let pairs = section.pairs("rate_steps", (Bounds::SECONDS, MBIT_OR_NONE), expected)?;
    let step = |(at, mbit): (f64, f64)| (Duration::from_secs_f64(at), mbit_rate(mbit));
    let steps = pairs.into_iter().map(step).collect();
    let steps = RateSteps::new(Instant::ZERO, base, steps, period.map(Duration::from_secs_f64));
    match steps {
        Ok(steps) => Some(Arc::new(steps)),
        Err(error) => {
            let (text, help) = match error {
                RateStepsError::OutOfOrder { .. } => {
                    ("the steps are not in order of time", "let each be later than the one before")
                }
                RateStepsError::AfterPeriod { .. } => (
                    "a step lies outside of rate_repeat_s",
                    "make the period longer than all steps",
                ),
                RateStepsError::NeverSends => {
                    ("nothing is ever sent", "let some step have a rate above 0")
                }
            };
            section.problem("rate_steps", Problem::new(text, help));
            None
        }
    }
}

/// Reads `policer` or `shaper`; `false` means none.
pub(super) fn read_bucket(
    section: &mut Section<'_>,
    key: &'static str,
    mtu: u16,
) -> Option<Bucket> {
    let mut bucket = table(section, key)?;
    for (key, example) in [("rate_mbit", "rate_mbit = 10"), ("burst_bytes", "burst_bytes = 32000")]
    {
        bucket.know(&[key]);
        if !bucket.holds_any(&[key]) {
            bucket.missing(key, example);
        }
    }
    let rate = bucket.number("rate_mbit", MBIT).map(mbit_rate);
    let burst_bytes = bucket.integer::<u64>("burst_bytes", BURST_BYTES, "bytes");
    if burst_bytes.is_some_and(|bytes| bytes < mtu.into()) {
        let text = format!("no packet of {mtu} bytes, the link's mtu, would ever pass");
        bucket.problem("burst_bytes", Problem::new(text, format!("give it {mtu} at least")));
    }
    bucket.finish();
    Some(Bucket { rate: rate?, burst_bytes: burst_bytes? })
}

/// Reads `grants` or `aggregation`; `false` means none.
pub(super) fn read_access(section: &mut Section<'_>) -> Access {
    let grants = table(section, "grants").and_then(read_grants);
    let aggregation = table(section, "aggregation").and_then(read_aggregation);
    match (grants, aggregation) {
        (Some(_), Some(_)) => {
            section.no_effect(&["aggregation"], "grants", "links without grants");
            Access::Always
        }
        (Some(grants), None) => Access::Granted(grants),
        (None, Some(aggregation)) => Access::Contended(aggregation),
        (None, None) => Access::Always,
    }
}

fn read_grants(mut section: Section<'_>) -> Option<Grants> {
    let gap = section.range("gap_ms", GAP_MS);
    if !section.holds_any(&["gap_ms"]) {
        section.missing("gap_ms", "gap_ms = [10, 100]");
    }
    let peak = section.number("peak", PEAK).unwrap_or(PEAK_TIMES);
    section.finish();
    let (low, high) = gap?;
    let peak_percent = (peak * 100.0).round() as u32;
    Some(Grants { gap_min: millis(low), gap_max: millis(high), peak_percent })
}

fn read_aggregation(mut section: Section<'_>) -> Option<Aggregation> {
    let packets_max = section.integer("packets", (1, 1024), "packets").unwrap_or(FRAME_PACKETS);
    let air_ms = section.number("air_ms", AIR_MS).unwrap_or(FRAME_AIR_MS);
    let (low, high) = section.range("access_ms", ACCESS_MS).unwrap_or(FRAME_ACCESS_MS);
    section.finish();
    let (access_min, access_max) = (millis(low), millis(high));
    Some(Aggregation { packets_max, air_max: millis(air_ms), access_min, access_max })
}

/// A table in braces; `None` when it is absent or `false`.
fn table<'a>(section: &mut Section<'a>, key: &'static str) -> Option<Section<'a>> {
    match section.get(key)? {
        Node { value: Value::Boolean(false), .. } => None,
        _ => Some(section.single(key)).filter(Section::is_present),
    }
}

/// So many Mbit/s.
pub(in crate::scenario) fn mbit_rate(mbit: f64) -> Rate {
    Rate::from_bits_per_second((mbit * 1e6).round() as u64)
}
