//! Runs the program `ip` of iproute2: what it is given is what `--dry-run` prints.

use std::io;
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

use crate::advice::Advised;

/// The number that marks rules and routes as plait's (`protocol` in ip-rule(8)), as the steering
/// node's.
pub(super) const PROTOCOL: u8 = 112;

/// A command that did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum IpError {
    #[error("the program ip is missing")]
    Missing,
    #[error("cannot run ip: {0}")]
    Run(io::Error),
    #[error("`{command}` failed: {said}")]
    Refused { command: String, said: String },
    #[error("`{command}` answered something unknown: {problem}")]
    Answer { command: String, problem: String },
}

impl IpError {
    /// Whether the thing to be added is there.
    pub(super) fn is_there_already(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("File exists"))
    }

    /// Whether the thing to be removed is not there.
    pub(super) fn is_gone_already(&self) -> bool {
        let gone = ["No such", "not found", "does not exist", "Cannot find device"];
        matches!(self, Self::Refused { said, .. } if gone.iter().any(|word| said.contains(word)))
    }

    /// Whether a right is missing.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("not permitted"))
    }

    fn help(&self) -> &'static str {
        match self {
            Self::Missing | Self::Answer { .. } => {
                "install iproute2 5.18 or later (Debian and Ubuntu: package iproute2)"
            }
            Self::Run(_) => "look at the program ip",
            Self::Refused { .. } if self.is_denied() => {
                "run it as root, or with the right CAP_NET_ADMIN"
            }
            Self::Refused { .. } => "run the command by hand to see more",
        }
    }
}

impl From<IpError> for Advised {
    fn from(error: IpError) -> Self {
        Self::new(error.to_string(), error.help())
    }
}

/// A command as a shell takes it. No word of it needs quotes: they are numbers, addresses, and
/// names that the kernel gave or [`crate::config`] checked.
pub(super) fn shell(arguments: &[String]) -> String {
    format!("ip {}", arguments.join(" "))
}

/// The words of a command.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Runs one command and gives what it prints.
pub(super) fn run(arguments: &[String]) -> Result<String, IpError> {
    // Also when PATH lacks the folders of system programs.
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("ip")
        .args(arguments)
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        // Errors are recognised by their words.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => IpError::Missing,
            _ => IpError::Run(error),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.is_empty()).unwrap_or("without a word").to_owned();
    Err(IpError::Refused { command: shell(arguments), said })
}

/// Runs a command that prints JSON.
pub(super) fn json<T: DeserializeOwned>(command: &str) -> Result<T, IpError> {
    let said = run(&words(command))?;
    serde_json::from_str(&said).map_err(|error| IpError::Answer {
        command: format!("ip {command}"),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_told_apart() {
        let refused = |said: &str| IpError::Refused { command: "ip".into(), said: said.into() };
        assert!(refused("RTNETLINK answers: File exists").is_there_already());
        for gone in ["RTNETLINK answers: No such process", "Error: address not found."] {
            assert!(refused(gone).is_gone_already(), "{gone}");
        }
        let denied = refused("RTNETLINK answers: Operation not permitted");
        assert!(denied.is_denied());
        assert!(!denied.is_gone_already() && !denied.is_there_already());
        assert!(Advised::from(denied).help().contains("root"));
    }
}
