//! What setting an end up does to the machine: shown, done, and undone.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use plait_net::rights::UserId;
use plait_toml::common;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::end::End;
use crate::advice::Advised;

/// The folder that says that systemd runs the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// Where an end's files are, and under which name.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
}

impl Place {
    /// The configuration file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.toml", self.name))
    }

    fn key(&self) -> PathBuf {
        self.folder.join(format!("{}.key", self.name))
    }

    /// What was done, for [`undo`].
    fn record(&self) -> PathBuf {
        self.folder.join(format!("{}.setup.json", self.name))
    }

    fn service(&self) -> String {
        format!("plait@{}.service", self.name)
    }

    /// # Errors
    /// It cannot be a device's name, or there is such an end already.
    pub(crate) fn check(&self) -> Result<(), Advised> {
        let byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if self.name.is_empty() || self.name.len() > 15 || !self.name.bytes().all(byte) {
            let message = format!("\"{}\" cannot be a gateway's name", self.name);
            let help = "its TUN device is called so: 1 to 15 letters, digits, - and _";
            return Err(Advised::new(message, help));
        }
        let taken = [self.file(), self.key()].into_iter().find(|path| path.exists());
        taken.map_or(Ok(()), |path| {
            let (path, name) = (path.display(), &self.name);
            let help = format!("choose another --name, or undo that one: plait setup undo {name}");
            Err(Advised::new(format!("{path} is there already"), help))
        })
    }
}

/// One step.
#[derive(Debug)]
enum Step {
    Folder { path: PathBuf, group: Option<u32> },
    File { path: PathBuf, group: Option<u32>, is_secret: bool, text: Zeroizing<String> },
    Run(Vec<String>),
}

/// What was done to the machine.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    files: Vec<PathBuf>,
    folder: Option<PathBuf>,
    service: Option<String>,
}

/// All steps.
#[derive(Debug)]
pub(crate) struct Plan {
    place: Place,
    steps: Vec<Step>,
    /// Whether the service is started by one of them.
    pub(crate) starts: bool,
}

impl Plan {
    /// What makes this machine an end. `user` is whom the gateway becomes, who must read the key.
    pub(crate) fn new(end: &End, place: Place, user: Option<UserId>, starts: bool) -> Self {
        let group = user.map(|user| user.gid);
        let starts = starts && Path::new(SYSTEMD).is_dir();
        let mut steps = Vec::new();
        if !place.folder.exists() {
            steps.push(Step::Folder { path: place.folder.clone(), group });
        }
        let file = |path, is_secret, text| Step::File { path, group, is_secret, text };
        let key = Zeroizing::new(format!("{}\n", *end.private_key.to_base64()));
        steps.push(file(place.key(), true, key));
        steps.push(file(place.file(), false, Zeroizing::new(end.text(&place.name))));
        if starts {
            let words = ["systemctl", "enable", "--now", "--no-block", &place.service()];
            steps.push(Step::Run(words.map(str::to_owned).to_vec()));
        }
        Self { place, steps, starts }
    }

    /// The steps for people; secrets are not shown.
    pub(crate) fn show(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            match step {
                Step::Folder { path, .. } => {
                    text += &format!("make the folder {}\n", path.display())
                }
                Step::File { path, is_secret: true, .. } => {
                    text += &format!("write a new private key to {}\n", path.display());
                }
                Step::File { path, text: contents, .. } => {
                    text += &format!("write {}:\n", path.display());
                    contents.lines().for_each(|line| text += &format!("    {line}\n"));
                }
                Step::Run(words) => text += &format!("run: {}\n", words.join(" ")),
            }
        }
        text
    }

    /// Takes the steps. What was done stands in a record, for [`undo`]. `look` is given the file
    /// before the service is started.
    ///
    /// # Errors
    /// The first step that failed; the earlier ones are undone.
    pub(crate) fn carry_out(&self, look: impl Fn(&Path)) -> anyhow::Result<()> {
        let mut record = Record::default();
        let result = self.take_steps(&mut record, look);
        if result.is_err() {
            // The first error is the one to tell.
            let _ = take_back(&self.place, &record, &mut |_| {});
        }
        result
    }

    fn take_steps(&self, record: &mut Record, look: impl Fn(&Path)) -> anyhow::Result<()> {
        for step in &self.steps {
            match step {
                Step::Folder { path, group } => {
                    make_folder(path, *group).map_err(|cause| cannot_write(path, cause))?;
                    record.folder = Some(path.clone());
                }
                Step::File { path, group, is_secret, text } => {
                    let mode = if *is_secret { 0o600 } else { 0o644 };
                    write_new(path, mode, *group, text)
                        .map_err(|cause| cannot_write(path, cause))?;
                    // Only now is a file at this path this plan's own.
                    record.files.push(path.clone());
                }
                Step::Run(words) => {
                    look(&self.place.file());
                    record.service = Some(self.place.service());
                    self.write_record(record)?;
                    run(words)?;
                }
            }
            if record.folder.is_some() || !record.files.is_empty() {
                self.write_record(record)?;
            }
        }
        Ok(())
    }

    fn write_record(&self, record: &Record) -> anyhow::Result<()> {
        let path = self.place.record();
        let text = serde_json::to_string(record).context("cannot describe what was done")?;
        fs::write(&path, text).map_err(|cause| cannot_write(&path, cause))?;
        Ok(())
    }
}

