//! `plait-lab qoe clips`: makes clips of paper 004's length and sizes with ffmpeg. A clip is
//! encoded once per quality, padded to its rate, and cut into CMAF segments that DASH and HLS
//! share. What is made stays; a run that was cut short goes on with the quality that was not
//! finished.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::QoeError;
use super::catalogue::{Catalogue, Clip, Quality, Size};
use crate::output::{self, Meter};
use crate::process;

mod ladder;

pub(crate) use ladder::{Codec, Kind, Wanted};

use ladder::Rung;

pub(crate) const FRAME_RATE: u32 = 24;
/// Where encodings lie before they are cut.
const WORK: &str = ".work";
/// Held by whoever makes clips in the folder.
const LOCK: &str = ".lock";
const CUT_LIMIT: Duration = Duration::from_secs(600);

/// Makes a clip that is not there yet, and enters it in the folder's catalogue. Whoever else makes
/// clips in this folder is waited for.
///
/// # Errors
///
/// ffmpeg is missing or fails, or the folder cannot be written.
pub(crate) fn make(wanted: &Wanted, folder: &Path) -> Result<Clip, QoeError> {
    if let Some(clip) = made(wanted, &catalogue(folder)?, folder) {
        return Ok(clip);
    }
    let _lock = lock(folder).map_err(|source| QoeError::Folder { path: folder.into(), source })?;
    // Read only now: another one may just have written it.
    let catalogue = catalogue(folder)?;
    match made(wanted, &catalogue, folder) {
        Some(clip) => Ok(clip),
        None => make_alone(wanted, catalogue, folder),
    }
}

/// The folder's catalogue; an empty one where there is none.
fn catalogue(folder: &Path) -> Result<Catalogue, QoeError> {
    match Catalogue::read(folder) {
        Err(QoeError::NoCatalogue { .. }) => Ok(Catalogue::default()),
        result => result,
    }
}

/// The clip, if it is there.
fn made(wanted: &Wanted, catalogue: &Catalogue, folder: &Path) -> Option<Clip> {
    let id = wanted.id();
    catalogue.clip(&id).filter(|_| folder.join(&id).is_dir()).cloned()
}

/// Holds a folder of clips for one process alone until it is dropped.
fn lock(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let file = File::options().create(true).append(true).open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    output::note("clips are being made in this folder by another plait-lab: waiting for it");
    file.lock()?;
    Ok(file)
}

fn make_alone(wanted: &Wanted, mut catalogue: Catalogue, folder: &Path) -> Result<Clip, QoeError> {
    let id = wanted.id();
    let folder_error = |source| QoeError::Folder { path: folder.to_owned(), source };
    let work = folder.join(WORK).join(wanted.encoding());
    fs::create_dir_all(&work).map_err(folder_error)?;
    let rungs = wanted.rungs();
    let seconds = wanted.kind.seconds() as usize;
    let mut meter = Meter::new(format!("clip {id}"), "seconds of video", seconds * rungs.len());
    for (number, rung) in rungs.iter().enumerate() {
        let file = work.join(format!("{}.mp4", rung.name));
        if !file.is_file() {
            encode(wanted, rung, &file, |done| meter.reach(number * seconds + done))?;
        }
        meter.reach((number + 1) * seconds);
    }
    drop(meter);
    if let Err(error) = cut(wanted, &rungs, &work, folder) {
        // They may be of an earlier lab; the next try makes them anew.
        let _stays = fs::remove_dir_all(&work);
        return Err(error);
    }
    let clip = describe(wanted, &rungs, folder).map_err(folder_error)?;
    catalogue.put(clip.clone());
    catalogue.write(folder).map_err(folder_error)?;
    // Segments of another length may be wanted of the same encodings, but they are quickly made.
    let _stays = fs::remove_dir_all(&work);
    let _others = fs::remove_dir(folder.join(WORK));
    Ok(clip)
}

/// Encodes one quality; tells `done` seconds as it goes on.
fn encode(
    wanted: &Wanted,
    rung: &Rung,
    file: &Path,
    mut done: impl FnMut(usize),
) -> Result<(), QoeError> {
    let part = file.with_extension("part");
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-loglevel", "error", "-nostdin", "-nostats", "-y"]);
    command.args(["-progress", "pipe:1"]).args(wanted.source(rung)).args(wanted.encoder(rung));
    command.args(["-an", "-f", "mp4"]).arg(&part);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| QoeError::NoFfmpeg { source })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let complaints = std::thread::spawn(move || {
        stderr.and_then(|stderr| std::io::read_to_string(stderr).ok()).unwrap_or_default()
    });
    for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
        let Ok(line) = line else { break };
        if let Some(us) = line.strip_prefix("out_time_us=").and_then(|us| us.parse::<u64>().ok()) {
            let seconds = usize::try_from(us / 1_000_000).unwrap_or(usize::MAX);
            done(seconds.min(wanted.kind.seconds() as usize));
        }
    }
    let status = child.wait().map_err(|source| QoeError::NoFfmpeg { source })?;
    let said = complaints.join().unwrap_or_default();
    if !status.success() {
        return Err(QoeError::Ffmpeg { said: said.trim().to_owned() });
    }
    fs::rename(&part, file).map_err(|source| QoeError::Folder { path: file.to_owned(), source })
}

