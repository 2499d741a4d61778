//! `[draw]`: values drawn from a number, so that one file describes any number of links. The same
//! number draws the same values, on every machine, in every cell and for every seed of a run.

use plait_toml::{Bounds, Node, Place, Problem, Problems, Section, Table, Value};

use super::settings;
use crate::prng::Prng;

/// The setting with the number to draw from.
pub(super) const NUMBER: &str = "draw.number";
/// The help for a value of none of these kinds.
const KINDS: &str = "from = 5 and to = 300, or of = [\"a\", \"b\"], or quantiles from 0 to 100 per \
                     cent, as in [[0, 2], [50, 20], [100, 900]]";
const NUMBER_MAX: i64 = u32::MAX as i64;

/// One value and what it is drawn from.
struct Drawn {
    key: String,
    place: Place,
    from: Source,
}

enum Source {
    /// Pairs of a percentile and its value; logarithmic interpolation between two.
    Quantiles(Vec<[f64; 2]>),
    /// Each equally likely.
    Choice(Vec<Node>),
}

/// Puts drawn values in their places, and the number into the scenario's name.
pub(super) fn apply(root: &mut Table, problems: &Problems) {
    let Some(entry) = root.remove("draw") else { return };
    let Value::Table(table) = &entry.node.value else {
        let problem = Problem::new("it is no section", "write [draw] and [[draw.value]]");
        return problems.add(&entry.key_place, "draw", problem);
    };
    let mut section = Section::top(problems, entry.key_place.clone(), table);
    let number: u64 = section.integer("number", (1, NUMBER_MAX), "").unwrap_or(1);
    if !section.holds_any(&["value"]) {
        section.missing("value", "[[draw.value]] with key, from and to");
    }
    let values: Vec<_> = section.many("value").into_iter().filter_map(read).collect();
    section.finish();
    let Some(Value::Text(name)) = root.get_mut("name").map(|name| &mut name.node.value) else {
        return;
    };
    let mut prng = Prng::new(number ^ fnv_1a(name).rotate_left(32));
    *name = format!("{name}@{number}");
    for Drawn { key, place, from } in values {
        let value = from.draw(&mut prng, &place);
        if let Err(problem) = settings::set(root, &key, value) {
            problems.add(&place, "[[draw.value]] key", problem);
        }
    }
}

/// Makes different files with the same number draw different values.
fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn read(mut section: Section<'_>) -> Option<Drawn> {
    let key = section.required_text("key", "key = \"links.dsl.rate_mbit\"");
    let place = section.place().clone();
    let positive = Bounds::above_zero(1e9);
    let ends = [section.number("from", positive), section.number("to", positive)];
    let quantiles = section.get("quantiles");
    let choice = section.get("of");
    let from = match (ends, quantiles, choice) {
        ([Some(from), Some(to)], None, None) => {
            Some(Source::Quantiles(vec![[0.0, from], [100.0, to]]))
        }
        ([None, None], Some(quantiles), None) => pairs(quantiles).map(Source::Quantiles),
        ([None, None], None, Some(Node { value: Value::List(nodes), .. })) if !nodes.is_empty() => {
            Some(Source::Choice(nodes.clone()))
        }
        _ => None,
    };
    let rises = |quantiles: &[[f64; 2]]| {
        let rise = |pair: &[[f64; 2]]| pair[0][0] < pair[1][0] && pair[0][1] <= pair[1][1];
        let ends =
            [quantiles.first(), quantiles.last()].map(|end| end.map(|[percent, _]| *percent));
        ends == [Some(0.0), Some(100.0)] && quantiles.windows(2).all(rise)
    };
    let from = from.filter(|from| match from {
        Source::Quantiles(quantiles) => rises(quantiles),
        Source::Choice(_) => true,
    });
    if from.is_none() && section.is_right_so_far() {
        let problem = Problem::new("nothing to draw from", format!("write {KINDS}"));
        section.problem("from", problem);
    }
    section.finish();
    Some(Drawn { key: key?, place, from: from? })
}

