//! `plait-fuzz`: every target for as long as is asked, on stable Rust; then what was reached.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plait_fuzz::seeded::{Plan, attempt, corpus, generate, samples};
use plait_fuzz::{PLANS, reached};

const HELP: &str = "\
Runs fuzz targets with seeded inputs and prints what they reached.

plait-fuzz [OPTION]... [TARGET]...      all targets when none is named

  --seconds N    time for each target (60); 0 runs the samples alone
  --from SEED    first seed (the present second, so that every run has others)
  --samples DIR  reads samples from DIR/TARGET as well
  --collect DIR  writes inputs that reached something new to DIR/TARGET, made small
  --list         prints the targets
";

/// Inputs of one target that `--collect` writes at most.
const SAMPLES_MAX: usize = 24;

#[derive(Debug)]
struct Options {
    seconds: u64,
    from: u64,
    samples: Option<PathBuf>,
    collect: Option<PathBuf>,
    plans: Vec<Plan>,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plait-fuzz: {error}; plait-fuzz --help says more");
            return ExitCode::from(2);
        }
    };
    for plan in &options.plans {
        run(plan, &options);
    }
    print_reached();
    ExitCode::SUCCESS
}

/// The options, or nothing when all was said.
fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let from = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Seeds of different seconds must not overlap.
    let mut options =
        Options { seconds: 60, from: from << 24, samples: None, collect: None, plans: Vec::new() };
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or(format!("{word} needs {what}"));
        let number = |text: String| text.parse().map_err(|_| format!("{text} is no number"));
        match word.as_str() {
            "--seconds" => options.seconds = number(value("a number")?)?,
            "--from" => options.from = number(value("a number")?)?,
            "--samples" => options.samples = Some(value("a folder")?.into()),
            "--collect" => options.collect = Some(value("a folder")?.into()),
            "--list" => {
                PLANS.iter().for_each(|plan| println!("{}", plan.name));
                return Ok(None);
            }
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(None);
            }
            name => {
                let plan = PLANS.iter().find(|plan| plan.name == name);
                options.plans.push(*plan.ok_or(format!("there is no target {name}"))?);
            }
        }
    }
    if options.plans.is_empty() {
        options.plans.extend_from_slice(&PLANS);
    }
    Ok(Some(options))
}

fn run(plan: &Plan, options: &Options) {
    let Plan { name, target, bytes_max, .. } = *plan;
    let begun = Instant::now();
    let mut known = samples(&corpus(name));
    if let Some(more) = &options.samples {
        known.extend(samples(&more.join(name)));
    }
    let (mut cases, mut seen, mut found) = (0, BTreeSet::new(), Vec::new());
    for sample in &known {
        let repeat = format!("PLAIT_FUZZ_FILE={}", sample.path.display());
        seen.extend(reached::features_of(|| attempt(name, target, &repeat, &sample.bytes)));
    }
    while begun.elapsed() < Duration::from_secs(options.seconds) {
        let seed = options.from + cases;
        let bytes = generate(seed, bytes_max, &known);
        let repeat = format!("PLAIT_FUZZ_SEED={seed}");
        let reached = reached::features_of(|| attempt(name, target, &repeat, &bytes));
        cases += 1;
        if options.collect.is_some() && !reached.is_subset(&seen) {
            found.push(Found {
                seed,
                bytes,
                reached: reached.difference(&seen).cloned().collect(),
            });
        }
        seen.extend(reached);
    }
    let seconds = begun.elapsed().as_secs();
    println!(
        "{name}: {} samples, {cases} cases from seed {}, {seconds} s, {} different things reached",
        known.len(),
        options.from,
        seen.len()
    );
    if let Some(folder) = &options.collect {
        let written = collect(plan, &folder.join(name), found);
        println!("{name}: {written} inputs written");
    }
}

/// An input that reached something new.
#[derive(Debug)]
struct Found {
    seed: u64,
    bytes: Vec<u8>,
    /// What was new.
    reached: BTreeSet<String>,
}

/// Writes the few inputs that reach most of what was new, without what they do not need for that.
fn collect(plan: &Plan, folder: &Path, mut found: Vec<Found>) -> usize {
    fs::create_dir_all(folder).expect("the folder for samples can be made");
    found.sort_by_key(|found| core::cmp::Reverse(found.reached.len()));
    found.truncate(SAMPLES_MAX);
    for Found { seed, bytes, reached } in &found {
        let bytes = small(plan, bytes.clone(), reached);
        let path = folder.join(format!("seed_{seed}"));
        fs::write(path, bytes).expect("a sample can be written");
    }
    found.len()
}

/// An input without what it does not need to reach the same new things.
fn small(plan: &Plan, bytes: Vec<u8>, new: &BTreeSet<String>) -> Vec<u8> {
    let mut small = bytes;
    let mut cut = small.len() / 2;
    while cut > 0 {
        let mut at = 0;
        while at < small.len() {
            let mut tried = small.clone();
            tried.drain(at..(at + cut).min(small.len()));
            if reached::features_of(|| (plan.target)(&tried)).is_superset(new) {
                small = tried;
            } else {
                at += cut;
            }
        }
        cut /= 2;
    }
    small
}

fn print_reached() {
    println!();
    for line in reached::table() {
        println!("{line}");
    }
    let never = reached::never();
    println!();
    if never.is_empty() {
        println!("every drop reason was reached");
    } else {
        println!("drop reasons never reached: {}", never.join(", "));
    }
}
