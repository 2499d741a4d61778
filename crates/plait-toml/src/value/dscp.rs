//! DSCP codepoints, by number or by name.

use crate::form::Form;
use crate::problem::Problem;
use crate::section::Section;
use crate::tree::{Node, Value};

#[cfg(test)]
use crate::testing::Random;

/// The names of RFC 2474, 2597, 3246, 5865 and 8622.
const NAMES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];
const DSCP_MAX: i64 = 63;

/// A codepoint, or a list of them.
#[derive(Debug)]
pub struct DscpList;

fn codepoint(node: &Node) -> Result<u8, Problem> {
    let help = "write a number from 0 to 63, or a name as in \"ef\", \"af41\" or \"cs5\"";
    let wrong = || Problem::new(format!("{} is no DSCP codepoint", node.describe()), help);
    match &node.value {
        Value::Integer(number @ 0..=DSCP_MAX) => u8::try_from(*number).map_err(|_| wrong()),
        Value::Text(text) => {
            let lower = text.to_ascii_lowercase();
            let known = NAMES.iter().find(|(name, _)| *name == lower);
            known.map(|(_, value)| *value).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

impl Form for DscpList {
    type Value = Vec<u8>;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Vec<u8>> {
        let node = section.get(name)?;
        let nodes = match &node.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut read = Vec::new();
        for node in nodes {
            match codepoint(node) {
                Ok(value) => read.push(value),
                Err(problem) => section.problem(name, problem),
            }
        }
        (read.len() == nodes.len()).then_some(read)
    }

    fn write(&self, value: &Vec<u8>) -> Option<toml::Value> {
        let written = value.iter().map(|number| toml::Value::Integer((*number).into()));
        (!value.is_empty()).then(|| toml::Value::Array(written.collect()))
    }

    fn told(&self) -> String {
        "list of names and numbers from 0 to 63".into()
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> Vec<u8> {
        (0..random.up_to(3)).map(|_| random.up_to(63) as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, Problems};

    fn read(text: &str) -> Result<Vec<u8>, String> {
        let file = std::path::Path::new("x.toml");
        let table = crate::tree::parse(file, text).unwrap();
        let problems = Problems::default();
        let mut top = Section::top(&problems, Place::File(file.into()), &table);
        let read = DscpList.read(&mut top, "dscp");
        problems.finish(Some(read.unwrap_or_default())).map_err(|errors| errors.to_string())
    }

    #[test]
    fn codepoints_have_names_and_numbers() {
        assert_eq!(read("dscp = [\"ef\", 46, \"AF41\", \"cs0\"]").unwrap(), [46, 46, 34, 0]);
        assert_eq!(read("dscp = \"le\"").unwrap(), [1]);
        for text in ["dscp = 64", "dscp = [-1]", "dscp = \"af44\"", "dscp = [true]"] {
            assert!(read(text).unwrap_err().contains("is no DSCP codepoint"), "{text}");
        }
    }
}
