//! Folders for a run's files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use plait_net::netns::ProcessIdentity;

/// Prefix of folders that a killed lab leaves; `clean` looks for it.
pub(crate) const FOLDER_PREFIX: &str = "plait-lab-";
/// File in such a folder that holds the identity of the lab that made it.
pub(crate) const OWNER_FILE: &str = ".plait-lab-owner";

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder on the lab's own `/run`: in memory, visible only to the lab, gone with it.
    pub(crate) fn in_memory(name: &str) -> Result<Self> {
        Self::make(Path::new("/run/plait-lab").join(name))
    }

    /// A folder on disk, for what is too big for memory.
    pub(crate) fn on_disk(name: &str) -> Result<Self> {
        let owner = ProcessIdentity::outside().context("the lab runs in its own namespaces")?;
        let path = std::env::temp_dir().join(format!("{FOLDER_PREFIX}{}-{name}", owner.pid));
        let scratch = Self::make(path)?;
        fs::write(scratch.path.join(OWNER_FILE), owner.to_string())?;
        Ok(scratch)
    }

    fn make(path: PathBuf) -> Result<Self> {
        let parent = path.parent().context("a scratch folder has a parent")?;
        fs::create_dir_all(parent)?;
        fs::create_dir(&path).with_context(|| {
            format!("cannot make {}; remove what is there with plait-lab clean", path.display())
        })?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // `clean` finds what stays.
        let _in_use = fs::remove_dir_all(&self.path);
    }
}
