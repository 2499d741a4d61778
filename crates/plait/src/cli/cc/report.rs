//! What the commands print that are the same with and without programs.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::cli::Outcome;

/// A namespace's default was set.
pub(super) fn namespace(name: &str, before: &str, as_json: bool) -> anyhow::Result<Outcome> {
    let told = json!({ "type": "default", "name": name, "before": before });
    line(as_json, &told, || {
        format!("new sockets of this network namespace get {name}; before it was {before}")
    })?;
    Ok(Outcome::Good)
}

/// Prints a line, as JSON or as text.
pub(super) fn line(as_json: bool, value: &Value, text: impl FnOnce() -> String) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match as_json {
        true => writeln!(stdout, "{value}")?,
        false => writeln!(stdout, "{}", text())?,
    }
    stdout.flush()
}

/// The kernel's own controllers, and the default.
pub(super) fn kernels(names: &[String], default: &str, as_json: bool) -> io::Result<()> {
    if !as_json {
        let names = names.join(", ");
        return line(false, &Value::Null, || {
            format!("the kernel's own: {names}; default here: {default}")
        });
    }
    names.iter().try_for_each(|name| {
        let told = json!({ "type": "kernel", "name": name, "is_default": name == default });
        line(true, &told, String::new)
    })
}
