//! `plait completions` and `plait man`: what a package ships beside the program, made from the
//! command line's own description.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_complete::Shell;

use super::Outcome;
use crate::advice::Advised;

const COMPLETIONS_HELP: &str = "\
Examples:
  plait completions bash > /usr/share/bash-completion/completions/plait
  plait completions zsh > /usr/share/zsh/vendor-completions/_plait
  plait completions fish > /usr/share/fish/vendor_completions.d/plait.fish

Exit codes:
  0  printed
  2  an error; it is explained on stderr";

const MAN_HELP: &str = "\
Examples:
  plait man | man -l -
  plait man --folder /usr/share/man/man1

Exit codes:
  0  printed, or written
  2  an error; it is explained on stderr";

/// Print what makes a shell complete plait's commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write those of all commands
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_HELP)]
pub(super) struct ManArgs {
    /// Write plait.1 and a page for each command into this folder
    #[arg(long)]
    folder: Option<PathBuf>,
}

pub(super) fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "plait", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Good)
}

pub(super) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<Outcome> {
    match &args.folder {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            io::stdout().write_all(&page)?;
        }
        Some(folder) => write_all(folder, command)?,
    }
    Ok(Outcome::Good)
}

fn write_all(folder: &Path, command: clap::Command) -> anyhow::Result<()> {
    let unwritable = |cause: io::Error| {
        let help = "choose a --folder that can be written";
        Advised::new(format!("cannot write into {}", folder.display()), help).caused_by(cause)
    };
    fs::create_dir_all(folder).map_err(unwritable)?;
    clap_mangen::generate_to(command, folder).map_err(unwritable).context("no manual pages")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    /// All commands with the words that lead to them, hidden ones left out.
    fn all(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((words.to_owned(), command.clone()));
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            all(sub, &format!("{words}-{}", sub.get_name()), found);
        }
    }

    fn options(command: &clap::Command) -> Vec<String> {
        let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
        visible.filter_map(|argument| argument.get_long()).map(str::to_owned).collect()
    }

    #[test]
    fn every_command_and_option_has_its_manual_page() {
        let folder = std::env::temp_dir().join(format!("plait-man-{}", std::process::id()));
        write_all(&folder, Cli::command()).unwrap();
        let mut commands = Vec::new();
        all(&Cli::command(), "plait", &mut commands);
        assert!(commands.len() > 15, "{}", commands.len());
        for (name, command) in commands {
            let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
            let page = page.replace("\\-", "-");
            for option in options(&command) {
                assert!(page.contains(&format!("--{option}")), "{name} --{option}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn shells_complete_every_command_and_option() {
        let mut commands = Vec::new();
        all(&Cli::command(), "plait", &mut commands);
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "plait", &mut script);
            let script = String::from_utf8(script).unwrap();
            for (name, command) in &commands {
                assert!(script.contains(command.get_name()), "{shell}: {name}");
                for option in options(command) {
                    let written = if shell == Shell::Fish { "-l " } else { "--" };
                    assert!(script.contains(&format!("{written}{option}")), "{shell}: --{option}");
                }
            }
        }
    }
}
