//! The users that `user` may name.

use std::fs;

use plait_net::rights::UserId;

use super::located::Located;
use crate::advice::Advised;

/// Finds a user in the text of `/etc/passwd` (passwd(5)).
pub(crate) fn find_user(passwd: &str, name: &str) -> Option<UserId> {
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