/// Pairs of a percentage and a positive number.
fn pairs(node: &Node) -> Option<Vec<[f64; 2]>> {
    let Value::List(nodes) = &node.value else { return None };
    let number = |node: &Node| match node.value {
        Value::Integer(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    };
    let pair = |node: &Node| match &node.value {
        Value::List(pair) => match &pair[..] {
            [percent, value] => {
                Some([number(percent)?, number(value).filter(|value| *value > 0.0)?])
            }
            _ => None,
        },
        _ => None,
    };
    nodes.iter().map(pair).collect()
}

impl Source {
    fn draw(&self, prng: &mut Prng, place: &Place) -> Node {
        match self {
            Self::Quantiles(quantiles) => {
                let part = (prng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * 100.0;
                let above = quantiles.partition_point(|[percent, _]| *percent <= part);
                let [[below, low], [above, high]] = [quantiles[above - 1], quantiles[above]];
                let number = low * (high / low).powf((part - below) / (above - below));
                Node { place: place.clone(), value: rounded(number) }
            }
            Self::Choice(nodes) => {
                let last = nodes.len() as u64 - 1;
                Node { place: place.clone(), ..nodes[prng.up_to(last) as usize].clone() }
            }
        }
    }
}

/// Rounds to two digits: readable, and the same on machines whose logarithms differ in the last
/// digit.
fn rounded(number: f64) -> Value {
    let unit = 10_f64.powi(number.log10().floor() as i32 - 1);
    let digits = (number / unit).round();
    if unit >= 1.0 {
        return Value::Integer((digits * unit).round() as i64);
    }
    // A quotient of whole numbers gives exactly the decimal as written.
    Value::Float(digits / (1.0 / unit).round())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const FILE: &str = r#"
name = "a/b"
[links.dsl]
rate_mbit = 1
[draw]
number = 7
[[draw.value]]
key = "links.dsl.rate_mbit"
from = 5
to = 500
[[draw.value]]
key = "links.dsl.rtt_ms"
quantiles = [[0, 1], [50, 10], [100, 600]]
[[draw.value]]
key = "links.dsl.queue"
of = ["short", "long"]
"#;

    fn drawn(text: &str) -> (Table, String) {
        let mut root = plait_toml::tree::parse(Path::new("x.toml"), text).unwrap();
        let problems = Problems::default();
        apply(&mut root, &problems);
        let told = problems.finish(Some(())).err().map(|errors| errors.to_string());
        (root, told.unwrap_or_default())
    }

    fn written(text: &str) -> String {
        let (root, told) = drawn(text);
        assert_eq!(told, "");
        let place = Place::Setting("".into());
        toml::to_string(&Node { place, value: Value::Table(root) }.to_toml()).unwrap()
    }

    #[test]
    fn a_number_draws_the_same_each_time_and_another_others() {
        let seven = written(FILE);
        assert_eq!(seven, written(FILE));
        assert!(seven.contains("name = \"a/b@7\""), "{seven}");
        assert!(!seven.contains("draw"), "{seven}");
        let eight = written(&FILE.replace("number = 7", "number = 8"));
        assert_ne!(seven.replace("@7", ""), eight.replace("@8", ""));
        let other = written(&FILE.replace("a/b", "a/c"));
        assert_ne!(seven.replace("a/b", ""), other.replace("a/c", ""), "files draw apart");
    }

    #[test]
    fn values_lie_between_their_ends_and_reach_all_parts() {
        let (mut rates, mut far, mut long) = (Vec::new(), 0, 0);
        for number in 1..=300 {
            let text = written(&FILE.replace("number = 7", &format!("number = {number}")));
            let root: toml::Table = text.parse().unwrap();
            let link = &root["links"]["dsl"];
            let of = |key: &str| link[key].as_float().or(link[key].as_integer().map(|n| n as f64));
            rates.push(of("rate_mbit").unwrap());
            far += u32::from(of("rtt_ms").unwrap() > 10.0);
            long += u32::from(link["queue"].as_str() == Some("long"));
        }
        assert!(rates.iter().all(|rate| (5.0..=500.0).contains(rate)));
        // Half lie below the geometric mean, and below the second quantile.
        let slow = rates.iter().filter(|rate| **rate < 50.0).count();
        assert!((120..180).contains(&slow) && (120..180).contains(&far), "{slow} {far}");
        assert!((120..180).contains(&long), "{long}");
    }

    #[test]
    fn numbers_have_two_digits() {
        let text = |number| match rounded(number) {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => unreachable!("a number is drawn"),
        };
        assert_eq!(
            [0.0123, 0.999, 4.56, 12.3, 456.0].map(text),
            ["0.012", "1", "4.6", "12", "460"]
        );
    }

    #[test]
    fn what_cannot_be_drawn_is_told_with_its_line() {
        for (from, to, words) in [
            ("from = 5\nto = 500", "from = 5", "nothing to draw from"),
            ("to = 500", "to = 5\nof = [1]", "nothing to draw from"),
            ("[50, 10]", "[50, 1000]", "nothing to draw from"),
            ("[0, 1]", "[1, 1]", "nothing to draw from"),
            ("[0, 1]", "[0, -1]", "nothing to draw from"),
            ("[\"short\", \"long\"]", "[]", "nothing to draw from"),
            ("from = 5", "from = -5", "-5"),
            ("number = 7", "number = 0", "number"),
            ("links.dsl.queue", "links..queue", "is not a key"),
        ] {
            let (_, told) = drawn(&FILE.replace(from, to));
            assert!(told.contains("x.toml:") && told.contains(words), "{to}: {told}");
        }
    }
}
