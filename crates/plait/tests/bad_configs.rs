//! Runs the program on what must be refused: exit code 2, the exact words on stderr, nothing left
//! behind.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "bad_configs/cases.rs"]
mod cases;
#[path = "bad_configs/nodes.rs"]
mod nodes;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cases::{A, CASES};
use nodes::NODES;

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plait-bad-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        cases::write_keys(&path);
        Self(path)
    }

    /// Runs `plait ARGS` in the folder, with `gw.toml` holding `text`.
    fn run(&self, text: &str, args: &[&str]) -> Output {
        fs::write(self.0.join("gw.toml"), text).unwrap();
        finish(&mut plait(&self.0, args))
    }
}

/// Runs a program to its end. A gateway that starts although it must not is stopped, and its TUN
/// device goes with it.
fn finish(command: &mut Command) -> Output {
    const LIMIT: Duration = Duration::from_secs(20);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("it runs where it must refuse to: {}", stderr(&output));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left in the temporary directory does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plait(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).current_dir(folder).env_remove("RUST_LOG");
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A sound gateway that listens, with `more` at its end.
fn listening(port: u16, more: &str) -> String {
    format!(
        "[gateway]\nprivate_key_file = \"gateway.key\"\naddress = \"10.99.0.2/24\"\n\
         tun = \"plait-test\"\nlisten_port = {port}\n\n\
         [[peer]]\npublic_key = \"{A}\"\nallowed_ips = \"10.99.0.1\"\n{more}"
    )
}

#[test]
fn up_refuses_each_bad_configuration_in_clear_words() {
    for case in CASES {
        let output = Folder::new().run(&case.text(), &["up", "gw.toml"]);
        let error = |(text, help): &(&str, &str)| format!("plait: error: {text}\n  help: {help}\n");
        assert_eq!(
            stderr(&output),
            case.errors.iter().map(error).collect::<String>(),
            "{}",
            case.name
        );
        assert_eq!(output.status.code(), Some(2), "{}", case.name);
        assert_eq!(stdout(&output), "", "{}", case.name);
    }
}

#[test]
fn check_reports_each_bad_configuration_as_findings() {
    for case in CASES {
        let output = Folder::new().run(&case.text(), &["check", "gw.toml"]);
        let finding =
            |(text, help): &(&str, &str)| format!("error    {text}\n         help: {help}\n");
        let (count, plural) = (case.errors.len(), if case.errors.len() == 1 { "" } else { "s" });
        let expected = case.errors.iter().map(finding).collect::<String>()
            + &format!("{count} error{plural}, 0 warnings\n");
        assert_eq!(stdout(&output), expected, "{}", case.name);
        assert_eq!(output.status.code(), Some(2), "{}", case.name);
    }
}

#[test]
fn steer_refuses_each_bad_node_in_clear_words() {
    for case in NODES {
        for args in [&["steer", "gw.toml"][..], &["steer", "--client-rules", "gw.toml"]] {
            let output = Folder::new().run(&case.text(), args);
            let error =
                |(text, help): &(&str, &str)| format!("plait: error: {text}\n  help: {help}\n");
            assert_eq!(
                stderr(&output),
                case.errors.iter().map(error).collect::<String>(),
                "{}",
                case.name
            );
            assert_eq!(output.status.code(), Some(2), "{}", case.name);
            assert_eq!(stdout(&output), "", "{}", case.name);
        }
    }
}

#[test]
fn a_file_of_the_other_kind_is_told_by_its_command() {
    let output = Folder::new().run("[node]\n", &["up", "gw.toml"]);
    assert_eq!(
        stderr(&output),
        "plait: error: gw.toml: this describes a steering node, not a gateway\n  \
         help: run it with `plait steer gw.toml`\n"
    );
    let output = Folder::new().run("[gateway]\n", &["steer", "gw.toml"]);
    assert_eq!(
        stderr(&output),
        "plait: error: gw.toml: this describes a gateway, not a steering node\n  \
         help: run it with `plait up gw.toml`\n"
    );
}

#[test]
fn a_missing_file_is_named() {
    let output = finish(&mut plait(Path::new("/"), &["up", "nonexistent.toml"]));
    assert_eq!(
        stderr(&output),
        "plait: error: nonexistent.toml: cannot read the configuration: \
         No such file or directory (os error 2)\n  help: give the path of an existing file; \
         docs/guide/quickstart.md has one to start from\n"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_missing_interface_is_named_with_those_that_exist() {
    let text = listening(free_port(), "[[path]]\ninterface = \"nosuch0\"\n");
    let output = Folder::new().run(&text, &["check", "gw.toml"]);
    let expected = "warning  gw.toml:11: [[path]] interface: no interface called nosuch0 now; \
                    the path waits for it\n         \
                    help: this machine has: lo";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_foreign_address_is_named() {
    // TEST-NET-1 (RFC 5737) belongs to no machine.
    let text = listening(free_port(), "[[path]]\naddress = \"192.0.2.9\"\n");
    let output = Folder::new().run(&text, &["check", "gw.toml"]);
    let expected = "gw.toml:11: [[path]] address: 192.0.2.9 is not an address of this machine now; \
                    the path waits\n";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_port_in_use_is_named() {
    let holder = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let output = Folder::new().run(&listening(port, ""), &["check", "gw.toml"]);
    let expected =
        format!("error    gw.toml:5: [gateway] listen_port: UDP port {port} is in use by `");
    assert!(stdout(&output).contains(&expected), "{}", stdout(&output));
    let holder = format!(
        " (process {})\n         help: stop that, or choose another port\n",
        std::process::id()
    );
    assert!(stdout(&output).contains(&holder), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_interface_that_has_the_devices_name_is_in_the_way() {
    let text = listening(free_port(), "").replace("plait-test", "lo");
    let output = Folder::new().run(&text, &["check", "gw.toml"]);
    let expected = "error    tun: an interface called lo exists already\n";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
}

#[test]
fn missing_rights_end_up_before_anything_is_set_up() {
    const NOBODY: u32 = 65_534;
    let folder = Folder::new();
    // The binary and the keys must be readable for a user without rights.
    let program = folder.0.join("plait");
    fs::copy(env!("CARGO_BIN_EXE_plait"), &program).unwrap();
    for name in ["plait", "gateway.key", "."] {
        fs::set_permissions(folder.0.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let text = listening(free_port(), "");
    let text = text.replacen("tun =", "allow_open_key_files = true\ntun =", 1);
    fs::write(folder.0.join("gw.toml"), text).unwrap();
    let mut command = Command::new(&program);
    command.args(["up", "gw.toml"]).current_dir(&folder.0).env("RUST_LOG", "off");
    let i_am_root = fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    if i_am_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = finish(&mut command);
    let text = stderr(&output);
    // Where the device node is root's own, that is what comes first.
    let device = "plait: error: /dev/net/tun: ";
    let rights =
        "plait: error: rights: no right to set up a TUN device: CAP_NET_ADMIN is missing\n";
    assert!(text.starts_with(device) || text.starts_with(rights), "{text}");
    assert!(text.contains("\n  help: "), "{text}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_machine_without_a_tun_device_is_told_so() {
    let folder = Folder::new();
    fs::write(folder.0.join("gw.toml"), listening(free_port(), "")).unwrap();
    // A mount namespace of its own, where /dev/net is empty.
    let hide = "mount -t tmpfs none /dev/net && exec \"$0\" check gw.toml";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", hide])
        .arg(env!("CARGO_BIN_EXE_plait"))
        .current_dir(&folder.0)
        .output()
        .unwrap();
    if !stdout(&output).contains("/dev/net/tun") {
        let required = std::env::var_os("PLAIT_REQUIRE_NETNS").is_some_and(|value| value == "1");
        assert!(!required, "no mount namespace here: {}", stderr(&output));
        eprintln!("skipped: no mount namespace here: {}", stderr(&output));
        return;
    }
    let expected = "error    /dev/net/tun: no TUN device on this machine\n         \
                    help: load the driver with `modprobe tun`";
    assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn check_prints_json_lines_that_end_in_a_summary() {
    let output = Folder::new().run("[gateway]\nmtu = 1\n", &["check", "gw.toml", "--json"]);
    let text = stdout(&output);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0]["type"], "finding");
    assert_eq!(lines[0]["level"], "error");
    assert_eq!(lines[2]["type"], "summary");
    assert_eq!(lines[2]["errors"], 2);
    assert_eq!(output.status.code(), Some(2));
}

fn free_port() -> u16 {
    UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}
