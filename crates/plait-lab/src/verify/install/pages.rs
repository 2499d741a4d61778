//! install.7's second half: every command and option that the program's help names has its manual
//! page, and is completed by the shells.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::super::Figure;
use crate::gateway::plait_program;
use crate::process;
use crate::scratch::Scratch;

const LIMIT: Duration = Duration::from_secs(10);
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// A help that could not be read would find nothing missing.
const COMMANDS_MIN: f64 = 30.0;
const OPTIONS_MIN: f64 = 60.0;

/// A command as its help describes it.
struct Described {
    words: Vec<String>,
    options: Vec<String>,
}

pub(super) fn check(source: &'static str) -> Result<Vec<Figure>> {
    let mut commands = Vec::new();
    describe(&[], &mut commands)?;
    let scratch = Scratch::in_memory("pages")?;
    let mut make = Command::new(plait_program()?);
    process::run(make.args(["man", "--folder"]).arg(scratch.path()), "", LIMIT)?;
    let mut missing = Vec::new();
    for command in &commands {
        missing.extend(missing_in_page(scratch.path(), command));
    }
    for shell in SHELLS {
        let mut print = Command::new(plait_program()?);
        let script = process::run(print.args(["completions", shell]), "", LIMIT)?;
        missing.extend(commands.iter().flat_map(|command| not_completed(shell, &script, command)));
    }
    let options = commands.iter().map(|command| command.options.len() as u64).sum();
    let count = missing.len() as u64;
    let mut figures = vec![
        Figure::count("commands", commands.len() as u64).at_least(COMMANDS_MIN, source),
        Figure::count("options", options).at_least(OPTIONS_MIN, source),
        Figure::none("not in a manual page, or not completed by bash, zsh or fish", count, source),
    ];
    figures.extend(missing.into_iter().take(10).map(|what| Figure::text("missing", what)));
    Ok(figures)
}

/// Reads a command's help, and that of its commands.
fn describe(words: &[String], found: &mut Vec<Described>) -> Result<()> {
    let mut command = Command::new(plait_program()?);
    let help = process::run(command.args(words).arg("--help"), "", LIMIT)?;
    found.push(Described { words: words.to_vec(), options: options(&help) });
    for name in commands(&help) {
        describe(&[words, &[name]].concat(), found)?;
    }
    Ok(())
}

/// The names under "Commands:"; what else is there is indented further.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let named = lines.filter_map(|line| line.strip_prefix("  "));
    let named = named.filter(|rest| !rest.starts_with(' '));
    let names = named.filter_map(|rest| rest.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The long options: lines that begin with one, alone or after a short one.
fn options(help: &str) -> Vec<String> {
    let names = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let long = match line.split_once(", ") {
            Some((short, rest)) if short.len() == 2 && short.starts_with('-') => rest,
            _ => line,
        };
        let name = long.strip_prefix("--")?;
        let end = name.find(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        Some(name[..end.unwrap_or(name.len())].to_owned())
    });
    names.filter(|name| !name.is_empty()).collect()
}

fn missing_in_page(folder: &Path, command: &Described) -> Vec<String> {
    let name = [&["plait".to_owned()], &command.words[..]].concat().join("-");
    let Ok(page) = fs::read_to_string(folder.join(format!("{name}.1"))) else {
        return vec![format!("{name}.1")];
    };
    let page = page.replace("\\-", "-");
    let options = command.options.iter().filter(|option| !page.contains(&format!("--{option}")));
    options.map(|option| format!("--{option} in {name}.1")).collect()
}

fn not_completed(shell: &str, script: &str, command: &Described) -> Vec<String> {
    let mark = if shell == "fish" { "-l " } else { "--" };
    let options = command.options.iter().map(|option| format!("{mark}{option}"));
    let wanted = options.chain(command.words.last().cloned());
    let missing = wanted.filter(|wanted| !script.contains(wanted.as_str()));
    missing.map(|what| format!("{what} of {} in {shell}", command.words.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Does it\n\nUsage: x\n\nCommands:\n  list  List what\n        is there\n  help  Print\n\n\
                        Options:\n  -h, --help\n          Print --this\n      --save <FILE>\n";

    #[test]
    fn a_help_is_read() {
        assert_eq!(commands(HELP), ["list"]);
        assert_eq!(options(HELP), ["help", "save"]);
    }

    #[test]
    fn what_is_missing_is_found() {
        let command = Described { words: vec!["list".into()], options: vec!["save".into()] };
        assert_eq!(not_completed("bash", "list --save", &command), Vec::<String>::new());
        assert_eq!(not_completed("fish", "list --save", &command).len(), 1);
        assert_eq!(missing_in_page(Path::new("/nonexistent"), &command), ["plait-list.1"]);
    }
}
