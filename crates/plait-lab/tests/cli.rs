//! The command line as a script sees it: exit status, JSON Lines, errors on standard error.

use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Outside a lab, `clean` ends what another test has begun for it to spare: one at a time.
fn alone_with_clean() -> MutexGuard<'static, ()> {
    static CLEANS: Mutex<()> = Mutex::new(());
    CLEANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lab(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait-lab"));
    command.args(arguments).output().expect("the lab was built with this test, so it can be run")
}

/// The `type` of each line, every line being an object that begins with it.
fn record_types(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).expect("JSON is UTF-8");
    let record_type = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).expect("a line is a record");
        assert!(line.starts_with(r#"{"type":"#), "{line}");
        record["type"].as_str().expect("a type is a string").to_owned()
    };
    text.lines().map(record_type).collect()
}

#[test]
fn json_lines_end_in_a_summary() {
    let _alone = alone_with_clean();
    for arguments in [&["verify", "--list", "--json"][..], &["clean", "--json"]] {
        let output = lab(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(record_types(&output).last().map(String::as_str), Some("summary"));
    }
    let lines = lab(&["verify", "--list"]).stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 10);
    assert_eq!(record_types(&lab(&["verify", "--list", "--json"])).len(), lines + 1);
}

#[test]
fn a_comparison_needs_a_scenario_for_both_back_ends() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    for (name, why) in [("002/table-loss-readings", "netns"), ("no/such", "no/such")] {
        let output = lab(&["compare", name, "--folder", folder]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty() && error.contains(why), "{error}");
    }
}

#[test]
fn a_wrong_command_is_an_error_on_standard_error() {
    let output = lab(&["no-such-command"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}

#[test]
fn an_error_inside_comes_out_with_its_status() {
    let output = lab(&["verify", "no.such.promise"]);
    // Where namespaces cannot be had, that is the error; its status is the same.
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("error: ") && !text.contains('\x1b'), "{text}");
}

/// `verify bond.6` runs these very tests inside a lab, in a clone that is a lab's folder.
#[test]
fn regression_clean_inside_a_lab_touches_nothing() {
    let _alone = alone_with_clean();
    let parent = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("clean-inside");
    let folder = parent.join("plait-lab-4194304-clone");
    std::fs::create_dir_all(&folder).expect("the folder can be written");
    std::fs::write(folder.join(".plait-lab-owner"), "4194304:1").expect("a file in it as well");
    let lab = env!("CARGO_BIN_EXE_plait-lab");
    let script = format!("sleep 20 & S=$!; {lab} clean >/dev/null; kill $S");
    let run = |inside: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("TMPDIR", &parent).env("PLAIT_NETNS_INSIDE", inside);
        command.status().expect("a shell")
    };
    // As the lab around it, and as one that is not to be found.
    for inside in ["4194304:1", "4194304:2"] {
        assert!(run(inside).success(), "the sleeping process was still there to be ended");
        assert!(folder.exists(), "a lab's folder was removed from inside a lab");
    }
    std::fs::remove_dir_all(&parent).expect("the folder is the test's own");
}

/// What is missing is told before any namespace is made, so no right to make them is needed.
#[test]
fn without_a_guest_the_error_names_what_makes_one() {
    let told = |variable: &str, guest: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plait-lab"));
        command.env(variable, "/none").args(["vm", "run", "--guest", guest, "--", "true"]);
        let output = command.output().expect("the lab was built with this test");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        String::from_utf8(output.stderr).expect("an error is text")
    };
    let uml = told("PLAIT_LINUX_6_1", "uml");
    assert!(uml.contains("scripts/linux-6.1,") && uml.contains("/none"), "{uml}");
    let qemu = told("PLAIT_LINUX_6_1_AMD64", "qemu");
    let elsewhere = cfg!(not(target_arch = "x86_64")) && qemu.contains("--guest uml");
    assert!(elsewhere || qemu.contains("scripts/linux-6.1-amd64,"), "{qemu}");
    assert_eq!(lab(&["vm", "run"]).status.code(), Some(2), "no command");
}

/// Every command of the guests has examples, and says what its exit status means.
#[test]
fn the_commands_of_guests_say_what_their_exit_status_means() {
    for command in ["check", "run", "transfers"] {
        let help = lab(&["vm", command, "--help"]);
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for part in ["Examples:", "Exit codes:", "--json"] {
            assert!(help.contains(part), "vm {command}: {part}: {help}");
        }
    }
}

const SCENARIO: &str = r#"name = "cli/bad"
title = "t"
source = "s"
backends = ["netns"]
duration_s = 1
links.dsl = { rate_mbit = 10, rtt_ms = 10 }
app = [{ name = "one", kind = "tcp", via = "dsl" }]
"#;

/// What is wrong is told before any namespace is made, so no right to make them is needed.
#[test]
fn what_netns_cannot_run_is_an_error_with_a_remedy() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let refused = |replaced: &str, by: &str, more: &[&str]| {
        let file = folder.join("cli-bad.toml");
        assert!(SCENARIO.contains(replaced), "{replaced} stands in the scenario");
        std::fs::write(&file, SCENARIO.replace(replaced, by)).expect("the folder can be written");
        let name = file.to_str().expect("the folder's name is text");
        let output = lab(&[&["run", name, "--on", "netns"], more].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        String::from_utf8(output.stderr).expect("an error is text")
    };
    let controller = refused("via", "controller = \"fixed\", via", &[]);
    assert!(
        controller.contains("\"fixed\" is no TCP congestion controller of Linux"),
        "{controller}"
    );
    assert!(controller.contains("choose another, or choose --on sim"), "{controller}");
    let web = refused("\"tcp\"", "\"web\", recovery = \"quic\"", &[]);
    assert!(web.contains("app.one: pages over QUIC are not on netns yet"), "{web}");
    let hidden = refused("", "", &["--out", "/run/x.jsonl"]);
    assert!(hidden.contains("/run/x.jsonl: ") && hidden.contains("elsewhere"), "{hidden}");
    let meant = refused("\"netns\"", "\"sim\"", &[]);
    assert!(meant.contains("meant for the simulator alone; choose --on sim"), "{meant}");
}

#[test]
fn the_holding_time_is_a_table_records_and_a_page() {
    let conditions = ["holding-time", "--rtt", "100", "--w", "38"];
    let output = lab(&conditions);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text.contains("optimum (000 eq. 5, sign put right)    49.9 ms"), "{text}");
    let types = record_types(&lab(&[&conditions[..], &["--json"]].concat()));
    let count = |kind: &str| types.iter().filter(|known| *known == kind).count();
    assert_eq!((count("figure"), count("point"), count("summary")), (12, 21, 1));
    assert_eq!(types.last().map(String::as_str), Some("summary"));

    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("holding.html");
    let name = file.to_str().expect("the folder's name is text");
    let output = lab(&[&conditions[..], &["--html", name]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = std::fs::read_to_string(&file).expect("the page was written");
    assert_eq!(page.matches("<figure>").count(), 3);
    for outside in ["http", "src=", "href=", "<script", "NaN", "inf\""] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_holding_time_of_nothing_is_refused() {
    for wrong in ["0", "-3", "inf", "fast"] {
        let output = lab(&["holding-time", "--rtt", wrong, "--w=38"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("--rtt"), "{error}");
    }
    let output = lab(&["holding-time", "--rtt", "9", "--w", "3", "--html", "/nowhere/x.html"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/x.html"));
}
