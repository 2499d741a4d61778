//! Runs programs: to their end within a time limit, or in the background until dropped.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use plait_net::netns;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Output and status of a program that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end, whatever its exit status.
pub(crate) fn run_any(command: &mut Command, input: &str, limit: Duration) -> Result<Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}; {}", remedy(&name)))?;
    let mut stdin = child.stdin.take().context("stdin is piped")?;
    let mut stdout = child.stdout.take().context("stdout is piped")?;
    let mut stderr = child.stderr.take().context("stderr is piped")?;
    std::thread::scope(|scope| {
        let out = scope.spawn(move || read_all(&mut stdout));
        let err = scope.spawn(move || read_all(&mut stderr));
        match stdin.write_all(input.as_bytes()) {
            // The status of a program that ends without reading says why.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => drop(stdin),
        }
        let status = wait(&mut child, limit)?;
        if status.is_none() {
            child.kill()?;
            child.wait()?;
        }
        let stdout = out.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let stderr = err.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Some(status) = status else {
            bail!("{name} did not end within {} s: {}", limit.as_secs(), stderr.trim());
        };
        Ok(Finished { status, stdout, stderr })
    })
}

/// Runs a program to its end and gives back its standard output.
pub(crate) fn run(command: &mut Command, input: &str, limit: Duration) -> Result<String> {
    let finished = run_any(command, input, limit)?;
    if !finished.status.success() {
        let said = format!("{} {}", finished.stderr.trim(), finished.stdout.trim());
        bail!("{:?} failed ({}): {}", command, finished.status, said.trim());
    }
    Ok(finished.stdout)
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    // Output read before an error is still worth showing.
    let _cut = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for a child; `None` when the limit passes first.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A program in the background, killed when dropped.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    child: Child,
}

impl Service {
    /// Starts a program whose output goes to the file `log`. It also ends with the calling thread.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let log = File::create(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {name}; {}", remedy(&name)))?;
        Ok(Self { name, child })
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end (SIGTERM) and waits for that; `None` when it does not within `limit`.
    pub(crate) fn stop(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        if self.runs() {
            netns::terminate(&self.child)?;
        }
        wait(&mut self.child, limit).with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Calls `check` until it returns something.
pub(crate) fn wait_until<T>(
    what: &str,
    limit: Duration,
    mut check: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = check()? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("{what} did not happen within {:.1} s", limit.as_secs_f64());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The kernel's clock ticks per second in proc_pid_stat(5): `USER_HZ`, 100 everywhere.
const TICKS_PER_SECOND: u64 = 100;

/// Processor time that a process has taken, in user space and in the kernel, in steps of 10 ms.
/// `entry` is its folder in `/proc`: a number, `self` or `thread-self`.
pub(crate) fn cpu_time(entry: &str) -> Result<Duration> {
    let file = format!("/proc/{entry}/stat");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let ticks = cpu_ticks(&text).with_context(|| format!("unknown form of stat: {text}"))?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Current and peak memory of a process, in proc_pid_status(5).
pub(crate) const RESIDENT: &str = "VmRSS:";
pub(crate) const RESIDENT_PEAK: &str = "VmHWM:";

/// One of these, in MiB. `entry` is the process's folder in `/proc`: a number or `self`.
pub(crate) fn memory_mib(entry: &str, which: &str) -> Result<f64> {
    let file = format!("/proc/{entry}/status");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let bytes = status_bytes(&text, which).with_context(|| format!("{file} has no {which}"))?;
    Ok(bytes as f64 / f64::from(1 << 20))
}

fn status_bytes(status: &str, which: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(which))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// `utime` and `stime` of proc_pid_stat(5), its fields 14 and 15.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

fn remedy(program: &str) -> String {
    let package = match program {
        "ip" => "iproute2",
        "ping" => "iputils-ping",
        "sha256sum" => "coreutils",
        other => other,
    };
    format!("install it (Debian, Ubuntu: apt-get install {package})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn output_comes_back_and_input_goes_in() {
        assert_eq!(run(&mut Command::new("cat"), "one\ntwo\n", LIMIT).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn failure_says_what_the_program_said() {
        let mut command = Command::new("sh");
        let error = run(command.args(["-c", "echo no luck >&2; exit 3"]), "", LIMIT).unwrap_err();
        assert!(error.to_string().contains("no luck"), "{error}");
    }

    #[test]
    fn cpu_time_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 1 1 0 -1 64 1 0 0 0 120 30 0 0 20 0 1 0 5 0 0";
        assert_eq!(cpu_ticks(stat), Some(150));
        assert_eq!(cpu_ticks("7 (a"), None);
        assert!(cpu_time("thread-self").is_ok() && cpu_time("self").is_ok());
        assert!(cpu_time("none").is_err());
    }

    #[test]
    fn memory_is_read() {
        let text = "Name:\tplait\nVmHWM:\t    9000 kB\nVmRSS:\t    7008 kB\nThreads:\t1\n";
        assert_eq!(status_bytes(text, RESIDENT), Some(7008 * 1024));
        assert_eq!(status_bytes(text, RESIDENT_PEAK), Some(9000 * 1024));
        assert_eq!(status_bytes("Name:\tplait\n", RESIDENT), None);
        assert!(memory_mib("self", RESIDENT).is_ok_and(|mib| mib > 0.1));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let limit = Duration::from_millis(50);
        let error = run(Command::new("sleep").arg("1000"), "", limit).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
    }

    #[test]
    fn a_missing_program_comes_with_its_package() {
        let error = run(&mut Command::new("no-such-program"), "", LIMIT).unwrap_err();
        assert!(error.to_string().contains("apt-get install no-such-program"), "{error}");
    }
}
