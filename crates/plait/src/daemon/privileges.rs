//! Rights: once all is set up, the daemon keeps those that it goes on needing and no others.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use plait_net::rights::{CAP_NET_ADMIN, CAP_NET_RAW, UserId, keep_only};

use crate::advice::Advised;
use crate::config::Located;

/// What to do when the daemon cannot become its user.
pub(crate) const CANNOT_BECOME_HELP: &str =
    "start plait as root of a user namespace that has the user, or remove `user` under [gateway]";

/// Finds a user in the text of `/etc/passwd` (passwd(5)).
fn find_user(passwd: &str, name: &str) -> Option<UserId> {
    let mut lines = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.len() >= 4 && fields[0] == name)?;
    Some(UserId { uid: fields[2].parse().ok()?, gid: fields[3].parse().ok()? })
}

/// The numbers of the user that the configuration names.
///
/// # Errors
/// There is no such user.
pub(crate) fn user_of(user: Option<&Located<String>>) -> Result<Option<UserId>, Advised> {
    let Some(user) = user else { return Ok(None) };
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = find_user(&passwd, &user.value).ok_or_else(|| {
        let message = format!("no user called \"{}\" in /etc/passwd", user.value);
        Advised::new(message, format!("useradd --system --no-create-home {}", user.value))
    })?;
    Ok(Some(found))
}

/// Gives a file that the daemon goes on writing or will remove to the user it becomes; its folder
/// too, when it is plait's own.
pub(crate) fn hand_over(file: &Path, user: UserId) {
    let own = |folder: &&Path| folder.file_name().is_some_and(|name| name == "plait");
    for path in [Some(file), file.parent().filter(own)].into_iter().flatten() {
        let Ok(metadata) = fs::metadata(path) else { continue };
        if metadata.uid() != user.uid
            && let Err(error) = chown(path, Some(user.uid), Some(user.gid))
        {
            log::warn!("{} cannot be given to user {}: {error}", path.display(), user.uid);
        }
    }
}

/// Gives up all rights but those to set up network devices and to bind sockets to them. Call it
/// before threads are started: they keep what they have.
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
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nplait2:x:7:8::/:/x\nplait:x:991:990::/:/x\n";
        assert_eq!(find_user(passwd, "plait"), Some(UserId { uid: 991, gid: 990 }));
        assert_eq!(find_user(passwd, "plai"), None);
        assert_eq!(find_user("plait:x:a:b", "plait"), None);
    }
}
