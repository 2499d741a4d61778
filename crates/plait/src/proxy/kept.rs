//! What is to be undone, in a file: written before the host is changed, so that a later start finds
//! what a crash left.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::daemon::{read_json, write_json};

/// Version of the file's format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Contents<T> {
    version: u32,
    undo: T,
}

/// A value and its file. Problems with the file never keep anything from running: they are logged.
#[derive(Debug)]
pub(super) struct Kept<T> {
    path: PathBuf,
    pub(super) value: T,
    saved: T,
}

impl<T: Clone + Default + PartialEq + Serialize + DeserializeOwned> Kept<T> {
    /// Reads the file. A missing one counts as empty; so does one that is not plait's, with a
    /// warning.
    pub(super) fn open(path: &Path) -> Self {
        let value = match read_json(path) {
            Ok(Some(Contents { version: VERSION, undo })) => undo,
            Ok(None) => T::default(),
            Ok(Some(Contents { version, .. })) => {
                let path = path.display();
                log::warn!("{path} is left aside: version {version} instead of {VERSION}");
                T::default()
            }
            Err(error) => {
                log::warn!("the state file {} is left aside: {error}", path.display());
                T::default()
            }
        };
        Self { path: path.to_owned(), saved: value.clone(), value }
    }

    /// Writes the file if anything changed.
    pub(super) fn save(&mut self) {
        if self.saved == self.value {
            return;
        }
        let contents = Contents { version: VERSION, undo: self.value.clone() };
        match write_json(&self.path, &contents) {
            Ok(()) => self.saved = self.value.clone(),
            Err(error) => log::warn!(
                "cannot write the state file {}: {error}; what is set now is not undone after a \
                 crash",
                self.path.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_ours_counts_as_empty() {
        let name = format!("plait-kept-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut kept: Kept<Vec<u8>> = Kept::open(&path);
        kept.value = vec![3];
        kept.save();
        assert_eq!(Kept::<Vec<u8>>::open(&path).value, [3]);
        for text in ["", "[]", "{\"version\":2,\"undo\":[3]}", "{\"version\":1,\"undo\":\"x\"}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Kept::<Vec<u8>>::open(&path).value, [0; 0], "{text}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
