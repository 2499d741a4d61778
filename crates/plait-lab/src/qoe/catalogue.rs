//! The catalogue of clips: a folder with a file `catalogue.json` and a folder for each clip.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::QoeError;

pub(crate) const FILE: &str = "catalogue.json";

/// What can be played.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Catalogue {
    pub(crate) clips: Vec<Clip>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Clip {
    /// Also the name of its folder.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) duration_s: f64,
    pub(crate) segment_s: u32,
    pub(crate) frame_rate: u32,
    pub(crate) codec: String,
    /// Manifests, as the page asks for them.
    pub(crate) dash: String,
    pub(crate) hls: String,
    pub(crate) qualities: Vec<Quality>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Quality {
    pub(crate) name: String,
    pub(crate) bandwidth_bps: u64,
    /// Of all its segments.
    pub(crate) bytes: u64,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The size of picture whose rate this has, where the picture itself is smaller.
    pub(crate) stands_for: Option<Size>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Catalogue {
    /// Reads a folder's catalogue.
    ///
    /// # Errors
    ///
    /// It has none, or what it has is none.
    pub(crate) fn read(folder: &Path) -> Result<Self, QoeError> {
        let path = folder.join(FILE);
        let text = fs::read(&path)
            .map_err(|source| QoeError::NoCatalogue { folder: folder.to_owned(), source })?;
        serde_json::from_slice(&text).map_err(|source| QoeError::BadCatalogue { path, source })
    }

    /// Adds a clip, in the place of one of the same id.
    pub(crate) fn put(&mut self, clip: Clip) {
        self.clips.retain(|known| known.id != clip.id);
        self.clips.push(clip);
        self.clips.sort_by(|a, b| a.id.cmp(&b.id));
    }

    /// Writes it as a folder's catalogue.
    pub(crate) fn write(&self, folder: &Path) -> std::io::Result<()> {
        let part = folder.join(format!("{FILE}.part"));
        fs::write(&part, serde_json::to_vec_pretty(self)?)?;
        fs::rename(part, folder.join(FILE))
    }

    pub(crate) fn clip(&self, id: &str) -> Option<&Clip> {
        self.clips.iter().find(|clip| clip.id == id)
    }
}

/// Where clips are kept when no folder is named: the user's cache.
pub(crate) fn default_folder() -> Result<PathBuf, QoeError> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = from("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(from("HOME")?).join(".cache")));
    Ok(cache.ok_or(QoeError::NoCache)?.join("plait-lab/clips"))
}
