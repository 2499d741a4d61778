//! The scripts that `make` runs, with fakes in the place of the programs that they call.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What the scripts need of the system.
const SYSTEM: [&str; 9] =
    ["bash", "env", "grep", "cat", "rm", "mktemp", "true", "dirname", "realpath"];

/// A folder with programs, removed at the end.
struct Programs(PathBuf);

impl Programs {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("plait-scripts-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for program in SYSTEM {
            let found = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(program));
            let found = found.iter().find(|path| path.exists()).unwrap();
            symlink(found, folder.join(program)).unwrap();
        }
        Self(folder)
    }

    fn add(&self, name: &str, script: &str) {
        let path = self.0.join(name);
        fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, script: &str, args: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
        Command::new("bash")
            .arg(script)
            .args(args)
            .env("PATH", &self.0)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A machine without `iperf3`, whose apt is busy for the first calls.
fn machine(name: &str, busy_calls: u32, complaint: &str) -> Programs {
    let programs = Programs::new(name);
    programs.add("cargo", "true");
    programs.add("id", "echo 0");
    programs.add("sleep", "true");
    programs.add(
        "apt-get",
        &format!(
            "echo call >> calls; mapfile -t calls < calls\n\
             [ ${{#calls[@]}} -gt {busy_calls} ] && exit 0\n\
             echo \"{complaint}\" >&2; exit 100"
        ),
    );
    programs
}

#[test]
fn regression_setup_waits_for_another_apt() {
    let lock = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)";
    let programs = machine("busy", 3, lock);
    let output = programs.run("setup", &[]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("another program holds apt's lock; waiting"), "{said}");
    assert!(said.contains("held by process 77"), "{said}");
    // Three in vain, then the lists and the packages.
    let calls = fs::read_to_string(programs.0.join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 5);
}

#[test]
fn setup_waits_neither_for_ever_nor_for_other_errors() {
    let programs = machine("stuck", u32::MAX, "E: Unable to lock the list directory");
    let output = programs.run("setup", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("apt's lock is still held after 600 s"), "{said}");
    let programs = machine("offline", u32::MAX, "E: Failed to fetch http://deb.example/x");
    let output = programs.run("setup", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("Failed to fetch") && said.contains("apt-get update failed"), "{said}");
}

#[test]
fn cargo_in_a_log_counts_crates_and_passes_errors_and_its_exit_code_on() {
    let programs = Programs::new("cargo");
    programs.add(
        "cargo",
        "echo '   Compiling one v1' >&2; echo '   Compiling two v1' >&2\n\
         echo 'error[E0001]: wrong' >&2; echo out; exit 101",
    );
    let output = programs.run("cargo", &["build"]);
    assert_eq!(output.status.code(), Some(101));
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("out\n".into(), "error[E0001]: wrong\n".into())
    );
}

#[test]
fn the_kernel_is_not_built_without_what_builds_it() {
    let programs = Programs::new("kernel");
    let output = programs.run("linux-6.1", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("apt-get install") && said.contains("flex bison bc make"), "{said}");
}

