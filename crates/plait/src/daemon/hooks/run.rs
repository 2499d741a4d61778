//! One run of a hook: its program, its webhook.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plait_net::netns::kill_group;
use plait_toml::hook::Hook;
use ureq::Agent;

use super::{Fact, host_of};

/// How often a running program is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Where programs that a hook's program runs are found.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A hook did not do what it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    #[error("cannot run {program}: {cause}")]
    NotRun { program: String, cause: io::Error },
    #[error("{program} ended with {status}")]
    Ended { program: String, status: ExitStatus },
    #[error("{what} took longer than {limit_s} s")]
    TimedOut { what: String, limit_s: u64 },
    #[error("webhook to {host}: {cause}")]
    NotTold { host: String, cause: ureq::Error },
    #[error("the facts cannot be written: {0}")]
    Facts(serde_json::Error),
}

/// Runs a hook's program and tells its webhook, whichever it has. A failure of the one does not
/// keep the other back.
pub(super) fn run(hook: &Hook, fact: &Fact) -> Result<(), HookError> {
    let facts = serde_json::to_string(fact).map_err(HookError::Facts)?;
    let ran = match hook.command.split_first() {
        Some((program, arguments)) => command(program, arguments, fact, &facts, hook.timeout),
        None => Ok(()),
    };
    let told = match &hook.webhook {
        Some(url) => post(url, &facts, hook.timeout),
        None => Ok(()),
    };
    ran.and(told)
}

fn command(
    program: &str,
    arguments: &[String],
    fact: &Fact,
    facts: &str,
    limit: Duration,
) -> Result<(), HookError> {
    let not_run = |cause| HookError::NotRun { program: program.to_owned(), cause };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("PLAIT_EVENT", fact.event)
        .env("PLAIT_TIME", fact.time_s.to_string())
        .env("PLAIT_TUN", &fact.tun)
        .env("PLAIT_PEER", text(&fact.peer))
        .env("PLAIT_PATH", text(&fact.path))
        .env("PLAIT_REASON", text(&fact.reason))
        .env("PLAIT_LEFT_OUT", fact.left_out.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Whatever it starts is ended with it.
        .process_group(0)
        .spawn()
        .map_err(not_run)?;
    if let Some(mut stdin) = child.stdin.take() {
        // They are shorter than a pipe is; a program that does not read them need not.
        let _ = stdin.write_all(facts.as_bytes());
    }
    match wait(&mut child, limit) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(HookError::Ended { program: program.to_owned(), status }),
        Ok(None) => Err(HookError::TimedOut { what: program.to_owned(), limit_s: limit.as_secs() }),
        Err(cause) => Err(not_run(cause)),
    }
}

/// Waits for a program; `None` when it took too long and was killed.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            kill_group(child)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Sends the facts to a webhook. Its answer's code counts, and nothing else of it is read.
fn post(url: &str, facts: &str, limit: Duration) -> Result<(), HookError> {
    let config = Agent::config_builder()
        .timeout_global(Some(limit))
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("plait/", env!("CARGO_PKG_VERSION")));
    let agent: Agent = config.build().into();
    let sent = agent.post(url).header("Content-Type", "application/json").send(facts);
    let host = || host_of(url).to_owned();
    match sent {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => {
            let cause = ureq::Error::StatusCode(answer.status().as_u16());
            Err(HookError::NotTold { host: host(), cause })
        }
        Err(ureq::Error::Timeout(_)) => {
            let what = format!("the webhook to {}", host());
            Err(HookError::TimedOut { what, limit_s: limit.as_secs() })
        }
        Err(cause) => Err(HookError::NotTold { host: host(), cause }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    fn fact() -> Fact {
        Fact {
            event: "path-down",
            time_s: 7,
            tun: "plait0".into(),
            peer: Some("S0VZ".into()),
            path: Some("dsl".into()),
            reason: None,
            left_out: 2,
        }
    }

    #[test]
    fn a_program_gets_the_facts_by_environment_and_by_json() {
        let out = std::env::temp_dir().join(format!("plait-hook-{}", std::process::id()));
        let script = "{ env | grep ^PLAIT_ | sort; cat; } > \"$1\"";
        let arguments = ["-c", script, "sh", &out.to_string_lossy()].map(str::to_owned);
        let facts = serde_json::to_string(&fact()).unwrap();
        command("/bin/sh", &arguments, &fact(), &facts, Duration::from_secs(5)).unwrap();
        let text = std::fs::read_to_string(&out).unwrap();
        std::fs::remove_file(out).unwrap();
        assert_eq!(
            text,
            format!(
                "PLAIT_EVENT=path-down\nPLAIT_LEFT_OUT=2\nPLAIT_PATH=dsl\nPLAIT_PEER=S0VZ\n\
                 PLAIT_REASON=\nPLAIT_TIME=7\nPLAIT_TUN=plait0\n{facts}"
            )
        );
    }

    /// A server that gives one answer, or none; and what it was asked.
    fn served(answer: Option<&'static str>, url_path: &str) -> (Result<(), HookError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}{url_path}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let (mut asked, mut part) = (Vec::new(), [0; 4096]);
            while let Ok(read @ 1..) = client.read(&mut part) {
                asked.extend_from_slice(&part[..read]);
            }
            match answer {
                Some(answer) => client.write_all(answer.as_bytes()).unwrap(),
                None => thread::sleep(Duration::from_secs(2)),
            }
            String::from_utf8(asked).unwrap()
        });
        let result = post(&url, "{\"event\":1}", Duration::from_secs(1));
        (result, server.join().unwrap())
    }

    #[test]
    fn a_webhook_gets_json_and_its_code_counts() {
        let (result, asked) = served(Some("HTTP/1.1 204 No Content\r\n\r\n"), "/told?x=1");
        result.unwrap();
        assert!(asked.starts_with("POST /told?x=1 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.to_lowercase().contains("content-type: application/json\r\n"), "{asked}");
        assert!(asked.ends_with("\r\n\r\n{\"event\":1}"), "{asked}");
        for answer in ["HTTP/1.1 500 Odd\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 302 X\r\n\r\n"] {
            let error = served(Some(answer), "/").0.unwrap_err();
            assert!(matches!(error, HookError::NotTold { .. }), "{error}");
        }
    }

    #[test]
    fn a_webhook_that_never_answers_is_given_up() {
        let begun = Instant::now();
        let error = served(None, "/").0.unwrap_err();
        assert!(matches!(error, HookError::TimedOut { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
