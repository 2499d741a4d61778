//! Where inner addresses are translated.

use super::names::interface;
use crate::form::Form;
use crate::problem::Problem;
use crate::section::Section;
use crate::tree::Value;

/// Whether inner addresses are translated to the host's own (NAT), and where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Nat {
    /// Nowhere.
    #[default]
    Off,
    /// On packets that leave by any interface but the TUN device.
    Everywhere,
    /// On packets that leave by one of these interfaces; never empty.
    Interfaces(Vec<String>),
}

/// `true`, `false`, or the names of interfaces.
#[derive(Debug)]
pub struct NatForm;

impl Form for NatForm {
    type Value = Nat;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Nat> {
        let found = section.get(name)?;
        let problem = match &found.value {
            Value::Boolean(true) => return Some(Nat::Everywhere),
            Value::Boolean(false) => return Some(Nat::Off),
            Value::List(items) if items.is_empty() => {
                let help = "name an interface, as in `nat = [\"eth0\"]`, or write `nat = false`";
                Problem::new("an empty list", help)
            }
            Value::Text(_) | Value::List(_) => {
                let names = section.parsed_texts(name, interface);
                return Some(Nat::Interfaces(names.into_iter().map(|(name, _)| name).collect()));
            }
            _ => {
                let expected = "true, false or a list of interfaces";
                Problem::WrongType { expected, found: found.describe() }
            }
        };
        section.problem(name, problem);
        None
    }

    fn write(&self, value: &Nat) -> Option<toml::Value> {
        Some(match value {
            Nat::Off => toml::Value::Boolean(false),
            Nat::Everywhere => toml::Value::Boolean(true),
            Nat::Interfaces(names) => toml::Value::from(names.clone()),
        })
    }

    fn told(&self) -> String {
        "true, false or a list of interfaces".into()
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut crate::testing::Random) -> Nat {
        let some = Nat::Interfaces(vec!["eth0".into(), "ppp0".into()]);
        [Nat::Off, Nat::Everywhere, some][random.up_to(2) as usize].clone()
    }
}
