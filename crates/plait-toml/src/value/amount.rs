//! Amounts of data, such as a link's monthly allowance.

use crate::form::Form;
use crate::problem::Problem;
use crate::section::Section;
use crate::tree::Value;

/// Units, decimal as in contracts.
const UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
/// 1 MB: a bond's own control traffic in a day.
const BYTES_MIN: u64 = 1_000_000;
/// 1 PB.
const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// An amount from 1 MB to 1000 TB: a text with a unit, or a whole number of bytes.
#[derive(Debug)]
pub struct Amount;

impl Form for Amount {
    type Value = u64;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<u64> {
        let found = section.get(name)?;
        let read = match &found.value {
            Value::Text(text) => parse(text),
            Value::Integer(bytes) => in_range(u64::try_from(*bytes).ok(), &bytes.to_string()),
            _ => Err(Problem::WrongType {
                expected: "a text with a unit, or a whole number of bytes",
                found: found.describe(),
            }),
        };
        read.map_err(|problem| section.problem(name, problem)).ok()
    }

    fn write(&self, value: &u64) -> Option<toml::Value> {
        Some(toml::Value::Integer(i64::try_from(*value).expect("1000 TB is less than 2^63")))
    }

    fn told(&self) -> String {
        "amount such as `\"20 GB\"`, or bytes; 1 MB to 1000 TB".into()
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut crate::testing::Random) -> u64 {
        BYTES_MIN + random.up_to(BYTES_MAX - BYTES_MIN)
    }
}

/// Reads `20 GB` or `1.5 TB`.
///
/// # Errors
///
/// It is not an amount, or is out of range.
pub fn parse(text: &str) -> Result<u64, Problem> {
    let malformed = || {
        let units = UNITS.map(|(name, _)| name).join(", ");
        let help = format!("write it as in \"20 GB\"; units: {units}");
        Problem::new(format!("\"{text}\" is not an amount of data"), help)
    };
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(malformed)?;
    let (number, unit) = text.split_at(split);
    let number = number.trim();
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    let number: f64 = Some(number)
        .filter(|number| number.chars().all(plain))
        .and_then(|number| number.parse().ok())
        .ok_or_else(malformed)?;
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(malformed)?;
    in_range(Some((number * *size as f64).round() as u64), text)
}

fn in_range(bytes: Option<u64>, written: &str) -> Result<u64, Problem> {
    bytes.filter(|bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes)).ok_or_else(|| Problem::Range {
        value: written.to_owned(),
        expected: "an amount from 1 MB to 1000 TB".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_unit() {
        for (text, bytes) in [
            ("20 GB", 20_000_000_000),
            ("1.5TB", 1_500_000_000_000),
            (" 2 GiB ", 2 << 30),
            ("1000 kB", 1_000_000),
            ("1000000 B", 1_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "20", "GB", "20 gb", "-1 GB", "1e3 GB", "1.2.3 GB", "20 GB/month"] {
            let problem = parse(text).unwrap_err().to_string();
            assert_eq!(problem, format!("\"{text}\" is not an amount of data"));
        }
        for text in ["999 kB", "1001 TB", "99999999999999999999 TB"] {
            assert_eq!(parse(text).unwrap_err().to_string(), format!("{text} is out of range"));
        }
    }
}
