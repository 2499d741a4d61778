//! Writes a change of a running gateway to its configuration file, with all comments and the order
//! kept. The gateway itself cannot: its sandbox lets it write no configuration.
//!
//! All that may fail is done before the gateway changes, but for the last step, which puts the new
//! file in the old one's place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use plait_net::rights::may_write;
use plait_toml::value::Identity;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value};

use super::control;
use crate::advice::{Advised, help_to_write};
use crate::config::Config;
use crate::control::message::{PeerAsked, Request, Told, fingerprint};

const ANYWAY: &str = "or leave out --save: then it acts until the next reload or restart";

/// A file that is ready to take the configuration's place.
#[derive(Debug)]
pub(super) struct Prepared {
    socket: PathBuf,
    file: PathBuf,
    /// Fingerprints of what the file says, and of what it will say.
    before: String,
    after: String,
    /// The new file, until it is in its place.
    new: Option<PathBuf>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(new) = &self.new {
            // It was made here; if it cannot be removed, it does no harm.
            let _ = fs::remove_file(new);
        }
    }
}

/// Prepares the configuration file of the gateway behind a socket with a change.
///
/// # Errors
/// The file cannot be written so, with the remedy. Nothing has changed then.
pub(super) fn prepare(
    socket: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), Advised>,
) -> Result<Prepared, Advised> {
    let told = control::request(socket, &Request::File {})?;
    let Told::File { path, fingerprint: before } = told else {
        let help = "compare `plait --version` with that of the running gateway";
        return Err(Advised::new("the gateway names no configuration file", help));
    };
    let named = PathBuf::from(path);
    let failed = |what: &str, cause: io::Error| cannot_write(&named, what, cause);
    // A link stays one: the file that it leads to is replaced.
    let file = fs::canonicalize(&named).map_err(|cause| failed("find", cause))?;
    let text = fs::read_to_string(&file).map_err(|cause| failed("read", cause))?;
    if fingerprint(&text) != before {
        return Err(changed(&named));
    }
    check_writable(&named, &file)?;
    let text = edited(&named, &text, change)?;
    let new = new_name(&file);
    write_new(&new, &file, &text).map_err(|cause| {
        let _ = fs::remove_file(&new);
        failed("write", cause)
    })?;
    let after = fingerprint(&text);
    Ok(Prepared { socket: socket.to_owned(), file, before, after, new: Some(new) })
}

impl Prepared {
    /// Puts the new file in the old one's place, and tells the gateway.
    ///
    /// # Errors
    /// It cannot be put there. The gateway has changed all the same.
    pub(super) fn commit(mut self) -> Result<(), Advised> {
        let acts = |error: &str| format!("it acts now, but is not saved: {error}");
        let help = "write it to the file yourself, before the next reload";
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        if fingerprint(&text) != self.before {
            let error = format!("{} was changed meanwhile", self.file.display());
            return Err(Advised::new(acts(&error), help));
        }
        let Some(new) = &self.new else { return Ok(()) };
        if let Err(cause) = fs::rename(new, &self.file) {
            let error = format!("cannot replace {}", self.file.display());
            return Err(Advised::new(acts(&error), help).caused_by(cause));
        }
        self.new = None;
        if let Some(Ok(folder)) = self.file.parent().map(File::open) {
            // The name is on the disk, too; if not, a crash leaves the old file.
            let _ = folder.sync_all();
        }
        control::request(&self.socket, &Request::FileSaved { fingerprint: self.after.clone() })?;
        Ok(())
    }
}

fn changed(file: &Path) -> Advised {
    let message = format!("{} was changed since the gateway read it", file.display());
    let help = "let the gateway read it first (`plait check`, then `plait reload`), and try again";
    Advised::new(message, format!("{help}; {ANYWAY}"))
}

fn cannot_write(file: &Path, what: &str, cause: io::Error) -> Advised {
    let help = help_to_write(&cause).unwrap_or(match cause.kind() {
        io::ErrorKind::PermissionDenied => "run this as the file's owner, or as root",
        _ => "look at the file and its folder",
    });
    let message = format!("cannot {what} {}; nothing was changed", file.display());
    Advised::new(message, format!("{help}; {ANYWAY}")).caused_by(cause)
}

/// Whether the file may be replaced. Root may write whatever its mode says, but who set it so did
/// not want that.
fn check_writable(named: &Path, file: &Path) -> Result<(), Advised> {
    let failed = |cause| cannot_write(named, "look at", cause);
    let metadata = fs::metadata(file).map_err(failed)?;
    let message = if metadata.permissions().readonly() {
        format!("{} is read-only; nothing was changed", named.display())
    } else if !may_write(file) {
        format!("{} may not be written; nothing was changed", named.display())
    } else {
        match file.parent().filter(|folder| !may_write(folder)) {
            Some(folder) => {
                format!("{} may not be written; nothing was changed", folder.display())
            }
            None => return Ok(()),
        }
    };
    let help = "make it writable (`chmod u+w`, or mount its file system for writing)";
    Err(Advised::new(message, format!("{help}; {ANYWAY}")))
}

