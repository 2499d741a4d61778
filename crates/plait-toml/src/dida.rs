//! `[dida]`: how duplicate ACKs are held, wherever a file has such a section.

use std::time::Duration;

use plait_proto::dida::{DidaConfig, GapFilled, HoldPolicy, ReleasedUntil, SackHandling};

use crate::{Bounds, Problem, Section, Value};

/// The longest hold that can be asked for.
const HOLD_MAX_MS: f64 = 60_000.0;

/// Reads the section; `None` when it is absent. What it returns is of use only when no problem was
/// noted.
pub fn read(mut section: Section<'_>) -> Option<DidaConfig> {
    if !section.is_present() {
        return None;
    }
    let mut config = DidaConfig::default();
    let handlings = SackHandling::ALL.map(|handling| (handling.name(), handling));
    let gap_filled = GapFilled::ALL.map(|handling| (handling.name(), handling));
    let released_until = ReleasedUntil::ALL.map(|until| (until.name(), until));
    config.hold = read_hold(&mut section).unwrap_or(config.hold);
    config.sack = section.choice("sack", &handlings).unwrap_or(config.sack);
    let chosen = section.choice("gap_filled", &gap_filled);
    config.on_gap_filled = chosen.unwrap_or(config.on_gap_filled);
    let chosen = section.choice("released_until", &released_until);
    config.released_until = chosen.unwrap_or(config.released_until);
    let hold_max = section.millis("hold_max_ms", HOLD_MAX_MS);
    config.hold_max = hold_max.unwrap_or(config.hold_max);
    read_bounds(&mut section, &mut config);
    section.finish();
    Some(config)
}

/// What is followed and kept at most, and for how long.
fn read_bounds(section: &mut Section<'_>, config: &mut DidaConfig) {
    let rto_floor = section.millis("rto_floor_ms", HOLD_MAX_MS);
    config.rto_floor = rto_floor.unwrap_or(config.rto_floor);
    let idle = section.integer("idle_s", (1, 86_400), "seconds").map(Duration::from_secs);
    config.idle = idle.unwrap_or(config.idle);
    let mut count = |key, high, unit, value: &mut usize| {
        *value = section.integer(key, (1, high), unit).unwrap_or(*value);
    };
    count("flows_max", 1_000_000, "flows", &mut config.flows_max);
    count("held_bytes_max", 1 << 30, "bytes", &mut config.held_bytes_max);
    let per_flow = &mut config.held_packets_per_flow_max;
    count("held_packets_per_flow_max", 100_000, "packets", per_flow);
}

/// A number of milliseconds, or a policy's name.
fn read_hold(section: &mut Section<'_>) -> Option<HoldPolicy> {
    let found = section.get("hold")?;
    match &found.value {
        Value::Text(name) => name.parse().map_or_else(
            |_| {
                let named = HoldPolicy::NAMED.map(HoldPolicy::name);
                let problem = Problem::choice(name, named.into_iter());
                section.problem("hold", problem);
                None
            },
            Some,
        ),
        Value::Integer(_) | Value::Float(_) | Value::TooLarge(_) => {
            let millis = section.number("hold", Bounds::new(0.0, HOLD_MAX_MS, "milliseconds"))?;
            Some(HoldPolicy::Fixed(Duration::from_secs_f64(millis / 1e3)))
        }
        _ => {
            let expected = "milliseconds, or a policy's name";
            section.problem("hold", Problem::WrongType { expected, found: found.describe() });
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Place, Problems};

    fn told(text: &str) -> Result<Option<DidaConfig>, String> {
        let file = Path::new("x.toml");
        let table = crate::tree::parse(file, text).unwrap();
        let problems = Problems::default();
        let mut top = Section::top(&problems, Place::Line(file.into(), 1), &table);
        let config = read(top.single("dida"));
        problems.finish(Some(config)).map_err(|errors| errors.to_string())
    }

    #[test]
    fn an_empty_section_is_the_default_and_an_absent_one_none() {
        assert_eq!(told("[dida]\n"), Ok(Some(DidaConfig::default())));
        assert_eq!(told("a = 1\n"), Ok(None));
    }

    #[test]
    fn every_option_is_read() {
        let text = "[dida]\nhold = 50\nsack = \"pass\"\ngap_filled = \"forward\"\n\
                    released_until = \"next-ack\"\nhold_max_ms = 70\nrto_floor_ms = 300\n\
                    flows_max = 10\nheld_bytes_max = 9000\nheld_packets_per_flow_max = 6\n\
                    idle_s = 5\n";
        let expected = DidaConfig {
            hold: HoldPolicy::Fixed(Duration::from_millis(50)),
            sack: SackHandling::Pass,
            on_gap_filled: GapFilled::Forward,
            released_until: ReleasedUntil::NextAck,
            hold_max: Duration::from_millis(70),
            flows_max: 10,
            held_bytes_max: 9000,
            held_packets_per_flow_max: 6,
            idle: Duration::from_secs(5),
            rto_floor: Duration::from_millis(300),
        };
        assert_eq!(told(text), Ok(Some(expected)));
        for policy in HoldPolicy::NAMED {
            let config = told(&format!("dida = {{ hold = \"{policy}\" }}\n")).unwrap().unwrap();
            assert_eq!(config.hold, policy);
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (value, expected) in [
            ("\"optimal\"", "did you mean \"optimum\"?"),
            ("-1", "from 0 to 60000 milliseconds"),
            ("[1]", "expected milliseconds, or a policy's name"),
        ] {
            let told = told(&format!("[dida]\nhold = {value}\n")).unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
    }
}
