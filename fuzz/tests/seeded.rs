//! Every fuzz target on a fixed number of seeded cases, on stable Rust.
//!
//! `PLAIT_FUZZ_CASES=10` runs ten times as many cases; `PLAIT_FUZZ_SEED=7` runs one case again;
//! `PLAIT_FUZZ_FILE=path` runs the content of a file.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use plait_fuzz::{TARGETS, Target};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// Bytes of a failing input that are printed.
const SHOWN_BYTES_MAX: usize = 2048;

#[test]
fn wire_parse() {
    run("wire_parse", 200_000, 400);
}

#[test]
fn open_datagram() {
    run("open_datagram", 300, 600);
}

#[test]
fn bond_ops() {
    run("bond_ops", 250, 200);
}

#[test]
fn resequencer_ops() {
    run("resequencer_ops", 4000, 1000);
}

#[test]
fn fq_codel_ops() {
    run("fq_codel_ops", 4000, 1000);
}

#[test]
fn tun_segment() {
    run("tun_segment", 20_000, 500);
}

#[test]
fn steer_ops() {
    run("steer_ops", 4000, 1000);
}

#[test]
fn dida_ops() {
    run("dida_ops", 4000, 1000);
}

/// Runs the samples in `corpus/NAME`, then `cases` inputs of at most `bytes_max` bytes.
fn run(name: &str, cases: u64, bytes_max: usize) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a known target");
    if let Ok(path) = std::env::var("PLAIT_FUZZ_FILE") {
        let bytes = fs::read(&path).expect("PLAIT_FUZZ_FILE names a file that can be read");
        attempt(name, *target, &format!("PLAIT_FUZZ_FILE={path}"), &bytes);
        return;
    }
    let samples = samples(name);
    for (path, sample) in &samples {
        attempt(name, *target, &format!("PLAIT_FUZZ_FILE={path}"), sample);
    }
    let seeds = match number("PLAIT_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..cases * number("PLAIT_FUZZ_CASES").unwrap_or(1),
    };
    let (first, count) = (seeds.start, seeds.end - seeds.start);
    println!("{name}: {} samples, {count} cases from seed {first} on", samples.len());
    for seed in seeds {
        let bytes = generate(seed, bytes_max, &samples);
        attempt(name, *target, &format!("PLAIT_FUZZ_SEED={seed}"), &bytes);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number: {text}")))
}

/// The samples of a target, in the order of their names.
fn samples(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("an entry of corpus").path()).collect();
    paths.sort();
    let read = |path| fs::read(path).expect("samples can be read");
    paths.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

/// The input of a seed: any bytes, bytes that are mostly small, or a sample with changes.
fn generate(seed: u64, bytes_max: usize, samples: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let below = |rng: &mut ChaCha8Rng, bound: usize| (rng.next_u64() % bound as u64) as usize;
    let kind = below(&mut rng, 3);
    if kind == 2 && !samples.is_empty() {
        let mut bytes = samples[below(&mut rng, samples.len())].1.clone();
        for _ in 0..below(&mut rng, 4) {
            let at = below(&mut rng, bytes.len() + 1);
            match below(&mut rng, 4) {
                0 if at < bytes.len() => bytes[at] ^= 1 << below(&mut rng, 8),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, rng.next_u32() as u8),
                _ => bytes.extend_from_slice(&samples[below(&mut rng, samples.len())].1),
            }
        }
        return bytes;
    }
    let length = below(&mut rng, bytes_max + 1);
    let mut bytes = vec![0; length];
    rng.fill_bytes(&mut bytes);
    if kind == 1 {
        for byte in &mut bytes {
            *byte = if *byte >= 0xe0 { byte.wrapping_mul(37) } else { *byte % 16 };
        }
    }
    bytes
}

/// Runs one input; when it fails, says how to run it again.
fn attempt(name: &str, target: Target, repeat: &str, bytes: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
        let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("target {name} failed on {} bytes ({repeat}):\n{hex}", bytes.len());
        eprintln!("again: {repeat} cargo test -p plait-fuzz --test seeded {name}");
        resume_unwind(panic);
    }
}