/// The text with the change, if the gateway would take it.
fn edited(
    file: &Path,
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), Advised>,
) -> Result<String, Advised> {
    let mut document: DocumentMut = text.parse().map_err(|cause: toml_edit::TomlError| {
        let message = format!("{} is not TOML", file.display());
        Advised::new(message, "`plait check` says where").caused_by(cause)
    })?;
    change(&mut document)?;
    let text = document.to_string();
    if let Err(errors) = Config::parse(file, &text) {
        let all: Vec<_> = errors.iter().map(|e| format!("{e} ({})", e.help())).collect();
        let message = format!("the file would not pass `plait check`: {}", all.join("; "));
        return Err(Advised::new(message, format!("nothing was changed; correct that, {ANYWAY}")));
    }
    Ok(text)
}

/// A name beside the file that nobody else has.
fn new_name(file: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    file.with_file_name(name)
}

/// Writes the new file, with mode and owner of the old one.
fn write_new(new: &Path, old: &Path, text: &str) -> io::Result<()> {
    let like = fs::metadata(old)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(text.as_bytes())?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (like.uid(), like.gid()) {
        fchown(&file, Some(like.uid()), Some(like.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))?;
    file.sync_all()
}

/// Adds sections `[[peer]]` behind those that are there; each with the file of its preshared key.
pub(super) fn add_peers(
    document: &mut DocumentMut,
    peers: &[(PeerAsked, Option<PathBuf>)],
) -> Result<(), Advised> {
    let sections = sections(document, "peer")?;
    for (peer, preshared_key_file) in peers {
        let mut table = Table::new();
        table.decor_mut().set_prefix("\n");
        table.insert("public_key", text(&peer.public_key));
        if let Some(file) = preshared_key_file {
            table.insert("preshared_key_file", text(&file.to_string_lossy()));
        }
        if !peer.endpoint.is_empty() {
            table.insert("endpoint", list(&peer.endpoint));
        }
        table.insert("allowed_ips", list(&peer.allowed_ips));
        if let Some(seconds) = peer.keepalive_s {
            table.insert("keepalive_s", Item::Value(i64::from(seconds).into()));
        }
        if let Some(measure) = peer.measure {
            table.insert("measure", Item::Value(measure.into()));
        }
        sections.push(table);
    }
    Ok(())
}

/// Removes a peer's section, with the comment above it.
pub(super) fn remove_peer(document: &mut DocumentMut, key: &str) -> Result<(), Advised> {
    let sections = sections(document, "peer")?;
    let is_its = |table: &Table| {
        table.get("public_key").and_then(Item::as_str).is_some_and(|known| known.trim() == key)
    };
    let Some(at) = sections.iter().position(is_its) else {
        let message = format!("the file has no section of the peer {key}");
        return Err(Advised::new(message, "leave out --save: there is nothing to be saved"));
    };
    sections.remove(at);
    Ok(())
}

/// Changes a path's section.
pub(super) fn change_path(
    document: &mut DocumentMut,
    name: &str,
    change: impl FnOnce(&mut Table),
) -> Result<(), Advised> {
    let sections = sections(document, "path")?;
    let named = |(at, table): (usize, &Table)| {
        let option = |key| table.get(key).and_then(Item::as_str).map(str::to_owned);
        let identity = || Some(Identity::parse(&option("link")?).ok()?.short_name());
        let said = option("name").or_else(|| option("interface"));
        let said = said.or_else(identity).or_else(|| option("address"));
        said.as_deref() == Some(name) || name == format!("path{}", at + 1)
    };
    let at = sections.iter().enumerate().position(named);
    match at.and_then(|at| sections.get_mut(at)) {
        Some(table) => change(table),
        None => {
            let message = format!("the file has no section of the path {name}");
            return Err(Advised::new(message, "`plait path list` shows the paths"));
        }
    }
    Ok(())
}

/// Sets an option, with the comment behind it kept.
pub(super) fn set(table: &mut Table, key: &str, value: impl Into<Value>) {
    let mut value = value.into();
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            value.decor_mut().clone_from(old.decor());
            *old = value;
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

fn sections<'a>(
    document: &'a mut DocumentMut,
    key: &str,
) -> Result<&'a mut ArrayOfTables, Advised> {
    let found = document.get_mut(key).and_then(Item::as_array_of_tables_mut);
    found.ok_or_else(|| {
        let message = format!("the file has no section [[{key}]] of its own");
        Advised::new(message, format!("write each as a section [[{key}]], {ANYWAY}"))
    })
}

