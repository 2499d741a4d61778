//! In place of the commands' part that works with programs in the kernel, in a build without them:
//! says so, and does what can be done without.

use std::net::IpAddr;
use std::path::Path;

use serde_json::json;

use super::{namespace, report};
use crate::advice::Advised;
use crate::cli::Outcome;

/// The sockets that a rule is for.
#[derive(Debug)]
pub(super) struct Meant<'a> {
    /// In this cgroup.
    pub(super) cgroup: &'a Path,
    /// Bound to one of these interfaces, or with an address of theirs.
    pub(super) interfaces: &'a [String],
    /// With one of these addresses.
    pub(super) addresses: &'a [IpAddr],
}

const MISSING: &str = "this plait was built without programs for the kernel";

fn missing(what: &str) -> anyhow::Error {
    let help = "build it with them (scripts/setup --bpf, then cargo build --release -p plait-cli \
                --features bpf); the kernel's own controllers can be a namespace's default \
                without: plait cc use reno";
    Advised::new(format!("{what}: {MISSING}"), help).into()
}

/// The name by which the kernel knows a controller.
pub(super) fn kernel_name(name: &str) -> String {
    name.to_owned()
}

pub(super) fn list(as_json: bool) -> anyhow::Result<Outcome> {
    report::kernels(&namespace::available(), &namespace::default(), as_json)?;
    let told = json!({ "type": "summary", "can_load": false, "missing": MISSING });
    report::line(as_json, &told, || format!("plait's own cannot be loaded: {MISSING}"))?;
    Ok(Outcome::Good)
}

pub(super) fn load(names: &[String], _as_json: bool) -> anyhow::Result<Outcome> {
    Err(missing(&format!("{} cannot be loaded", names.join(", "))))
}

pub(super) fn unload(
    _names: Option<&[String]>,
    _force: bool,
    _as_json: bool,
) -> anyhow::Result<Outcome> {
    Err(missing("nothing can be unloaded"))
}

pub(super) fn choose(meant: &Meant<'_>, name: &str, _as_json: bool) -> anyhow::Result<Outcome> {
    Err(missing(&format!("{} cannot be given {name}", described(meant))))
}

pub(super) fn take_back(meant: &Meant<'_>, _as_json: bool) -> anyhow::Result<Outcome> {
    Err(missing(&format!("no rule of {} can be taken back", described(meant))))
}

fn described(meant: &Meant<'_>) -> String {
    let only = meant.interfaces.len() + meant.addresses.len();
    let some = if only > 0 { "some sockets of " } else { "" };
    format!("{some}{}", meant.cgroup.display())
}
