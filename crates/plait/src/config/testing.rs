//! Pieces of configuration for other modules' tests.

use super::PathConfig;
use super::located::Located;

/// A `[[path]]` with default values.
pub(crate) fn path(name: &str, interface: Option<&str>, address: Option<&str>) -> PathConfig {
    PathConfig {
        line: 1,
        name: name.into(),
        interface: interface.map(|value| Located { line: 1, value: value.into() }),
        link: None,
        address: address
            .map(|value| Located { line: 1, value: value.parse().expect("a test has an address") }),
        price: 0,
        weight: 1,
        standby: false,
        metered: false,
        quota: None,
        down: super::Down::No,
    }
}
