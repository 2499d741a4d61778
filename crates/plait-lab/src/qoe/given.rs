//! Clips that scenarios want: each set of parameters has a folder of its own in the user's cache,
//! with a catalogue of this clip alone.

use std::path::PathBuf;

use super::catalogue::{self, Clip};
use super::clips::{self, Codec, Kind, Wanted};
use super::{QoeError, app, browser};

/// The folder beside the one of clips that people made.
const FOLDER: &str = "scenario-clips";

/// A clip that can be served.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// What its server serves.
    pub(crate) folder: PathBuf,
    pub(crate) clip: Clip,
}

/// Whether a clip can be played here at all.
///
/// # Errors
///
/// The lab has no page, or the machine has no Chromium.
pub(crate) fn check_player() -> anyhow::Result<()> {
    if !app::is_there() {
        return Err(QoeError::NotBuilt.into());
    }
    Ok(browser::check()?)
}

/// Makes a clip of these rates in kbit/s, or finds it.
///
/// # Errors
///
/// ffmpeg is missing or fails, or the cache cannot be written.
pub(crate) fn prepare(seconds: u32, segment_s: u32, kbit: &[u64]) -> Result<Prepared, QoeError> {
    let kind = Kind::Given { seconds, kbit: kbit.to_vec() };
    let wanted = Wanted { kind, codec: Codec::H264, real_size: false, segment_s };
    let folder = catalogue::default_folder()?.with_file_name(FOLDER).join(wanted.id());
    let clip = clips::make(&wanted, &folder)?;
    Ok(Prepared { folder, clip })
}
