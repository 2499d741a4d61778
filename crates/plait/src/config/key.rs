//! Keys as text: 32 bytes in base64, as WireGuard writes them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plait_net::rights::{UserId, effective_user};
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

/// Refuses a key file that anyone but its owner, root and the daemon's `user` may read or may have
/// written. A file that cannot be inspected is reported elsewhere.
pub(crate) fn check_secrecy(path: &Path, user: Option<UserId>) -> Result<(), KeyProblem> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    check_metadata(path, [metadata.uid(), metadata.gid(), metadata.mode()], user)
}

fn check_metadata(
    path: &Path,
    [uid, gid, mode]: [u32; 3],
    user: Option<UserId>,
) -> Result<(), KeyProblem> {
    let path = path.to_owned();
    let owners = [Some(0), Some(effective_user()), user.map(|user| user.uid)];
    if !owners.contains(&Some(uid)) {
        return Err(KeyProblem::Owner { path, uid });
    }
    // The daemon's own group may read root's file: the daemon can read it, but not change it.
    let is_group_its_own = user.is_some_and(|user| user.gid == gid);
    let forbidden = if is_group_its_own { 0o037 } else { 0o077 };
    if mode & forbidden != 0 {
        return Err(KeyProblem::Mode { path, mode: mode & 0o777 });
    }
    Ok(())
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
    fn a_key_file_is_for_its_owner_root_and_the_daemons_user() {
        let (own, user) = (effective_user(), UserId { uid: 991, gid: 990 });
        let check = |owner: [u32; 3], user| check_metadata(Path::new("a.key"), owner, user);
        for sound in [[own, 0, 0o100600], [0, 0, 0o100400], [991, 5, 0o600], [0, 990, 0o640]] {
            assert!(check(sound, Some(user)).is_ok(), "{sound:?}");
        }
        for open in [[0, 0, 0o640], [0, 0, 0o604], [0, 0, 0o620], [0, 990, 0o660], [0, 990, 0o644]]
        {
            let error = check(open, Some(user)).unwrap_err();
            assert!(matches!(error, KeyProblem::Mode { .. }), "{open:?}: {error}");
        }
        let error = check([991, 990, 0o600], None).unwrap_err();
        assert!(matches!(error, KeyProblem::Owner { uid: 991, .. }), "{error}");
        assert!(check([0, 990, 0o640], None).is_err(), "without `user` the group is another's");
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        assert_eq!(parse(" \n"), Err(Malformed::Empty));
        assert_eq!(parse("no key at all"), Err(Malformed::NotBase64));
        assert_eq!(parse("AAAA"), Err(Malformed::Length(3)));
    }
}
