//! Programs by which hosts' resolvers are told: found, run, and not waited for without end.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that one may take.
const TIME_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
/// The most that is read of what one says.
const SAID_BYTES_MAX: u64 = 4096;
/// Folders of system programs, which PATH may lack.
const FOLDERS: &str = ":/usr/sbin:/sbin:/usr/bin:/bin";

fn path() -> String {
    std::env::var("PATH").unwrap_or_default() + FOLDERS
}

/// Where a program is.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = path();
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.map(|folder| Path::new(folder).join(name)).find(|program| program.is_file())
}

/// Runs a program with a text as its input; returns what it said.
///
/// # Errors
/// It is not there, takes too long, or fails; in its own words.
pub(super) fn run(name: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let spawned = Command::new(name)
        .args(arguments)
        .env("PATH", path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| format!("cannot run {name}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Its answer shows whether it read everything, which is less than a pipe holds.
        let _ = stdin.write_all(input.as_bytes());
    }
    let ended = wait(&mut child).map_err(|error| format!("{name} {}: {error}", arguments[0]))?;
    let said = said(child.stdout.take());
    if ended {
        return Ok(said);
    }
    let complaint = self::said(child.stderr.take());
    let line = complaint.lines().next().or(said.lines().next()).unwrap_or("failed without a word");
    Err(format!("{name} {}: {}", arguments[0], line.trim()))
}

/// Whether it succeeded.
fn wait(child: &mut Child) -> io::Result<bool> {
    let until = Instant::now() + TIME_MAX;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long"));
        }
        std::thread::sleep(PAUSE);
    }
}

fn said(pipe: Option<impl io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What cannot be read was not said.
        let _ = pipe.take(SAID_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_run_and_their_words_told() {
        assert!(find("sh").is_some() && find("no-such-program").is_none());
        assert_eq!(run("cat", &["-"], "text").unwrap(), "text");
        let error = run("sh", &["-c", "echo no good >&2; exit 3"], "").unwrap_err();
        assert_eq!(error, "sh -c: no good");
        assert!(run("no-such-program", &["x"], "").unwrap_err().starts_with("cannot run"));
    }
}
