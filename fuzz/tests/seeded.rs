//! Every fuzz target on a fixed number of seeded cases, on stable Rust.
//!
//! `PLAIT_FUZZ_CASES=10` runs ten times as many cases; `PLAIT_FUZZ_SEED=7` runs one case again;
//! `PLAIT_FUZZ_FILE=path` runs the content of a file.

use std::fs;

use plait_fuzz::PLANS;
use plait_fuzz::seeded::{Plan, attempt, corpus, generate, samples};

#[test]
fn wire_parse() {
    run("wire_parse");
}

#[test]
fn proxy_parse() {
    run("proxy_parse");
}

#[test]
fn capture_split() {
    run("capture_split");
}

#[test]
fn open_datagram() {
    run("open_datagram");
}

#[test]
fn bond_ops() {
    run("bond_ops");
}

#[test]
fn hostile_peer() {
    run("hostile_peer");
}

#[test]
fn resequencer_ops() {
    run("resequencer_ops");
}

#[test]
fn fq_codel_ops() {
    run("fq_codel_ops");
}

#[test]
fn tun_segment() {
    run("tun_segment");
}

#[test]
fn steer_ops() {
    run("steer_ops");
}

#[test]
fn dida_ops() {
    run("dida_ops");
}

/// Every target has samples, and they stay small.
#[test]
fn samples_are_small() {
    for Plan { name, .. } in PLANS {
        let all = samples(&corpus(name));
        assert!(!all.is_empty(), "{name} has no samples");
        let bytes: usize = all.iter().map(|sample| sample.bytes.len()).sum();
        assert!(bytes <= 32 * 1024, "{name} has {bytes} bytes of samples");
    }
}

/// Runs the samples in `corpus/NAME`, then generated inputs.
fn run(name: &str) {
    let plan = PLANS.iter().find(|plan| plan.name == name).expect("a known target");
    let Plan { target, cases, bytes_max, .. } = *plan;
    if let Ok(path) = std::env::var("PLAIT_FUZZ_FILE") {
        let bytes = fs::read(&path).expect("PLAIT_FUZZ_FILE names a file that can be read");
        attempt(name, target, &format!("PLAIT_FUZZ_FILE={path}"), &bytes);
        return;
    }
    let samples = samples(&corpus(name));
    for sample in &samples {
        let repeat = format!("PLAIT_FUZZ_FILE={}", sample.path.display());
        attempt(name, target, &repeat, &sample.bytes);
    }
    let seeds = match number("PLAIT_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..cases * number("PLAIT_FUZZ_CASES").unwrap_or(1),
    };
    let (first, count) = (seeds.start, seeds.end - seeds.start);
    println!("{name}: {} samples, {count} cases from seed {first} on", samples.len());
    for seed in seeds {
        let bytes = generate(seed, bytes_max, &samples);
        attempt(name, target, &format!("PLAIT_FUZZ_SEED={seed}"), &bytes);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number: {text}")))
}
