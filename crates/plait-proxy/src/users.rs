//! Names and passwords of those who may use the proxy.

use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Names and passwords. Its debug output shows no password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Users(BTreeMap<String, String>);

/// A line of a file with users cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UsersError {
    /// A line without a colon.
    #[error("line {0}: there is no `:` between name and password")]
    NoColon(usize),
    /// An empty name or password, which SOCKS cannot carry, or one of more than 255 bytes.
    #[error("line {0}: name and password have 1 to 255 bytes")]
    Length(usize),
    /// The name stands there twice.
    #[error("line {0}: this name stands there twice")]
    Twice(usize),
    /// No line at all.
    #[error("there is no user: nobody could use the proxy")]
    Empty,
}

impl Users {
    /// Reads lines of `name:password`; those that begin with `#`, and empty ones, are left out.
    ///
    /// # Errors
    /// A line that is none, with its number.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, password) = line.split_once(':').ok_or(UsersError::NoColon(number))?;
            if ![name, password].iter().all(|part| (1..=255).contains(&part.len())) {
                return Err(UsersError::Length(number));
            }
            if users.insert(name.to_owned(), password.to_owned()).is_some() {
                return Err(UsersError::Twice(number));
            }
        }
        if users.is_empty() { Err(UsersError::Empty) } else { Ok(Self(users)) }
    }

    /// Whether there is such a user. Takes as long for a wrong password as for the right one.
    pub(crate) fn know(&self, name: &str, password: &str) -> bool {
        let expected = self.0.get(name);
        let is_equal = are_equal(expected.map_or(password, String::as_str), password);
        expected.is_some() && is_equal
    }

    /// Whether a value of `Proxy-Authorization` names one of them (RFC 7617).
    pub(crate) fn know_basic(&self, value: &str) -> bool {
        let pair = || {
            let (scheme, encoded) = value.split_once(' ')?;
            if !scheme.eq_ignore_ascii_case("basic") {
                return None;
            }
            let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
            let (name, password) = decoded.split_once(':')?;
            Some(self.know(name, password))
        };
        pair().unwrap_or(false)
    }
}

/// Compares without stopping at the first difference.
fn are_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    black_box(differences) == 0 && one.len() == other.len()
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A value of `Proxy-Authorization` for a name and password (RFC 7617).
pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_and_known() {
        let users = Users::parse("# ours\n\nann:se:cret\nbob:x\n").unwrap();
        assert!(users.know("ann", "se:cret") && users.know("bob", "x"));
        for (name, password) in [("ann", "se:cre"), ("ann", "x"), ("eve", "x"), ("bob", "xx")] {
            assert!(!users.know(name, password), "{name}");
        }
        assert!(users.know_basic(&basic("ann", "se:cret")));
        for wrong in ["Basic", "Bearer YW5uOnNlOmNyZXQ=", "Basic %%%", "Basic YW5u", ""] {
            assert!(!users.know_basic(wrong), "{wrong}");
        }
        assert!(!format!("{users:?}").contains("cret"));
    }

    #[test]
    fn wrong_lines_are_named() {
        assert_eq!(Users::parse("ann"), Err(UsersError::NoColon(1)));
        assert_eq!(Users::parse("#\nann:"), Err(UsersError::Length(2)));
        assert_eq!(Users::parse(&format!("ann:{}", "x".repeat(256))), Err(UsersError::Length(1)));
        assert_eq!(Users::parse("ann:x\nann:y"), Err(UsersError::Twice(2)));
        assert_eq!(Users::parse("# none\n"), Err(UsersError::Empty));
    }
}
