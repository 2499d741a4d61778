//! Rights: once all is set up, the daemon keeps only those that it still needs.

use std::fs;
use std::path::Path;

use plait_net::entry::{Entry, NotGiven};
use plait_net::rights::{CAP_NET_ADMIN, CAP_NET_RAW, UserId, keep_only};

use crate::advice::Advised;

/// State files, their replacements while they are written, and control sockets.
const OWN_EXTENSIONS: [&str; 3] = ["json", "new", "sock"];
/// What to do when the daemon cannot become its user.
pub(crate) const CANNOT_BECOME_HELP: &str =
    "start plait as root of a user namespace that has the user, or remove `user` under [gateway]";

/// Gives a file that the daemon will write or remove later to the user it becomes; its folder too,
/// when it is plait's own.
///
/// The folder may already belong to the user, from the run before, and an intruder may have become
/// that user: so links are not followed, and files with another name elsewhere are not given.
pub(crate) fn hand_over(file: &Path, user: UserId) {
    let result = Entry::open(file).map_err(NotGiven::from).and_then(|entry| entry.give_to(user));
    if let Err(error) = result {
        log::warn!("{} is not given to user {}: {error}", file.display(), user.uid);
    }
    let is_named_so = |folder: &&Path| folder.file_name().is_some_and(|name| name == "plait");
    let Some(folder) = file.parent().filter(is_named_so) else { return };
    if let Err(error) = hand_over_folder(folder, user) {
        let (folder, uid) = (folder.display(), user.uid);
        log::warn!("the folder {folder} is not given to user {uid}: {error:#}");
    }
}

/// Gives away a folder only if it holds nothing but files that gateways and steering nodes write.
/// The owner of a folder with configurations and keys could replace them.
fn hand_over_folder(folder: &Path, user: UserId) -> anyhow::Result<()> {
    let entry = Entry::open(folder)?;
    if entry.uid() == user.uid {
        return Ok(());
    }
    anyhow::ensure!(entry.is_folder(), "it is a link");
    for file in fs::read_dir(entry.path())? {
        let name = file?.file_name();
        let ours = Path::new(&name)
            .extension()
            .is_some_and(|extension| OWN_EXTENSIONS.iter().any(|own| extension == *own));
        anyhow::ensure!(
            ours,
            "it holds {}, which is not plait's own; give state file and control socket a folder of \
             their own",
            name.display()
        );
    }
    Ok(entry.give_to(user)?)
}

/// Gives up all rights but those to set up network devices and to bind sockets to them. Call it
/// before threads are started: they keep theirs.
pub(crate) fn give_up(user: Option<UserId>) -> anyhow::Result<()> {
    let kept = keep_only(&[CAP_NET_ADMIN, CAP_NET_RAW], user).map_err(|cause| {
        let message = "cannot give up the rights that are not needed";
        Advised::new(message, CANNOT_BECOME_HELP).caused_by(cause)
    })?;
    let whom = user.map(|user| format!(" as user {}", user.uid)).unwrap_or_default();
    let names = [(CAP_NET_ADMIN, "CAP_NET_ADMIN"), (CAP_NET_RAW, "CAP_NET_RAW")];
    let held: Vec<_> =
        names.iter().filter(|(bit, _)| kept.holds(*bit)).map(|(_, name)| *name).collect();
    let held = if held.is_empty() { "none".to_owned() } else { held.join(", ") };
    log::info!("rights kept{whom}: {held}");
    log::debug!("rights bounded: {}, inherited: {}", kept.bounded, kept.inherited);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    const USER: UserId = UserId { uid: 4711, gid: 4711 };

    /// A folder called `plait` in one of the test's own; `None` without root.
    fn folder(name: &str) -> Option<PathBuf> {
        let top = std::env::temp_dir().join(format!("plait-given-{}-{name}", std::process::id()));
        fs::create_dir_all(top.join("plait")).unwrap();
        let is_root = fs::metadata(&top).unwrap().uid() == 0;
        if !is_root {
            eprintln!("skipped: not root");
        }
        is_root.then(|| top.join("plait"))
    }

    fn owner(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().uid()
    }

    fn remove(folder: &Path) {
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn state_and_folder_go_to_the_user() {
        let Some(folder) = folder("both") else { return };
        let (file, other) = (folder.join("plait0.json"), folder.join("plait1.json"));
        fs::write(&file, "").unwrap();
        fs::write(&other, "").unwrap();
        hand_over(&file, USER);
        assert_eq!([owner(&file), owner(&folder), owner(&other)], [4711, 4711, 0]);
        remove(&folder);
    }

    /// The user's own folder after a restart: files there may have been planted.
    #[test]
    fn regression_a_link_in_place_of_the_state_file_gives_nothing_away() {
        let Some(folder) = folder("link") else { return };
        let (file, victim) = (folder.join("plait0.json"), folder.with_file_name("shadow"));
        fs::write(&victim, "").unwrap();
        for hard in [false, true] {
            let _ = fs::remove_file(&file);
            if hard {
                fs::hard_link(&victim, &file).unwrap();
            } else {
                symlink(&victim, &file).unwrap();
            }
            hand_over(&file, USER);
            assert_eq!(owner(&victim), 0, "hard: {hard}");
        }
        remove(&folder);
    }

    #[test]
    fn regression_a_folder_of_configurations_and_one_behind_a_link_are_kept() {
        let Some(folder) = folder("shared") else { return };
        let file = folder.join("plait0.json");
        fs::write(&file, "").unwrap();
        fs::write(folder.join("gateway.toml"), "").unwrap();
        hand_over(&file, USER);
        assert_eq!([owner(&file), owner(&folder)], [4711, 0]);
        let victim = folder.with_file_name("victim");
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(&victim).unwrap();
        symlink(&victim, &folder).unwrap();
        hand_over(&file, USER);
        assert_eq!(owner(&victim), 0);
        remove(&folder);
    }
}