fn text(value: &str) -> Item {
    Item::Value(value.into())
}

fn list(values: &[String]) -> Item {
    Item::Value(Value::Array(values.iter().map(String::as_str).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"# The gateway of the office.
[gateway]
private_key_file = "gateway.key"  # kept elsewhere

# The good one.
[[path]]
interface = "dsl"
price   =  1   # cents

[[path]]
interface = "lte0"
name = "lte"
quota = "20 GB" # of the contract
quota_day = 5

# The head office.
[[peer]]
public_key = "AAA="
allowed_ips = ["10.99.0.1/32"]

# A branch.
[[peer]]
public_key = "BBB="

[scheduler]
algorithm = "ecf" # since May
# The end.
"#;

    fn edit(
        change: impl FnOnce(&mut DocumentMut) -> Result<(), Advised>,
    ) -> Result<String, String> {
        let mut document: DocumentMut = FILE.parse().unwrap();
        change(&mut document).map_err(|error| error.to_string())?;
        Ok(document.to_string())
    }

    #[test]
    fn a_peer_comes_behind_the_others_and_goes_with_its_comment() {
        let peer = PeerAsked {
            public_key: "CCC=".into(),
            endpoint: vec!["192.0.2.1:7788".into()],
            allowed_ips: vec!["10.1.0.0/16".into(), "fd00::/64".into()],
            keepalive_s: Some(9),
            ..PeerAsked::default()
        };
        let new = "[[peer]]\npublic_key = \"CCC=\"\npreshared_key_file = \"/etc/psk\"\n\
                   endpoint = [\"192.0.2.1:7788\"]\n\
                   allowed_ips = [\"10.1.0.0/16\", \"fd00::/64\"]\n\
                   keepalive_s = 9\n\n[scheduler]";
        let text = edit(|file| add_peers(file, &[(peer, Some("/etc/psk".into()))])).unwrap();
        assert_eq!(text, FILE.replace("[scheduler]", new));

        let text = edit(|file| remove_peer(file, "BBB=")).unwrap();
        assert_eq!(text, FILE.replace("# A branch.\n[[peer]]\npublic_key = \"BBB=\"\n\n", ""));
        let error = edit(|file| remove_peer(file, "CCC=")).unwrap_err();
        assert_eq!(error, "the file has no section of the peer CCC=");
    }

    #[test]
    fn a_paths_option_changes_where_it_stands() {
        let text = edit(|file| change_path(file, "dsl", |path| set(path, "price", 2))).unwrap();
        assert_eq!(text, FILE.replace("price   =  1   #", "price   =  2   #"));
        let text = edit(|file| change_path(file, "lte", |path| set(path, "standby", true)));
        assert_eq!(
            text.unwrap(),
            FILE.replace("quota_day = 5\n", "quota_day = 5\nstandby = true\n")
        );
        let without = edit(|file| {
            change_path(file, "lte", |path| {
                path.remove("quota");
                path.remove("quota_day");
            })
        });
        let quota = "quota = \"20 GB\" # of the contract\nquota_day = 5\n";
        assert_eq!(without.unwrap(), FILE.replace(quota, ""));
        assert!(edit(|file| change_path(file, "lte0", |_| ())).is_err(), "it has a name");
        assert!(edit(|file| change_path(file, "path1", |_| ())).is_ok());
    }

    #[test]
    fn the_new_file_has_the_old_ones_mode() {
        let folder = std::env::temp_dir().join(format!("plait-save-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("gw.toml");
        fs::write(&file, FILE).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let new = new_name(&file);
        write_new(&new, &file, "a = 1").unwrap();
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o7777, 0o640);
        assert!(write_new(&new, &file, "a = 1").is_err(), "another's file is not touched");
        check_writable(&file, &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
        let error = check_writable(&file, &file).unwrap_err();
        assert!(error.to_string().ends_with("is read-only; nothing was changed"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_is_found_by_what_its_link_is_called() {
        let file = "[[path]]\nlink = \"mac:02:00:00:00:00:0A\"\n[[path]]\nlink = \"bus:1-1.4\"\n";
        for name in ["02000000000a", "1-1.4"] {
            let mut document: DocumentMut = file.parse().unwrap();
            change_path(&mut document, name, |table| set(table, "price", 3)).unwrap();
            assert!(document.to_string().contains("price = 3"), "{name}");
        }
    }
}
