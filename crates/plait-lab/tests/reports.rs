//! Scenarios as a script runs them: list, run and report through the binary, in virtual time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const SCENARIO: &str = r#"
name = "small/two-links"
title = "Two links, one flow"
source = "chosen"
duration_s = 2

[links.dsl]
rate_mbit = 4
rtt_ms = 13

[links.lte]
rate_mbit = 2
rtt_ms = 40
loss = 0.02

[bond]
links = ["dsl", "lte"]

[[app]]
name = "flow"
kind = "udp"
rate = { mbit = 5, layer = "offered" }

[[sweep]]
key = "bond.scheduler.algorithm"
values = ["min-rtt", "round-robin"]

[capture]
series = ["link_throughput", "goodput", "losses"]

[[paper.value]]
metric = "goodput_mbit"
at = { algorithm = "min-rtt" }
value = 5

[[check]]
name = "offers"
metric = "offered_mbit"
low = 4
high = 6
source = "chosen"
"#;

/// A folder with one scenario, changed by replacing one text by another.
fn folder(test: &str, replaced: &str, by: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reports-{test}"));
    fs::create_dir_all(folder.join("small")).expect("the test's folder can be made");
    assert!(SCENARIO.contains(replaced), "{replaced} stands in the scenario");
    let text = SCENARIO.replacen(replaced, by, 1);
    fs::write(folder.join("small/two-links.toml"), text).expect("the folder can be written");
    folder
}

fn lab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait-lab"));
    command.args(arguments).current_dir(folder);
    command.output().expect("the lab was built with this test, so it can be run")
}

/// Runs the scenario of a folder.
fn run(folder: &Path, more: &[&str]) -> Output {
    let start = ["run", "small/two-links", "--on", "sim", "--folder", "."];
    lab(folder, &[&start, more].concat())
}

fn records(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is a record")).collect()
}

fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}

