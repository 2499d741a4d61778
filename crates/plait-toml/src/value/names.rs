//! Names of devices, interfaces and users.

use plait_proto::config::LinkConfig;

use crate::problem::Problem;

/// Longest name of an interface (Linux: IFNAMSIZ less the final zero) and of a path, in bytes.
const NAME_BYTES_MAX: usize = LinkConfig::NAME_BYTES_MAX;
/// Longest name of a client or an attachment, in bytes: a column of `plait status`.
const LABEL_BYTES_MAX: usize = 32;
/// Range of [`path`] and [`device`], for the guide.
pub const NAME_RANGE: &str = "15 bytes at most";
/// Range of [`label`], for the guide.
pub const LABEL_RANGE: &str = "32 bytes at most";

/// A path's name.
///
/// # Errors
///
/// It is too long.
pub fn path(text: &str) -> Result<String, Problem> {
    within(text, NAME_BYTES_MAX)
}

fn within(text: &str, bytes_max: usize) -> Result<String, Problem> {
    let length = text.len();
    if length > bytes_max {
        let text = format!("\"{text}\" is {length} bytes long, the limit is {bytes_max}");
        return Err(Problem::new(text, "choose a shorter name"));
    }
    Ok(text.to_owned())
}

/// A client's or an attachment's name. Names appear in comments of a script that others run.
///
/// # Errors
///
/// It is empty, too long or not printable.
pub fn label(text: &str) -> Result<String, Problem> {
    if text.is_empty() {
        return Err(Problem::new("empty", "write it as in `name = \"phone\"`"));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::new("not printable", "use letters, digits and spaces"));
    }
    within(text, LABEL_BYTES_MAX)
}

/// A name that `useradd` accepts.
///
/// # Errors
///
/// It is not one.
pub fn user(text: &str) -> Result<String, Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > 32 || text.starts_with('-') || !text.chars().all(allowed) {
        let help = "write the name of a user of this machine, as in \"plait\"";
        return Err(Problem::new(format!("\"{text}\" is not a user's name"), help));
    }
    Ok(text.to_owned())
}

/// A name that a new device can have. A colon is reserved for address labels, and two names for the
/// sysctls of all devices (`/proc/sys/net/ipv4/conf/all`).
///
/// # Errors
///
/// No device can have it.
pub fn device(text: &str) -> Result<String, Problem> {
    let name = interface(text)?;
    match name.as_str() {
        "all" | "default" => {
            let text = format!("\"{name}\" is a name that the kernel keeps for itself");
            Err(Problem::new(text, "choose another name, as in \"plait0\""))
        }
        _ if name.contains(':') => Err(no_interface(&name)),
        _ => Ok(name),
    }
}

/// A name that an interface can have.
///
/// # Errors
///
/// No interface can have it.
pub fn interface(text: &str) -> Result<String, Problem> {
    let name = within(text, NAME_BYTES_MAX)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(allowed) {
        return Err(no_interface(text));
    }
    Ok(name)
}

/// A name of an interface, or the beginning of names followed by `*`.
///
/// # Errors
///
/// No interface can have it.
pub fn interfaces(text: &str) -> Result<String, Problem> {
    match text.split_once('*') {
        None => interface(text),
        Some((start, "")) if !start.is_empty() => {
            interface(start)?;
            Ok(text.to_owned())
        }
        Some(_) => {
            let text = format!("\"{text}\" has a `*` elsewhere than at the end of a name");
            let help = "write the beginning of the names and one `*`, as in \"wwan*\"";
            Err(Problem::new(text, help))
        }
    }
}

fn no_interface(text: &str) -> Problem {
    let help = "use letters, digits, `-`, `_` and `.`; no space and no slash";
    Problem::new(format!("\"{text}\" is not a name for an interface"), help)
}
