//! State kept across restarts, in a file: bytes counted for quotas, peers' last addresses, and
//! changes to the host that the daemon must undo.
//!
//! Problems with the file never keep a gateway from running: they are logged. But two gateways
//! cannot have one file: each would undo what the other did to the host. So who runs keeps it
//! locked; a file that replaces it is locked before it does.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use plait_net::entry::open_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::advice::{Advised, help_to_write};
use crate::control::folder_problem;
use crate::holder::Holder;

/// Version of the file's format.
const VERSION: u32 = 1;
/// A file larger than this is not ours.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Who only looks whether the file is locked has it for a moment: it is tried again.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// What is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    version: u32,
    /// Bytes by path name and month, as in `2026-11`.
    #[serde(default)]
    pub(super) used_bytes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Addresses where peers were last reached, by public key in base64.
    #[serde(default)]
    pub(super) addresses: BTreeMap<String, Vec<SocketAddr>>,
    /// Values of sysctls before the daemon set them, by file.
    #[serde(default)]
    pub(super) sysctls: BTreeMap<PathBuf, String>,
    /// The table of the packet filter that the daemon made.
    #[serde(default)]
    pub(super) nat_table: Option<String>,
    /// The mark of answers that rules of policy routing lead into the bond.
    #[serde(default)]
    pub(super) answer_mark: Option<u32>,
    /// The table of the kill switch.
    #[serde(default)]
    pub(super) block_table: Option<String>,
    /// The table of the way past a bond that is down.
    #[serde(default)]
    pub(super) bypass_table: Option<String>,
    /// Temporary routes past it.
    #[serde(default)]
    pub(super) bypass_routes: Vec<KeptRoute>,
    /// Addresses that the daemon gave to interfaces of LANs.
    #[serde(default)]
    pub(super) lan_addresses: Vec<KeptAddress>,
    /// Interfaces of LANs that it switched on.
    #[serde(default)]
    pub(super) lan_switched_on: Vec<String>,
    /// The device whose name servers the host's resolver was told, and by which way.
    #[serde(default)]
    pub(super) dns: Option<(String, String)>,
    /// The table of what goes beside the bond.
    #[serde(default)]
    pub(super) beside_table: Option<String>,
    /// What the marks and tables begin with by which it is led.
    #[serde(default)]
    pub(super) beside_marks: Option<u32>,
    /// Reverse-path filters before the daemon loosened them, by interface.
    #[serde(default)]
    pub(super) beside_filters: BTreeMap<String, String>,
}

/// An address that the daemon gave to an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct KeptAddress {
    /// The interface.
    pub(super) interface: String,
    /// The address.
    pub(super) address: IpAddr,
    /// Its prefix length.
    pub(super) length: u8,
}

/// A route that the daemon added beside those into its TUN device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct KeptRoute {
    /// The network.
    pub(super) destination: IpAddr,
    /// Its prefix length.
    pub(super) length: u8,
    /// The next hop, where there is one.
    pub(super) gateway: Option<IpAddr>,
    /// The interface.
    pub(super) interface: String,
}

impl State {
    /// Whether no LAN has anything of this daemon.
    pub(super) fn has_no_lans(&self) -> bool {
        self.lan_addresses.is_empty() && self.lan_switched_on.is_empty()
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            version: VERSION,
            used_bytes: BTreeMap::new(),
            addresses: BTreeMap::new(),
            sysctls: BTreeMap::new(),
            nat_table: None,
            answer_mark: None,
            block_table: None,
            bypass_table: None,
            beside_table: None,
            beside_marks: None,
            beside_filters: BTreeMap::new(),
            bypass_routes: Vec::new(),
            lan_addresses: Vec::new(),
            lan_switched_on: Vec::new(),
            dns: None,
        }
    }
}

/// The state and its file.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// The state as it should be in the file.
    pub(super) state: State,
    saved: Option<State>,
    /// Writing failed last time, which was logged.
    failed: bool,
    /// The file itself, locked, where there is one.
    held: Option<File>,
}

impl StateFile {
    /// Reads the file. A missing file counts as empty; one that cannot be parsed too, with a
    /// warning.
    pub(crate) fn open(path: &Path) -> Self {
        let saved = match read(path) {
            Ok(saved) => saved,
            Err(error) => {
                log::warn!("the state file {} is left aside: {error}", path.display());
                None
            }
        };
        let state = saved.clone().unwrap_or_default();
        Self { path: path.to_owned(), state, saved, failed: false, held: None }
    }

