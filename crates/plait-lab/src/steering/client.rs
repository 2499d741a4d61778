//! A client runs only the lines of the recipe, exactly as printed.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;

use crate::gateway::plait_program;
use crate::process;

const LIMIT: Duration = Duration::from_secs(20);

/// Which recipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecipeKind {
    Nftables,
    Iptables,
    Android,
}

impl RecipeKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
            Self::Android => "android",
        }
    }
}

/// Makes `plait` print the recipe of a client.
pub(crate) fn print_recipe(config: &Path, client: &str, kind: RecipeKind) -> Result<String> {
    let mut command = Command::new(plait_program()?);
    command.args(["steer", "--client-rules"]).arg(config);
    command.args(["--client", client, "--for", kind.name()]);
    process::run(&mut command, "", LIMIT)
}

/// Runs shell lines in a namespace; the first that fails ends it. `path` is searched before the
/// ordinary folders of programs.
pub(crate) fn run_lines(netns: &NetNs, lines: &str, path: Option<&Path>) -> Result<()> {
    let mut command = netns.command("sh");
    command.args(["-e", "-u", "-s"]);
    let system = std::env::var("PATH").unwrap_or_default();
    let own = path.map(|path| format!("{}:", path.display())).unwrap_or_default();
    command.env("PATH", OsStr::new(&format!("{own}{system}:/usr/sbin:/sbin")));
    process::run(&mut command, lines, LIMIT).with_context(|| format!("in:\n{lines}"))?;
    Ok(())
}
