//! YouTube as a provider of clips: its IFrame player in the page, and its Data API for searching,
//! for which a user has a key.

use std::fs;
use std::path::Path;

use super::QoeError;

/// What the page may load besides its own when it plays YouTube.
pub(crate) const POLICY: &str = "default-src 'self'; script-src 'self' https://www.youtube.com; \
     frame-src https://www.youtube.com https://www.youtube-nocookie.com; \
     connect-src 'self' https://www.googleapis.com; media-src 'self' blob:; \
     img-src 'self' data: blob: https://i.ytimg.com; worker-src 'self' blob:; \
     object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Longest key.
const KEY_BYTES_MAX: usize = 200;

/// A key for the Data API. Not shown in logs.
#[derive(Clone)]
pub(crate) struct Key(String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Reads the key that a file holds alone.
    pub(crate) fn read(path: &Path) -> Result<Self, QoeError> {
        let wrong = |why: String| QoeError::Key { path: path.to_owned(), why };
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).ok_or_else(|| wrong("it holds something else than one key".into()))
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_good = !text.is_empty() && text.len() <= KEY_BYTES_MAX && text.chars().all(is_key);
        is_good.then(|| Self(text.to_owned()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word() {
        assert_eq!(Key::parse("abc_D-9\n").unwrap().text(), "abc_D-9");
        for wrong in ["", "a b", "a\nb", "a/b", &"a".repeat(201)] {
            assert!(Key::parse(wrong).is_none(), "{wrong}");
        }
        assert_eq!(format!("{:?}", Key::parse("secret").unwrap()), "Key(…)");
    }
}
