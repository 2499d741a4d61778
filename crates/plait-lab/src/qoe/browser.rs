//! Headless Chromium, driven over a pipe by the DevTools protocol: nothing of it goes over the
//! network that is measured.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use plait_net::netns::{NetNs, ProcessIdentity};
use serde_json::{Value, json};

use super::PlayError;

pub(crate) const CHROMIUM: &str = "/usr/bin/chromium";
/// Chromium calls home at its start; these keep it from most of it, and a resolver that knows only
/// the hosts that are wanted from the rest.
const QUIET: [&str; 20] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--disable-features=MediaRouter,OptimizationHints,Translate",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--metrics-recording-only",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
];
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How a browser is started.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    /// The network that it is in; the lab's own when none is given.
    pub(crate) netns: Option<&'a NetNs>,
    /// All that it may reach.
    pub(crate) hosts: Vec<String>,
    /// Such as `http://10.3.0.1:3128`.
    pub(crate) proxy: Option<&'a str>,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A running browser with one page. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    session: String,
    number: u64,
    profile: Profile,
}

/// A folder for what a browser writes, removed at the end.
#[derive(Debug)]
struct Profile(PathBuf);

impl Profile {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // In its own namespaces every lab has the same process number.
        let pid = ProcessIdentity::outside().map_or_else(std::process::id, |owner| owner.pid);
        let name = format!("plait-qoe-{pid}-{number}");
        let path = std::env::temp_dir().join(name);
        let _left_by_a_killed_one = fs::remove_dir_all(&path);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn log(&self) -> PathBuf {
        self.0.join("chromium.log")
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let _in_use = fs::remove_dir_all(&self.0);
    }
}

/// Whether there is a browser to start.
pub(crate) fn check() -> Result<(), PlayError> {
    if Path::new(CHROMIUM).exists() { Ok(()) } else { Err(PlayError::NoChromium) }
}

impl Browser {
    /// Starts Chromium with an empty page.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self, PlayError> {
        check()?;
        let profile = Profile::new().map_err(PlayError::Start)?;
        let log = File::create(profile.log()).map_err(PlayError::Start)?;
        // DevTools speaks on descriptors 3 and 4.
        let script = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >&2"#;
        let mut command = match start.netns {
            Some(netns) => netns.command("sh"),
            None => Command::new("sh"),
        };
        command.args(["-c", script, CHROMIUM]).args(QUIET).args(arguments(start, &profile.0));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().map_err(PlayError::Start)?;
        let (to, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, from) = mpsc::channel();
        std::thread::spawn(move || {
            let parts = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).split(0));
            for message in parts.map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self { child, to, from, session: String::new(), number: 0, profile };
        browser.attach()?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<(), PlayError> {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.call("Target.attachToTarget", target)?;
        self.session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        self.call("Page.enable", json!({}))?;
        Ok(())
    }

    /// Calls a method of the protocol, and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, PlayError> {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut text = message.to_string().into_bytes();
        text.push(0);
        let sent = self.to.as_mut().map_or(Ok(()), |to| to.write_all(&text));
        if sent.is_err() {
            return Err(self.gone());
        }
        let deadline = Instant::now() + ANSWER_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = match self.from.recv_timeout(left) {
                Ok(answer) => answer,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(PlayError::Deaf { method: method.to_owned() });
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(self.gone()),
            };
            if answer["method"] == "Inspector.targetCrashed" {
                return Err(PlayError::Page("the page crashed".into()));
            }
            if answer["id"] != self.number {
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(PlayError::Page(format!("{method}: {}", error["message"]))),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    /// Opens an address.
    pub(crate) fn open(&mut self, url: &str) -> Result<(), PlayError> {
        let answer = self.call("Page.navigate", json!({ "url": url }))?;
        match answer["errorText"].as_str() {
            Some(error) => Err(PlayError::Unreachable { url: url.into(), why: error.into() }),
            None => Ok(()),
        }
    }

    /// What an expression of JavaScript gives on the page; promises are waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value, PlayError> {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let what = &thrown["exception"]["description"];
            return Err(PlayError::Page(format!("{expression}: {what}")));
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true on the page.
    pub(crate) fn wait_for(&mut self, expression: &str, limit: Duration) -> Result<(), PlayError> {
        let deadline = Instant::now() + limit;
        while self.evaluate(expression)? != true {
            if Instant::now() > deadline {
                let what = expression.to_owned();
                return Err(PlayError::Late { what, limit_s: limit.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Why the browser does not answer any more.
    fn gone(&mut self) -> PlayError {
        let log = fs::read_to_string(self.profile.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(5).collect();
        PlayError::Gone { said: lines.into_iter().rev().collect::<Vec<_>>().join("; ") }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session.clear();
        // It ends its own children when it is asked to end, and not when it is killed.
        if let Some(to) = &mut self.to {
            let _gone = to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        }
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < CLOSE_LIMIT {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn arguments(start: &Start<'_>, profile: &Path) -> Vec<String> {
    let Start { width, height, .. } = start;
    let mut rules = vec!["MAP * ~NOTFOUND".to_owned()];
    rules.extend(start.hosts.iter().map(|host| format!("EXCLUDE {host}")));
    let mut arguments = vec![
        "--remote-debugging-pipe".to_owned(),
        format!("--user-data-dir={}", profile.display()),
        format!("--window-size={width},{height}"),
        format!("--host-resolver-rules={}", rules.join(", ")),
    ];
    arguments.push(match start.proxy {
        Some(proxy) => format!("--proxy-pac-url={}", allow_list(&start.hosts, proxy)),
        None => "--no-proxy-server".to_owned(),
    });
    arguments
}

/// A script by which only requests to these hosts go to the proxy: it would look up any other for
/// Chromium, which calls home. What is left goes to the resolver, which knows none.
fn allow_list(hosts: &[String], proxy: &str) -> String {
    use base64::Engine as _;
    let authority = proxy.split_once("://").map_or(proxy, |(_, rest)| rest).trim_end_matches('/');
    let hosts = json!(hosts);
    let script = format!(
        "function FindProxyForURL(url, host) {{ return {hosts}.includes(host) || \
         {hosts}.includes('[' + host + ']') ? 'PROXY {authority}' : 'DIRECT'; }}"
    );
    let script = base64::engine::general_purpose::STANDARD.encode(script);
    format!("data:application/x-ns-proxy-autoconfig;base64,{script}")
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn a_browser_reaches_only_what_it_is_for() {
        let hosts = vec!["10.3.0.2".to_owned(), "10.3.0.1".to_owned()];
        let proxy = Some("http://10.3.0.1:3128");
        let start = Start { netns: None, hosts, proxy, width: 1280, height: 900 };
        let arguments = arguments(&start, Path::new("/p"));
        assert!(arguments.contains(
            &"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 10.3.0.2, EXCLUDE 10.3.0.1".into()
        ));
        let script = arguments.iter().find_map(|argument| argument.split_once(";base64,"));
        let script = base64::engine::general_purpose::STANDARD.decode(script.unwrap().1).unwrap();
        let script = String::from_utf8(script).unwrap();
        assert!(script.contains("'PROXY 10.3.0.1:3128' : 'DIRECT'"), "{script}");
        assert!(script.contains(r#"["10.3.0.2","10.3.0.1"].includes(host)"#), "{script}");
    }
}
