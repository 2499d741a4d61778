//! Files that an address may name.

use std::io;
use std::path::{Path, PathBuf};

/// Longest path of an address that is looked at, in bytes.
const PATH_MAX: usize = 512;

/// Where an address leads in a folder: nothing for what could lead out of it or to a hidden file.
/// Only names of letters, digits, `.`, `_` and `-` are there, so nothing needs to be decoded.
pub(crate) fn below(folder: &Path, address: &str) -> Option<PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(is_plain);
    let is_good = address.len() <= PATH_MAX && address.split('/').all(is_name);
    is_good.then(|| folder.join(address))
}

/// Whether the file lies in the folder when links are followed.
///
/// # Errors
///
/// One of them does not exist, or may not be looked at.
pub(crate) fn stays(folder: &Path, file: &Path) -> io::Result<bool> {
    Ok(file.canonicalize()?.starts_with(folder.canonicalize()?))
}

/// The media type of a file, by the ending of its name.
pub(crate) fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "mpd" => "application/dash+xml",
        "m3u8" => "application/vnd.apple.mpegurl",
        "mp4" | "m4s" => "video/mp4",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_stay_below() {
        let folder = Path::new("/srv");
        let found = below(folder, "clip-2s/seg-0-00001.m4s");
        assert_eq!(found.as_deref(), Some(Path::new("/srv/clip-2s/seg-0-00001.m4s")));
        for wrong in [
            "",
            "/",
            "a/",
            "/etc/passwd",
            "..",
            "a/../b",
            "a/./b",
            ".hidden",
            "a/.git/config",
            "a//b",
            "%2e%2e/b",
            "a\\..\\b",
            "a\0b",
            "ä",
            &"a/".repeat(300),
        ] {
            assert_eq!(below(folder, wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_address_leads_out(address in "[a-z./%\\\\-]{0,30}|\\PC{0,30}") {
            if let Some(path) = below(Path::new("/srv"), &address) {
                prop_assert!(path.starts_with("/srv"));
                let is_plain =
                    |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(path.components().skip(1).all(is_plain), "{path:?}");
            }
        }
    }
}
