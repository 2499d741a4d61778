//! `forward` and `nat` of `[gateway]`: what the host does with the bond's packets.

use plait_toml::tree::Value;
use plait_toml::{Problem, Section};

use super::gateway::interface_name;

/// Whether inner addresses are hidden behind the host's own, and where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Nat {
    /// Nowhere.
    #[default]
    Off,
    /// On whatever leaves by another interface than the TUN device.
    Everywhere,
    /// On what leaves by one of these interfaces; never empty.
    Interfaces(Vec<String>),
}

/// Reads `nat`.
pub(super) fn read(section: &mut Section<'_>) -> Nat {
    let Some(found) = section.get("nat") else { return Nat::Off };
    match &found.value {
        Value::Boolean(true) => Nat::Everywhere,
        Value::Boolean(false) => Nat::Off,
        Value::List(items) if items.is_empty() => {
            let help = "name an interface, as in `nat = [\"eth0\"]`, or write `nat = false`";
            section.problem("nat", Problem::new("an empty list", help));
            Nat::Off
        }
        Value::Text(_) | Value::List(_) => {
            let names = section.parsed_texts("nat", interface_name);
            Nat::Interfaces(names.into_iter().map(|(name, _)| name).collect())
        }
        _ => {
            let expected = "true, false or a list of interfaces";
            section.problem("nat", Problem::WrongType { expected, found: found.describe() });
            Nat::Off
        }
    }
}
