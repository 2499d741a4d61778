//! The plain file resolv.conf(5): replaced by a marked one that holds, as comments, what was there.
//!
//! So there is one atomic step each way, and whoever finds a marked file after a crash needs
//! nothing else to put the old one back.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// The file.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// A longer one is left alone.
const BYTES_MAX: u64 = 65_536;
/// Begins the first line of a marked file; the device's name ends it.
const MARK: &[u8] = b"# plait-dns ";
/// Ends what is for the resolver; a number says whether the old text ended in a new line.
const BELOW: &[u8] = b"# plait-was ";
/// Begins each line of the old text.
const OLD: &[u8] = b"#|";
const TOLD: &str = "\
# These name servers are asked through the bond. What was here is below, and is put back when the
# gateway ends; after a crash, by its next start or by `plait unblock`.
";
/// What stays in force of the old text.
const KEPT: [&str; 3] = ["search", "domain", "options"];

/// Why the file is left as it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotChanged {
    #[error("{RESOLV_CONF} belongs to the gateway of {0}")]
    Taken(String),
    #[error("{RESOLV_CONF} is longer than {BYTES_MAX} bytes")]
    TooLong,
    #[error("{RESOLV_CONF}: {0}")]
    Io(#[from] io::Error),
}

/// The device by whose gateway a text was marked.
pub(super) fn marked_by(text: &[u8]) -> Option<String> {
    let first = text.split(|byte| *byte == b'\n').next()?;
    first.strip_prefix(MARK).map(|name| String::from_utf8_lossy(name).into_owned())
}

/// A marked text in place of another.
fn marked(tun: &str, servers: &[IpAddr], old: &[u8]) -> Vec<u8> {
    let mut new = [MARK, tun.as_bytes(), b"\n", TOLD.as_bytes()].concat();
    for server in servers {
        new.extend(format!("nameserver {server}\n").bytes());
    }
    let lines = || old.strip_suffix(b"\n").unwrap_or(old).split(|byte| *byte == b'\n');
    for line in lines().filter(|line| is_kept(line)) {
        new.extend([line, b"\n"].concat());
    }
    let ends = if old.ends_with(b"\n") { b"1\n" } else { b"0\n" };
    new.extend([BELOW, ends].concat());
    if !old.is_empty() {
        lines().for_each(|line| new.extend([OLD, line, b"\n"].concat()));
    }
    new
}

fn is_kept(line: &[u8]) -> bool {
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    word.is_some_and(|word| KEPT.iter().any(|kept| kept.as_bytes() == word))
}

/// The old text of a marked one.
fn old_of(text: &[u8]) -> Option<Vec<u8>> {
    let mut lines = text.split(|byte| *byte == b'\n').skip_while(|line| !line.starts_with(BELOW));
    let ends = lines.next()? == [BELOW, b"1"].concat();
    let old: Vec<&[u8]> = lines.filter_map(|line| line.strip_prefix(OLD)).collect();
    let mut old = old.join(&b'\n');
    if ends {
        old.push(b'\n');
    }
    Some(old)
}

/// Puts a marked file in place; nothing to do when it is there already.
///
/// # Errors
/// It is another gateway's, or cannot be replaced.
pub(super) fn replace(path: &Path, tun: &str, servers: &[IpAddr]) -> Result<(), NotChanged> {
    let text = read(path)?;
    let old = match marked_by(&text) {
        Some(other) if other != tun => return Err(NotChanged::Taken(other)),
        Some(_) => old_of(&text).unwrap_or_default(),
        None => text.clone(),
    };
    let new = marked(tun, servers, &old);
    if new != text {
        write(path, &new)?;
    }
    Ok(())
}

/// Puts the old file back, if the one there is marked by this gateway; says whether it was.
///
/// # Errors
/// It cannot be read or replaced.
pub(super) fn restore(path: &Path, tun: &str) -> Result<bool, NotChanged> {
    let text = match read(path) {
        Err(NotChanged::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        result => result?,
    };
    if marked_by(&text).as_deref() != Some(tun) {
        return Ok(false);
    }
    write(path, &old_of(&text).unwrap_or_default())?;
    Ok(true)
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, NotChanged> {
    let mut text = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MAX { Err(NotChanged::TooLong) } else { Ok(text) }
}

/// Replaces the file by one with the same owner and mode.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let like = fs::metadata(path)?;
    let mut new = path.as_os_str().to_owned();
    new.push(".plait");
    let new = PathBuf::from(new);
    // A crash's leftover, or a planted link, is removed instead of being written through.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text)?;
        fchown(&file, Some(like.uid()), Some(like.gid()))?;
        file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn servers() -> Vec<IpAddr> {
        ["1.1.1.1", "2001:db8::53"].map(|text| text.parse().unwrap()).to_vec()
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("plait-dns-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    proptest! {
        /// Whatever was there comes back, byte by byte, also under marks within marks.
        #[test]
        fn the_old_text_comes_back(old: Vec<u8>, lines in "[a-z#| \n]{0,80}") {
            for old in [old, lines.into_bytes()] {
                let new = marked("plait0", &servers(), &old);
                prop_assert_eq!(marked_by(&new), Some("plait0".to_owned()));
                prop_assert_eq!(old_of(&new), Some(old));
                let twice = marked("plait1", &servers(), &new);
                prop_assert_eq!(old_of(&twice), Some(new));
            }
        }
    }

    #[test]
    fn a_marked_file_has_the_new_servers_and_the_old_domains() {
        let old = b"# mine\nnameserver 192.168.1.1\n search lan\noptions edns0";
        let new = String::from_utf8(marked("plait0", &servers(), old)).unwrap();
        let of = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        let expected =
            ["nameserver 1.1.1.1", "nameserver 2001:db8::53", " search lan", "options edns0"];
        assert_eq!(of(&new), expected);
    }

    #[test]
    fn a_file_is_replaced_and_restored_with_its_mode() {
        let folder = folder("mode");
        let path = folder.join("resolv.conf");
        fs::write(&path, "nameserver 192.168.1.1\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, "plait0", &servers()).unwrap();
        let first = fs::read(&path).unwrap();
        replace(&path, "plait0", &servers()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first, "the same again changes nothing");
        let taken = replace(&path, "plait1", &servers()).unwrap_err().to_string();
        assert_eq!(taken, "/etc/resolv.conf belongs to the gateway of plait0");
        assert!(!restore(&path, "plait1").unwrap());
        assert!(restore(&path, "plait0").unwrap() && !restore(&path, "plait0").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "nameserver 192.168.1.1\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing beside it");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_stays() {
        let folder = folder("other");
        let path = folder.join("resolv.conf");
        fs::write(&path, "nameserver 192.168.1.1\n").unwrap();
        replace(&path, "plait0", &servers()).unwrap();
        fs::write(&path, "nameserver 192.168.9.9\n").unwrap();
        assert!(!restore(&path, "plait0").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "nameserver 192.168.9.9\n");
        fs::remove_file(&path).unwrap();
        assert!(!restore(&path, "plait0").unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}
