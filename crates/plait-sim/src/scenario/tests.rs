//! Every scenario of the project parses; errors have exact texts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::*;
use crate::prng::Prng;

mod bad;
mod good;

/// The project's scenarios.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Every scenario file, by path below the root, without files of link conditions.
fn scenario_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["000", "002", "003", "004", "shared"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            files.push(entry.unwrap().path());
        }
    }
    files.sort();
    files
}

fn read_file(file: &Path) -> io::Result<String> {
    fs::read_to_string(file)
}

/// Loads a text as `x.toml`, with the given files beside it.
fn load_beside(
    text: &str,
    settings: &[&str],
    beside: &[(&str, &str)],
) -> Result<Experiment, ScenarioErrors> {
    let read = |file: &Path| {
        let found = beside.iter().find(|(name, _)| Path::new(name) == file);
        match found {
            _ if file == Path::new("x.toml") => Ok(text.to_owned()),
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    };
    Experiment::load(Path::new("x.toml"), settings, &read)
}

fn load(text: &str, settings: &[&str]) -> Result<Experiment, ScenarioErrors> {
    load_beside(text, settings, &[])
}

/// Each error with its remedy.
fn words(errors: &ScenarioErrors) -> String {
    errors.iter().map(|error| format!("{error}\n  {}\n", error.help())).collect()
}

/// A valid scenario of 20 lines.
const SOUND: &str = r#"name = "x"
title = "X"
source = "chosen"
duration_s = 10
[links.dsl]
rate_mbit = 64
rtt_ms = 13
[links.lte]
rate_mbit = 60
rtt_ms = [25, 45]
[bond]
links = ["dsl", "lte"]
[bond.scheduler]
algorithm = "adaptive-wrr"
[[app]]
name = "flow"
kind = "udp"
payload_bytes = 1460
rate = { mbit = 50, layer = "wire" }
"#;

#[test]
fn every_scenario_of_the_project_parses() {
    let files = scenario_files();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let none: [&str; 0] = [];
        let loaded = Experiment::load(&file, &none, &read_file);
        let experiment = loaded.unwrap_or_else(|errors| panic!("\n{}", words(&errors)));
        let name = Path::new(&experiment.scenario.name).with_extension("toml");
        assert!(file.ends_with(&name), "{} is called {}", file.display(), name.display());
        assert!(!experiment.cells.is_empty() && !experiment.scenario.checks.is_empty());
    }
}

fn project_scenario(name: &str) -> Experiment {
    let file = root().join(name).with_extension("toml");
    let none: [&str; 0] = [];
    Experiment::load(&file, &none, &read_file).unwrap_or_else(|e| panic!("\n{}", words(&e)))
}

#[test]
fn the_example_of_the_guide_parses() {
    let guide = include_str!("../../../../docs/guide/scenarios.md");
    let (_, rest) = guide.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let experiment = load(example, &[]).unwrap_or_else(|errors| panic!("\n{}", words(&errors)));
    assert_eq!(experiment.cells.len(), 2);
}

#[test]
fn every_metric_and_series_is_in_the_guide() {
    let guide = include_str!("../../../../docs/guide/scenarios.md");
    for (name, of) in metric::METRICS.iter().chain(metric::SERIES) {
        assert!(guide.contains(&format!("`{name}")), "{name} of {of:?}");
    }
}

#[test]
fn every_option_of_a_scatter_plot_is_in_the_guide() {
    let guide = include_str!("../../../../docs/guide/scenarios.md");
    let (_, rest) = guide.split_once("## `[[scatter]]`").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let plot = "[[scatter]]\nname = \"p\"\ntitle = \"P\"\nx = \"jain_index\"\ny = \"jain_index\"\n";
    let line = "[[scatter.line]]\nname = \"l\"\nsource = \"s\"\npoints = [[1, 1]]\n";
    for (text, count) in [
        (format!("{plot}unlike-any-of-them = 1"), 13),
        (format!("{plot}{line}unlike-any-of-them = 1"), 4),
    ] {
        let errors = load(&format!("{SOUND}{text}"), &[]).unwrap_err();
        let known = words(&errors);
        let (_, known) = known.split_once("known here: ").unwrap_or_else(|| panic!("{known}"));
        let known: Vec<&str> = known.trim().split(", ").collect();
        assert_eq!(known.len(), count, "{known:?}");
        for option in known.iter().filter(|option| **option != "line") {
            assert!(section.contains(&format!("`{option}`")), "{option}");
        }
    }
}

#[test]
fn both_tables_of_002_hold_the_same_figures() {
    let (table, readings) =
        (project_scenario("002/table-loss"), project_scenario("002/table-loss-readings"));
    assert_eq!(table.scenario.paper.values, readings.scenario.paper.values);
    assert_eq!(
        (table.scenario.paper.values.len(), table.cells.len(), readings.cells.len()),
        (9, 9, 54)
    );
    let bonds = [&table, &readings].map(|experiment| experiment.scenario.bond.as_ref());
    assert_eq!(bonds[0], bonds[1]);
}

