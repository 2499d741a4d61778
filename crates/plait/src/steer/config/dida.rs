//! `[dida]`: whether and how duplicate ACKs are held.

use plait_proto::dida::{DidaConfig, GapFilled, HoldPolicy, ReleasedUntil, SackHandling};
use plait_proto::time::Duration;
use plait_toml::tree::Value;
use plait_toml::{Bounds, Problem, Section};

/// Longest hold that makes any sense: ten times the least retransmission timeout of RFC 6298.
const HOLD_MS_MAX: f64 = 10_000.0;

/// Reads `[dida]`; `None` when it is not there.
pub(super) fn read(mut section: Section<'_>) -> Option<DidaConfig> {
    if !section.is_present() {
        return None;
    }
    let default = DidaConfig::default();
    let hold_max = section.number("hold_max_ms", Bounds::new(1.0, HOLD_MS_MAX, "milliseconds"));
    let rto_floor = section.millis("rto_floor_ms", 60_000.0);
    let idle_s = section.integer("idle_s", (1, 86_400), "seconds");
    let mut count = |key, high, unit, otherwise| {
        section.integer::<usize>(key, (1, high), unit).unwrap_or(otherwise)
    };
    let flows_max = count("flows_max", 1_000_000, "flows", default.flows_max);
    let held_bytes_max = count("held_bytes_max", 1 << 30, "bytes", default.held_bytes_max);
    let per_flow = default.held_packets_per_flow_max;
    let per_flow = count("held_packets_per_flow_max", 100_000, "packets", per_flow);
    let sack = section.choice("sack", &SackHandling::ALL.map(|one| (one.name(), one)));
    let on_gap_filled = section.choice("gap_filled", &GapFilled::ALL.map(|one| (one.name(), one)));
    let released_until =
        section.choice("released_until", &ReleasedUntil::ALL.map(|one| (one.name(), one)));
    let dida = DidaConfig {
        hold: hold(&mut section).unwrap_or_default(),
        sack: sack.unwrap_or_default(),
        on_gap_filled: on_gap_filled.unwrap_or_default(),
        released_until: released_until.unwrap_or_default(),
        hold_max: hold_max.map_or(default.hold_max, |ms| Duration::from_secs_f64(ms / 1e3)),
        flows_max,
        held_bytes_max,
        held_packets_per_flow_max: per_flow,
        idle: idle_s.map_or(default.idle, Duration::from_secs),
        rto_floor: rto_floor.unwrap_or(default.rto_floor),
    };
    section.finish();
    Some(dida)
}

/// A policy by its name, or a number of milliseconds.
fn hold(section: &mut Section<'_>) -> Option<HoldPolicy> {
    let bounds = Bounds::new(0.0, HOLD_MS_MAX, "milliseconds");
    match &section.get("hold")?.value {
        Value::Integer(_) | Value::TooLarge(_) | Value::Float(_) => {
            let millis = section.number("hold", bounds)?;
            Some(HoldPolicy::Fixed(Duration::from_secs_f64(millis / 1e3)))
        }
        _ => section.parsed("hold", |text| {
            let known = HoldPolicy::NAMED.iter().map(|policy| policy.name());
            text.parse().map_err(|_| Problem::choice(text, known))
        }),
    }
}
