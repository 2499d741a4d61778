//! road.*: a provider's gateway; what the map and the front page promise, each by its test.

use anyhow::Result;

use super::trust::faults::{run, target};
use super::{Effort, Figure};

pub(super) mod provider;

/// road.4: a packet is followed in few files, and so is an option.
pub(super) fn check_ways(_effort: Effort) -> Result<Vec<Figure>> {
    passes("plait-lab", "tidy", "a_packets_way_and_an_options_take_few_files")
}

/// road.5: the README's quick start, line by line.
pub(super) fn check_quick_start(_effort: Effort) -> Result<Vec<Figure>> {
    passes("plait-cli", "quick_start", "the_readmes_quick_start_brings_a_lan_to_the_internet")
}

fn passes(package: &str, tests: &str, name: &str) -> Result<Vec<Figure>> {
    let passed = run(&target(package, &["--test", tests]), &[name])?;
    let words = name.replace('_', " ");
    Ok(vec![Figure::count(format!("test passes: {words}"), passed).exactly(1.0, "its own test")])
}