#[test]
fn harm_is_looked_for_with_every_scheduler() {
    use plait_proto::scheduler::Algorithm;
    for name in ["shared/shared-bottleneck", "shared/one-shared-link"] {
        let cells = project_scenario(name).cells;
        for algorithm in Algorithm::ALL {
            let has = |cell: &Cell| {
                let is_bonded = cell.scenario.apps[0].via == app::Via::Bond;
                let bond = cell.scenario.bond.as_ref().unwrap();
                is_bonded && bond.scheduler.algorithm == algorithm
            };
            assert_eq!(cells.iter().filter(|cell| has(cell)).count(), 1, "{name} {algorithm}");
        }
    }
}

#[test]
fn every_named_link_makes_a_link() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("links")).unwrap() {
        let file = entry.unwrap().path();
        let text = SOUND
            .replace("rate_mbit = 64\nrtt_ms = 13", &format!("like = \"{}\"", file.display()))
            .replace("payload_bytes = 1460", "payload_bytes = 1400")
            .replace("duration_s = 10", "duration_s = 60");
        let read = |asked: &Path| {
            if asked == Path::new("x.toml") { Ok(text.clone()) } else { read_file(asked) }
        };
        let none: [&str; 0] = [];
        let loaded = Experiment::load(Path::new("x.toml"), &none, &read);
        let experiment = loaded.unwrap_or_else(|errors| panic!("\n{}", words(&errors)));
        let link = &experiment.scenario.links["dsl"];
        assert!(!link.title.is_empty() && !link.source.is_empty(), "{}", file.display());
        count += 1;
    }
    assert!(count >= 10, "{count}");
}

/// Damages a text the way an editor or a disk would.
fn damage(text: &str, prng: &mut Prng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut pick = |below: usize| {
        let high = u64::try_from(below.max(1) - 1).expect("usize fits 64 bits");
        usize::try_from(prng.up_to(high)).expect("no more than a usize")
    };
    for _ in 0..=pick(3) {
        let (line, other) = (pick(lines.len()), pick(lines.len()));
        match pick(8) {
            0 => drop(lines.remove(line)),
            1 => lines.swap(line, other),
            2 => lines.insert(line, lines[other].clone()),
            3 => {
                let key = lines[line].split('=').next().unwrap_or_default().to_owned();
                lines[line] = format!("{key}= -1");
            }
            4 => lines[line] = lines[line].replace(['[', '{'], "\""),
            5 => lines[line] = lines[line].chars().rev().collect(),
            6 => {
                let values = ["1e400", "nan", "\"\"", "[]", "{}", "true", "[[1]]", "0", "-9e18"];
                let key = lines[line].split('=').next().unwrap_or_default().to_owned();
                lines[line] = format!("{key}= {}", values[pick(values.len())]);
            }
            _ => {
                let end = lines[line].char_indices().nth(pick(30)).map_or(0, |(end, _)| end);
                lines[line].truncate(end);
            }
        }
    }
    lines.join("\n")
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let mut prng = Prng::new(3);
    let (mut refused, mut taken) = (0, 0);
    for file in scenario_files() {
        let text = fs::read_to_string(&file).unwrap();
        for _ in 0..60 {
            let damaged = damage(&text, &mut prng);
            let read = |asked: &Path| {
                if asked == file { Ok(damaged.clone()) } else { read_file(asked) }
            };
            let none: [&str; 0] = [];
            match Experiment::load(&file, &none, &read) {
                Ok(_) => taken += 1,
                Err(errors) => {
                    assert!(!words(&errors).is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100 && taken > 10, "{refused} refused, {taken} taken");
}

#[test]
fn no_setting_makes_the_reader_panic() {
    let text = fs::read_to_string(root().join("002/tcp-udp.toml")).unwrap();
    let keys =
        ["", ".", "links", "links.dsl", "links.dsl.like", "app", "app.tcp", "app.9.x", "bond"];
    let more = ["bond.links", "sweep", "t_dwd_ms", "paper.value", "check", "duration_s", "a.b.c.d"];
    let values =
        ["", "=", "[]", "{}", "\"", "nan", "-1", "99999999999999999999", "[[1], 2]", "\u{0}"];
    for key in keys.iter().chain(&more) {
        for value in values {
            let setting = format!("{key}={value}");
            let read = |asked: &Path| {
                if asked == Path::new("002/t.toml") {
                    Ok(text.clone())
                } else {
                    read_file(&root().join("002").join(asked.strip_prefix("002").unwrap_or(asked)))
                }
            };
            let loaded = Experiment::load(Path::new("002/t.toml"), &[setting], &read);
            if let Err(errors) = loaded {
                assert!(!words(&errors).is_empty());
            }
        }
    }
}
