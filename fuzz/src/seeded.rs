//! Inputs from numbers and samples, and what is done with them: targets on stable Rust.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

use crate::Target;

/// Bytes of a failing input that are printed.
const SHOWN_BYTES_MAX: usize = 2048;

/// A target and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The target's name.
    pub name: &'static str,
    /// The target.
    pub target: Target,
    /// Cases of an ordinary run of the tests: seconds.
    pub cases: u64,
    /// Longest generated input.
    pub bytes_max: usize,
}

/// An input that was kept.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Where it is.
    pub path: PathBuf,
    /// The input.
    pub bytes: Vec<u8>,
}

/// The folder of a target's samples.
pub fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// The samples in a folder, in the order of their names; none when there is no such folder.
///
/// # Panics
/// When a sample cannot be read.
pub fn samples(folder: &Path) -> Vec<Sample> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("an entry of corpus").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("samples can be read");
        Sample { path, bytes }
    };
    paths.into_iter().map(read).collect()
}

/// The input of a seed: any bytes, bytes that are mostly small, or a sample with changes.
pub fn generate(seed: u64, bytes_max: usize, samples: &[Sample]) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let below = |rng: &mut ChaCha8Rng, bound: usize| (rng.next_u64() % bound as u64) as usize;
    let kind = below(&mut rng, 3);
    if kind == 2 && !samples.is_empty() {
        let mut bytes = samples[below(&mut rng, samples.len())].bytes.clone();
        for _ in 0..below(&mut rng, 4) {
            let at = below(&mut rng, bytes.len() + 1);
            match below(&mut rng, 4) {
                0 if at < bytes.len() => bytes[at] ^= 1 << below(&mut rng, 8),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, rng.next_u32() as u8),
                _ => {
                    let other = &samples[below(&mut rng, samples.len())].bytes;
                    bytes.extend_from_slice(other);
                }
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
///
/// # Panics
/// When the target does.
pub fn attempt(name: &str, target: Target, repeat: &str, bytes: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
        let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("target {name} failed on {} bytes ({repeat}):\n{hex}", bytes.len());
        eprintln!("again: {repeat} cargo test -p plait-fuzz --test seeded {name}");
        resume_unwind(panic);
    }
}
