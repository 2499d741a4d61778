//! What players say of themselves with each request: Common Media Client Data (CTA-5004), in the
//! address. Kept as JSON Lines beside the runs.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

/// Longest data that are read, in bytes after decoding.
const TEXT_MAX: usize = 2048;
/// Most keys of one request.
const KEYS_MAX: usize = 40;
/// The log does not grow beyond this.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// The data of an address's query; nothing when it has none, or what is none.
pub(crate) fn of_query(query: &str) -> Option<BTreeMap<String, String>> {
    let encoded = query.split('&').find_map(|pair| pair.strip_prefix("CMCD="))?;
    parse(&decoded(encoded)?)
}

/// Reads `key=value` pairs, of which a key alone is true and a value may be a text in quotes.
fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([',', '=']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if key.is_empty() || !key.chars().all(is_key) || found.len() >= KEYS_MAX {
            return None;
        }
        let (value, after) = match after.strip_prefix('=') {
            Some(after) => value(after)?,
            None => ("true".to_owned(), after),
        };
        found.insert(key.to_owned(), value);
        rest = match after.strip_prefix(',') {
            Some(after) => after,
            None if after.is_empty() => after,
            None => return None,
        };
    }
    (!found.is_empty()).then_some(found)
}

/// A value, and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return Some((value.to_owned(), after));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// Undoes percent-encoding; nothing when it is broken, too long or no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if bytes.len() >= TEXT_MAX {
            return None;
        }
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    left: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    path: &'a str,
    cmcd: &'a BTreeMap<String, String>,
}

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let left = LOG_BYTES_MAX.saturating_sub(file.metadata()?.len());
        Ok(Self { file, left })
    }

    /// Adds a line; when the log is full, does nothing.
    pub(crate) fn add(&mut self, path: &str, cmcd: &BTreeMap<String, String>) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { at: Timestamp::now(), path, cmcd })?;
        line.push(b'\n');
        let length = line.len() as u64;
        if length > self.left {
            return Ok(());
        }
        self.left -= length;
        self.file.write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_of_a_player_are_read() {
        let query = "x=1&CMCD=bl%3D21300%2Cbr%3D15879%2Ccid%3D%22a%2C%5C%22b%22%2Csu%2Cot%3Dv";
        let found = of_query(query).unwrap();
        let expected =
            [("bl", "21300"), ("br", "15879"), ("cid", "a,\"b"), ("ot", "v"), ("su", "true")];
        assert_eq!(found.len(), expected.len());
        for (key, value) in expected {
            assert_eq!(found[key], value);
        }
        for wrong in
            ["", "a=1", "CMCD=", "CMCD=%", "CMCD=%zz", "CMCD=a%3D%22", "CMCD=%FF", "CMCD=,"]
        {
            assert_eq!(of_query(wrong), None, "{wrong}");
        }
        assert_eq!(of_query(&format!("CMCD=a={}", "b".repeat(TEXT_MAX))), None);
    }

    proptest! {
        #[test]
        fn any_query_is_read_or_refused(query in "CMCD=[a-z=,%0-9\"\\\\]{0,60}|\\PC{0,60}") {
            if let Some(found) = of_query(&query) {
                prop_assert!(!found.is_empty() && found.len() <= KEYS_MAX);
            }
        }
    }
}
