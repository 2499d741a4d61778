//! A real `plait proxy` on loopback: checked, run, read again, in its sandbox.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[path = "hosts/network.rs"]
mod network;

const PATIENCE: Duration = Duration::from_secs(20);

fn plait(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG").output().unwrap()
}

/// A proxy of its own folder; it ends with the test.
struct Proxy {
    folder: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

impl Proxy {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("plait-proxy-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // Free a moment ago, and nobody else asks for ports here.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let proxy = Self { folder, address, child: None };
        proxy.write("127.0.0.0/8", "");
        proxy
    }

    /// Its file: who may use it, and more of its options.
    fn write(&self, allow: &str, more: &str) {
        let (folder, address) = (self.folder.display(), self.address);
        let text = format!(
            "[proxy]\nallow = [\"{allow}\"]\nallow_to = [\"127.0.0.0/8\"]\nconnections_max = 10\n\
             control_socket = \"{folder}/p.sock\"\n{more}[[listen]]\naddress = \"{address}\"\n"
        );
        fs::write(self.folder.join("p.toml"), text).unwrap();
    }

    fn file(&self) -> String {
        self.folder.join("p.toml").display().to_string()
    }

    fn start(&mut self) {
        let log = fs::File::create(self.folder.join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
        command.args(["proxy", "run", &self.file()]).env_remove("RUST_LOG");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.child = Some(child);
        let begun = Instant::now();
        while plait(&["status", &self.file()]).status.code() != Some(0) {
            assert!(begun.elapsed() < PATIENCE, "it does not answer: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// What it says to a client that wants to go to `server`.
    fn ask(&self, server: SocketAddr) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_file_is_checked_while_its_proxy_runs_too() {
    let mut proxy = Proxy::new("check");
    let sound = plait(&["proxy", "check", &proxy.file()]);
    assert_eq!(sound.status.code(), Some(0), "{}", told(&sound));
    proxy.start();
    let again = plait(&["proxy", "check", &proxy.file(), "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", told(&again));
    assert!(told(&again).contains("held by the proxy that runs"), "{}", told(&again));
    let last = told(&again).lines().last().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&last).unwrap()["errors"], 0);
    let other = Proxy::new("check-other");
    let taken = fs::read_to_string(other.file()).unwrap();
    let taken = taken.replace(&other.address.to_string(), &proxy.address.to_string());
    fs::write(other.file(), taken).unwrap();
    let refused = plait(&["proxy", "check", &other.file()]);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("another program has port"), "{}", told(&refused));
}

#[test]
fn a_reload_is_followed_and_a_mistake_changes_nothing() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut proxy = Proxy::new("reload");
    proxy.start();
    assert_eq!(proxy.ask(address), "HTTP/1.1 200");
    proxy.write("192.0.2.0/24", "sandbox = false\n");
    let reloaded = plait(&["reload", &proxy.file()]);
    assert_eq!(reloaded.status.code(), Some(0), "{}", told(&reloaded));
    assert_eq!(proxy.ask(address), "HTTP/1.1 403");
    assert!(
        proxy.log().contains("[proxy] sandbox differs, and needs a restart"),
        "{}",
        proxy.log()
    );
    proxy.write("127.0.0.0/8", "no_such_option = 1\n");
    let refused = plait(&["reload", &proxy.file()]);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("no_such_option"), "{}", told(&refused));
    assert_eq!(proxy.ask(address), "HTTP/1.1 403");
    // As a service manager does it.
    proxy.write("127.0.0.0/8", "");
    let pid = proxy.child.as_ref().unwrap().id().to_string();
    assert!(
        Command::new("sh").args(["-c", "kill -HUP $1", "sh", &pid]).status().unwrap().success()
    );
    let begun = Instant::now();
    while proxy.ask(address) != "HTTP/1.1 200" {
        assert!(begun.elapsed() < PATIENCE, "{}", proxy.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_proxy_is_in_its_sandbox_unless_its_file_says_otherwise() {
    for (more, expected) in [("", true), ("sandbox = false\n", false)] {
        let mut proxy = Proxy::new(if expected { "in" } else { "out" });
        proxy.write("127.0.0.0/8", more);
        proxy.start();
        let status = plait(&["status", "--json", &proxy.file()]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        let parts = status["sandbox"].as_array().unwrap();
        let pid = proxy.child.as_ref().unwrap().id();
        let kernel = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        // 2: system calls are filtered.
        let is_filtered = kernel.lines().any(|line| line == "Seccomp:\t2");
        if expected && parts.is_empty() {
            eprintln!("skipped: this kernel has neither Landlock nor seccomp: {}", proxy.log());
            continue;
        }
        assert_eq!((!parts.is_empty(), is_filtered), (expected, expected), "{kernel}");
        // Names are still looked up.
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        write!(stream, "CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200", "{}", proxy.log());
    }
}

#[test]
fn a_role() {
    network::play();
}

#[test]
fn who_knows_of_no_proxy_is_led_through_it_by_both_families() {
    let script = r#"
        role internet serve 9000 &
        until_true at internet 'ss -ltn 2>/dev/null | grep -q :9000 || sleep 0.3'
        started() { exec nsenter -t $customer -n -m --wd=$here/customer plait proxy "$@"; }
        for way in redirect tproxy; do
            cat > customer/proxy.toml <<FILE
[proxy]
name = "near"
allow = ["192.168.7.0/24", "fd99:7::/64"]
control_socket = "/run/proxy.sock"
[[listen]]
address = "[::]:3129"
way = "$way"
[rules]
interfaces = ["lan"]
FILE
            started run proxy.toml 2>customer/proxy.log & proxy=$!
            until_true at customer plait status proxy.toml
            started rules --apply proxy.toml >customer/$way.log 2>&1 & rules=$!
            until_true grep -q 'connections are led' customer/$way.log
            for server in 203.0.113.1:9000 '[2001:db8::1]:9000'; do
                echo "$way $server: $(role lan connect $server | grep ^tcp)"
            done
            kill $rules; wait $rules; kill $proxy; wait $proxy
        done
    "#;
    let Some(text) = network::run(script) else { return };
    // The customer forwards nothing, so what arrives is the proxy's.
    for way in ["redirect", "tproxy"] {
        for (server, seen) in [("203.0.113.1:9000", "10.1.0.2"), ("[2001:db8::1]:9000", "fd01::2")]
        {
            let expected = format!("{way} {server}: tcp {seen}");
            assert!(text.contains(&expected), "no `{expected}` in:\n{text}");
        }
    }
}
