//! What a link is called in a file: by the name of its interface, or by what stays when that
//! changes.

use std::fmt;

use crate::problem::Problem;
use crate::value::names;

/// Longest place on a bus, in bytes.
const BUS_BYTES_MAX: usize = 64;

/// What stays of an interface when it gets another name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Its hardware address.
    Mac([u8; 6]),
    /// Its place on PCI or USB: the end of its device's path below `/sys/devices`.
    Bus(String),
}

impl Identity {
    /// The form of one, for the guide.
    pub const TOLD: &str = "`mac:ADDRESS` or `bus:PLACE`";

    /// Reads `mac:02:00:00:00:00:01`, `bus:0000:00:1f.6` or `bus:1-1.4`.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if let Some(address) = text.strip_prefix("mac:") {
            return mac(address).map(Self::Mac).ok_or_else(|| {
                let problem = format!("\"{address}\" is not the hardware address of an interface");
                Problem::new(
                    problem,
                    "write it as in \"mac:02:00:00:00:00:01\"; `ip link` shows it",
                )
            });
        }
        if let Some(place) = text.strip_prefix("bus:") {
            let allowed = |c: char| c.is_ascii_alphanumeric() || ":.-_/".contains(c);
            let is_sound = (1..=BUS_BYTES_MAX).contains(&place.len())
                && place.chars().all(allowed)
                && place.split('/').all(|part| !["", ".", ".."].contains(&part));
            return is_sound.then(|| Self::Bus(place.to_owned())).ok_or_else(|| {
                let help = "write it as in \"bus:0000:00:1f.6\" or \"bus:1-1.4\"; `readlink -f \
                            /sys/class/net/eth0/device` ends in it";
                Problem::new(format!("\"{place}\" is no place on PCI or USB"), help)
            });
        }
        let problem = format!("\"{text}\" begins with neither mac: nor bus:");
        Err(Problem::new(problem, "write a name as `interface`, in place of `link`"))
    }

    /// A short name for status and logs, where the file gives none.
    pub fn short_name(&self) -> String {
        match self {
            Self::Mac(octets) => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
            Self::Bus(place) => place.clone(),
        }
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *octet = u8::from_str_radix(part, 16).ok().filter(|_| !part.starts_with('+'))?;
    }
    // Bit 0 of the first octet is for groups (IEEE 802): no interface has such an address.
    (parts.next().is_none() && octets != [0; 6] && octets[0] & 1 == 0).then_some(octets)
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac([a, b, c, d, e, g]) => {
                write!(f, "mac:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Self::Bus(place) => write!(f, "bus:{place}"),
        }
    }
}

/// How a file names a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkName {
    /// By the name of a path or of an interface.
    Named(String),
    /// By what stays.
    Identity(Identity),
}

impl LinkName {
    /// Reads a name, or an identity.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text.starts_with("mac:") || text.starts_with("bus:") {
            return Identity::parse(text).map(Self::Identity);
        }
        if text.is_empty() {
            return Err(Problem::new("empty", "write a link's name, as in \"eth0\""));
        }
        names::path(text).map(Self::Named)
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Identity(identity) => identity.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_and_written() {
        for text in ["mac:02:00:00:00:00:01", "bus:0000:00:1f.6", "bus:1-1.4", "bus:usb1/1-1"] {
            assert_eq!(Identity::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Identity::parse("mac:0A:00:00:00:00:01").unwrap().short_name(), "0a0000000001");
        for text in [
            "mac:",
            "mac:02:00:00:00:00",
            "mac:02:00:00:00:00:01:02",
            "mac:2:0:0:0:0:1",
            "mac:+2:00:00:00:00:01",
            "mac:00:00:00:00:00:00",
            "mac:03:00:00:00:00:01",
            "bus:",
            "bus:../x",
            "bus:a b",
            "eth0",
        ] {
            assert!(Identity::parse(text).is_err(), "{text}");
        }
        assert_eq!(LinkName::parse("eth0").unwrap().to_string(), "eth0");
        assert!(LinkName::parse("").is_err() && LinkName::parse("mac:x").is_err());
    }
}
