//! The folder in which a server keeps runs: one file each, never written over.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::qoe::record::{self, Entry, NoRecord, Run};

/// So many runs are kept; more would make the list slow.
const RUNS_MAX: usize = 10_000;

/// Why a run is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotKept {
    #[error(transparent)]
    NoRecord(#[from] NoRecord),
    #[error("there is a run {0} already")]
    Known(String),
    #[error("there are {RUNS_MAX} runs already; move some out of the folder")]
    Full,
    #[error("the run cannot be written: {0}")]
    Folder(#[from] io::Error),
}

/// The runs.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// The newest first.
    entries: Vec<Entry>,
}

impl Store {
    /// Opens a folder, and makes it if need be. Files in it that are no runs are left alone.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_json = path.extension().is_some_and(|ending| ending == "json");
            if is_json && let Ok(run) = Run::parse(&fs::read(&path)?) {
                entries.push(Entry::from(run));
            }
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
        entries.truncate(RUNS_MAX);
        Ok(Self { folder: folder.to_owned(), entries })
    }

    /// Keeps a run; gives its name.
    pub(crate) fn keep(&mut self, text: &[u8]) -> Result<String, NotKept> {
        let run = Run::parse(text)?;
        if self.entries.len() >= RUNS_MAX {
            return Err(NotKept::Full);
        }
        let name = run.id.clone();
        let part = self.folder.join(format!("{name}.part"));
        let path = self.path_of(&name);
        if path.exists() {
            return Err(NotKept::Known(name));
        }
        let mut file = File::create(&part)?;
        file.write_all(text)?;
        drop(file);
        fs::rename(&part, &path)?;
        let entry = Entry::from(run);
        let place = self.entries.partition_point(|known| known.at > entry.at);
        self.entries.insert(place, entry);
        Ok(name)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The text of a run; nothing when there is none of this name.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if !record::is_name(name) {
            return Ok(None);
        }
        match fs::read(self.path_of(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }
}