/// Cuts all qualities of a clip into segments with both manifests.
fn cut(wanted: &Wanted, rungs: &[Rung], work: &Path, folder: &Path) -> Result<(), QoeError> {
    let place = folder.join(wanted.id());
    let part = folder.join(format!("{}.part", wanted.id()));
    let failed = |source| QoeError::Folder { path: part.clone(), source };
    let _not_there = fs::remove_dir_all(&part);
    fs::create_dir_all(&part).map_err(failed)?;
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"]);
    for rung in rungs {
        command.arg("-i").arg(work.join(format!("{}.mp4", rung.name)));
    }
    for number in 0..rungs.len() {
        command.args(["-map", &number.to_string()]);
    }
    let seconds = wanted.segment_s.to_string();
    command.args(["-c", "copy", "-f", "dash", "-seg_duration", &seconds, "-hls_playlist", "1"]);
    command.args(["-use_template", "1", "-use_timeline", "1", "-dash_segment_type", "mp4"]);
    command.args(["-adaptation_sets", "id=0,streams=v"]);
    command.args(["-init_seg_name", "init-$RepresentationID$.mp4"]);
    command.args(["-media_seg_name", "seg-$RepresentationID$-$Number%05d$.m4s"]);
    command.arg(part.join("manifest.mpd"));
    process::run(&mut command, "", CUT_LIMIT)
        .map_err(|error| QoeError::Ffmpeg { said: format!("{error:#}") })?;
    let _replaced = fs::remove_dir_all(&place);
    fs::rename(&part, &place).map_err(failed)
}

/// The catalogue's entry of a clip that is there.
fn describe(wanted: &Wanted, rungs: &[Rung], folder: &Path) -> std::io::Result<Clip> {
    let id = wanted.id();
    let mut bytes = vec![0_u64; rungs.len()];
    for entry in fs::read_dir(folder.join(&id))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("seg-").and_then(|rest| rest.split('-').next());
        let number = number.and_then(|number| number.parse::<usize>().ok());
        if let Some(sum) = number.and_then(|number| bytes.get_mut(number)) {
            *sum += entry.metadata()?.len();
        }
    }
    let seconds = wanted.kind.seconds();
    let quality = |(rung, bytes): (&Rung, u64)| {
        let Size { width, height } = wanted.size(rung);
        let stands_for = (!wanted.real_size).then_some(rung.stands_for);
        let bandwidth_bps = bytes * 8 / u64::from(seconds);
        Quality {
            name: rung.name.clone().into_owned(),
            bandwidth_bps,
            bytes,
            width,
            height,
            stands_for,
        }
    };
    Ok(Clip {
        title: wanted.title(),
        duration_s: seconds.into(),
        segment_s: wanted.segment_s,
        frame_rate: FRAME_RATE,
        codec: wanted.codec.name().into(),
        dash: format!("media/{id}/manifest.mpd"),
        hls: format!("media/{id}/master.m3u8"),
        qualities: rungs.iter().zip(bytes).map(quality).collect(),
        id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted =
        Wanted { kind: Kind::Short, codec: Codec::H264, real_size: false, segment_s: 2 };

    #[test]
    fn regression_clips_are_made_by_one_process_at_a_time() {
        let name = format!("plait-qoe-clips-lock-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let held = lock(&folder).unwrap();
        let waiting = {
            let folder = folder.clone();
            std::thread::spawn(move || make(&WANTED, &folder))
        };
        std::thread::sleep(Duration::from_millis(200));
        // Who held the lock made the same clip: nothing is left to do.
        fs::create_dir_all(folder.join(WANTED.id())).unwrap();
        let clip = describe(&WANTED, &WANTED.rungs(), &folder).unwrap();
        let mut catalogue = Catalogue::default();
        catalogue.put(clip.clone());
        catalogue.write(&folder).unwrap();
        drop(held);
        assert_eq!(waiting.join().unwrap().unwrap(), clip);
        assert!(!folder.join(WORK).exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        let folder = std::env::temp_dir().join(format!("plait-qoe-clips-{}", std::process::id()));
        let place = folder.join(WANTED.id());
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("seg-0-00001.m4s"), [0; 1000]).unwrap();
        fs::write(place.join("seg-1-00001.m4s"), [0; 3000]).unwrap();
        fs::write(place.join("init-0.mp4"), [0; 50]).unwrap();
        let clip = describe(&WANTED, &WANTED.rungs(), &folder).unwrap();
        assert_eq!(clip.qualities.iter().map(|quality| quality.bytes).sum::<u64>(), 4000);
        assert_eq!(clip.qualities[1].bandwidth_bps, 3000);
        let mut catalogue = Catalogue::default();
        catalogue.put(clip.clone());
        catalogue.put(clip.clone());
        catalogue.write(&folder).unwrap();
        let read = Catalogue::read(&folder).unwrap();
        assert_eq!((read.clips.len(), read.clip(&clip.id)), (1, Some(&clip)));
        // Segments that are nothing but zeros stay as they are.
        assert_eq!(make(&WANTED, &folder).unwrap(), clip);
        fs::remove_dir_all(&folder).unwrap();
        let missing = Catalogue::read(&folder).unwrap_err().to_string();
        assert!(missing.contains("plait-lab qoe clips"), "{missing}");
    }
}
