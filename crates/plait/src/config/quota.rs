//! A link's monthly allowance: `quota` and `quota_day`.

use plait_toml::tree::Value;
use plait_toml::{Problem, Section};

/// Bytes that a link may carry in a month.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quota {
    /// Both directions together, at the IP layer.
    pub(crate) bytes: u64,
    /// First day of the month's count, 1 to 28, so that every month has it.
    pub(crate) first_day: u8,
}

/// Units, decimal ones as contracts have them.
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
/// 1 MB, which a bond's own upkeep spends in a day.
const BYTES_MIN: u64 = 1_000_000;
/// 1 PB.
const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// Reads both options; `None` when there is no quota, or a problem was noted.
pub(super) fn read(section: &mut Section<'_>) -> Option<Quota> {
    let first_day = section.integer("quota_day", (1, 28), "");
    if !section.holds_any(&["quota"]) {
        section.know(&["quota"]);
        if first_day.is_some() {
            let help = "add `quota = \"20 GB\"`, or remove it";
            section.problem("quota_day", Problem::new("has no effect without quota", help));
        }
        return None;
    }
    let bytes = read_bytes(section)?;
    Some(Quota { bytes, first_day: first_day.unwrap_or(1) })
}

fn read_bytes(section: &mut Section<'_>) -> Option<u64> {
    let found = section.get("quota")?;
    let read = match &found.value {
        Value::Text(text) => parse(text),
        Value::Integer(bytes) => in_range(u64::try_from(*bytes).ok(), &bytes.to_string()),
        _ => Err(Problem::WrongType {
            expected: "a text with a unit, or a whole number of bytes",
            found: found.describe(),
        }),
    };
    read.map_err(|problem| section.problem("quota", problem)).ok()
}

/// Reads `20 GB` or `1.5 TB`.
pub(crate) fn parse(text: &str) -> Result<u64, Problem> {
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
