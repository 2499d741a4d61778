//! Keys as text: 32 bytes in base64, as WireGuard writes them.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::error::{KeyProblem, Malformed};

/// A secret of 32 bytes; wiped when dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// Reads 32 bytes from base64; white space around them does not matter.
pub(crate) fn parse(text: &str) -> Result<Secret, Malformed> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Malformed::Empty);
    }
    let bytes = Zeroizing::new(STANDARD.decode(text).map_err(|_| Malformed::NotBase64)?);
    let mut key = Zeroizing::new([0; 32]);
    if bytes.len() != key.len() {
        return Err(Malformed::Length(bytes.len()));
    }
    key.copy_from_slice(&bytes);
    Ok(key)
}

/// Reads a key file.
pub(crate) fn read_file(path: &Path) -> Result<Secret, KeyProblem> {
    let text = fs::read_to_string(path)
        .map(Zeroizing::new)
        .map_err(|cause| KeyProblem::File { path: path.to_owned(), cause })?;
    parse(&text).map_err(|cause| KeyProblem::FileContent { path: path.to_owned(), cause })
}

/// Whether others than the owner and the group may read the file; `false` when it cannot be told.
pub(crate) fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o007 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_key_does_not_matter() {
        let text = STANDARD.encode([7; 32]);
        assert_eq!(*parse(&format!(" {text}\n")).unwrap(), [7; 32]);
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        assert_eq!(parse(" \n"), Err(Malformed::Empty));
        assert_eq!(parse("no key at all"), Err(Malformed::NotBase64));
        assert_eq!(parse("AAAA"), Err(Malformed::Length(3)));
    }
}
