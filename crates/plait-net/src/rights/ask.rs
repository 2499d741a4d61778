//! Tells what this process may do, without doing it.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::UserId;
use super::has_capability;
use crate::sys::rights as sys;

/// Setting the group, and the list of groups.
const CAP_SETGID: u32 = 6;
/// Setting the user.
const CAP_SETUID: u32 = 7;

/// Why this process cannot become a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CannotBecome {
    /// A right is missing.
    #[error("CAP_SETUID and CAP_SETGID are needed to become another user")]
    Denied,
    /// The user namespace, such as a container's, does not have the user or its group.
    #[error("user {uid} or group {gid} does not exist in this user namespace")]
    NotMapped {
        /// The user.
        uid: u32,
        /// Its group.
        gid: u32,
    },
}

/// Whether [`keep_only`](super::keep_only) could become `user`.
///
/// # Errors
/// Why it could not.
pub fn can_become(user: UserId) -> Result<(), CannotBecome> {
    let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let UserId { uid, gid } = user;
    let status = read("status");
    if is_already(&status, user) {
        return Ok(());
    }
    let is_user = status.lines().any(|line| line.starts_with(&format!("Uid:\t{uid}\t{uid}\t")));
    let may = has_capability(&status, CAP_SETGID)
        && (is_user || has_capability(&status, CAP_SETUID))
        && read("setgroups").trim() != "deny";
    if !may {
        return Err(CannotBecome::Denied);
    }
    if !is_mapped(&read("uid_map"), uid) || !is_mapped(&read("gid_map"), gid) {
        return Err(CannotBecome::NotMapped { uid, gid });
    }
    Ok(())
}

/// Whether the process of a /proc/PID/status text is this user alone, and so need not become it: a
/// service manager saw to that.
pub(super) fn is_already(status: &str, UserId { uid, gid }: UserId) -> bool {
    let has = |name: &str, value: &str| {
        let fields = status.lines().find_map(|line| line.strip_prefix(name));
        fields.is_some_and(|fields| fields.split_whitespace().all(|field| field == value))
    };
    let (uid, gid) = (uid.to_string(), gid.to_string());
    has("Uid:", &uid) && has("Gid:", &gid) && has("Groups:", &gid)
}

/// Whether a map of user_namespaces(7) has an id inside: `inside outside count` in each line.
fn is_mapped(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let fields: Vec<u64> =
            line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let [first, _, count] = fields[..] else { return false };
        (first..first + count).contains(&u64::from(id))
    })
}

/// Whether this process may write `path`: a file, or a folder in which to make one. On a read-only
/// file system it may not.
pub fn may_write(path: &Path) -> bool {
    CString::new(path.as_os_str().as_bytes()).is_ok_and(|path| sys::may_write(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_user_namespaces_are_read() {
        assert!(is_mapped("         0          0 4294967295\n", 991));
        assert!(is_mapped("0 1000 1\n1 100000 65536\n", 991));
        assert!(!is_mapped("0 1000 1\n", 991));
        assert!(!is_mapped("", 0));
    }

    #[test]
    fn who_is_the_user_already_need_not_become_it() {
        let user = UserId { uid: 997, gid: 996 };
        let status = |groups: &str| {
            format!("Uid:\t997\t997\t997\t997\nGid:\t996\t996\t996\t996\nGroups:\t{groups}\n")
        };
        assert!(is_already(&status("996 "), user) && is_already(&status(""), user));
        assert!(!is_already(&status("996 27"), user), "another group gives rights");
        assert!(!is_already(&status("996").replace("997\t997\t997", "0\t997\t997"), user));
        assert!(!is_already("", user));
    }

    #[test]
    fn a_device_that_is_read_only_is_not_writable() {
        assert!(may_write(&std::env::temp_dir()));
        assert!(!may_write(Path::new("/proc/version/none")));
        assert!(!may_write(Path::new("/nonexistent")));
    }
}
