//! Files that another user may have put in place: inspected and then changed without ever following
//! a link.
//!
//! A process running as root must not act on names in another user's folder: between check and use
//! a name may come to mean another file. An [`Entry`] holds the file itself.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
};
use std::path::{Path, PathBuf};

use crate::rights::UserId;
use crate::sys;

/// Opens a file to append to, which only its owner may read: a new one, or this process's own. A
/// link at `path` is not followed.
///
/// # Errors
/// The kernel's; `PermissionDenied` when it is another user's, or no file.
pub fn append_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == crate::rights::effective_user();
    if !metadata.is_file() || !is_own || metadata.nlink() > 1 {
        let why = "it is no file, another user's, or has a second name";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// A file, folder, socket or link itself, whatever becomes of its name.
#[derive(Debug)]
pub struct Entry {
    /// A handle that allows no reading or writing (O_PATH, open(2)).
    handle: File,
    metadata: Metadata,
}

/// Why an entry was not given to a user.
#[derive(Debug, thiserror::Error)]
pub enum NotGiven {
    /// A link, a device or a pipe: plait makes none.
    #[error("it is no file, folder or socket")]
    Kind,
    /// It has a second name, perhaps in a folder of somebody else.
    #[error("it has {0} names (hard links)")]
    Names(u64),
    /// It is neither this process's own nor the user's already.
    #[error("it belongs to user {0}")]
    Owner(u32),
    /// The kernel refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Entry {
    /// What stands at `path` now; a link there is not followed.
    ///
    /// # Errors
    /// The kernel's; `NotFound` when nothing stands there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let handle = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = handle.metadata()?;
        Ok(Self { handle, metadata })
    }

    /// Whether it is a Unix socket.
    pub fn is_socket(&self) -> bool {
        self.metadata.file_type().is_socket()
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.metadata.is_dir()
    }

    /// The user that it belongs to.
    pub fn uid(&self) -> u32 {
        self.metadata.uid()
    }

    /// Whether `path` still names this entry.
    pub fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|there| {
            (there.dev(), there.ino()) == (self.metadata.dev(), self.metadata.ino())
        })
    }

    /// The kernel's link to the entry itself, for calls that take a path.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.handle.as_raw_fd()).into()
    }

    /// Sets the permission bits.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        fs::set_permissions(self.path(), Permissions::from_mode(mode))
    }

    /// Gives it to a user, if it is this process's own and nobody else's.
    ///
    /// # Errors
    /// Why it was not given.
    pub fn give_to(&self, user: UserId) -> Result<(), NotGiven> {
        if self.uid() == user.uid {
            return Ok(());
        }
        if self.uid() != sys::process::effective_uid() {
            return Err(NotGiven::Owner(self.uid()));
        }
        let kind = self.metadata.file_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_socket()) {
            return Err(NotGiven::Kind);
        }
        if !kind.is_dir() && self.metadata.nlink() != 1 {
            return Err(NotGiven::Names(self.metadata.nlink()));
        }
        Ok(chown(self.path(), Some(user.uid), Some(user.gid))?)
    }
}

/// Opens a regular file for reading; a link in its place is not followed, and a pipe does not make
/// the caller wait.
///
/// # Errors
/// The kernel's; `InvalidData` when it is not a regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    const USER: UserId = UserId { uid: 4711, gid: 4711 };

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("plait-entry-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn with(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn owner(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().uid()
    }

    /// As root in a folder that an unprivileged user owns, `chown` of a name followed links to any
    /// file.
    #[test]
    fn regression_what_a_link_points_to_is_not_given_away() {
        let folder = Folder::new("links");
        let victim = folder.with("victim");
        fs::write(&victim, "root's").unwrap();
        let own = owner(&victim);
        symlink(&victim, folder.with("soft")).unwrap();
        fs::hard_link(&victim, folder.with("hard")).unwrap();
        let soft = Entry::open(&folder.with("soft")).unwrap();
        assert!(matches!(soft.give_to(USER), Err(NotGiven::Kind)));
        let hard = Entry::open(&folder.with("hard")).unwrap();
        assert!(matches!(hard.give_to(USER), Err(NotGiven::Names(2))));
        assert_eq!(owner(&victim), own);
    }

    #[test]
    fn an_entry_is_what_was_looked_at_whatever_its_name_means_later() {
        let folder = Folder::new("swapped");
        let (name, victim) = (folder.with("state"), folder.with("victim"));
        fs::write(&name, "").unwrap();
        fs::write(&victim, "").unwrap();
        let entry = Entry::open(&name).unwrap();
        assert!(entry.is_at(&name));
        fs::remove_file(&name).unwrap();
        symlink(&victim, &name).unwrap();
        assert!(!entry.is_at(&name));
        let before = (owner(&victim), fs::metadata(&victim).unwrap().mode());
        let _ = entry.set_mode(0o7777);
        let _ = entry.give_to(USER);
        assert_eq!((owner(&victim), fs::metadata(&victim).unwrap().mode()), before);
    }

    #[test]
    fn files_sockets_and_folders_of_ones_own_are_given() {
        let folder = Folder::new("own");
        let (file, socket) = (folder.with("file"), folder.with("socket"));
        fs::write(&file, "").unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(Entry::open(&socket).unwrap().is_socket());
        Entry::open(&socket).unwrap().set_mode(0o600).unwrap();
        assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
        if sys::process::effective_uid() != 0 {
            return;
        }
        for path in [&file, &socket, &folder.0] {
            Entry::open(path).unwrap().give_to(USER).unwrap();
            assert_eq!(owner(path), USER.uid);
            Entry::open(path).unwrap().give_to(USER).expect("it is the user's already");
            let other = UserId { uid: 4712, gid: 4712 };
            let refused = Entry::open(path).unwrap().give_to(other);
            assert!(matches!(refused, Err(NotGiven::Owner(4711))), "{refused:?}");
        }
    }

    #[test]
    fn reading_follows_no_link_and_waits_for_no_pipe() {
        let folder = Folder::new("reading");
        let (file, link) = (folder.with("file"), folder.with("link"));
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert!(open_file(&file).is_ok());
        assert!(open_file(&link).is_err());
        let made = std::process::Command::new("mkfifo").arg(folder.with("pipe")).status().unwrap();
        assert!(made.success());
        assert!(open_file(&folder.with("pipe")).is_err());
    }

    #[test]
    fn what_is_private_is_appended_to_and_no_link_is_followed() {
        let folder = Folder::new("private");
        let (file, link) = (folder.with("file"), folder.with("link"));
        fs::write(&file, "first ").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        symlink(&file, &link).unwrap();
        assert!(append_private(&link).is_err());
        std::io::Write::write_all(&mut append_private(&file).unwrap(), b"second").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "first second");
        append_private(&folder.with("new")).unwrap();
        for file in [&file, &folder.with("new")] {
            assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
        }
        fs::hard_link(&file, folder.with("other")).unwrap();
        assert!(append_private(&file).is_err());
        assert!(append_private(&folder.0).is_err());
    }
}