fn standard_error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_sweep_is_run_with_every_seed_and_told_in_order() {
    let folder = folder("sweep", "", "");
    let output = run(&folder, &["--seeds", "2", "--seed", "3", "--json", "--out", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let records = records(&output.stdout);
    let types: Vec<&str> = records.iter().filter_map(|record| record["type"].as_str()).collect();
    assert_eq!(types, ["run", "run", "run", "run", "cell", "cell", "check", "summary"]);
    let runs = of_type(&records, "run");
    let named = |run: &&Value| {
        (run["settings"]["algorithm"].as_str().unwrap().to_owned(), run["seed"].as_u64().unwrap())
    };
    let names: Vec<_> = runs.iter().map(named).collect();
    let expected = [("min-rtt", 3), ("min-rtt", 4), ("round-robin", 3), ("round-robin", 4)];
    assert_eq!(names, expected.map(|(name, seed)| (name.to_owned(), seed)));
    assert_eq!(runs[0]["series"]["goodput.flow"].as_array().map(Vec::len), Some(20));
    let cells = of_type(&records, "cell");
    let papers: Vec<&Value> = cells.iter().map(|cell| &cell["figures"][0]["paper"]).collect();
    assert_eq!(papers, [&serde_json::json!(5.0), &Value::Null]);
    let summary = records.last().unwrap();
    assert_eq!((&summary["ok"], &summary["checks"][0]["name"]), (&true.into(), &"offers".into()));
    assert_eq!(fs::read(folder.join("r.jsonl")).unwrap(), output.stdout);
}

#[test]
fn the_command_of_a_run_repeats_it() {
    let folder = folder("repeat", "", "");
    let output = run(&folder, &["--seeds", "2", "--json", "--set", "app.flow.rate.mbit=4.5"]);
    let all = records(&output.stdout);
    let original = of_type(&all, "run")[3];
    let command = original["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let repeated = records(&lab(&folder, &words).stdout);
    assert_eq!(of_type(&repeated, "run"), [original]);
    assert_ne!(of_type(&all, "run")[2]["metrics"], original["metrics"], "seeds differ");
}

#[test]
fn records_name_the_build_and_the_scenarios_text() {
    let digest = |folder: &Path| {
        let all = records(&run(folder, &["--json"]).stdout);
        let of = |record: &Value| (record["commit"].clone(), record["scenario_digest"].clone());
        let (commit, digest) = of(&all[0]);
        assert_eq!(of(all.last().unwrap()), (commit.clone(), digest.clone()));
        let commit = commit.as_str().unwrap().split('+').next().unwrap().to_owned();
        let is_commit = commit.len() >= 12 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(is_commit || commit == "unknown", "{commit}");
        digest.as_str().unwrap().to_owned()
    };
    let plain = digest(&folder("digest", "", ""));
    assert_eq!(plain.len(), 64);
    assert_eq!(plain, digest(&folder("digest-again", "", "")), "a folder is no part of the text");
    assert_ne!(plain, digest(&folder("digest-other", "loss = 0.02", "loss = 0.03")));
    let like = "like = \"lte.toml\"\nrate_mbit = 2";
    let named = folder("digest-named", "rate_mbit = 2", like);
    let conditions = |loss: f64| {
        let text = format!("rate_mbit = 3\nrtt_ms = 40\nloss = {loss}\n");
        fs::write(named.join("small/lte.toml"), text).expect("the folder can be written");
        digest(&named)
    };
    assert_ne!(conditions(0.01), conditions(0.02), "files that it names are part of it");
}

#[test]
fn the_report_writes_the_page_that_the_run_wrote() {
    let folder = folder("page", "", "");
    let arguments = ["--out", "r.jsonl", "--html", "run.html"];
    let of_run = run(&folder, &arguments);
    assert_eq!(of_run.status.code(), Some(0), "{of_run:?}");
    let of_report = lab(&folder, &["report", "r.jsonl", "--html", "report.html"]);
    assert_eq!(of_report.status.code(), Some(0), "{of_report:?}");
    assert_eq!(of_run.stdout, of_report.stdout);
    let text = String::from_utf8(of_run.stdout).unwrap();
    assert!(text.contains("goodput_mbit") && text.contains("The one required check holds."));
    let page = fs::read_to_string(folder.join("run.html")).unwrap();
    assert_eq!(page, fs::read_to_string(folder.join("report.html")).unwrap());
    assert!(page.contains("Simulated") && page.contains("<svg") && !page.contains("NaN"));
    let json = lab(&folder, &["report", "r.jsonl", "r.jsonl", "--json"]);
    let mut passed_on = records(&json.stdout);
    let summary = passed_on.pop().unwrap();
    let original = records(&fs::read(folder.join("r.jsonl")).unwrap());
    assert_eq!(passed_on[..original.len() - 1], original[..original.len() - 1]);
    assert_eq!((&summary["name"], &summary["experiments"]), (&"report".into(), &2.into()));
}

#[test]
fn a_required_check_decides_the_status() {
    let failing = folder("failing", "low = 4", "low = 5.9");
    let output = run(&failing, &["--out", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(lab(&failing, &["report", "r.jsonl"]).status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Failed: offers."), "{text}");
    let informing = folder("informing", "low = 4", "low = 5.9\nrequired = false");
    assert_eq!(run(&informing, &[]).status.code(), Some(0));
}

#[test]
fn what_is_wrong_is_told_with_place_and_remedy() {
    let folder = folder("wrong", "rate_mbit = 4", "rate_mbit = -4\nrtt = 5");
    let output = run(&folder, &["--out", "never.jsonl"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let text = standard_error(&output);
    assert!(text.contains("two-links.toml:8: ") && text.contains("two-links.toml:9: "), "{text}");
    assert_eq!(text.matches("\n  help: ").count(), 2, "{text}");
    assert!(!folder.join("never.jsonl").exists(), "nothing is written before all is checked");
    let output = lab(&folder, &["list", "--folder", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(standard_error(&output).contains("1 of 1 scenarios cannot be read"));
}

#[test]
fn names_lead_to_files() {
    let folder = folder("names", "\"small/two-links\"", "\"small/other\"");
    let output = run(&folder, &[]);
    assert!(standard_error(&output).contains("write name = \"small/two-links\""), "{output:?}");
    let output = lab(&folder, &["run", "small/no-links", "--on", "sim", "--folder", "."]);
    assert!(standard_error(&output).contains("did you mean one of: small/two-links?"));
    let output = lab(&folder, &["run", "small/two-links.toml", "--on", "sim"]);
    assert_eq!(output.status.code(), Some(0), "a file may have any name: {output:?}");
    let output = run(&folder, &["--seed", "18446744073709551615"]);
    assert!(standard_error(&output).contains("choose a smaller one"), "{output:?}");
    let output = lab(&folder, &["list", "--folder", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(standard_error(&output).contains("nowhere: no such folder"));
}

#[test]
fn namespaces_are_refused_and_the_remedy_is_told() {
    let refused = |folder: &Path| {
        let arguments = ["run", "small/two-links", "--on", "netns", "--folder", "."];
        let output = lab(folder, &arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(standard_error(&output).contains("choose --on sim"), "{output:?}");
        standard_error(&output)
    };
    assert!(refused(&folder("sim-only", "", "")).contains("meant for the simulator alone"));
    let both = folder("both", "duration_s = 2", "duration_s = 2\nbackends = [\"sim\", \"netns\"]");
    let web = "\n[[app]]\nname = \"pages\"\nkind = \"web\"\nrecovery = \"quic\"\n";
    let scenario = both.join("small/two-links.toml");
    let text = fs::read_to_string(&scenario).unwrap() + web;
    fs::write(&scenario, text).unwrap();
    assert!(refused(&both).contains("app.pages: pages over QUIC are not on netns"));
}

#[test]
fn results_cut_short_are_refused() {
    let folder = folder("cut", "", "");
    let output = run(&folder, &["--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    fs::write(folder.join("cut.jsonl"), text.lines().next().unwrap()).unwrap();
    let output = lab(&folder, &["report", "cut.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(standard_error(&output).contains("cut.jsonl: ends without a summary"));
    let output = lab(&folder, &["report", "none.jsonl"]);
    assert!(standard_error(&output).contains("none.jsonl: cannot be read"));
}

#[test]
fn a_closed_pipe_is_quiet() {
    let folder = folder("pipe", "", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait-lab"));
    command.args(["list", "--folder", "."]).current_dir(&folder);
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped());
    let output = command.output().expect("the lab can be run");
    assert_eq!((output.status.code(), standard_error(&output)), (Some(0), String::new()));
}

#[test]
fn the_projects_scenarios_can_all_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = lab(&root.join("crates/plait-lab/src"), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let records = records(&output.stdout);
    let names: Vec<&str> =
        of_type(&records, "scenario").iter().filter_map(|r| r["name"].as_str()).collect();
    assert!(names.contains(&"002/table-loss"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("links/")), "{names:?}");
    assert_eq!(records.last().unwrap()["scenarios"], names.len());
}