    /// Reads the file and keeps it from others for as long as this value lives.
    ///
    /// # Errors
    /// It is another running gateway's.
    pub(crate) fn claim(path: &Path) -> Result<Self, Advised> {
        let held = lock(path, File::try_lock)?;
        Ok(Self { held, ..Self::open(path) })
    }

    /// Whether [`Self::claim`] would find the file in use; nothing is changed.
    ///
    /// # Errors
    /// It is another running gateway's.
    pub(crate) fn check_unused(path: &Path) -> Result<(), Advised> {
        lock(path, File::try_lock_shared).map(drop)
    }

    /// Whether the file does not hold what it should.
    pub(super) fn is_behind(&self) -> bool {
        self.failed
    }

    /// What is wrong with the file, without writing it; `None` when it can be read and written.
    pub(crate) fn problem(path: &Path) -> Option<String> {
        match read(path) {
            Err(error) => Some(format!("cannot be read: {error}")),
            Ok(_) => folder_problem(path).map(|problem| format!("cannot be written: {problem}")),
        }
    }

    /// Writes the file if there is none yet.
    pub(crate) fn create(&mut self) {
        if self.saved.is_none() {
            self.save();
        }
    }

    /// Writes the file if anything changed. A failure is logged once, and tried again next time.
    pub(super) fn save(&mut self) {
        if self.saved.as_ref() == Some(&self.state) {
            return;
        }
        let path = self.path.display();
        match write_locked(&self.path, &self.state) {
            Ok(file) => {
                self.held = Some(file);
                self.saved = Some(self.state.clone());
                if std::mem::take(&mut self.failed) {
                    log::info!("the state file {path} is written again");
                }
            }
            Err(error) if !self.failed => {
                self.failed = true;
                let elsewhere = "set `state_file` under [gateway] to one this user may write";
                let help = help_to_write(&error).unwrap_or(elsewhere);
                log::warn!(
                    "cannot write the state file {path}: {error}; until it can, a restart forgets \
                     quotas, addresses and what is to be undone ({help})"
                );
            }
            Err(error) => log::debug!("the state file: {error}"),
        }
    }
}

/// The file at `path` once it is locked by `by`; nothing when there is none, or none that can be
/// locked.
fn lock(
    path: &Path,
    by: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<Option<File>, Advised> {
    let mut holder = None;
    for _ in 0..LOCK_TRIES {
        let Ok(file) = open_file(path) else { return Ok(None) };
        match by(&file) {
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            // It was replaced meanwhile.
            Ok(()) => continue,
            Err(TryLockError::WouldBlock) => holder = Holder::of_lock(&file),
            Err(TryLockError::Error(error)) => {
                log::debug!("{} cannot be locked: {error}", path.display());
                return Ok(None);
            }
        }
        thread::sleep(LOCK_PAUSE);
    }
    let by = holder.map(|holder| format!(": {holder}")).unwrap_or_default();
    let message = format!("the state file {} belongs to another running plait{by}", path.display());
    Err(Advised::new(message, "stop that one, or set another `state_file`"))
}

/// Whether `path` names this file.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|own| fs::symlink_metadata(path).is_ok_and(|at| same(own, at)))
}

fn read(path: &Path) -> io::Result<Option<State>> {
    let state: Option<State> = read_json(path)?;
    match state {
        Some(State { version, .. }) if version != VERSION => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("version {version} instead of {VERSION}"),
        )),
        state => Ok(state),
    }
}

/// Reads a file that [`write_json`] wrote; `None` when there is none.
///
/// # Errors
/// It cannot be read, or is not such a file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    // The folder may belong to a user with fewer rights: no link there is followed.
    let file = match open_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return wrong("not a file of plait's".into());
    }
    match serde_json::from_reader(io::BufReader::new(file)) {
        Ok(value) => Ok(Some(value)),
        Err(error) => wrong(format!("damaged: {error}")),
    }
}

/// Writes atomically: a new file replaces the old one.
///
/// # Errors
/// The file or its folder cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_locked(path, value).map(drop)
}

