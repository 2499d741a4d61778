//! Where things that are loaded are kept, and the record beside each: who loaded it, when, and what
//! it is attached to.
//!
//! Each has a folder of its own below [`ROOT`]. Its link is pinned last and removed first: a folder
//! without one is what a process left that died while it loaded or unloaded, and does nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object};
use serde::Serialize;

use crate::error::Error;

/// Below this folder of the BPF file system everything is.
pub const ROOT: &str = "/sys/fs/bpf/plait";

const LINK: &str = "link";
/// In place of a link, where there are none: the map of a controller that is registered. It is
/// pinned before that, so that a loader that dies leaves a way to undo it.
pub(crate) const REGISTERED: &str = "registered";
const RECORD: &str = "record";
/// The map of every program that holds its record, and where its fields stand.
const RECORD_MAP: &str = "plait_record";
const VERSION_AT: usize = 32;
const ABOUT_AT: usize = 48;
const RECORD_BYTES: usize = 256;

/// What a folder is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In force.
    Loaded,
    /// A process died while it loaded or unloaded it: nothing is in force.
    Incomplete,
    /// What it was attached to is gone: nothing is in force.
    Detached,
}

/// Who loaded something, when, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Record {
    /// Of a controller: connections that run it now. Of a cgroup's: sockets it has chosen for.
    pub connections: u64,
    /// Of a cgroup's: sockets that the kernel would not let it choose for.
    pub refused: u64,
    /// When it was loaded, in seconds since 1970.
    pub since_unix_s: u64,
    /// By which process.
    pub pid: u32,
    /// Of which release.
    pub version: String,
    /// What it is attached to; empty for a controller.
    pub about: String,
}

impl Record {
    /// Of this process, now.
    fn new(about: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            since_unix_s: now.as_secs(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            about: about.to_owned(),
            ..Self::default()
        }
    }

    /// As the program in the kernel has it: `struct record` in `bpf/record.h`.
    fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.connections.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.refused.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.since_unix_s.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.pid.to_ne_bytes());
        put_text(&mut bytes[VERSION_AT..ABOUT_AT], &self.version);
        put_text(&mut bytes[ABOUT_AT..], &self.about);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let wide = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            connections: wide(0)?,
            refused: wide(8)?,
            since_unix_s: wide(16)?,
            pid: u32::from_ne_bytes(bytes.get(24..28)?.try_into().ok()?),
            version: text(bytes.get(VERSION_AT..ABOUT_AT)?),
            about: text(bytes.get(ABOUT_AT..RECORD_BYTES)?),
        })
    }
}

/// Writes a text that ends with a zero; what is too long is cut off.
pub(crate) fn put_text(room: &mut [u8], text: &str) {
    let length = text.len().min(room.len() - 1);
    room[..length].copy_from_slice(&text.as_bytes()[..length]);
}

/// Reads a text up to its zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A folder of something that is, or was, loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder of `name` among those of a kind.
    pub(crate) fn new(kind: &str, name: &str) -> Self {
        Self { path: Path::new(ROOT).join(kind).join(name) }
    }

    /// All folders of a kind, by name.
    pub(crate) fn all(kind: &str) -> Result<Vec<Self>, Error> {
        let within = Path::new(ROOT).join(kind);
        let mut folders = match fs::read_dir(&within) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries
                .and_then(|entries| {
                    entries
                        .map(|entry| Ok(Self { path: entry?.path() }))
                        .collect::<io::Result<Vec<_>>>()
                })
                .map_err(Error::pin("read", within))?,
        };
        folders.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(folders)
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Whether a link was pinned, the last step of loading, or what stands for it.
    pub(crate) fn is_complete(&self) -> bool {
        [LINK, REGISTERED].iter().any(|name| self.path.join(name).exists())
    }

    pub(crate) fn record(&self) -> Option<Record> {
        let map = MapHandle::from_pinned_path(self.path.join(RECORD)).ok()?;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        Record::from_bytes(&value)
    }

    /// A map that was pinned here.
    pub(crate) fn map(&self, name: &str) -> Result<MapHandle, Error> {
        let path = self.path.join(name);
        MapHandle::from_pinned_path(&path).map_err(Error::map("open", path))
    }

    pub(crate) fn link(&self) -> Result<Link, Error> {
        let path = self.path.join(LINK);
        Link::open(&path).map_err(Error::map("open", path))
    }

    /// Makes the folder, writes the record into the program's map, and pins the record and the
    /// given maps. After a failure nothing of it is left.
    pub(crate) fn fill(
        &self,
        object: &mut Object,
        about: &str,
        maps: &[(&str, &str)],
    ) -> Result<(), Error> {
        let filled = self.try_fill(object, about, maps);
        if filled.is_err() {
            // The first error is the one to tell.
            let _ = self.remove();
        }
        filled
    }

    fn try_fill(
        &self,
        object: &mut Object,
        about: &str,
        maps: &[(&str, &str)],
    ) -> Result<(), Error> {
        fs::create_dir_all(&self.path).map_err(Error::pin("make", &self.path))?;
        let record = Record::new(about).to_bytes();
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == RECORD_MAP {
                map.update(&0u32.to_ne_bytes(), &record, MapFlags::ANY)
                    .and_then(|()| map.pin(self.path.join(RECORD)))
                    .map_err(Error::map("write", self.path.join(RECORD)))?;
            } else if let Some((_, pin)) = maps.iter().find(|(of, _)| *of == name) {
                let path = self.path.join(pin);
                map.pin(&path).map_err(Error::map("pin", path))?;
            }
        }
        Ok(())
    }

    /// Pins the link: from here on what was loaded outlives this process.
    pub(crate) fn keep(&self, link: &mut Link) -> Result<(), Error> {
        let path = self.path.join(LINK);
        link.pin(&path).map_err(Error::map("pin", path))
    }

    /// Takes out of force what is in force, and removes all pins.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        if self.path.join(LINK).exists() {
            // Where the kernel cannot detach it, it goes when its pin does.
            let _ = self.link().map(|link| link.detach());
            remove_file(&self.path.join(LINK))?;
        }
        let registered = self.path.join(REGISTERED);
        if registered.exists() {
            let map = MapHandle::from_pinned_path(&registered);
            // Where it was not registered yet there is nothing to undo.
            let _ = map.and_then(|map| map.delete(&0u32.to_ne_bytes()));
        }
        let entries = fs::read_dir(&self.path).map_err(Error::pin("read", &self.path))?;
        for entry in entries {
            remove_file(&entry.map_err(Error::pin("read", &self.path))?.path())?;
        }
        fs::remove_dir(&self.path).map_err(Error::pin("remove", &self.path))?;
        // The folders above go with the last one in them.
        let above = self.path.ancestors().skip(1).take(2);
        for folder in above.filter(|folder| folder.starts_with(ROOT)) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

fn remove_file(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::pin("remove", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record { connections: 3, refused: 4, ..Record::new("/sys/fs/cgroup/van") };
        assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        assert_eq!(Record::from_bytes(&[0; 20]), None);
        let long = Record::new(&"x".repeat(1_000));
        let read = Record::from_bytes(&long.to_bytes()).expect("a record");
        assert_eq!(read.about.len(), RECORD_BYTES - ABOUT_AT - 1);
    }
}
