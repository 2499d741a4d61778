//! The default congestion controller of a network namespace: a setting of the kernel's, which needs
//! no program.

use std::fs;
use std::io;

use crate::advice::Advised;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The default here.
pub(super) fn default() -> String {
    fs::read_to_string(DEFAULT).unwrap_or_default().trim().to_owned()
}

/// Controllers that the kernel has now.
pub(super) fn available() -> Vec<String> {
    let names = fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// Makes `name` the default here; tells what was before.
pub(super) fn set_default(name: &str) -> Result<String, Advised> {
    let before = default();
    fs::write(DEFAULT, name).map_err(|error| {
        let what = format!("{name} does not become this network namespace's default");
        Advised::new(what, help(name, &error)).caused_by(error)
    })?;
    Ok(before)
}

fn help(name: &str, error: &io::Error) -> String {
    let there = available();
    match error.kind() {
        io::ErrorKind::NotFound if name.starts_with("bpf_") => {
            format!("load it first: plait cc load {}", &name[4..])
        }
        io::ErrorKind::NotFound => format!("the kernel has {}", there.join(", ")),
        io::ErrorKind::PermissionDenied if there.iter().any(|known| known == name) => {
            "run it as root; in a namespace, the kernel lets only some be the default".to_owned()
        }
        _ => "run it as root".to_owned(),
    }
}