#[test]
fn guests_name_what_they_are_missing() {
    let output = Programs::new("image").run("linux-6.1-amd64", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("dpkg-deb is missing") && said.contains("install dpkg"), "{said}");
    let output = machine("vm", 0, "").run("setup", &["--check", "--vm"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("qemu-system-x86_64 is missing, for the guest qemu"), "{said}");
    let without = text(&machine("no-vm", 0, "").run("setup", &["--check"]).stdout);
    assert!(!without.contains("plait-lab vm"), "{without}");
}

#[test]
fn the_page_is_not_built_without_what_builds_it() {
    let output = Programs::new("page").run("qoe-app", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("node is missing") && said.contains("run scripts/setup"), "{said}");
}

#[test]
fn setup_goes_on_without_a_browser_except_in_ci() {
    let programs = machine("video", 0, "");
    programs.add(
        "apt-get",
        "case \"$*\" in *chromium*) echo 'E: Unable to locate chromium' >&2; exit 100 ;; esac",
    );
    let output = programs.run("setup", &["--video"]);
    let said = text(&output.stdout);
    assert!(said.contains("chromium is missing") && said.contains("going on without"), "{said}");
    let is_ci = std::env::var("PLAIT_REQUIRE_NETNS").as_deref() == Ok("1");
    assert_eq!(output.status.success(), !is_ci, "{said}");
    // Without the option nobody is asked for a browser.
    let output = programs.run("setup", &[]);
    assert!(output.status.success() && !text(&output.stdout).contains("chromium"));
}

#[test]
fn setup_installs_what_live_streams_need() {
    let programs = machine("live", 0, "");
    let output = programs.run("setup", &["--live"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for package in ["ffmpeg", "srt-tools"] {
        let line = said.lines().find(|line| line.starts_with("setup: installing"));
        assert!(line.is_some_and(|line| line.contains(package)), "{package}: {said}");
    }
    let said = text(&programs.run("setup", &["--check"]).stdout);
    assert!(!said.contains("srt-tools"), "{said}");
}

#[test]
fn each_alert_fires_when_it_should() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus");
    if !Path::new("/usr/bin/promtool").exists() {
        eprintln!("SKIPPED: promtool is missing; run scripts/setup --observe");
        return;
    }
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let output = Command::new("/usr/bin/promtool")
            .args(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    }
    let tests = fs::read_to_string(folder.join("alerts_test.yml")).unwrap();
    let rules = fs::read_to_string(folder.join("alerts.yml")).unwrap();
    for rule in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let fires = format!("alertname: {rule}\n        exp_alerts:");
        assert!(tests.contains(&fires), "{rule} has no case");
    }
}

/// A repository with a version and a changelog, in which `make test` does this.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str, make: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("plait-version-{}-{name}", std::process::id()));
        let repository = Self(folder);
        for place in ["scripts", "bin"] {
            fs::create_dir_all(repository.0.join(place)).unwrap();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/new-version");
        fs::copy(script, repository.0.join("scripts/new-version")).unwrap();
        fs::write(
            repository.0.join("Cargo.toml"),
            "[workspace.package]\nversion = \"0.2.0-dev\"\n",
        )
        .unwrap();
        fs::write(repository.0.join("Cargo.lock"), "").unwrap();
        fs::write(
            repository.0.join("CHANGELOG.md"),
            "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- News.\n\n## [0.1.0] - 2026-01-01\n\n\
             - Old.\n",
        )
        .unwrap();
        for (program, line) in [("cargo", "true"), ("make", make)] {
            let path = repository.0.join("bin").join(program);
            fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.git(&["add", "--all"]);
        repository.git(&["commit", "--quiet", "--message", "Begin 0.2.0"]);
        repository
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap();
        command.current_dir(&self.0).stdin(Stdio::null());
        command.env("PATH", format!("{}:{path}", self.0.join("bin").display()));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "plait");
            command.env(format!("GIT_{role}_EMAIL"), "plait@localhost");
        }
        command
    }

    fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn release(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.command("scripts/new-version").args(args).output().unwrap();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn one_command_makes_a_release() {
    let repository = Repository::new("makes", "exit 0");
    let (code, said) = repository.release(&["0.2.0", "--dry-run"]);
    assert!(code == Some(0) && said.contains("- News."), "{code:?}: {said}");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    let (code, said) = repository.release(&["0.2.0", "--no-package"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        repository.git(&["log", "--format=%s"]),
        "Begin 0.3.0\nRelease 0.2.0\nBegin 0.2.0\n",
        "{said}"
    );
    assert!(repository.git(&["show", "v0.2.0:Cargo.toml"]).contains("version = \"0.2.0\""));
    let changelog = repository.git(&["show", "v0.2.0:CHANGELOG.md"]);
    let news = changelog.find("- News.").unwrap();
    let heading = changelog.find("## [0.2.0] - 2").unwrap();
    assert!(changelog.find("## [Unreleased]").unwrap() < heading && heading < news, "{changelog}");
    let now = fs::read_to_string(repository.0.join("Cargo.toml")).unwrap();
    assert!(now.contains("version = \"0.3.0-dev\""), "{now}");
    // Nothing is new since.
    let (code, said) = repository.release(&["0.3.0", "--no-package"]);
    assert!(code == Some(2) && said.contains("nothing under [Unreleased]"), "{code:?}: {said}");
}

#[test]
fn a_release_that_fails_its_tests_changes_nothing() {
    let repository = Repository::new("fails", "exit 1");
    let (code, said) = repository.release(&["0.2.0", "--no-package"]);
    assert!(code == Some(2) && said.contains("the tests failed"), "{code:?}: {said}");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    assert_eq!(repository.git(&["log", "--format=%s"]), "Begin 0.2.0\n");
    for (version, reason) in
        [("0.1.9", "older than"), ("1", "no version"), ("1.0", "no version"), ("--now", "unknown")]
    {
        let (code, said) = repository.release(&[version]);
        assert!(code == Some(2) && said.contains(reason), "{version}: {code:?}: {said}");
    }
    fs::write(repository.0.join("Cargo.lock"), "changed").unwrap();
    let (code, said) = repository.release(&["0.2.0"]);
    assert!(code == Some(2) && said.contains("not committed"), "{code:?}: {said}");
}
