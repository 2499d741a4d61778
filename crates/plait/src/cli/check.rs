//! `plait check`: is the configuration sound, and is the machine ready for it?

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Outcome;
use crate::config::{Config, ConfigError, ConfigErrors, Unresolved, resolve};
use crate::machine::{self, Facts, Finding, Level, Peers};
use crate::output::Style;

const AFTER_HELP: &str = "\
Examples:
  plait check gateway.toml
  plait check gateway.toml --json | jq 'select(.level == \"error\")'

Exit codes:
  0  `plait up` would start, or runs already with this file's device; there may be warnings
  2  it would not; the lines marked `error` say why";

/// Check a configuration, and the machine against it
///
/// Reads the configuration and its key files and looks at all that `plait up` sets up or needs:
/// links and the routes over them to the peers, inner addresses and routes, ports, the control
/// socket, files, forwarding and NAT, rights, kernel. Prints a line for each, with advice. What
/// would stop `plait up` is an error; with what makes a path or the bond useless it starts, and
/// that is a warning. What the running gateway of this file keeps itself is not in the way. Changes
/// nothing. Host names of endpoints are resolved.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The gateway's configuration file
    config: PathBuf,
    /// Print JSON Lines: one `finding` each, then a `summary`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    tell(&findings(&args.config), args.json)
}

/// Prints findings; an error among them is the answer no.
pub(super) fn tell(findings: &[Finding], json: bool) -> anyhow::Result<Outcome> {
    let mut stdout = io::stdout().lock();
    if json {
        write_json(&mut stdout, findings)?;
    } else {
        write_text(&mut stdout, findings, Style::for_stdout())?;
    }
    stdout.flush()?;
    let sound = count(findings, Level::Error) == 0;
    Ok(if sound { Outcome::Good } else { Outcome::Failed })
}

fn findings(file: &Path) -> Vec<Finding> {
    let config = match Config::load(file) {
        Ok(config) => config,
        Err(errors) => return from_errors(&errors),
    };
    let mut findings = vec![summary_of(&config)];
    for warning in &config.warnings {
        let subject = format!("{}:{}: {}", file.display(), warning.line, warning.option);
        findings.push(Finding::warning(subject, &warning.text, &warning.help));
    }
    let peers = Peers::resolved(&config, |endpoint| match resolve(&endpoint.value) {
        Ok(addresses) => addresses,
        Err(problem) => {
            findings.push(unresolved(&config, endpoint.line, &problem));
            Vec::new()
        }
    });
    findings.extend(machine::examine(&config, &peers, &mut Facts::gather_beside(&config)));
    findings
}

/// Each mistake of a file as a finding.
pub(super) fn from_errors(errors: &ConfigErrors) -> Vec<Finding> {
    let finding = |error: &ConfigError| {
        let text = error.to_string();
        let (subject, text) = text.split_once(": ").unwrap_or(("configuration", &text));
        Finding::error(subject, text, error.help())
    };
    errors.iter().map(finding).collect()
}

fn summary_of(config: &Config) -> Finding {
    Finding {
        level: Level::Ok,
        subject: config.file.display().to_string(),
        text: format!(
            "{} with {}, {}",
            config.gateway.tun,
            plural(config.paths.len(), "path"),
            plural(config.peers.len(), "peer")
        ),
        help: None,
    }
}

fn unresolved(config: &Config, line: usize, problem: &Unresolved) -> Finding {
    let place = format!("{}:{line}: [[peer]] endpoint", config.file.display());
    Finding::warning(place, problem.to_string(), Unresolved::HELP)
}

fn write_text(out: &mut impl Write, findings: &[Finding], style: Style) -> io::Result<()> {
    for finding in findings {
        let level = match finding.level {
            Level::Ok => style.green("ok     "),
            Level::Warning => style.yellow("warning"),
            Level::Error => style.red("error  "),
        };
        writeln!(out, "{level}  {}: {}", finding.subject, finding.text)?;
        if let Some(help) = &finding.help {
            writeln!(out, "         {} {help}", style.bold("help:"))?;
        }
    }
    let errors = plural(count(findings, Level::Error), "error");
    let warnings = plural(count(findings, Level::Warning), "warning");
    writeln!(out, "{errors}, {warnings}")
}

fn write_json(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
    for finding in findings {
        let line = json!({
            "type": "finding",
            "level": level_name(finding.level),
            "subject": finding.subject,
            "text": finding.text,
            "help": finding.help,
        });
        writeln!(out, "{line}")?;
    }
    let summary = json!({
        "type": "summary",
        "errors": count(findings, Level::Error),
        "warnings": count(findings, Level::Warning),
    });
    writeln!(out, "{summary}")
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

pub(super) fn plural(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Finding> {
        vec![
            Finding::warning("kernel", "old", "update it"),
            Finding::error("x.toml:3: [gateway] mtu", "3 is out of range", "write more"),
        ]
    }

    #[test]
    fn findings_are_lines_with_advice_and_a_count() {
        let mut out = Vec::new();
        write_text(&mut out, &sample(), Style::PLAIN).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "warning  kernel: old\n         help: update it\n\
             error    x.toml:3: [gateway] mtu: 3 is out of range\n         help: write more\n\
             1 error, 1 warning\n"
        );
    }

    #[test]
    fn json_ends_in_a_summary() {
        let mut out = Vec::new();
        write_json(&mut out, &sample()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1]["level"], "error");
        assert_eq!(lines[2], json!({"type": "summary", "errors": 1, "warnings": 1}));
    }
}