/// The same, and gives the file, locked since before it had its name. It is open for reading only:
/// a file open for writing keeps its file system from being mounted read-only.
fn write_locked(path: &Path, value: &impl Serialize) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
    // A crash's leftover, or a planted link, is removed instead of being written through.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    drop(file);
    let placed = written.and_then(|()| {
        let held = open_file(&new)?;
        // Not every file system has locks.
        let _ = held.try_lock();
        fs::rename(&new, path)?;
        Ok(held)
    });
    if placed.is_err() {
        // On a full disk what is there of it takes room from others.
        let _ = fs::remove_file(&new);
    }
    placed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("plait-state-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn filled() -> State {
        let mut state = State::default();
        state.used_bytes.entry("lte".into()).or_default().insert("2026-11".into(), 7);
        state.addresses.insert("key".into(), vec![([192, 0, 2, 1], 7788).into()]);
        state.sysctls.insert("/proc/sys/x".into(), "0".into());
        state.nat_table = Some("plait_plait0".into());
        let (destination, gateway) = ([0; 4].into(), Some([192, 0, 2, 1].into()));
        let interface = "lte".to_owned();
        state.bypass_routes = vec![KeptRoute { destination, length: 1, gateway, interface }];
        state
    }

    #[test]
    fn what_is_saved_is_found_again_and_nobody_else_may_read_it() {
        let folder = folder("saved");
        let path = folder.join("deep/plait0.json");
        let mut file = StateFile::open(&path);
        assert_eq!(file.state, State::default());
        file.state = filled();
        file.save();
        assert_eq!(StateFile::open(&path).state, filled());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing beside it");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_unchanged_state_is_not_written() {
        let folder = folder("unchanged");
        let path = folder.join("plait0.json");
        let mut file = StateFile::open(&path);
        file.state = filled();
        file.save();
        fs::write(&path, "somebody else's").unwrap();
        file.save();
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_or_newer_file_counts_as_none_and_is_replaced() {
        let folder = folder("damaged");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("plait0.json");
        for text in ["", "{", "[]", "{\"version\":2}", "{\"version\":1,\"used_bytes\":3}"] {
            fs::write(&path, text).unwrap();
            assert!(StateFile::problem(&path).unwrap().contains("cannot be read"), "{text}");
            let mut file = StateFile::open(&path);
            assert_eq!(file.state, State::default(), "{text}");
            file.save();
            assert!(read(&path).unwrap().is_some(), "{text}");
            assert_eq!(StateFile::problem(&path), None, "{text}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn regression_a_link_in_its_place_is_neither_read_nor_written_through() {
        let folder = folder("link");
        fs::create_dir_all(&folder).unwrap();
        let (path, victim) = (folder.join("plait0.json"), folder.join("victim"));
        let text = serde_json::to_string(&filled()).unwrap();
        fs::write(&victim, &text).unwrap();
        for name in ["plait0.json", "plait0.json.new"] {
            std::os::unix::fs::symlink(&victim, folder.join(name)).unwrap();
        }
        let mut file = StateFile::open(&path);
        assert_eq!(file.state, State::default(), "read through the link");
        file.state.nat_table = Some("plait_x".into());
        file.save();
        assert_eq!(fs::read_to_string(&victim).unwrap(), text, "written through a link");
        assert_eq!(StateFile::open(&path).state, file.state);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_survived() {
        let mut file = StateFile::open(Path::new("/proc/nowhere/plait0.json"));
        file.save();
        assert!(file.is_behind());
    }

    #[test]
    fn a_file_is_one_gateways_through_all_its_replacements() {
        let folder = folder("claimed");
        let path = folder.join("plait0.json");
        let mut file = StateFile::claim(&path).unwrap();
        for round in 0..3 {
            file.state.answer_mark = Some(round);
            file.save();
            let refused = [StateFile::claim(&path).err(), StateFile::check_unused(&path).err()];
            for error in refused.map(|error| error.unwrap().to_string()) {
                assert!(error.contains("belongs to another running plait: `"), "{error}");
            }
        }
        drop(file);
        StateFile::check_unused(&path).unwrap();
        let next = StateFile::claim(&path).unwrap();
        assert_eq!(next.state.answer_mark, Some(2));
        assert!(StateFile::claim(&path).is_err(), "locked before it is written");
        drop(next);
        fs::write(&path, "{").unwrap();
        assert!(StateFile::claim(&path).is_ok(), "damaged, but free");
        fs::remove_dir_all(folder).unwrap();
    }
}