fn cannot_write(path: &Path, cause: io::Error) -> Advised {
    let help = match cause.kind() {
        io::ErrorKind::PermissionDenied => "run this as root",
        io::ErrorKind::ReadOnlyFilesystem => "choose a --folder that can be written",
        io::ErrorKind::StorageFull => "make room on the disk; nothing of this was kept",
        io::ErrorKind::AlreadyExists => "choose another --name",
        _ => "choose another --folder",
    };
    Advised::new(format!("cannot write {}", path.display()), help).caused_by(cause)
}

fn make_folder(path: &Path, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    chown(path, None, group)
}

/// Writes a file that must not be there yet; the group may read it, nobody else a secret.
fn write_new(path: &Path, mode: u32, group: Option<u32>, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path)?;
    let filled = fill(file, path, mode, group, text);
    if filled.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(path);
    }
    filled
}

fn fill(mut file: File, path: &Path, mode: u32, group: Option<u32>, text: &str) -> io::Result<()> {
    if group.is_some() {
        chown(path, None, group)?;
        file.set_permissions(Permissions::from_mode(mode | 0o040))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn run(words: &[String]) -> Result<(), Advised> {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    let shown = words.join(" ");
    let failed = |why: String| {
        let help = "`journalctl -u 'plait@*'` may say more";
        Advised::new(format!("`{shown}` failed: {why}"), help)
    };
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|cause| failed(cause.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Undoes what setting up an end did, and tells each thing that is gone.
///
/// # Errors
/// Nothing was set up under this name, or something cannot be removed.
pub(crate) fn undo(place: &Place, tell: &mut dyn FnMut(&str)) -> anyhow::Result<()> {
    take_back(place, &read_record(place)?, tell)?;
    let state = Path::new(common::STATES).join(format!("{}.json", place.name));
    if remove(&state)? {
        tell(&format!("removed {}", state.display()));
    }
    Ok(())
}

fn take_back(place: &Place, record: &Record, tell: &mut dyn FnMut(&str)) -> anyhow::Result<()> {
    if let Some(service) = &record.service {
        run(&["systemctl", "disable", "--now", service].map(str::to_owned))?;
        tell(&format!("stopped and disabled {service}"));
    }
    for path in &record.files {
        if remove(path)? {
            tell(&format!("removed {}", path.display()));
        }
    }
    remove(&place.record())?;
    if let Some(folder) = &record.folder
        && fs::remove_dir(folder).is_ok()
    {
        tell(&format!("removed {}", folder.display()));
    }
    Ok(())
}

/// Removes a file; says whether there was one.
fn remove(path: &Path) -> Result<bool, Advised> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cannot_write(path, cause)),
    }
}

fn read_record(place: &Place) -> Result<Record, Advised> {
    let path = place.record();
    let text = fs::read_to_string(&path).map_err(|cause| {
        let message = format!("`plait setup` has set nothing up as {}", place.name);
        let help = format!("ls {}/*.setup.json lists what there is", place.folder.display());
        Advised::new(message, help).caused_by(cause)
    })?;
    serde_json::from_str(&text).map_err(|cause| {
        let help = "remove by hand what you do not need, then this file";
        Advised::new(format!("{} is damaged", path.display()), help).caused_by(cause)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::setup::end::testing;

    fn place(test: &str) -> Place {
        let folder =
            std::env::temp_dir().join(format!("plait-steps-{}-{test}", std::process::id()));
        Place { folder, name: "bond".into() }
    }

    #[test]
    fn what_was_done_is_undone_and_nothing_else() {
        let place = place("undo");
        let plan = Plan::new(&testing::pair().0, place.clone(), None, false);
        plan.carry_out(|_| ()).unwrap();
        assert_eq!(fs::metadata(place.key()).unwrap().mode() & 0o777, 0o600);
        let kept = place.folder.join("other.toml");
        fs::write(&kept, "kept").unwrap();
        assert!(place.check().unwrap_err().to_string().contains("is there already"));
        undo(&place, &mut |_| {}).unwrap();
        let left: Vec<_> = fs::read_dir(&place.folder).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(undo(&place, &mut |_| {}).unwrap_err().to_string().contains("nothing up as bond"));
        fs::remove_dir_all(&place.folder).unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_nothing() {
        let place = place("fails");
        let plan = Plan::new(&testing::pair().0, place.clone(), None, false);
        fs::create_dir_all(place.file()).unwrap();
        let error = plan.carry_out(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert!(!place.key().exists() && !place.record().exists());
        assert!(place.file().is_dir(), "it was there before");
        fs::remove_dir_all(&place.folder).unwrap();
    }

    #[test]
    fn secrets_are_not_shown() {
        let end = testing::pair().0;
        let shown = Plan::new(&end, place("show"), None, false).show();
        assert!(shown.contains("listen_port = 7788"), "{shown}");
        assert!(!shown.contains(end.private_key.to_base64().as_str()));
    }

    #[test]
    fn names_are_those_of_devices() {
        let place = place("names");
        let check = |name: &str| Place { name: name.into(), ..place.clone() }.check();
        assert!(check("bond-1").is_ok());
        for bad in ["", "../x", "a/b", "0123456789abcdef", "a b"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
