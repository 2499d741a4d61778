//! `[dida]`: how duplicate ACKs are held, wherever a file has such a section.

use std::time::Duration;

use plait_proto::dida::{DidaConfig, GapFilled, HoldPolicy, ReleasedUntil, SackHandling};

use crate::form::{FineMillis, Form, Named, Time, Whole, alternatives};
use crate::option::{self, Field, Options};
use crate::{Bounds, Problem, Section, Value};

/// The longest hold that can be asked for.
const HOLD_MAX_MS: u32 = 60_000;
const MILLIS: FineMillis = FineMillis { high: HOLD_MAX_MS };

/// Reads the section; `None` when it is absent. Use what it returns only when no problem was noted.
pub fn read(mut section: Section<'_>) -> Option<DidaConfig> {
    if !section.is_present() {
        return None;
    }
    let mut config = DidaConfig::default();
    option::read(DIDA, &mut section, &mut config);
    section.finish();
    Some(config)
}

/// The options of `[dida]`.
pub const DIDA: Options<DidaConfig> = &[
    &Field::new(
        "hold",
        "how long duplicate ACKs are held: always so long, or as long as a policy says",
        Hold,
        |config: &mut DidaConfig| &mut config.hold,
    ),
    &Field::new(
        "sack",
        "which SACK blocks go on: `filter` leaves out those above a hole younger than the holding \
         time, `mask` all while a gap is held back, `pass` none (000 to the letter)",
        Named { all: &SackHandling::ALL, name: SackHandling::name },
        |config: &mut DidaConfig| &mut config.sack,
    ),
    &Field::new(
        "gap_filled",
        "what becomes of held ACKs when their gap fills; `forward` is 000 to the letter",
        Named { all: &GapFilled::ALL, name: GapFilled::name },
        |config: &mut DidaConfig| &mut config.on_gap_filled,
    ),
    &Field::new(
        "released_until",
        "after a hold that ended in vain a flow is left alone until all is acknowledged that had \
         been sent (`recovery-point`), or until the next ACK advances (`next-ack`, 000 to the \
         letter)",
        Named { all: &ReleasedUntil::ALL, name: ReleasedUntil::name },
        |config: &mut DidaConfig| &mut config.released_until,
    ),
    &Field::new("hold_max_ms", "longest hold of any policy", MILLIS, |config: &mut DidaConfig| {
        &mut config.hold_max
    }),
    &Field::new(
        "rto_floor_ms",
        "least by which the sender's timeout exceeds its round-trip time",
        MILLIS,
        |config: &mut DidaConfig| &mut config.rto_floor,
    ),
    &Field::new(
        "flows_max",
        "flows that are followed",
        Whole::new(1, 1_000_000, "flows"),
        |config: &mut DidaConfig| &mut config.flows_max,
    ),
    &Field::new(
        "held_bytes_max",
        "bytes kept, of all flows together",
        Whole::new(1, 1 << 30, "bytes"),
        |config: &mut DidaConfig| &mut config.held_bytes_max,
    ),
    &Field::new(
        "held_packets_per_flow_max",
        "duplicate ACKs held of one flow",
        Whole::new(1, 100_000, "packets"),
        |config: &mut DidaConfig| &mut config.held_packets_per_flow_max,
    ),
    &Field::new(
        "idle_s",
        "a flow without packets for so long is forgotten",
        Time::seconds(1, 86_400),
        |config: &mut DidaConfig| &mut config.idle,
    ),
];

/// A number of milliseconds, or a policy's name.
#[derive(Debug)]
struct Hold;

impl Form for Hold {
    type Value = HoldPolicy;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<HoldPolicy> {
        let found = section.get(name)?;
        let problem = match &found.value {
            Value::Text(text) => match text.parse() {
                Ok(policy) => return Some(policy),
                Err(_) => {
                    Problem::choice(text, HoldPolicy::NAMED.map(HoldPolicy::name).into_iter())
                }
            },
            Value::Integer(_) | Value::Float(_) | Value::TooLarge(_) => {
                let bounds = Bounds::new(0.0, HOLD_MAX_MS.into(), "milliseconds");
                let millis = section.number(name, bounds)?;
                return Some(HoldPolicy::Fixed(Duration::from_secs_f64(millis / 1e3)));
            }
            _ => {
                let expected = "milliseconds, or a policy's name";
                Problem::WrongType { expected, found: found.describe() }
            }
        };
        section.problem(name, problem);
        None
    }

    fn write(&self, value: &HoldPolicy) -> Option<toml::Value> {
        Some(match value {
            HoldPolicy::Fixed(time) => FineMillis::written(*time),
            policy => toml::Value::String(policy.name().to_owned()),
        })
    }

    fn told(&self) -> String {
        let names = alternatives(HoldPolicy::NAMED.map(HoldPolicy::name).into_iter());
        format!("{}, or {names}", MILLIS.told())
    }

    #[cfg(test)]
    fn any(&self, name: &str, random: &mut crate::testing::Random) -> HoldPolicy {
        let named = HoldPolicy::NAMED.get(random.up_to(9) as usize).copied();
        named.unwrap_or_else(|| HoldPolicy::Fixed(MILLIS.any(name, random)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::round_trip;
    use crate::{Place, Problems};

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, DIDA, DidaConfig::default());
        }
    }

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
